"""The canned server's streams: events from prebuilt bytes, over SSE and over WebSocket."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
import socket
import struct
from collections.abc import Callable, Iterator

from benchmarks.payloads import REQUEST_ID, events, paced_events, task

__all__ = ["PLACEHOLDER", "send_sse", "serve_websocket"]

PLACEHOLDER = REQUEST_ID.encode()

_SSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%b\r\n\r\n"
_IN_CHUNKS = b"Transfer-Encoding: chunked"
_TO_THE_CLOSE = b"Connection: close"
_UPGRADED = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: %b\r\n\r\n"
)
_WEBSOCKET_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_ID = re.compile(rb'"id": ?"(\w{32})"')
_BLOCK_BYTES = 1 << 18
_SMALL_CHUNK = 1024
_HEAD_BYTES = 240  # of a message; its id and its path are there
_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10

Pack = Callable[[bytes], bytes]


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _sse_alone(event: bytes) -> bytes:
    return b"data: " + event.replace(b"\n", b"\ndata: ") + b"\n\n"


def _sse(event: bytes) -> bytes:
    """Return one event as one chunk, as an ASGI server sends it."""
    return _chunk(_sse_alone(event))


def _sse_in_small_chunks(event: bytes) -> bytes:
    data = _sse_alone(event)
    return b"".join(
        _chunk(data[start : start + _SMALL_CHUNK]) for start in range(0, len(data), _SMALL_CHUNK)
    )


def _frame(data: bytes, opcode: int = _TEXT) -> bytes:
    size = len(data)
    if size < 126:
        length = bytes([size])
    elif size < 1 << 16:
        length = b"\x7e" + struct.pack(">H", size)
    else:
        length = b"\x7f" + struct.pack(">Q", size)
    return bytes([0x80 | opcode]) + length + data


@functools.cache
def _blocks(kind: str, pack: Pack) -> tuple[bytes, ...]:
    """Return a stream as blocks, each with many small events or a large one."""
    return tuple(_in_blocks(kind, functools.cache(pack)))


def _in_blocks(kind: str, pack: Pack) -> Iterator[bytes]:
    block: list[bytes] = []
    size = 0
    for event in events(kind):
        packed = pack(event)
        if len(packed) > _BLOCK_BYTES:
            yield packed
            continue
        block.append(packed)
        size += len(packed)
        if size > _BLOCK_BYTES:
            yield b"".join(block)
            block, size = [], 0
    yield b"".join(block)


def _send(sock: socket.socket, kind: str, pack: Pack, request_id: bytes) -> None:
    is_paced = kind in ("paced", "closed")
    packed = map(pack, paced_events()) if is_paced else _blocks(kind, pack)
    for block in packed:
        sock.sendall(block.replace(PLACEHOLDER, request_id))


def send_sse(sock: socket.socket, kind: str, request_id: bytes) -> None:
    """Answer a request by a stream of events.

    Raises:
        OSError: The other end is gone, or the stream ends with its connection.
    """
    if kind == "closed":
        sock.sendall(_SSE_HEAD % _TO_THE_CLOSE)
        _send(sock, kind, _sse_alone, request_id)
        raise ConnectionError("the body is at its end")
    sock.sendall(_SSE_HEAD % _IN_CHUNKS)
    small = kind.startswith(("event", "lines"))
    _send(sock, kind, _sse_in_small_chunks if small else _sse, request_id)
    sock.sendall(_chunk(b""))


def serve_websocket(sock: socket.socket, kind: str, key: bytes) -> None:
    """Answer the messages on a WebSocket until it is closed.

    Raises:
        OSError: The other end is gone.
    """
    accept = base64.b64encode(hashlib.sha1(key + _WEBSOCKET_MAGIC).digest())
    sock.sendall(_UPGRADED % accept)
    while True:
        opcode, mask, masked = _receive_frame(sock)
        if opcode == _CLOSE:
            sock.sendall(_frame(b"", _CLOSE))
            raise ConnectionError("closed by the client")
        if opcode == _PING:
            sock.sendall(_frame(_unmasked(mask, masked), _PONG))
        elif opcode == _TEXT:
            _answer(sock, kind, _unmasked(mask, masked[:_HEAD_BYTES]))


def _answer(sock: socket.socket, kind: str, head: bytes) -> None:
    found = _ID.search(head)
    request_id = found[1] if found else PLACEHOLDER
    if b"/tasks/stream" in head:
        _send(sock, kind, _frame, request_id)
    else:
        sock.sendall(_frame(_reply(kind).replace(PLACEHOLDER, request_id, 1)))


@functools.cache
def _reply(size: str) -> bytes:
    return json.dumps({"id": REQUEST_ID, "ok": True, "result": task(size)}).encode()


def _receive_frame(sock: socket.socket) -> tuple[int, bytes, bytes]:
    first, second = _receive(sock, 2)
    size = second & 0x7F
    if size == 126:
        (size,) = struct.unpack(">H", _receive(sock, 2))
    elif size == 127:
        (size,) = struct.unpack(">Q", _receive(sock, 8))
    return first & 0x0F, _receive(sock, 4), _receive(sock, size)


def _unmasked(mask: bytes, data: bytes) -> bytes:
    return bytes(byte ^ mask[place & 3] for place, byte in enumerate(data))


def _receive(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise ConnectionError("cut by the client")
        data += more
    return bytes(data)
