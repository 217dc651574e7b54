"""What a peer reads and says on each wire, in bytes: questions in, whole answers out.

An :class:`Answer` knows where in its bytes each phase of the matrix lies, so a fault can be put
anywhere without being written by hand.
"""

from __future__ import annotations

import json
import select
import socket
import time
from typing import Any

import attrs

from tests.cases.frames import accept_head, take_frame

LIMIT = 64 * 1024
"""The largest answer and event that the clients of the matrix take."""

_OTHER_ID = "0123456789abcdef0123456789abcdef"
_TOO_MUCH = "x" * (2 * LIMIT)

_MANY_FIELDS = [f"X-Field-{number}: {'x' * 500}" for number in range(200)]

MANY_FIELDS = "\r\n".join([*_MANY_FIELDS, ""]).encode()
"""More header lines than any client needs to take."""

Question = dict[str, Any]


class PeerLeft(Exception):
    """The client closed its connection."""


@attrs.frozen
class Answer:
    """What the peer says to one question.

    Args:
        data: All its bytes.
        at: Where each phase lies.
    """

    data: bytes
    at: dict[str, int]


class Session:
    """One connection at the peer's side.

    Args:
        sock: The connection.
        cell: What is tested; it shapes the answers.
    """

    # No frame of WebSocket or HTTP/2 begins like this, wherever it is cut.
    garbage = b"\xa7"

    def __init__(self, sock: socket.socket, cell: Any) -> None:
        self.sock = sock
        self.cell = cell
        self.buffer = bytearray()

    def fill(self) -> None:
        """Wait for more bytes."""
        data = self.sock.recv(65536)
        if not data:
            raise PeerLeft
        self.buffer += data

    def take(self, size: int) -> bytes:
        """Wait for so many bytes and take them."""
        while len(self.buffer) < size:
            self.fill()
        taken = bytes(self.buffer[:size])
        del self.buffer[:size]
        return taken

    def begin(self) -> Answer | None:
        """Do what comes before the first question; return what is said then, if anything."""
        return None

    def is_given_up(self, seconds: float | None) -> bool:
        """Wait for so long at most until the client is done with the question, and say whether."""
        return bool(select.select([self.sock], [], [], seconds)[0])

    def say(self, data: bytes) -> None:
        """Send bytes."""
        self.sock.sendall(data)

    def question(self, *, unread: bool = False) -> Question | None:
        """Wait for a question; with ``unread`` only for the begin of one."""
        raise NotImplementedError

    def answer(self, question: Question, fault: tuple[str, str] | None) -> Answer:
        """Return the answer, shaped for the phase and the fault."""
        raise NotImplementedError


def _result(question: Question) -> Any:
    return {"question": question["data"]}


def _events(question: Question) -> list[Any]:
    data = question["data"]
    text = data["messages"][0]["parts"][0]["content"]
    return [
        {"type": "task_progress", "message": "begun"},
        {"type": "task_progress", "message": text},
        {"type": "task_status_update", "new_state": "completed", "final": True},
    ]


def _a2a_task(state: str, text: str) -> dict[str, Any]:
    part = {"messageId": "m1", "role": "ROLE_AGENT", "parts": [{"text": text}]}
    return {"id": "t1", "contextId": "c1", "status": {"state": state, "message": part}}


def _a2a_result(question: Question) -> Any:
    return {"task": _a2a_task("TASK_STATE_COMPLETED", _a2a_text(question))}


def _a2a_text(question: Question) -> str:
    return str(question["data"]["message"]["parts"][0]["text"])


def _a2a_events(question: Question) -> list[Any]:
    ids = {"taskId": "t1", "contextId": "c1"}
    artifact = {"artifactId": "a1", "parts": [{"text": _a2a_text(question)}]}
    return [
        {"task": _a2a_task("TASK_STATE_WORKING", "begun")},
        {"artifactUpdate": {**ids, "artifact": artifact}},
        {"statusUpdate": {**ids, "status": {"state": "TASK_STATE_COMPLETED"}}},
    ]


