"""Streams that one thread writes and another sends: the handler's, and that of the connection.

A handler that is silent cannot send anything, so it has a thread of its own: the one that sends
can tell the client that the stream lives, notice that it has left, and end when it is told to.
"""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import logging
import threading
import time
from collections.abc import Callable, Collection, Generator
from typing import TypeAlias

from protolink_sync.errors import words
from protolink_sync.server.backlog import LONGEST_WAIT, Backlog, Event
from protolink_sync.server.refusal import RefusedError

__all__ = ["Stream", "Streams"]

_log = logging.getLogger("protolink_sync.server")

# How many events a handler may be ahead of the one who sends.
_MOST_EVENTS = 8

_numbers = itertools.count(1)

Tell: TypeAlias = Callable[[Collection[int], str], None]
"""Tells what runs in some threads something, and why."""


class Stream(Backlog):
    """One stream: a worker thread writes, one other thread takes; any may end it.

    Args:
        events: What is told; the worker takes it and closes it.
        streams: Where the stream is counted.
    """

    def __init__(self, events: Generator[Event, None, None], streams: Streams) -> None:
        super().__init__(_MOST_EVENTS)
        self._events = events
        self._streams = streams
        self._is_taken = False
        self._worker = threading.Thread(
            # With the context variables of the request, for log filters and tracing.
            target=contextvars.copy_context().run,
            args=(self._work,),
            name=f"protolink-host-stream-{next(_numbers)}",
            daemon=True,
        )

    def start(self) -> None:
        """Let the handler begin.

        Raises:
            RefusedError: The system has no thread for it.
        """
        try:
            self._worker.start()
        except RuntimeError as error:
            self._is_written = self._is_left = True
            self._streams.forget(self)
            raise RefusedError(503, f"cannot start a thread: {error}", "OverloadError") from error

    # ---- the worker ----

    def _work(self) -> None:
        error = None
        try:
            with contextlib.closing(self._events) as events:
                for event in events:
                    if not self._put(event):
                        break
        except RefusedError as refused:
            error = refused
        except BaseException as unforeseen:  # SystemExit of a handler, or of its cleaning up
            _log.exception("a stream failed")
            error = RefusedError(500, words(unforeseen), type(unforeseen).__name__, told=False)
        with self._lock:
            self._error, self._is_written = error, True
            self._changed.notify_all()
            self._count()

    def _put(self, event: Event) -> bool:
        """Hand an event over; False if nobody takes it."""
        with self._lock:
            while not self._is_left and self._is_full():
                self._changed.wait(LONGEST_WAIT)
            self._add(event)
            return not self._is_left

    # ---- the one who takes ----

    def take(self, timeout: float) -> list[Event] | None:
        """Wait for events and return those that are there; None at the end.

        Args:
            timeout: Seconds to wait at most; then the list is empty.

        Raises:
            RefusedError: The stream broke off, after the events before; it says why.
        """
        events = self._take(timeout)
        if events is not None:
            return events
        with self._lock:
            self._is_taken = True
            self._changed.notify_all()
            self._count()
            error = self._why()
        if error is not None and not self._is_left:
            raise error
        return None

    def leave(self, reason: str) -> None:
        """Say that nobody takes any more: the handler is told, and closed when it yields.

        Any thread, any number of times; after the end it does nothing.
        """
        with self._lock:
            self._is_left = True
            self._tell(self._streams.abandon, reason)
            self._changed.notify_all()
            self._count()

    def stop(self, reason: str) -> None:
        """Cancel the task; its final status ends the stream when the handler ends."""
        with self._lock:
            self._tell(self._streams.cancel, reason)

    def wait(self, end: float) -> None:
        """Wait until all was taken, or a point in time."""
        with self._lock:
            while not (self._is_taken or self._is_left):
                left = end - time.monotonic()
                if left <= 0:
                    return
                self._changed.wait(left)

    def _tell(self, tell: Tell, reason: str) -> None:
        # Under the lock: once the worker has ended, its number may belong to another.
        if not self._is_written and self._worker.ident is not None:
            tell([self._worker.ident], reason)

    def _count(self) -> None:
        if self._is_written and (self._is_taken or self._is_left):
            self._streams.forget(self)


class Streams:
    """The streams that run at one address.

    Args:
        most: How many may run; further ones are refused.
        abandon: Tells runs that nobody will get their result.
        cancel: Cancels runs.
    """

    def __init__(self, most: int, *, abandon: Tell, cancel: Tell) -> None:
        self.abandon = abandon
        self.cancel = cancel
        self._most = most
        self._lock = threading.RLock()
        self._running: set[Stream] = set()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._running)

    def open(self, events: Generator[Event, None, None]) -> Stream:
        """Begin a stream.

        Args:
            events: What is told; if it breaks off, it raises a ``RefusedError``.

        Raises:
            RefusedError: There are too many, or the host is closed.
        """
        stream = Stream(events, self)
        with self._lock:
            if self._is_closed:
                raise RefusedError(503, "the host is closed", "OverloadError")
            if len(self._running) >= self._most:
                raise RefusedError(503, "too many streams at a time", "OverloadError")
            self._running.add(stream)
        stream.start()
        return stream

    def forget(self, stream: Stream) -> None:
        """Count a stream no more."""
        with self._lock:
            self._running.discard(stream)

    def close(self, reason: str, patience: float) -> None:
        """Cancel the tasks of all streams, and end those that do not end by themselves in time.

        Args:
            reason: Why.
            patience: Seconds that handlers have to end.
        """
        with self._lock:
            self._is_closed = True
            running = list(self._running)
        for stream in running:
            stream.stop(reason)
        end = time.monotonic() + patience
        for stream in running:
            stream.wait(end)
        for stream in running:
            stream.leave(reason)
