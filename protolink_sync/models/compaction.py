"""Shortening the history of an agent's language model: the request and its report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import attrs

from protolink_sync.models._members import JSONObject
from protolink_sync.models._readers import text
from protolink_sync.models._showing import Shown
from protolink_sync.types import HistoryCompactionStrategy

__all__ = ["HistoryCompactionRequest", "HistoryCompactionResult", "check_strategy"]

_STRATEGIES = get_args(HistoryCompactionStrategy)


def check_strategy(_: Any, field: attrs.Attribute[Any], value: Any) -> None:
    """Refuse a strategy that no peer knows: over HTTP its answer would be a bare 500."""
    if value not in _STRATEGIES:
        raise ValueError(f"unknown {field.name} {value!r}; known: {', '.join(_STRATEGIES)}")


@attrs.frozen(repr=False, eq=False)
class HistoryCompactionRequest(JSONObject):
    """Ask an agent to shorten the history of its language model.

    Args:
        strategy: ``recent`` keeps the newest messages, ``tokens`` as many as fit, ``summary``
            has the model sum up the older ones.
        max_messages: How many messages ``recent`` keeps.
        max_tokens: How many tokens ``tokens`` keeps, as estimated.
        preserve_recent: How many of the newest messages are kept in any case.
        summary_max_tokens: How long a summary may be.
        session_id: The conversation, where the agent keeps several.
        metadata: Anything else; None is sent as an empty object.
        extra: Members this library does not know; written back as they are.

    Raises:
        ValueError: The strategy is unknown.

    Source:
        ProtoLink, Models reference, "HistoryCompactionRequest"; wire/protolink.md 14.
    """

    strategy: HistoryCompactionStrategy = attrs.field(default="recent", validator=check_strategy)
    max_messages: int = 20
    max_tokens: int = 4000
    preserve_recent: int = 6
    summary_max_tokens: int = 512
    session_id: str | None = None
    metadata: dict[str, Any] | None = None
    extra: dict[str, Any] = attrs.field(factory=dict, kw_only=True)

    def _json_members(self) -> dict[str, Any]:
        return {**super()._json_members(), "metadata": self.metadata or {}}


@attrs.frozen(repr=False, eq=False)
class HistoryCompactionResult(Shown, JSONObject):
    """Tell what shortening a history did.

    Args:
        strategy: How it was done; another word of a peer is kept.
        before_messages: Messages before.
        after_messages: Messages after.
        removed_messages: Messages taken out.
        before_tokens: Tokens before, as estimated.
        after_tokens: Tokens after.
        summary_created: A summary was written.
        extra: Members this library does not know; written back as they are.

    Source:
        ProtoLink, Models reference, "HistoryCompactionResult"; wire/protolink.md 14.
    """

    strategy: HistoryCompactionStrategy | str = attrs.field(
        default="recent", metadata={"read": text}
    )
    before_messages: int = 0
    after_messages: int = 0
    removed_messages: int = 0
    before_tokens: int = 0
    after_tokens: int = 0
    summary_created: bool = False
    extra: dict[str, Any] = attrs.field(factory=dict, kw_only=True)

    @property
    def changed(self) -> bool:
        """True if messages were removed or a summary was written."""
        return self.removed_messages > 0 or self.summary_created

    def _after_reading(self, data: Mapping[str, Any]) -> None:
        if self.extra.get("changed") is self.changed:
            del self.extra["changed"]

    def _json_members(self) -> dict[str, Any]:
        members = super()._json_members()
        members.setdefault("changed", self.changed)
        return members
