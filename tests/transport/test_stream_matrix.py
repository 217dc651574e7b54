"""Streams are left, and calls of every wire cancelled, at once, wherever they are blocked."""

from __future__ import annotations

import pytest

from tests.transport.matrix_streams import leaving_cells, phase_cells, why_not
from tests.transport.matrix_watch import lines_of


@pytest.mark.slow
@pytest.mark.parametrize(("part", "cells"), [("leave", leaving_cells), ("cancel", phase_cells)])
def test_whatever_is_ended_is_gone_at_once_and_the_next_call_works(part, cells):
    """The program prints a line a cell; a missing line is a failure."""
    lines = lines_of("matrix_streams", part)

    seen = {tuple(line.split()[:3]): line for line in lines}
    assert set(cells()) == set(seen)
    for cell in cells():
        expected = "gone" if why_not(cell) is None else f"cannot exist: {why_not(cell)}"
        assert seen[cell].endswith(expected), seen[cell]


def test_most_cells_exist():
    """What is said not to exist is no way to get rid of a cell."""
    possible = [cell for cell in leaving_cells() if why_not(cell) is None]
    assert len(possible) == 5 * (5 + 5 + 2 + 2)

    phases = [cell for cell in phase_cells() if why_not(cell) is None]
    assert len(phases) == (3 + 1 + 2 + 2 + 3 + 2) + (5 + 2 + 2 + 4 + 2)
