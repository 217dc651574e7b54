"""Describing, resetting and compacting the state of an agent: the request and its report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from protolink_sync.models._members import JSONObject
from protolink_sync.models._readers import text
from protolink_sync.models._showing import Shown
from protolink_sync.models.compaction import check_strategy
from protolink_sync.types import HistoryCompactionStrategy, StateOperation

__all__ = ["StateOperationRequest", "StateOperationResult", "StateStoreReport"]


def _at_least(least: int) -> Callable[[Any, attrs.Attribute[int], Any], None]:
    def check(_: Any, field: attrs.Attribute[int], value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{field.name} is a {type(value).__name__}, must be an int")
        if value < least:
            raise ValueError(f"{field.name} is {value}, must be at least {least}")

    return check


def _as_names(stores: str | Iterable[str] | None) -> tuple[str, ...]:
    if isinstance(stores, str):
        stores = (stores,)
    return tuple(str(store) for store in stores or () if str(store))


@attrs.frozen(repr=False, eq=False)
class StateOperationRequest(JSONObject):
    """Ask an agent about its state, or to forget or shorten it.

    Args:
        session_id: The conversation, where state is kept by conversation.
        stores: Which stores: ``conversation``, ``tools``, ``task``, ``flow``. One name or
            several; none means what the operation usually touches.
        include_data: Describe with the data itself.
        strategy: How to compact; see :class:`HistoryCompactionRequest`, also for the next four.
        max_messages: At least 1.
        max_tokens: At least 1.
        preserve_recent: At least 0.
        summary_max_tokens: At least 1.
        metadata: Anything else.
        extra: Members this library does not know; written back as they are.

    Raises:
        ValueError: The strategy is unknown or a number too small.

    Source:
        wire/protolink.md 14, "State request".
    """

    session_id: str | None = None
    stores: tuple[str, ...] = attrs.field(default=(), converter=_as_names)
    include_data: bool = False
    strategy: HistoryCompactionStrategy = attrs.field(default="tokens", validator=check_strategy)
    max_messages: int = attrs.field(default=20, validator=_at_least(1))
    max_tokens: int = attrs.field(default=4000, validator=_at_least(1))
    preserve_recent: int = attrs.field(default=6, validator=_at_least(0))
    summary_max_tokens: int = attrs.field(default=512, validator=_at_least(1))
    metadata: dict[str, Any] = attrs.field(factory=dict)
    extra: dict[str, Any] = attrs.field(factory=dict, kw_only=True)

    @classmethod
    def _before_reading(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        stores = data.get("stores")
        return {**data, "stores": [stores]} if isinstance(stores, str) else data


@attrs.frozen(repr=False, eq=False)
class StateStoreReport(JSONObject):
    """Tell about one store of an agent's state.

    Args:
        name: Which store.
        enabled: The agent keeps it.
        exists: There is something in it.
        item_count: How many items.
        message_count: How many messages.
        cleared: The operation emptied it.
        compacted: The operation shortened it.
        data: What is in it, if that was asked for.
        metadata: Anything else.
        error: What went wrong with it.
        extra: Members this library does not know; written back as they are.

    Source:
        wire/protolink.md 14, "Store report".
    """

    name: str = "unknown"
    enabled: bool = False
    exists: bool = False
    item_count: int | None = None
    message_count: int | None = None
    cleared: bool = False
    compacted: bool = False
    data: Any = None
    metadata: dict[str, Any] = attrs.field(factory=dict)
    error: str | None = None
    extra: dict[str, Any] = attrs.field(factory=dict, kw_only=True)


@attrs.frozen(repr=False, eq=False)
class StateOperationResult(Shown, JSONObject):
    """Tell what a state operation found or did. Faults stand inside: see ``errors``, ``missing``.

    Args:
        operation: ``describe``, ``reset`` or ``compact``; another word of a peer is kept.
        session_id: The conversation.
        stores: One report for each store; an empty object of a peer reads as none.
        cleared: Stores that were emptied.
        compacted: Stores that were shortened.
        missing: Stores that are not there or not enabled.
        errors: What went wrong, as objects with ``store`` and ``message``.
        metadata: Anything else.
        extra: Members this library does not know; written back as they are.

    Source:
        wire/protolink.md 14, "State request", "Result".
    """

    operation: StateOperation | str = attrs.field(default="describe", metadata={"read": text})
    session_id: str | None = None
    stores: tuple[StateStoreReport, ...] = ()
    cleared: tuple[str, ...] = ()
    compacted: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    errors: tuple[dict[str, Any], ...] = ()
    metadata: dict[str, Any] = attrs.field(factory=dict)
    extra: dict[str, Any] = attrs.field(factory=dict, kw_only=True)

    @classmethod
    def _before_reading(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        # Peers whose language has one type for lists and objects write "no stores" as {}.
        return {**data, "stores": []} if data.get("stores") == {} else data
