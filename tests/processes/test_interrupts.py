"""Ctrl-C in whatever blocks: it ends at once, leaves nothing, and the client works on.

The phases of a call over HTTP are those of ``tests/transport/test_interrupts.py``.
"""

from __future__ import annotations

import pytest

from tests.processes.calls import output_of
from tests.processes.packages import posix

pytestmark = [pytest.mark.slow, posix]

CALLS = ["send", "connect", "silence", "open a stream", "next"]
VIEWS = ["result", "text", "run_events", "token"]


@pytest.mark.parametrize(
    ("wire", "calls"),
    [
        ("sse", [*CALLS, *VIEWS]),
        ("sse+tls", CALLS),
        ("ws", CALLS),
        ("wss", CALLS),
        ("grpc", CALLS),
        ("grpcs", CALLS),
    ],
)
def test_ctrl_c_ends_what_blocks(wire, calls, counted_peer):
    peer, _ = counted_peer(wire)

    lines = [line.split(" ") for line in output_of("interrupted", peer, *calls)]

    assert [rest for _, *rest in lines] == [["[]", "0", "again"]] * len(calls), lines
    assert all(float(took) < 1.0 for took, *_ in lines), lines
