"""TaskAssembly: a task put together from the events of a stream, and when a stream is over."""

from __future__ import annotations

from protolink_sync.a2a.wire._reading import path_of
from protolink_sync.a2a.wire.events import StreamEvent, TaskArtifactUpdate, TaskStatusUpdate
from protolink_sync.a2a.wire.message import Message
from protolink_sync.a2a.wire.states import TaskState, WireDialect
from protolink_sync.a2a.wire.task import Task, TaskStatus
from protolink_sync.errors import ModelError

__all__ = ["TaskAssembly", "ends_stream"]


def ends_stream(
    event: StreamEvent,
    *,
    dialect: WireDialect,
    stop_on_interrupted: bool = True,
    is_opening_of_subscription: bool = False,
) -> bool:
    """Tell whether nothing worth waiting for follows an event, so that the reader should stop.

    Args:
        event: The event.
        dialect: What the stream speaks; the mark ``final`` counts in 0.3 only.
        stop_on_interrupted: Stop when the task waits for the caller. Some agents keep the stream
            open then, others close it.
        is_opening_of_subscription: It is the first event of a subscription, which tells where
            the task stands already: waiting for the caller is no news then.

    Source:
        wire/a2a.md B42.
    """
    if event.message is not None:
        return True
    state = event.state
    if state is None:
        return False
    if state.is_terminal:
        return True
    update = event.status_update
    if dialect is WireDialect.V0_3 and update is not None and update.final:
        return True
    return state.is_interrupted and stop_on_interrupted and not is_opening_of_subscription


def _is_end(event: StreamEvent) -> bool:
    """Tell whether a stream may end behind an event.

    Some 0.3 agents say ``final: false`` of a state that waits for the caller, and end all the
    same (Q2): so the state counts beside the mark.
    """
    state = event.state
    return event.is_final or (state is not None and (state.is_terminal or state.is_interrupted))


class TaskAssembly:
    """Put a task together from the events of one stream, or of several in turn.

    Once the task is terminal, no later event changes it.

    Source:
        wire/a2a.md B44, B45.
    """

    def __init__(self) -> None:
        self._task: Task | None = None
        self._may_end = False
        self._places: dict[str, int] = {}  # of artifacts, by their ids

    @property
    def task(self) -> Task | None:
        """A copy of the task as it stands, for the caller to keep; None before any event."""
        return None if self._task is None else self._task.copy()

    @property
    def task_id(self) -> str:
        """The id of the task; empty while it is not known."""
        return "" if self._task is None else self._task.id

    @property
    def state(self) -> TaskState | None:
        """Where the task stands; None before any event."""
        return None if self._task is None else self._task.status.state

    @property
    def may_end(self) -> bool:
        """True if a stream that ends now is whole, False if it was cut.

        It may end after a message, a mark ``final``, and in a state that is terminal or waits
        for the caller.

        Source:
            wire/a2a.md B43.
        """
        return self._may_end

    def see(self, event: StreamEvent) -> None:
        """Take one event over. An event of an unknown kind changes nothing.

        Raises:
            ModelError: It is about another task than the events before.
        """
        if self._task is not None and self._task.is_terminal:
            return
        self._check(event)
        if event.task is not None:
            self._task = event.task.copy()
            self._places = {a.artifact_id: n for n, a in enumerate(self._task.artifacts)}
        elif event.message is not None:
            self._say(event.message.copy())
        elif event.status_update is not None:
            self._move(event.status_update)
        elif event.artifact_update is not None:
            self._bring(event.artifact_update)
        if event.message is not None or event.state is not None:
            self._may_end = _is_end(event)

    def _check(self, event: StreamEvent) -> None:
        ours, theirs = self.task_id, event.task_id
        if ours and theirs and ours != theirs:
            path = path_of((None, "id" if event.task is not None else "taskId"))
            raise ModelError(
                f"an event of task {theirs!r} in the stream of task {ours!r} @ {path}", path=path
            )

    def _say(self, message: Message) -> None:
        """Take a bare message: the answer itself, or the last word on a task that is known."""
        if self._task is None:
            self._task = Task.of_message(message)
        else:
            self._task.history.append(message)

    def _move(self, update: TaskStatusUpdate) -> None:
        task = self._known(update.task_id, update.context_id)
        task.status = update.status.copy()
        task.metadata.update(update.metadata)
        said = task.status.message
        if said is None:
            return
        last = task.history[-1].message_id if task.history else ""
        if not last or last != said.message_id:
            task.history.append(said.copy())

    def _bring(self, update: TaskArtifactUpdate) -> None:
        task = self._known(update.task_id, update.context_id)
        new = update.artifact.copy()
        place = self._places.setdefault(new.artifact_id, len(task.artifacts))
        if place == len(task.artifacts):
            task.artifacts.append(new)
        elif update.append:
            task.artifacts[place].parts.extend(new.parts)
            task.artifacts[place].metadata.update(new.metadata)
        else:
            task.artifacts[place] = new

    def _known(self, task_id: str, context_id: str) -> Task:
        """Return the task, made from what an update names if it has not been seen itself."""
        if self._task is None:
            self._task = Task(task_id, context_id, TaskStatus(TaskState.SUBMITTED))
        self._task.id = self._task.id or task_id
        self._task.context_id = self._task.context_id or context_id
        return self._task
