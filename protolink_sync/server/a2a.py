"""A2A 1.0 over HTTP for a hosted agent: the card, and JSON-RPC calls with their answers.

Whatever is wrong with a call is told in a JSON-RPC error, with HTTP status 200. The checks come in
the order in which ProtoLink's own server makes them: content type, version, envelope, parameters.

Source:
    wire/a2a.md 1, 5, 6, 7 and 19, "Server side"; the captures ``protolink-server-*``.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Hashable, Mapping
from typing import Any

from protolink_sync.a2a.wire import (
    A2AContentTypeNotSupportedError,
    A2AInternalError,
    A2AParseError,
    A2ARpcError,
    A2AVersionNotSupportedError,
    error_reply,
    error_value,
    read_request,
    readable_id,
    reply,
)
from protolink_sync.errors import ModelError, words
from protolink_sync.server.a2a_card import address, card_value
from protolink_sync.server.a2a_followers import Follower
from protolink_sync.server.a2a_methods import Methods
from protolink_sync.server.engine import Engine
from protolink_sync.server.refusal import RefusedError
from protolink_sync.server.sse import EventBody, in_one_line
from protolink_sync.wire import json

__all__ = ["A2AInterface"]

_log = logging.getLogger("protolink_sync.server")

_CARD = ("GET", "HEAD")
_RPC = ("POST",)
_METHODS = {
    "/.well-known/agent-card.json": _CARD,
    # The root, as ProtoLink's own server has it: callers without a card try the base address. A
    # server that mounts the application below a prefix may leave the path empty.
    "/": _RPC,
    "": _RPC,
}

_VERSION = re.compile(r"1\.0(\.[0-9]+)?")
_JSON = ("Content-Type", "application/json")
# The longest single wait: a wait without end would keep Ctrl-C from getting through.
_LONGEST_WAIT = 60.0

Headers = list[tuple[str, str]]


class A2AInterface:
    """What a WSGI application answers over A2A.

    Args:
        engine: The agent.
        url: Where the agent is reached; None if only its card or the request knows.
        asks: Whether callers have to say who they are.
        heartbeat: Seconds of silence in a stream after which a comment is sent.
    """

    def __init__(self, engine: Engine, url: str | None, *, asks: bool, heartbeat: float) -> None:
        self._engine = engine
        self._url = url
        self._asks = asks
        self._heartbeat = heartbeat
        self._largest = engine.config.limits.max_response_bytes
        self._methods = Methods(engine)

    @property
    def streams(self) -> int:
        """How many streams there are."""
        return len(self._methods.followers)

    def methods(self, path: str) -> tuple[str, ...]:
        """Return the HTTP methods that a path answers; none if it is not A2A's."""
        return _METHODS.get(path, ())

    def close(self, reason: str) -> None:
        """Cancel the tasks that nobody waits for, and end all streams."""
        self._methods.close(reason)

    def card(self, environ: Mapping[str, Any]) -> tuple[int, Headers, bytes]:
        """Answer a request for the card, or say that the caller has it already."""
        url, is_forgeable = address(environ, self._url, self._engine.card.url)
        served = self._engine.served_card(url, "http", streaming=True)
        body = json.dumps(card_value(served, url, asks=self._asks))
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        headers = [
            ("ETag", tag),
            ("Vary", "Host"),
            ("Cache-Control", "private, no-cache" if is_forgeable else "no-cache"),
        ]
        if _has(str(environ.get("HTTP_IF_NONE_MATCH", "")), tag):
            return 304, headers, b""
        return 200, [_JSON, *headers], body

    def call(
        self, environ: Mapping[str, Any], body: bytes, principal: Hashable
    ) -> tuple[int, Headers, bytes | EventBody]:
        """Answer a call.

        Args:
            environ: The WSGI environment of the request.
            body: The body of the request.
            principal: Who asks.
        """
        value: Any = None
        try:
            _check_headers(environ)
            value = _decoded(body)
            request = read_request(value)
            answer = self._methods.answer(request.method, request.params, principal, len(body))
            if isinstance(answer, Follower):
                return 200, _stream_headers(), self._body(environ, request.id, answer)
            return 200, [_JSON], self._encoded(reply(request.id, answer))
        except Exception as error:
            return 200, [_JSON], json.dumps(error_reply(readable_id(value), _told(error)))

    def _encoded(self, answer: dict[str, Any]) -> bytes:
        encoded = json.dumps(answer)
        if len(encoded) > self._largest:
            raise A2AInternalError(
                f"the answer has {len(encoded)} bytes, limit is {self._largest}. Raise "
                "TransportLimits.max_response_bytes of the agent",
                code=-32603,
            )
        return encoded

    def _body(
        self, environ: Mapping[str, Any], id: int | str | None, follower: Follower
    ) -> EventBody:
        # The first event is there already: it is the task as it stands.
        first = follower.take(_LONGEST_WAIT) or []
        has_left = environ.get("protolink_sync.has_left")
        return _RpcBody(follower, first, json.dumps(id), self._heartbeat, has_left)


