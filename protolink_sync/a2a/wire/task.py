"""Task and what it is made of: status and artifacts."""

from __future__ import annotations

from typing import Any

import attrs

from protolink_sync.a2a.wire._object import A2AObject
from protolink_sync.a2a.wire._reading import (
    Place,
    absent,
    list_at,
    members_of,
    object_at,
    others,
    required_text_at,
    text_at,
    texts_at,
)
from protolink_sync.a2a.wire.message import Message, new_id
from protolink_sync.a2a.wire.part import Part, text_of
from protolink_sync.a2a.wire.states import STATE_IN_1_0, Role, TaskState, read_state
from protolink_sync.models import jsonable

__all__ = ["Artifact", "Task", "TaskStatus"]

_STATUS = frozenset({"state", "message", "timestamp"})
_ARTIFACT = frozenset({"artifactId", "parts", "name", "description", "metadata", "extensions"})
_TASK = frozenset({"kind", "id", "contextId", "status", "artifacts", "history", "metadata"})


@attrs.define(repr=False, eq=False)
class TaskStatus(A2AObject):
    """Where a task stands.

    Args:
        state: The state.
        message: What the agent says about it.
        timestamp: When it came to stand there, as the peer wrote it; empty if it did not.
        state_text: The peer's word for a state that nobody knows; only then.
        extra: Members this library does not know; written back as they are.

    Source:
        wire/a2a.md 4, "TaskStatus", B28.
    """

    state: TaskState
    message: Message | None = None
    timestamp: str = ""
    state_text: str | None = None
    extra: dict[str, Any] = attrs.field(factory=dict, kw_only=True)

    @classmethod
    def from_dict(cls, data: Any, place: Place = None) -> TaskStatus:
        """Read a status in the form of either dialect.

        Raises:
            ModelError: It has not the form of a status; ``path`` says where.
        """
        members = members_of(data, "a status", place)
        if members.get("state") is None:
            raise absent("state", place)
        state, unknown = read_state(members["state"], (place, "state"))
        message = members.get("message")
        return cls(
            state,
            None if message is None else Message.from_dict(message, (place, "message")),
            text_at(members, "timestamp", place),
            unknown,
            extra=others(members, _STATUS),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the form of 1.0.

        Raises:
            TypeError: Some content has no JSON form; the message says where.
        """
        written: dict[str, Any] = jsonable(self.extra)
        is_known = self.state is not TaskState.UNKNOWN or self.state_text is None
        written["state"] = STATE_IN_1_0[self.state] if is_known else self.state_text
        if self.message is not None:
            written["message"] = self.message.to_dict()
        if self.timestamp:
            written["timestamp"] = self.timestamp
        return written

    def copy(self) -> TaskStatus:
        """Return a status that shares nothing with this one."""
        return TaskStatus(
            self.state,
            self.message and self.message.copy(),
            self.timestamp,
            self.state_text,
            extra=jsonable(self.extra),
        )


@attrs.define(repr=False, eq=False)
class Artifact(A2AObject):
    """What a task brings forth.

    Args:
        parts: The content, in order.
        artifact_id: Identifier within the task, made if not given.
        name: Name to show.
        description: What it is.
        metadata: Anything about it.
        extensions: URIs of the extensions that have data in ``metadata``.
        extra: Members this library does not know; written back as they are.

    Source:
        wire/a2a.md 4, "Artifact".
    """

    parts: list[Part] = attrs.field(factory=list)
    artifact_id: str = attrs.field(factory=new_id)
    name: str = ""
    description: str = ""
    metadata: dict[str, Any] = attrs.field(factory=dict)
    extensions: list[str] = attrs.field(factory=list)
    extra: dict[str, Any] = attrs.field(factory=dict, kw_only=True)

    @property
    def text(self) -> str:
        """Its text parts, joined with nothing between."""
        return text_of(self.parts)

    @classmethod
    def from_dict(cls, data: Any, place: Place = None) -> Artifact:
        """Read an artifact in the form of either dialect.

        Raises:
            ModelError: It has not the form of an artifact; ``path`` says where.
        """
        members = members_of(data, "an artifact", place)
        return cls(
            list_at(members, "parts", place, Part.from_dict),
            text_at(members, "artifactId", place),
            text_at(members, "name", place),
            text_at(members, "description", place),
            object_at(members, "metadata", place),
            texts_at(members, "extensions", place),
            extra=others(members, _ARTIFACT),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the form of 1.0.

        Raises:
            TypeError: Some content has no JSON form; the message says where.
        """
        written: dict[str, Any] = jsonable(self.extra)
        written["artifactId"] = self.artifact_id
        if self.name:
            written["name"] = self.name
        if self.description:
            written["description"] = self.description
        written["parts"] = [part.to_dict() for part in self.parts]
        if self.metadata:
            written["metadata"] = jsonable(self.metadata)
        if self.extensions:
            written["extensions"] = list(self.extensions)
        return written

    def copy(self) -> Artifact:
        """Return an artifact that shares nothing with this one; the id is the same."""
        return Artifact(
            [part.copy() for part in self.parts],
            self.artifact_id,
            self.name,
            self.description,
            jsonable(self.metadata),
            list(self.extensions),
            extra=jsonable(self.extra),
        )


@attrs.define(repr=False, eq=False)
class Task(A2AObject):
    """A task at an A2A agent, as far as the agent told.

    Args:
        id: Identifier, given by the agent; empty if the agent answered with a bare message that
            names no task.
        context_id: The conversation it belongs to.
        status: Where it stands.
        artifacts: What it brought forth.
        history: The messages exchanged, oldest first.
        metadata: Anything about it.
        from_message: True if the agent answered with a bare message, and made no task.
        extra: Members this library does not know; written back as they are.

    Source:
        wire/a2a.md 4, "Task", "One shape for callers".
    """

    id: str
    context_id: str = ""
    status: TaskStatus = attrs.field(factory=lambda: TaskStatus(TaskState.SUBMITTED))
    artifacts: list[Artifact] = attrs.field(factory=list)
    history: list[Message] = attrs.field(factory=list)
    metadata: dict[str, Any] = attrs.field(factory=dict)
    from_message: bool = attrs.field(default=False, kw_only=True)
    extra: dict[str, Any] = attrs.field(factory=dict, kw_only=True)

    @classmethod
    def of_message(cls, message: Message) -> Task:
        """Return the completed task that a bare message stands for."""
        return cls(
            message.task_id,
            message.context_id,
            TaskStatus(TaskState.COMPLETED, message),
            history=[message],
            from_message=True,
        )

    @property
    def is_terminal(self) -> bool:
        """True if nothing more will happen to the task."""
        return self.status.state.is_terminal

    @property
    def text(self) -> str:
        """The answer: never what the user said, nor what the agent said while still working.

        It is the agent's message in a terminal status; without one the text of the artifacts,
        one below the other; else the last message of the agent in the history; else empty.

        Source:
            wire/a2a.md 4, "The answer text".
        """
        said = self.status.message
        if said is not None and self.is_terminal and said.role is not Role.USER and said.text:
            return said.text
        pieces = [text for artifact in self.artifacts if (text := artifact.text)]
        if pieces:
            return "\n".join(pieces)
        passing = "" if said is None or self.is_terminal else said.message_id
        for message in reversed(self.history):
            if message.role is Role.AGENT and not (passing and message.message_id == passing):
                return message.text
        return ""

    @classmethod
    def from_dict(cls, data: Any, place: Place = None) -> Task:
        """Read a task in the form of either dialect.

        Args:
            data: The decoded JSON object.
            place: Where it stands in what was received.

        Raises:
            ModelError: It has not the form of a task; ``path`` says where.
        """
        members = members_of(data, "a task", place)
        if members.get("status") is None:
            raise absent("status", place)
        return cls(
            required_text_at(members, "id", place),
            text_at(members, "contextId", place),
            TaskStatus.from_dict(members["status"], (place, "status")),
            list_at(members, "artifacts", place, Artifact.from_dict),
            list_at(members, "history", place, Message.from_dict),
            object_at(members, "metadata", place),
            extra=others(members, _TASK),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the form of 1.0.

        Raises:
            TypeError: Some content has no JSON form; the message says where.
            ModelError: Some number is NaN or infinite, or a structure contains itself.
        """
        written: dict[str, Any] = jsonable(self.extra)
        written["id"] = self.id
        if self.context_id:
            written["contextId"] = self.context_id
        written["status"] = self.status.to_dict()
        if self.artifacts:
            written["artifacts"] = [artifact.to_dict() for artifact in self.artifacts]
        if self.history:
            written["history"] = [message.to_dict() for message in self.history]
        if self.metadata:
            written["metadata"] = jsonable(self.metadata)
        return written

    def copy(self) -> Task:
        """Return a task that shares nothing with this one."""
        return Task(
            self.id,
            self.context_id,
            self.status.copy(),
            [artifact.copy() for artifact in self.artifacts],
            [message.copy() for message in self.history],
            jsonable(self.metadata),
            from_message=self.from_message,
            extra=jsonable(self.extra),
        )
