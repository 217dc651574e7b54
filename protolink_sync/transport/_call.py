"""One call: its budget, and what is counted of it when it ends."""

from __future__ import annotations

from typing import Any, Literal

from protolink_sync._deadline import CancelToken, Deadline
from protolink_sync.config import RetryPolicy
from protolink_sync.transport._options import CallOptions
from protolink_sync.transport._tracing import CallSpan

__all__ = ["Call", "Outcome"]

Outcome = Literal["succeeded", "failed", "cancelled"]


class Call(Deadline):
    """The deadline of one call, with its figures.

    Args:
        timeout: Budget in seconds, counted from now; ``math.inf`` for none.
        cancel: Token that ends the call.
        codec: What makes bytes of the call and a value of the answer.
        credentials: What the peer is shown, as ``check_credentials`` returns it.
        options: What it has instead of what the transport has; None for nothing.
        retry: When the transport's calls are sent again.

    Attributes:
        connect_timeout: Bound of resolving, connecting and TLS; None for the transport's.
        has_token: Whether something beside its budget and the transport's end may end the call.
        outcome: How the call ends as things stand; None before it begins and once it is counted.
        over: Whether all that the call held is given back.
        sent: Bytes of the bodies sent.
        span: What tracing sees of it; None where nothing is traced.
        received: Bytes of the replies' bodies, inflated.
        retry: When this call is sent again.
        streams: Whether it is a stream.
        submits: Whether the call gives the peer a task to work on.
    """

    __slots__ = (
        "codec",
        "connect_timeout",
        "credentials",
        "has_token",
        "options",
        "outcome",
        "over",
        "received",
        "retry",
        "sent",
        "span",
        "streams",
        "submits",
    )

    def __init__(
        self,
        timeout: float,
        cancel: CancelToken | None,
        codec: Any,
        credentials: Any,
        options: CallOptions | None,
        retry: RetryPolicy,
    ) -> None:
        Deadline.__init__(self, timeout, cancel=cancel)  # super() would take another step
        self.has_token = cancel is not None
        self.codec = codec
        self.credentials = credentials
        self.connect_timeout: float | None = None
        self.options = options
        self.retry = retry if options is None or options.retry is None else options.retry
        self.span: CallSpan | None = None
        self.outcome: Outcome | None = None
        self.over = False
        self.sent = 0
        self.received = 0
        self.submits = False
        self.streams = False
