"""WebSocket frames as far as speed asks for it: whole text messages in, masked frames out.

Pure functions. Everything else that can stand in a frame is left to websocket-client.

Source:
    RFC 6455, 5.2 and 5.3.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Literal

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

# Times a word it has that word in every place.
_EACH_WORD = int.from_bytes(b"\1\0\0\0" * (_ONE_INTEGER // 4), "little")

# The function of the extra "fast": unknown at first, then there or not. To import its library takes
# as long as to mask a few thousand messages here.
_mask_in_c: Callable[[bytes, bytes], bytes] | Literal[False] | None = None
_masked_bytes = 0
_MUCH = 1 << 20

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
    in_c = _mask_in_c if _mask_in_c is not None else _found_in_c(size)
    if in_c:
        return head + in_c(payload, key)
    if size <= _ONE_INTEGER:
        words = (size + 3) // 4
        mask = (_EACH_WORD >> (_ONE_INTEGER - 4 * words) * 8) * int.from_bytes(key, "little")
        masked = (int.from_bytes(payload, "little") ^ mask).to_bytes(4 * words, "little")
        return head + masked[:size]
    frame = bytearray(len(head) + size)
    frame[: len(head)] = head
    for number, byte in enumerate(key):
        # Every fourth byte has the same part of the key: a table turns all of them at once.
        table = _ALL_BYTES ^ int.from_bytes(bytes((byte,)) * 256, "little")
        frame[len(head) + number :: 4] = payload[number::4].translate(table.to_bytes(256, "little"))
    return frame


def _found_in_c(size: int) -> Callable[[bytes, bytes], bytes] | Literal[False]:
    """Return the function in C, once enough was masked without it; False before, or if none."""
    global _mask_in_c, _masked_bytes
    _masked_bytes += size
    if _masked_bytes < _MUCH:
        return False
    try:
        from websockets.speedups import apply_mask

        # No documented function of that library: so it is asked for what is known.
        is_right = apply_mask(b"Hello", bytes.fromhex("37fa213d")) == b"\x7f\x9f\x4d\x51\x58"
    except Exception:
        is_right = False
    _mask_in_c = apply_mask if is_right else False
    return _mask_in_c


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
            begin = at + (4 if size == _LENGTH_16 else 10)
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
