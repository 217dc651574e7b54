"""What a handler may raise that is no error: it is answered, and the work is not done again."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from protolink_sync import AgentClient
from protolink_sync.config import RetryPolicy, TransportConfig
from protolink_sync.errors import TransportRemoteError
from protolink_sync.models import AgentCard, Task
from protolink_sync.server import Agent
from protolink_sync.transport import HTTPTransport
from tests.server.test_wsgi import call


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


def test_ctrl_c_in_a_server_without_threads_leaves_no_claim_behind():
    """It means the process, so nobody gets an answer; the same call is then a first one again."""
    executions = []

    class Interrupted(Agent):
        def handle_task(self, task):
            executions.append(task.id)
            if len(executions) == 1:
                raise KeyboardInterrupt
            return task.complete("done")

    config = TransportConfig(idempotency_ttl=1.0)
    card = AgentCard("interrupted", "d", "http://127.0.0.1")
    app = Interrupted(card, config=config).wsgi_app()
    body = json.dumps(Task.create("x").to_dict()).encode()

    with pytest.raises(KeyboardInterrupt):
        call(app, body=body, HTTP_IDEMPOTENCY_KEY="k")
    status, _, answer = call(app, body=body, HTTP_IDEMPOTENCY_KEY="k")

    assert (status, json.loads(answer)["state"]) == (200, "completed")
    assert len(executions) == 2
