"""How events of a task stream become run events: types, severities, summaries, relations.

Source:
    wire/protolink.md 16; the tables are those of ProtoLink 0.8.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["ids_of", "optional_text", "promoted", "run_type", "severity_of", "summary_of"]

LLM_STREAM = "task_llm_stream"

_TYPES = {
    "task_status_update": "task.status",
    "task_artifact_update": "task.artifact",
    "task_progress": "task.progress",
    LLM_STREAM: "llm.stream",
    "task_error": "task.error",
}
_LLM_TYPES = {
    "context_prepared": "context.prepared",
    "llm_call_started": "llm.call.started",
    "llm_call_completed": "llm.call.completed",
    "budget_warning": "budget.warning",
    "budget_exceeded": "budget.exceeded",
    "action_requested": "action.requested",
    "policy_decision": "action.policy",
    "approval_required": "approval.required",
    "approval_decision": "approval.decided",
    "action_denied": "action.denied",
    "tool_start": "action.started",
    "tool_result": "action.completed",
    "tool_error": "action.failed",
    "tool_rejected": "action.rejected",
    "tool_canceled": "action.canceled",
    "agent_call_start": "action.started",
    "agent_call_result": "action.completed",
    "agent_call_error": "action.failed",
    "agent_call_rejected": "action.rejected",
    "agent_call_canceled": "action.canceled",
}
_ERRORS = frozenset(
    {"action_denied", "agent_call_error", "budget_exceeded", "llm_error", "tool_error"}
)
_WARNINGS = frozenset(
    {
        "approval_required",
        "budget_warning",
        "llm_parse_error",
        "llm_retry",
        "tool_rejected",
        "agent_call_rejected",
        "agent_call_canceled",
    }
)
_PROMOTED = (
    "action",
    "action_id",
    "decision",
    "delegation_id",
    "manifest",
    "parent_action_id",
    "parent_span_id",
    "request",
    "rejection",
    "span_id",
)
_SPANS = ("action_", "approval_", "policy_", "tool_", "agent_call_")
_DELEGATIONS = frozenset(
    {"agent_call_start", "agent_call_result", "agent_call_error", "agent_call_rejected"}
)
_SUMMARY_LENGTH = 140


def run_type(kind: str, event: Mapping[str, Any]) -> str:
    """Return the type of the run event for an event of that type."""
    if kind == LLM_STREAM:
        return _LLM_TYPES.get(_text(event.get("llm_event_type")), _TYPES[kind])
    return _TYPES.get(kind, kind)


def severity_of(kind: str, event: Mapping[str, Any]) -> str:
    """Return ``error``, ``warning`` or ``info``."""
    happened = _text(event.get("llm_event_type")) if kind == LLM_STREAM else ""
    if kind == "task_error" or happened in _ERRORS:
        return "error"
    return "warning" if happened in _WARNINGS else "info"


def promoted(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event as a payload: what an LLM event says of actions is put on top."""
    payload = dict(event)
    if event.get("type") == LLM_STREAM:
        metadata = _object(event.get("metadata"))
        payload.update((name, metadata[name]) for name in _PROMOTED if name in metadata)
    return payload


