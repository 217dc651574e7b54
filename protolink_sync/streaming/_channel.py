"""From the worker that reads a stream to the thread that consumes it."""

from __future__ import annotations

import contextlib
import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any

from protolink_sync._kept_errors import copied

__all__ = ["Channel", "End"]

# How much may wait for the consumer before the worker stops reading: so many events, or so many
# bytes of them, or one event that alone is larger.
_MAX_EVENTS = 256
_MAX_BYTES = 4 * 1024 * 1024

# How often a worker that waits for room looks whether its call was ended.
_LOOK_AGAIN = 0.05

# The longest single wait: CPython can lose the wake-up of a signal that arrives just before its
# thread falls asleep, and Ctrl-C must get through all the same.
_LONGEST_WAIT = 0.5


class End:
    """The last thing that comes through a channel.

    Args:
        error: Why the stream broke; None if it came to its end or was closed.
    """

    __slots__ = ("_given", "_traceback", "error")

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error
        self._traceback = None if error is None else error.__traceback__
        self._given: Callable[[], BaseException | None] = lambda: None

    def error_to_raise(self) -> BaseException | None:
        """Return a copy of the error, the same one for as long as anybody has it.

        What is raised leads through its frames to the stream, which has the end: if the end held
        that one, only the garbage collector would free them all.
        """
        if self.error is None:
            return None
        given = self._given()
        if given is None:
            given = copied(self.error)
            with contextlib.suppress(TypeError):  # of a class of Python's own
                self._given = weakref.ref(given)
        # Else the frames of each time would stay with it.
        return given.with_traceback(self._traceback)


class Channel:
    """A bounded relay of lists of events, with one producer and one consumer.

    The events pass through a ``SimpleQueue``, whose C code a signal handler may enter again; the
    lock is touched only when the bound is reached or the channel closed.
    """

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[list[Any], int] | End] = queue.SimpleQueue()
        self._lock = threading.RLock()
        self._drained = threading.Condition(self._lock)
        self._events = 0
        self._bytes = 0
        self._last = 0
        self._taken_events = 0
        self._taken_bytes = 0
        self.closed = False
        self._end: End | None = None
        # The finished task, as the last status has it; also before the consumer has read it.
        self.last_task: Any = None
        # Whether the stream came to its end, as opposed to having broken or been closed.
        self.finished = False

    def put(self, events: list[Any], size: int) -> None:
        """Hand events over; they go at once, whatever waits already (the worker).

        Args:
            events: In order.
            size: Their bytes, as they came.
        """
        self._events += len(events)
        self._bytes += size
        self._last = size
        self._queue.put((events, size))

    def is_full(self) -> bool:
        """Return whether the worker has to wait before it reads on."""
        waiting = self._bytes - self._taken_bytes
        return not self.closed and (
            self._events - self._taken_events >= _MAX_EVENTS
            # With room for one more like the last: what is read next is held too.
            or (waiting > 0 and waiting + self._last >= _MAX_BYTES)
        )

    def wait_for_room(self, is_over: Callable[[], bool]) -> None:
        """Wait until the consumer has taken enough, or is gone (the worker).

        Args:
            is_over: Whether the call was ended meanwhile; nobody can wake the worker for that.
        """
        with self._lock:
            while self.is_full() and not is_over():
                self._drained.wait(_LOOK_AGAIN)

    def end(self, error: BaseException | None) -> None:
        """Say that nothing more comes (the worker)."""
        self._end = End(error)
        self._queue.put(self._end)

    def take(self) -> list[Any] | End:
        """Wait for the next events or the end (the consumer)."""
        while True:
            try:
                got = self._queue.get(timeout=_LONGEST_WAIT)
            except queue.Empty:
                # What a signal handler raises may come between taking the end and putting it back.
                if self._end is not None and self._queue.empty():
                    return self._end
                continue
            if isinstance(got, End):
                # The next one to ask shall find it too.
                self._queue.put(got)
                return got
            events, size = got
            full = self.is_full()
            self._taken_events += len(events)
            self._taken_bytes += size
            if full:
                self._wake()
            return events

    def close(self) -> None:
        """End it from outside: the worker stops, the consumer gets the end. Any thread."""
        self.closed = True
        self.end(None)
        self._wake()

    def _wake(self) -> None:
        with self._lock:
            self._drained.notify_all()
