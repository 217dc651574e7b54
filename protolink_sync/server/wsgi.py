"""A WSGI application for one agent: requests into calls, answers and streams into responses.

What the peer leaves at a bare 500 is told apart here, where its client does not depend on it:
400 for what is no JSON or has the wrong shape, with the path in the body's ``error``; 404 and 409
for a task that cannot be cancelled; 409 for one that runs already; 413 for a request that is too
large; 501 for a history of an agent that has none. An exception of the agent's own code is a 500
without words, as with the peer; the log has them. Once a stream has begun, what goes wrong is told
in the stream, the agent's own exceptions too, again as with the peer.

Source:
    wire/protolink.md 3, 4 and 11; PEP 3333.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable, Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote

from protolink_sync.errors import words
from protolink_sync.models import EndpointSpec
from protolink_sync.server.backlog import Event
from protolink_sync.server.endpoints import Endpoints
from protolink_sync.server.engine import Engine
from protolink_sync.server.functions import completed
from protolink_sync.server.http1 import body_length
from protolink_sync.server.refusal import RefusedError
from protolink_sync.server.sse import EventBody
from protolink_sync.server.streams import Stream, Streams
from protolink_sync.wire import json

if TYPE_CHECKING:
    from protolink_sync.server.a2a import A2AInterface

__all__ = ["Application"]

_log = logging.getLogger("protolink_sync.server")

# Health checks come from machines that have no credentials.
_OPEN = {"/healthz", "/readyz"}
_QUERY_CREDENTIALS = ("api_key", "apikey", "token")
_LONGEST_REQUEST_ID = 200
# The longest single wait: a wait without end would keep Ctrl-C from getting through.
_LONGEST_WAIT = 60.0
# How long handlers of streams have to end, when the host is closed, before their clients are left.
_CLOSING_SECONDS = 0.5
_CAPABILITIES = {
    "networked": True,
    "streaming": True,
    "tls": True,
    "bidirectional": False,
    "persistent_connections": True,
}

Environ = dict[str, Any]
Headers = list[tuple[str, str]]


class Application:
    """The WSGI application of an agent.

    Args:
        engine: The agent.
        authenticate: Says who asks; None lets anybody.
        url: Where the agent is reached; None if only its card knows.
        heartbeat: Seconds of silence in a stream after which a comment is sent.
        a2a: Answer over A2A too.
    """

    def __init__(
        self,
        engine: Engine,
        authenticate: Callable[[Environ], Hashable | None] | None,
        url: str | None = None,
        *,
        heartbeat: float,
        a2a: bool = False,
    ) -> None:
        # Both are spoken here, at the same address; the author knows what to tell callers.
        spoken = "sse" if engine.card.transport == "sse" else "http"
        self._endpoints = Endpoints(engine, url, spoken, self._health, streaming=True)
        self._transport = spoken
        limits = engine.config.limits
        self._streams = Streams(
            limits.max_concurrent_streams,
            abandon=engine.runs.abandon,
            cancel=engine.runs.cancel_in,
        )
        self._heartbeat = heartbeat
        self._a2a: A2AInterface | None = None
        if a2a:
            from protolink_sync.server.a2a import A2AInterface

            asks = authenticate is not None
            self._a2a = A2AInterface(engine, url, asks=asks, heartbeat=heartbeat)
        self._authenticate = authenticate
        self._url = url or engine.card.url
        self._most_bytes = limits.max_request_bytes
        self._lock = threading.RLock()
        self._started = self._succeeded = self._failed = 0
        self._streams_started = 0

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request (PEP 3333)."""
        with self._lock:
            self._started += 1
        succeeded = False
        request_id = _request_id(environ)
        try:
            status, headers, body = self._response(environ)
            succeeded = status < 400
        finally:
            with self._lock:
                self._succeeded += succeeded
                self._failed += not succeeded
        headers.append(("X-Protolink-Request-ID", request_id))
        if isinstance(body, EventBody):
            start_response("200 OK", headers)
            return body
        if status == 304:  # it has no body, and no length of one
            start_response("304 Not Modified", headers)
            return []
        headers.append(("Content-Length", str(len(body))))
        start_response(f"{status} {HTTPStatus(status).phrase}", headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def close_streams(self) -> None:
        """Cancel the tasks that are streamed, and leave the streams that do not end soon."""
        if self._a2a is not None:
            self._a2a.close("the host was closed")
        self._streams.close("the host was closed", _CLOSING_SECONDS)

    def _response(self, environ: Environ) -> tuple[int, Headers, bytes | EventBody]:
        method, path = environ["REQUEST_METHOD"], environ.get("PATH_INFO", "")
        if self._a2a is not None and (methods := self._a2a.methods(path)):
            return self._over_a2a(self._a2a, environ, methods)
        if not self._endpoints.methods(path) and self._endpoints.methods(path + "/"):
            location = ("Location", _location(environ, path + "/"))
            return 307, [location, ("Content-Type", "text/plain; charset=utf-8")], b""
        try:
            spec = self._endpoints.find("GET" if method == "HEAD" else method, path)
            principal = None if path in _OPEN else self._principal(environ)
            body, data = self._content(environ, spec)
            if spec.streaming:
                return 200, _stream_headers(), self._stream(environ, spec, data, principal)
            answer = self._endpoints.answer(
                spec,
                data,
                principal=principal,
                key=environ.get("HTTP_IDEMPOTENCY_KEY") or None,
                content=body,
            )
        except RefusedError as error:
            return self._refusal(error, path)
        is_html = spec.content_type == "html"
        kind = "text/html; charset=utf-8" if is_html else "application/json"
        return 200, [("Content-Type", kind)], answer

    def _over_a2a(
        self, a2a: A2AInterface, environ: Environ, methods: tuple[str, ...]
    ) -> tuple[int, Headers, bytes | EventBody]:
        if environ["REQUEST_METHOD"] not in methods:
            headers = [("Content-Type", "text/plain; charset=utf-8"), ("Allow", ", ".join(methods))]
            return 405, headers, HTTPStatus(405).phrase.encode()
        if "GET" in methods:  # the card is for everybody: it says how callers identify themselves
            return a2a.card(environ)
        try:
            principal = self._principal(environ)
            body = self._body(environ)
        except RefusedError as error:
            return self._refusal(error, "/")
        answer = a2a.call(environ, body, principal)
        if isinstance(answer[2], EventBody):
            with self._lock:
                self._streams_started += 1
        return answer

    def _stream(
        self, environ: Environ, spec: EndpointSpec, data: Any, principal: Hashable
    ) -> EventBody:
        stream = self._streams.open(self._endpoints.stream(spec, data, principal=principal))
        # The first event comes before the agent's code is asked: what is raised instead of it is
        # an answer like any other.
        first = _first(stream)
        with self._lock:
            self._streams_started += 1
        identity = json.dumps(_request_id(environ) or None)
        return EventBody(
            stream, first, identity, self._heartbeat, environ.get("protolink_sync.has_left")
        )

    def _refusal(self, error: RefusedError, path: str) -> tuple[int, Headers, bytes]:
        if error.told:
            body = json.dumps({"error": error.message})
            return error.status, [("Content-Type", "application/json")], body
        headers = [("Content-Type", "text/plain; charset=utf-8")]
        if error.status == 405:
            headers.append(("Allow", ", ".join(self._endpoints.methods(path))))
        return error.status, headers, HTTPStatus(error.status).phrase.encode()

    def _principal(self, environ: Environ) -> Hashable | None:
        if self._authenticate is None:
            return None
        try:
            principal = _somebody(completed(self._authenticate(environ)))
        except Exception as error:
            _log.exception("authenticate failed")
            raise RefusedError(500, words(error), type(error).__name__, told=False) from error
        if principal is not None:
            return principal
        message = (
            "Authentication failed: the credentials are not accepted"
            if _has_credentials(environ)
            else "Missing credentials"
        )
        raise RefusedError(401, message, "AuthenticationError")

    def _content(self, environ: Environ, spec: EndpointSpec) -> tuple[bytes, Any]:
        """Return the body as it came, and decoded; nothing is no data."""
        if spec.request_source != "body":
            return b"", None
        body = self._body(environ)
        if not body:
            return b"", None
        try:
            return body, json.loads(body)
        except ValueError as error:
            why = f"the body is not JSON: {words(error)}"
            raise RefusedError(400, why, "ValueError") from error

    def _body(self, environ: Environ) -> bytes:
        told = environ.get("CONTENT_LENGTH") or ""
        if told:
            length = body_length(told)
            if length > self._most_bytes:
                raise self._too_large(f"{length} bytes")
            body = _read(environ, length)
            if len(body) < length:
                raise RefusedError(
                    400, f"the body ended after {len(body)} of {length} bytes", "ValueError"
                )
            return body
        if environ.get("wsgi.input_terminated"):
            body = _read(environ, self._most_bytes + 1)
            if len(body) > self._most_bytes:
                raise self._too_large("more")
            return body
        if environ.get("HTTP_TRANSFER_ENCODING"):
            raise RefusedError(411, "send the body with a Content-Length", "ValueError")
        return b""

    def _too_large(self, size: str) -> RefusedError:
        return RefusedError(
            413, f"the request has {size}, limit is {self._most_bytes} bytes", "TransportLimitError"
        )

    def _health(self) -> dict[str, Any]:
        with self._lock:
            metrics = {
                "requests_started": self._started,
                "requests_succeeded": self._succeeded,
                "requests_failed": self._failed,
                "active_requests": self._started - self._succeeded - self._failed,
                "streams_started": self._streams_started,
                "active_streams": len(self._streams) + (self._a2a.streams if self._a2a else 0),
            }
        return {
            "status": "ready",
            "ready": True,
            "transport": self._transport,
            "url": self._url,
            "capabilities": _CAPABILITIES,
            "metrics": metrics,
        }


def _request_id(environ: Environ) -> str:
    told: str = environ.get("HTTP_X_PROTOLINK_REQUEST_ID", "")
    return told if len(told) <= _LONGEST_REQUEST_ID and told.isprintable() else ""


def _stream_headers() -> Headers:
    return [
        ("Content-Type", "text/event-stream; charset=utf-8"),
        ("Cache-Control", "no-cache"),
        # nginx would collect the events otherwise.
        ("X-Accel-Buffering", "no"),
    ]


def _first(stream: Stream) -> list[Event]:
    while True:
        events = stream.take(_LONGEST_WAIT)
        if events is None or events:
            return events or []


def _read(environ: Environ, most: int) -> bytes:
    stream = environ["wsgi.input"]
    pieces = []
    while most > 0:
        piece = stream.read(most)
        if not piece:
            break
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def _somebody(principal: Any) -> Hashable | None:
    """Return who asks; None if that is nobody.

    Raises:
        TypeError: It cannot be what one caller's calls, and nobody else's, have in common.
    """
    if not principal:
        return None
    hash(principal)
    kind: Any = type(principal)
    # What equals only itself is made for each call: a caller would not find its own tasks again,
    # and what was meant to say whether to let it in (a generator, a future) is never asked.
    # So is a method that nobody called.
    if principal is True or callable(principal) or kind.__hash__ is object.__hash__:
        raise TypeError(
            f"authenticate returned a {kind.__name__}, must return who asks: a name, a number, or "
            "whatever else is equal for the calls of one caller and of no other"
        )
    return principal  # type: ignore[no-any-return]


def _has_credentials(environ: Environ) -> bool:
    if environ.get("HTTP_AUTHORIZATION") or environ.get("HTTP_X_API_KEY"):
        return True
    query = parse_qs(environ.get("QUERY_STRING", ""))
    return any(name in query for name in _QUERY_CREDENTIALS)


def _location(environ: Environ, path: str) -> str:
    query = environ.get("QUERY_STRING", "")
    place = quote((environ.get("SCRIPT_NAME", "") + path).encode("latin-1"))
    return f"{place}?{query}" if query else place
