"""What comes on a stream, one thing at a time: StreamEvent and the two kinds of updates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from protolink_sync.a2a.wire._object import A2AObject
from protolink_sync.a2a.wire._reading import (
    Place,
    absent,
    flag_at,
    members_of,
    object_at,
    others,
    path_of,
    text_at,
)
from protolink_sync.a2a.wire.message import Message
from protolink_sync.a2a.wire.states import TaskState
from protolink_sync.a2a.wire.task import Artifact, Task, TaskStatus
from protolink_sync.errors import ModelError
from protolink_sync.models import jsonable

__all__ = ["StreamEvent", "TaskArtifactUpdate", "TaskStatusUpdate", "content_of"]

_STATUS_UPDATE = frozenset({"kind", "taskId", "contextId", "status", "metadata", "final"})
_ARTIFACT_UPDATE = frozenset(
    {"kind", "taskId", "contextId", "artifact", "append", "lastChunk", "metadata"}
)


@attrs.define(repr=False, eq=False)
class TaskStatusUpdate(A2AObject):
    """A task came to stand elsewhere.

    Args:
        task_id: The task.
        context_id: The conversation it belongs to.
        status: Where it stands now.
        metadata: Anything about the change.
        final: The mark of 0.3 that nothing follows; None in 1.0, which has none.
        extra: Members this library does not know; written back as they are.

    Source:
        wire/a2a.md 5.
    """

    task_id: str
    context_id: str
    status: TaskStatus
    metadata: dict[str, Any] = attrs.field(factory=dict)
    final: bool | None = None
    extra: dict[str, Any] = attrs.field(factory=dict, kw_only=True)

    @classmethod
    def from_dict(cls, data: Any, place: Place = None) -> TaskStatusUpdate:
        """Read the update in the form of either dialect.

        Raises:
            ModelError: It has not that form; ``path`` says where.
        """
        members = members_of(data, "a status update", place)
        if members.get("status") is None:
            raise absent("status", place)
        return cls(
            text_at(members, "taskId", place),
            text_at(members, "contextId", place),
            TaskStatus.from_dict(members["status"], (place, "status")),
            object_at(members, "metadata", place),
            flag_at(members, "final", place),
            extra=others(members, _STATUS_UPDATE),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the form of 1.0.

        Raises:
            TypeError: Some content has no JSON form; the message says where.
        """
        written: dict[str, Any] = jsonable(self.extra)
        written["taskId"] = self.task_id
        written["contextId"] = self.context_id
        written["status"] = self.status.to_dict()
        if self.metadata:
            written["metadata"] = jsonable(self.metadata)
        return written


