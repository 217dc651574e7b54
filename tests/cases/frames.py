"""WebSocket frames on the side of the scripted server (RFC 6455, 5.2)."""

from __future__ import annotations

import base64
import hashlib
import struct
import time

from tests.cases.records import Frame
from tests.cases.script import Step

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def accept_head(key: str) -> bytes:
    """Return the head that accepts an upgrade request with this key."""
    accept = base64.b64encode(hashlib.sha1(key.encode() + _GUID).digest())
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
    )


def write_frame(step: Step, payload: bytes) -> bytes:
    """Return a frame as a ``ws_frame`` step words it; the length may be a lie."""
    first = (0x80 if step.get("fin", True) else 0) | (0x40 if step.get("rsv1") else 0)
    size = step.get("declared_len", len(payload))
    masked = 0x80 if step.get("mask") else 0
    head = bytes([first | step["opcode"]])
    if size < 126:
        head += bytes([masked | size])
    elif size < 1 << 16:
        head += bytes([masked | 126]) + struct.pack("!H", size)
    else:
        head += bytes([masked | 127]) + struct.pack("!Q", size)
    if not masked:
        return head + payload
    key = b"\x01\x02\x03\x04"
    return head + key + _masked(payload, key)


def _masked(payload: bytes, key: bytes) -> bytes:
    return bytes(byte ^ key[position % 4] for position, byte in enumerate(payload))


def take_frame(buffer: bytearray) -> Frame | None:
    """Take one whole frame off the buffer, None while it is not there yet."""
    if len(buffer) < 2:
        return None
    size, at = buffer[1] & 0x7F, 2
    if size >= 126:
        width = 2 if size == 126 else 8
        size, at = int.from_bytes(buffer[2 : 2 + width], "big"), 2 + width
    masked = bool(buffer[1] & 0x80)
    key = bytes(buffer[at : at + 4]) if masked else b""
    at += len(key) if masked else 0
    if len(buffer) < at + size or (masked and len(key) < 4):
        return None
    payload = bytes(buffer[at : at + size])
    frame = Frame(
        opcode=buffer[0] & 0x0F,
        payload=_masked(payload, key) if masked else payload,
        fin=bool(buffer[0] & 0x80),
        rsv1=bool(buffer[0] & 0x40),
        masked=masked,
        at=time.monotonic(),
    )
    del buffer[: at + size]
    return frame
