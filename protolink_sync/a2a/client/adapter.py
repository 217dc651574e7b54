"""ProtoLink's tasks for A2A agents: what is sent of a task, and what an answer makes of it."""

from __future__ import annotations

from typing import Any

import attrs

from protolink_sync import models
from protolink_sync.a2a.wire import (
    Message,
    Role,
    Task,
    TaskStatus,
    WireDialect,
    artifact_from_a2a,
    message_from_a2a,
    message_to_a2a,
    state_from_a2a,
)
from protolink_sync.models import jsonable

__all__ = ["RemoteIds", "answered", "named_ids", "sent_message"]

_URL = "a2a_remote_agent_url"
_TASK_ID = "a2a_remote_task_id"
_CONTEXT_ID = "a2a_remote_context_id"
_STATE = "a2a_remote_state"
_TIMESTAMP = "a2a_remote_status_timestamp"
_METADATA = "a2a_remote_metadata"


@attrs.frozen
class RemoteIds:
    """What an agent calls a task and the conversation it belongs to; empty where it is unknown."""

    task_id: str = ""
    context_id: str = ""


def named_ids(task: models.Task, agent_url: str) -> RemoteIds | None:
    """Return the ids in a task's metadata if they are those of this agent, else None.

    Args:
        task: The task; it may come from anywhere.
        agent_url: The agent's address, without a slash at its end.
    """
    named = task.metadata.get(_URL)
    if not isinstance(named, str) or named.rstrip("/") != agent_url:
        return None
    return RemoteIds(_text(task.metadata.get(_TASK_ID)), _text(task.metadata.get(_CONTEXT_ID)))


def sent_message(task: models.Task, ids: RemoteIds) -> Message:
    """Return what is sent of a task: the user's last message, else the last one.

    Args:
        task: The task.
        ids: What it goes on with at the agent.

    Raises:
        ValueError: It has no message, or one without parts.
        TypeError: Some content has no JSON form.

    Source:
        wire/a2a.md 19, "Request built by send_task".
    """
    if not task.messages:
        raise ValueError("the task has no message, and an A2A agent is sent one: add_message(...)")
    asked = (message for message in reversed(task.messages) if message.role == "user")
    message = next(asked, task.messages[-1])
    if not message.parts:
        raise ValueError(f"the message {message.id!r:.80} has no parts, and A2A wants at least one")
    return message_to_a2a(message, task_id=ids.task_id, context_id=ids.context_id, role=Role.USER)


def answered(
    task: models.Task, answer: Task, agent_url: str, dialect: WireDialect, sent: Message | None
) -> models.Task:
    """Write an agent's answer into a task and return the task, whose id stays what it is.

    Args:
        task: The task that was sent, or a copy of it: it is changed.
        answer: What came back.
        agent_url: The agent's address, without a slash at its end.
        dialect: In which dialect.
        sent: The message that was sent; None if none was.

    Source:
        wire/a2a.md 19, "Result → task".
    """
    task.state = state_from_a2a(answer.status.state)
    _add_messages(task, answer, sent)
    _add_artifacts(task, answer)
    _write_metadata(task.metadata, answer, agent_url, dialect, sent)
    return task


def _add_messages(task: models.Task, answer: Task, sent: Message | None) -> None:
    known = {message.id for message in task.messages}
    if sent is not None:
        known.add(sent.message_id)  # an id that is no text went out as one
    told = [*answer.history]
    if answer.status.message is not None and not answer.from_message:
        told.append(answer.status.message)
    for message in told:
        if not message.message_id or message.message_id not in known:
            known.add(message.message_id)
            task.add_message(message_from_a2a(message))


def _add_artifacts(task: models.Task, answer: Task) -> None:
    places = {artifact.id: place for place, artifact in enumerate(task.artifacts)}
    for told in answer.artifacts:
        artifact = artifact_from_a2a(told)
        place = places.get(artifact.id)
        if place is None:
            places[artifact.id] = len(task.artifacts)
            task.add_artifact(artifact)
        else:
            task.artifacts[place] = artifact


def _write_metadata(
    metadata: dict[str, Any],
    answer: Task,
    agent_url: str,
    dialect: WireDialect,
    sent: Message | None,
) -> None:
    # Nothing of an earlier answer stays, least of all another agent's ids under this one's name.
    for key in (_TASK_ID, _CONTEXT_ID, _TIMESTAMP, _METADATA):
        metadata.pop(key, None)
    metadata[_URL] = agent_url
    metadata[_STATE] = _wire_state(answer.status, dialect)
    # A bare message names the task that it goes on with, or none.
    before = RemoteIds()
    if sent is not None and answer.from_message:
        before = RemoteIds(sent.task_id, sent.context_id)
    for key, text in (
        (_TASK_ID, answer.id or before.task_id),
        (_CONTEXT_ID, answer.context_id or before.context_id),
        (_TIMESTAMP, answer.status.timestamp),
    ):
        if text:
            metadata[key] = text
    if answer.metadata:
        metadata[_METADATA] = jsonable(answer.metadata)


def _wire_state(status: TaskStatus, dialect: WireDialect) -> str:
    """Return a state as the agent wrote it."""
    if status.state_text is not None or dialect is WireDialect.V0_3:
        return status.state_text or status.state.value
    written: str = TaskStatus(status.state).to_dict()["state"]
    return written


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
