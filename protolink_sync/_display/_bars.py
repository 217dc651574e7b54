"""How far something is: a bar in the cell of a notebook, or in a terminal by rich."""

from __future__ import annotations

import sys
import time
from typing import Protocol

from protolink_sync._display._cell import Cell, cell
from protolink_sync._display._view import View, printable

__all__ = ["Bar", "bar"]

_INTERVAL = 0.1


class Bar(Protocol):
    """A bar that is updated in place."""

    def update(self, done: float, total: float | None) -> None:
        """Show how much is done of how much; None while that is not known."""

    def end(self) -> None:
        """Show it a last time, and leave it as it is. Twice is silent."""


def bar(title: str) -> Bar:
    """Return a bar, which is drawn when it is first updated.

    Args:
        title: What is under way.

    Raises:
        ImportError: This is no notebook, and rich is not installed.
    """
    place = cell()
    return _TerminalBar(title) if place is None else _CellBar(title, place)


class _CellBar:
    """A bar in a notebook."""

    def __init__(self, title: str, place: Cell) -> None:
        self._title = title
        self._place = place
        self._view: View | None = None

    def update(self, done: float, total: float | None) -> None:
        share = done / total if total else None
        of = "" if total is None else f" of {total:g}"
        self._view = View(self._title, [("done", f"{done:g}{of}")], share=share)
        self._place.update(self._view)

    def end(self) -> None:
        view, self._view = self._view, None
        if view is not None:
            self._place.draw(view)


class _TerminalBar:
    """A bar on the standard error; none where that is a file or a pipe."""

    def __init__(self, title: str) -> None:
        try:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
            from rich.progress import TimeElapsedColumn as Elapsed
        except ImportError:
            raise ImportError(
                "a progress bar in a terminal needs rich: install protolink-sync[cli], or give "
                "progress a function"
            ) from None
        console = Console(stderr=True)
        self._shown = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            Elapsed(),
            console=console,
            # It would be a thread.
            auto_refresh=False,
            # rich prints it above the bar, to the standard error: not what belongs in a pipe.
            redirect_stdout=sys.stdout.isatty(),
        )
        # Without one, rich would print an empty line at the end.
        self._has_terminal = console.is_interactive
        self._next = 0.0
        self._task = self._shown.add_task(printable(title), total=None)

    def update(self, done: float, total: float | None) -> None:
        if not self._has_terminal:
            return
        self._shown.update(self._task, completed=done, total=total)
        self._shown.start()
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _INTERVAL
            self._shown.refresh()

    def end(self) -> None:
        if self._has_terminal:
            self._shown.stop()
