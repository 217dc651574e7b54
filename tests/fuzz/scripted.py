"""A peer that does with each question what the question says."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import threading
from typing import Any

from tests.cases.frames import accept_head, take_frame, write_frame

_LARGE = 50_000
_JOIN_LIMIT = 10.0


class _Left(Exception):
    """The client closed its connection, or this peer does."""


class Peer:
    """Answer over HTTP or WebSocket.

    A question has ``do``; the text of a streamed task has a word for each step.

    Args:
        scheme: ``http`` or ``ws``.
    """

    def __init__(self, scheme: str) -> None:
        self._scheme = scheme
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}"
        self._socks: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._heard: dict[str, threading.Event] = {}
        self._start(self._accept)

    def heard(self, doing: str) -> threading.Event:
        """Return what is set when such a question comes from now on, or its connection is closed.

        The latter for ``answer-and-close``.
        """
        return self._heard.setdefault(doing, threading.Event())

    def stop(self) -> None:
        """End everything."""
        for sock in [self._listener, *self._socks]:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join(_JOIN_LIMIT)
        for sock in [self._listener, *self._socks]:
            sock.close()

    def _start(self, target: Any, *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, name="fuzz-peer", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._socks.append(sock)
                kind = _HTTP if self._scheme == "http" else _WebSocket
                self._start(self._serve, kind(sock))

    def _serve(self, line: _HTTP | _WebSocket) -> None:
        noticed = None
        with contextlib.suppress(OSError, _Left):
            line.begin()
            while True:
                call, data = line.question()
                if "do" in data:
                    noticed = self._heard.pop(data["do"], None)
                    if noticed is not None and data["do"] != "answer-and-close":
                        noticed.set()
                    _answer(line, call, data)
                else:
                    text = data["messages"][0]["parts"][0]["content"]
                    _stream(line, call, text.split())
        line.sock.close()
        if noticed is not None:
            noticed.set()


def _answer(line: _HTTP | _WebSocket, call: str, question: Any) -> None:
    doing = question["do"]
    if doing == "silent":
        line.until_left()
    if doing == "cut":
        raise _Left
    whole = line.answer(call, {"question": question})
    if doing == "cut-inside":
        line.sock.sendall(whole[: len(whole) - 5])
        raise _Left
    if doing == "garbage":
        whole = line.garbage()
    elif doing == "other-id":
        whole = line.answer("0" * 32, {"question": question})
    elif doing == "large":
        whole = line.answer(call, "x" * _LARGE)
    elif doing == "answer-and-more":
        whole += line.answer("1" * 32, {"question": "of somebody else"})
    line.sock.sendall(whole)
    if doing == "answer-and-close":
        raise _Left


def _stream(line: _HTTP | _WebSocket, call: str, script: list[str]) -> None:
    numbers = itertools.count()
    line.begin_stream()
    for word in script:
        if word == "event":
            line.tell(call, {"type": "task_progress", "n": next(numbers)})
        elif word == "beat":
            line.beat()
        elif word == "hold":
            line.held = b""
        elif word == "go":
            line.go()
        elif word == "final":
            line.tell(call, {"type": "task_status_update", "new_state": "completed"}, final=True)
            line.end_stream()
        elif word == "garbage":
            line.tell_garbage()
        elif word == "other-id":
            line.tell("0" * 32, {"type": "task_progress", "n": -1})
        elif word == "silent":
            line.until_left()
        elif word == "cut-inside":
            line.cut_inside(call)
            raise _Left
        else:
            raise _Left


class _Line:
    """One connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.buffer = bytearray()
        # What is to go out at once: a connection that is reset loses what waits for its turn.
        self.held: bytes | None = None

    def send(self, data: bytes) -> None:
        if self.held is None:
            self.sock.sendall(data)
        else:
            self.held += data

    def go(self) -> None:
        held, self.held = self.held, None
        self.send(held or b"")

    def fill(self) -> None:
        data = self.sock.recv(65536)
        if not data:
            raise _Left
        self.buffer += data

    def until_left(self) -> None:
        while True:
            self.fill()

    def head(self) -> dict[str, str]:
        while b"\r\n\r\n" not in self.buffer:
            self.fill()
        end = self.buffer.index(b"\r\n\r\n") + 4
        lines = bytes(self.buffer[:end]).decode("latin-1").split("\r\n")
        del self.buffer[:end]
        return {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}


def _envelope(call: str, event: Any, *, final: bool) -> bytes:
    return json.dumps({"id": call, "ok": True, "result": event, "final": final}).encode()


class _HTTP(_Line):
    def begin(self) -> None:
        pass

    def question(self) -> tuple[str, Any]:
        headers = self.head()
        size = int(headers.get("content-length", "0"))
        while len(self.buffer) < size:
            self.fill()
        body = json.loads(bytes(self.buffer[:size]))
        del self.buffer[:size]
        return headers["x-protolink-request-id"], body

    def answer(self, call: str, value: Any) -> bytes:
        body = json.dumps(value).encode()
        head = f"HTTP/1.1 200 OK\r\nX-Protolink-Request-ID: {call}\r\nContent-Length: {len(body)}"
        return f"{head}\r\n\r\n".encode() + body

    def garbage(self) -> bytes:
        return b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{]}"

    def begin_stream(self) -> None:
        head = b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.sock.sendall(b"HTTP/1.1 200 OK\r\n" + head)

    def _chunk(self, data: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(data), data)

    def tell(self, call: str, event: Any, *, final: bool = False) -> None:
        self.send(self._chunk(b"data: %b\n\n" % _envelope(call, event, final=final)))

    def beat(self) -> None:
        self.send(self._chunk(b": beat\n\n"))

    def tell_garbage(self) -> None:
        self.sock.sendall(self._chunk(b"data: {]\n\n"))

    def cut_inside(self, call: str) -> None:
        self.sock.sendall(self._chunk(b"data: " + _envelope(call, {"n": 0}, final=True))[:-10])

    def end_stream(self) -> None:
        self.sock.sendall(b"0\r\n\r\n")


class _WebSocket(_Line):
    def begin(self) -> None:
        self.sock.sendall(accept_head(self.head()["sec-websocket-key"]))

    def question(self) -> tuple[str, Any]:
        while True:
            while (frame := take_frame(self.buffer)) is None:
                self.fill()
            if frame.opcode == 8:
                raise _Left
            if frame.opcode == 1:
                asked = json.loads(frame.payload)
                return asked["id"], asked["data"]

    def answer(self, call: str, value: Any) -> bytes:
        return write_frame({"opcode": 1}, _envelope(call, value, final=False))

    def garbage(self) -> bytes:
        return write_frame({"opcode": 1}, b"{]}")

    def begin_stream(self) -> None:
        pass

    def tell(self, call: str, event: Any, *, final: bool = False) -> None:
        self.send(write_frame({"opcode": 1}, _envelope(call, event, final=final)))

    def beat(self) -> None:
        self.send(write_frame({"opcode": 9}, b"beat"))

    def tell_garbage(self) -> None:
        self.sock.sendall(self.garbage())

    def cut_inside(self, call: str) -> None:
        self.sock.sendall(write_frame({"opcode": 1}, _envelope(call, {}, final=True))[:-10])

    def end_stream(self) -> None:
        pass
