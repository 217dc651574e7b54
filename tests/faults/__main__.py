"""Print the fault matrix: ``python -m tests.faults [TEXT ...]``.

A line a cell: what the caller was told, in how many milliseconds, and what is wrong with that.
Words choose the cells whose name has one of them. The exit code is 1 if anything is wrong.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile

from tests.faults.cells import all_cells, told, why_not
from tests.faults.play import certificates, play


def main(words: list[str]) -> int:
    """Play the chosen cells and print their lines; return the exit code."""
    wrong = played = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        certificates(pathlib.Path(folder)) as shown,
    ):
        for cell in all_cells():
            if words and not any(word in str(cell) for word in words):
                continue
            reason = why_not(cell)
            if reason is not None:
                print(f"{cell!s:38} cannot exist: {reason}")
                continue
            played += 1
            outcome = play(cell, shown)
            misses = list(outcome.misses)
            if outcome.told != told(cell):
                misses.append(f"expected {told(cell)}: {outcome.error}")
            wrong += bool(misses)
            verdict = "MISS: " + "; ".join(misses) if misses else "ok"
            ms = outcome.seconds * 1000
            print(f"{cell!s:38} {outcome.told!s:42} {ms:7.1f} ms  {verdict}", flush=True)
    print(f"{played} cells, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
