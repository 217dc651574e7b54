"""What the peer of the matrices does with streams and WebSockets; see :mod:`.matrix_peer`.

One of an agent's events is enough to have a stream begin; what follows it is the mode.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from typing import Any

from tests.cases.frames import accept_head, take_frame

_EVENT = {"type": "task_progress", "message": "begun"}
_LARGE = {"type": "task_progress", "message": "x" * 65_000}
_FINAL = {"type": "task_status_update", "new_state": "completed", "final": True}

_TEXT, _PING = 0x81, 0x89

# The begin of a record that promises more than comes: its reader waits within TLS.
_PART_OF_A_RECORD = b"\x17\x03\x03\x40\x00" + b"x" * 100

_ANSWER_LIMIT = 60.0  # seconds for anything the peer itself waits for


def _envelope(call: Any, result: Any, *, final: bool = False) -> bytes:
    return json.dumps({"id": call, "ok": True, "result": result, "final": final}).encode()


def _half_a_record(request: Any) -> None:
    # Past TLS: the method of the class below.
    socket.socket.sendall(request.connection.sock, _PART_OF_A_RECORD)


# ---- server-sent events ------------------------------------------------------------------------


class _Events:
    """The stream that answers a request."""

    def __init__(self, request: Any) -> None:
        request.body()
        self._call = request.headers["x-protolink-request-id"]
        self._sock = request.connection.sock
        head = "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
        self._sock.sendall(f"HTTP/1.1 200 OK\r\n{head}\r\n".encode())

    def tell(self, event: Any, *, final: bool = False) -> None:
        data = b"data: %b\n\n" % _envelope(self._call, event, final=final)
        self._sock.sendall(b"%x\r\n%b\r\n" % (len(data), data))

    def end(self) -> None:
        self._sock.sendall(b"0\r\n\r\n")


def _sse_one(request: Any) -> None:
    _Events(request).tell(_EVENT)
    request.connection.until_left()


def _sse_whole(request: Any) -> None:
    events = _Events(request)
    events.tell(_EVENT)
    events.tell(_FINAL, final=True)
    events.end()


def _sse_part(request: Any) -> None:
    _Events(request).tell(_EVENT)
    _half_a_record(request)
    request.connection.until_left()


def _sse_flood(request: Any) -> None:
    events = _Events(request)
    while True:
        events.tell(_LARGE)


# ---- WebSocket ---------------------------------------------------------------------------------


class _Messages:
    """The WebSocket that a request was upgraded to."""

    def __init__(self, request: Any) -> None:
        self._connection = request.connection
        self._sock = request.connection.sock
        self._buffer = bytearray(request.connection.buffer)
        self._sock.sendall(accept_head(request.headers["sec-websocket-key"]))

    def take(self) -> Any:
        """Return the next message of the client, as JSON; its end raises."""
        while True:
            while (found := take_frame(self._buffer)) is None:
                data = self._sock.recv(65536)
                if not data:
                    raise ConnectionResetError("the client left")
                self._buffer += data
            if found.opcode == _TEXT & 0x0F:
                return json.loads(found.payload)

    def put(self, first: int, payload: bytes, *, missing: int = 0) -> None:
        """Send one frame, or the begin of one."""
        size = len(payload) + missing
        head = bytes([first, size]) if size < 126 else bytes([first, 127]) + size.to_bytes(8, "big")
        self._sock.sendall(head + payload)

    def tell(self, call: Any, result: Any) -> None:
        self.put(_TEXT, _envelope(call, result))


def _ws_echo(request: Any) -> None:
    messages = _Messages(request)
    while True:
        asked = messages.take()
        number = request.connection.number
        messages.tell(asked["id"], {"connection": number, "question": asked.get("data")})


def _ws_unanswered(request: Any) -> None:
    """Never answer the request for the upgrade."""
    request.connection.until_left()


def _ws_unread(request: Any) -> None:
    _Messages(request)
    threading.Event().wait(_ANSWER_LIMIT)


def _ws_silent(request: Any) -> None:
    _Messages(request).take()
    request.connection.until_left()


def _ws_half(request: Any) -> None:
    messages = _Messages(request)
    messages.take()
    messages.put(_TEXT, b'{"ok":', missing=5000)
    request.connection.until_left()


def _ws_one(request: Any) -> _Messages:
    messages = _Messages(request)
    messages.tell(messages.take()["id"], _EVENT)
    return messages


def _ws_stay(request: Any) -> None:
    _ws_one(request)
    request.connection.until_left()


def _ws_part(request: Any) -> None:
    _ws_one(request)
    _half_a_record(request)
    request.connection.until_left()


def _ws_flood(request: Any) -> None:
    messages = _Messages(request)
    call = messages.take()["id"]
    while True:
        messages.tell(call, _LARGE)


def _ws_pings(request: Any) -> None:
    """Ping, and never read a pong: in the end the client cannot send one."""
    messages = _ws_one(request)
    while True:
        messages.put(_PING, b"x" * 125)


MODES: dict[str, Callable[[Any], None]] = {
    "sse-one": _sse_one,
    "sse-whole": _sse_whole,
    "sse-part": _sse_part,
    "sse-flood": _sse_flood,
    "ws-echo": _ws_echo,
    "ws-unanswered": _ws_unanswered,
    "ws-unread": _ws_unread,
    "ws-silent": _ws_silent,
    "ws-half": _ws_half,
    "ws-one": _ws_stay,
    "ws-part": _ws_part,
    "ws-flood": _ws_flood,
    "ws-pings": _ws_pings,
}
