"""Calls of ``AgentClient.map`` in threads, and in other processes."""

from __future__ import annotations

import contextvars
import itertools
import math
import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from protolink_sync._deadline import Timer, watch
from protolink_sync._threads import Messenger, NoThreadError, start

__all__ = ["Threads", "call_elsewhere", "packed"]

_numbers = itertools.count(1)

# How long a client that was unpacked keeps its connections after its last call.
_UNUSED = 1.0


class Threads(Executor):
    """A daemon thread for each call: none is waited for at the interpreter's exit."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Begin a call."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        thread = Messenger(
            # With the caller's context variables, for log filters and tracing.
            target=contextvars.copy_context().run,
            args=(_run, future, fn, args, kwargs),
            name=f"protolink-map-{next(_numbers)}",
            daemon=True,
        )
        try:
            start(thread)
        except NoThreadError as error:  # the system has no further one at this moment
            future.set_exception(RuntimeError(str(error)))
        return future


def _run(future: Future[Any], fn: Callable[..., Any], args: Any, kwargs: Any) -> None:
    try:
        result = fn(*args, **kwargs)
    except BaseException as error:
        future.set_exception(error)
        # Its traceback has this frame, which has the future, which has it.
        del future
    else:
        future.set_result(result)


def packed(client: Any) -> bytes:
    """Return a client for other processes.

    Raises:
        TypeError: It holds what must not travel, such as a secret; the message says what to use.
    """
    return pickle.dumps(client)


def call_elsewhere(run: str, client: bytes, *args: Any, **options: Any) -> Any:
    """Submit a task with a packed client, which is unpacked once in each process.

    Args:
        run: Names the client.
        client: The packed client.
        *args: As for ``send_task``.
        **options: As for ``send_task``.
    """
    copy = _copies.take(run, client)
    try:
        return copy.client.send_task(*args, **options)
    finally:
        _copies.give_back(copy)


class _Copy:
    """A client that was unpacked here."""

    def __init__(self, client: bytes) -> None:
        self.client = pickle.loads(client)
        self.users = 0
        self.used_at = 0.0


class _Copies(Timer):
    """The clients that were unpacked in this process: one pool of connections for each.

    Nobody says when the last call has been made, so they are closed when they are not used.
    """

    __slots__ = ("_by_run", "_lock")

    def __init__(self) -> None:
        super().__init__(math.inf, self._close_unused)
        self._lock = threading.RLock()
        self._by_run: dict[str, _Copy] = {}

    def take(self, run: str, client: bytes) -> _Copy:
        """Return the copy of a client, for one call."""
        with self._lock:
            copy = self._by_run.get(run)
            if copy is None:
                copy = self._by_run[run] = _Copy(client)
            copy.users += 1
            return copy

    def give_back(self, copy: _Copy) -> None:
        """Say that a call is over."""
        with self._lock:
            copy.users -= 1
            copy.used_at = time.monotonic()
            if self.due == math.inf:
                self.due = copy.used_at + _UNUSED
                watch(self)

    def _close_unused(self) -> None:
        with self._lock:
            limit = time.monotonic() - _UNUSED
            unused = [
                run
                for run, copy in self._by_run.items()
                if not copy.users and copy.used_at <= limit
            ]
            closing = [self._by_run.pop(run) for run in unused]
            self.due = time.monotonic() + _UNUSED if self._by_run else math.inf
        for copy in closing:
            copy.client.transport.close()


_copies = _Copies()
