"""Calls as HTTP requests: object to bytes, status and bytes to value or typed error."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timezone
from typing import Any
from urllib.parse import quote, urlencode

from protolink_sync.errors import (
    AuthenticationError,
    ModelError,
    TransportProtocolError,
    TransportRemoteError,
)
from protolink_sync.models import ClientRequestSpec
from protolink_sync.wire import envelope, json
from protolink_sync.wire.request import (
    TransportRequestContext,
    WireReply,
    WireRequest,
    one_line,
)

__all__ = [
    "decode",
    "decode_event",
    "decode_instead",
    "encode",
    "encode_body",
    "parse",
    "remote_error",
    "retry_after",
]

# Streams over HTTP bring envelopes.
decode_event = envelope.decode_event

# How much of an unexpected body an error keeps, and how much of it a message shows.
_KEPT_BODY = 4096
_SHOWN_BODY = 200

# What a transport sets itself; a spec's header of the same name would be a second value.
_OWN_HEADERS = frozenset(
    (
        "authorization",
        "connection",
        "content-length",
        "host",
        "idempotency-key",
        "transfer-encoding",
        "x-api-key",
        "x-protolink-request-id",
    )
)


def _flat(data: Any, *, what: str) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise TypeError(f"{what} must be a mapping, not {type(data).__name__}")
    return data


def _pairs(values: Mapping[str, Any]) -> str:
    """Return the query string of a mapping; a list stands for several values of one name."""
    return urlencode(
        {name: value for name, value in values.items() if value is not None}, doseq=True
    )


def encode_body(spec: ClientRequestSpec, data: Any) -> bytes | None:
    """Return the body of a call, or None where the operation sends none.

    Raises:
        TypeError: The data is no JSON, or not of the kind the spec asks for.
        ValueError: The data holds NaN, Infinity or itself.
    """
    source = spec.request_source
    if data is None or source in ("none", "query_params", "headers", "path_params"):
        return None
    if source == "form":
        return _pairs(_flat(data, what=f"the form of {spec.name}")).encode("ascii")
    if source == "request" or isinstance(data, (bytes, bytearray)):
        if not isinstance(data, (bytes, bytearray)):
            raise TypeError(f"{spec.name} sends raw bytes, not {type(data).__name__}")
        return bytes(data)
    return json.dump_data(data)


def _path(spec: ClientRequestSpec, data: Any, params: Mapping[str, Any] | None) -> str:
    path = spec.path
    query = dict(params or {})
    if data is not None and spec.request_source == "path_params":
        values = _flat(data, what=f"the path parameters of {spec.name}")
        path = re.sub(r"\{(\w+)\}", lambda m: quote(str(values[m[1]]), safe=""), path)
    elif data is not None and spec.request_source == "query_params":
        query = {**_flat(data, what=f"the query of {spec.name}"), **query}
    return f"{path}?{_pairs(query)}" if query else path


def encode(
    spec: ClientRequestSpec,
    context: TransportRequestContext,
    body: bytes | None,
    data: Any = None,
    params: Mapping[str, Any] | None = None,
) -> WireRequest:
    """Return one call as an HTTP request.

    Args:
        spec: The operation.
        context: Who the call is.
        body: What :func:`encode_body` made of the data.
        data: The data once more, for operations that do not send it as a body.
        params: Query parameters.
    """
    headers = {
        "Accept": spec.accept or "application/json",
        "X-Protolink-Request-ID": context.request_id,
    }
    if context.idempotency_key is not None:
        headers["Idempotency-Key"] = context.idempotency_key
    if body is not None:
        form = spec.request_source == "form"
        headers["Content-Type"] = spec.content_type or (
            "application/x-www-form-urlencoded" if form else "application/json"
        )
    if spec.headers or (spec.request_source == "headers" and data is not None):
        extra = dict(spec.headers or {})
        if spec.request_source == "headers":
            given = _flat(data or {}, what=f"the headers of {spec.name}")
            # A spec checks its headers; these come from the caller and must not end a line either.
            checked = ClientRequestSpec(spec.name, spec.path, spec.method, headers=given)
            extra.update(checked.headers or {})
        for name, value in extra.items():
            if name.lower() not in _OWN_HEADERS:
                _replace(headers, name, value)
    return WireRequest(
        context=context,
        method=spec.method,
        path=_path(spec, data, params),
        headers=headers,
        body=body,
    )


def _replace(headers: dict[str, str], name: str, value: str) -> None:
    """Set a header once, however its name is spelled."""
    for known in [known for known in headers if known.lower() == name.lower()]:
        del headers[known]
    headers[name] = value


def decode(
    reply: WireReply,
    context: TransportRequestContext,
    *,
    retryable_statuses: frozenset[int] = frozenset(),
    now: Callable[[], float],
) -> Any:
    """Return the value of an answer.

    Args:
        reply: Status, headers and body.
        context: Who the call is.
        retryable_statuses: Statuses whose error says ``retryable``.
        now: Gives the seconds since the epoch, for a ``Retry-After`` that is a date.

    Raises:
        AuthenticationError: Status 401 or 403.
        TransportRemoteError: Any other status but 200 to 299.
        TransportProtocolError: The body is empty or no JSON, or the reply is for another call.
    """
    if not 200 <= reply.status <= 299:
        raise remote_error(reply, context, retryable_statuses, now)
    echoed = reply.headers.get("x-protolink-request-id")
    if echoed and echoed != context.request_id:
        raise TransportProtocolError(
            f"{context.where}: the reply is for another call: it has the request id {echoed!r}, "
            f"this call's is {context.request_id!r}. Does a proxy mix up connections?",
            status_code=reply.status,
        )
    if not reply.body:
        raise TransportProtocolError(
            f"{context.where}: the reply is empty (status {reply.status} {reply.reason}), "
            "expected JSON",
            status_code=reply.status,
        )
    try:
        return json.loads(reply.body)
    except ValueError as error:
        kind = reply.headers.get("content-type", "not given")
        raise TransportProtocolError(
            f"{context.where}: the reply is not JSON: {error} "
            f"(status {reply.status}, content type {kind}, {_shown(reply.body)})",
            status_code=reply.status,
        ) from error


def decode_instead(
    reply: WireReply,
    context: TransportRequestContext,
    *,
    retryable_statuses: frozenset[int] = frozenset(),
    now: Callable[[], float],
) -> list[bytes]:
    """Raise what an answer says that is no stream; see :func:`decode`."""
    # A status that is an error, or a body that is no JSON, is raised here.
    decode(reply, context, retryable_statuses=retryable_statuses, now=now)
    envelope.decode_reply(reply.body, context)
    kind = reply.headers.get("content-type", "not given")
    raise TransportProtocolError(
        f"{context.where}: the reply is no stream of events: content type {kind}",
        status_code=reply.status,
    )


def parse(parser: Callable[[Any], Any] | None, value: Any, context: TransportRequestContext) -> Any:
    """Return what a spec's parser makes of a decoded value.

    Raises:
        TransportProtocolError: The value has not the shape of the model; other errors of a
            parser pass through.
    """
    if parser is None:
        return value
    try:
        return parser(value)
    except ModelError as error:
        raise TransportProtocolError(
            f"{context.where}: the reply has the wrong shape: {error}"
        ) from error


def _shown(body: bytes) -> str:
    """Return the begin of a body for a message, on one line."""
    if not body:
        return "body empty"
    text = body[:_SHOWN_BODY].decode("utf-8", "backslashreplace")
    line = one_line(text)
    return f"it begins with {line!r}" if len(body) > _SHOWN_BODY else f"body {line!r}"


def _peer_words(body: bytes) -> tuple[str | None, str | None]:
    """Return type and message of the error in a body, where it has them."""
    try:
        value = json.loads(body)
    except ValueError:
        return None, None
    error = value.get("error", value) if isinstance(value, dict) else value
    if isinstance(error, str):
        return None, error
    if not isinstance(error, dict):
        return None, None
    kind = error.get("type")
    words = next((error[k] for k in ("message", "detail") if isinstance(error.get(k), str)), None)
    return kind if isinstance(kind, str) else None, words


def remote_error(
    reply: WireReply,
    context: TransportRequestContext,
    retryable_statuses: frozenset[int],
    now: Callable[[], float],
) -> TransportRemoteError:
    """Return the error of an answer whose status is none of 200 to 299."""
    status = reply.status
    kind, words = _peer_words(reply.body)
    message = f"{context.where}: the peer answered {status} {reply.reason}".rstrip()
    location = reply.headers.get("location")
    if words is not None:
        message += f": {one_line(words[:_SHOWN_BODY])}"
    elif reply.body:
        message += f" ({_shown(reply.body)})"
    if 300 <= status <= 399 and location:
        message += (
            f"; Location: {one_line(location[:_SHOWN_BODY])}. "
            "Redirects are not followed: call that address itself"
        )
    elif status in (401, 403):
        message += ". Give the transport credentials= that this peer accepts"
    elif status == 404:
        message += ". Is this the agent's base URL, and does the agent have this operation?"
    elif status == 500:
        message += ". A ProtoLink agent answers so to everything it cannot do; its log says why"
    details = AuthenticationError if status in (401, 403) else TransportRemoteError
    return details(
        message,
        error_type=kind,
        error_message=words,
        body=reply.body[:_KEPT_BODY],
        headers=reply.headers,
        retry_after=retry_after(reply.headers.get("retry-after"), now=now),
        status_code=status,
        retryable=status in retryable_statuses,
    )


def retry_after(value: str | None, *, now: Callable[[], float]) -> float | None:
    """Return the seconds a ``Retry-After`` header asks to wait; None if it says nothing usable.

    Args:
        value: The header: whole seconds, or an HTTP date.
        now: Gives the seconds since the epoch, for dates.

    Source:
        RFC 9110, 10.2.3.

    >>> retry_after("3", now=lambda: 0.0)
    3.0
    >>> retry_after("Thu, 01 Jan 1970 00:01:00 GMT", now=lambda: 0.0)
    60.0
    """
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text)
    # Not at import: it costs as much as all models together, and few peers send a date.
    import email.utils

    try:
        date = email.utils.parsedate_to_datetime(text)
        if date.tzinfo is None:  # the form of asctime, which RFC 9110, 5.6.7 says is GMT
            date = date.replace(tzinfo=timezone.utc)
        return max(0.0, date.timestamp() - now())
    except (TypeError, ValueError, OverflowError):
        return None