class _RpcBody(EventBody):
    """The body of a stream's response: each event is the result of one JSON-RPC response."""

    def _frame(self, event: bytes, last: bool) -> bytes:
        result = in_one_line(event)
        return b'data: {"jsonrpc":"2.0","id":%b,"result":%b}\n\n' % (self._request_id, result)

    def _error_frame(self, error: RefusedError) -> bytes:
        told = in_one_line(json.dumps(error_value(-32603, error.message)))
        return b'data: {"jsonrpc":"2.0","id":%b,"error":%b}\n\n' % (self._request_id, told)


def _stream_headers() -> Headers:
    return [
        ("Content-Type", "text/event-stream; charset=utf-8"),
        ("Cache-Control", "no-store"),
        # nginx would collect the events otherwise.
        ("X-Accel-Buffering", "no"),
    ]


def _check_headers(environ: Mapping[str, Any]) -> None:
    """Refuse what is not JSON, and other versions of A2A.

    Source:
        wire/a2a.md B60, B61.
    """
    kind = str(environ.get("CONTENT_TYPE", "")).partition(";")[0].strip().lower()
    if kind != "application/json":
        raise A2AContentTypeNotSupportedError(
            f"the content type is {kind[:80] or 'missing'!r}, must be 'application/json'",
            code=-32005,
        )
    version = str(environ.get("HTTP_A2A_VERSION", "")).strip()
    if not _VERSION.fullmatch(version):
        # A call without a version is one of 0.3.
        raise A2AVersionNotSupportedError(
            f"A2A version {version[:20] or '0.3'!r} is not spoken here, only '1.0'; "
            "say so in the header A2A-Version",
            code=-32009,
        )


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError as error:
        raise A2AParseError(f"the body is not JSON: {words(error)}", code=-32700) from error


def _told(error: Exception) -> dict[str, Any]:
    """Return the JSON-RPC error for what went wrong."""
    if isinstance(error, A2ARpcError) and error.code is not None:
        return error_value(error.code, words(error))
    if isinstance(error, ModelError):
        where = (error.path or "$").removeprefix("$").lstrip(".")
        violation = {"field": where, "description": words(error)}
        return error_value(-32602, words(error), field_violations=[violation])
    if isinstance(error, RecursionError):
        return error_value(-32602, "the parameters are nested too deeply")
    _log.error("a call over A2A failed", exc_info=error)
    return error_value(-32603, "the agent's host failed; its log says why")


def _has(tags: str, tag: str) -> bool:
    """Tell whether a caller has what bears a tag (RFC 9110, 13.1.2: compared weakly)."""
    named = {item.strip().removeprefix("W/") for item in tags.split(",")}
    return tag in named or "*" in named
