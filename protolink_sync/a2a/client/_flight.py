"""One thread asks, the others wait for what it finds: each within its own budget."""

from __future__ import annotations

import math
import threading
from typing import Generic, TypeVar

from protolink_sync._deadline import Deadline
from protolink_sync.a2a.client._budget import Budget
from protolink_sync.errors import CallCancelledError, TransportTimeoutError

__all__ = ["Flight"]

_Found = TypeVar("_Found")


class Flight(Generic[_Found]):
    """One asking, and those who wait for its end.

    Attributes:
        found: What was found; None if nothing was.
        error: Why not, where that holds for all who wait.
    """

    def __init__(self) -> None:
        self.found: _Found | None = None
        self.error: Exception | None = None
        self._pilot = threading.get_ident()
        self._landed = False
        self._waiting: list[Deadline] = []

    def land(self) -> None:
        """Let those who wait go on."""
        self._landed = True
        for deadline in [*self._waiting]:
            deadline.notify()

    def wait(self, where: str, url: str, budget: Budget) -> None:
        """Wait until it has landed.

        Args:
            where: What waits, for messages.
            url: The agent's address.
            budget: Of the one who waits.

        Raises:
            CallCancelledError: The token was cancelled.
            TransportTimeoutError: The budget is spent.
            RuntimeError: The thread that waits is the one that asks: from its own asking it called
                the agent, as credentials that are a callable may.
        """
        if self._pilot == threading.get_ident():
            raise RuntimeError(
                f"{where}: this call was made from inside another one, which is just asking how "
                "the agent is called, and both would wait for each other: a credentials callable "
                "or a hook must not call that agent with the same client"
            )
        deadline = budget.deadline()
        self._waiting.append(deadline)
        try:
            deadline.begin()
            if deadline.wait(math.inf, until=lambda: self._landed):
                return
        finally:
            deadline.finish()
        if deadline.ended == "cancelled":
            raise CallCancelledError(
                f"{where}: cancelled by its token while another thread asked how the agent is "
                "called",
                reason=deadline.reason,
                url=url,
                phase="wait",
            )
        raise TransportTimeoutError(
            f"{where}: timeout of {budget.timeout:g} s is over, while another thread asked how "
            "the agent is called",
            url=url,
            phase="wait",
            elapsed=budget.elapsed(),
        )
