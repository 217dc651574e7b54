"""The counters of a transport."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import attrs

from protolink_sync.transport._call import Call, Outcome

__all__ = ["Metrics", "TransportMetricsSnapshot"]


@attrs.frozen
class TransportMetricsSnapshot:
    """What a transport has done so far; read it as ``transport.metrics``.

    Of requests as of streams, started = succeeded (completed) + failed + cancelled + active, at
    every moment.

    Args:
        requests_started: Calls that began, those that wait for a slot too; retries do not count.
        requests_succeeded: Calls that returned.
        requests_failed: Calls that raised.
        retries: Attempts beyond the first of each call.
        streams_started: Streams that were opened.
        streams_completed: Streams that came to their end.
        streams_failed: Streams that raised.
        active_requests: Calls that run now.
        active_streams: Streams that are open now.
        bytes_sent: Bytes of request bodies.
        bytes_received: Bytes of reply bodies and events, inflated.
        total_latency_ms: Milliseconds from begin to end, summed over finished requests.
        requests_cancelled: Calls ended by token, Ctrl-C or ``close()``.
        streams_cancelled: Streams ended by their reader, a token or ``close()``.

    Source:
        ProtoLink 0.8.3, ``TransportMetricsSnapshot``, for the first twelve.
    """

    requests_started: int = 0
    requests_succeeded: int = 0
    requests_failed: int = 0
    retries: int = 0
    streams_started: int = 0
    streams_completed: int = 0
    streams_failed: int = 0
    active_requests: int = 0
    active_streams: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    total_latency_ms: float = 0.0
    requests_cancelled: int = 0
    streams_cancelled: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the counters by name."""
        return attrs.asdict(self)


class Metrics:
    """Totals of finished calls; what runs is counted where it runs."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._requests: dict[Outcome, int] = {"succeeded": 0, "failed": 0, "cancelled": 0}
        self._streams: dict[Outcome, int] = {"succeeded": 0, "failed": 0, "cancelled": 0}
        self._retries = 0
        self._sent = 0
        self._received = 0
        self._latency = 0.0

    def count(self, call: Call) -> None:
        """Count a call that ended, once, however often this is called."""
        # One line: no interrupt comes between the lock's enter and exit.
        with self._lock: self._count(call)  # fmt: skip  # noqa: E701

    def _count(self, call: Call) -> None:
        if call.outcome is None:
            return
        ended = self._streams if call.streams else self._requests
        outcome, number = call.outcome, ended[call.outcome] + 1
        sent = self._sent + call.sent
        received = self._received + call.received
        took = 0.0 if call.streams else (time.monotonic() - call.started) * 1000.0
        latency = self._latency + took
        # One assignment, which calls nothing: an interrupt before it leaves the call uncounted,
        # and _end() comes again.
        ended[outcome], self._sent, self._received, self._latency, call.outcome = (
            number, sent, received, latency, None)  # fmt: skip

    def retried(self) -> None:
        """Count one attempt beyond the first."""
        with self._lock: self._retries += 1  # fmt: skip  # noqa: E701

    def snapshot(self, calls: Callable[[], Iterable[Call]]) -> TransportMetricsSnapshot:
        """Return the counters, with those of what runs now.

        Args:
            calls: Gives the calls that run or wait for a slot.
        """
        with self._lock:
            requests = self._requests
            # A call that is counted already is on its way out.
            active = [call.streams for call in calls() if call.outcome is not None]
            active_streams = sum(active)
            active_requests = len(active) - active_streams
            streams = self._streams
            return TransportMetricsSnapshot(
                requests_started=sum(requests.values()) + active_requests,
                requests_succeeded=requests["succeeded"],
                requests_failed=requests["failed"],
                requests_cancelled=requests["cancelled"],
                streams_started=sum(streams.values()) + active_streams,
                streams_completed=streams["succeeded"],
                streams_failed=streams["failed"],
                streams_cancelled=streams["cancelled"],
                active_streams=active_streams,
                retries=self._retries,
                active_requests=active_requests,
                bytes_sent=self._sent,
                bytes_received=self._received,
                total_latency_ms=self._latency,
            )
