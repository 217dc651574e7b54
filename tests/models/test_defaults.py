"""What the models are where nothing was given, and that no two objects share it."""

from __future__ import annotations

from typing import Any

import pytest

from protolink_sync.models import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Artifact,
    ClientRequestSpec,
    EndpointSpec,
    HistoryCompactionRequest,
    HistoryCompactionResult,
    LLMMessage,
    Message,
    Part,
    RouteDecision,
    RunEvent,
    StateOperationRequest,
    StateOperationResult,
    StateStoreReport,
    Task,
    TaskCancellationRequest,
    TaskState,
    ToolCall,
    ToolOutput,
)

MADE = object()  # another one, or a later one, for each object

# What has to be given, then what may be given by position, in its order.
FIELDS: dict[type, tuple[dict[str, Any], dict[str, Any]]] = {
    Artifact: (
        {},
        {
            "id": MADE,
            "parts": [],
            "metadata": {},
            "timestamp": MADE,
            "kind": "result",
            "name": None,
            "uri": None,
            "media_type": None,
            "action_id": None,
        },
    ),
    TaskCancellationRequest: ({"id": "t"}, {"reason": None, "metadata": {}}),
    AgentCapabilities: (
        {},
        {
            "streaming": False,
            "push_notifications": False,
            "state_transition_history": False,
            "has_llm": False,
            "max_concurrency": 1,
            "message_batching": False,
            "tool_calling": False,
            "multi_step_reasoning": False,
            "timeout_support": False,
            "delegation": True,
            "rag": False,
            "code_execution": False,
            "supports_inference": None,
        },
    ),
    AgentCard: (
        {"name": "n", "description": "d", "url": "http://h"},
        {
            "transport": "http",
            "version": "1.0.0",
            "protocol_version": "0.8.3",
            "capabilities": AgentCapabilities(),
            "skills": [],
            "input_formats": ["text/plain"],
            "output_formats": ["text/plain"],
            "security_schemes": {},
            "role": "worker",
            "tags": [],
            "interfaces": [],
        },
    ),
    AgentInterface: ({"url": "u"}, {"transport": "http", "protocol_version": "0.8.3"}),
    AgentSkill: (
        {"id": "s"},
        {"description": "", "input_schema": {}, "output_schema": {}, "tags": [], "examples": []},
    ),
    HistoryCompactionRequest: (
        {},
        {
            "strategy": "recent",
            "max_messages": 20,
            "max_tokens": 4000,
            "preserve_recent": 6,
            "summary_max_tokens": 512,
            "session_id": None,
            "metadata": None,
        },
    ),
    HistoryCompactionResult: (
        {},
        {
            "strategy": "recent",
            "before_messages": 0,
            "after_messages": 0,
            "removed_messages": 0,
            "before_tokens": 0,
            "after_tokens": 0,
            "summary_created": False,
        },
    ),
    EndpointSpec: (
        {"name": "n", "path": "/p", "method": "GET", "handler": len},
        {
            "content_type": "json",
            "streaming": False,
            "mode": "request_response",
            "request_parser": None,
            "request_source": "none",
        },
    ),
    RunEvent: (
        {},
        {
            "type": "run.event",
            "run_id": None,
            "task_id": None,
            "agent_name": None,
            "sequence": None,
            "step": None,
            "span_id": None,
            "parent_span_id": None,
            "action_id": None,
            "parent_action_id": None,
            "delegation_id": None,
            "severity": "info",
            "summary": None,
            "payload": {},
            "final": False,
            "metadata": {},
            "event_id": MADE,
            "version": "1.0",
            "timestamp": MADE,
        },
    ),
    LLMMessage: (
        {"role": "user", "content": "x"},
        {
            "name": None,
            "metadata": {},
            "id": MADE,
            "created_at": MADE,
            "tool_calls": {},
            "tool_name": None,
        },
    ),
    Message: ({}, {"id": MADE, "role": "user", "parts": [], "timestamp": MADE}),
    Part: ({"type": "text"}, {"content": None}),
    ClientRequestSpec: (
        {"name": "n", "path": "/p", "method": "GET"},
        {
            "response_parser": None,
            "request_source": "body",
            "content_type": None,
            "accept": None,
            "channel": "default",
            "idempotent": False,
            "headers": None,
            "allow_retries": True,
        },
    ),
    StateOperationRequest: (
        {},
        {
            "session_id": None,
            "stores": (),
            "include_data": False,
            "strategy": "tokens",
            "max_messages": 20,
            "max_tokens": 4000,
            "preserve_recent": 6,
            "summary_max_tokens": 512,
            "metadata": {},
        },
    ),
    StateOperationResult: (
        {},
        {
            "operation": "describe",
            "session_id": None,
            "stores": (),
            "cleared": (),
            "compacted": (),
            "missing": (),
            "errors": (),
            "metadata": {},
        },
    ),
    StateStoreReport: (
        {},
        {
            "name": "unknown",
            "enabled": False,
            "exists": False,
            "item_count": None,
            "message_count": None,
            "cleared": False,
            "compacted": False,
            "data": None,
            "metadata": {},
            "error": None,
        },
    ),
    Task: (
        {},
        {
            "id": MADE,
            "state": TaskState.SUBMITTED,
            "messages": [],
            "artifacts": [],
            "metadata": {},
            "flow_state": {},
            "created_at": MADE,
        },
    ),
    RouteDecision: ({"route_key": "r"}, {"reason": None, "confidence": None, "metadata": {}}),
    ToolCall: ({"tool_name": "t"}, {"args": {}, "call_id": MADE}),
    ToolOutput: ({}, {"call_id": MADE, "result": None, "error": None}),
}
WITHOUT_EXTRA = {EndpointSpec, ClientRequestSpec}
EACH = pytest.mark.parametrize("kind", FIELDS, ids=lambda kind: kind.__name__)


