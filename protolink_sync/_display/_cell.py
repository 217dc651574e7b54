"""One display in the output of a notebook's cell, which is updated in place."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from protolink_sync._display._view import View, bundle

__all__ = ["Cell", "cell"]

# A notebook draws each update; more often nobody can read.
_INTERVAL = 0.1


def cell() -> Cell | None:
    """Return a display in the cell of the kernel we run in; None where there is no kernel."""
    # Not imported: where it is not yet, no cell is being run.
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is not None and hasattr(shell, "kernel"):
        return Cell(shell.display_pub)
    return None


class Cell:
    """A display that is updated in place.

    Args:
        publisher: The shell's, by which it sends what a cell shows.
    """

    def __init__(self, publisher: Any) -> None:
        self._publisher = publisher
        self._id = os.urandom(16).hex()
        self._is_there = False
        self._next = 0.0

    def update(self, view: View) -> None:
        """Draw it, if it was not drawn just before."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _INTERVAL
            self.draw(view)

    def draw(self, view: View) -> None:
        """Draw it."""
        self._publisher.publish(
            bundle(view),
            metadata={},
            transient={"display_id": self._id},
            update=self._is_there,
        )
        self._is_there = True
