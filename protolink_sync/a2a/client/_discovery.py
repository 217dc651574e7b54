"""The card of one agent, and where its calls go: asked for once, by one thread.

No lock is held while anything is sent. Threads that need the card while another one gets it wait
for that one, each within its own budget and with its own token.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable

import attrs

from protolink_sync._kept_errors import copied, is_own, without_frames
from protolink_sync.a2a.client._budget import Budget
from protolink_sync.a2a.client._flight import Flight
from protolink_sync.a2a.wire import AgentCard, WireDialect, select
from protolink_sync.errors import (
    A2AClientError,
    TransportConnectionError,
    TransportError,
    TransportTimeoutError,
)
from protolink_sync.wire import one_line

__all__ = ["Discovery", "Fetched", "Target"]

_log = logging.getLogger("protolink_sync.a2a")


@attrs.frozen
class Fetched:
    """A card as it came.

    Args:
        card: The card; None if the one that is held is still good.
        etag: What to ask for it with the next time.
    """

    card: AgentCard | None
    etag: str | None = None


@attrs.frozen
class Target:
    """Where a call goes, and how.

    Args:
        url: The address.
        dialect: The dialect; None where none is known yet.
        tenant: Goes into every request.
        is_cross_origin: Whether a card sent the call to another origin.
        card: The card; None where there is none.
    """

    url: str
    dialect: WireDialect | None = None
    tenant: str = ""
    is_cross_origin: bool = False
    card: AgentCard | None = None


@attrs.frozen
class _State:
    """All that is known of the agent; replaced as a whole."""

    card: AgentCard | None = None
    etag: str | None = None
    target: Target | None = None
    # Why there is no card, and what was learned by asking without one.
    failure: Exception | None = None
    learned: WireDialect | None = None
    # How often the rules of the selection were changed: one by old rules is not kept.
    rules: int = 0


class Discovery:
    """What is known of one agent; any number of threads may share it.

    Args:
        base_url: The agent's address, without a slash at its end.
        fetch: Asks for the card, with the tag of the one that is held and within a budget. It puts
            the ``id`` of what the caller's credentials raise into the list.
    """

    def __init__(
        self, base_url: str, fetch: Callable[[str | None, Budget, list[int]], Fetched]
    ) -> None:
        self._base_url = base_url
        self._fetch = fetch
        self._state = _State()
        self._begin_process()

    def _begin_process(self) -> None:
        self._pid = os.getpid()
        self._own_lock = threading.RLock()
        self._flight: Flight[None] | None = None

    @property
    def _lock(self) -> threading.RLock:
        # A forked child has a lock of its own: who held the parent's did not come along, nor did
        # the thread that asked for the card.
        if self._pid != os.getpid():
            self._begin_process()
        return self._own_lock

    @property
    def dialect(self) -> WireDialect | None:
        """The dialect in use, selected or learned."""
        state = self._state
        return state.learned if state.target is None else state.target.dialect

    @property
    def url(self) -> str:
        """The address in use."""
        target = self._state.target
        return self._base_url if target is None else target.url

    @property
    def failure(self) -> Exception | None:
        """Why there is no card; None if there is one, or nobody has asked for it yet."""
        return self._state.failure

    def known_target(self) -> Target | None:
        """Return where calls go, if that is known; nothing is asked."""
        return self._state.target

    def card(self, budget: Budget, *, force: bool) -> AgentCard:
        """Return the card; what is returned is shared and must not be changed.

        Args:
            budget: Of the one who needs it.
            force: Ask for it also if it is held.

        Raises:
            Exception: Why there is none.
        """
        state = self._state
        if force or state.card is None:
            state = self._asked(budget, again=force or state.failure is not None)
        if state.card is None:
            assert state.failure is not None
            raise copied(state.failure)
        return state.card

    def target(
        self, budget: Budget, *, pinned: WireDialect | None, allow_cross_origin: bool
    ) -> Target:
        """Return where calls go, asking for the card if nobody has.

        Args:
            budget: Of the call.
            pinned: The only dialect the caller wants.
            allow_cross_origin: Follow the card to another origin.

        Raises:
            A2AClientError: The card offers nothing that can be spoken.
        """
        state = self._state
        if state.target is not None:
            return state.target
        rules = state.rules
        if state.card is None and state.failure is None:
            state = self._asked(budget, again=False)
        if state.card is None:
            return Target(self._base_url, pinned or state.learned)
        chosen = select(
            state.card, self._base_url, dialect=pinned, allow_cross_origin=allow_cross_origin
        )
        target = Target(
            chosen.url, chosen.dialect, chosen.tenant, chosen.is_cross_origin, state.card
        )
        if self._keep(state.card, target, rules) and chosen.warning is not None:
            _log.warning("%s", chosen.warning)
        return target

    def _keep(self, card: AgentCard, target: Target, rules: int) -> bool:
        """Keep a selection, unless another thread has, or card or rules are others by now."""
        with self._lock:
            now = self._state
            if now.card is not card or now.target is not None or now.rules != rules:
                return False
            self._state = attrs.evolve(self._state, target=target)
            return True

    def select_again(self) -> None:
        """Forget the selection, so that the next call selects from the card anew."""
        with self._lock:
            self._state = attrs.evolve(self._state, target=None, rules=self._state.rules + 1)

    def learn(self, dialect: WireDialect) -> None:
        """Remember in which dialect an agent without a card has answered."""
        with self._lock:
            if self._state.card is not None or self._state.learned is dialect:
                return
            self._state = attrs.evolve(self._state, learned=dialect)
        _log.info("%s has no card and speaks A2A %s", self._base_url, dialect.value)

    def unanswered(self) -> None:
        """Forget that there is no card if the agent answers to nothing: it may be starting."""
        with self._lock:
            if isinstance(self._state.failure, (TransportConnectionError, TransportTimeoutError)):
                state = self._state
                self._state = _State(learned=state.learned, rules=state.rules)

    # --- the request -------------------------------------------------------------------------

    def _asked(self, budget: Budget, *, again: bool) -> _State:
        """Return what is known once the card was asked for, by this thread or by another."""
        while True:
            # Around the lock, so that an interrupt at any line lands what was begun.
            mine: Flight[None] | None = None
            try:
                with self._lock:
                    state, flight = self._state, self._flight
                    if not again and (state.card is not None or state.failure is not None):
                        return state
                    if flight is None:
                        mine = flight = self._flight = Flight()
                if mine is not None:
                    return self._fly(mine, state, budget, again)
            finally:
                if mine is not None:
                    try:
                        self._flight = None
                    finally:
                        mine.land()
            flight.wait(f"A2A call to {self._base_url}", self._base_url, budget)
            if flight.error is not None:
                raise flight.error

    def _fly(self, flight: Flight[None], before: _State, budget: Budget, again: bool) -> _State:
        of_caller: list[int] = []
        try:
            fetched = self._fetch(before.etag, budget, of_caller)
        except (TransportError, A2AClientError) as error:
            if budget.remaining() <= 0:
                raise  # this caller's time is over: that says nothing of the agent
            if before.card is not None:
                raise  # the card that is held stays
            if id(error) in of_caller or not is_own(error):  # that says nothing of the agent
                flight.error = error
                raise
            state = _State(
                failure=without_frames(copied(error)), learned=None if again else before.learned
            )
            _log.info("no card at %s: %s", self._base_url, one_line(str(error)))
        else:
            state = _State(card=fetched.card or before.card, etag=fetched.etag)
        with self._lock:
            self._state = state = attrs.evolve(state, rules=self._state.rules)
        return state