@EACH
def test_what_is_not_given_is_as_documented(kind):
    needed, optional = FIELDS[kind]

    made = kind(*needed.values())

    for name, expected in {**needed, **optional}.items():
        value = getattr(made, name)
        if expected is MADE:
            assert value
        else:
            assert value == expected, name
            assert isinstance(value, type(expected)), name


@EACH
def test_two_objects_share_nothing_that_can_change(kind):
    needed, optional = FIELDS[kind]
    one, other = kind(*needed.values()), kind(*needed.values())

    for name, expected in optional.items():
        if isinstance(expected, (list, dict, AgentCapabilities)):
            assert getattr(one, name) is not getattr(other, name), name
    if kind not in WITHOUT_EXTRA:
        assert one.extra == other.extra == {}
        assert one.extra is not other.extra


@EACH
def test_documented_fields_are_positional_and_ours_are_not(kind):
    needed, optional = FIELDS[kind]
    values = [*needed.values()]
    values += [getattr(kind(*values), name) for name in optional]

    made = kind(*values)

    assert [getattr(made, name) for name in (*needed, *optional)] == values
    with pytest.raises(TypeError, match="positional"):
        kind(*values, {})
    if kind not in WITHOUT_EXTRA:
        assert kind(*values, extra={"a": 1}).extra == {"a": 1}


@EACH
def test_what_is_made_for_an_object_is_its_own(kind):
    needed, optional = FIELDS[kind]
    one, other = kind(*needed.values()), kind(*needed.values())

    for name in ("id", "event_id", "call_id"):
        if optional.get(name) is MADE:
            assert getattr(one, name) != getattr(other, name)


@EACH
def test_objects_compare_by_their_fields(kind):
    needed, optional = FIELDS[kind]
    made = kind(*needed.values())
    given = {name: getattr(made, name) for name in optional}

    assert kind(**needed, **given) == made
    if kind not in WITHOUT_EXTRA:
        assert kind(**needed, **given, extra={"a": 1}) != made
