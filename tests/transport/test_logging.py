"""What is logged, where, and that it holds neither secrets nor bodies."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from protolink_sync import AgentCapabilities, AgentCard, AgentClient, RetryPolicy, Task
from protolink_sync.config import TransportConfig
from protolink_sync.errors import StreamInterruptedError, TransportConnectionError
from protolink_sync.server import Agent
from protolink_sync.testing import ScriptedTransport, reply
from protolink_sync.transport import HTTPTransport, SSEJSONRPCTransport

URL = "http://agent.test"

CARD = AgentCard("a", "b", URL).to_dict()


@pytest.fixture
def logged(caplog):
    caplog.set_level(logging.DEBUG, logger="protolink_sync")
    return lambda level: [
        record
        for record in caplog.records
        if record.levelno == level and record.name.startswith("protolink_sync.")
    ]


def test_each_attempt_is_told_for_debugging_and_each_retry_as_information(logged):
    transport = ScriptedTransport(
        TransportConnectionError("refused", retryable=True),
        reply(CARD),
        config=TransportConfig(retry=RetryPolicy(max_attempts=2, initial_backoff=0.0, jitter=0.0)),
    )
    AgentClient(transport).get_agent_card(URL)

    request_id = transport.calls[0].headers["X-Protolink-Request-ID"]
    attempts = [record.getMessage() for record in logged(logging.DEBUG)]
    assert sum(request_id in line for line in attempts) == 2
    (retry,) = logged(logging.INFO)
    assert retry.name == "protolink_sync.transport.retry"


def test_a_stream_that_is_cut_is_information(logged, start_peer, counting_proxy):
    proxy = counting_proxy(start_peer("sse").url)
    with (
        SSEJSONRPCTransport() as transport,
        transport.subscribe(proxy.url, Task.create("slow 100 0.05")) as stream,
    ):
        next(stream)
        proxy.cut()
        with pytest.raises(StreamInterruptedError):
            list(stream)

    assert len(logged(logging.INFO)) == 1


def test_neither_secrets_nor_bodies_are_logged(logged, caplog):
    card = AgentCard("logged", "secret description", "http://127.0.0.1")
    card.capabilities = AgentCapabilities(streaming=True)
    agent = Agent(card)
    agent.infer(lambda prompt: f"secret answer to {prompt}")
    with (
        agent.serve("http://127.0.0.1:0") as server,
        HTTPTransport(credentials="hush", headers={"X-Pass": "hush"}) as transport,
    ):
        client = AgentClient(transport).with_options(headers={"X-More": "hush"})
        client.get_agent_card(server.url)
        client.send_infer_task("secret question", server.url)
        with AgentClient("sse") as streaming:
            task = Task.create_infer("secret question")
            streaming.send_task_streaming(server.url, task).result()

    assert len(logged(logging.DEBUG)) >= 3
    assert "hush" not in caplog.text
    assert "secret" not in caplog.text


def test_a_program_that_has_not_set_up_logging_sees_nothing():
    program = (
        "import logging, protolink_sync\n"
        "logging.getLogger('protolink_sync.transport').error('to nobody')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
