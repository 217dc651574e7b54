"""How many calls of one transport run at the same time; the others wait their turn."""

from __future__ import annotations

import contextlib
import math
import queue
import time
from collections import deque
from collections.abc import Callable

from protolink_sync.transport._call import Call

__all__ = ["Slots"]

# The longest single wait: CPython can lose the wake-up of a signal that comes just before it.
_LONGEST_WAIT = 0.5


class Slots:
    """A bounded set of running calls, first come first served.

    A call holds its slot by being in :attr:`active`, so giving it back is one operation that may
    be repeated: an interrupt between two lines cannot lose a slot.

    Args:
        limit: How many calls may run.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.active: dict[Call, None] = {}
        self._waiting: deque[Call] = deque()
        # What those wait on who want to know when the last call has ended.
        self._watchers: list[queue.SimpleQueue[None]] = []

    def acquire(self, call: Call, is_nested: Callable[[], bool] | None = None) -> bool:
        """Give the call a slot, waiting for one if need be; False if the call was ended.

        Args:
            call: The call.
            is_nested: Asked when the call would have to wait: whether it begins at once, above
                the limit, because the call that holds the slot waits for this one.
        """
        # First in, then counted: of two that come at once at least one sees that it is too many.
        self.active[call] = None
        if len(self.active) <= self._limit and not self._waiting:
            return call.ended is None
        if is_nested is not None and is_nested():
            return call.ended is None
        self._waiting.append(call)
        self.active.pop(call, None)
        # The first in the queue may have looked while this one was counted, and sleeps on.
        self._call_up()
        while call.wait(math.inf, until=lambda: self._is_next(call)):
            self.active[call] = None
            if len(self.active) <= self._limit:
                self._leave(call)
                return True
            self.active.pop(call, None)
        return False

    def release(self, call: Call) -> None:
        """Take back slot or turn; any number of times."""
        self.active.pop(call, None)
        if self._waiting:
            self._leave(call)
        if self._watchers:
            for watcher in [*self._watchers]:
                watcher.put(None)

    def wait_until_empty(self, timeout: float) -> None:
        """Wait until no call has a slot, or some seconds are over; a signal handler may do so."""
        watcher: queue.SimpleQueue[None] = queue.SimpleQueue()
        end = time.monotonic() + timeout
        try:
            # First in, then looked: of this and release() at least one sees the other.
            self._watchers.append(watcher)
            while self.active and (left := end - time.monotonic()) > 0:
                with contextlib.suppress(queue.Empty):
                    watcher.get(timeout=min(left, _LONGEST_WAIT))
        finally:
            with contextlib.suppress(ValueError):
                self._watchers.remove(watcher)

    def calls(self) -> set[Call]:
        """Return the calls that run or wait."""
        return {*self.active, *self._waiting}

    def _is_next(self, call: Call) -> bool:
        return len(self.active) < self._limit and self._waiting[0] is call

    def _leave(self, call: Call) -> None:
        """Take a call out of the queue, if it stands there, and call up the next one."""
        with contextlib.suppress(ValueError):
            self._waiting.remove(call)
        self._call_up()

    def _call_up(self) -> None:
        with contextlib.suppress(IndexError):
            self._waiting[0].notify()
