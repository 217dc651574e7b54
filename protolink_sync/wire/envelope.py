"""The envelope in which WebSocket, gRPC, SSE and runtime carry calls and answers.

Out: ``id``, ``method``, ``path``, ``idempotency_key``, ``data``, ``params``. Back: ``id``,
``ok``, ``result`` or ``error``, and ``final`` in streams.

Source:
    ProtoLink 0.8.3 on the wire, sections 4 to 6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from protolink_sync.errors import TransportProtocolError, TransportRemoteError
from protolink_sync.models import ClientRequestSpec
from protolink_sync.wire import json
from protolink_sync.wire.request import TransportRequestContext, WireReply, WireRequest

__all__ = [
    "decode",
    "decode_reply",
    "decode_request",
    "encode",
    "encode_body",
    "encode_error",
    "encode_result",
]


def encode_body(spec: ClientRequestSpec, data: Any) -> bytes | None:
    """Return the encoded data of a call, or None where there is none.

    Raises:
        TypeError: The data is no JSON.
        ValueError: The data holds NaN, Infinity or itself.
    """
    if data is None or spec.request_source == "none":
        return None
    to_dict = getattr(data, "to_dict", None)
    return json.dumps(data if to_dict is None else to_dict())


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
    head: dict[str, Any] = {"id": context.request_id, "method": spec.method, "path": spec.path}
    if context.idempotency_key is not None:
        head["idempotency_key"] = context.idempotency_key
    if params:
        head["params"] = dict(params)
    payload = json.dumps(head)
    if body is not None:
        # Encoded already, for the key's digest: it is put in as it is.
        payload = b'%b,"data":%b}' % (payload[:-1], body)
    return WireRequest(
        context=context,
        method=spec.method,
        path=spec.path,
        headers={},
        body=payload,
    )


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
    return decode_reply(reply.body, context)


def decode_request(payload: bytes) -> dict[str, Any]:
    """Return the members of a call's envelope (the host's side).

    Raises:
        ValueError: The bytes are no JSON object, or method or path is no text.
    """
    envelope = json.loads(payload)
    if not isinstance(envelope, dict):
        raise ValueError("the envelope is not a JSON object")
    for name in ("method", "path"):
        if not isinstance(envelope.get(name), str):
            raise ValueError(f"the envelope has no text as {name!r}")
    return envelope


def encode_result(request_id: Any, result: Any) -> bytes:
    """Return a successful answer as the bytes of one envelope (the host's side)."""
    return json.dumps({"id": request_id, "ok": True, "result": result})


def encode_error(request_id: Any, kind: str, message: str) -> bytes:
    """Return a failure as the bytes of one envelope (the host's side)."""
    return json.dumps({"id": request_id, "ok": False, "error": {"message": message, "type": kind}})


def decode_reply(payload: bytes, context: TransportRequestContext) -> Any:
    """Return the result in the envelope of an answer.

    Raises:
        TransportProtocolError: The bytes are no envelope, or one of another call.
        TransportRemoteError: The envelope carries an error.
    """
    try:
        envelope = json.loads(payload)
    except ValueError as error:
        raise TransportProtocolError(f"{context.where}: the reply is not JSON: {error}") from error
    if not isinstance(envelope, dict) or not isinstance(envelope.get("ok"), bool):
        raise TransportProtocolError(
            f"{context.where}: the reply is no envelope: it has no boolean 'ok'"
        )
    answered = envelope.get("id")
    if answered is not None and answered != context.request_id:
        raise TransportProtocolError(
            f"{context.where}: the reply has the id {answered!r}, "
            f"not that of this call, {context.request_id!r}"
        )
    if envelope["ok"]:
        return envelope.get("result")
    told = envelope.get("error")
    details = told if isinstance(told, dict) else {"message": told}
    kind, words = details.get("type"), details.get("message")
    words = words if isinstance(words, str) else None if words is None else str(words)
    raise TransportRemoteError(
        f"{context.where}: the peer answered with an error: "
        + ": ".join(str(part) for part in (kind, words) if part is not None),
        error_type=kind if isinstance(kind, str) else None,
        error_message=words,
    )
