"""One connection of a scripted server: reading requests, playing steps, seeing the end."""

from __future__ import annotations

import contextlib
import functools
import http
import itertools
import json
import socket
import ssl
import struct
import time
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tests.cases.frames import accept_head, take_frame, write_frame
from tests.cases.records import Connection, Request
from tests.cases.script import Step, Steps, fill_in, header_pairs, json_inside_quotes
from tests.cases.waiting import poll_once

if TYPE_CHECKING:
    from tests.cases.server import ScriptedServer

_READ_BYTES = 1 << 16


class PeerGoneError(Exception):
    """The client closed or reset the connection."""


class StoppedError(Exception):
    """The server is stopping."""


class FinishedError(Exception):
    """The script closed the connection itself."""


class MalformedError(Exception):
    """The client sent what cannot be read, or a step asked for what it did not send."""


class _LateError(Exception):
    """A read's own time limit passed."""


class Conversation:
    """Play one connection's part of the script; :meth:`run` is its thread."""

    def __init__(self, server: ScriptedServer, sock: socket.socket, record: Connection) -> None:
        self._server = server
        self._sock = sock
        self._record = record
        self._buffer = bytearray()
        self._request: Request | None = None
        self._rpc_id: bytes | None = None
        self._message = bytearray()
        self._gzip: Any = None
        sock.setblocking(False)

    def run(self) -> None:
        """Play until the script, the client or the server ends the connection."""
        closed_by = "client"
        try:
            self._start_tls()
            self._converse()
        except PeerGoneError:
            pass
        except StoppedError:
            closed_by = "stop"
        except FinishedError:
            closed_by = "server"
        except Exception as exc:  # a script's fault must fail the test, not only this thread
            closed_by = "server"
            name = type(exc).__name__
            self._server.problem(f"connection {self._record.number}: {name}: {exc}")
        finally:
            self._sock.close()
            self._server.closed(self._record, closed_by)

    def _converse(self) -> None:
        steps = self._server.steps_of_connection(self._record.number)
        if steps is None:
            while True:
                self._recv()
                assert self._request is not None
                self._play(self._server.steps_of_route(self._request))
        self._play(steps)
        self._linger()

    def _linger(self) -> None:
        # Nothing is read here: the script says what is read.
        while True:
            self._wait()

    # -- waiting and bytes ---------------------------------------------------------------

    def _wait(
        self,
        *,
        read: bool = False,
        write: bool = False,
        gate: socket.socket | None = None,
        until: float | None = None,
    ) -> bool:
        """Wait for the socket or the gate, False when ``until`` came first.

        With neither ``read`` nor ``write`` the client's close is watched for instead.
        """
        stop = self._server.stop_signal
        while True:
            left = None if until is None else max(0.0, until - time.monotonic())
            sock_event, awake = poll_once(
                self._sock, [stop, gate], read=read, write=write, left=left
            )
            if stop in awake:
                raise StoppedError
            if sock_event:
                if read or write:
                    return True
                raise PeerGoneError
            if gate in awake:
                return True
            if until is not None and time.monotonic() >= until:
                return False

    def _pause(self, seconds: float) -> None:
        self._wait(until=time.monotonic() + seconds)

    def _attempt(
        self, action: Callable[[], Any], *, write: bool = False, until: float | None = None
    ) -> Any:
        """Do one non-blocking action, waiting as often as it asks for."""
        while True:
            try:
                return action()
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError) as exc:
                wants_write = write and not isinstance(exc, ssl.SSLWantReadError)
                wants_write = wants_write or isinstance(exc, ssl.SSLWantWriteError)
                if not self._wait(read=not wants_write, write=wants_write, until=until):
                    raise _LateError from None
            except ssl.SSLError as exc:
                self._record.tls_error = str(exc)
                raise PeerGoneError from exc
            except OSError as exc:
                raise PeerGoneError from exc

    def _start_tls(self) -> None:
        tls = self._server.tls
        if tls is not None:
            plain = self._sock
            self._sock = self._attempt(
                lambda: tls.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
            )
            self._attempt(self._sock.do_handshake)

    def _fill_buffer(self, until: float | None = None) -> None:
        data = self._attempt(lambda: self._sock.recv(_READ_BYTES), until=until)
        if not data:
            raise PeerGoneError
        self._record.keep(data)
        self._buffer += data

    def _take(self, count: int) -> bytes:
        while len(self._buffer) < count:
            self._fill_buffer()
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    def _take_until(self, mark: bytes) -> bytes:
        while mark not in self._buffer:
            self._fill_buffer()
        return self._take(self._buffer.index(mark) + len(mark))

    def _write(self, data: bytes) -> None:
        sent = 0
        while sent < len(data):
            rest = memoryview(data)[sent:]
            sent += self._attempt(functools.partial(self._sock.send, rest), write=True)

    # -- requests ------------------------------------------------------------------------

    def _recv(self, *, body: bool = True) -> None:
        head = self._take_until(b"\r\n\r\n").decode("latin-1")
        start, *lines = head[:-4].split("\r\n")
        words = start.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/"):
            raise MalformedError(f"no request line: {start[:200]!r}")
        headers = []
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                raise MalformedError(f"no header: {line[:200]!r}")
            headers.append((name, value.strip(" \t")))
        request = Request(*words, headers, b"", self._record.number, 0.0)
        if body:
            request.body = self._read_body(request)
        request.at = time.monotonic()
        self._request = request
        self._rpc_id = _rpc_id(request.body)
        self._server.requested(request)

    def _read_body(self, request: Request) -> bytes:
        if "chunked" in (request.header("Transfer-Encoding") or "").lower():
            pieces = []
            while size := int(self._take_until(b"\r\n").split(b";")[0], 16):
                pieces.append(self._take(size))
                self._take_until(b"\r\n")
            while self._take_until(b"\r\n") != b"\r\n":
                pass
            return b"".join(pieces)
        return self._take(int(request.header("Content-Length") or 0))

    def _lookup(self, name: str) -> bytes:
        """Return the value of a placeholder."""
        if name == "base":
            return self._server.base.encode()
        if name.startswith("base:"):
            return self._server.peers[int(name[5:])].base.encode()
        if name == "rpc_id":
            if self._rpc_id is None:
                raise MalformedError("{{rpc_id}} is asked for, but no JSON with an id came")
            return self._rpc_id
        request = self._request
        if request is None:
            raise MalformedError(f"{{{{{name}}}}} is asked for before a request was read")
        if name == "task_id":
            return _task_id(request.body)
        header = "X-Protolink-Request-ID" if name == "req_id" else name[4:]
        value = request.header(header)
        if value is None and name == "req_id":
            raise MalformedError(f"{request.name} came without {header}")
        return (value or "").encode("latin-1")

    # -- steps ---------------------------------------------------------------------------

    def _play(self, steps: Steps) -> None:
        for step in steps:
            getattr(self, "_do_" + step["op"])(step)

    def _text(self, step: Step, word: str = "data") -> bytes:
        return fill_in(step.get(word, ""), self._lookup)

    def _headers(self, step: Step) -> list[list[bytes]]:
        pairs = header_pairs(step.get("headers"))
        return [
            [fill_in(name, self._lookup), fill_in(value, self._lookup)] for name, value in pairs
        ]

    def _do_recv(self, step: Step) -> None:
        self._recv()

    def _do_recv_head(self, step: Step) -> None:
        self._recv(body=False)

    def _do_recv_some(self, step: Step) -> None:
        if not self._buffer:
            self._fill_buffer()
        self._buffer.clear()

    def _do_send(self, step: Step) -> None:
        self._write(self._text(step))

    def _do_split(self, step: Step) -> None:
        data = self._text(step)
        cuts = step["at"] if isinstance(step["at"], Sequence) else [step["at"]]
        self._write_pieces(_cut(data, cuts), step.get("gap_s", 0.0))

    def _do_drip(self, step: Step) -> None:
        self._write_pieces(_parts(self._text(step), step.get("bytes", 1)), step["every_s"])

    def _do_repeat(self, step: Step) -> None:
        self._write_pieces([self._text(step)] * step["times"], step.get("every_s", 0.0))

    def _do_fill(self, step: Step) -> None:
        byte = step["byte"] if isinstance(step["byte"], int) else self._text(step, "byte")[0]
        self._write(bytes([byte]) * step["count"])

    def _write_pieces(self, pieces: Sequence[bytes], gap: float) -> None:
        for number, piece in enumerate(pieces):
            if number and gap:
                self._pause(gap)
            self._write(piece)

    def _do_reply(self, step: Step) -> None:
        body = self._text(step, "body")
        headers = self._headers(step)
        length = step.get("content_length", "auto")
        if length is not None:
            size = len(body) if length == "auto" else length
            headers.append([b"Content-Length", b"%d" % size])
        self._write(_head(step, headers) + body)

    def _do_head(self, step: Step) -> None:
        self._write(_head(step, self._headers(step)))

    def _do_sse_head(self, step: Step) -> None:
        headers = self._headers(step)
        if not any(name.lower() == b"content-type" for name, _ in headers):
            headers.append([b"Content-Type", b"text/event-stream"])
        self._write(_head(step, [*headers, [b"Transfer-Encoding", b"chunked"]]))

    def _do_chunk(self, step: Step) -> None:
        self._write(_chunk(self._text(step)))

    def _do_chunks(self, step: Step) -> None:
        pieces = [_chunk(piece) for piece in _parts(self._text(step), step["size"])]
        self._write_pieces(pieces, step.get("every_s", 0.0))

    def _do_end_chunks(self, step: Step) -> None:
        self._write(b"0\r\n\r\n")

    def _do_gzip_chunk(self, step: Step) -> None:
        if self._gzip is None:
            self._gzip = zlib.compressobj(wbits=31)
        data = self._gzip.compress(self._text(step))
        if step.get("sync", True):
            data += self._gzip.flush(zlib.Z_SYNC_FLUSH)
        if data:
            self._write(_chunk(data))

    def _do_gzip_end(self, step: Step) -> None:
        if self._gzip is None:
            raise MalformedError("gzip_end without a gzip_chunk")
        self._write(_chunk(self._gzip.flush()))
        self._gzip = None

    def _do_sleep(self, step: Step) -> None:
        self._pause(step["s"])

    def _do_wait(self, step: Step) -> None:
        gate = self._server.event_gate(step["event"])
        if not self._wait(gate=gate, until=_until(step)):
            raise MalformedError(f"event {step['event']!r} was not fired within {step['s']} s")

    def _do_barrier(self, step: Step) -> None:
        gate = self._server.arrive(step["name"])
        if not self._wait(gate=gate, until=_until(step)):
            came = self._server.arrived(step["name"])
            raise MalformedError(
                f"barrier {step['name']!r}: {came} of {step['n']} connections came"
            )

    def _do_hold(self, step: Step) -> None:
        self._wait(until=_until(step))

    def _do_close(self, step: Step) -> None:
        # Unread bytes in the kernel would turn the FIN of close() into a reset.
        with contextlib.suppress(OSError):
            while self._sock.recv(_READ_BYTES):
                pass
        if isinstance(self._sock, ssl.SSLSocket):
            with contextlib.suppress(OSError, ValueError):
                self._sock.unwrap()
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)
        raise FinishedError

    def _do_rst(self, step: Step) -> None:
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise FinishedError

    # -- WebSocket -----------------------------------------------------------------------

    def _do_ws_accept(self, step: Step) -> None:
        key = self._request.header("Sec-WebSocket-Key") if self._request else None
        if key is None:
            raise MalformedError("ws_accept without an upgrade request")
        self._write(accept_head(key))

    def _do_ws_frame(self, step: Step) -> None:
        payload = self._text(step) + b"x" * step.get("fill", 0)
        self._write(write_frame(step, payload) * step.get("times", 1))

    def _do_ws_recv(self, step: Step) -> None:
        """Read one frame; with ``s`` going on without one is no fault."""
        until = _until(step)
        while (frame := take_frame(self._buffer)) is None:
            try:
                self._fill_buffer(until)
            except _LateError:
                return
        self._record.frames.append(frame)
        if frame.opcode < 8:
            if frame.opcode:
                self._message.clear()
            self._message += frame.payload
            if frame.fin:
                self._rpc_id = _rpc_id(bytes(self._message)) or self._rpc_id


def _until(step: Step) -> float | None:
    return None if step.get("s") is None else time.monotonic() + step["s"]


def _cut(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    ends = [0, *cuts, len(data)]
    return [data[start:end] for start, end in itertools.pairwise(ends)]


def _parts(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _head(step: Step, headers: Sequence[Sequence[bytes]]) -> bytes:
    status = step.get("status", 200)
    try:
        known = http.HTTPStatus(status).phrase
    except ValueError:
        known = ""
    start = f"HTTP/1.1 {status} {step.get('reason', known)}".encode("latin-1")
    return b"\r\n".join([start, *(name + b": " + value for name, value in headers), b"", b""])


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _rpc_id(body: bytes) -> bytes | None:
    document = _json(body)
    if isinstance(document, dict) and "id" in document:
        return json.dumps(document["id"]).encode()
    return None


def _task_id(body: bytes) -> bytes:
    document = _json(body)
    for name in ("id", "task_id"):
        if isinstance(document, dict) and name in document:
            return json_inside_quotes(document[name])
    raise MalformedError("{{task_id}} is asked for, but the body has no task's id")
