"""Connections that wait for the next call, and when they are closed instead."""

from __future__ import annotations

import math
import sys
import threading
import time
import weakref
from collections import deque
from typing import Generic, Protocol, TypeVar

from protolink_sync._deadline import Timer, forget, watch

__all__ = ["IdlePool"]

# An idle connection beyond the allowed number is kept for so many seconds, and longer while as
# many threads make calls: those that think a little between two calls find theirs again.
_SPARE_SECONDS = 1.0

# A connection is not used again after this part of the keep-alive interval: the peer's clock
# began earlier than ours.
_FRESH_PART = 0.75

# The clock of ages. That of time.monotonic() stands still while the machine sleeps, and the peer's
# does not. What goes on has this name on macOS, where time.monotonic() is another clock.
_CLOCK = getattr(time, "CLOCK_MONOTONIC" if sys.platform == "darwin" else "CLOCK_BOOTTIME", None)


def _now() -> float:
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


class _Idle(Protocol):
    """A connection between two calls."""

    idle_since: float

    def is_alive(self) -> bool: ...

    def close(self) -> None: ...


_Connection = TypeVar("_Connection", bound=_Idle)


class IdlePool(Generic[_Connection]):
    """Idle connections to one origin; the last one used is the first to be used again.

    So what a burst of calls has opened is not kept busy by the few calls that follow, and is
    closed. But of n threads that think a little between two calls, few call at the same moment:
    those connections beyond what they need most of the time must not be closed, or they would be
    opened again whenever the calls fall together, more than n in the end. Hence it is counted
    how many threads make calls.

    Every operation on the queue is one that a signal handler may come between, so there is no
    lock. A connection is in the queue or in somebody's hand, never in both.
    """

    # See bound().
    _fresh_seconds = math.inf
    max_idle = 10

    def _begin(self) -> None:
        """Set up the queue; called by the constructors of subclasses."""
        self._idle: deque[_Connection] = deque()
        # A pool that nobody closed must not leave its connections to the garbage collector.
        weakref.finalize(self, _close_all, self._idle)
        # When each thread last gave a connection back to a pool that has more than it keeps.
        self._users: dict[int, float] = {}
        self._timer: Timer | None = None
        self._shut = False

    def bound(
        self, keepalive_interval: float | None, max_idle: int, longest: float = math.inf
    ) -> None:
        """Set how many connections stay idle, and for how long.

        Args:
            keepalive_interval: Seconds after three quarters of which an idle one is not used
                again; None for no such time.
            max_idle: How many stay idle.
            longest: Seconds after which an idle one is not used again in any case.
        """
        interval = math.inf if keepalive_interval is None else keepalive_interval * _FRESH_PART
        self._fresh_seconds = min(interval, longest)
        self.max_idle = max_idle

    def close(self) -> None:
        """Close the idle connections; those that are in use when they come back."""
        self._shut = True
        _close_all(self._idle)

    def idle(self) -> int:
        """Return the number of idle connections."""
        return len(self._idle)

    def _take(self) -> _Connection | None:
        """Return an idle connection that is fresh and alive, or None."""
        oldest = _now() - self._fresh_seconds
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if connection.idle_since >= oldest and connection.is_alive():
                return connection
            connection.close()

    def _keep(self, connection: _Connection) -> None:
        """Put a connection in the queue; nobody uses it any more."""
        connection.idle_since = now = _now()
        self._idle.append(connection)
        has_spare = len(self._idle) > self.max_idle
        if has_spare:
            self._users[threading.get_ident()] = now
        if self._shut:
            self.close()
        elif self._timer is None or has_spare:
            self._look_again()

    def _look_again(self) -> None:
        """Have the deadline thread close spare and old connections in a while."""
        wait = _SPARE_SECONDS if len(self._idle) > self.max_idle else self._fresh_seconds
        if wait == math.inf:
            return
        timer = self._timer
        if timer is not None:
            if timer.due <= time.monotonic() + wait:
                return
            forget(timer)
        pool = weakref.ref(self)
        self._timer = Timer(wait, lambda: _tidy(pool))
        watch(self._timer)

    def _tidy(self) -> None:
        now = _now()
        oldest, spare = now - self._fresh_seconds, now - _SPARE_SECONDS
        for user, at in [*self._users.items()]:
            if at <= spare:
                self._users.pop(user, None)
        keep = max(self.max_idle, len(self._users))
        while self._idle:
            # The longest idle stands at the left; one that a call takes meanwhile is gone.
            try:
                first = self._idle[0].idle_since
                if first > oldest and not (len(self._idle) > keep and first <= spare):
                    break
                connection = self._idle.popleft()
            except IndexError:
                break
            if connection.idle_since > first:  # a call has taken the one that was looked at
                self._idle.appendleft(connection)
            else:
                connection.close()
        self._timer = None
        if self._idle and not self._shut:
            self._look_again()


def _close_all(idle: deque[_Connection]) -> None:
    while True:
        try:
            connection = idle.pop()
        except IndexError:
            return
        connection.close()


def _tidy(pool: weakref.ref[IdlePool[_Connection]]) -> None:
    alive = pool()
    if alive is not None:
        alive._tidy()
