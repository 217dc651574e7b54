"""A stream that is shown while it is read: in place in a notebook, as it comes elsewhere."""

from __future__ import annotations

from typing import Any

from protolink_sync._display import Bar, Cell, View, bar, cell, printable

__all__ = ["Shown", "display"]


class Shown:
    """What is shown of a stream under way.

    Args:
        task_id: The stream's task.
    """

    def __init__(self, task_id: str | None) -> None:
        self._task_id = task_id
        self._progress: object = None
        self._share: float | None = None
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
            self._share = _share(self._progress)
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
        return View(f"Stream: {state or 'begun'}", facts, sections, share=self._share)


def _share(progress: object) -> float | None:
    """Return a percentage as a share; None for what a peer says instead."""
    is_number = isinstance(progress, (int, float)) and not isinstance(progress, bool)
    return float(progress) / 100 if is_number else None  # type: ignore[arg-type]


def display() -> Terminal | Notebook:
    """Return where a stream is shown: in the cell of the kernel we run in, or the output."""
    place = cell()
    return Terminal() if place is None else Notebook(place)


class Terminal:
    """The standard output: a bar while the agent tells how far it is, the answer as it comes."""

    def __init__(self) -> None:
        self._bar: Bar | None = None
        self._has_text = False

    def update(self, view: View, piece: str) -> None:
        """Print what is new."""
        if piece:
            self._end_bar()
            self._has_text = True
            print(printable(piece), end="", flush=True)
        elif view.share is not None and not self._has_text:
            self._show_bar(view.share)

    def end(self, view: View) -> None:
        """End the line, and tell how the stream ended."""
        self._end_bar()
        print(f"\n{printable(view.title)}", flush=True)

    def _show_bar(self, share: float) -> None:
        if self._bar is None:
            try:
                self._bar = bar("progress")
            except ImportError:
                # It is an extra, which nobody asked for here.
                return
        self._bar.update(round(100 * share), 100)

    def _end_bar(self) -> None:
        if self._bar is not None:
            self._bar.end()


class Notebook:
    """One display of a notebook, which is updated in place.

    Args:
        place: The display.
    """

    def __init__(self, place: Cell) -> None:
        self._place = place

    def update(self, view: View, piece: str) -> None:
        """Draw it, if it was not drawn just before."""
        self._place.update(view)

    def end(self, view: View) -> None:
        """Draw it a last time."""
        self._place.draw(view)
