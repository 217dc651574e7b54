"""The envelope in which WebSocket, gRPC and SSE carry calls and answers.

Out: ``id``, ``method``, ``path``, ``idempotency_key``, ``data``, ``params``. Back: ``id``,
``ok``, ``result`` or ``error``, and ``final`` in streams.

Source:
    ProtoLink 0.8.3 on the wire, sections 4 to 6.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from protolink_sync.errors import TransportProtocolError, TransportRemoteError
from protolink_sync.models import ClientRequestSpec
from protolink_sync.wire import json
from protolink_sync.wire.request import (
    TransportRequestContext,
    WireReply,
    WireRequest,
    one_line,
)

__all__ = [
    "decode",
    "decode_event",
    "decode_reply",
    "encode",
    "encode_body",
]

# How much of a peer's words a message shows; the error has all of them.
_SHOWN_WORDS = 1000


def encode_body(spec: ClientRequestSpec, data: Any) -> bytes | None:
    """Return the encoded data of a call, or None where there is none.

    Raises:
        TypeError: The data is no JSON.
        ValueError: The data holds NaN, Infinity or itself.
    """
    if data is None or spec.request_source == "none":
        return None
    return json.dump_data(data)


def encode(
    spec: ClientRequestSpec,
    context: TransportRequestContext,
    body: bytes | None,
    data: Any = None,
    params: Mapping[str, Any] | None = None,
) -> WireRequest:
    """Return one call as one envelope.

    Args:
        spec: The operation.
        context: Who the call is.
        body: What :func:`encode_body` made of the data.
        data: The data once more, which this codec does not need.
        params: Query parameters.
    """
    request_id, key = context.request_id, context.idempotency_key
    words = request_id if key is None else request_id + key
    # Written piece by piece: an encoder of JSON takes longer to begin than for all of it.
    if words.isascii() and words.isprintable() and '"' not in words and "\\" not in words:
        id_text, key_text = f'"{request_id}"', f'"{key}"'
    else:
        id_text, key_text = json.dumps(request_id).decode(), json.dumps(key).decode()
    head = f'{{"id":{id_text},{_named(spec.method, spec.path)}'
    if key is not None:
        head = f'{head},"idempotency_key":{key_text}'
    if params:
        head = f'{head},"params":{json.dumps(dict(params)).decode()}'
    # The data is encoded already, for the key's digest: it is put in as it is.
    payload = f"{head}}}".encode() if body is None else b'%b,"data":%b}' % (head.encode(), body)
    return WireRequest(context, spec.method, spec.path, {}, payload, None, spec.channel)


@functools.lru_cache(maxsize=256)
def _named(method: str, path: str) -> str:
    return f'"method":{json.dumps(method).decode()},"path":{json.dumps(path).decode()}'


def decode(
    reply: WireReply,
    context: TransportRequestContext,
    *,
    retryable_statuses: frozenset[int] = frozenset(),
    now: Callable[[], float] | None = None,
) -> Any:
    """Return the result in the envelope of an answer; an envelope has neither status nor date.

    Raises:
        TransportProtocolError: The bytes are no envelope, or one of another call.
        TransportRemoteError: The envelope carries an error.
    """
    return _opened(reply.body, context, "the reply").get("result")


def decode_event(payload: bytes, context: TransportRequestContext) -> tuple[Any, bool]:
    """Return the event in one envelope of a stream, and whether it is the last.

    The event of the closing envelope may be None: then it closes the stream and says no more.

    Raises:
        TransportProtocolError: The bytes are no envelope, or one of another call.
        TransportRemoteError: The envelope carries an error.
    """
    envelope = _opened(payload, context, "an event")
    return envelope.get("result"), envelope.get("final") is True


def decode_reply(
    payload: bytes, context: TransportRequestContext, *, needs_id: bool = False
) -> Any:
    """Return the result in the envelope of an answer.

    Args:
        payload: The bytes of the envelope.
        context: Who the call is.
        needs_id: Whether nothing but its id tells that a result is this call's. An error has
            none where the peer could not read the call.

    Raises:
        TransportProtocolError: The bytes are no envelope, or one of another call.
        TransportRemoteError: The envelope carries an error.
    """
    envelope = _opened(payload, context, "the reply")
    if needs_id and envelope.get("id") is None:
        raise TransportProtocolError(
            f"{context.where}: the reply has no id, so it may be that of another call"
        )
    return envelope.get("result")


def _opened(payload: bytes, context: TransportRequestContext, what: str) -> dict[str, Any]:
    """Return the envelope of a success, checked; raise what the other ones say."""
    try:
        envelope = json.loads(payload)
    except ValueError as error:
        raise TransportProtocolError(
            f"{context.where}: {what} is not JSON: {error}; it begins with {payload[:100]!r}"
        ) from error
    if not isinstance(envelope, dict) or not isinstance(envelope.get("ok"), bool):
        raise TransportProtocolError(
            f"{context.where}: {what} is no envelope: it has no boolean 'ok'"
        )
    answered = envelope.get("id")
    if answered is not None and answered != context.request_id:
        raise TransportProtocolError(
            f"{context.where}: {what} has the id {repr(answered)[:_SHOWN_WORDS]}, "
            f"not that of this call, {context.request_id!r}"
        )
    if not envelope["ok"]:
        raise _remote_error(envelope.get("error"), context)
    return envelope


def _remote_error(told: Any, context: TransportRequestContext) -> TransportRemoteError:
    details = told if isinstance(told, dict) else {"message": told}
    kind, words = details.get("type"), details.get("message")
    words = words if isinstance(words, str) else None if words is None else str(words)
    return TransportRemoteError(
        f"{context.where}: the peer answered with an error: "
        + ": ".join(
            one_line(str(part)[:_SHOWN_WORDS]) for part in (kind, words) if part is not None
        ),
        error_type=kind if isinstance(kind, str) else None,
        error_message=words,
    )
