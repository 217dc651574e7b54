"""A stream that is shown while it is read: in place in a notebook, as it comes elsewhere."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from protolink_sync._display import View, bundle, printable

__all__ = ["Shown", "display"]

# A notebook draws each update; more often nobody can read.
_INTERVAL = 0.1


class Shown:
    """What is shown of a stream under way.

    Args:
        task_id: The stream's task.
    """

    def __init__(self, task_id: str | None) -> None:
        self._task_id = task_id
        self._progress: object = None
        self._doing = ""
        self._pieces: list[str] = []

    def see(self, event: Any, piece: str) -> None:
        """Take in an event, and what it adds to the answer."""
        if piece:
            self._pieces.append(piece)
        if not isinstance(event, dict):
            return
        if event.get("type") == "task_progress":
            self._progress = event.get("progress")
            self._doing = str(event.get("message") or "")

    def view(self, state: str | None, events: int) -> View:
        """Return it as it stands."""
        progress = None if self._progress is None else f"{self._progress} %"
        text = "".join(self._pieces)
        facts: list[tuple[str, object]] = [
            ("task", self._task_id),
            ("events", events),
            ("progress", progress),
            ("doing", self._doing),
        ]
        sections = [("answer", text)] if text else []
        return View(f"Stream: {state or 'begun'}", facts, sections)


def display() -> Terminal | Notebook:
    """Return where a stream is shown: in the cell of the kernel we run in, or the output."""
    # Not imported: where it is not yet, no cell is being run.
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is not None and hasattr(shell, "kernel"):
        return Notebook(shell.display_pub)
    return Terminal()


class Terminal:
    """The standard output: the answer as it comes."""

    def update(self, view: View, piece: str) -> None:
        """Print what is new."""
        if piece:
            print(printable(piece), end="", flush=True)

    def end(self, view: View) -> None:
        """End the line, and tell how the stream ended."""
        print(f"\n{printable(view.title)}", flush=True)


class Notebook:
    """One display of a notebook, which is updated in place.

    Args:
        publisher: The shell's, by which it sends what a cell shows.
    """

    def __init__(self, publisher: Any) -> None:
        self._publisher = publisher
        self._id = os.urandom(16).hex()
        self._is_there = False
        self._next = 0.0

    def update(self, view: View, piece: str) -> None:
        """Draw it, if it was not drawn just before."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _INTERVAL
            self._draw(view)

    def end(self, view: View) -> None:
        """Draw it a last time."""
        self._draw(view)

    def _draw(self, view: View) -> None:
        self._publisher.publish(
            bundle(view),
            metadata={},
            transient={"display_id": self._id},
            update=self._is_there,
        )
        self._is_there = True
