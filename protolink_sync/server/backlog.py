"""Events that one thread has put and another has not yet taken."""

from __future__ import annotations

import threading
import time
from typing import TypeAlias

from protolink_sync.server.refusal import RefusedError

__all__ = ["LONGEST_WAIT", "Backlog", "Event"]

Event: TypeAlias = tuple[bytes, bool]
"""An encoded event, and whether it is the last one."""

LONGEST_WAIT = 60.0
"""The longest single wait: a wait without end would keep Ctrl-C from getting through."""

_MOST_BYTES = 256 * 1024


class Backlog:
    """What waits between the one who puts events and the one who takes them.

    Args:
        most: How many events the first may be ahead; fewer, if they are large.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        # Guards all that follows. Entered itself: the condition's own way in is Python code, which
        # an interrupt can leave with the lock held.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._waiting: list[Event] = []
        self._bytes = 0
        # Nothing more will be put; nobody takes any more.
        self._is_written = self._is_left = False
        self._error: RefusedError | None = None

    def _add(self, event: Event) -> None:
        """Let an event wait; the lock is held."""
        self._waiting.append(event)
        self._bytes += len(event[0])
        self._changed.notify_all()

    def _is_full(self) -> bool:
        return len(self._waiting) >= self._most or self._bytes >= _MOST_BYTES

    def _take(self, timeout: float) -> list[Event] | None:
        """Wait for events and return those that are there.

        Args:
            timeout: Seconds to wait at most; then the list is empty.

        Returns:
            The events; None at the end, when :meth:`_why` says whether it is a good one.
        """
        end = time.monotonic() + timeout
        with self._lock:
            while not (self._waiting or self._is_written or self._is_left):
                left = end - time.monotonic()
                if left <= 0:
                    return []
                self._changed.wait(min(left, LONGEST_WAIT))
            if not self._waiting or self._is_left:
                return None
            taken, self._waiting, self._bytes = self._waiting, [], 0
            self._changed.notify_all()
            return taken

    def _why(self) -> RefusedError | None:
        """Return, once, the error with which it ended; None if it ended well."""
        with self._lock:
            error, self._error = self._error, None
            return error
