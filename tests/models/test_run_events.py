"""RunEvent: events of every kind in one form, with the words of protolink 0.8.3."""

from __future__ import annotations

import pytest

from protolink_sync.errors import ModelError
from protolink_sync.models import InMemoryEventSink, RunEvent

LLM = "task_llm_stream"


def llm(happened, metadata=None, **members):
    return {"type": LLM, "llm_event_type": happened, "metadata": metadata or {}, **members}


# event, type, severity, summary
TABLE = [
    (
        {"type": "task_status_update", "new_state": "working"},
        "task.status",
        "info",
        "Task state changed to working",
    ),
    (
        {"type": "task_status_update", "new_state": "failed", "final": True},
        "task.status",
        "info",
        "Task finished with state failed",
    ),
    (
        {"type": "task_artifact_update", "artifact": {"id": "a"}},
        "task.artifact",
        "info",
        "Artifact produced: a",
    ),
    (
        {"type": "task_artifact_update", "artifact": None},
        "task.artifact",
        "info",
        "Artifact produced",
    ),
    ({"type": "task_progress", "progress": 40}, "task.progress", "info", "Task progress 40%"),
    ({"type": "task_progress", "message": "half"}, "task.progress", "info", "half"),
    ({"type": "task_error", "error_message": "bad"}, "task.error", "error", "bad"),
    ({"type": "task_error"}, "task.error", "error", "Task failed"),
    (
        llm("context_prepared", {"manifest": {"total_estimated_tokens": 5}}),
        "context.prepared",
        "info",
        "Context prepared: 5 estimated tokens",
    ),
    (llm("llm_call_started", {"model": "m"}), "llm.call.started", "info", "LLM call started: m"),
    (
        llm("llm_call_completed", {"model": "m", "latency_ms": 3}),
        "llm.call.completed",
        "info",
        "LLM call completed: m in 3 ms",
    ),
    (llm("budget_warning"), "budget.warning", "warning", "budget_warning"),
    (
        llm("budget_exceeded", {"decision": {"message": "too much"}}),
        "budget.exceeded",
        "error",
        "too much",
    ),
    (
        llm("action_requested", {"action": {"name": "pay"}}),
        "action.requested",
        "info",
        "Action requested: pay",
    ),
    (
        llm("policy_decision", {"decision": {"effect": "allow"}}),
        "action.policy",
        "info",
        "Policy decision: allow",
    ),
    (
        llm("approval_required", {"request": {"action": {"name": "pay"}}}),
        "approval.required",
        "warning",
        "Approval required: pay",
    ),
    (
        llm("approval_decision", {"decision": {"approved": True}}),
        "approval.decided",
        "info",
        "Approval granted",
    ),
    (llm("approval_decision"), "approval.decided", "info", "Approval denied"),
    (llm("action_denied"), "action.denied", "error", "Action denied"),
    (llm("tool_start", {"tool": "add"}), "action.started", "info", "Action started: add"),
    (llm("tool_result", {"tool": "add"}), "action.completed", "info", "Action completed: add"),
    (llm("tool_error"), "action.failed", "error", "Action failed"),
    (
        llm("tool_rejected", {"tool": "add"}),
        "action.rejected",
        "warning",
        "Tool 'add' rejected the request; nothing changed.",
    ),
    (llm("tool_canceled"), "action.canceled", "info", "tool_canceled"),
    (llm("agent_call_start", {"agent": "b"}), "action.started", "info", "Action started: b"),
    (llm("agent_call_canceled"), "action.canceled", "warning", "agent_call_canceled"),
    (llm("agent_call_error", {"message": "down"}), "action.failed", "error", "down"),
    (llm("llm_retry"), "llm.stream", "warning", "llm_retry"),
    (llm("llm_error"), "llm.stream", "error", "llm_error"),
    (llm("llm_chunk", content="x"), "llm.stream", "info", "llm_chunk"),
    (llm("llm_final", content="x", final=True), "llm.stream", "info", "llm_final: x"),
    (
        llm("llm_final", content="x" * 200, final=True),
        "llm.stream",
        "info",
        "llm_final: " + "x" * 128 + "...",
    ),
    (llm(None), "llm.stream", "info", "llm_event"),
    ({"type": "custom", "summary": "mine"}, "custom", "info", "mine"),
    ({}, "run.event", "info", None),
    ("anything", "run.event", "info", None),
]


@pytest.mark.parametrize(("event", "kind", "severity", "summary"), TABLE)
def test_an_event_gets_type_severity_and_summary(event, kind, severity, summary):
    run_event = RunEvent.from_task_event(event)

    assert (run_event.type, run_event.severity, run_event.summary) == (kind, severity, summary)


