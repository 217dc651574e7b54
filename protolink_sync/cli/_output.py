"""What is printed: JSON for machines, tables on a terminal, plain lines everywhere else."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from protolink_sync._display import printable
from protolink_sync.wire import one_line

__all__ = ["Output"]


class Output:
    """Prints what a command has found.

    Args:
        as_json: One JSON value on each line.
    """

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def value(self, value: Any) -> None:
        """Print one value as a line of JSON."""
        line = json.dumps(value, ensure_ascii=False)
        try:
            line.encode(sys.stdout.encoding or "utf-8")
        except UnicodeEncodeError:
            line = json.dumps(value)
        print(line, flush=True)

    def text(self, text: str, *, end: str = "\n") -> None:
        """Print text as it is, but for what a terminal would obey."""
        print(printable(text), end=end, flush=True)

    def line(self, text: str) -> None:
        """Print what stands on one line, whatever a peer says."""
        print(one_line(text), flush=True)

    def facts(self, facts: Iterable[tuple[str, Any]]) -> None:
        """Print names and values, those that are empty left out."""
        rows = [(name, _words(value)) for name, value in facts if value not in (None, "", [], ())]
        self._rows((), rows)

    def rows(self, titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Print a table; elsewhere than on a terminal its cells are parted by tabs."""
        self._rows(titles, [[_words(cell) for cell in row] for row in rows])

    def _rows(self, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        if sys.stdout.isatty():
            _table(titles, rows)
            return
        for row in rows:
            print("\t".join(row) if titles else ": ".join(row), flush=True)

    def note(self, text: str) -> None:
        """Tell something beside the result, on one line."""
        print(one_line(text), file=sys.stderr, flush=True)


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_words, value))
    return one_line("" if value is None else str(value))


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    # Not before it is needed: it costs more than a call.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*titles, show_header=bool(titles), box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for row in rows:
        # As text, not as markup: what stands in it comes from a peer.
        table.add_row(*[Text(cell, "" if titles or i else "bold") for i, cell in enumerate(row)])
    Console(highlight=False).print(table)
