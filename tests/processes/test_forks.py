"""A client that was used before its process forks: every answer goes to who asked for it."""

from __future__ import annotations

import pytest

from tests.cases.server import ScriptedServer
from tests.processes.calls import Peer, output_of
from tests.processes.packages import posix

pytestmark = [pytest.mark.slow, posix]

CALLS = 150


@pytest.mark.parametrize("wire", ["http", "https", "ws", "wss", "grpc", "grpcs"])
def test_four_children_and_their_parent_call_at_once(wire, counted_peer):
    peer, proxy = counted_peer(wire)

    wrong, threads = output_of("forking", peer, str(CALLS))[0].split()

    assert wrong == "0"
    assert int(threads) <= 2, "more than the main thread and the deadline thread"
    # The parent keeps its connection, and each child makes one.
    assert proxy.total == 5


@pytest.mark.parametrize("wire", ["sse", "sse+tls", "ws", "wss", "grpc", "grpcs"])
def test_an_open_stream_stays_the_parents(wire, counted_peer, monkeypatch):
    """A child is told so; neither its end nor its close() touches the stream."""
    monkeypatch.setenv("GRPC_VERBOSITY", "NONE")  # it writes of the fork to standard error
    peer, _ = counted_peer(wire)

    assert output_of("inheriting", peer) == ["[0, 0] 2 20 completed"]


def test_events_that_wait_are_the_parents_too():
    event = 'data: {"id":"{{req_id}}","ok":true,"result":{"type":"step"},"final":%s}\n\n'
    steps = [
        {"op": "sse_head"},
        {"op": "chunk", "data": event % "false" * 5 + event % "true"},
        {"op": "end_chunks"},
    ]
    with ScriptedServer({"routes": {"POST /tasks/stream": [steps]}}) as server:
        assert output_of("inheriting", Peer("sse", server.base), "waiting") == ["0 2 6"]
