"""The floors of the streams: one socket, what the wire needs and no more, ``json``; or grpcio."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import uuid
from collections.abc import Callable, Iterator
from typing import IO, Any
from urllib.parse import urlsplit

from benchmarks.payloads import stream_task, task

__all__ = ["Grpcio", "RawSocket"]

_SERVICE = "/protolink.transport.v1.ProtolinkTransport/"
_BUFFER_BYTES = 1 << 16


def _envelope(path: str, data: dict[str, Any]) -> bytes:
    request = {"id": uuid.uuid4().hex, "method": "POST", "path": path, "data": data}
    return json.dumps(request, separators=(",", ":")).encode()


class RawSocket:
    """Dictionaries in and out, nothing checked, nothing bounded, a connection for each stream."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 0)

    def stream(self, wire: str, kind: str) -> Callable[[], Iterator[Any]]:
        """The events of one stream."""
        if wire == "websocket":
            return lambda: self._over_websocket(kind)
        if kind == "closed":
            return lambda: self._to_the_close(kind)
        whole = not kind.startswith(("event", "lines"))
        return lambda: self._over_sse(kind, whole)

    def larger(
        self, wire: str, small: str, large: str
    ) -> tuple[Callable[[], Iterator[Any]], Callable[[], Iterator[Any]]]:
        """The events of two streams."""
        return self.stream(wire, small), self.stream(wire, large)

    def call(self, wire: str, size: str) -> Callable[[], Any]:
        """One call on a kept WebSocket."""
        assert wire == "websocket"
        socket_, value = _WebSocket(self._connect(), size), task(size)

        def call() -> Any:
            socket_.send(_envelope("/tasks/", value))
            return json.loads(socket_.receive())["result"]

        return call

    def _connect(self) -> socket.socket:
        sock = socket.create_connection(self._address)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    @contextlib.contextmanager
    def _sse_body(self, kind: str) -> Iterator[IO[bytes]]:
        """Ask for a stream and give what follows the head of the answer."""
        body = json.dumps(stream_task(kind)).encode()
        with self._connect() as sock, sock.makefile("rb", _BUFFER_BYTES) as file:
            sock.sendall(
                b"POST /%b/tasks/stream HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                b"Accept: text/event-stream\r\nContent-Length: %d\r\n\r\n%b"
                % (kind.encode(), len(body), body)
            )
            while file.readline() != b"\r\n":
                pass
            yield file

    def _to_the_close(self, kind: str) -> Iterator[Any]:
        with self._sse_body(kind) as file:
            for line in file:
                if line != b"\n":
                    yield json.loads(line[6:])["result"]

    def _over_sse(self, kind: str, whole: bool) -> Iterator[Any]:
        with self._sse_body(kind) as file:
            loads, parts = json.loads, []
            while size := int(file.readline(), 16):
                data = file.read(size + 2)
                if whole:  # each chunk is one event
                    yield loads(data[6:-2])["result"]
                else:
                    parts.append(data[:-2])
            for event in b"".join(parts).split(b"\n\n")[:-1]:
                yield loads(event[6:].replace(b"\ndata: ", b"\n"))["result"]

    def _over_websocket(self, kind: str) -> Iterator[Any]:
        with self._connect() as sock:
            socket_ = _WebSocket(sock, kind)
            socket_.send(_envelope("/tasks/stream", stream_task(kind)))
            loads, receive, final = json.loads, socket_.receive, False
            while not final:
                envelope = loads(receive())
                yield envelope["result"]
                final = envelope["final"]


class _WebSocket:
    """Whole text frames; what is sent is masked by zeros."""

    def __init__(self, sock: socket.socket, path: str) -> None:
        self._sock = sock
        self._file = sock.makefile("rb", _BUFFER_BYTES)
        sock.sendall(
            b"GET /%b HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
            % path.encode()
        )
        while self._file.readline() != b"\r\n":
            pass

    def send(self, data: bytes) -> None:
        self._sock.sendall(b"\x81\xfe%b\0\0\0\0%b" % (struct.pack(">H", len(data)), data))

    def receive(self) -> bytes:
        read = self._file.read
        size = read(2)[1]
        if size == 126:
            size = int.from_bytes(read(2), "big")
        elif size == 127:
            size = int.from_bytes(read(8), "big")
        data: bytes = read(size)
        return data


class Grpcio:
    """``grpcio``'s blocking interface as its documentation shows it, and ``json``."""

    def __init__(self, url: str) -> None:
        import grpc

        channel = grpc.insecure_channel(urlsplit(url).netloc)
        self._invoke: Any = channel.unary_unary(_SERVICE + "Invoke")
        self._stream: Any = channel.unary_stream(_SERVICE + "Stream")

    def stream(self, wire: str, kind: str) -> Callable[[], Iterator[Any]]:
        """The events of one stream."""
        assert wire == "grpc"
        value = stream_task(kind)

        def events() -> Iterator[Any]:
            for raw in self._stream(_envelope("/tasks/stream", value), timeout=60):
                yield json.loads(raw)["result"]

        return events

    def call(self, wire: str, size: str) -> Callable[[], Any]:
        """One call on a kept channel."""
        assert wire == "grpc"
        value = task(size)
        return lambda: json.loads(self._invoke(_envelope("/tasks/", value), timeout=60))["result"]
