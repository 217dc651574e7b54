"""What a hosted agent tells in a stream: events as JSON values.

Source:
    wire/protolink.md 9, when a stream ends; 15, the events.
"""

from __future__ import annotations

import uuid
from collections.abc import Generator
from datetime import datetime, timezone
from typing import Any

from protolink_sync.models import Artifact, Task
from protolink_sync.server.lifecycle import Steps

__all__ = ["artifact_update", "as_event", "events_of", "is_last", "says_working", "status_update"]

_STATUS = "task_status_update"


def _event(kind: str, task: Task, **members: Any) -> dict[str, Any]:
    return {
        "event_id": str(uuid.uuid4()),
        "type": kind,
        "task_id": task.id,
        "timestamp": datetime.now(timezone.utc).isoformat(),
        "metadata": {},
        **members,
    }


def status_update(task: Task, previous: str | None, *, final: bool = False) -> dict[str, Any]:
    """Return the event that tells a task's state; the final one has the whole task.

    Args:
        task: The task.
        previous: The state it had before; None if it came with this one.
        final: The stream ends with it.
    """
    metadata: dict[str, Any] = {"task": task.to_dict()} if final else {}
    if final and task.metadata.get("cancel_reason") is not None:
        metadata["cancel_reason"] = task.metadata["cancel_reason"]
    return _event(
        _STATUS,
        task,
        previous_state=previous,
        new_state=task.state_text,
        final=final,
        metadata=metadata,
    )


def artifact_update(task: Task, artifact: Artifact) -> dict[str, Any]:
    """Return the event that brings an artifact."""
    return _event("task_artifact_update", task, artifact=artifact.to_dict())


def events_of(task: Task, steps: Steps, agent_name: str) -> Generator[dict[str, Any], None, Task]:
    """Tell what an agent does by default as events, and return the task."""
    while True:
        try:
            kind, value = next(steps)
        except StopIteration as end:
            done: Task = end.value
            return done
        if kind == "tool":
            yield _event(
                "task_progress",
                task,
                progress=0,
                message=f"Executing tool: {value}",
                metadata={"agent": agent_name, "part_type": "tool_call"},
            )
        elif kind == "artifact":
            yield artifact_update(task, value)
        else:
            yield _event(
                "task_llm_stream",
                task,
                agent_name=agent_name,
                llm_event_type=kind,
                step=1,
                content=value,
                final=kind == "llm_final",
            )


def as_event(event: Any, task: Task) -> Any:
    """Return what a handler has yielded as JSON values, with what every event has.

    Args:
        event: JSON values, or an object with ``to_dict``. One that has a type gets the members
            that all such events have and it has not; a final status also the task.
        task: The task.
    """
    to_dict = getattr(event, "to_dict", None)
    if callable(to_dict):
        event = to_dict()
    if not isinstance(event, dict) or not event.get("type"):
        return event
    event = {**_event(event["type"], task), **event}
    if event["type"] == _STATUS and event.get("final") and isinstance(event["metadata"], dict):
        event["metadata"] = {"task": task.to_dict(), **event["metadata"]}
    return event


def is_last(event: Any) -> bool:
    """Return whether a stream ends with an event.

    >>> is_last({"type": "task_llm_stream", "final": True})
    False
    """
    if not isinstance(event, dict) or not event.get("final"):
        return False
    return event.get("type") in (None, "", _STATUS)


def says_working(event: Any) -> bool:
    """Return whether an event says only that the work has begun."""
    return (
        isinstance(event, dict)
        and event.get("type") == _STATUS
        and event.get("new_state") == "working"
        and not event.get("final")
    )
