"""What the words of a task stream become as run events: each of them, and those nobody knows."""

from __future__ import annotations

import pytest

from protolink_sync.models import (
    AgentCard,
    AgentSkill,
    ConversationHistory,
    HistoryCompactionResult,
    LLMMessage,
    RunEvent,
    StateStoreReport,
)

STREAM = "task_llm_stream"


@pytest.mark.parametrize(
    ("kind", "type"),
    [
        ("task_status_update", "task.status"),
        ("task_artifact_update", "task.artifact"),
        ("task_progress", "task.progress"),
        ("task_llm_stream", "llm.stream"),
        ("task_error", "task.error"),
        ("weather", "weather"),
    ],
)
def test_an_event_has_the_type_of_its_kind(kind, type):
    event = RunEvent.from_task_event({"type": kind})

    assert event.type == type
    assert event.metadata == {"source_type": kind}


@pytest.mark.parametrize(
    ("word", "type", "severity"),
    [
        ("context_prepared", "context.prepared", "info"),
        ("llm_call_started", "llm.call.started", "info"),
        ("llm_call_completed", "llm.call.completed", "info"),
        ("budget_warning", "budget.warning", "warning"),
        ("budget_exceeded", "budget.exceeded", "error"),
        ("action_requested", "action.requested", "info"),
        ("policy_decision", "action.policy", "info"),
        ("approval_required", "approval.required", "warning"),
        ("approval_decision", "approval.decided", "info"),
        ("action_denied", "action.denied", "error"),
        ("tool_start", "action.started", "info"),
        ("tool_result", "action.completed", "info"),
        ("tool_error", "action.failed", "error"),
        ("tool_rejected", "action.rejected", "warning"),
        ("tool_canceled", "action.canceled", "info"),
        ("agent_call_start", "action.started", "info"),
        ("agent_call_result", "action.completed", "info"),
        ("agent_call_error", "action.failed", "error"),
        ("agent_call_rejected", "action.rejected", "warning"),
        ("agent_call_canceled", "action.canceled", "warning"),
        ("llm_parse_error", "llm.stream", "warning"),
        ("llm_retry", "llm.stream", "warning"),
        ("llm_error", "llm.stream", "error"),
        ("llm_chunk", "llm.stream", "info"),
    ],
)
def test_a_word_of_a_model_has_its_type_and_weight(word, type, severity):
    event = RunEvent.from_task_event({"type": STREAM, "llm_event_type": word})

    assert (event.type, event.severity) == (type, severity)


@pytest.mark.parametrize(
    "name",
    [
        "action",
        "action_id",
        "decision",
        "delegation_id",
        "manifest",
        "parent_action_id",
        "parent_span_id",
        "rejection",
        "request",
        "span_id",
    ],
)
def test_what_a_model_event_says_of_actions_is_on_top(name):
    told = {"type": STREAM, "metadata": {name: "x", "other": "y"}}

    payload = RunEvent.from_task_event(told).payload

    assert payload[name] == "x"
    assert "other" not in payload


@pytest.mark.parametrize(
    ("word", "is_span", "is_delegation"),
    [
        ("action_denied", True, False),
        ("approval_required", True, False),
        ("policy_decision", True, False),
        ("tool_result", True, False),
        ("agent_call_start", True, True),
        ("agent_call_result", True, True),
        ("agent_call_error", True, True),
        ("agent_call_rejected", True, True),
        ("agent_call_canceled", True, False),
        ("llm_call_started", False, False),
    ],
)
def test_actions_are_spans_and_calls_of_agents_delegations(word, is_span, is_delegation):
    event = RunEvent.from_task_event(
        {"type": STREAM, "llm_event_type": word, "metadata": {"action_id": "a"}}
    )

    assert event.action_id == "a"
    assert event.span_id == ("a" if is_span else None)
    assert event.delegation_id == ("a" if is_delegation else None)


def test_a_repr_shows_the_members_and_what_nobody_knows_if_there_is_any():
    assert repr(AgentSkill("s", tags=["a"])) == (
        "AgentSkill(id='s', description='', input_schema={}, output_schema={}, tags=['a'], "
        "examples=[])"
    )
    assert "extra={'x': 1}" in repr(AgentSkill("s", extra={"x": 1}))
    assert repr(StateStoreReport("s", data="y" * 500)).count("y") < 70


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (
            AgentCard("n", "d", "http://h", skills=[AgentSkill("s")]),
            "AgentCard(name='n', url='http://h', transport='http', skills=1)",
        ),
        (RunEvent("a", sequence=3), "RunEvent(type='a', sequence=3, summary=None)"),
        (
            ConversationHistory([LLMMessage("user", "x")]),
            "ConversationHistory(messages=1)",
        ),
    ],
    ids=["card", "event", "history"],
)
def test_a_repr_of_much_shows_what_matters(made, shown):
    assert repr(made) == shown


def test_objects_of_two_kinds_are_not_equal():
    assert HistoryCompactionResult() != StateStoreReport()
    assert AgentSkill("s") != "s"


@pytest.mark.parametrize(
    ("removed", "summary", "changed"),
    [(0, False, False), (1, False, True), (0, True, True), (2, True, True)],
)
def test_a_history_has_changed_if_it_lost_messages_or_got_a_summary(removed, summary, changed):
    result = HistoryCompactionResult(removed_messages=removed, summary_created=summary)

    assert result.changed is changed
    assert result.to_dict()["changed"] is changed
