"""LLMMessage: one message of the conversation with a language model."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

import attrs

from protolink_sync.models._ids import new_id
from protolink_sync.models._members import JSONObject, brief
from protolink_sync.models._readers import identifier, text
from protolink_sync.models._time import parse_datetime
from protolink_sync.types import LLMMessageRole

__all__ = ["LLMMessage"]


def _as_role(value: LLMMessageRole | str) -> LLMMessageRole:
    try:
        return LLMMessageRole(value)
    except ValueError:
        known = ", ".join(role.value for role in LLMMessageRole)
        raise ValueError(f"unknown role {value!r}; known: {known}") from None


def _read_role(value: Any, _: Any) -> LLMMessageRole:
    return _as_role(text(value))


def _read_moment(value: Any, _: Any) -> datetime:
    return parse_datetime(text(value))


@attrs.define(repr=False, eq=False)
class LLMMessage(JSONObject):
    """One message of the conversation with a language model.

    Args:
        role: Who speaks: a :class:`~protolink_sync.types.LLMMessageRole` or its text.
        content: What is said.
        name: Name of the tool or function.
        metadata: Anything about it.
        id: Identifier, made if not given.
        created_at: When it was made. Text that was read is written back as it was.
        tool_calls: Tool calls in the provider's form.
        tool_name: The tool that speaks.
        extra: Members this library does not know; written back as they are.

    Raises:
        ValueError: The role is unknown.

    Source:
        ProtoLink, Models reference, "LLMMessage"; wire/protolink.md 14.
    """

    role: LLMMessageRole = attrs.field(converter=_as_role, metadata={"read": _read_role})
    content: str
    name: str | None = None
    metadata: dict[str, Any] = attrs.field(factory=dict)
    id: str = attrs.field(factory=new_id, metadata={"read": identifier})
    created_at: datetime = attrs.field(
        factory=lambda: datetime.now(timezone.utc), metadata={"read": _read_moment}
    )
    tool_calls: dict[str, Any] = attrs.field(factory=dict)
    tool_name: str | None = None
    extra: dict[str, Any] = attrs.field(factory=dict, kw_only=True)
    # The moment that was read and its text, which may hold more than a datetime can.
    _read_as: tuple[datetime, str] | None = attrs.field(default=None, init=False, eq=False)

    def _after_reading(self, data: Mapping[str, Any]) -> None:
        if "created_at" in data:
            self._read_as = self.created_at, data["created_at"]

    def _json_members(self) -> dict[str, Any]:
        members = super()._json_members()
        if self._read_as is not None and self._read_as[0] == self.created_at:
            members["created_at"] = self._read_as[1]
        return members

    def __repr__(self) -> str:
        return f"LLMMessage(role={self.role.value!r}, content={brief(self.content)})"
