"""EventStream: what a caller reads a stream with."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import itertools
import os
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterator
from typing import Any

from protolink_sync._deadline import CancelToken
from protolink_sync._threads import Messenger, NoThreadError, leave_none, start
from protolink_sync.errors import (
    CallCancelledError,
    ModelError,
    StreamInterruptedError,
    TransportError,
    TransportProtocolError,
    TransportRemoteError,
)
from protolink_sync.models import RunEvent, Task, TaskState
from protolink_sync.streaming._channel import Channel, End
from protolink_sync.streaming._text import AnswerText, chunk_of
from protolink_sync.streaming.source import EventSource

__all__ = ["EventStream"]

_STATUS = "task_status_update"

_ANSWERED = (TaskState.COMPLETED, TaskState.INPUT_REQUIRED)

_numbers = itertools.count(1)

# How long cancel() waits for an end that the peer reports but that has not arrived yet.
_END_ON_ITS_WAY = 2.0

# How often it looks meanwhile whether its token was cancelled.
_LOOK_AGAIN = 0.05


def _pump(source: EventSource, channel: Channel) -> None:
    """Read a source to its end; the body of the worker thread."""
    error: BaseException | None = None
    first = True
    try:
        while not channel.closed:
            got = source.read()
            if got is None:
                channel.finished = True
                break
            events, size = got
            if first and len(events) > 1:
                # Alone and at once: the first event is what a user waits for.
                channel.put(events[:1], 0)
                events = events[1:]
            first = False
            if events:
                channel.last_task = finished_task(events[-1])
            channel.put(events, size)
            if channel.is_full():
                source.pause()
                channel.wait_for_room(source.is_over)
                source.resume()
        else:
            source.abort()  # it was left, which the call may not know yet
    except StopIteration as caught:
        # As it is, the reader's loop would take it for the end of the stream.
        error = RuntimeError("what reads the stream raised StopIteration")
        error.__cause__ = caught
    except BaseException as caught:
        error = caught
    try:
        source.close(error)
    finally:
        channel.end(error)
        del error, channel  # to both of which the error, through its frames, would lead back


def _let_go(source: EventSource, channel: Channel, pid: int) -> None:
    """End a stream that nobody reads any more: closed, left, or collected."""
    # A forked child that drops what it inherited must not end its parent's stream.
    if os.getpid() == pid:
        channel.close()
        source.abort()


def _end_reader_at_exit() -> None:
    """End a thread that reads a stream while the interpreter exits, whose finalizers end streams.

    What it read is not all there was. A daemon thread ends there in silence.

    Raises:
        SystemExit: It is such a thread.
        CallCancelledError: It is the main thread, in a function of ``atexit``; one that hands its
            errors on; or none of Python's, as a greenlet.
    """
    thread = threading.current_thread()
    if thread.daemon and not isinstance(thread, (Messenger, threading._DummyThread)):
        raise SystemExit
    raise CallCancelledError("the stream was ended, because the interpreter exits")


def finished_task(event: Any) -> Any:
    """Return the task, as JSON values, that a final status carries; None for other events."""
    if isinstance(event, dict) and event.get("type") == _STATUS and event.get("final"):
        metadata = event.get("metadata")
        if isinstance(metadata, dict):
            return metadata.get("task")
    return None


def _task_of(data: Any) -> Task:
    """Return the task that a final status carries."""
    try:
        return Task.from_dict(data)
    except ModelError as error:
        raise TransportProtocolError(
            f"the task in the final status has the wrong shape: {error}"
        ) from error


class EventStream:
    """The events of a task while an agent works on it, each as decoded JSON.

    Iterate over it, or use :meth:`result`, :meth:`text` or :meth:`run_events`; they share one
    position, and one thread reads at a time. Leaving the loop, ``with``, :meth:`close`, garbage
    collection, and Ctrl-C while an event is waited for end the stream and its connection. Over
    SSE and gRPC a ProtoLink agent cancels the task then; over WebSocket it goes on, at least to
    its next event. :meth:`cancel` asks the agent to end it in any case.

    The stream ends normally only with the mark that says so. Everything else raises: a
    connection that breaks is a :class:`~protolink_sync.errors.StreamInterruptedError`.

    Streams are made by ``AgentClient.send_task_streaming``.
    """

    def __init__(
        self,
        source: EventSource,
        *,
        task_id: str | None = None,
        canceller: Callable[[str | None, float | None, CancelToken | None], Task] | None = None,
    ) -> None:
        self._task_id = task_id
        self._canceller = canceller
        self._closed = False
        self._reading = threading.RLock()
        self._events = 0
        self._last_state: str | None = None
        self._task: Task | None = None
        self._task_data: Any = None
        self._start(source)

    def _start(self, source: EventSource) -> None:
        """Read a source from now on."""
        self._channel = Channel()
        self._batch: list[Any] = []
        self._position = 0
        self._end: End | None = None
        self._worker = threading.Thread(
            # With the caller's context variables, for log filters and tracing.
            target=contextvars.copy_context().run,
            args=(_pump, source, self._channel),
            name=f"protolink-stream-{next(_numbers)}",
            daemon=True,
        )
        self._pid = os.getpid()
        self._leave = functools.partial(_let_go, source, self._channel, self._pid)
        self._release = weakref.finalize(self, self._leave)
        try:
            start(self._worker)
        except NoThreadError as error:
            failure = TransportError(
                f"no thread can start to read the stream ({error}); the task may be running at "
                "the agent. Where Python starts none at its exit (3.12), use send_task there"
            )
            self._end = End(failure)
            # In the worker's place, which would give everything back.
            self._leave()
            source.close(failure)
            self._release.detach()
            raise failure from error

    # --- reading -----------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        is_reader = False
        try:
            # Inside: Ctrl-C may come before the next line.
            is_reader = self._reading.acquire(blocking=False)
            if not is_reader:
                raise RuntimeError(
                    "another thread reads this stream: a stream has one reader at a time"
                )
            return self._next()
        except KeyboardInterrupt:
            if is_reader:
                self._interrupt()
            raise
        finally:
            try:
                self._reading.release()
            except RuntimeError:  # another thread has it
                pass
            except BaseException:  # of a signal handler, with an event in hand, which is lost
                self._interrupt()
                raise

    def _next(self) -> Any:
        # The process is looked at for each event: those that wait are the parent's too.
        if self._closed or self._position >= len(self._batch) or os.getpid() != self._pid:
            self._take()
        event = self._batch[self._position]
        # So that an event the caller has done with does not live as long as its batch.
        self._batch[self._position] = None
        self._position += 1
        self._see(event)
        return event

    def _interrupt(self) -> None:
        """End a stream as Ctrl-C ends a call, also where somebody keeps it, as a notebook does."""
        message = f"the stream of task {self._task_id!r} was interrupted"
        self._end = End(CallCancelledError(message))
        self._batch, self._position = [], 0
        self._release()

    def _take(self) -> None:
        """Wait for the next batch; raise at the end, the same way each time."""
        if os.getpid() != self._pid:
            raise RuntimeError(
                "this stream belongs to the parent process: a forked child cannot read it"
            )
        while self._end is None and not self._closed:
            got = self._channel.take()
            if isinstance(got, End):
                # Unless a reader before this one was interrupted when it gave way.
                self._end = self._end or got
                # The worker has given everything back. What the finalizer holds leads to the
                # error, and its frames to this stream, which would never be collected.
                self._release.detach()
                leave_none(self._worker)
            elif not self._closed:
                self._batch, self._position = got, 0
                if got:
                    return
        self._batch, self._position = [], 0
        error = None if self._closed or self._end is None else self._end.error_to_raise()
        if error is None and self._channel.closed and not self._closed:
            _end_reader_at_exit()
        if error is None:
            raise StopIteration
        if isinstance(error, StreamInterruptedError):
            error.task_id, error.last_state = self._task_id, self._last_state
            error.events = self._events
            with contextlib.suppress(TransportProtocolError):  # this error counts, not the task's
                error.task = self.task
        try:
            raise error
        finally:
            del error  # which leads to this frame

    def _broken(self, error: Exception) -> BaseException:
        """Return an error to raise, as every further :func:`next` will."""
        self._end = End(error)
        return self._end.error_to_raise() or error

    def _see(self, event: Any) -> None:
        self._events += 1
        if not isinstance(event, dict) or event.get("type") != _STATUS:
            return
        state = event.get("new_state")
        if isinstance(state, str):
            self._last_state = state
        data = finished_task(event)
        if data is not None:
            self._task_data, self._task = data, None

    @property
    def task(self) -> Task | None:
        """The whole task, once its final status was read; else None."""
        if self._task is None and self._task_data is not None:
            self._task = _task_of(self._task_data)
        return self._task

    @property
    def events(self) -> int:
        """How many events were read."""
        return self._events

    def result(self) -> Task:
        """Read to the end and return the finished task.

        Raises:
            TransportProtocolError: The stream ended without a final status that has the task.
            CallCancelledError: The stream was closed before its end.
            ProtoLinkError: What else ended the stream.
        """
        for _ in self:
            pass
        task = self.task
        if task is not None:
            return task
        if self._closed:
            raise CallCancelledError("the stream was closed before the task was finished")
        raise TransportProtocolError(
            f"the stream of task {self._task_id!r} ended without a final status that has the task"
        )

    def text(self) -> Iterator[str]:
        """Return the answer as text, in pieces as it comes; joined they are the answer.

        Prose comes at once. A step whose text begins as a JSON object (the action language of
        ProtoLink's default engine) is held back and replaced by its answer. Prose that turns out
        to be a remark before the answer stays in front, and the answer follows on a new line.
        """
        for _, piece in self._told():
            if piece:
                yield piece

    def raw_text(self) -> Iterator[str]:
        """Return the pieces of model output exactly as they are sent."""
        for event in self:
            piece = chunk_of(event)
            if piece is not None:
                yield piece

    def run_events(self) -> Iterator[RunEvent]:
        """Return the events in ProtoLink's versioned form, numbered from 1."""
        for number, event in enumerate(self, start=1):
            yield RunEvent.from_task_event(event, sequence=number)

    def show(self) -> None:
        """Read to the end and show state, progress and answer while they come.

        In a notebook the cell's output is updated in place; elsewhere the answer is printed to
        the standard output as it comes. :attr:`task` has the finished task then.

        Raises:
            ProtoLinkError: What ended the stream, after what came before it was shown.
        """
        from protolink_sync.streaming._show import Shown, display

        where, told = display(), Shown(self._task_id)
        try:
            for event, piece in self._told():
                told.see(event, piece)
                where.update(told.view(self._last_state, self._events), piece)
        finally:
            where.end(told.view(self._last_state, self._events))

    def _told(self) -> Iterator[tuple[Any, str]]:
        """Return the events, each with what it adds to the answer."""
        answer = AnswerText()
        for event in self:
            yield event, answer.see(event)
        task = self.task
        # One that failed has no answer; what it has may be that of an earlier turn.
        is_answered = task is not None and task.state in _ANSWERED
        rest = answer.rest(task.text) if task is not None and is_answered else ""
        if rest:
            yield None, rest

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        from protolink_sync._display import View, bundle

        facts = [("task", self._task_id), ("events", self._events), ("last", self._last_state)]
        return bundle(View(f"Stream: {self._condition()}", facts), include, exclude)

    # --- ending ------------------------------------------------------------------------------

    def close(self) -> None:
        """End the stream: worker and connection are gone within 100 ms. Any thread, any time.

        What was not read yet is dropped. See the class for what that means for the task.
        """
        self._closed = True
        # Not by the finalizer: one that an interrupt leaves in the middle is not run again. Twice,
        # because Ctrl-C may come at any line.
        try:
            self._leave()
        finally:
            self._leave()
        self._release.detach()
        # One that could not start cannot be waited for either.
        if self._worker is not threading.current_thread() and self._worker.is_alive():
            self._worker.join(_END_ON_ITS_WAY)

    def cancel(self, reason: str | None = None, timeout: float | None = None) -> Task | None:
        """Ask the agent to cancel the task, and return it as it stands then.

        The stream goes on; its last event says how the task ended. If the end is here already,
        nothing is sent and the finished task returned.

        Args:
            reason: Kept in the task's metadata.
            timeout: Budget in seconds of this request; None for the transport's.

        Raises:
            TransportError: The agent did not accept it.
            RuntimeError: The stream has no task that could be cancelled.
        """
        return self._ask_to_cancel(reason, timeout, None)

    def _ask_to_cancel(
        self, reason: str | None, timeout: float | None, token: CancelToken | None
    ) -> Task | None:
        """Do what :meth:`cancel` does; the token ends the request."""
        if self._canceller is None:
            raise RuntimeError("this stream has no task that could be cancelled")
        if self._channel.finished:
            return self._ended_task()
        try:
            return self._canceller(reason, timeout, token)
        except TransportRemoteError:
            # It may have ended at this moment: then its end is on its way to us.
            self._wait_for_end(token)
            if not self._channel.finished:
                raise
            return self._ended_task()

    def _wait_for_end(self, token: CancelToken | None) -> None:
        end = time.monotonic() + _END_ON_ITS_WAY
        # In slices: a token wakes nobody here.
        while self._worker.is_alive() and time.monotonic() < end:
            if token is not None and token.cancelled:
                break
            self._worker.join(_LOOK_AGAIN)

    def _ended_task(self) -> Task | None:
        data = self._channel.last_task
        return self.task if data is None else _task_of(data)

    def __enter__(self) -> EventStream:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"<EventStream task={self._task_id!r} {self._condition()}, {self._events} events read>"
        )

    def _condition(self) -> str:
        return "closed" if self._closed else "ended" if self._end is not None else "open"
