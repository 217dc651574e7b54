"""The time budget of one call, and how it is ended early.

One :class:`Deadline` is made for each call and passed down to whatever blocks. Budget, cancel
token and closing of the client all end a call in the same way: :meth:`Deadline.abort` marks it
as ended, cuts the socket it uses and wakes its thread if that waits for something else.

Signal handlers and finalizers reach this code. So every lock is an ``RLock``, entered directly
(``Condition.__enter__`` is Python code, which a ``KeyboardInterrupt`` can leave half done) and
for one line, and what a handler sees is consistent at every line. A thread waits on a
``SimpleQueue`` that stands ready before it looks whether it has to: a handler that runs in this
very thread between the look and the wait would find nobody to notify in a ``Condition``.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from protolink_sync._threads import NoThreadError, before_bare_fork, start
from protolink_sync.errors import TransportError

__all__ = ["Abortable", "CancelToken", "Deadline", "Timer", "forget", "seconds", "watch"]

_log = logging.getLogger("protolink_sync.deadline")

# The longest single wait of a caller. CPython loses the wake-up of a signal that arrives just
# before its main thread falls asleep, and of one that the system hands to another thread: the
# handler, Ctrl-C too, runs when the main thread wakes for another reason.
_LONGEST_WAIT = 0.5

# How long a call waits at its end for the deadline thread to end, and how often it looks whether
# another call has come that needs it.
_LONGEST_LEAVING, _LEAVING = 5.0, 0.05

# The longest wait of the deadline thread, which no signal concerns: some number is needed.
_LONGEST_IDLE = 3600.0


def seconds(name: str, value: Any) -> float:
    """Return a duration as a float, or say what is wrong with it.

    Args:
        name: How the caller knows the value, for the message.
        value: A positive number of seconds; ``math.inf`` for no bound.

    Returns:
        The duration in seconds.

    Raises:
        TypeError: The value is no number (``True`` is none either).
        ValueError: The value is zero, negative or NaN.

    >>> seconds("timeout", 2)
    2.0
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(
            f"{name} is {value!r}, must be a positive number of seconds (math.inf for no bound)"
        )
    if not value > 0:
        raise ValueError(
            f"{name} is {value!r}, must be a positive number of seconds (math.inf for no bound)"
        )
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} is too large for a float; give math.inf for no bound") from None


def _at_most(timeout: Any) -> float:
    """Return how long to wait: not at all where no time is given."""
    is_number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
    return 0.0 if is_number and timeout <= 0 else seconds("timeout", timeout)


class Abortable(Protocol):
    """What a call blocks on, as far as ending it is concerned."""

    def cut(self) -> None:
        """End the blocked operation at once; any thread, any number of times."""

    def take_back(self) -> None:
        """Free what the call used; called when it ends while it still has this."""


