"""ProtoLink's objects as A2A's and back: words, parts, messages, artifacts, and a hosted task.

Each function makes new objects that share nothing with what they were given. What A2A knows and
ProtoLink has no place for (media type of a text, metadata of a message) is left out, as
ProtoLink's own peers do.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from protolink_sync import models
from protolink_sync.a2a.wire.message import Message, new_id
from protolink_sync.a2a.wire.part import Part, encoded
from protolink_sync.a2a.wire.states import Role, TaskState
from protolink_sync.a2a.wire.task import Artifact, Task, TaskStatus
from protolink_sync.models import jsonable

__all__ = [
    "artifact_from_a2a",
    "artifact_to_a2a",
    "message_from_a2a",
    "message_to_a2a",
    "part_from_a2a",
    "part_to_a2a",
    "state_from_a2a",
    "state_to_a2a",
    "status_to_a2a",
    "task_to_a2a",
]

# The two enums share the words of these states; ProtoLink has none for the last two.
_STATE_FROM_A2A = {
    **{TaskState(state.value): state for state in models.TaskState},
    TaskState.REJECTED: models.TaskState.FAILED,
    TaskState.AUTH_REQUIRED: models.TaskState.INPUT_REQUIRED,
}
# Where the lifecycle's methods note why a task came to its end.
_REASON = {models.TaskState.FAILED: "error", models.TaskState.CANCELED: "cancel_reason"}


def state_to_a2a(state: models.TaskState) -> TaskState:
    """Return the A2A state of a ProtoLink state."""
    return TaskState(state.value)


def state_from_a2a(state: TaskState) -> models.TaskState:
    """Return the ProtoLink state nearest to an A2A state.

    Rejected is failed, auth-required is input-required.

    Source:
        wire/a2a.md 19, "States".
    """
    return _STATE_FROM_A2A[state]


def part_to_a2a(part: models.Part) -> Part:
    """Return a ProtoLink part as an A2A part.

    A type that A2A has no member for becomes data, with the type in its metadata. Text that is
    none, such as the object a language model answered with, becomes the text of its JSON.

    Raises:
        TypeError: The content has no JSON form.
        ModelError: It holds NaN, an infinity, or itself.

    Source:
        wire/a2a.md 19, "Parts".
    """
    kind, content = part.type, part.content
    if kind in ("text", "infer_output"):
        return Part(_as_text(content))
    if kind == "infer":
        members = content if isinstance(content, Mapping) else {"prompt": content}
        return Part(_as_text(members.get("prompt") or members.get("user")))
    if kind in ("bytes", "file", "uri"):
        return _file_to_a2a(content, is_address=kind == "uri")
    data = Part.from_data(jsonable(content))
    if kind != "json":
        data.metadata = {"protolinkPartType": kind}
    return data


def part_from_a2a(part: Part) -> models.Part:
    """Return an A2A part as a ProtoLink part: of type ``text``, ``bytes``, ``uri`` or ``json``.

    Source:
        wire/a2a.md 19, "Parts".
    """
    kind = part.kind
    if kind == "text":
        return models.Part.text(part.text or "")
    if kind == "data":
        return models.Part.json(jsonable(part.data))
    if kind == "unknown":
        return models.Part.json(part.to_dict())
    about = {
        "filename": part.filename or None,
        "mediaType": part.media_type or None,
        "metadata": jsonable(part.metadata),
    }
    if part.raw is not None:
        return models.Part("bytes", {"raw": encoded(part.raw), **about})
    return models.Part("uri", {"url": part.url, **about})


def message_to_a2a(
    message: models.Message, *, task_id: str = "", context_id: str = "", role: Role | None = None
) -> Message:
    """Return a ProtoLink message as an A2A message with the same id.

    Args:
        message: The message.
        task_id: The A2A task it belongs to.
        context_id: The A2A conversation it belongs to.
        role: Who says it; otherwise the user if the message says so, else the agent.

    Raises:
        TypeError: Some content has no JSON form.
        ModelError: It holds NaN, an infinity, or itself.

    Source:
        wire/a2a.md 19, "Roles".
    """
    return Message(
        [part_to_a2a(part) for part in message.parts],
        role or (Role.USER if message.role == "user" else Role.AGENT),
        _as_text(message.id),
        context_id,
        task_id,
    )


def message_from_a2a(message: Message) -> models.Message:
    """Return an A2A message as a ProtoLink message with the same id, or a new one if it has none.

    Source:
        wire/a2a.md 19, "Roles".
    """
    return models.Message(
        message.message_id or new_id(),
        "user" if message.role is Role.USER else "agent",
        [part_from_a2a(part) for part in message.parts],
    )


def artifact_to_a2a(artifact: models.Artifact) -> Artifact:
    """Return a ProtoLink artifact as an A2A artifact; one that only has an address points there.

    Raises:
        TypeError: Some content has no JSON form.
        ModelError: It holds NaN, an infinity, or itself.
    """
    parts = [part_to_a2a(part) for part in artifact.parts]
    if not parts and artifact.uri:
        parts = [Part.from_url(artifact.uri, artifact.media_type)]
    return Artifact(
        parts, _as_text(artifact.id), artifact.name or "", metadata=jsonable(artifact.metadata)
    )


def artifact_from_a2a(artifact: Artifact) -> models.Artifact:
    """Return an A2A artifact as a ProtoLink artifact of kind ``result`` with the same id."""
    return models.Artifact(
        artifact.artifact_id or new_id(),
        [part_from_a2a(part) for part in artifact.parts],
        jsonable(artifact.metadata),
        name=artifact.name or None,
    )


def status_to_a2a(task: models.Task, context_id: str) -> TaskStatus:
    """Return where a hosted task stands.

    The message is the newest one that is not the user's. A task that failed or was canceled for
    a reason says the reason instead: A2A has no other place for it.

    Raises:
        TypeError: Some content has no JSON form.
        ModelError: It holds NaN, an infinity, or itself.

    Source:
        wire/a2a.md 19, "Server side".
    """
    task_id = _as_text(task.id)
    said = next((item for item in reversed(task.messages) if item.role != "user"), None)
    message = None
    if reason := task.metadata.get(_REASON.get(task.state, "")):
        message = Message.agent(_as_text(reason), task_id=task_id, context_id=context_id)
        # Not a new id each time: callers tell messages apart by it.
        message.message_id = f"{task_id}-{task.state.value}"
    elif said is not None:
        message = message_to_a2a(said, task_id=task_id, context_id=context_id)
    return TaskStatus(state_to_a2a(task.state), message, _changed_at(task))


def task_to_a2a(
    task: models.Task,
    context_id: str,
    *,
    history_length: int | None = None,
    with_artifacts: bool = True,
) -> Task:
    """Return a hosted task as an A2A task; its metadata stays here.

    Args:
        task: The task.
        context_id: The A2A conversation it belongs to.
        history_length: How many of the newest messages to tell; None is all, 0 is none.
        with_artifacts: Whether to tell what it brought forth.

    Raises:
        TypeError: Some content has no JSON form.
        ModelError: It holds NaN, an infinity, or itself.

    Source:
        wire/a2a.md 19, "Server side"; B22.
    """
    task_id, messages = _as_text(task.id), task.messages
    if history_length is not None:
        messages = messages[-history_length:] if history_length else []
    return Task(
        task_id,
        context_id,
        status_to_a2a(task, context_id),
        [artifact_to_a2a(artifact) for artifact in task.artifacts] if with_artifacts else [],
        [message_to_a2a(item, task_id=task_id, context_id=context_id) for item in messages],
    )


def _as_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(jsonable(value), ensure_ascii=False)


def _file_to_a2a(content: Any, *, is_address: bool) -> Part:
    """Return the content of a file: its bytes, or its address, or data if it has neither."""
    if not isinstance(content, Mapping):
        return Part(url=_as_text(content)) if is_address else Part(raw=_as_bytes(content))
    raw, url = content.get("raw"), content.get("url") or content.get("uri")
    if url and (is_address or raw is None):
        part = Part(url=_as_text(url))
    elif raw is not None:
        part = Part(raw=_as_bytes(raw))
    else:
        part = Part.from_data(jsonable(content))
    part.filename = _as_text(content.get("filename"))
    part.media_type = _as_text(content.get("mediaType", content.get("media_type")))
    metadata = content.get("metadata")
    if isinstance(metadata, Mapping):
        part.metadata = jsonable(metadata)
    return part


def _as_bytes(value: Any) -> bytes:
    """Return bytes as they are, those of base64 text, or the text itself if it is no base64."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    text = _as_text(value)
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return text.encode()


def _changed_at(task: models.Task) -> str:
    """Return when a task came to its state, as A2A writes moments: with ``Z``."""
    history = task.metadata.get("state_history")
    latest = history[-1] if isinstance(history, list) and history else None
    moment = latest.get("timestamp") if isinstance(latest, Mapping) else None
    if not isinstance(moment, str):
        moment = task.messages[-1].timestamp if task.messages else task.created_at
    return moment[:-6] + "Z" if moment and moment.endswith("+00:00") else moment or ""
