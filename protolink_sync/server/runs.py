"""What an agent is executing now, and how it is cancelled."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Hashable
from contextvars import ContextVar, Token
from typing import Any

from protolink_sync.models import Task, TaskCancellationRequest
from protolink_sync.server.refusal import RefusedError

__all__ = ["Run", "Runs", "current_run", "is_cancelled", "outcome"]

_current: ContextVar[Run] = ContextVar("protolink_sync.server.run")
# A handler may change the task while it is copied; each attempt is a matter of microseconds.
_ATTEMPTS = 10


class Run:
    """One task in execution; a handler gets its own from ``agent.current_run()``.

    Cancelling is cooperative: it sets :attr:`cancelled`, and the handler ends when it looks.

    Attributes:
        task_id: Id of the task.
        principal: What ``authenticate`` returned for the caller; None where nobody is asked.
        cancelled: True once somebody has cancelled the task.
        reason: Why, if that was told.
    """

    reason: str | None = None
    cancelled = False
    canceled_task: Task | None = None
    token: Token[Run]

    def __init__(self, task: Task, principal: Hashable) -> None:
        self.task = task
        self.task_id: Any = task.id
        self.principal = principal
        self.key = (principal, task.id)
        self.thread = threading.get_ident()

    def __repr__(self) -> str:
        state = f"cancelled, reason={self.reason!r}" if self.cancelled else "running"
        return f"<Run of task {self.task_id!r}: {state}>"


def current_run() -> Run:
    """Return the run that the calling code is part of.

    Raises:
        RuntimeError: It is part of none.
    """
    try:
        return _current.get()
    except LookupError:
        raise RuntimeError(
            "no hosted task is being executed here: current_run() is for the code of a handler; "
            "hand the run to the threads that it starts"
        ) from None


def is_cancelled() -> bool:
    """Return whether the calling code is part of a run that somebody has cancelled."""
    run = _current.get(None)
    return run is not None and run.cancelled


class Runs:
    """The tasks that one agent is executing, by principal and id."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._running: dict[Hashable, Run] = {}

    def begin(self, task: Task, principal: Hashable) -> Run:
        """Enter a task that this thread is about to execute; :meth:`end` must follow.

        Raises:
            RefusedError: It is being executed already.
        """
        run = Run(task, principal)
        with self._lock:
            if self._running.setdefault(run.key, run) is not run:
                raise RefusedError(
                    409,
                    f"task {run.task_id!r} is being executed already",
                    "TaskAlreadyRunningError",
                )
        run.token = _current.set(run)
        return run

    def end(self, run: Run) -> None:
        """Take a task out; from here nobody can cancel it."""
        _current.reset(run.token)
        with self._lock:
            del self._running[run.key]

    def is_running(self, task_id: Any, principal: Hashable) -> bool:
        """Return whether a task is in execution and not cancelled."""
        run = self._running.get((principal, task_id))
        return run is not None and not run.cancelled

    def cancel(self, request: TaskCancellationRequest, principal: Hashable) -> Task:
        """Mark a task as cancelled and return it as it stands.

        Raises:
            RefusedError: It is not in execution, or has come to its end.
        """
        run = self._running.get((principal, request.id))
        if run is None:
            raise _not_running(request.id)
        return self._cancel(run, request.reason)

    def _cancel(self, run: Run, reason: str | None) -> Task:
        task = _copy(run.task)
        with self._lock:
            if self._running.get(run.key) is not run:
                raise _not_running(run.task_id)
            if run.canceled_task is None:
                if task.is_terminal:
                    raise RefusedError(
                        409,
                        f"task {run.task_id!r} cannot be canceled: it is {task.state_text} already",
                        "TaskNotCancelableError",
                    )
                run.canceled_task = _canceled(task, reason)
                run.reason, run.cancelled = reason, True
            return run.canceled_task

    def cancel_in(self, threads: Collection[int], reason: str) -> None:
        """Cancel what runs in some threads, as far as it can be."""
        with self._lock:
            runs = [run for run in self._running.values() if run.thread in threads]
        for run in runs:
            with contextlib.suppress(RefusedError):  # it ends by itself at this moment
                self._cancel(run, reason)

    def abandon(self, threads: Collection[int], reason: str) -> None:
        """Tell what runs in some threads that nobody will get its result."""
        with self._lock:
            for run in self._running.values():
                if run.thread in threads and not run.cancelled:
                    run.reason, run.cancelled = reason, True


def outcome(run: Run, result: Task) -> Task:
    """Return what a submission is answered: the handler's task, canceled if it was cancelled."""
    canceled = run.canceled_task
    if canceled is None:
        return result
    # What the handler brought about is kept, whatever state it gave the task.
    return Task(
        canceled.id,
        canceled.state,
        result.messages,
        result.artifacts,
        {**result.metadata, **canceled.metadata},
        result.flow_state,
        canceled.created_at,
        extra=canceled.extra,
    )


def _copy(task: Task) -> Task:
    for _ in range(_ATTEMPTS):
        try:
            return Task.from_dict(task.to_dict())
        except RuntimeError:  # a dictionary changed its size: the handler is at work
            continue
    raise RefusedError(
        503, f"task {task.id!r} changes too fast to be canceled; try again", "TaskBusyError"
    )


def _canceled(task: Task, reason: str | None) -> Task:
    """Cancel a task as the peer does: in its state, its metadata and its run context."""
    task.cancel(reason)
    told: dict[str, Any] = {"canceled": True}
    if reason is not None:
        told["cancel_reason"] = reason
    task.metadata.update(told)
    context = task.metadata.get("run_context")
    if isinstance(context, dict):
        context.update(told)
    return task


def _not_running(task_id: Any) -> RefusedError:
    return RefusedError(
        404,
        f"task {task_id!r} is not running here: it is unknown or has ended",
        "TaskNotFoundError",
    )
