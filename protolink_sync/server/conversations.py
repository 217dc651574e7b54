"""The conversations an agent with a model has had, as its state endpoints report them.

They are kept in memory, newest first to stay; a session of one principal is not another's.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

from protolink_sync.models import (
    ConversationHistory,
    HistoryCompactionRequest,
    HistoryCompactionResult,
    LLMMessage,
    StateOperationRequest,
    StateOperationResult,
    StateStoreReport,
)
from protolink_sync.server.refusal import RefusedError

__all__ = ["Conversations"]

_STORE = "conversation"
# A session that nobody named is that of one task: there is one for each inference.
_MOST_SESSIONS = 256
_MOST_MESSAGES = 200
_MOST_CHARACTERS = 4 * 1024 * 1024  # of one session
_NOT_ENABLED = "state store is not enabled"


class Conversations:
    """The conversations of one agent, by principal and session."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._sessions: OrderedDict[tuple[Hashable, str], ConversationHistory] = OrderedDict()

    def add(self, principal: Hashable, session_id: str, asked: str, answered: str) -> None:
        """Note one exchange; the oldest messages and sessions make room."""
        key = (principal, session_id)
        with self._lock:
            history = self._sessions.setdefault(key, ConversationHistory())
            self._sessions.move_to_end(key)
            history.add_user(asked[:_MOST_CHARACTERS])
            history.add_assistant(answered[:_MOST_CHARACTERS])
            messages = list(history)[-_MOST_MESSAGES:]
            self._keep(history, _newest(messages, _characters, _MOST_CHARACTERS, 1))
            while len(self._sessions) > _MOST_SESSIONS:
                self._sessions.popitem(last=False)

    # ---- the endpoints ----

    def describe(self, request: StateOperationRequest, who: Hashable) -> StateOperationResult:
        """Tell what is kept, with the messages if the request asks for them."""
        with self._lock:
            reports = [
                self._report(who, request.session_id, include_data=request.include_data)
                if name == _STORE
                else StateStoreReport(name, error=_NOT_ENABLED)
                for name in request.stores or (_STORE,)
            ]
        return StateOperationResult(
            "describe",
            request.session_id,
            tuple(reports),
            missing=tuple(report.name for report in reports if not report.enabled),
        )

    def reset(self, request: StateOperationRequest, who: Hashable) -> StateOperationResult:
        """Forget a session; without one, all of the caller's."""
        reports, missing = [], []
        for name in request.stores or (_STORE,):
            if name != _STORE:
                missing.append(name)
                reports.append(StateStoreReport(name, error=_NOT_ENABLED))
                continue
            with self._lock:
                before = self._report(who, request.session_id)
                for key in self._keys(who, request.session_id):
                    del self._sessions[key]
                after = self._report(who, request.session_id)
            reports.append(_changed(before, after, cleared=True))
        cleared = (_STORE,) if len(missing) < len(reports) else ()
        return StateOperationResult(
            "reset", request.session_id, tuple(reports), cleared, missing=tuple(missing)
        )

    def compact(self, request: StateOperationRequest, who: Hashable) -> StateOperationResult:
        """Shorten a session."""
        session_id = request.session_id
        with self._lock:
            before = self._report(who, session_id)
            if session_id is None:
                return _compact_error("compact_state requires session_id", None)
            if not before.exists:
                error = "conversation session not found"
                report = StateStoreReport(_STORE, True, error=error)
                return StateOperationResult("compact", session_id, (report,), missing=(_STORE,))
            try:
                done = self._shorten(self._sessions[who, session_id], request)
            except RefusedError as error:
                return _compact_error(error.message, session_id)
            report = _changed(
                before, self._report(who, session_id), compacted=True, compaction=done.to_dict()
            )
        return StateOperationResult("compact", session_id, (report,), compacted=(_STORE,))

    def compact_history(
        self, request: HistoryCompactionRequest, who: Hashable
    ) -> HistoryCompactionResult:
        """Shorten a session; without one, the caller's newest.

        Raises:
            RefusedError: The strategy needs a model that sums up.
        """
        with self._lock:
            keys = self._keys(who, request.session_id)
            history = self._sessions[keys[-1]] if keys else ConversationHistory()
            return self._shorten(history, request)

    # ---- under the lock ----

    def _keys(self, who: Hashable, session_id: str | None) -> list[tuple[Hashable, str]]:
        return [
            key
            for key in self._sessions
            if key[0] == who and (session_id is None or key[1] == session_id)
        ]

    def _report(
        self, who: Hashable, session_id: str | None, *, include_data: bool = False
    ) -> StateStoreReport:
        histories = [self._sessions[key] for key in self._keys(who, session_id)]
        if not histories:
            return StateStoreReport(_STORE, True, metadata={"session_scoped": True})
        messages = sum(map(len, histories))
        data: Any = None
        if include_data:
            data = [message for history in histories for message in history.to_list()]
        return StateStoreReport(
            _STORE,
            True,
            True,
            item_count=messages if session_id is not None else len(histories),
            message_count=messages,
            data=data,
            metadata={"session_scoped": True},
        )

    def _shorten(
        self,
        history: ConversationHistory,
        request: HistoryCompactionRequest | StateOperationRequest,
    ) -> HistoryCompactionResult:
        before = list(history)
        if request.strategy == "recent":
            kept = before[-max(request.max_messages, 1) :]
        elif request.strategy == "tokens":
            kept = _newest(before, _tokens, request.max_tokens, request.preserve_recent)
        else:
            raise RefusedError(
                501, "this agent does not sum up: use the strategy recent or tokens", "ValueError"
            )
        self._keep(history, kept)
        return HistoryCompactionResult(
            request.strategy,
            len(before),
            len(kept),
            len(before) - len(kept),
            sum(map(_tokens, before)),
            sum(map(_tokens, kept)),
        )

    @staticmethod
    def _keep(history: ConversationHistory, messages: list[LLMMessage]) -> None:
        if len(messages) < len(history):
            history.replace(message.to_dict() for message in messages)


def _characters(message: LLMMessage) -> int:
    return len(message.content)


def _tokens(message: LLMMessage) -> int:
    """Estimate the tokens of a message: four characters each."""
    return (len(message.content) + 3) // 4


def _newest(messages: list[LLMMessage], size: Any, limit: int, least: int) -> list[LLMMessage]:
    """Return as many of the newest messages as fit, but not fewer than ``least``."""
    total, count = 0, 0
    for message in reversed(messages):
        total += size(message)
        if total > limit and count >= least:
            break
        count += 1
    return messages[len(messages) - count :]


def _changed(
    before: StateStoreReport,
    after: StateStoreReport,
    *,
    cleared: bool = False,
    compacted: bool = False,
    **more: Any,
) -> StateStoreReport:
    return StateStoreReport(
        _STORE,
        True,
        after.exists,
        after.item_count,
        after.message_count,
        cleared=cleared,
        compacted=compacted,
        metadata={"before": before.to_dict(), "after": after.to_dict(), **more},
    )


def _compact_error(message: str, session_id: str | None) -> StateOperationResult:
    report = StateStoreReport(_STORE, True, error=message)
    error = {"store": _STORE, "message": message}
    return StateOperationResult("compact", session_id, (report,), errors=(error,))
