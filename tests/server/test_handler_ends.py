"""What a handler may raise that is no error: it is answered, and the work is not done again."""

from __future__ import annotations

import asyncio
import sys

import pytest

from protolink_sync import AgentClient
from protolink_sync.config import RetryPolicy, TransportConfig
from protolink_sync.errors import TransportRemoteError
from protolink_sync.models import AgentCard, Task
from protolink_sync.server import Agent
from protolink_sync.transport import HTTPTransport


async def cancel_itself():
    inner = asyncio.create_task(asyncio.sleep(60))
    inner.cancel()
    await inner


@pytest.mark.parametrize(
    "end", [lambda: sys.exit(3), cancel_itself], ids=["sys.exit", "a cancelled task"]
)
def test_it_is_an_answer_and_nothing_is_carried_out_twice(end):
    """A dropped connection would be tried again, under the key of a call nobody remembers."""
    executions = []

    class Ending(Agent):
        def handle_task(self, task):
            executions.append(task.id)
            return end()

    policy = RetryPolicy(max_attempts=3, initial_backoff=0.01)
    transport = HTTPTransport(config=TransportConfig(retry=policy))
    agent = Ending(AgentCard("ending", "d", "http://127.0.0.1"))
    with (
        agent.serve("http://127.0.0.1:0") as server,
        transport,
        pytest.raises(TransportRemoteError) as caught,
    ):
        AgentClient(transport).send_task(server.url, Task.create("x"))

    assert caught.value.status_code == 500
    assert len(executions) == 1
