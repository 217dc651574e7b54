"""One run of an A2A task: what the agent does with it, told to whoever follows."""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import logging
import threading
from collections.abc import Callable, Generator
from typing import Any

from protolink_sync.a2a.wire import A2AInternalError
from protolink_sync.models import Task, TaskCancellationRequest, TaskState
from protolink_sync.server.a2a_events import Narration
from protolink_sync.server.a2a_task import HostedTask
from protolink_sync.server.engine import Engine
from protolink_sync.server.events import is_last
from protolink_sync.server.refusal import RefusedError

__all__ = ["Runner"]

_log = logging.getLogger("protolink_sync.server")

# A task that its handler leaves so is done: nobody works on it any more.
_LEFT = (TaskState.SUBMITTED, TaskState.WORKING)

_numbers = itertools.count(1)


class Runner:
    """Have an agent carry out A2A tasks, in the caller's thread or in one of their own.

    Args:
        engine: The agent.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._most = engine.config.limits.max_concurrent_requests
        self._lock = threading.RLock()
        self._workers = 0

    def run(self, hosted: HostedTask, *, streaming: bool = False) -> None:
        """Carry out a task and end it, as failed if the agent raises.

        Args:
            hosted: The task, which is running since :meth:`HostedTask.go_on` or its making.
            streaming: Ask the handler for streams, not the one for whole tasks.
        """
        try:
            self._carry_out(hosted, streaming)
        except RefusedError as error:
            hosted.fail(error.message)
        except Exception:
            # What goes wrong inside an agent may hold what is nobody's business.
            _log.exception("task %s failed", hosted.id)
            hosted.fail("the agent failed; its log says why")
        except BaseException:  # SystemExit of a handler, Ctrl-C
            hosted.fail("the run was interrupted")
            raise

    def start(self, begin: Callable[[], HostedTask], *, streaming: bool = False) -> HostedTask:
        """Carry out a task in a thread of its own; see :meth:`run`.

        Args:
            begin: Returns the task. It is not asked when there is no room for one more.
            streaming: Ask the handler for streams, not the one for whole tasks.

        Raises:
            A2AInternalError: There are too many; or no thread for it, and the task has failed.
        """
        with self._lock:
            if self._workers >= self._most:
                raise A2AInternalError("too many tasks at a time; try again later", code=-32603)
            self._workers += 1
        try:
            hosted = begin()
            self._start_thread(hosted, streaming)
        except BaseException:
            with self._lock:
                self._workers -= 1
            raise
        return hosted

    def cancel(self, hosted: HostedTask, reason: str, metadata: dict[str, Any]) -> bool:
        """Cancel a task, running or not; False if it is at its end already.

        Who follows learns it now; a handler that looks ends soon.

        Raises:
            A2AInternalError: The handler cannot be told at this moment.
        """
        request = TaskCancellationRequest(hosted.id, reason, metadata)
        try:
            self._engine.runs.cancel(request, hosted.owner[0])
        except RefusedError as error:
            if error.status == 409:  # the handler has brought it to an end
                return False
            # 404: it waits for input, has not begun, or ends at this moment.
            if error.status != 404:
                raise A2AInternalError(error.message, code=-32603) from error
        return hosted.cancel(reason)

    def _start_thread(self, hosted: HostedTask, streaming: bool) -> None:
        hosted.is_worked_on = True
        thread = threading.Thread(
            # With the context variables of the request, for log filters and tracing.
            target=contextvars.copy_context().run,
            args=(self._work, hosted, streaming),
            name=f"protolink-host-a2a-{next(_numbers)}",
            daemon=True,
        )
        try:
            thread.start()
        except RuntimeError as error:
            hosted.fail("there was no thread for it")
            raise A2AInternalError(f"cannot start a thread: {error}", code=-32603) from error

    def _work(self, hosted: HostedTask, streaming: bool) -> None:
        try:
            self.run(hosted, streaming=streaming)
        except BaseException:  # SystemExit of a handler: the task has failed, the process goes on
            _log.exception("task %s failed", hosted.id)
        finally:
            with self._lock:
                self._workers -= 1

    def _carry_out(self, hosted: HostedTask, streaming: bool) -> None:
        narration = Narration(hosted.seen())
        handle = None if streaming else self._engine.stream
        events = self._engine.stream_task(hosted.task, hosted.owner[0], handle)
        with contextlib.closing(events):
            last = _told(events, hosted, narration)
        if not hosted.is_running:
            return
        if last is None:
            hosted.cancel("the host was closed")
            return
        result = _result(last, hosted.task)
        if result.id != hosted.id:
            raise ValueError(f"the agent returned another task, {result.id!r}")
        left, task = narration.end(result)
        for event in left:
            hosted.tell(event)
        hosted.task = result
        hosted.end(task)


def _told(events: Generator[Any, None, None], hosted: HostedTask, narration: Narration) -> Any:
    """Tell what happens until the end of a run, and return its last event.

    It is None if there is none: the task was canceled here, or nobody will have its result.
    """
    last = None
    for event in events:
        if not hosted.is_running:
            return None
        if is_last(event):
            last = event
            continue
        hosted.wait_for_followers()
        for told in narration.events(event):
            hosted.tell(told)
    return last


def _result(last: Any, task: Task) -> Task:
    """Return the task at the end of a run: that of the last event, in the state it says."""
    members = last if isinstance(last, dict) else {}
    metadata = members.get("metadata")
    told = metadata.get("task") if isinstance(metadata, dict) else None
    if isinstance(told, dict):
        task = Task.from_dict(told)
    with contextlib.suppress(ValueError):  # a word that nobody knows; the task has its own
        task.state = TaskState(members.get("new_state"))
    if task.state in _LEFT:
        task.begin().update_state(TaskState.COMPLETED)
    return task