def test_the_payload_is_the_event_with_what_it_says_of_actions_on_top():
    event = llm("tool_start", {"action_id": "a", "tool": "add"}, step=2, task_id="t", final=True)

    run_event = RunEvent.from_task_event(event, sequence=7)

    assert run_event.payload == {**event, "action_id": "a"}
    assert (run_event.step, run_event.task_id, run_event.sequence) == (2, "t", 7)
    assert run_event.final is True
    assert run_event.metadata == {"source_type": LLM}
    assert "action_id" not in event


def test_a_value_that_is_no_event_becomes_content():
    assert RunEvent.from_task_event([1]).payload == {"type": "run.event", "content": [1]}


def test_an_object_with_to_dict_is_an_event():
    class Progress:
        def to_dict(self):
            return {"type": "task_progress", "progress": 1}

    assert RunEvent.from_task_event(Progress()).type == "task.progress"


@pytest.mark.parametrize(
    ("event", "context", "run_id", "agent"),
    [
        ({}, {"run_id": "r", "agent_chain": ["a", "b"]}, "r", "b"),
        ({"agent_name": "x"}, {"run_id": "r", "agent_chain": ["a"]}, "r", "x"),
        ({"metadata": {"run_id": 5, "agent": "m"}}, None, "5", "m"),
        (
            {
                "metadata": {
                    "task": {"metadata": {"run_context": {"run_id": "f", "agent_chain": ["z"]}}}
                }
            },
            None,
            "f",
            "z",
        ),
        ({}, None, None, None),
    ],
)
def test_run_and_agent_come_from_the_context_or_the_event(event, context, run_id, agent):
    run_event = RunEvent.from_task_event(event, context=context)

    assert (run_event.run_id, run_event.agent_name) == (run_id, agent)


def test_a_context_that_is_no_mapping_is_refused():
    with pytest.raises(TypeError, match="run context is a mapping, not int"):
        RunEvent.from_task_event({}, context=5)


@pytest.mark.parametrize(
    ("event", "ids"),
    [
        (
            llm("agent_call_start", {"action_id": "a", "parent_action_id": "p"}),
            ("a", "p", "a", "p", "a"),
        ),
        (llm("agent_call_canceled", {"action_id": "a"}), ("a", None, "a", None, None)),
        (
            llm("approval_required", {"request": {"action": {"action_id": 7}}}),
            ("7", None, "7", None, None),
        ),
        (
            llm("llm_chunk", {"action_id": "a", "span_id": "s"}),
            ("s", None, "a", None, None),
        ),
        (llm("llm_chunk", {"action_id": "a"}), (None, None, "a", None, None)),
        (
            {"type": "custom", "decision": {"delegation_id": "d"}, "parent_span_id": "x"},
            (None, "x", None, None, "d"),
        ),
    ],
)
def test_ids_are_found_where_the_peer_puts_them(event, ids):
    run_event = RunEvent.from_task_event(event)

    assert (
        run_event.span_id,
        run_event.parent_span_id,
        run_event.action_id,
        run_event.parent_action_id,
        run_event.delegation_id,
    ) == ids


class TestEnvelopes:
    def test_one_is_taken_as_it_is(self):
        data = RunEvent("action.started", run_id="r", sequence=4, payload={"k": 1}).to_dict()
        data["cost"] = 3

        event = RunEvent.from_task_event(data)

        assert event.to_dict() == data
        assert RunEvent.from_task_event(data, sequence=9).sequence == 9

    def test_an_empty_one_has_the_defaults(self):
        event = RunEvent.from_dict({})

        assert (event.type, event.severity, event.version) == ("run.event", "info", "1.0")
        assert (event.payload, event.metadata, event.final, event.sequence) == ({}, {}, False, None)

    def test_a_broken_one_is_refused(self):
        with pytest.raises(ModelError, match=r"\$\.payload"):
            RunEvent.from_task_event({"version": "1.0", "event_id": "e", "payload": "p"})


class TestTheSink:
    def test_numbers_what_has_no_number(self):
        sink = InMemoryEventSink()
        for event in (RunEvent("a"), RunEvent("b", sequence=5), RunEvent("c"), RunEvent("d")):
            sink.emit(event)

        assert [event.sequence for event in sink.events] == [1, 5, 6, 7]

    def test_takes_events_of_a_task_stream(self):
        sink = InMemoryEventSink()

        event = sink.emit_task_event({"type": "task_progress"}, context={"run_id": "r"})

        assert sink.events == (event,)
        assert (event.sequence, event.run_id) == (1, "r")
        assert sink.to_list() == [event.to_dict()]

    def test_begins_again_after_clearing(self):
        sink = InMemoryEventSink()
        sink.emit(RunEvent("a"))
        sink.clear()

        assert sink.events == ()
        assert sink.emit_task_event({}).sequence == 1
