"""A span of OpenTelemetry for each call, and what tells the peer of it (extra ``otel``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from protolink_sync._version import __version__
from protolink_sync.security import check_header
from protolink_sync.wire import TransportRequestContext

__all__ = ["API", "CallSpan"]

API = "opentelemetry.trace"
"""What a program that traces has imported. Where it is not, nobody sees a span, and the library is
not loaded for it."""

# What users put there is for their own services, and a peer is not one of them.
_NOT_FOR_PEERS = ("baggage",)


class CallSpan:
    """The span of one call or stream, current in the thread that began it until :meth:`leave`.

    It tells of the operation, the peer's host and port, and how it ended; of no header, no body
    and no words of the peer.

    Args:
        context: Who the call is.
        transport_type: What carries it.
    """

    def __init__(self, context: TransportRequestContext, transport_type: str) -> None:
        from opentelemetry import context as current
        from opentelemetry import propagate, trace

        self._current, self._propagate, self._trace = current, propagate, trace
        self._context = context
        parts = urlsplit(context.url)
        attributes: dict[str, Any] = {
            "protolink.operation": context.operation,
            "protolink.transport": transport_type,
            "protolink.request_id": context.request_id,
            "server.address": parts.hostname or "",
        }
        if parts.port is not None:
            attributes["server.port"] = parts.port
        tracer = trace.get_tracer("protolink_sync", __version__)
        self._span = tracer.start_span(
            context.operation, kind=trace.SpanKind.CLIENT, attributes=attributes
        )
        self._token: Any = current.attach(trace.set_span_in_context(self._span))
        self._is_over = False

    def headers(self) -> Mapping[str, str]:
        """Return the headers by which the peer's spans become part of this trace."""
        carrier: dict[str, str] = {}
        self._propagate.inject(carrier)
        return {
            name: value
            for name, value in carrier.items()
            if name.lower() not in _NOT_FOR_PEERS and _can_be_sent(name, value)
        }

    def leave(self) -> None:
        """Let the span before it be the current one again (the thread that began it)."""
        token, self._token = self._token, None
        if token is not None:
            self._current.detach(token)

    def fail(self, error: BaseException) -> None:
        """Note what went wrong: its kind, not its words."""
        kind = type(error).__name__
        self._span.set_attribute("error.type", kind)
        status = getattr(error, "status_code", None)
        if status is not None:
            self._span.set_attribute("protolink.status_code", status)
        self._span.set_status(self._trace.StatusCode.ERROR, kind)

    def end(self) -> None:
        """End the span; any number of times."""
        if not self._is_over:
            self._is_over = True
            self._span.set_attribute("protolink.attempts", self._context.attempt)
            self._span.end()


def _can_be_sent(name: str, value: str) -> bool:
    try:
        check_header(name, value, what="tracing")
    except (TypeError, ValueError):
        return False
    return True
