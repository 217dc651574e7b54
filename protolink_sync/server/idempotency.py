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
    """One call: being carried out, or what it came to.

    Args:
        identity: What makes two calls the same: principal, path, key, content.
    """

    is_done = False
    is_awaited = False
    answer = b""
    # When the answer is forgotten, on the monotonic clock.
    due = 0.0
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
        # Those that run and those that are answered, which are `_answered` many; of these the
        # least recently used comes first.
        self._known: OrderedDict[Hashable, Claim] = OrderedDict()
        self._answered = 0
        self._bytes = 0

    def begin(self, claim: Claim) -> bytes | None:
        """Return the answer to a call that was made before, or None: then it may be carried out.

        After None the claim must be ended, by :meth:`store` or :meth:`fail`. If the same call is
        being carried out, this waits for its answer.

        Raises:
            RefusedError: The call was refused when it was first made; or the first one takes
                longer than the time to wait for it.
        """
        with self._lock:
            known = self._known.setdefault(claim.identity, claim)
            if known.is_done and not self._recall(known):
                self._known[claim.identity] = known = claim
        return None if known is claim else self._wait_for(known)

    def store(self, claim: Claim, answer: bytes) -> None:
        """Remember an answer, and give it to those who wait for it; once for each claim."""
        with self._lock:
            if claim.is_done:
                return
            self._known.move_to_end(claim.identity)
            answered, size = self._answered + 1, self._bytes + len(answer)
            due = time.monotonic() + self._ttl
            # One assignment: an interrupt leaves an answer that is counted, or none.
            claim.answer, claim.due, claim.is_done, self._answered, self._bytes = (
                answer, due, True, answered, size)  # fmt: skip
            if claim.is_awaited:
                self._changed.notify_all()
            while self._answered > self._size or self._bytes > _MOST_BYTES:
                oldest = next(iter(self._known.values()))
                if oldest.is_done:
                    self._drop(oldest)
                else:  # its answer will be younger than all that are here
                    self._known.move_to_end(oldest.identity)

    def fail(self, claim: Claim, error: BaseException) -> None:
        """Remember nothing, and tell those who wait why there is no answer; once for each claim."""
        with self._lock:
            if self._known.get(claim.identity) is claim and not claim.is_done:
                claim.error = error if isinstance(error, RefusedError) else _interrupted()
                claim.is_done = True
                del self._known[claim.identity]
                if claim.is_awaited:
                    self._changed.notify_all()

    def forget(self, identity: Hashable) -> None:
        """Forget a remembered answer; a call that is running is not touched."""
        with self._lock:
            known = self._known.get(identity)
            if known is not None and known.is_done:
                self._drop(known)

    def _recall(self, known: Claim) -> bool:
        """Return whether an answer still counts; else it is dropped."""
        if time.monotonic() >= known.due:
            self._drop(known)
            return False
        self._known.move_to_end(known.identity)
        return True

    def _drop(self, claim: Claim) -> None:
        answered, size = self._answered - 1, self._bytes - len(claim.answer)
        # One line: an interrupt leaves an answer that is counted, or none.
        self._answered, self._bytes = answered, size; del self._known[claim.identity]  # fmt: skip  # noqa: E702

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
