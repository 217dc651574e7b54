"""How many calls one agent is given at a time, while many are to be made."""

from __future__ import annotations

import time

from protolink_sync.errors import (
    TransportConnectionError,
    TransportRemoteError,
    TransportTimeoutError,
)

__all__ = ["Lane", "pick"]

# What an agent answers that has too much to do: over HTTP, and over gRPC.
_BUSY = (429, 503, "RESOURCE_EXHAUSTED")

# What a call was doing that did not come to an agent.
_ON_THE_WAY = ("resolve", "connect", "tls")

# The first pause after such an answer and the longest, unless the agent says how long.
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0


class Lane:
    """The calls to one agent: fewer when it says that it is busy, then more again.

    Args:
        url: The agent's address.
        limit: How many calls it is given at most.
        patience: For how many seconds it is left alone, if it asks for that, before tasks are
            refused in its name.

    Attributes:
        free_at: Until when the agent is left alone, on the monotonic clock.
    """

    def __init__(self, url: str, limit: int, patience: float) -> None:
        self.url = url
        self.free_at = 0.0
        self._patience = patience
        self._refusal: TransportRemoteError | None = None
        self._active = 0
        self._most = limit
        self._limit = float(limit)
        self._pauses = 0
        self._lowered_at = 0.0
        # How often it was not reached, since it was; and when it is tried again.
        self._misses = 0
        self._missed_at = self._again_at = 0.0

    @property
    def is_out_of_reach(self) -> bool:
        """Whether it could not be reached, and another call has to find out before this one."""
        return bool(self._misses) and (self._active > 0 or time.monotonic() < self._again_at)

    @property
    def room(self) -> float:
        """How much of the limit is free, from 1 to 0; 0 while the agent is left alone."""
        if time.monotonic() < self.free_at:
            return 0.0
        return max(0.0, 1.0 - self._active / int(self._limit))

    @property
    def refusal(self) -> TransportRemoteError | None:
        """What the agent said, while it wants to be left alone for longer than anybody waits."""
        return self._refusal if time.monotonic() < self.free_at else None

    def begin(self) -> None:
        """Count a call that begins."""
        self._active += 1

    def end(self, outcome: object, begun_at: float) -> bool:
        """Count a call that has ended; return whether the agent was too busy for it.

        Args:
            outcome: What the call brought, an error or not.
            begun_at: When it began. Of calls that were refused together, one lowers the limit.
        """
        together = self._active
        self._active -= 1
        if _is_unreached(outcome):
            self._miss(begun_at)
            return False
        self._misses = 0
        if not (
            isinstance(outcome, TransportRemoteError)
            and outcome.retryable
            and outcome.status_code in _BUSY
        ):
            self._pauses = 0
            self._limit = min(self._most, self._limit + 1.0 / self._limit)
            return False
        now = time.monotonic()
        asked = pause = outcome.retry_after or 0.0
        if begun_at >= self._lowered_at:
            self._limit = max(1.0, together / 2)
            self._lowered_at = now
            pause = max(pause, _pause_after(self._pauses))
            self._pauses += 1
        if now + pause > self.free_at:
            self.free_at = now + pause
            self._refusal = outcome if asked > self._patience else None
        return True

    def _miss(self, begun_at: float) -> None:
        """Have another agent get the tasks for a while; of calls together, one counts."""
        if begun_at >= self._missed_at:
            self._missed_at = time.monotonic()
            self._again_at = self._missed_at + _pause_after(self._misses)
            self._misses += 1


def _pause_after(times: int) -> float:
    return min(_FIRST_PAUSE * 2.0 ** min(times, 10), _LONGEST_PAUSE)


def _is_unreached(outcome: object) -> bool:
    return (
        isinstance(outcome, (TransportConnectionError, TransportTimeoutError))
        and outcome.phase in _ON_THE_WAY
    )


def pick(lanes: list[Lane], turn: int) -> Lane | None:
    """Return the lane with the most room, from ``turn`` on if several have it; None if none has.

    An agent that cannot be reached has the most room of all, so it is left out while another one
    can be waited for. Where there is no such one, its tasks fail at once.
    """
    turned = [lanes[(turn + number) % len(lanes)] for number in range(len(lanes))]
    serving = [lane for lane in turned if not lane.is_out_of_reach and lane.refusal is None]
    best = max(serving or turned, key=lambda lane: lane.room)
    return best if best.room > 0 else None
