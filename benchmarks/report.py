"""Results as text to read and as JSON to keep."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from benchmarks.bounds import Ratio, Rounds, Verdict, median, ratio

__all__ = ["as_json", "bounds_table", "machine", "table"]

_HEADINGS = {
    "wall_us": "wall us",
    "cpu_us": "CPU us",
    "p99_us": "p99 us",
    "p50_us": "p50 us",
    "first_us": "first us",
    "growth_bytes": "bytes/call",
}


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    return {
        "python": platform.python_version(),
        "system": sys.platform,
        "cores": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
    }


def table(results: Mapping[str, Rounds], floor: str | None) -> str:
    """Return the figures of one case, a line for each contender.

    Args:
        results: The rounds of each contender.
        floor: Whose figures the others are divided by; None for none.
    """
    measured = [rounds for rounds in results.values() if "failed" not in rounds[0]]
    figures = list(measured[0][0]) if measured else []
    rows = [["contender", *_headings(figures, floor)]]
    for name, rounds in results.items():
        if "failed" in rounds[0]:
            rows.append([name, f"FAILED: {rounds[0]['failed']}"])
        else:
            rows.append([name, *_cells(rounds, figures, results.get(floor or ""))])
    return _aligned(rows)


def _is_compared(figure: str) -> bool:
    return figure.endswith("_us")


def _decimals(figure: str) -> int:
    return 2 if figure == "factor" else int(_is_compared(figure))


def _headings(figures: Sequence[str], floor: str | None) -> Iterator[str]:
    for figure in figures:
        yield _HEADINGS.get(figure, figure)
        if floor and _is_compared(figure):
            yield "x"


def _cells(rounds: Rounds, figures: Sequence[str], floor: Rounds | None) -> Iterator[str]:
    for figure in figures:
        yield f"{median(rounds, figure):.{_decimals(figure)}f}"
        if _is_compared(figure):
            comparable = floor and "failed" not in floor[0]
            yield f"{ratio(rounds, floor, figure).middle:.2f}" if floor and comparable else "-"


def bounds_table(verdicts: Sequence[Verdict]) -> str:
    """Return the bounds of one case, a line for each."""
    rows = [["must hold", "measured", "quartiles", "limit", ""]]
    for verdict in verdicts:
        measured, spread = _measured(verdict.measured)
        rows.append([verdict.text, measured, spread, verdict.limit, verdict.state])
    return _aligned(rows)


def _measured(value: Ratio | float | None) -> tuple[str, str]:
    if value is None:
        return "-", ""
    if isinstance(value, Ratio):
        return f"{value.middle:.2f}", f"{value.low:.2f}-{value.high:.2f}"
    return f"{value:.6g}", ""


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as columns: the first to the left, the others to the right."""
    # A line that has fewer cells holds a message, which may be as long as it likes.
    whole = [row for row in rows if len(row) == len(rows[0])]
    widths = [max(len(row[column]) for row in whole) for column in range(len(rows[0]))]
    widths[0] = max(len(row[0]) for row in rows)
    lines = []
    for row in rows:
        others = row[1:] if row not in whole else map(str.rjust, row[1:], widths[1:])
        lines.append("  ".join(["  " + row[0].ljust(widths[0]), *others]).rstrip())
    return "\n".join(lines)


def as_json(
    title: str,
    results: Mapping[str, Rounds],
    missing: Mapping[str, str],
    verdicts: Sequence[Verdict],
) -> dict[str, Any]:
    """Return one case as plain values, round by round."""
    return {
        "title": title,
        "rounds": results,
        "left_out": dict(missing),
        "bounds": [attrs.asdict(verdict) for verdict in verdicts],
    }
