"""Which protocol an agent is spoken to in: ProtoLink's own, or A2A."""

from __future__ import annotations

import copy
import logging
import math
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, cast

import attrs

from protolink_sync._deadline import CancelToken
from protolink_sync.a2a.client import Bridge, Budget, Choice, Flight
from protolink_sync.client._options import ViewedTransport
from protolink_sync.errors import (
    A2AClientError,
    StreamingNotSupportedError,
    TransportError,
    TransportRemoteError,
)
from protolink_sync.models import AgentCard, Task
from protolink_sync.specs import AGENT_CARD_REQUEST
from protolink_sync.transport import Transport

__all__ = ["Selection"]

_log = logging.getLogger("protolink_sync.client")

# What is left of a budget that is spent, as a timeout: the next request ends at once.
_SHORTEST = 1e-6

_Native = Callable[[float | None], Task]


def _is_native(value: Any) -> bool:
    """Return whether what is at the address of ProtoLink's card is one, and not an A2A card.

    Agents of A2A 0.3 answer there too, with the card that they have.

    Raises:
        ModelError: It is neither.
    """
    if isinstance(value, Mapping) and "defaultInputModes" in value:  # never in ProtoLink's
        return False
    AgentCard.from_dict(value)
    return True


_NATIVE_CARD_REQUEST = attrs.evolve(AGENT_CARD_REQUEST, response_parser=_is_native)