@attrs.define(repr=False, eq=False)
class TaskArtifactUpdate(A2AObject):
    """A task brought forth an artifact, or a piece of one.

    Args:
        task_id: The task.
        context_id: The conversation it belongs to.
        artifact: The artifact or the piece.
        append: The parts follow those sent before under the same artifact id.
        last_chunk: The artifact is complete now.
        metadata: Anything about the update.
        extra: Members this library does not know; written back as they are.

    Source:
        wire/a2a.md 5, B45.
    """

    task_id: str
    context_id: str
    artifact: Artifact
    append: bool = False
    last_chunk: bool = False
    metadata: dict[str, Any] = attrs.field(factory=dict)
    extra: dict[str, Any] = attrs.field(factory=dict, kw_only=True)

    @classmethod
    def from_dict(cls, data: Any, place: Place = None) -> TaskArtifactUpdate:
        """Read the update in the form of either dialect.

        Raises:
            ModelError: It has not that form; ``path`` says where.
        """
        members = members_of(data, "an artifact update", place)
        if members.get("artifact") is None:
            raise absent("artifact", place)
        return cls(
            text_at(members, "taskId", place),
            text_at(members, "contextId", place),
            Artifact.from_dict(members["artifact"], (place, "artifact")),
            flag_at(members, "append", place) or False,
            flag_at(members, "lastChunk", place) or False,
            object_at(members, "metadata", place),
            extra=others(members, _ARTIFACT_UPDATE),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the form of 1.0.

        Raises:
            TypeError: Some content has no JSON form; the message says where.
        """
        written: dict[str, Any] = jsonable(self.extra)
        written["taskId"] = self.task_id
        written["contextId"] = self.context_id
        written["artifact"] = self.artifact.to_dict()
        if self.append:
            written["append"] = True
        if self.last_chunk:
            written["lastChunk"] = True
        if self.metadata:
            written["metadata"] = jsonable(self.metadata)
        return written


@attrs.frozen(repr=False, eq=False)
class StreamEvent(A2AObject):
    """One thing that came on a stream or in a push notification.

    One of the first four is set; none of them for a kind that this library does not know. Later
    events do not change it.

    Args:
        task: The task as it stands.
        message: The agent's whole answer.
        status_update: The task came to stand elsewhere.
        artifact_update: The task brought something forth.
        raw: The JSON value as received.

    Source:
        wire/a2a.md 5, B41, B46, B47.
    """

    task: Task | None = None
    message: Message | None = None
    status_update: TaskStatusUpdate | None = None
    artifact_update: TaskArtifactUpdate | None = None
    raw: Any = attrs.field(default=None, eq=False, repr=False)

    @property
    def kind(self) -> str:
        """``task``, ``message``, ``status-update``, ``artifact-update``, or the peer's word."""
        for kind, (name, _) in _KINDS.items():
            if getattr(self, name) is not None:
                return kind
        members = self.raw if isinstance(self.raw, Mapping) else {}
        word = members.get("kind")
        return word if isinstance(word, str) else next(iter(members), "unknown")

    @property
    def content(self) -> Task | Message | TaskStatusUpdate | TaskArtifactUpdate | None:
        """Whichever of the four is set; None for a kind that this library does not know."""
        return self.task or self.message or self.status_update or self.artifact_update

    @property
    def is_final(self) -> bool:
        """True if the peer says or implies that nothing follows for now.

        In 0.3 a status update says so; else a message ends the exchange, and so does a state
        that is terminal or waits for the caller.
        """
        if self.status_update is not None and self.status_update.final is not None:
            return self.status_update.final
        state = self.state
        return self.message is not None or (
            state is not None and (state.is_terminal or state.is_interrupted)
        )

    @property
    def text(self) -> str:
        """What it says: the text of its message, artifact or status; of a task, the answer."""
        if self.artifact_update is not None:
            return self.artifact_update.artifact.text
        if self.status_update is not None:
            said = self.status_update.status.message
            return "" if said is None else said.text
        about = self.task or self.message
        return "" if about is None else about.text

    @property
    def task_id(self) -> str:
        """The task it is about; empty if it names none."""
        if self.task is not None:
            return self.task.id
        about = self.message or self.status_update or self.artifact_update
        return "" if about is None else about.task_id

    @property
    def context_id(self) -> str:
        """The conversation it is about; empty if it names none."""
        about = self.content
        return "" if about is None else about.context_id

    @property
    def state(self) -> TaskState | None:
        """The state it tells; None for messages, artifacts and unknown kinds."""
        about = self.task or self.status_update
        return None if about is None else about.status.state

    @classmethod
    def from_dict(cls, data: Any, place: Place = None) -> StreamEvent:
        """Read an event in the form of either dialect.

        Args:
            data: The decoded JSON object: wrapped as in 1.0, or bare as in 0.3.
            place: Where it stands in what was received.

        Raises:
            ModelError: It is no object, or one of a known kind that has not its form.
        """
        members = members_of(data, "an event", place)
        kind, value, inside = content_of(members, place)
        if kind is None:
            return cls(raw=data)
        name, read = _KINDS[kind]
        found: Any = read(value, inside)
        if name == "status_update" and inside is not place and "final" in value:
            # 1.0 knows no such mark; a stray one means nothing there.
            found.final = None
            found.extra["final"] = value["final"]
        return cls(**{name: found}, raw=data)

    def to_dict(self) -> dict[str, Any]:
        """Return the form of 1.0; of an unknown kind, what was received.

        Raises:
            TypeError: Some content has no JSON form; the message says where.
        """
        for kind, (name, _) in _KINDS.items():
            content = getattr(self, name)
            if content is not None:
                return {_WRAPPERS[kind]: content.to_dict()}
        return dict(self.raw or {})


_KINDS: dict[str, tuple[str, Any]] = {
    "task": ("task", Task.from_dict),
    "message": ("message", Message.from_dict),
    "status-update": ("status_update", TaskStatusUpdate.from_dict),
    "artifact-update": ("artifact_update", TaskArtifactUpdate.from_dict),
}
_WRAPPERS = {
    "task": "task",
    "message": "message",
    "status-update": "statusUpdate",
    "artifact-update": "artifactUpdate",
}


def content_of(members: Mapping[str, Any], place: Place) -> tuple[str | None, Any, Place]:
    """Tell what an object holds: its kind, the content, and where that stands.

    The kind is None if nobody knows it. The word ``kind`` of 0.3 decides, else the wrapper of
    1.0, else what a bare object without either looks like.

    Raises:
        ModelError: Two things are in one wrapper, so that nobody can tell which is meant.

    Source:
        wire/a2a.md B27.
    """
    kind = members.get("kind")
    if isinstance(kind, str) and kind in _KINDS:
        return kind, members, place
    wrapped = [kind for kind, name in _WRAPPERS.items() if members.get(name) is not None]
    if len(wrapped) > 1:
        path = path_of(place)
        raise ModelError(f"both {wrapped[0]} and {wrapped[1]} @ {path}", path=path)
    if wrapped:
        name = _WRAPPERS[wrapped[0]]
        return wrapped[0], members[name], (place, name)
    return _looks_like(members), members, place


def _looks_like(members: Mapping[str, Any]) -> str | None:
    if "kind" in members:
        return None
    if members.get("artifact") is not None:
        return "artifact-update"
    if members.get("status") is not None:
        return "task" if members.get("id") is not None else "status-update"
    return "message" if members.get("role") is not None and "parts" in members else None
