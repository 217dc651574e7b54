"""One A2A task: where it stands, what callers see of it, and who follows it.

What callers see of a task is put together from what it has told so far, never from the object that
the handler works on. When a run is over, what the task came to takes its place.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable
from datetime import datetime, timezone
from typing import TypeAlias

from protolink_sync import models
from protolink_sync.a2a.wire import (
    A2AInvalidParamsError,
    A2ARpcError,
    A2AUnsupportedOperationError,
    Message,
    StreamEvent,
    Task,
    TaskAssembly,
    TaskState,
    TaskStatus,
    TaskStatusUpdate,
    message_to_a2a,
    task_to_a2a,
)
from protolink_sync.server.a2a_followers import Follower
from protolink_sync.wire import json

__all__ = ["HostedTask", "Owner"]

Owner: TypeAlias = tuple[Hashable, str]
"""To whom a task belongs: the principal and the tenant. Nobody else learns that it exists."""

# How long a task waits for those who follow it and do not read, before it goes on without them.
_PATIENCE = 10.0


class HostedTask:
    """One task, from the first message to the end of its time in the list.

    It is running from the beginning; :meth:`end` ends that, :meth:`go_on` begins it again.

    Args:
        task: The task as the agent gets it.
        context_id: The conversation it belongs to.
        owner: To whom it belongs.
        size: Bytes of the request.

    Attributes:
        task: As given; of a task that waits for input, what the last run made of it.
        changed_at: When its state was last changed by a run or a caller, on the monotonic clock.
        changed_ns: The same in nanoseconds since 1970.
        is_worked_on: A thread of its own works on it: nobody waits for the result.
    """

    def __init__(self, task: models.Task, context_id: str, owner: Owner, size: int) -> None:
        self.task = task
        self.id: str = task.id
        self.context_id = context_id
        self.owner = owner
        self._sent = size
        # Of what callers have sent, and of what the last run came to.
        self.size = size
        self.is_running = True
        self.is_worked_on = False
        self._lock = threading.RLock()
        self._followers: list[Follower] = []
        self._view = TaskAssembly()
        self._view.see(StreamEvent(task=task_to_a2a(task, context_id)))
        self._touch()

    @property
    def state(self) -> TaskState:
        """Where it stands."""
        state = self._view.state
        assert state is not None
        return state

    def seen(self, history_length: int | None = None, *, with_artifacts: bool = True) -> Task:
        """Return what callers see of it now.

        Args:
            history_length: How many of the newest messages; None is all.
            with_artifacts: Whether to tell what it brought forth.
        """
        with self._lock:
            task = self._view.task
        assert task is not None
        task.metadata.clear()  # it is about single events
        if history_length is not None:
            task.history = task.history[-history_length:] if history_length else []
        if not with_artifacts:
            task.artifacts = []
        return task

    def go_on(self, message: models.Message, context_id: str) -> None:
        """Begin another run with one more message.

        Raises:
            A2AInvalidParamsError: The message names another conversation.
            A2AUnsupportedOperationError: The task is at its end, or running.
        """
        with self._lock:
            if context_id and context_id != self.context_id:
                raise A2AInvalidParamsError(
                    "the contextId of the message is not that of its task", code=-32602
                )
            if self.state.is_terminal or self.is_running:
                raise self._refuses("takes no message")
            said = message_to_a2a(message, task_id=self.id, context_id=self.context_id)
            task = task_to_a2a(self.task, self.context_id)
            task.history.append(said)
            self.task.add_message(message)
            task.status = TaskStatus(TaskState.WORKING, timestamp=_now())
            self._view.see(StreamEvent(task=task))
            self.is_running = True
            self._touch()

    def grow(self, size: int) -> None:
        """Count the bytes of a further request."""
        with self._lock:
            self._sent += size
            self.size += size

    # ---- what a run tells ----

    def wait_for_followers(self) -> None:
        """Wait until those who follow have read on; who does not is left behind."""
        with self._lock:
            followers = list(self._followers)
        end = time.monotonic() + _PATIENCE
        for follower in followers:
            if not follower.wait_for_room(end):
                follower.fail("this stream was read too slowly; subscribe to the task again")

    def tell(self, event: StreamEvent) -> None:
        """Let everybody know an event, unless the task is at its end already.

        Raises:
            TypeError: It has no JSON form.
            ModelError: It holds NaN, an infinity, or itself.
        """
        with self._lock:
            if not self.is_running:
                return
            if self._followers:
                told = json.dumps(event.to_dict(), finite=True)
                for follower in self._followers:
                    follower.put(told)
            self._view.see(event)

    def end(self, task: Task) -> None:
        """Take over what a run came to, unless the task is at its end already."""
        with self._lock:
            if not self.is_running:
                return
            self._view.see(StreamEvent(task=task))
            self._stop(task)

    def fail(self, reason: str) -> None:
        """End the task as failed, with what it has told so far."""
        self._give_up(TaskState.FAILED, reason)

    def cancel(self, reason: str) -> bool:
        """End the task as canceled, with what it has told so far; False if it is at its end."""
        return self._give_up(TaskState.CANCELED, reason)

    def _give_up(self, state: TaskState, reason: str) -> bool:
        with self._lock:
            if self.state.is_terminal:
                return False
            task = self.seen()
            message = Message.agent(reason, task_id=self.id, context_id=self.context_id)
            task.status = TaskStatus(state, message, _now())
            self._view.see(StreamEvent(task=task))
            self._stop(task)
            return True

    def _stop(self, task: Task) -> None:
        """Tell the last event of a run; the lock is held."""
        self.is_running = self.is_worked_on = False
        self.size = self._sent + len(json.dumps(task.to_dict(), finite=True))
        self._touch()
        if self._followers:
            update = TaskStatusUpdate(self.id, self.context_id, task.status)
            told = json.dumps(StreamEvent(status_update=update).to_dict(), finite=True)
            for follower in self._followers:
                follower.put(told, last=True)

    def _touch(self) -> None:
        self.changed_at = time.monotonic()
        self.changed_ns = time.time_ns()

    # ---- those who follow ----

    def follow(self, follower: Follower) -> None:
        """Tell somebody what happens from now on; the first event is the task as it stands.

        Raises:
            A2AUnsupportedOperationError: The task is at its end.
        """
        with self._lock:
            if self.state.is_terminal:
                raise self._refuses("cannot be followed")
            follower.put(json.dumps(StreamEvent(task=self.seen()).to_dict(), finite=True))
            self._followers.append(follower)
            follower.when_left(self._forget)

    def dismiss(self, reason: str) -> None:
        """End the streams of those who follow, whatever becomes of the task."""
        with self._lock:
            followers = list(self._followers)
        for follower in followers:
            follower.fail(reason)

    def _forget(self, follower: Follower) -> None:
        with self._lock:
            if follower in self._followers:
                self._followers.remove(follower)

    def _refuses(self, what: str) -> A2ARpcError:
        state = "running" if self.is_running else self.state.value
        return A2AUnsupportedOperationError(f"task {self.id} is {state} and {what}", code=-32004)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat()[:-6] + "Z"
