"""What the tests of the A2A client share: streams read to their end, calls in threads."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

# Nothing comes near it: it ends a test whose call hangs.
LIMIT = 20.0


class Heard:
    """What came of reading a stream: its events, and the error that ended it, if one did."""

    def __init__(self, open_stream: Callable[[], Any]) -> None:
        self.events: list[Any] = []
        self.error: Exception | None = None
        self.stream: Any = None
        try:
            self.stream = open_stream()
            for event in self.stream:
                self.events.append(event)
        except Exception as exc:
            self.error = exc

    @property
    def kinds(self) -> list[str]:
        """The kinds of the events."""
        return [event.kind for event in self.events]

    @property
    def task(self) -> Any:
        """The task as assembled; the error's, when an error ended the stream."""
        return getattr(self.error, "task", None) if self.error else self.stream.task


def heard(open_stream: Callable[[], Any]) -> Heard:
    """Read a stream to its end, whether opening it, or reading it, raises or not."""
    return Heard(open_stream)


def outcome(answer: Any) -> Any:
    """Return what a call came to: the task, which a stream is read to its end for."""
    return answer.result() if hasattr(answer, "result") else answer


def in_threads(count: int, work: Callable[[int], Any], *, limit: float = LIMIT) -> list[Any]:
    """Run ``work(0)`` ... in threads that start together; return what each returned or raised."""
    start = threading.Barrier(count)
    results: list[Any] = [None] * count

    def run(number: int) -> None:
        start.wait(limit)
        try:
            results[number] = work(number)
        except BaseException as exc:
            results[number] = exc

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(limit)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    return results


class Running:
    """A call in a thread of its own."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        self.ended_at = 0.0
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            self.value = work()
        except BaseException as exc:
            self.error = exc
        self.ended_at = time.monotonic()

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive()

    def is_inside(self, file: str) -> bool:
        """Whether it is in a function of a file at this moment."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        while frame is not None:
            if frame.f_code.co_filename.endswith(file):
                return True
            frame = frame.f_back
        return False

    def wait(self, seconds: float) -> None:
        """Wait for its end, for so long at most."""
        self._thread.join(seconds)

    def end(self, limit: float = LIMIT) -> Running:
        """Wait for its end."""
        self._thread.join(limit)
        assert not self._thread.is_alive(), "the call does not end"
        return self


def stream_workers() -> list[str]:
    """Return the names of the threads that read streams."""
    return [t.name for t in threading.enumerate() if t.name.startswith("protolink-stream")]
