"""A WSGI application for one agent: requests into calls, answers into responses.

What the peer leaves at a bare 500 is told apart here, where its client does not depend on it:
400 for what is no JSON or has the wrong shape, with the path in the body's ``error``; 404 and 409
for a task that cannot be cancelled; 409 for one that runs already; 413 for a request that is too
large; 501 for a history of an agent that has none. An exception of the agent's own code is a 500
without words, as with the peer; the log has them.

Source:
    wire/protolink.md 3 and 11; PEP 3333.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable, Iterable
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, quote

from protolink_sync.models import EndpointSpec
from protolink_sync.server.endpoints import Endpoints
from protolink_sync.server.engine import Engine
from protolink_sync.server.refusal import RefusedError
from protolink_sync.wire import json

__all__ = ["Application"]

_log = logging.getLogger("protolink_sync.server")

# Health checks come from machines that have no credentials.
_OPEN = {"/healthz", "/readyz"}
_QUERY_CREDENTIALS = ("api_key", "apikey", "token")
_LONGEST_REQUEST_ID = 200
_CAPABILITIES = {
    "networked": True,
    "streaming": False,
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
    """

    def __init__(
        self,
        engine: Engine,
        authenticate: Callable[[Environ], Hashable | None] | None,
        url: str | None = None,
    ) -> None:
        self._endpoints = Endpoints(engine, url, "http", self._health)
        self._authenticate = authenticate
        self._url = url or engine.card.url
        self._most_bytes = engine.config.limits.max_request_bytes
        self._lock = threading.RLock()
        self._started = self._succeeded = self._failed = 0

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request (PEP 3333)."""
        with self._lock:
            self._started += 1
        succeeded = False
        try:
            status, headers, body = self._response(environ)
            succeeded = status < 400
        finally:
            with self._lock:
                self._succeeded += succeeded
                self._failed += not succeeded
        request_id = environ.get("HTTP_X_PROTOLINK_REQUEST_ID", "")
        if len(request_id) > _LONGEST_REQUEST_ID or not request_id.isprintable():
            request_id = ""
        headers += [
            ("X-Protolink-Request-ID", request_id),
            ("Content-Length", str(len(body))),
        ]
        start_response(f"{status} {HTTPStatus(status).phrase}", headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _response(self, environ: Environ) -> tuple[int, Headers, bytes]:
        method, path = environ["REQUEST_METHOD"], environ.get("PATH_INFO", "")
        if not self._endpoints.methods(path) and self._endpoints.methods(path + "/"):
            location = ("Location", _location(environ, path + "/"))
            return 307, [location, ("Content-Type", "text/plain; charset=utf-8")], b""
        try:
            spec = self._endpoints.find("GET" if method == "HEAD" else method, path)
            principal = None if path in _OPEN else self._principal(environ)
            body, data = self._content(environ, spec)
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
            principal = self._authenticate(environ)
            hash(principal)
        except Exception as error:
            _log.exception("authenticate failed")
            raise RefusedError(500, str(error), type(error).__name__, told=False) from error
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
            raise RefusedError(400, f"the body is not JSON: {error}", "ValueError") from error

    def _body(self, environ: Environ) -> bytes:
        told = environ.get("CONTENT_LENGTH") or ""
        if told:
            if not (told.isascii() and told.isdigit()):
                raise RefusedError(400, f"Content-Length is {told!r}, no number", "ValueError")
            length = int(told)
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
            }
        return {
            "status": "ready",
            "ready": True,
            "transport": "http",
            "url": self._url,
            "capabilities": _CAPABILITIES,
            "metrics": metrics,
        }


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


def _has_credentials(environ: Environ) -> bool:
    if environ.get("HTTP_AUTHORIZATION") or environ.get("HTTP_X_API_KEY"):
        return True
    query = parse_qs(environ.get("QUERY_STRING", ""))
    return any(name in query for name in _QUERY_CREDENTIALS)


def _location(environ: Environ, path: str) -> str:
    query = environ.get("QUERY_STRING", "")
    place = quote((environ.get("SCRIPT_NAME", "") + path).encode("latin-1"))
    return f"{place}?{query}" if query else place