class CancelToken:
    """End one or many calls from another thread or from a signal handler.

    Give the token to calls as ``cancel=token``; ``token.cancel()`` ends those that run, at once,
    and lets no later one begin. Ending a call does not end the *task* at the peer, with two
    exceptions: leaving an SSE stream, and leaving a stream or a call over gRPC, makes a ProtoLink
    peer cancel the task. ``AgentClient.cancel_task`` ends a task in any case.

    >>> token = CancelToken()
    >>> token.cancel("no longer needed")
    >>> token.cancelled, token.reason
    (True, 'no longer needed')
    """

    __slots__ = (
        "__weakref__",
        "_callbacks",
        "_calls",
        "_first",
        "_lock",
    )

    def __init__(self) -> None:
        self._lock = threading.RLock()
        # Calls stand here themselves, until they take themselves out: an interrupt loses none.
        self._calls: dict[Deadline, None] = {}
        self._callbacks: dict[object, Callable[[], object]] = {}
        # The reason of the first cancel(), in a tuple; None before it.
        self._first: tuple[str | None] | None = None

    @property
    def cancelled(self) -> bool:
        """True once :meth:`cancel` was called."""
        return self._first is not None

    @property
    def reason(self) -> str | None:
        """What was given to the first :meth:`cancel`."""
        first = self._first
        return None if first is None else first[0]

    def cancel(self, reason: str | None = None) -> None:
        """End every call that has this token; later calls send nothing.

        Args:
            reason: Kept in :attr:`reason` and in the errors of the calls. The first one counts.

        Raises:
            Exception: The first error of a callback, after all calls were ended and all callbacks
                have run.
        """
        with self._lock: self._first = self._first or (reason,)  # fmt: skip  # noqa: E701
        # Not only the first time: an interrupt may have left some over.
        failures: list[Exception] = []
        for call in [*self._calls]:
            try:
                call._cancelled()
            except Exception as error:  # of one that cannot be cut; the others can
                failures.append(error)
        while True:
            try:
                _, callback = self._callbacks.popitem()
            except KeyError:
                break
            try:
                callback()
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the token is cancelled.

        Args:
            timeout: Seconds to wait at most; None or ``math.inf`` for no bound.

        Returns:
            True if the token is cancelled, False if the time is over.

        Raises:
            TypeError: The timeout is no number.
            ValueError: The timeout is NaN.
        """
        end = math.inf if timeout is None else time.monotonic() + _at_most(timeout)
        wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        try:
            self._add(wake, lambda: wake.put(None))
            while self._first is None:
                left = end - time.monotonic()
                if left <= 0:
                    break
                _sleep(wake, left, _LONGEST_WAIT)
        finally:
            self._callbacks.pop(wake, None)
        return self._first is not None

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], object]:
        """Have a function called when the token is cancelled; at once if it is already.

        Args:
            callback: Called once, without arguments, in the thread that cancels.

        Returns:
            A function that takes the registration back; it may be called any number of times.
        """
        key = object()
        self._add(key, callback)
        return functools.partial(self._callbacks.pop, key, None)

    def _add(self, key: object, callback: Callable[[], object]) -> None:
        self._callbacks[key] = callback
        if self._first is not None and self._callbacks.pop(key, None) is not None:
            callback()

    def _add_call(self, call: Deadline) -> None:
        self._calls[call] = None
        if self._first is not None:
            call._cancelled()

    def _remove_call(self, call: Deadline) -> None:
        self._calls.pop(call, None)

    def __repr__(self) -> str:
        state = f"cancelled, reason={self.reason!r}" if self.cancelled else "not cancelled"
        return f"<CancelToken {state}>"

    def __reduce__(self) -> Any:
        raise TypeError(
            "a CancelToken belongs to one process and cannot be pickled or copied: "
            "make one where the calls are made"
        )


def _sleep(wake: queue.SimpleQueue[None], duration: float, longest: float) -> None:
    """Wait until somebody puts into the queue, or some seconds are over."""
    try:
        wake.get(timeout=min(max(duration, 0.0), longest))
    except queue.Empty:
        pass


# Ends of one attempt only: the call may go on, unless something else ends it too.
_OF_AN_ATTEMPT = ("connect", "attempt")


class Deadline:
    """The budget of one call, what may end it early, and how it ended.

    Args:
        timeout: Budget in seconds, counted from now; ``math.inf`` for none.
        cancel: Token that ends the call.

    Attributes:
        phase: What the call is doing; the code that blocks says so.
        ended: None while the call may go on; then ``timeout``, ``connect``, ``attempt``,
            ``idle``, ``cancelled`` or ``closed``.
        reason: What the one who ended the call gave as reason.
    """

    __slots__ = (
        "__weakref__",
        "_at",
        "_handle",
        "_limits",
        "_lock",
        "_token",
        "_uncut",
        "_wake",
        "due",
        "ended",
        "phase",
        "reason",
        "started",
        "timeout",
    )

    def __init__(self, timeout: float, *, cancel: CancelToken | None = None) -> None:
        self.started = time.monotonic()
        self.timeout = timeout
        self.phase = "slot"
        self.ended: str | None = None
        self.reason: str | None = None
        self.due = self._at = self.started + timeout
        # Bounds of parts of the call: name -> (seconds, point in time).
        self._limits: dict[str, tuple[float, float]] = {}
        self._lock = threading.RLock()
        self._handle: Abortable | None = None
        # True from the end of the call until what it blocks on is cut: an interrupt between the
        # two leaves the cut to the next abort.
        self._uncut = False
        # What the call's own thread waits on, from its first wait.
        self._wake: queue.SimpleQueue[None] | None = None
        self._token = cancel

    def count_from(self, started: float) -> None:
        """Count the budget from an earlier moment, before :meth:`begin`.

        Args:
            started: When the work began of which this call is a part, on the monotonic clock.
        """
        self.started = started
        self.due = self._at = started + self.timeout

    def begin(self) -> None:
        """Let budget and token end the call from now on, until :meth:`finish`.

        Raises:
            TransportError: It has a budget, and the deadline thread cannot start.
        """
        if self._token is not None:
            self._token._add_call(self)
        if self.due != math.inf:
            watch(self)

    def finish(self) -> None:
        """Free everything the call holds; any number of times."""
        # In this order: the deadline thread, which may just have it in hand, puts it back unless
        # it sees this.
        self.due = math.inf
        watchdog = _watchdog
        watchdog.watched.pop(self, None)
        if watchdog.is_brief:
            watchdog.leave()
        if self._token is not None:
            self._token._remove_call(self)
        if self._handle is not None:
            self._take_back()

    def _take_back(self) -> None:
        handle = self._handle
        if handle is not None:
            # Under the lock, so that no abort cuts a descriptor that is being closed, and whose
            # number another thread may get at once. One line, as in lend().
            with self._lock: handle.take_back()  # fmt: skip  # noqa: E701
            self._handle = None

    def remaining(self) -> float:
        """Return the seconds left of the budget, not below 0."""
        return max(0.0, self._at - time.monotonic())

    def elapsed(self) -> float:
        """Return the seconds since the call began."""
        return time.monotonic() - self.started

    def may_go_on(self) -> bool:
        """Return whether the call may begin something new; notices a spent budget itself."""
        if self.ended is None and time.monotonic() >= self.due:
            self.expire()
        return self.ended is None

    def limit(self, name: str, duration: float) -> None:
        """Bound a part of the call; :attr:`ended` becomes ``name`` when it takes longer.

        Args:
            name: ``connect``, ``attempt`` or ``idle``.
            duration: Seconds from now; ``math.inf`` lifts the bound.
        """
        if duration == math.inf:
            self._limits.pop(name, None)
        else:
            self._limits[name] = (duration, time.monotonic() + duration)
        self._set_due()

    def limit_seconds(self, name: str) -> float:
        """Return how long a bound inside the call is; the budget's length for any other name."""
        return self._limits.get(name, (self.timeout, 0.0))[0]

    def _set_due(self) -> None:
        self.due = min([self._at, *(at for _, at in self._limits.values())])
        if self.due != math.inf:
            watch(self)

    def renew(self) -> None:
        """Let a call go on after an attempt that failed, or that only its own bound had ended."""
        self._take_back()
        with self._lock: self._renew()  # fmt: skip  # noqa: E701
        self._set_due()

    def _renew(self) -> None:
        self._limits.clear()
        # One line, for a handler that ends the call between two.
        self.ended = None if self.ended in _OF_AN_ATTEMPT else self.ended

    def expire(self) -> None:
        """End the call if its budget or a bound inside it is spent (the deadline thread)."""
        # Locked as a whole: a bound that renew() lifts meanwhile ends nothing.
        with self._lock: self._expire()  # fmt: skip  # noqa: E701

    def _expire(self) -> None:
        now = time.monotonic()
        if now >= self._at:
            self.abort("timeout")
            return
        for name, (_, at) in list(self._limits.items()):
            if now >= at:
                self.abort(name)

    def abort(self, how: str, reason: str | None = None) -> None:
        """End the call at once; any thread, any number of times, the first one counts.

        Args:
            how: What :attr:`ended` becomes. The end of an attempt gives way to that of the call.
            reason: What :attr:`reason` becomes.
        """
        with self._lock: self._abort(how, reason)  # fmt: skip  # noqa: E701
        self.notify()

    def _abort(self, how: str, reason: str | None) -> None:
        if self.ended is None or (self.ended in _OF_AN_ATTEMPT and how not in _OF_AN_ATTEMPT):
            self.reason, self.ended, self._uncut = reason, how, True
        # Not for a later abort: what the call has by then it uses to end itself.
        if self._uncut:
            if self._handle is not None:
                self._handle.cut()
            self._uncut = False

    def lend(self, handle: Abortable) -> bool:
        """Say what the call blocks on from now; False if the call has ended already."""
        # One line, as in release(): no signal handler comes between the lock's enter and exit.
        with self._lock: self._handle = handle  # fmt: skip  # noqa: E701
        return self.ended is None

    def release(self) -> bool:
        """Say that the call uses nothing more; False if it was ended while it did.

        After this an abort cannot reach what was lent, which may belong to the next call.
        """
        with self._lock: self._handle = None  # fmt: skip  # noqa: E701
        return self.ended is None

    def wait(self, duration: float, until: Callable[[], Any] | None = None) -> bool:
        """Block until a time is over, a condition holds, or the call is ended.

        Args:
            duration: Seconds to wait at most.
            until: Asked after each :meth:`notify`.

        Returns:
            True if the call may go on, False if it was ended.
        """
        if self._wake is None:
            self._wake = queue.SimpleQueue()
        end = time.monotonic() + duration
        while self.may_go_on() and not (until is not None and until()):
            now = time.monotonic()
            if now >= end:
                break
            _sleep(self._wake, min(end, self.due) - now, _LONGEST_WAIT)
        return self.ended is None

    def notify(self) -> None:
        """Have a waiting call look at its condition again."""
        wake = self._wake
        if wake is not None:
            wake.put(None)

    def _cancelled(self) -> None:
        self.abort("cancelled", self._token.reason if self._token is not None else None)


