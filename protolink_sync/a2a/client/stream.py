"""The events of an A2A task, as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

from protolink_sync._deadline import CancelToken
from protolink_sync._kept_errors import copied, without_frames
from protolink_sync.a2a.wire import StreamEvent, Task, TaskAssembly
from protolink_sync.errors import (
    A2AClientError,
    CallCancelledError,
    StreamInterruptedError,
    TransportError,
    TransportProtocolError,
    TransportTimeoutError,
)
from protolink_sync.models import RunEvent
from protolink_sync.streaming import EventSource, EventStream

__all__ = ["A2AEventStream", "OneEvent"]

_Answer = TypeVar("_Answer")


class _Resumption(Protocol):
    """How a stream that was cut is taken up."""

    def subscribe(self, id: str, ending: CancelToken) -> EventSource:
        """Return the further events of a task."""

    def get_task(self, id: str, ending: CancelToken) -> Task:
        """Return the task as it stands."""

    def leave(self) -> None:
        """Take the stream off the caller's token."""


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
        cancel_task: Callable[[str, str | None, float | None, CancelToken | None], Task],
        resume: _Resumption | None = None,
        resumes: int = 0,
    ) -> None:
        self._assembly = TaskAssembly()
        self._cancel_task = cancel_task
        self._resume = resume
        self._resumes = resumes
        # Since a cut that was taken up; None once an event has told the whole task again.
        self._cut: StreamInterruptedError | None = None
        # Ends what takes the stream up, where close() finds no worker to end.
        self._ending = CancelToken()
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
        while True:
            try:
                super()._take()
                return
            except StopIteration:
                self._fill_gap()
                self._leave_token()
                raise
            except StreamInterruptedError as cut:
                if self._resumes < 1 or self._resume is None:
                    self._leave_token()
                    raise
                if not self._events or self._task_id is None:
                    raise  # nobody knows that the message has arrived
                self._resumes -= 1
                self._cut = copied(cut)  # which leads through its frames to this stream
                self._asked(lambda resume, id: self._start(resume.subscribe(id, self._ending)))
            if self._closed:  # by another thread, meanwhile
                self._release()

    def _fill_gap(self) -> None:
        """Ask for the task where nobody has told again what was said during a cut."""
        if self._cut is None or self._closed:
            return
        task = self._asked(lambda resume, id: resume.get_task(id, self._ending))
        self._cut = None
        self._assembly = TaskAssembly()
        self._assembly.see(StreamEvent(task=task))

    def _asked(self, ask: Callable[[_Resumption, str], _Answer]) -> _Answer:
        """Ask the agent what was missed; where it does not tell, the stream ends with the cut."""
        assert self._resume is not None
        assert self._task_id is not None
        assert self._cut is not None
        ended: Exception
        try:
            return ask(self._resume, self._task_id)
        except CallCancelledError as error:
            if self._closed:
                raise StopIteration from None
            ended = error
        except (TransportError, A2AClientError) as error:
            spent = isinstance(error, TransportTimeoutError) and not error.retryable
            ended = error if spent else self._cut  # which has the task as far as it came
            if ended is not error:
                ended.__cause__ = error
        except StopIteration as error:  # of a credentials callable; it is no end of the stream
            ended = RuntimeError("taking the stream up raised StopIteration")
            ended.__cause__ = error
        self._resumes = 0
        self._leave_token()
        raise self._broken(without_frames(ended))

    def _leave_token(self) -> None:
        if self._resume is not None:
            self._resume.leave()

    def _see(self, event: StreamEvent) -> None:
        self._events += 1
        self._assembly.see(event)
        if event.task is not None:
            self._cut = None
        if event.state is not None:
            self._last_state = event.state.value
        if event.task_id:
            self._task_id = event.task_id

    @property
    def task(self) -> Task | None:  # type: ignore[override]
        """The task as far as the events that were read tell; None before the first one.

        Each look makes a copy, which the caller may keep and change.
        """
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
        task = self.task
        if self._closed and (task is None or not task.is_terminal):
            raise CallCancelledError("the stream was closed before the task was finished")
        if task is None:
            raise TransportProtocolError("the stream ended without an event that tells of a task")
        return task

    def text(self) -> Iterator[str]:
        """Return the answer as text, in pieces as they come.

        Text of artifacts comes at once; an answer that is told by a message comes with the end.
        """
        for _, piece in self._told():
            if piece:
                yield piece

    def _told(self) -> Iterator[tuple[StreamEvent | None, str]]:
        """Return the events, each with what it adds to the answer."""
        told, last = "", ""
        for event in self:
            piece = ""
            if event.task is not None:
                # What it has beyond the pieces before it: all of it, after a subscription.
                texts = [artifact for artifact in event.task.artifacts if artifact.text]
                whole = "\n".join(artifact.text for artifact in texts)
                if whole.startswith(told):
                    piece = whole[len(told) :]
                    last = texts[-1].artifact_id if texts else last
            elif event.artifact_update is not None and event.text:
                # One artifact below the other, as in Task.text.
                id = event.artifact_update.artifact.artifact_id
                piece = ("\n" if told and id != last else "") + event.text
                last = id
            told += piece
            yield event, piece
        rest = self._rest(told)
        if rest:
            yield None, rest

    def _rest(self, told: str) -> str:
        """Return what the answer has beyond what was told of it."""
        task = self.task
        answer = "" if task is None else task.text
        if answer.startswith(told):
            return answer[len(told) :]
        return "" if told.endswith(answer) else f"\n{answer}"

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

    def close(self) -> None:
        """End the stream: worker and connection are gone within 100 ms. Any thread, any time.

        What was not read yet is dropped; the task goes on at the agent.
        """
        self._closed = True
        self._ending.cancel()
        self._leave_token()
        super().close()

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
        return self._ask_to_cancel(reason, timeout, None)

    def _ask_to_cancel(  # type: ignore[override]
        self, reason: str | None, timeout: float | None, token: CancelToken | None
    ) -> Task:
        task = self.task
        if task is not None and task.is_terminal:
            return task
        if self._task_id is None:
            raise RuntimeError(
                "the id of this task is not known yet: read an event first (its task_id tells it)"
            )
        return self._cancel_task(self._task_id, reason, timeout, token)


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
