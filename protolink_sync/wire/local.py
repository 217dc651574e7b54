"""Calls that do not leave the process: JSON values as bytes that only this process reads.

The values are those that JSON would carry, so an agent sees the same over every transport. The
bytes are made by ``marshal``, which takes a fraction of the time: nobody else reads them, and
they are never kept.

Its version 2 makes equal bytes of equal values; later ones also tell which objects are the same,
so that the key of a task sent twice would not be the same.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Mapping
from typing import Any

from protolink_sync.errors import TransportRemoteError
from protolink_sync.models import ClientRequestSpec, Task, jsonable
from protolink_sync.wire.request import TransportRequestContext, WireReply, WireRequest, one_line

__all__ = [
    "decode",
    "decode_event",
    "dump_data",
    "encode",
    "encode_body",
    "encode_event",
    "remote_error",
    "take",
]

_VERSION = 2

_TAKEN = object()

# How much of a handler's words a message shows; the error has all of them.
_SHOWN_WORDS = 1000


class Encoded(bytes):
    """The bytes of a value, and until somebody takes it, the value itself.

    To encode copies, so who takes the value shares it with nobody.
    """

    value: Any


def dump_data(data: Any) -> Encoded:
    """Return a model or plain JSON values as bytes.

    Raises:
        TypeError: The data is no JSON.
        ValueError: The data holds NaN, Infinity or itself.

    >>> take(dump_data({1: ("a", None)}))
    {'1': ['a', None]}
    """
    if type(data) is Task:
        value: Any = data.to_dict()  # made of JSON types, and of nothing else
    else:
        to_dict = getattr(data, "to_dict", None)
        value = jsonable(data if to_dict is None else to_dict())
    encoded = Encoded(marshal.dumps(value, _VERSION))
    encoded.value = value
    return encoded


def take(encoded: bytes) -> Any:
    """Return the value of bytes that :func:`dump_data` made; each time another object."""
    # One operation: of several who take it at once one gets it, the others read the bytes.
    value = encoded.__dict__.pop("value", _TAKEN) if isinstance(encoded, Encoded) else _TAKEN
    return marshal.loads(encoded) if value is _TAKEN else value


def encode_body(spec: ClientRequestSpec, data: Any) -> bytes | None:
    """Return the encoded data of a call, or None where there is none.

    Raises:
        TypeError: The data is no JSON.
        ValueError: The data holds NaN, Infinity or itself.
    """
    return None if data is None or spec.request_source == "none" else dump_data(data)


def encode(
    spec: ClientRequestSpec,
    context: TransportRequestContext,
    body: bytes | None,
    data: Any = None,
    params: Mapping[str, Any] | None = None,
) -> WireRequest:
    """Return one call.

    Args:
        spec: The operation.
        context: Who the call is.
        body: What :func:`encode_body` made of the data.
        data: The data once more, which this codec does not need.
        params: Query parameters, which no endpoint of a hosted agent reads.
    """
    return WireRequest(context, spec.method, spec.path, {}, body, None, spec.channel)


def decode(
    reply: WireReply,
    context: TransportRequestContext,
    *,
    retryable_statuses: frozenset[int] = frozenset(),
    now: Callable[[], float] | None = None,
) -> Any:
    """Return the value of an answer; what is no answer was raised before."""
    return take(reply.body)


def encode_event(event: bytes, *, final: bool) -> bytes:
    """Return an event, from :func:`dump_data`, with the mark of the last one."""
    return event + (b"\1" if final else b"\0")


def decode_event(payload: bytes, context: TransportRequestContext) -> tuple[Any, bool]:
    """Return the event in one message of a stream, and whether it is the last."""
    # What stands behind the value is not read.
    return marshal.loads(payload), payload[-1] == 1


def remote_error(kind: str, message: str, context: TransportRequestContext) -> TransportRemoteError:
    """Return the error of a call that the agent refused, or whose handler failed.

    Args:
        kind: Name of the error.
        message: Its words.
        context: Who the call is.
    """
    shown = one_line(message[:_SHOWN_WORDS])
    return TransportRemoteError(
        f"{context.where}: the peer answered with an error: {kind}: {shown}",
        error_type=kind,
        error_message=message,
    )
