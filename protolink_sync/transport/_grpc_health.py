"""The standard health check of gRPC, without protobuf: a codec for :meth:`Transport.send_as`.

Both messages have one field: the request the name of a service, the answer a number.

Source:
    gRPC, ``grpc/health/v1/health.proto``; Protocol Buffers, "Encoding".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from protolink_sync.errors import TransportProtocolError
from protolink_sync.models import ClientRequestSpec
from protolink_sync.wire import TransportRequestContext, WireReply, WireRequest

__all__ = ["CHECK", "decode", "encode", "encode_body"]

CHECK = ClientRequestSpec("check_health", "/grpc.health.v1.Health/Check", "POST", idempotent=True)

_STATUS = {0: "UNKNOWN", 1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}

# Field 1 as text, and what kinds of values there are.
_TEXT_1 = b"\x0a"
_NUMBER, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_LONGEST_NUMBER = 10


def encode_body(spec: ClientRequestSpec, data: str) -> bytes:
    """Return the request for the health of one service; an empty name stands for the agent."""
    name = data.encode()
    return _TEXT_1 + _number(len(name)) + name if name else b""


def encode(
    spec: ClientRequestSpec,
    context: TransportRequestContext,
    body: bytes | None,
    data: Any = None,
    params: Mapping[str, Any] | None = None,
) -> WireRequest:
    """Return the whole call."""
    return WireRequest(context, spec.method, spec.path, {}, body, channel=spec.channel)


def decode(
    reply: WireReply,
    context: TransportRequestContext,
    *,
    retryable_statuses: frozenset[int] = frozenset(),
    now: Callable[[], float] | None = None,
) -> str:
    """Return the status in an answer.

    Raises:
        TransportProtocolError: The bytes are no such answer, or its status has no name.
    """
    try:
        return _STATUS[_status(reply.body)]
    except (IndexError, KeyError, ValueError):
        raise TransportProtocolError(
            f"{context.where}: the answer is no health status: {reply.body[:100]!r}"
        ) from None


def _number(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))


def _status(message: bytes) -> int:
    """Return the number in field 1, 0 where there is none; other fields are passed over."""
    status, at = 0, 0
    while at < len(message):
        tag, at = _read_number(message, at)
        kind = tag & 7
        if kind == _NUMBER:
            value, at = _read_number(message, at)
            status = value if tag >> 3 == 1 else status
        elif kind == _BYTES:
            size, at = _read_number(message, at)
            at += size
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            at += 8 if kind == _EIGHT_BYTES else 4
        else:
            raise ValueError(kind)
    if at > len(message):
        raise ValueError(at)
    return status


def _read_number(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(_LONGEST_NUMBER):
        byte = message[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte <= 0x7F:
            return value, at + place + 1
    raise ValueError(at)
