"""The model of a task as one would write it by hand: the floor of the models."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

__all__ = ["task_from_dict", "task_to_dict"]


class State(Enum):
    """The states that the payloads use."""

    SUBMITTED = "submitted"
    WORKING = "working"
    COMPLETED = "completed"


@dataclass
class Part:
    """One piece of content."""

    type: str
    content: Any


@dataclass
class Message:
    """One message."""

    id: str
    role: str = "user"
    parts: list[Part] = field(default_factory=list)
    timestamp: str = ""


@dataclass
class Artifact:
    """One result."""

    id: str
    parts: list[Part] = field(default_factory=list)
    timestamp: str = ""


@dataclass
class Task:
    """A task."""

    id: str
    state: State = State.SUBMITTED
    messages: list[Message] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    flow_state: dict[str, Any] = field(default_factory=dict)
    created_at: str = ""


def task_from_dict(value: dict[str, Any]) -> Task:
    """Return the task that a dictionary holds."""
    return Task(
        value["id"],
        State(value.get("state", "submitted")),
        [
            Message(
                message["id"],
                message.get("role", "user"),
                [Part(part["type"], part["content"]) for part in message.get("parts", ())],
                message.get("timestamp", ""),
            )
            for message in value.get("messages", ())
        ],
        [
            Artifact(
                artifact["id"],
                [Part(part["type"], part["content"]) for part in artifact.get("parts", ())],
                artifact.get("timestamp", ""),
            )
            for artifact in value.get("artifacts", ())
        ],
        value.get("metadata", {}),
        value.get("flow_state", {}),
        value.get("created_at", ""),
    )


def task_to_dict(task: Task) -> dict[str, Any]:
    """Return the dictionary of a task."""
    return {
        "id": task.id,
        "state": task.state.value,
        "messages": [
            {
                "id": message.id,
                "role": message.role,
                "parts": [{"type": part.type, "content": part.content} for part in message.parts],
                "timestamp": message.timestamp,
            }
            for message in task.messages
        ],
        "artifacts": [
            {
                "id": artifact.id,
                "parts": [{"type": part.type, "content": part.content} for part in artifact.parts],
                "timestamp": artifact.timestamp,
            }
            for artifact in task.artifacts
        ],
        "metadata": task.metadata,
        "flow_state": task.flow_state,
        "created_at": task.created_at,
    }
