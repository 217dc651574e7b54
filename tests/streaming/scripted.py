"""An event source that does what a test tells it, one step after the other."""

from __future__ import annotations

import inspect
import queue
import sys
import threading
import time

import pytest

from protolink_sync.errors import CallCancelledError

LIMIT = 10.0  # seconds for what happens at once, or never


class ScriptedSource:
    """Gives batches of events, an error or the end; silent while it has nothing.

    Args:
        steps: A list of events, a tuple of such a list and its bytes, an exception to raise, or
            None for the end.
    """

    def __init__(self, *steps):
        self._steps = queue.SimpleQueue()
        self.calls = []
        """What was called, in order: ``read``, ``pause``, ``resume``, ``close``."""
        self.threads = set()
        self.aborted = threading.Event()
        self.closed = threading.Event()
        self.paused = threading.Event()
        self.closed_with = None
        self.give(*steps)

    def give(self, *steps):
        """Add steps."""
        for step in steps:
            self._steps.put((step,))

    def read(self):
        self._called("read")
        step = self._steps.get(timeout=60)
        if step is None:
            raise CallCancelledError("the read was aborted")
        (given,) = step
        if isinstance(given, BaseException):
            raise given
        return (given, 0) if isinstance(given, list) else given

    def pause(self):
        self._called("pause")
        self.paused.set()

    def resume(self):
        self._called("resume")

    def is_over(self):
        return self.aborted.is_set() if hasattr(self, "aborted") else False

    def abort(self):
        self.aborted.set()
        self._steps.put(None)

    def close(self, error):
        self._called("close")
        self.closed_with = error
        self.closed.set()

    def _called(self, name):
        self.calls.append(name)
        self.threads.add(threading.current_thread().name)


def final(state="completed", **task):
    """Return a final status with its task."""
    told = {"id": "t", "state": state, "messages": [], "artifacts": [], "metadata": {}, **task}
    return {
        "type": "task_status_update",
        "new_state": state,
        "final": True,
        "metadata": {"task": told},
    }


def eventually(condition):
    """Wait for what nobody announces; say whether it came."""
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def interrupted_after(function, line, call):
    """Make a call that Ctrl-C ends just after a line of a function, named by its beginning."""
    code = function.__code__
    lines, first = inspect.getsourcelines(function)
    at = first + next(n for n, text in enumerate(lines) if text.strip().startswith(line))
    was_there = False

    def trace(frame, event, _):
        nonlocal was_there
        if frame.f_code is not code:
            return None
        if was_there and event == "line":
            raise KeyboardInterrupt
        was_there = was_there or frame.f_lineno == at
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
    finally:
        sys.settrace(before)


class InterruptedRelease:
    """A lock at whose first release a signal comes, whose handler raises something."""

    def __init__(self, signalled):
        self._signalled = signalled
        self._lock = threading.RLock()
        self._was_there = False

    def acquire(self, **words):
        return self._lock.acquire(**words)

    def release(self):
        self._lock.release()
        was_there, self._was_there = self._was_there, True
        if not was_there:
            raise self._signalled


class Reading(threading.Thread):
    """Reads a stream to its end in a thread of its own."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self.stream = stream
        self.found = []
        self.error = None
        self.start()

    def run(self):
        try:
            for event in self.stream:
                self.found.append(event)
        except Exception as error:
            self.error = error

    def ended(self):
        """Wait for its end and return what it found."""
        self.join(LIMIT)
        assert not self.is_alive(), "the reader hangs"
        return self.found