class Timer:
    """Call a function once, from the deadline thread, after some seconds.

    Args:
        duration: Seconds from now.
        action: Must not block.
    """

    __slots__ = ("__weakref__", "_action", "due")

    def __init__(self, duration: float, action: Callable[[], object]) -> None:
        self.due = time.monotonic() + duration
        self._action = action

    def expire(self) -> None:
        """Run the action (the deadline thread)."""
        self._action()


class _Watchdog:
    """The deadline thread and what it watches: a dict, so that finished calls leave nothing."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.watched: dict[Deadline | Timer, None] = {}
        self._lock = threading.RLock()
        # When the thread looks next. Infinite while it is looking, so that whatever is added
        # meanwhile makes it look again.
        self.next = math.inf
        # Made by the thread, for gevent: what was made before it replaced threads and queues would
        # stop all its greenlets. (gunicorn --preload imports us before its worker brings it in.)
        self._wake: queue.SimpleQueue[None] | None = None
        self._running = False
        # Those that may still run, where they are waited for: of two that are started at once, one
        # has nothing to do.
        self._threads: list[threading.Thread] = []
        # True where a fork that tells nobody may follow: the thread ends with the last call.
        self.is_brief = False

    def look_again(self, entry: Deadline | Timer) -> None:
        """Have the thread look before it meant to, because of what was just added."""
        if not self._running:
            self._start(entry)
        # First added, then asked: without a queue the thread has not looked yet.
        wake = self._wake
        if wake is not None:
            wake.put(None)

    def _start(self, entry: Deadline | Timer) -> None:
        self.is_brief = before_bare_fork()
        if self.is_brief and not isinstance(entry, Deadline):
            return  # nobody would see this thread end; the next call's looks after the timer
        thread = threading.Thread(target=self._run, name="protolink-deadline", daemon=True)
        try:
            start(thread)
        except NoThreadError as error:
            if not isinstance(entry, Deadline):
                return  # it only tidies, and may be late
            self.watched.pop(entry, None)
            raise TransportError(
                f"nothing could end the call in time: a thread that has to cannot start ({error}). "
                "Where Python starts none at its exit (3.12), make a first call before"
            ) from error
        if self.is_brief:
            self._threads.append(thread)

    def leave(self) -> None:
        """Wait for the end of a brief thread, unless another call needs it."""
        wake = self._wake
        if wake is not None and not self._has_calls():
            wake.put(None)
        end = time.monotonic() + _LONGEST_LEAVING
        for thread in [*self._threads]:
            while thread.is_alive() and not self._has_calls() and time.monotonic() < end:
                if thread is threading.current_thread():
                    return
                thread.join(_LEAVING)
            if not thread.is_alive():
                with contextlib.suppress(ValueError):  # another thread was first
                    self._threads.remove(thread)

    def _has_calls(self) -> bool:
        return any(isinstance(entry, Deadline) for entry in [*self.watched])

    def _run(self) -> None:
        wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        # The thread says so itself: an interrupt can leave start() before it returns.
        is_needed = self._take_over(wake)
        while is_needed:
            # Methods, so that what a turn knew of calls is forgotten before the next wait.
            self._expire_due()
            is_needed = not self.is_brief or self._has_calls() or self._stays(wake)
            if is_needed:
                self._wait(wake)

    def _take_over(self, wake: queue.SimpleQueue[None]) -> bool:
        with self._lock:
            if self._running:
                return False
            self._running = True
        self._wake = wake
        return True

    def _stays(self, wake: queue.SimpleQueue[None]) -> bool:
        """Give up, unless a call was added at this moment that takes this thread to go on."""
        self._running, self._wake = False, None
        return self._has_calls() and self._take_over(wake)

    def _expire_due(self) -> None:
        self.next = math.inf
        now = time.monotonic()
        for entry in [entry for entry in [*self.watched] if entry.due <= now]:
            # Taken out first: an ended call may renew itself at once and be added again.
            if self.watched.pop(entry, entry) is None:
                self._expire(entry)

    def _expire(self, entry: Deadline | Timer) -> None:
        try:
            entry.expire()
        except Exception:
            # Of a transport's cut(): it must not take the deadlines of all other calls with it.
            _log.exception("ending a call failed")
        if time.monotonic() < entry.due < math.inf:  # its bound was lifted at this moment
            self.watched[entry] = None
            if entry.due == math.inf:  # and the call has finished meanwhile
                self.watched.pop(entry, None)

    def _wait(self, wake: queue.SimpleQueue[None]) -> None:
        self.next = min((entry.due for entry in [*self.watched]), default=math.inf)
        _sleep(wake, self.next - time.monotonic(), _LONGEST_IDLE)


_watchdog = _Watchdog()


def _forget_parent() -> None:
    """Begin anew in a forked child: the thread did not come along, its lock may be held."""
    global _watchdog
    _watchdog = _Watchdog()


def watch(entry: Deadline | Timer) -> None:
    """Have the deadline thread call ``entry.expire()`` when ``entry.due`` has come."""
    # uWSGI forks without running the hook below, so the process id is compared as well.
    if _watchdog.pid != os.getpid():
        _forget_parent()
    watchdog = _watchdog
    watchdog.watched[entry] = None
    if entry.due < watchdog.next:
        watchdog.look_again(entry)


def forget(entry: Deadline | Timer) -> None:
    """Take back :func:`watch`; any number of times."""
    _watchdog.watched.pop(entry, None)


with contextlib.suppress(AttributeError):  # Windows has no fork
    os.register_at_fork(after_in_child=_forget_parent)
