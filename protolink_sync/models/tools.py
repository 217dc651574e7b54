"""Contents of parts that steer: a tool call, its output, a decision of a router."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from protolink_sync.models._converter import structure
from protolink_sync.models._ids import new_id
from protolink_sync.models._members import LazyExtra
from protolink_sync.models._readers import identifier, nullable_number

__all__ = ["USUAL_CONTENT", "RouteDecision", "ToolCall", "ToolOutput"]

# Other spellings of a decision's key that the peer reads, in its order.
_ROUTE_KEYS = ("route_key", "route", "key")


@attrs.define(repr=False, eq=False)
class ToolCall(LazyExtra):
    """Ask an agent to run one of its tools.

    Args:
        tool_name: Name of the tool.
        args: Its arguments by name.
        call_id: What the output will refer to; made if not given.
        extra: Members this library does not know; written back as they are.

    Source:
        wire/protolink.md 14, Part, "tool_call".
    """

    tool_name: str
    args: dict[str, Any] = attrs.field(factory=dict)
    call_id: str = attrs.field(factory=new_id, metadata={"read": identifier})


@attrs.define(repr=False, eq=False)
class ToolOutput(LazyExtra):
    """Tell what a tool call came to.

    Args:
        call_id: The ``call_id`` of the :class:`ToolCall`.
        result: What the tool returned.
        error: What went wrong, usually an object; None if nothing did.
        extra: Members this library does not know; written back as they are.

    Source:
        wire/protolink.md 14, Part, "tool_output".
    """

    call_id: str = attrs.field(factory=new_id, metadata={"read": identifier})
    result: Any = None
    error: Any = None


@attrs.define(repr=False, eq=False)
class RouteDecision(LazyExtra):
    """Tell a router where the flow goes on.

    Args:
        route_key: Key in the receiving router's map. The wire also knows the names ``route`` and
            ``key`` for it; they are read, and written back.
        reason: Why.
        confidence: From 0 to 1.
        metadata: Anything else.
        extra: Members this library does not know; written back as they are.

    Source:
        wire/protolink.md 14, Part, "route, decision".
    """

    route_key: str = attrs.field(metadata={"read": identifier})
    reason: str | None = None
    confidence: float | None = attrs.field(default=None, metadata={"read": nullable_number})
    metadata: dict[str, Any] = attrs.field(factory=dict)

    @classmethod
    def _before_reading(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        if data.get("route_key") is not None:
            return data
        for name in _ROUTE_KEYS:
            if data.get(name) is not None:
                return {**data, "route_key": data[name]}
        return {name: value for name, value in data.items() if name != "route_key"}


def _usual_call(value: dict[str, Any]) -> ToolCall:
    if len(value) == 3:
        name, args, call_id = value.get("tool_name"), value.get("args"), value.get("call_id")
        if type(name) is str and type(args) is dict and type(call_id) is str:
            return ToolCall(name, args, call_id)
    return structure(ToolCall, value)


def _usual_output(value: dict[str, Any]) -> ToolOutput:
    if len(value) == 3 and "result" in value and "error" in value:
        call_id = value.get("call_id")
        if type(call_id) is str:
            return ToolOutput(call_id, value["result"], value["error"])
    return structure(ToolOutput, value)


USUAL_CONTENT: dict[str, Callable[[dict[str, Any]], LazyExtra]] = {
    "tool_call": _usual_call,
    "tool_output": _usual_output,
    "route": RouteDecision.from_dict,
    "decision": RouteDecision.from_dict,
}
"""How the content of a part is read that has a class of its own, its usual form first."""
