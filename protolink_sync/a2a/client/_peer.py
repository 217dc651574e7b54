"""One agent: its card, its address and dialect, and the probing where it has no card."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import attrs

from protolink_sync._kept_errors import copied
from protolink_sync.a2a.client._budget import Budget
from protolink_sync.a2a.client._calls import Calls, Settings
from protolink_sync.a2a.client._discovery import Discovery, Fetched, Target
from protolink_sync.a2a.client._operations import Operation
from protolink_sync.a2a.client._reader import Reader
from protolink_sync.a2a.wire import AgentCard, Dialect, WireDialect, dialect_of, jsonrpc
from protolink_sync.errors import (
    A2AClientError,
    A2ARpcError,
    AuthenticationError,
    ModelError,
    TransportConnectionError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.streaming import EventSource

__all__ = ["Peer", "read_card"]

_log = logging.getLogger("protolink_sync.a2a")

_Result = TypeVar("_Result")
_Stream = TypeVar("_Stream")

# This status says, like two JSON-RPC errors, that another dialect may be understood (B85).
_NOT_UNDERSTOOD = 400
# A JSON-RPC error with that status counts if it says that no method was carried out.
_BEFORE_THE_METHOD = (-32700, -32600, -32601, -32009)


class Peer:
    """One agent, as its clients use it.

    Args:
        base_url: Its address, without a slash at its end.
        card_url: Address of its card.
        calls: Carries the requests.
        settings: What each call takes when it starts.
        pinned: The only dialect to speak; None for any.
    """

    def __init__(
        self,
        base_url: str,
        card_url: str,
        calls: Calls,
        settings: Settings,
        pinned: WireDialect | None,
    ) -> None:
        self.base_url = base_url
        self.settings = settings
        self.discovery = Discovery(base_url, self._fetch)
        self._card_url = card_url
        self._calls = calls
        self._pinned = pinned
        self._begin_process()

    def _begin_process(self) -> None:
        self._pid = os.getpid()
        self._own_lock = threading.RLock()

    @property
    def _lock(self) -> threading.RLock:
        # As in Discovery.
        if self._pid != os.getpid():
            self._begin_process()
        return self._own_lock

    def set(self, **changes: Any) -> None:
        """Change settings, for later calls."""
        with self._lock:
            self.settings = attrs.evolve(self.settings, **changes)

    # --- the card ----------------------------------------------------------------------------

    def card(self, budget: Budget, *, force: bool) -> AgentCard:
        """Return the card, shared by all who ask."""
        return self.discovery.card(budget, force=force)

    def held_card(self, budget: Budget) -> AgentCard | None:
        """Return the card, asking for it if nobody has; None if there is none."""
        return self._target(budget, self.settings).card

    def _fetch(self, etag: str | None, budget: Budget, of_caller: list[int]) -> Fetched:
        version = "" if self._pinned is WireDialect.V0_3 else WireDialect.V1_0.value
        reply = self._calls.card(
            self._card_url, self.settings, budget, of_caller, etag=etag, version=version
        )
        if reply.value is None and reply.etag is not None and etag is not None:
            return Fetched(None, reply.etag)
        return Fetched(read_card(reply.value, self._card_url), reply.etag)

    # --- calls -------------------------------------------------------------------------------

    def run(
        self,
        operation: Operation,
        params_of: Callable[[Dialect, str], Any],
        budget: Budget,
    ) -> Any:
        """Carry out an operation.

        Args:
            operation: The operation.
            params_of: Makes its params in a dialect, for a tenant.
            budget: Of the call, the card included.
        """
        self.check(params_of)
        settings = self.settings

        def act(target: Target, dialect: Dialect) -> Any:
            params = params_of(dialect, target.tenant)
            return self._calls.call(operation, dialect, target, params, settings, budget)

        return self._in_its_dialect(act, budget, settings)

    def open(
        self,
        operation: Operation,
        params_of: Callable[[Dialect, str], Any],
        reader_of: Callable[[Dialect], Reader],
        make: Callable[[EventSource], _Stream],
        budget: Budget,
        idle_timeout: float,
    ) -> _Stream:
        """Open a stream; without a known dialect the first event decides.

        Args:
            operation: The operation.
            params_of: Makes its params in a dialect, for a tenant.
            reader_of: Makes what reads the results in a dialect.
            make: Makes the stream.
            budget: From now to the end of the stream, the card included.
            idle_timeout: Seconds from one event to the next.
        """
        settings = self.settings

        def act(target: Target, dialect: Dialect) -> _Stream:
            return self._calls.stream(
                operation,
                dialect,
                target,
                params_of(dialect, target.tenant),
                settings,
                budget,
                reader_of(dialect),
                make,
                idle_timeout=idle_timeout,
                primed=target.dialect is None,
            )

        # What is bounded to the first event begins here, so the card is part of it.
        return self._in_its_dialect(act, budget.within(idle_timeout), settings)

    def verbatim(
        self, method: str, params: Any, dialect: WireDialect | None, budget: Budget
    ) -> Any:
        """Call any method at the address in use, which is :attr:`base_url` before any other."""
        known = self.discovery.known_target()
        target = known or Target(self.base_url)
        headers = dialect_of(dialect).headers() if dialect is WireDialect.V1_0 else {}
        return self._calls.verbatim(method, params, headers, target, self.settings, budget)

    def check(self, params_of: Callable[[Dialect, str], Any]) -> None:
        """Say what is wrong with the params before the card is asked for."""
        if self.discovery.known_target() is None:
            params_of(dialect_of(WireDialect.V1_0), "")

    def _target(self, budget: Budget, settings: Settings) -> Target:
        target = self.discovery.target(
            budget, pinned=self._pinned, allow_cross_origin=settings.allow_cross_origin
        )
        failure = self.discovery.failure
        if (
            target.card is None
            and isinstance(failure, AuthenticationError)
            and not settings.access.is_given
        ):
            raise copied(failure)
        return target

    def _in_its_dialect(
        self,
        act: Callable[[Target, Dialect], _Result],
        budget: Budget,
        settings: Settings,
    ) -> _Result:
        target = self._target(budget, settings)
        try:
            if target.dialect is not None:
                return act(target, dialect_of(target.dialect))
            return self._probed(act, target)
        except (TransportConnectionError, TransportTimeoutError):
            self.discovery.unanswered()
            raise

    def _probed(self, act: Callable[[Target, Dialect], _Result], target: Target) -> _Result:
        """Call an agent without a card: in 1.0, and in 0.3 if it says not to understand that."""
        used = WireDialect.V1_0
        try:
            result = act(target, dialect_of(used))
        except (A2ARpcError, TransportRemoteError) as error:
            if not _is_other_dialect(error):
                raise
            used = WireDialect.V0_3
            result = act(target, dialect_of(used))
        self.discovery.learn(used)
        return result


def read_card(value: Any, url: str) -> AgentCard:
    """Return the card in an answer.

    Args:
        value: The answer, decoded.
        url: Where it was asked for.

    Raises:
        A2AClientError: It is no card, or one that says nothing of where the agent is called.
    """
    try:
        card = AgentCard.from_dict(value)
    except ModelError as error:
        raise A2AClientError(
            f"fetch_agent_card from {url}: what is there is no card: {error}"
        ) from error
    if not card.is_usable:
        raise A2AClientError(
            f"fetch_agent_card from {url}: what is there does not say where or how the agent is "
            "called"
        )
    return card


def _is_other_dialect(error: A2ARpcError | TransportRemoteError) -> bool:
    if isinstance(error, TransportRemoteError):
        told = error.__cause__
        is_silent = not isinstance(told, A2ARpcError) or told.code in _BEFORE_THE_METHOD
        return error.status_code == _NOT_UNDERSTOOD and is_silent
    return jsonrpc.is_other_dialect(error)
