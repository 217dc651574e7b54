"""The time of one call of the client, which may take several requests."""

from __future__ import annotations

import math
import time

import attrs

from protolink_sync._deadline import CancelToken, Deadline, seconds

__all__ = ["Budget"]


@attrs.frozen
class Budget:
    """One budget and one token for all that a call needs: the card, the call, what follows.

    Args:
        timeout: Seconds from :attr:`started`; ``math.inf`` for none.
        cancel: Token that ends the call.
        started: When it began, on the monotonic clock.
    """

    timeout: float
    cancel: CancelToken | None = None
    started: float = attrs.field(factory=time.monotonic)

    @classmethod
    def of(cls, timeout: float | None, default: float, cancel: CancelToken | None) -> Budget:
        """Return the budget of a call.

        Args:
            timeout: What the caller gives; None for the default.
            default: The client's.
            cancel: The caller's token.
        """
        return cls(default if timeout is None else seconds("timeout", timeout), cancel)

    def within(self, seconds: float) -> Budget:
        """Return the same budget with a bound that may be shorter, from its beginning."""
        return self if seconds >= self.timeout else attrs.evolve(self, timeout=seconds)

    def remaining(self) -> float:
        """Return the seconds left, not below 0."""
        if self.timeout == math.inf:
            return math.inf
        return max(0.0, self.started + self.timeout - time.monotonic())

    def elapsed(self) -> float:
        """Return the seconds since it began."""
        return time.monotonic() - self.started

    def deadline(self) -> Deadline:
        """Return a deadline for one wait."""
        return Deadline(self.remaining(), cancel=self.cancel)
