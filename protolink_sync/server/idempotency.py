"""Answers remembered by idempotency key: the same call twice is carried out once.

Both callers get the same bytes, each makes its own objects of them.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

from protolink_sync.server.refusal import RefusedError

__all__ = ["Answers"]

# Answers may be as large as TransportLimits allows; a thousand of those are no cache.
_MOST_BYTES = 64 * 1024 * 1024
# The longest single wait: a wait without end would keep Ctrl-C from getting through.
_LONGEST_WAIT = 60.0


class _Running:
    """A call that is being carried out, and what it came to for those who wait for it."""

    is_done = False
    is_awaited = False
    answer = b""
    error: RefusedError | None = None


class Answers:
    """Carry out what was not asked before; repeat the answer to what was.

    Only answers are remembered: a call that fails is carried out again when it comes again.

    Args:
        ttl: Seconds for which an answer is remembered, from the moment it was there. So long a
            repeated call also waits for the first one at most.
        size: How many answers are remembered; the least recently used is dropped first.

    Source:
        wire/protolink.md 8; design.md 10.
    """

    def __init__(self, ttl: float, size: int) -> None:
        self._ttl = ttl
        self._size = size
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._running: dict[Hashable, _Running] = {}
        self._stored: OrderedDict[Hashable, tuple[float, bytes]] = OrderedDict()
        self._bytes = 0

    def once(self, identity: Hashable, carry_out: Callable[..., bytes], *args: Any) -> bytes:
        """Return the answer to a call, carrying it out only if it is new.

        Args:
            identity: What makes two calls the same: principal, path, key, digest of the body.
            carry_out: Makes the answer, or raises; called without a lock.
            *args: What it is called with.

        Raises:
            RefusedError: The call was refused, now or when it was first made; or the first one
                takes longer than the time to wait for it.
        """
        mine = _Running()
        with self._lock:
            if identity in self._stored:
                stored = self._recall(identity)
                if stored is not None:
                    return stored
            running = self._running.setdefault(identity, mine)
        if running is not mine:
            return self._wait_for(running)
        try:
            answer = carry_out(*args)
        except BaseException as error:
            self._end(identity, mine, error)
            raise
        self._store(identity, mine, answer)
        return answer

    def forget(self, identity: Hashable) -> None:
        """Forget a remembered answer; a call that is running is not touched."""
        with self._lock:
            self._drop(identity)

    def _recall(self, identity: Hashable) -> bytes | None:
        due, answer = self._stored[identity]
        if time.monotonic() >= due:
            self._drop(identity)
            return None
        self._stored.move_to_end(identity)
        return answer

    def _drop(self, identity: Hashable) -> None:
        found = self._stored.pop(identity, None)
        if found is not None:
            self._bytes -= len(found[1])

    def _store(self, identity: Hashable, mine: _Running, answer: bytes) -> None:
        with self._lock:
            mine.answer, mine.is_done = answer, True
            self._running.pop(identity, None)
            self._stored[identity] = (time.monotonic() + self._ttl, answer)
            self._bytes += len(answer)
            while len(self._stored) > self._size or self._bytes > _MOST_BYTES:
                _, (_, dropped) = self._stored.popitem(last=False)
                self._bytes -= len(dropped)
            if mine.is_awaited:
                self._changed.notify_all()

    def _end(self, identity: Hashable, mine: _Running, error: BaseException) -> None:
        with self._lock:
            mine.error = error if isinstance(error, RefusedError) else _interrupted()
            mine.is_done = True
            self._running.pop(identity, None)
            self._changed.notify_all()

    def _wait_for(self, running: _Running) -> bytes:
        end = time.monotonic() + self._ttl
        with self._lock:
            running.is_awaited = True
            while not running.is_done:
                left = end - time.monotonic()
                if left <= 0:
                    raise RefusedError(
                        409,
                        "a call with this idempotency key and content is still running",
                        "IdempotencyError",
                    )
                self._changed.wait(min(left, _LONGEST_WAIT))
        if running.error is not None:
            raise running.error.copy()
        return running.answer


def _interrupted() -> RefusedError:
    return RefusedError(500, "the first call with this key was interrupted", "InterruptedError")
