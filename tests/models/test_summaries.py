"""One line for a progress display, and the ids that tie an event to what it is about."""

from __future__ import annotations

import pytest

from protolink_sync.models import RunEvent

STREAM = "task_llm_stream"


def made(event: dict, **words) -> RunEvent:
    return RunEvent.from_task_event(event, **words)


def happened(word: str, **metadata) -> RunEvent:
    return made({"type": STREAM, "llm_event_type": word, "metadata": metadata})


@pytest.mark.parametrize(
    ("event", "summary"),
    [
        ({"type": "task_status_update", "new_state": "working"}, "Task state changed to working"),
        ({"type": "task_status_update"}, "Task state changed to unknown"),
        (
            {"type": "task_status_update", "new_state": "failed", "final": True},
            "Task finished with state failed",
        ),
        ({"type": "task_artifact_update", "artifact": {"id": "a"}}, "Artifact produced: a"),
        ({"type": "task_artifact_update"}, "Artifact produced"),
        ({"type": "task_progress", "progress": 40}, "Task progress 40%"),
        ({"type": "task_progress", "message": "half"}, "half"),
        ({"type": "task_error", "error_message": "boom"}, "boom"),
        ({"type": "task_error"}, "Task failed"),
        ({"type": "other", "summary": 5}, "5"),
        ({"type": "other"}, None),
        ({"type": STREAM}, "llm_event"),
        ({"type": STREAM, "llm_event_type": "llm_chunk", "content": "x"}, "llm_chunk"),
        (
            {"type": STREAM, "llm_event_type": "llm_final", "content": "x", "final": True},
            "llm_final: x",
        ),
        ({"type": STREAM, "llm_event_type": "llm_final", "final": True}, "llm_final"),
        (
            {"type": STREAM, "llm_event_type": "f", "content": "x" * 137, "final": True},
            "f: " + "x" * 137,
        ),
        (
            {"type": STREAM, "llm_event_type": "f", "content": "x" * 138, "final": True},
            "f: " + "x" * 136 + "...",
        ),
    ],
)
def test_an_event_is_told_in_one_line(event, summary):
    assert made(event).summary == summary


@pytest.mark.parametrize(
    ("word", "metadata", "summary"),
    [
        ("context_prepared", {}, "Context prepared"),
        (
            "context_prepared",
            {"manifest": {"total_estimated_tokens": 5}},
            "Context prepared: 5 estimated tokens",
        ),
        ("llm_call_started", {}, "LLM call started: model"),
        ("llm_call_started", {"model": "m"}, "LLM call started: m"),
        ("llm_call_completed", {}, "LLM call completed: model"),
        (
            "llm_call_completed",
            {"model": "m", "latency_ms": 7},
            "LLM call completed: m in 7 ms",
        ),
        ("budget_warning", {"decision": {"message": "soon"}}, "soon"),
        ("budget_exceeded", {}, "budget_exceeded"),
        ("action_requested", {"action": {"name": "a"}}, "Action requested: a"),
        ("action_requested", {}, "Action requested: unnamed"),
        ("policy_decision", {"decision": {"effect": "deny"}}, "Policy decision: deny"),
        ("policy_decision", {}, "Policy decision: unknown"),
        (
            "approval_required",
            {"request": {"action": {"name": "a"}}},
            "Approval required: a",
        ),
        ("approval_required", {}, "Approval required: unnamed"),
        ("approval_decision", {"decision": {"approved": True}}, "Approval granted"),
        ("approval_decision", {}, "Approval denied"),
        ("action_denied", {}, "Action denied"),
        ("action_denied", {"message": "no"}, "no"),
        ("tool_start", {"tool": "t", "agent": "a"}, "Action started: t"),
        ("agent_call_start", {"agent": "a"}, "Action started: a"),
        ("tool_result", {}, "Action completed: unnamed"),
        ("agent_call_result", {"agent": "a"}, "Action completed: a"),
        ("tool_rejected", {"tool": "t"}, "Tool 't' rejected the request; nothing changed."),
        ("tool_rejected", {}, "Tool 'unnamed' rejected the request; nothing changed."),
        (
            "agent_call_rejected",
            {},
            "Delegation to 'unnamed' rejected; nothing changed in that request.",
        ),
        (
            "agent_call_rejected",
            {"agent": "a"},
            "Delegation to 'a' rejected; nothing changed in that request.",
        ),
        ("tool_error", {}, "Action failed"),
        ("agent_call_error", {"message": "boom"}, "boom"),
    ],
)
def test_what_a_model_does_is_told_in_one_line(word, metadata, summary):
    assert happened(word, **metadata).summary == summary


