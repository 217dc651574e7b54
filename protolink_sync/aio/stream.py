"""Blocking streams and iterators, read with ``async for``."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any, Generic, TypeVar

from protolink_sync._deadline import CancelToken
from protolink_sync.aio._awaited import linked
from protolink_sync.aio._threads import CANCELLED, in_thread
from protolink_sync.errors import CallCancelledError
from protolink_sync.models import RunEvent, Task
from protolink_sync.streaming import EventStream

__all__ = ["AsyncEventStream", "Steps"]

_T = TypeVar("_T")

# What a blocking iterator has after its last value.
_END: Any = object()


class _Reader:
    """What is read in threads, one step at a time, until the asyncio task is cancelled."""

    def __init__(self, cancel: CancelToken | None) -> None:
        self._cancel = cancel
        self._token = CancelToken()

    async def _step(self, call: Callable[[], _T]) -> _T:
        if self._token.reason == CANCELLED:
            # The thread of the step that was cancelled may still be in it.
            raise CallCancelledError("the asyncio task that read this was cancelled, which ends it")
        with linked(self._cancel, self._token) as token:
            return await in_thread(call, token)


class Steps(_Reader, AsyncIterator[_T], Generic[_T]):
    """The values of a blocking iterator, awaited one after the other.

    Args:
        make: Makes the iterator, in a thread; the token it is given ends what blocks in it.
        cancel: Ends it too.
    """

    def __init__(
        self, make: Callable[[CancelToken], Iterator[_T]], cancel: CancelToken | None = None
    ) -> None:
        super().__init__(cancel)
        self._make = make
        self._values: Iterator[_T] | None = None

    async def __anext__(self) -> _T:
        value = await self._step(self._next)
        if value is _END:
            raise StopAsyncIteration
        return value

    def _next(self) -> _T:
        if self._values is None:
            self._values = self._make(self._token)
        return next(self._values, _END)

    async def aclose(self) -> None:
        """End what the iterator does; twice is silent."""
        self._token.cancel("the iterator was closed")
        close = getattr(self._values, "close", None)
        if close is not None:
            # A generator that a thread is still in says so; the token has ended that already.
            with contextlib.suppress(ValueError):
                await in_thread(close, CancelToken())

    async def __aenter__(self) -> Steps[_T]:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()


class AsyncEventStream(_Reader, AsyncIterator[Any]):
    """The events of a task, awaited; an :class:`~protolink_sync.EventStream` for ``async for``.

    The stream is opened when the first event is awaited, by ``async with``, or by awaiting the
    stream itself, which tells at once whether it could be opened. Cancelling the asyncio task
    that waits for an event ends the stream and its connection at once, as :meth:`close`, leaving
    ``async with`` and dropping the stream do.

    Streams are made by ``AsyncAgentClient.send_task_streaming``.
    """

    def __init__(
        self, make: Callable[[CancelToken], EventStream], cancel: CancelToken | None = None
    ) -> None:
        super().__init__(cancel)
        self._make = make
        self._stream: EventStream | None = None

    # --- reading -----------------------------------------------------------------------------

    async def __anext__(self) -> Any:
        event = await self._step(lambda: next(self._opened(), _END))
        if event is _END:
            raise StopAsyncIteration
        return event

    def __await__(self) -> Generator[Any, None, AsyncEventStream]:
        return self._open().__await__()

    async def _open(self) -> AsyncEventStream:
        await self._step(self._opened)
        return self

    def _opened(self) -> EventStream:
        if self._stream is None:
            self._stream = self._make(self._token)
        return self._stream

    @property
    def task(self) -> Any:
        """The task, as far as the events that were read tell it; else None."""
        return None if self._stream is None else self._stream.task

    @property
    def events(self) -> int:
        """How many events were read."""
        return 0 if self._stream is None else self._stream.events

    async def result(self) -> Any:
        """Read to the end and return the finished task.

        Raises:
            TransportProtocolError: The stream ended without a final status that has the task.
            CallCancelledError: The stream was closed before its end.
            ProtoLinkError: What else ended the stream.
        """
        return await self._step(lambda: self._opened().result())

    def text(self) -> AsyncIterator[str]:
        """Return the answer as text, in pieces as it comes; joined they are the answer."""
        return self._pieces(EventStream.text)

    def raw_text(self) -> AsyncIterator[str]:
        """Return the pieces of model output exactly as they are sent."""
        return self._pieces(EventStream.raw_text)

    def run_events(self) -> AsyncIterator[RunEvent]:
        """Return the events in ProtoLink's versioned form, numbered from 1."""
        return self._pieces(EventStream.run_events)

    def _pieces(self, read: Callable[[EventStream], Iterator[_T]]) -> Steps[_T]:
        name = read.__name__
        pieces: Steps[_T] = Steps(lambda _: getattr(self._opened(), name)(), self._cancel)
        # What ends the waiting for a piece ends the stream.
        pieces._token = self._token
        return pieces

    # --- ending ------------------------------------------------------------------------------

    async def cancel(self, reason: str | None = None, timeout: float | None = None) -> Task | None:
        """Ask the agent to cancel the task, and return it as it stands then.

        Another task than the one that reads may do so. The stream goes on; its last event says
        how the task ended. Cancelling the asyncio task that awaits this ends the request.

        Args:
            reason: Kept in the task's metadata.
            timeout: Budget in seconds of this request; None for the transport's.

        Raises:
            TransportError: The agent did not accept it.
            RuntimeError: The stream has no task that could be cancelled, or is not open yet.
        """
        stream = self._stream
        if stream is None:
            raise RuntimeError("this stream is not open yet: await it, or read an event first")
        token = CancelToken()
        return await in_thread(lambda: stream._ask_to_cancel(reason, timeout, token), token)

    async def close(self) -> None:
        """End the stream; worker and connection are gone within 100 ms. Twice is silent."""
        stream = self._stream
        if stream is None:
            self._token.cancel("the stream was closed")
            return
        await in_thread(stream.close, self._token)

    aclose = close

    async def __aenter__(self) -> AsyncEventStream:
        return await self._open()

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return "<AsyncEventStream not open>" if self._stream is None else f"<Async{self._stream!r}>"
