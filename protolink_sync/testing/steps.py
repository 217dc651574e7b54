"""What a scripted transport answers, and what it was asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from protolink_sync.errors import TransportConnectionError
from protolink_sync.wire import WireReply, WireRequest

__all__ = ["EventScript", "SentCall", "Silence", "Step", "events", "refused", "reply", "silence"]


@attrs.frozen
class SentCall:
    """One attempt of a call, as it was sent. Attempts of one call are equal.

    Args:
        operation: Its name, for example ``send_task``.
        url: Address of the peer.
        method: HTTP method.
        path: Path and query.
        headers: Headers of the operation, with the request id and the idempotency key.
        body: The encoded data; None where nothing was sent.
        credentials: The headers that carried the caller's credentials.
        attempt: 1 for the first.
    """

    operation: str
    url: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes | None = attrs.field(repr=False)
    credentials: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    attempt: int = attrs.field(default=1, eq=False)

    @property
    def data(self) -> Any:
        """The body as JSON values."""
        return None if self.body is None else json.loads(self.body)

    @classmethod
    def of(cls, request: WireRequest) -> SentCall:
        """Return a request as it stands at this moment."""
        return cls(
            request.context.operation,
            request.context.url,
            request.method,
            request.path,
            dict(request.headers),
            request.body,
            dict(request.credentials or {}),
            request.context.attempt,
        )


@attrs.frozen
class EventScript:
    """The events of a stream: made by :func:`events`."""

    given: tuple[Any, ...]
    is_cut: bool


class Silence:
    """No answer at all: made by :func:`silence`."""


Answer = WireReply | EventScript | Silence | BaseException
Step = Answer | Callable[[SentCall], Answer]


def reply(
    value: Any = None,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> WireReply:
    """Return an answer.

    Args:
        value: What is sent as JSON; a model (``Task``, ``AgentCard``) is taken too.
        status: HTTP status.
        headers: Further headers.
        body: What is sent in the place of a value, as it is.

    >>> reply(status=503, body=b"busy").status
    503
    """
    if body is None:
        made = value.to_dict() if hasattr(value, "to_dict") else value
        body = json.dumps(made).encode()
    names = {name.lower(): text for name, text in (headers or {}).items()}
    return WireReply(status, "", {"content-type": "application/json", **names}, body)


def refused(message: str = "connection refused") -> TransportConnectionError:
    """Return the error of an agent that is not there; the call may be retried."""
    return TransportConnectionError(message, retryable=True, phase="connect")


def silence() -> Silence:
    """Return a step at which nothing comes until the call is ended: by its budget or a token."""
    return Silence()


def events(*given: Any, cut: bool = False) -> EventScript:
    """Return the answer to a stream.

    Args:
        *given: The events, JSON values or objects with ``to_dict``; an exception breaks the
            stream at that place, a :func:`silence` holds it there.
        cut: End the connection after them, without the mark that says that the stream is over.
    """
    return EventScript(given, cut)
