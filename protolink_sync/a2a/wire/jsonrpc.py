"""JSON-RPC 2.0 as A2A uses it: calls out, results and errors in, and the same for a host.

A value that is no reply to the call at hand raises :class:`~protolink_sync.errors.ModelError`; the
caller knows the address and wraps it. An error that the agent reports raises the class of its
code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from protolink_sync import errors
from protolink_sync.a2a.wire._reading import members_of, path_of, unexpected
from protolink_sync.errors import A2ARpcError, ModelError

__all__ = [
    "RpcRequest",
    "error_reply",
    "error_value",
    "is_other_dialect",
    "read_request",
    "readable_id",
    "reply",
    "request",
    "result_of",
    "rpc_error",
]

DOMAIN = "a2a-protocol.org"
_ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
_BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
_SHOWN_TEXT = 500

_CLASS_BY_CODE: dict[int, type[A2ARpcError]] = {
    -32700: errors.A2AParseError,
    -32600: errors.A2AInvalidRequestError,
    -32601: errors.A2AMethodNotFoundError,
    -32602: errors.A2AInvalidParamsError,
    -32603: errors.A2AInternalError,
    -32001: errors.A2ATaskNotFoundError,
    -32002: errors.A2ATaskNotCancelableError,
    -32003: errors.A2APushNotificationNotSupportedError,
    -32004: errors.A2AUnsupportedOperationError,
    -32005: errors.A2AContentTypeNotSupportedError,
    -32006: errors.A2AInvalidAgentResponseError,
    -32007: errors.A2AExtendedCardNotConfiguredError,
    -32008: errors.A2AExtensionRequiredError,
    -32009: errors.A2AVersionNotSupportedError,
}
_REASON_BY_CODE = {
    -32001: "TASK_NOT_FOUND",
    -32002: "TASK_NOT_CANCELABLE",
    -32003: "PUSH_NOTIFICATION_NOT_SUPPORTED",
    -32004: "UNSUPPORTED_OPERATION",
    -32005: "CONTENT_TYPE_NOT_SUPPORTED",
    -32006: "INVALID_AGENT_RESPONSE",
    -32007: "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    -32008: "EXTENSION_SUPPORT_REQUIRED",
    -32009: "VERSION_NOT_SUPPORTED",
}


def request(id: int | str, method: str, params: Any) -> dict[str, Any]:
    """Write a call; without parameters the member is left out."""
    written: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": method}
    if params is not None:
        written["params"] = params
    return written


def result_of(value: Any, id: int | str, *, where: str, result_optional: bool = False) -> Any:
    """Return the result in a reply.

    Args:
        value: The reply, decoded.
        id: The id of the call.
        where: Which call it was, for messages: ``SendMessage to http://...``.
        result_optional: A reply with neither result nor error is a success, and its result None:
            so 0.3 agents say that a push configuration is deleted.

    Raises:
        A2ARpcError: The agent reports an error; the class is that of the code.
        ModelError: The value is no reply to this call.

    Source:
        wire/a2a.md B55, B57, Q1, Q10.
    """
    members = members_of(value, "a JSON-RPC reply", None)
    error = members.get("error")
    answered = members.get("id")
    if not _same_id(answered, id) and (answered is not None or error is None):
        raise ModelError(
            f"the reply has the id {answered!r:.60}, the call {id!r} @ $.id", path="$.id"
        )
    # An error that is shaped badly is an error all the same.
    if error is not None:
        raise rpc_error(error, where)
    if members.get("jsonrpc") != "2.0":
        raise unexpected('"2.0"', members.get("jsonrpc"), (None, "jsonrpc"))
    if "result" not in members and not result_optional:
        raise ModelError(f"neither result nor error @ {path_of(None)}", path="$")
    return members.get("result")


def rpc_error(error: Any, where: str) -> A2ARpcError:
    """Return the exception for the ``error`` of a reply; its class is that of the code.

    Args:
        error: The member ``error``, whatever its form.
        where: Which call it was.

    Source:
        wire/a2a.md 6, B50, B52.
    """
    members = error if isinstance(error, Mapping) else {"data": error}
    code, data = members.get("code"), members.get("data")
    number = code if type(code) is int else None
    said = members.get("message")
    info, violations = _details(data)
    reason, domain = info.get("reason"), info.get("domain")
    shown = _one_line(said) if isinstance(said, str) and said else "the agent reports an error"
    labels = [str(label) for label in (code, reason) if label is not None]
    told = [f"{v.get('field')}: {v.get('description')}" for v in violations]
    message = f"{where}: {shown}"
    if told:
        message += f" [{_one_line('; '.join(told))}]"
    if labels:
        message += f" ({_one_line(' '.join(labels))})"
    return _CLASS_BY_CODE.get(number or 0, A2ARpcError)(
        message,
        code=number,
        data=data,
        reason=reason if isinstance(reason, str) else None,
        domain=domain if isinstance(domain, str) else None,
        metadata=info.get("metadata") if isinstance(info.get("metadata"), Mapping) else None,
        field_violations=violations,
        error_message=said if isinstance(said, str) else None,
    )


def is_other_dialect(error: BaseException) -> bool:
    """Tell whether an error means that the agent speaks the other dialect.

    Only the codes "method not found" and "version not supported" do: both promise that the call
    was not carried out.

    Source:
        wire/a2a.md B85, B86.
    """
    return isinstance(error, A2ARpcError) and error.code in (-32601, -32009)


@attrs.frozen
class RpcRequest:
    """A call as a host reads it.

    Args:
        id: What the reply has to carry; None also for a call without id.
        method: What is to be done.
        params: With what.
    """

    id: int | str | None
    method: str
    params: dict[str, Any]


def read_request(value: Any) -> RpcRequest:
    """Read a call that was received.

    Raises:
        A2AInvalidRequestError: It is no call, or a batch of them.
        A2AInvalidParamsError: Its parameters are no object.

    Source:
        wire/a2a.md B56, B58.
    """
    if not isinstance(value, Mapping):
        raise _refused("the request is no JSON object")
    if value.get("jsonrpc") != "2.0":
        raise _refused('the request has no member "jsonrpc" that says "2.0"')
    if readable_id(value) != value.get("id"):
        raise _refused("the id of the request is neither text, nor an integer, nor null")
    method = value.get("method")
    if not isinstance(method, str) or not method:
        raise _refused("the request names no method")
    params = value.get("params")
    if params is not None and not isinstance(params, Mapping):
        raise errors.A2AInvalidParamsError("the parameters are no object", code=-32602)
    return RpcRequest(readable_id(value), method, dict(params or {}))


def readable_id(value: Any) -> int | str | None:
    """Return the id that a reply to a received value carries, so far as it has one.

    >>> readable_id({"id": 7, "method": 8}), readable_id([]), readable_id({"id": 1.5})
    (7, None, None)
    """
    id = value.get("id") if isinstance(value, Mapping) else None
    return id if type(id) in (int, str) else None


def reply(id: int | str | None, result: Any) -> dict[str, Any]:
    """Write a reply with a result."""
    return {"jsonrpc": "2.0", "id": id, "result": result}


def error_reply(id: int | str | None, error: Mapping[str, Any]) -> dict[str, Any]:
    """Write a reply with an error that :func:`error_value` made."""
    return {"jsonrpc": "2.0", "id": id, "error": error}


def error_value(
    code: int,
    message: str,
    *,
    metadata: Mapping[str, Any] | None = None,
    field_violations: Sequence[Mapping[str, str]] = (),
) -> dict[str, Any]:
    """Write an error in the form of 1.0.

    Args:
        code: The JSON-RPC code.
        message: What happened.
        metadata: Anything about it; only with the codes that A2A defines.
        field_violations: What was wrong with the parameters: ``{"field", "description"}``.

    Source:
        wire/a2a.md 6, "error.data".
    """
    details: list[dict[str, Any]] = []
    if code in _REASON_BY_CODE:
        info = {"@type": _ERROR_INFO, "reason": _REASON_BY_CODE[code], "domain": DOMAIN}
        details.append({**info, "metadata": dict(metadata)} if metadata else info)
    if field_violations:
        violations = [dict(violation) for violation in field_violations]
        details.append({"@type": _BAD_REQUEST, "fieldViolations": violations})
    written: dict[str, Any] = {"code": code, "message": message}
    return {**written, "data": details} if details else written


def _refused(why: str) -> A2ARpcError:
    return errors.A2AInvalidRequestError(why, code=-32600)


def _same_id(answered: Any, id: int | str) -> bool:
    # True == 1, but an id is no truth; 1.0 is what a peer without integers makes of 1.
    return answered == id and type(answered) is not bool


def _details(data: Any) -> tuple[Mapping[str, Any], list[dict[str, Any]]]:
    """Find the ErrorInfo and the field violations in the ``data`` of an error."""
    info: Mapping[str, Any] = {}
    violations: list[dict[str, Any]] = []
    for item in data if isinstance(data, list) else ():
        if not isinstance(item, Mapping):
            continue
        if item.get("@type") == _ERROR_INFO and not info:
            info = item
        found = item.get("fieldViolations") if item.get("@type") == _BAD_REQUEST else None
        if isinstance(found, list):
            violations += [dict(one) for one in found if isinstance(one, Mapping)]
    return info, violations


def _one_line(text: str) -> str:
    """Return a peer's words as one printable line of bounded length."""
    printable = "".join(c if c.isprintable() else " " for c in text[: 2 * _SHOWN_TEXT])
    return " ".join(printable.split())[:_SHOWN_TEXT]
