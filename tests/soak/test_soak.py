"""The short form of the soak; the long one is ``python -m tests.soak``."""

from __future__ import annotations

import random
import socket
import threading

import pytest

from protolink_sync import AgentCard, AgentClient, Message, Task
from protolink_sync.server import Agent
from protolink_sync.transport import SSEJSONRPCTransport
from tests.soak.cutter import CuttingProxy
from tests.soak.run import soak
from tests.transport.scenes import wait_until

SECONDS = 5.0

WAYS = {
    "call answered",
    "call cancelled",
    "call cut",
    "call timed out",
    "stream cut",
    "stream finished",
    "stream left",
}


def test_sixteen_threads_under_cuts_each_get_one_end_and_their_own_answers():
    result = soak(SECONDS, threads=16, samples=5)

    assert result.wrong == []
    assert set(result.outcomes) == WAYS
    assert result.cuts > 10


def test_the_proxy_cuts_connections_within_what_they_carry():
    """A soak without cuts would be none."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        CuttingProxy(
            f"http://127.0.0.1:{server.getsockname()[1]}",
            random.Random(0),
            share=1.0,
            most_bytes=100,
        ) as proxy,
        socket.create_connection(("127.0.0.1", int(proxy.url.rpartition(":")[2]))) as client,
    ):
        client.settimeout(10)
        far, _ = server.accept()
        with far:
            client.sendall(b"x" * 200)
            with pytest.raises(ConnectionError):
                client.recv(1)

        assert proxy.cuts == 1


def test_a_stream_that_its_reader_leaves_counts_as_cancelled():
    gate = threading.Event()

    class Slow(Agent):
        def handle_task_streaming(self, task):
            yield {"type": "task_progress", "message": "begun"}
            gate.wait(10)

    transport = SSEJSONRPCTransport(trust_env=False)
    agent = Slow(AgentCard("slow", "is slow", "http://127.0.0.1"))
    with agent.serve("http://127.0.0.1:0") as host, AgentClient(transport) as client, transport:
        stream = client.send_task_streaming(host.url, Task.create(Message.user("hi")))
        next(stream)
        stream.close()
        assert wait_until(lambda: not transport.metrics.active_streams)
        gate.set()

        told = transport.metrics
        assert (told.streams_cancelled, told.streams_failed) == (1, 0)
