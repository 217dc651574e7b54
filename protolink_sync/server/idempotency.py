"""Answers remembered by idempotency key: the same call twice is carried out once.

Both callers get the same bytes, each makes its own objects of them.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Hashable

from protolink_sync.server.refusal import RefusedError

__all__ = ["Answers", "Claim"]

# Answers may be as large as TransportLimits allows; a thousand of those are no cache.
_MOST_BYTES = 64 * 1024 * 1024
# The longest single wait: a wait without end would keep Ctrl-C from getting through.
_LONGEST_WAIT = 60.0


class Claim:
    """The right to carry out one call, and what it came to for those who wait for it."""

    is_done = False
    is_awaited = False
    answer = b""
    error: RefusedError | None = None

    def __init__(self, identity: Hashable) -> None:
        self.identity = identity


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
        self._running: dict[Hashable, Claim] = {}
        self._stored: OrderedDict[Hashable, tuple[float, bytes]] = OrderedDict()
        self._bytes = 0

    def claim(self, identity: Hashable) -> bytes | Claim:
        """Return the answer to a call that was made before, or the right to carry it out.

        Who gets a claim must end it, by :meth:`store` or :meth:`fail`. If the same call is being
        carried out, this waits for its answer.

        Args:
            identity: What makes two calls the same: principal, path, key, digest of the body.

        Raises:
            RefusedError: The call was refused when it was first made; or the first one takes
                longer than the time to wait for it.
        """
        mine = Claim(identity)
        with self._lock:
            if identity in self._stored:
                stored = self._recall(identity)
                if stored is not None:
                    return stored
            running = self._running.setdefault(identity, mine)
        return mine if running is mine else self._wait_for(running)

    def store(self, claim: Claim, answer: bytes) -> None:
        """Remember an answer, and give it to those who wait for it; once for each claim."""
        identity = claim.identity
        with self._lock:
            if self._running.get(identity) is not claim:
                return
            if identity not in self._stored:  # else it was interrupted here, and begins anew
                self._bytes += len(answer)
            self._stored[identity] = (time.monotonic() + self._ttl, answer)
            while len(self._stored) > self._size or self._bytes > _MOST_BYTES:
                _, (_, dropped) = self._stored.popitem(last=False)
                self._bytes -= len(dropped)
            claim.answer = answer
            self._end(claim)

    def fail(self, claim: Claim, error: BaseException) -> None:
        """Remember nothing, and tell those who wait why there is no answer; once for each claim."""
        with self._lock:
            if self._running.get(claim.identity) is claim:
                claim.error = error if isinstance(error, RefusedError) else _interrupted()
                self._end(claim)

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

    def _end(self, claim: Claim) -> None:
        claim.is_done = True
        del self._running[claim.identity]
        if claim.is_awaited:
            self._changed.notify_all()

    def _wait_for(self, running: Claim) -> bytes:
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
