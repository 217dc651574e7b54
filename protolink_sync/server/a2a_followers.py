"""Those who follow a task over A2A: each has a queue of its own, and may leave at any time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from protolink_sync.a2a.wire import A2AInternalError
from protolink_sync.server.backlog import LONGEST_WAIT, Backlog, Event
from protolink_sync.server.refusal import RefusedError

__all__ = ["Follower", "Followers"]

# How many events a task may be ahead of who follows it.
_MOST_EVENTS = 64


class Follower(Backlog):
    """One stream of a task's events: the task puts, one other thread takes, any may end it.

    Args:
        largest: Most bytes of one event.
    """

    def __init__(self, largest: int) -> None:
        super().__init__(_MOST_EVENTS)
        self._largest = largest
        self._when_left: list[Callable[[Follower], None]] = []

    def when_left(self, call: Callable[[Follower], None]) -> None:
        """Have something called once, when nothing will be taken any more."""
        self._when_left.append(call)

    # ---- the task ----

    def put(self, event: bytes, *, last: bool = False) -> None:
        """Hand an event over, without waiting."""
        if len(event) > self._largest:
            self.fail(
                f"an event has {len(event)} bytes, limit is {self._largest}. Raise "
                "TransportLimits.max_event_bytes of the agent"
            )
            return
        with self._lock:
            if self._is_written or self._is_left:
                return
            self._add((event, last))
            self._is_written = last

    def fail(self, reason: str) -> None:
        """End the stream with an error, behind the events that wait."""
        with self._lock:
            if not (self._is_written or self._is_left):
                self._error = RefusedError(500, reason, "StreamError")
                self._is_written = True
                self._changed.notify_all()

    def wait_for_room(self, end: float) -> bool:
        """Wait until a further event may be put; False if that takes too long."""
        with self._lock:
            while not (self._is_written or self._is_left) and self._is_full():
                left = end - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(min(left, LONGEST_WAIT))
        return True

    # ---- the one who takes ----

    def take(self, timeout: float) -> list[Event] | None:
        """Wait for events and return those that are there; None at the end.

        Args:
            timeout: Seconds to wait at most; then the list is empty.

        Raises:
            RefusedError: The stream broke off, after the events before; it says why.
        """
        events = self._take(timeout)
        if events is None:
            error = self._why()
            self.leave("the stream is over")
            if error is not None:
                raise error
        return events

    def leave(self, reason: str) -> None:
        """Say that nobody takes any more; the task goes on. Any thread, any number of times.

        Args:
            reason: Why. Nobody asks: the task does not end with its followers.
        """
        with self._lock:
            self._is_left = True
            self._changed.notify_all()
            calls, self._when_left = self._when_left, []
        for call in calls:
            call(self)


class Followers:
    """How many follow tasks at one address.

    Args:
        most: How many may.
        largest: Most bytes of one event.
    """

    def __init__(self, most: int, largest: int) -> None:
        self._most = most
        self._largest = largest
        self._lock = threading.RLock()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def new(self) -> Follower:
        """Return one more, who follows nothing yet; to :meth:`Follower.leave` it ends its count.

        Raises:
            A2AInternalError: There are too many.
        """
        with self._lock:
            if self._count >= self._most:
                raise A2AInternalError("too many streams at a time; try again later", code=-32603)
            self._count += 1
        follower = Follower(self._largest)
        follower.when_left(self._left)
        return follower

    def _left(self, _follower: Follower) -> None:
        with self._lock:
            self._count -= 1