class Selection:
    """Tasks for agents of both protocols; any number of threads may share it.

    Threads that ask at once how an agent is spoken to make one of them find out. No lock is held
    while anything is sent.

    Args:
        transport: Carries the calls of both protocols.
        allow_cross_origin: Follow an A2A card to another origin.
    """

    def __init__(self, transport: Transport, *, allow_cross_origin: bool) -> None:
        self.bridge = Bridge(transport, allow_cross_origin=allow_cross_origin)
        self.allow_cross_origin = allow_cross_origin
        self._transport = transport
        self._begin_process()

    def _begin_process(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._flights: dict[str, Flight[Choice]] = {}

    def viewed(self, transport: ViewedTransport) -> Selection:
        """Return the same for a view: with its options, and sharing what is known.

        Args:
            transport: The view's.
        """
        view = Selection(cast(Transport, transport), allow_cross_origin=self.allow_cross_origin)
        view.bridge.remember_in(self.bridge.memory)
        return view

    # --- what a client asks ------------------------------------------------------------------

    def send_task(
        self,
        agent_url: str,
        task: Task,
        *,
        is_a2a: bool,
        timeout: float | None,
        cancel: CancelToken | None,
        idempotency_key: str | None,
        native: _Native,
    ) -> Task:
        """Submit a task in the agent's protocol.

        Args:
            agent_url: The agent's address.
            task: The task.
            is_a2a: Whether it must be A2A.
            timeout: Budget in seconds; None for the transport's.
            cancel: Token that ends the call.
            idempotency_key: Given by the caller, or None.
            native: Submits it to a ProtoLink agent, within a timeout.

        Raises:
            A2AClientError: The agent cannot be called by A2A, or not with what is given.
        """
        budget = self._budget(timeout, cancel)
        if is_a2a:
            _refuse_key(agent_url, idempotency_key)
            return self.bridge.send(agent_url, task, budget)
        choice, left = self._choice("send_task", agent_url, timeout, budget)
        if choice.target is not None:
            _refuse_key(agent_url, idempotency_key)
            return self.bridge.send(agent_url, task, budget, choice.target)
        # What an A2A address of this agent called an earlier task of this id is no more meant.
        self.bridge.memory.forget_task(self.bridge.address(agent_url), task.id)
        return native(left)

    def cancel_task(
        self,
        agent_url: str,
        task_id: str,
        *,
        reason: str | None,
        metadata: Mapping[str, Any] | None,
        is_a2a: bool,
        timeout: float | None,
        cancel: CancelToken | None,
        native: _Native,
    ) -> Task:
        """Cancel a task in the protocol in which it was sent.

        Args:
            agent_url: The agent's address.
            task_id: The task's id.
            reason: Why.
            metadata: Goes with the request.
            is_a2a: Whether it must be A2A.
            timeout: Budget in seconds; None for the transport's.
            cancel: Token that ends the call.
            native: Asks a ProtoLink agent, within a timeout.

        Raises:
            A2AClientError: The agent speaks A2A only, and it is not known what it calls the task.
        """
        budget, bridge = self._budget(timeout, cancel), self.bridge
        base = bridge.address(agent_url)
        if is_a2a or bridge.memory.task(base, task_id) is not None:
            return bridge.cancel(agent_url, task_id, budget, reason=reason, metadata=metadata)
        choice, left = self._choice("cancel_task", agent_url, timeout, budget)
        if choice.target is not None:
            raise bridge.unknown_task(base, task_id)
        return native(left)

    def before_stream(
        self, agent_url: str, timeout: float | None, cancel: CancelToken | None
    ) -> float | None:
        """Return what is left for a stream from an agent, once it is known to speak ProtoLink.

        Args:
            agent_url: The agent's address.
            timeout: Seconds to the end of the stream; None for no bound.
            cancel: Token that ends the call.

        Raises:
            StreamingNotSupportedError: It speaks A2A.
        """
        budget = self._budget(timeout, cancel)
        choice, left = self._choice("send_task_streaming", agent_url, timeout, budget)
        if choice.target is not None:
            raise StreamingNotSupportedError(
                f"send_task_streaming to {agent_url}: the agent speaks A2A, where a task is sent "
                "and not streamed. A2AClient(url).stream_message(...) streams from it",
                url=agent_url,
            )
        return None if timeout is None else left

    def card(
        self, agent_url: str, timeout: float | None, cancel: CancelToken | None
    ) -> dict[str, Any]:
        """Return an agent's A2A card as it was read, if the agent can be called by it."""
        return self.bridge.discover(agent_url, self._budget(timeout, cancel)).card.raw

    def _budget(self, timeout: float | None, cancel: CancelToken | None) -> Budget:
        return Budget.of(timeout, self._transport.timeout, cancel)

    # --- the choice --------------------------------------------------------------------------

    def _choice(
        self, name: str, agent_url: str, timeout: float | None, budget: Budget
    ) -> tuple[Choice, float | None]:
        """Return how an agent is spoken to, and the timeout that is left."""
        base = self.bridge.address(agent_url)
        known = self.bridge.memory.choice(base)
        if known is not None:
            return known, timeout
        choice = self._asked(name, agent_url, base, budget)
        left = budget.remaining()
        return choice, left if left == math.inf else max(left, _SHORTEST)

    def _asked(self, name: str, agent_url: str, base: str, budget: Budget) -> Choice:
        """Return what is found out by this thread or by another."""
        if self._pid != os.getpid():
            self._begin_process()  # the parent's threads did not come along
        while True:
            # Around the lock, so that an interrupt at any line lands what was begun.
            mine: Flight[Choice] | None = None
            try:
                with self._lock:
                    known, flight = self.bridge.memory.choice(base), self._flights.get(base)
                    if known is not None:
                        return known
                    if flight is None:
                        mine = flight = self._flights[base] = Flight()
                if mine is not None:
                    return self._fly(mine, agent_url, base, budget)
            finally:
                if mine is not None:
                    self._flights.pop(base, None)
                    mine.land()
            flight.wait(f"{name} to {base}", base, budget)
            if flight.error is not None:
                # Each thread its own: a shared one would collect the tracebacks of all.
                raise copy.copy(flight.error) from flight.error
            if flight.found is not None:
                return flight.found

    def _fly(self, flight: Flight[Choice], agent_url: str, base: str, budget: Budget) -> Choice:
        try:
            choice, max_age = self._found(agent_url, base, budget)
        except (TransportError, A2AClientError) as error:
            if budget.remaining() > 0:  # else only this thread's time is over
                flight.error = error
            raise
        self.bridge.memory.keep_choice(base, choice, max_age)
        flight.found = choice
        return choice

    def _found(self, agent_url: str, base: str, budget: Budget) -> tuple[Choice, float | None]:
        """Ask the agent, and say for how long its answer is good."""
        try:
            is_native: bool = self._transport.send(
                _NATIVE_CARD_REQUEST,
                agent_url,
                timeout=max(budget.remaining(), _SHORTEST),
                cancel=budget.cancel,
            )
        except TransportRemoteError as error:
            if error.status_code not in Bridge.NOT_THERE:
                raise
        else:
            if is_native:
                return Choice(), None
        try:
            found = self.bridge.discover(agent_url, budget)
        except A2AClientError as error:
            raise A2AClientError(
                f"{error}; nor is there a ProtoLink card at {base}{AGENT_CARD_REQUEST.path}"
            ) from error
        _log.info("%s has no ProtoLink card: it is called by A2A at %s", base, found.target.url)
        return Choice(found.target), found.max_age


def _refuse_key(agent_url: str, idempotency_key: str | None) -> None:
    if idempotency_key is not None:
        raise A2AClientError(
            f"send_task to {agent_url}: an A2A agent does not recognise a submission by a key, so "
            "idempotency_key cannot hold what it promises: leave it out"
        )
