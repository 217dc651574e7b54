"""Ids and texts of peers that check neither: what is kept as it is, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from protolink_sync.errors import ModelError
from protolink_sync.models import (
    AgentSkill,
    Artifact,
    LLMMessage,
    Message,
    RouteDecision,
    RunEvent,
    Task,
    TaskCancellationRequest,
    ToolCall,
    ToolOutput,
)

# What has to be there besides, then the ids, then the texts that may be null.
MEMBERS: dict[type, tuple[dict[str, Any], str, str]] = {
    AgentSkill: ({}, "id", ""),
    Artifact: ({}, "id action_id", "timestamp kind"),
    LLMMessage: ({"role": "user", "content": "x"}, "id", ""),
    Message: ({}, "id", "role timestamp"),
    RouteDecision: ({}, "route_key", ""),
    RunEvent: (
        {},
        "run_id task_id span_id parent_span_id action_id parent_action_id delegation_id event_id",
        "type severity version timestamp",
    ),
    Task: ({}, "id", "created_at"),
    TaskCancellationRequest: ({}, "id", ""),
    ToolCall: ({"tool_name": "t"}, "call_id", ""),
    ToolOutput: ({}, "call_id", ""),
}
IDS = [(kind, name) for kind, (_, ids, _) in MEMBERS.items() for name in ids.split()]
TEXTS = [(kind, name) for kind, (_, _, texts) in MEMBERS.items() for name in texts.split()]


def read(kind: Any, name: str, value: Any) -> Any:
    return kind.from_dict({"id": "i", **MEMBERS[kind][0], name: value})


@pytest.mark.parametrize(("kind", "name"), IDS)
def test_an_id_may_be_any_scalar_and_nothing_else(kind, name):
    """A peer that counts its ids asks for the number that it gave."""
    assert read(kind, name, 5).to_dict()[name] == 5
    with pytest.raises(ModelError, match="expected a string or another scalar, found an array"):
        read(kind, name, ["i"])


@pytest.mark.parametrize(("kind", "name"), TEXTS)
def test_a_text_may_be_null_and_nothing_else(kind, name):
    assert read(kind, name, None).to_dict()[name] is None
    with pytest.raises(ModelError, match=r"expected a string or null, found a number \(5\)"):
        read(kind, name, 5)
