"""Blocking calls in threads of their own, awaited by an event loop.

The threads are daemons and end by themselves shortly after their last call, so none has to be told
that a loop has ended. A call that still runs then is ended: it has a token, and every loop that
waits for calls is looked at now and then.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import math
import os
import queue
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from protolink_sync._deadline import CancelToken, Timer, watch
from protolink_sync._threads import Messenger, NoThreadError, start
from protolink_sync.errors import TransportError

__all__ = ["CANCELLED", "in_thread"]

_T = TypeVar("_T")

# The reason of calls that end because their caller was cancelled.
CANCELLED = "the asyncio task was cancelled"

# How long a thread waits for another call: a new one costs less than a call.
_IDLE = 0.03

# How often it is looked whether a loop was closed while it waited for calls.
_LOOK = 0.05

_numbers = itertools.count(1)

# Threads without work. One takes itself out before it ends, one that is given work was taken out.
_idle: deque[_Thread] = deque()
_pid = os.getpid()


class _Thread:
    """A thread that makes one call after the other."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.give(work)
        thread = Messenger(target=self._run, name=f"protolink-aio-{next(_numbers)}", daemon=True)
        try:
            start(thread)
        except NoThreadError as error:
            raise TransportError(
                f"no thread can start to make the awaited call ({error}), and nothing was sent"
            ) from error

    def give(self, work: Callable[[], None]) -> None:
        """Have it make a call."""
        self._work.put(work)

    def _run(self) -> None:
        while True:
            # A method, so that nothing of a call lives on while the thread waits.
            if not self._once():
                return

    def _once(self) -> bool:
        try:
            work = self._work.get(timeout=_IDLE)
        except queue.Empty:
            try:
                _idle.remove(self)
            except ValueError:  # it was taken out at this moment: work is on its way
                return True
            return False
        work()
        del work
        _idle.append(self)
        return True


def _start(work: Callable[[], None]) -> None:
    global _pid
    if _pid != os.getpid():  # of a forked child: the threads did not come along
        _pid = os.getpid()
        _idle.clear()
    try:
        thread = _idle.pop()
    except IndexError:
        _Thread(work)
    else:
        thread.give(work)


class _LoopWatch(Timer):
    """Ends the calls that a loop waited for when it was closed."""

    __slots__ = ("_loop", "tokens")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(math.inf, self._look)
        # Weak: the watch is kept as long as its loop is.
        self._loop = weakref.ref(loop)
        self.tokens: dict[CancelToken, None] = {}

    def add(self, token: CancelToken) -> None:
        """Look after a call from now on."""
        self.tokens[token] = None
        if self.due == math.inf:
            self.due = time.monotonic() + _LOOK
            watch(self)

    def _look(self) -> None:
        # In this order: add() may come between any two lines.
        self.due = math.inf
        if not self.tokens:
            return
        loop = self._loop()
        if loop is not None and not loop.is_closed():
            self.due = time.monotonic() + _LOOK
            return
        for token in list(self.tokens):
            self.tokens.pop(token, None)
            token.cancel("the event loop was closed")


_watches: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopWatch] = (
    weakref.WeakKeyDictionary()
)


async def in_thread(call: Callable[[], _T], token: CancelToken) -> _T:
    """Make a blocking call in a thread and wait for it without blocking the loop.

    Context variables of the caller are seen there. Cancelling the waiting task ends the call.

    Args:
        call: What it raises is raised here; ``StopIteration``, which a coroutine cannot raise, and
            ``StopAsyncIteration``, which would end a loop, as a ``RuntimeError`` that has it as
            its cause.
        token: Ends it.

    Raises:
        TransportError: No thread can start.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()
    context = contextvars.copy_context()
    watching = _watches.get(loop)
    if watching is None:
        watching = _watches[loop] = _LoopWatch(loop)
    watching.add(token)
    try:
        _start(lambda: _make(call, context, loop, done))
        return await done
    except (asyncio.CancelledError, GeneratorExit):
        token.cancel(CANCELLED)
        raise
    finally:
        watching.tokens.pop(token, None)


def _make(
    call: Callable[[], _T],
    context: contextvars.Context,
    loop: asyncio.AbstractEventLoop,
    done: asyncio.Future[_T],
) -> None:
    """Make a call and hand over what came of it (the thread)."""
    settle: Callable[[Any], None]
    outcome: Any
    try:
        outcome, settle = context.run(call), done.set_result
    except (StopIteration, StopAsyncIteration) as error:
        # No future takes the one: whoever awaits the call would wait for ever. The other would be
        # the end of the loop that awaits it, as if all had come.
        outcome = RuntimeError(f"the awaited call raised {type(error).__name__}")
        outcome.__cause__, settle = error, done.set_exception
    except BaseException as error:
        outcome, settle = error, done.set_exception
    try:
        loop.call_soon_threadsafe(_settle, done, settle, outcome)
    except RuntimeError:  # the loop was closed: nobody waits
        pass
    finally:
        # An error's traceback has this frame: without this they would keep each other alive.
        del outcome, settle


def _settle(done: asyncio.Future[Any], settle: Callable[[Any], None], outcome: Any) -> None:
    if not done.done():
        settle(outcome)