def ids_of(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ids that tie an event to spans, actions and delegations."""
    metadata = _object(payload.get("metadata"))
    action, request, decision = (
        _object(payload.get(name)) or _object(metadata.get(name))
        for name in ("action", "request", "decision")
    )
    sources = (payload, metadata, action, request, _object(request.get("action")), decision)

    def first(name: str) -> str | None:
        found = (source[name] for source in sources if source.get(name) is not None)
        return optional_text(next(found, None))

    happened = _text(payload.get("llm_event_type"))
    ids: dict[str, Any] = {
        name: first(name)
        for name in (
            "span_id",
            "parent_span_id",
            "action_id",
            "parent_action_id",
            "delegation_id",
        )
    }
    if ids["delegation_id"] is None and happened in _DELEGATIONS:
        ids["delegation_id"] = ids["action_id"]
    if ids["span_id"] is None and happened.startswith(_SPANS):
        ids["span_id"] = ids["action_id"]
    if ids["parent_span_id"] is None:
        ids["parent_span_id"] = ids["parent_action_id"]
    return ids


def summary_of(kind: str, event: Mapping[str, Any]) -> str | None:
    """Return one line for a progress display, or None if there is nothing to say."""
    write = _SUMMARIES.get(kind)
    return optional_text(event.get("summary")) if write is None else write(event)


def optional_text(value: Any) -> str | None:
    """Return the text of a value that is there."""
    return None if value is None else str(value)


def _status_summary(event: Mapping[str, Any]) -> str:
    state = event.get("new_state") or "unknown"
    if event.get("final"):
        return f"Task finished with state {state}"
    return f"Task state changed to {state}"


def _artifact_summary(event: Mapping[str, Any]) -> str:
    identity = _object(event.get("artifact")).get("id")
    return f"Artifact produced: {identity}" if identity else "Artifact produced"


def _progress_summary(event: Mapping[str, Any]) -> str:
    return str(event.get("message") or f"Task progress {event.get('progress')}%")


def _error_summary(event: Mapping[str, Any]) -> str:
    return str(event.get("error_message") or "Task failed")


def _llm_summary(event: Mapping[str, Any]) -> str:
    happened = _text(event.get("llm_event_type") or "llm_event")
    write = _LLM_SUMMARIES.get(happened)
    if write is not None:
        told = write(_object(event.get("metadata")))
        return told or happened
    content = event.get("content")
    if not event.get("final") or content is None:
        return happened
    line = f"{happened}: {content}"
    return line if len(line) <= _SUMMARY_LENGTH else line[: _SUMMARY_LENGTH - 1] + "..."


def _context(metadata: Mapping[str, Any]) -> str:
    tokens = _object(metadata.get("manifest")).get("total_estimated_tokens")
    return "Context prepared" if tokens is None else f"Context prepared: {tokens} estimated tokens"


def _call_completed(metadata: Mapping[str, Any]) -> str:
    model, latency = metadata.get("model") or "model", metadata.get("latency_ms")
    taken = "" if latency is None else f" in {latency} ms"
    return f"LLM call completed: {model}{taken}"


def _budget(metadata: Mapping[str, Any]) -> str:
    return _text(_object(metadata.get("decision")).get("message"))


def _requested(metadata: Mapping[str, Any]) -> str:
    return f"Action requested: {_object(metadata.get('action')).get('name', 'unnamed')}"


def _policy(metadata: Mapping[str, Any]) -> str:
    return f"Policy decision: {_object(metadata.get('decision')).get('effect', 'unknown')}"


def _approval_required(metadata: Mapping[str, Any]) -> str:
    action = _object(_object(metadata.get("request")).get("action"))
    return f"Approval required: {action.get('name', 'unnamed')}"


def _approval_decided(metadata: Mapping[str, Any]) -> str:
    approved = _object(metadata.get("decision")).get("approved")
    return "Approval granted" if approved else "Approval denied"


def _target(metadata: Mapping[str, Any]) -> Any:
    return metadata.get("tool") or metadata.get("agent") or "unnamed"


def _action_failed(metadata: Mapping[str, Any]) -> str:
    return str(metadata.get("message") or "Action failed")


_SUMMARIES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "task_status_update": _status_summary,
    "task_artifact_update": _artifact_summary,
    "task_progress": _progress_summary,
    "task_error": _error_summary,
    LLM_STREAM: _llm_summary,
}
_LLM_SUMMARIES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "context_prepared": _context,
    "llm_call_started": lambda m: f"LLM call started: {m.get('model') or 'model'}",
    "llm_call_completed": _call_completed,
    "budget_warning": _budget,
    "budget_exceeded": _budget,
    "action_requested": _requested,
    "policy_decision": _policy,
    "approval_required": _approval_required,
    "approval_decision": _approval_decided,
    "action_denied": lambda m: str(m.get("message") or "Action denied"),
    "tool_start": lambda m: f"Action started: {_target(m)}",
    "agent_call_start": lambda m: f"Action started: {_target(m)}",
    "tool_result": lambda m: f"Action completed: {_target(m)}",
    "agent_call_result": lambda m: f"Action completed: {_target(m)}",
    "tool_rejected": lambda m: (
        f"Tool '{m.get('tool') or 'unnamed'}' rejected the request; nothing changed."
    ),
    "agent_call_rejected": lambda m: (
        f"Delegation to '{m.get('agent') or 'unnamed'}' rejected; nothing changed in that request."
    ),
    "tool_error": _action_failed,
    "agent_call_error": _action_failed,
}


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return "" if value is None else str(value)