def _native(question: Question, result: Any, *, final: bool, other: bool) -> bytes:
    call = _OTHER_ID if other else question["id"]
    return json.dumps({"id": call, "ok": True, "result": result, "final": final}).encode()


def _rpc(question: Question, result: Any, *, other: bool) -> bytes:
    call = _OTHER_ID if other else question["id"]
    return json.dumps({"jsonrpc": "2.0", "id": call, "result": result}).encode()


def payloads(cell: Any, question: Question, fault: tuple[str, str] | None) -> list[bytes]:
    """Return the bodies of an answer: one of a call, each event's of a stream."""
    phase, kind = fault or ("", "")
    a2a = cell.wire == "a2a"
    if not cell.streams:
        results = [_a2a_result(question) if a2a else _result(question)]
    else:
        results = _a2a_events(question) if a2a else _events(question)
    large = (
        {"mid-event": 1, "first-byte": 0, "mid-body": 0}.get(phase) if kind == "oversize" else None
    )
    if large is not None:
        results[large] = {**results[large], "padding": _TOO_MUCH}
    told = []
    for number, result in enumerate(results):
        other = kind == "wrong-id" and number == (1 if cell.streams else 0)
        final = number == len(results) - 1
        if a2a:
            told.append(_rpc(question, result, other=other))
        elif cell.streams or cell.wire in ("ws", "grpc"):
            told.append(_native(question, result, final=final, other=other))
        else:
            told.append(json.dumps(result).encode())
    return told


def joined(head: bytes, bodies: list[bytes], prefixes: list[int], tail: bytes = b"") -> Answer:
    """Return an answer of several framed bodies.

    Args:
        head: What comes before the first body.
        bodies: Framed bodies.
        prefixes: How many bytes of each are framing before the body itself.
        tail: What follows them.
    """
    data = head + b"".join(bodies) + tail
    one = len(head) + len(bodies[0])
    at = {
        "wait": 0,
        "headers": max(1, len(head) // 2),
        "first-byte": len(head),
        "mid-body": len(head) + prefixes[0] + (len(bodies[0]) - prefixes[0]) // 2,
        "after-end": len(data),
    }
    if len(bodies) > 1:
        at["mid-body"] = one
        at["mid-event"] = one + prefixes[1] + (len(bodies[1]) - prefixes[1]) // 2
    return Answer(data, at)


# ---- HTTP --------------------------------------------------------------------------------------


class HTTPSession(Session):
    """Calls and streams over HTTP, ProtoLink's and A2A's."""

    garbage = b"\xa7\xf3{]\x00\x80'\x1f\r\n"

    def question(self, *, unread: bool = False) -> Question | None:
        """Wait for a request; the one for a card is answered here."""
        while True:
            while b"\r\n\r\n" not in self.buffer:
                self.fill()
            end = self.buffer.index(b"\r\n\r\n") + 4
            lines = self.take(end).decode("latin-1").split("\r\n")
            headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}
            if lines[0].startswith("GET "):
                self.sock.sendall(_card(headers["host"], self.cell))
                continue
            if unread:
                return None
            body = json.loads(self.take(int(headers.get("content-length", "0"))))
            if self.cell.wire == "a2a":
                return {"id": body["id"], "data": body["params"]}
            return {"id": headers["x-protolink-request-id"], "data": body}

    def answer(self, question: Question, fault: tuple[str, str] | None) -> Answer:
        bodies = payloads(self.cell, question, fault)
        in_chunks = self.cell.streams or self.cell.wire in ("sse", "a2a")
        kind = "text/event-stream" if self.cell.streams else "application/json"
        lines = ["HTTP/1.1 200 OK", f"Content-Type: {kind}"]
        if in_chunks:
            lines.append("Transfer-Encoding: chunked")
        else:
            lines.append(f"Content-Length: {len(bodies[0])}")
        if fault == ("headers", "wrong-id") or fault == ("after-end", "wrong-id"):
            lines.append(f"X-Protolink-Request-ID: {_OTHER_ID}")
        if fault == ("headers", "oversize"):
            lines += _MANY_FIELDS
        head = "\r\n".join([*lines, "", ""]).encode()
        if not in_chunks:
            return joined(head, bodies, [0])
        if self.cell.streams:
            bodies = [b"data: %b\n\n" % body for body in bodies]
        prefixes = [len(b"%x\r\n" % len(body)) for body in bodies]
        chunks = [b"%x\r\n%b\r\n" % (len(body), body) for body in bodies]
        return joined(head, chunks, prefixes, b"0\r\n\r\n")


