"""WebSocket frames as far as speed asks for it: whole text messages in, masked frames out.

Pure functions. Everything else that can stand in a frame is left to websocket-client.

Source:
    RFC 6455, 5.2 and 5.3.
"""

from __future__ import annotations

import struct

__all__ = [
    "BINARY",
    "CLOSE",
    "CONTINUATION",
    "PING",
    "PONG",
    "TEXT",
    "header_size",
    "masked_frame",
    "take_texts",
]

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA

_FINAL = 0x80
_MASKED = 0x80
_WHOLE_TEXT = _FINAL | TEXT

# The seven bits of a length that say that two or eight bytes of it follow.
_LENGTH_16 = 126
_LENGTH_64 = 127

# Up to so many bytes one long integer is the fastest way to mask; beyond, tables are.
_ONE_INTEGER = 4096

_ALL_BYTES = int.from_bytes(bytes(range(256)), "little")


def masked_frame(opcode: int, payload: bytes, key: bytes) -> bytes | bytearray:
    """Return one final frame as a client sends it.

    Args:
        opcode: What the frame is.
        payload: Its bytes.
        key: Four random bytes.

    >>> masked_frame(TEXT, b"Hello", bytes.fromhex("37fa213d")).hex()
    '818537fa213d7f9f4d5158'
    """
    size = len(payload)
    if size < _LENGTH_16:
        head = bytes((_FINAL | opcode, _MASKED | size)) + key
    elif size < 1 << 16:
        head = struct.pack("!BBH", _FINAL | opcode, _MASKED | _LENGTH_16, size) + key
    else:
        head = struct.pack("!BBQ", _FINAL | opcode, _MASKED | _LENGTH_64, size) + key
    if size <= _ONE_INTEGER:
        mask = int.from_bytes((key * (size // 4 + 1))[:size], "little")
        return head + (int.from_bytes(payload, "little") ^ mask).to_bytes(size, "little")
    frame = bytearray(len(head) + size)
    frame[: len(head)] = head
    for number, byte in enumerate(key):
        # Every fourth byte has the same part of the key: a table turns all of them at once.
        table = _ALL_BYTES ^ int.from_bytes(bytes((byte,)) * 256, "little")
        frame[len(head) + number :: 4] = payload[number::4].translate(table.to_bytes(256, "little"))
    return frame


def header_size(second: int) -> int:
    """Return how long the header of a frame that is not masked is, by its second byte."""
    return 10 if second == _LENGTH_64 else 4 if second == _LENGTH_16 else 2


def take_texts(data: bytes, at: int, limit: int) -> tuple[list[bytes], int, int]:
    """Return the whole text messages that stand at the begin of what was read.

    Args:
        data: What was read.
        at: Where the next frame begins.
        limit: Size of the largest message allowed.

    Returns:
        The messages; where the frame behind them begins; and how many bytes of that one are
        missing at least. None are if it is no whole, final, unmasked text within the limit:
        then it is not for this function.

    >>> take_texts(bytes.fromhex("810141 81024243 810378"), 0, 100)
    ([b'A', b'BC'], 7, 2)
    """
    texts: list[bytes] = []
    end = len(data)
    while True:
        begin = at + 2
        if begin > end:
            return texts, at, 0 if at < end and data[at] != _WHOLE_TEXT else begin - end
        if data[at] != _WHOLE_TEXT:
            return texts, at, 0
        size = data[at + 1]
        if size >= _LENGTH_16:
            if size > _LENGTH_64:  # masked, which a server must not do
                return texts, at, 0
            begin = at + header_size(size)
            if begin > end:
                return texts, at, begin - end
            size = int.from_bytes(data[at + 2 : begin], "big")
        if size > limit:
            return texts, at, 0
        stop = begin + size
        if stop > end:
            return texts, at, stop - end
        texts.append(data[begin:stop])
        at = stop
