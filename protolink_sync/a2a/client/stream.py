"""The events of an A2A task, as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from protolink_sync.a2a.wire import StreamEvent, Task, TaskAssembly
from protolink_sync.errors import (
    A2AClientError,
    CallCancelledError,
    StreamInterruptedError,
    TransportError,
    TransportProtocolError,
)
from protolink_sync.models import RunEvent
from protolink_sync.streaming import EventSource, EventStream

__all__ = ["A2AEventStream", "OneEvent"]


class A2AEventStream(EventStream):
    """What an A2A agent sends while it works on a task; :attr:`task` is put together from it.

    Iterate over it for :class:`StreamEvent` values, or use :meth:`result` or :meth:`text`. It
    ends with the last event that A2A knows: a message, a state that is terminal, the mark
    ``final`` of 0.3, and, unless that was asked for otherwise, a state in which the task waits
    for the caller. An end of the connection without one of these is a
    :class:`~protolink_sync.errors.StreamInterruptedError`, which has the task as far as it came.

    Leaving the stream closes its connection; the task goes on at the agent. :meth:`cancel` ends
    the task.

    Streams are made by ``A2AClient.stream_message`` and ``A2AClient.subscribe``.
    """

    def __init__(
        self,
        source: EventSource,
        *,
        task_id: str | None,
        cancel_task: Callable[[str, str | None, float | None], Task],
        resume: Callable[[str], EventSource] | None = None,
        resumes: int = 0,
    ) -> None:
        self._assembly = TaskAssembly()
        self._cancel_task = cancel_task
        self._resume = resume
        self._resumes = resumes
        super().__init__(source, task_id=task_id)

    # --- reading -----------------------------------------------------------------------------

    def __iter__(self) -> Iterator[StreamEvent]:
        return self

    def __enter__(self) -> A2AEventStream:
        return self

    def __next__(self) -> StreamEvent:
        event: StreamEvent = super().__next__()
        return event

    def _take(self) -> None:
        try:
            super()._take()
        except StreamInterruptedError as cut:
            if self._resumes < 1 or self._resume is None or self._task_id is None:
                raise
            self._resumes -= 1
            try:
                source = self._resume(self._task_id)
            except (TransportError, A2AClientError) as error:
                raise cut from error  # it has the task as far as it came
            self._start(source)
            if self._closed:  # by another thread, meanwhile
                self._release()
            self._take()

    def _see(self, event: StreamEvent) -> None:
        self._events += 1
        self._assembly.see(event)
        if event.state is not None:
            self._last_state = event.state.value
        if event.task_id:
            self._task_id = event.task_id

    @property
    def task(self) -> Task | None:  # type: ignore[override]
        """The task as far as the events that were read tell; None before the first one."""
        return self._assembly.task

    def result(self) -> Task:  # type: ignore[override]
        """Read to the end and return the task.

        Raises:
            StreamInterruptedError: The connection ended before the stream; the error has the
                ``task`` as far as it came.
            A2ARpcError: The agent ended the stream with an error.
            CallCancelledError: The stream was closed before its end.
            ProtoLinkError: What else ended the stream.
        """
        for _ in self:
            pass
        if self._closed:
            raise CallCancelledError("the stream was closed before the task was finished")
        task = self.task
        if task is None:
            raise TransportProtocolError("the stream ended without an event that tells of a task")
        return task

    def text(self) -> Iterator[str]:
        """Return the answer as text, in pieces as they come.

        Text of artifacts comes at once; an answer that is told by a message comes with the end.
        """
        told: list[str] = []
        last = None
        for event in self:
            update = event.artifact_update
            if update is None or not update.artifact.text:
                continue
            # One artifact below the other, as in Task.text.
            parted = "\n" if told and update.artifact.artifact_id != last else ""
            last = update.artifact.artifact_id
            told.append(parted + update.artifact.text)
            yield told[-1]
        task = self.task
        if task is None:
            return
        whole, known = task.text, "".join(told)
        if whole.startswith(known) and len(whole) > len(known):
            yield whole[len(known) :]

    def raw_text(self) -> Iterator[str]:
        """Return every text in the events, as it is sent."""
        for event in self:
            if event.task is None and event.text:
                yield event.text

    def run_events(self) -> Iterator[RunEvent]:
        """Raise: run events are ProtoLink's; an A2A agent sends none.

        Raises:
            TypeError: Always.
        """
        raise TypeError("an A2A stream has no run events: iterate over the stream itself")

    # --- ending ------------------------------------------------------------------------------

    def cancel(  # type: ignore[override]
        self, reason: str | None = None, timeout: float | None = None
    ) -> Task:
        """Ask the agent to cancel the task, and return it as it stands then.

        The stream goes on; its last event says how the task ended. A task that has ended
        already is returned as it is.

        Args:
            reason: Sent as ``metadata.reason``.
            timeout: Budget in seconds of this request; None for the client's.

        Raises:
            A2ARpcError: The agent did not accept it.
            RuntimeError: No event has told the id of the task yet.
        """
        if self._task_id is None:
            raise RuntimeError(
                "the id of this task is not known yet: read an event first (its task_id tells it)"
            )
        return self._cancel_task(self._task_id, reason, timeout)


class OneEvent:
    """A stream of one event, which is here already."""

    def __init__(self, event: StreamEvent) -> None:
        self._event: StreamEvent | None = event

    def read(self) -> tuple[list[Any], int] | None:
        """Return the event the first time."""
        event, self._event = self._event, None
        return None if event is None else ([event], 0)

    def pause(self) -> None:
        """Nothing runs."""

    def resume(self) -> None:
        """Nothing runs."""

    def is_over(self) -> bool:
        """Return False: nothing can end it early."""
        return False

    def abort(self) -> None:
        """Nothing is blocked."""

    def close(self, error: BaseException | None) -> None:
        """Nothing is held."""