def test_only_the_word_of_a_model_event_makes_it_an_error():
    word = {"llm_event_type": "tool_error"}

    assert made({"type": STREAM, **word}).severity == "error"
    assert made({"type": "task_progress", **word}).severity == "info"
    assert made({"type": "task_error"}).severity == "error"


def test_only_a_model_event_puts_what_it_says_of_actions_on_top():
    told = {"metadata": {"action_id": "a"}}

    assert made({"type": STREAM, **told}).payload["action_id"] == "a"
    assert "action_id" not in made({"type": "task_progress", **told}).payload


@pytest.mark.parametrize(
    ("event", "ids"),
    [
        ({"action": {"action_id": "a"}}, {"action_id": "a"}),
        ({"metadata": {"action": {"action_id": "a"}}}, {"action_id": "a"}),
        ({"metadata": {"request": {"action": {"action_id": "a"}}}}, {"action_id": "a"}),
        ({"metadata": {"decision": {"span_id": "s"}}}, {"span_id": "s"}),
        (
            {"llm_event_type": "tool_start", "action_id": "a"},
            {"action_id": "a", "span_id": "a"},
        ),
        (
            {"llm_event_type": "tool_start", "action_id": "a", "span_id": "s"},
            {"action_id": "a", "span_id": "s"},
        ),
        (
            {"llm_event_type": "agent_call_start", "action_id": "a"},
            {"action_id": "a", "span_id": "a", "delegation_id": "a"},
        ),
        (
            {"llm_event_type": "agent_call_start", "action_id": "a", "delegation_id": "d"},
            {"action_id": "a", "span_id": "a", "delegation_id": "d"},
        ),
        ({"llm_event_type": "llm_chunk", "action_id": "a"}, {"action_id": "a"}),
        ({"parent_action_id": "p"}, {"parent_action_id": "p", "parent_span_id": "p"}),
        ({"action_id": 5}, {"action_id": "5"}),
    ],
)
def test_the_ids_are_found_where_peers_put_them(event, ids):
    found = made({"type": "x", **event})
    names = ("span_id", "parent_span_id", "action_id", "parent_action_id", "delegation_id")

    assert {name: getattr(found, name) for name in names} == {**dict.fromkeys(names), **ids}


@pytest.mark.parametrize("missing", ["version", "payload", "event_id"])
def test_an_envelope_is_one_if_it_is_whole(missing):
    envelope = {"version": "1.0", "payload": {"a": 1}, "event_id": "e", "type": "t"}

    assert made(envelope, sequence=7).event_id == "e"
    assert made(envelope, sequence=7).sequence == 7
    part = {name: value for name, value in envelope.items() if name != missing}
    assert made(part).payload == part


def test_the_time_of_an_event_is_its_own_if_it_has_one():
    told = {"type": "x", "timestamp": "2026-01-01T00:00:00+00:00", "step": 3}

    event, untold = made(told), made({"type": "x", "step": "3"})

    assert (event.timestamp, event.step, event.final) == (told["timestamp"], 3, False)
    assert untold.timestamp.startswith("20")
    assert untold.step is None
    assert made({**told, "final": True}).final is True


@pytest.mark.parametrize(
    ("event", "context", "run_id", "agent"),
    [
        ({"metadata": {"run_id": "m"}}, None, "m", None),
        ({"metadata": {"run_id": "m"}}, {"run_id": "c"}, "c", None),
        ({"metadata": {"run_id": "m"}}, {"agent_chain": ["a", "b"]}, "m", "b"),
        ({"agent_name": "told", "metadata": {"agent": "meta"}}, {"agent_chain": ["a"]}, None,
         "told"),
        ({"metadata": {"agent": "meta"}}, {"agent_chain": ["a"]}, None, "meta"),
        ({}, {"agent_chain": []}, None, None),
        ({}, {"agent_chain": "ab"}, None, None),
        ({"metadata": {"task": {"metadata": {"run_context": {"run_id": "t"}}}}}, None, "t", None),
        ({"metadata": {"task": {"metadata": {"run_context": "t"}}}}, None, None, None),
    ],
)  # fmt: skip
def test_run_and_agent_are_those_of_the_context_or_of_the_event(event, context, run_id, agent):
    found = made({"type": "x", **event}, context=context)

    assert (found.run_id, found.agent_name) == (run_id, agent)
