"""Ctrl-C at any line leaves nothing behind, and the next call works."""

from __future__ import annotations

import pytest

from tests.transport.matrix_cancel import cells, why_not
from tests.transport.matrix_watch import lines_of


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "cases"),
    [
        # KeyboardInterrupt at every line of a call, and of close()
        ("raise: ", 13),
        # the same of streams and of calls over WebSocket
        ("wire: ", 7),
        # and over gRPC
        ("grpc: ", 4),
        # token.cancel() of a signal handler at every line, of libraries too
        ("cancel: a", 2),
        ("cancel: token", 1),
        ("cancel: on the way", 6),
    ],
)
def test_what_happens_at_any_line_leaves_nothing_and_loses_nothing(what, cases):
    """Slots, descriptors, registrations, locks and threads are as before.

    At each third line, other ones each time; the program alone takes them all.
    """
    lines = lines_of("matrix_lines", "--every", "3", what)

    assert len(lines) == cases, lines
    assert all(line.endswith(" 0 misses") for line in lines), lines


@pytest.mark.slow
def test_ctrl_c_ends_a_call_in_every_phase():
    """A real SIGINT; the program has no handler of its own for it."""
    lines = lines_of("matrix_cancel", "ctrl-c")

    seen = {tuple(line.split()[:3]): line for line in lines}
    assert set(cells()) <= set(seen), "cells without a line"
    for cell in cells():
        if why_not(cell) is None:
            assert seen[cell].endswith("healthy"), seen[cell]
