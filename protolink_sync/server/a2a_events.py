"""What a hosted agent tells of a task, as A2A tells it.

=================================  =============================================================
the agent tells                    A2A callers get
=================================  =============================================================
that the work has begun            a status update, working
a piece of the model's text        an artifact update, appended to the pieces before
an artifact of the task            an artifact update; not again the text that came in pieces
anything else                      a status update, working, with its ``message`` as the agent's
                                   and the whole event under ``protolinkEvent`` in the metadata
=================================  =============================================================
"""

from __future__ import annotations

from typing import Any

from protolink_sync import models
from protolink_sync.a2a.wire import (
    Artifact,
    Message,
    Part,
    StreamEvent,
    Task,
    TaskArtifactUpdate,
    TaskState,
    TaskStatus,
    TaskStatusUpdate,
    artifact_to_a2a,
    task_to_a2a,
)
from protolink_sync.server.events import says_working

__all__ = ["Narration"]


class Narration:
    """Turn what one run of a task tells into the events of A2A.

    Args:
        seen: The task as callers see it at the beginning of the run.
    """

    def __init__(self, seen: Task) -> None:
        self._id = seen.id
        self._context_id = seen.context_id
        # The artifacts as told; None stands for a text that came in pieces.
        self._told: dict[str, Artifact | None] = {a.artifact_id: a for a in seen.artifacts}
        # The text that comes in pieces now: its id, empty if there is none, and the pieces.
        self._open = ""
        self._pieces: list[str] = []
        # The texts that are whole and no artifact's yet; the ids of artifacts that turned out to
        # be such a text. Both lead to, or from, the id under which the pieces were told.
        self._texts: dict[str, str] = {}
        self._ids: dict[Any, str] = {}

    def events(self, event: Any) -> list[StreamEvent]:
        """Return what callers are told about an event, in order.

        Raises:
            TypeError: It has no JSON form.
            ModelError: It holds NaN, an infinity, or itself.
        """
        kind = event.get("type") if isinstance(event, dict) else None
        if says_working(event):
            return [self._status(event)]
        if kind == "task_llm_stream":
            word, text = event.get("llm_event_type"), event.get("content")
            if word == "llm_chunk" and isinstance(text, str):
                return self._piece(text)
            if word == "llm_final":
                return self._whole()
        # That of another task, which a handler passes on, is none of this one.
        if kind == "task_artifact_update" and event.get("task_id") == self._id:
            artifact = _artifact_in(event)
            if artifact is not None:
                return self._brought(artifact)
        return [self._remark(event)]

    def end(self, task: models.Task) -> tuple[list[StreamEvent], Task]:
        """Return what callers have not been told yet, and the task as it is from now on.

        Args:
            task: What the run came to. An artifact whose text was told in pieces gets the id
                under which that was done; such a text that is no artifact's becomes one.

        Raises:
            TypeError: Something in it has no JSON form.
            ModelError: It holds NaN, an infinity, or itself.
        """
        events = self._whole()
        for artifact in task.artifacts:
            artifact.id = self._id_in_pieces(artifact) or artifact.id
        for id, text in self._texts.items():
            part = models.Part.infer_output(text)
            task.artifacts.append(models.Artifact(id, [part], kind="preview"))
        result = task_to_a2a(task, self._context_id)
        for told in result.artifacts:
            if self._told.get(told.artifact_id, _NEVER) not in (told, None):
                events.append(self._update(told, last_chunk=True))
        return events, result

    # ---- texts and artifacts ----

    def _piece(self, text: str) -> list[StreamEvent]:
        if not text:
            return []
        is_first = not self._open
        piece = Artifact([Part(text)], self._open) if self._open else Artifact([Part(text)])
        self._open = piece.artifact_id
        self._pieces.append(text)
        return [self._update(piece, append=not is_first)]

    def _whole(self) -> list[StreamEvent]:
        """Say that the text that came in pieces is whole, if there is one."""
        if not self._open:
            return []
        id, self._open = self._open, ""
        self._texts[id], self._pieces = "".join(self._pieces), []
        self._told[id] = None
        # Only now it is known which piece was the last one: the mark needs a piece of its own.
        return [self._update(Artifact([Part("")], id), append=True, last_chunk=True)]

    def _brought(self, artifact: models.Artifact) -> list[StreamEvent]:
        """Tell an artifact, unless it is the text that came in pieces."""
        events = self._whole()
        if self._id_in_pieces(artifact) is not None:
            return events
        told = artifact_to_a2a(artifact)
        self._told[told.artifact_id] = told
        return [*events, self._update(told, last_chunk=True)]

    def _id_in_pieces(self, artifact: models.Artifact) -> str | None:
        """Return under which id an artifact was told in pieces, if it was."""
        if artifact.id not in self._ids and len(artifact.parts) == 1:
            content = artifact.parts[0].content
            for id, text in self._texts.items():
                if text == content:
                    del self._texts[id]
                    self._ids[artifact.id] = id
                    break
        return self._ids.get(artifact.id)

    def _update(
        self, artifact: Artifact, *, append: bool = False, last_chunk: bool = False
    ) -> StreamEvent:
        update = TaskArtifactUpdate(self._id, self._context_id, artifact, append, last_chunk)
        return StreamEvent(artifact_update=update)

    # ---- where it stands ----

    def _status(self, event: dict[str, Any], message: Message | None = None) -> StreamEvent:
        moment = event.get("timestamp")
        text = moment if isinstance(moment, str) else ""
        status = TaskStatus(TaskState.WORKING, message, text.replace("+00:00", "Z"))
        return StreamEvent(status_update=TaskStatusUpdate(self._id, self._context_id, status))

    def _remark(self, event: Any) -> StreamEvent:
        members = event if isinstance(event, dict) else {}
        said, message = members.get("message"), None
        if isinstance(said, str) and said:
            message = Message.agent(said, task_id=self._id, context_id=self._context_id)
        told = self._status(members, message)
        assert told.status_update is not None
        told.status_update.metadata = {"protolinkEvent": models.jsonable(event)}
        return told


_NEVER = Artifact(artifact_id="")


def _artifact_in(event: dict[str, Any]) -> models.Artifact | None:
    """Return the artifact in an event; None if a handler of the agent's own wrote another form."""
    try:
        return models.Artifact.from_dict(event["artifact"])
    except (KeyError, ValueError):
        return None
