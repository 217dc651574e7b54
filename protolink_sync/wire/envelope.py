"""The envelope in which WebSocket, gRPC, SSE and runtime carry calls and answers.

Out: ``id``, ``method``, ``path``, ``idempotency_key``, ``data``, ``params``. Back: ``id``,
``ok``, ``result`` or ``error``, and ``final`` in streams.

Source:
    ProtoLink 0.8.3 on the wire, sections 4 to 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from protolink_sync.errors import TransportProtocolError, TransportRemoteError
from protolink_sync.wire import json
from protolink_sync.wire.request import TransportRequestContext

__all__ = ["decode_reply", "decode_request", "encode_error", "encode_request", "encode_result"]


def encode_request(
    context: TransportRequestContext,
    method: str,
    path: str,
    data: Any = None,
    params: Mapping[str, Any] | None = None,
) -> bytes:
    """Return a call as the bytes of one envelope.

    Raises:
        TypeError: The data is no JSON.
        ValueError: The data holds NaN, Infinity or itself.
    """
    envelope: dict[str, Any] = {"id": context.request_id, "method": method, "path": path}
    if context.idempotency_key is not None:
        envelope["idempotency_key"] = context.idempotency_key
    if data is not None:
        to_dict = getattr(data, "to_dict", None)
        envelope["data"] = data if to_dict is None else to_dict()
    if params:
        envelope["params"] = dict(params)
    return json.dumps(envelope)


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
