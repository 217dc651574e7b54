"""The part of AgentClient about what an agent keeps: its model's history, its stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from protolink_sync._deadline import CancelToken
from protolink_sync.client._foundation import Foundation
from protolink_sync.models import (
    ClientRequestSpec,
    HistoryCompactionRequest,
    HistoryCompactionResult,
    StateOperationRequest,
    StateOperationResult,
)
from protolink_sync.specs import (
    COMPACT_HISTORY_REQUEST,
    COMPACT_STATE_REQUEST,
    DESCRIBE_STATE_REQUEST,
    RESET_STATE_REQUEST,
)
from protolink_sync.types import HistoryCompactionStrategy

__all__ = ["Keeping"]


class Keeping(Foundation):
    """Look at what an agent keeps, shorten it, delete it."""

    COMPACT_HISTORY_REQUEST: ClassVar[ClientRequestSpec] = COMPACT_HISTORY_REQUEST
    DESCRIBE_STATE_REQUEST: ClassVar[ClientRequestSpec] = DESCRIBE_STATE_REQUEST
    RESET_STATE_REQUEST: ClassVar[ClientRequestSpec] = RESET_STATE_REQUEST
    COMPACT_STATE_REQUEST: ClassVar[ClientRequestSpec] = COMPACT_STATE_REQUEST

    def compact_history(
        self,
        agent_url: str,
        *,
        strategy: HistoryCompactionStrategy = "recent",
        max_messages: int = 20,
        max_tokens: int = 4000,
        preserve_recent: int = 6,
        summary_max_tokens: int = 512,
        session_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> HistoryCompactionResult:
        """Have the agent shorten the history of its model, and return what that changed.

        Args:
            agent_url: Address of the agent.
            strategy: ``"recent"``, ``"tokens"`` or ``"summary"``.
            max_messages: Messages that ``recent`` keeps.
            max_tokens: Estimated tokens that ``tokens`` keeps.
            preserve_recent: Newest messages kept in any case.
            summary_max_tokens: Length of a summary.
            session_id: A stored conversation; None for the model's current one.
            metadata: Anything else for the request.
            timeout: Budget in seconds.
            cancel: Token that ends the waiting.
        """
        request = HistoryCompactionRequest(
            strategy=strategy,
            max_messages=max_messages,
            max_tokens=max_tokens,
            preserve_recent=preserve_recent,
            summary_max_tokens=summary_max_tokens,
            session_id=session_id,
            metadata=metadata,
        )
        result: HistoryCompactionResult = self._calls.send(
            COMPACT_HISTORY_REQUEST, agent_url, request, timeout=timeout, cancel=cancel
        )
        return result

    def describe_state(
        self,
        agent_url: str,
        *,
        session_id: str | None = None,
        stores: Sequence[str] | None = None,
        include_data: bool = False,
        metadata: dict[str, Any] | None = None,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> StateOperationResult:
        """Return what the agent keeps, without changing it.

        Args:
            agent_url: Address of the agent.
            session_id: One conversation; None for all.
            stores: Names of stores; None for the agent's default.
            include_data: Also return what is stored.
            metadata: Anything else for the request.
            timeout: Budget in seconds.
            cancel: Token that ends the waiting.
        """
        request = StateOperationRequest(
            session_id=session_id,
            stores=_names(stores),
            include_data=include_data,
            metadata=metadata or {},
        )
        return self._state(DESCRIBE_STATE_REQUEST, agent_url, request, timeout, cancel)

    def reset_state(
        self,
        agent_url: str,
        *,
        session_id: str | None = None,
        stores: Sequence[str] | None = None,
        metadata: dict[str, Any] | None = None,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> StateOperationResult:
        """Have the agent delete what it keeps. It is never retried, and nobody is asked first.

        Args:
            agent_url: Address of the agent.
            session_id: One conversation; without it the agent may delete all it keeps.
            stores: Names of stores; None for the agent's default.
            metadata: Anything else for the request.
            timeout: Budget in seconds.
            cancel: Token that ends the waiting.
        """
        request = StateOperationRequest(
            session_id=session_id,
            stores=_names(stores),
            metadata=metadata or {},
        )
        return self._state(RESET_STATE_REQUEST, agent_url, request, timeout, cancel)

    def compact_state(
        self,
        agent_url: str,
        *,
        session_id: str,
        strategy: HistoryCompactionStrategy = "tokens",
        max_messages: int = 20,
        max_tokens: int = 4000,
        preserve_recent: int = 6,
        summary_max_tokens: int = 512,
        metadata: dict[str, Any] | None = None,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> StateOperationResult:
        """Have the agent shorten one stored conversation.

        Args:
            agent_url: Address of the agent.
            session_id: The conversation.
            strategy: ``"recent"``, ``"tokens"`` or ``"summary"``.
            max_messages: Messages that ``recent`` keeps.
            max_tokens: Estimated tokens that ``tokens`` keeps.
            preserve_recent: Newest messages kept in any case.
            summary_max_tokens: Length of a summary.
            metadata: Anything else for the request.
            timeout: Budget in seconds.
            cancel: Token that ends the waiting.
        """
        request = StateOperationRequest(
            session_id=session_id,
            stores=("conversation",),
            strategy=strategy,
            max_messages=max_messages,
            max_tokens=max_tokens,
            preserve_recent=preserve_recent,
            summary_max_tokens=summary_max_tokens,
            metadata=metadata or {},
        )
        return self._state(COMPACT_STATE_REQUEST, agent_url, request, timeout, cancel)

    def _state(
        self,
        spec: ClientRequestSpec,
        agent_url: str,
        request: StateOperationRequest,
        timeout: float | None,
        cancel: CancelToken | None,
    ) -> StateOperationResult:
        result: StateOperationResult = self._calls.send(
            spec, agent_url, request, timeout=timeout, cancel=cancel
        )
        return result


def _names(stores: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of stores; one name may be given bare."""
    return (stores,) if isinstance(stores, str) else tuple(stores or ())