def _card(host: str, cell: Any) -> bytes:
    card = {
        "name": "faulty",
        "description": "fails on demand",
        "version": "1",
        "supportedInterfaces": [
            {
                "url": f"http{'s' if cell.is_encrypted else ''}://{host}/rpc",
                "protocolBinding": "JSONRPC",
                "protocolVersion": "1.0",
            }
        ],
        "capabilities": {"streaming": True},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [],
    }
    body = json.dumps(card).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n".encode() + body


# ---- WebSocket ---------------------------------------------------------------------------------


class WebSocketSession(Session):
    """Calls and streams over WebSocket; the head of an answer is that of the upgrade."""

    garbage = HTTPSession.garbage

    def begin(self) -> Answer:
        """Take the request for the upgrade and return what accepts it."""
        while b"\r\n\r\n" not in self.buffer:
            self.fill()
        head = self.take(self.buffer.index(b"\r\n\r\n") + 4).decode("latin-1")
        key = next(
            line.partition(": ")[2]
            for line in head.split("\r\n")
            if line.lower().startswith("sec-websocket-key")
        )
        accepted = accept_head(key)
        return Answer(accepted, {"headers": len(accepted) // 2})

    def question(self, *, unread: bool = False) -> Question | None:
        """Wait for a message."""
        self.garbage = Session.garbage
        if unread:
            self.take(10)
            return None
        while True:
            while (frame := take_frame(self.buffer)) is None:
                self.fill()
            if frame.opcode == 8:
                raise PeerLeft
            if frame.opcode in (1, 2):
                asked: Question = json.loads(frame.payload)
                return asked

    def answer(self, question: Question, fault: tuple[str, str] | None) -> Answer:
        bodies = payloads(self.cell, question, fault)
        if fault == ("mid-body", "oversize"):
            half = len(bodies[0]) // 2
            pieces = [_frame(0x01, bodies[0][:half]), _frame(0x80, bodies[0][half:])]
            return joined(b"", [b"".join(pieces)], [len(pieces[0]) - half])
        frames = [_frame(0x81, body) for body in bodies]
        prefixes = [len(frame) - len(body) for frame, body in zip(frames, bodies, strict=True)]
        answer = joined(b"", frames, prefixes)
        # Before it there is nothing; its first byte is the first of its payload.
        return Answer(answer.data, {**answer.at, "first-byte": prefixes[0]})


def _frame(first: int, payload: bytes) -> bytes:
    size = len(payload)
    if size < 126:
        return bytes([first, size]) + payload
    if size < 1 << 16:
        return bytes([first, 126]) + size.to_bytes(2, "big") + payload
    return bytes([first, 127]) + size.to_bytes(8, "big") + payload


# ---- gRPC --------------------------------------------------------------------------------------

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
_CONTINUATION = 9
_ACK = END_STREAM = 0x1
_END_HEADERS = 0x4


def _h2(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
    return head + payload


def _head(stream: int, fields: bytes) -> bytes:
    """Return fields in as many frames as they take."""
    pieces = [fields[at : at + 16384] for at in range(0, len(fields), 16384)]
    last = len(pieces) - 1
    return b"".join(
        _h2(_CONTINUATION if n else _HEADERS, _END_HEADERS if n == last else 0, stream, piece)
        for n, piece in enumerate(pieces)
    )


def _field(name: str, value: str) -> bytes:
    """Return a header as HPACK writes it without table and Huffman code (RFC 7541, 6.2.2)."""
    size = len(value)
    length = bytes([size]) if size < 127 else b"\x7f" + _integer(size - 127)
    return b"\x00" + bytes([len(name)]) + name.encode() + length + value.encode()


def _integer(rest: int) -> bytes:
    out = bytearray()
    while rest >= 128:
        out.append(rest % 128 | 128)
        rest //= 128
    return bytes([*out, rest])


class GRPCSession(Session):
    """The generic service over HTTP/2, of which a peer needs little."""

    def begin(self) -> None:
        """Take the client's preface."""
        self._bodies: dict[int, bytearray] = {}
        self._stream = 0
        # The stream that is never told that it may send more than it may from the begin.
        self._starved = 0
        # What must not be sent within a frame that is only sent in part.
        self._held: list[bytes] | None = None
        self.take(len(_PREFACE))
        self.say(_h2(_SETTINGS, 0, 0))

    def say(self, data: bytes) -> None:
        """Send bytes, or hold them until the frame that is under way is whole."""
        if self._held is None:
            self.sock.sendall(data)
        else:
            self._held.append(data)

    def is_given_up(self, seconds: float | None) -> bool:
        """Wait until the client has reset the stream; what HTTP/2 asks for is done meanwhile."""
        self._held = []
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            left = None if end is None else max(0.0, end - time.monotonic())
            while len(self.buffer) >= 9 and len(self.buffer) >= 9 + self._size():
                if self._take_frame() == _RST_STREAM:
                    return True
            if not super().is_given_up(left):
                return False
            self.fill()

    def resume(self) -> None:
        """Send what was held."""
        held, self._held = self._held, None
        for data in held or ():
            self.sock.sendall(data)

    def _size(self) -> int:
        return int.from_bytes(self.buffer[:3], "big")

    def question(self, *, unread: bool = False) -> Question | None:
        """Wait until a request is whole, doing what HTTP/2 asks for meanwhile."""
        self._whole: int | None = None
        while self._whole is None:
            if self._take_frame() == _DATA and unread:
                self._starved = self._last
                return None
        self._stream = self._whole
        asked: Question = json.loads(bytes(self._bodies.pop(self._stream)[5:]))
        return asked

    def _take_frame(self) -> int:
        """Take the next frame, and return what it was."""
        head = self.take(9)
        size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        self._last = stream = int.from_bytes(head[5:], "big")
        payload = self.take(size)
        if kind == _SETTINGS and not flags & _ACK:
            self.say(_h2(_SETTINGS, _ACK, 0))
        elif kind == _PING and not flags & _ACK:
            self.say(_h2(_PING, _ACK, 0, payload))
        elif kind == _HEADERS:
            self._bodies[stream] = bytearray()
        elif kind == _DATA:
            self._take_data(stream, payload, ends=bool(flags & END_STREAM))
        return kind

    def _take_data(self, stream: int, payload: bytes, *, ends: bool) -> None:
        granted = len(payload).to_bytes(4, "big")
        if payload:
            self.say(_h2(_WINDOW, 0, 0, granted))
        self._bodies[stream] += payload
        if ends:
            self._whole = stream
        elif payload and stream != self._starved:
            self.say(_h2(_WINDOW, 0, stream, granted))

    def answer(self, question: Question, fault: tuple[str, str] | None) -> Answer:
        stream = self._stream
        fields = b"\x88" + _field("content-type", "application/grpc")
        if fault == ("headers", "oversize"):
            # Beyond grpcio's hard limit: from the half of it on it refuses at random.
            fields += b"".join(_field(f"x-field-{n}", "x" * 500) for n in range(100))
        head = _head(stream, fields)
        frames = []
        for body in payloads(self.cell, question, fault):
            message = b"\x00" + len(body).to_bytes(4, "big") + body
            pieces = [message[at : at + 16384] for at in range(0, len(message), 16384)]
            frames.append(b"".join(_h2(_DATA, 0, stream, piece) for piece in pieces))
        status = _field("grpc-status", "0")
        tail = _h2(_HEADERS, _END_HEADERS | END_STREAM, stream, status)
        return joined(head, frames, [14] * len(frames), tail)


SESSIONS: dict[str, type[Session]] = {
    "http": HTTPSession,
    "sse": HTTPSession,
    "a2a": HTTPSession,
    "ws": WebSocketSession,
    "grpc": GRPCSession,
}
