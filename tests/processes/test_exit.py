"""A program ends at once and in silence, whatever is open."""

from __future__ import annotations

import signal
import time

import pytest

from tests.processes.calls import LIMIT, start
from tests.processes.packages import posix

pytestmark = pytest.mark.slow

CODES = {"end": (0, ""), "exit": (3, ""), "exception": (1, "it went wrong\n")}


def ended(peer, how):
    """Run the program; return seconds from its last line to its end, code, and what it says."""
    with start("exiting", peer, how) as process:
        try:
            assert process.stdout.readline() == "END\n", process.stderr.read()
            began = time.monotonic()
            code = process.wait(LIMIT)
            return time.monotonic() - began, code, process.stderr.read()
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("wire", "how"),
    [
        ("sse", "end"),
        ("sse", "exit"),
        ("sse", "exception"),
        ("sse+tls", "end"),
        ("ws", "end"),
        ("wss", "exit"),
        ("grpc", "end"),
        ("grpcs", "exception"),
    ],
)
def test_the_interpreter_ends_with_calls_and_streams_open(wire, how, counted_peer):
    took, code, said = ended(counted_peer(wire).peer, how)

    assert (code, said) == CODES[how]
    assert took < 0.5


@posix
@pytest.mark.parametrize("wire", ["sse", "ws", "grpc"])
def test_ctrl_c_that_nobody_catches_ends_the_program(wire, counted_peer):
    took, code, said = ended(counted_peer(wire).peer, "ctrl-c")

    assert code == -signal.SIGINT
    assert said.rstrip().endswith("KeyboardInterrupt")
    assert said.count("Traceback") == 1
    # Over gRPC a call may need half a second to see it.
    assert took < 1.0
