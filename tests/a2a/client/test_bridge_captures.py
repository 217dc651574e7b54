"""What protolink 0.8.3's own client sent to a2a-sdk: we send the same, and read the answers."""

from __future__ import annotations

import pytest

from protolink_sync import AgentClient
from protolink_sync.models import Message, Part, Task, TaskState
from tests.a2a.client.bridges import a2a_only, paths
from tests.a2a.scripted import result
from tests.a2a.wire.recorded import named

HEADERS = ("a2a-version", "content-type")
PARTS = [
    Part.text("input"),
    Part.json({"a": 1}),
    Part.infer(prompt="p"),
    Part("status", {"s": "x"}),
    Part("bytes", "YWJj"),
    Part("uri", "https://e.example/x"),
]


@pytest.fixture
def client():
    with AgentClient("http", timeout=20, a2a=True) as client:
        yield client


@pytest.fixture
def replayed(agent_of):
    """An agent that gives the recorded answers, one after the other."""
    return lambda *names: a2a_only(agent_of, *[result(named(name).result) for name in names])


def saying(exchange, *parts: Part) -> Task:
    """Return a task whose message has the recorded id."""
    return Task(messages=[Message(exchange.sent["params"]["message"]["messageId"], parts=[*parts])])


def same(call, exchange):
    """Say that a request is the recorded one, but for the id of the call."""
    assert {**call.body, "id": None} == {**exchange.sent, "id": None}
    assert [call.header(name) for name in HEADERS] == [exchange.headers[n] for n in HEADERS]
    assert call.header("x-protolink-request-id")
    assert call.header("idempotency-key") is None
    assert "x-protolink-request-id" in exchange.headers
    return True


def test_auto(replayed, client):
    exchange = named("protolink-client-auto.3")
    agent = replayed(exchange.name)

    came = client.send_task(agent.base, saying(exchange, Part.text("hello from protolink")))

    asked = [named(name).headers for name in ("protolink-client-auto", "protolink-client-auto.2")]
    assert len(paths(agent)) == len(asked) + 1
    assert agent.requests[1].header("A2A-Version") == asked[1]["a2a-version"]
    assert same(agent.calls[0], exchange)
    assert (came.state, came.get_output()) == (TaskState.COMPLETED, "echo: hello from protolink")
    assert [m.text for m in came.messages] == ["hello from protolink", "working on it"]
    assert came.metadata["a2a_remote_status_timestamp"] == "2026-11-29T23:25:10.175608Z"


def test_every_part_then_on_with_the_same_task(replayed, client):
    first, second = named("protolink-client-a2a-parts.2"), named("protolink-client-a2a-continue.2")
    agent = replayed(first.name, second.name)

    came = client.send_task(agent.base, saying(first, *PARTS), protocol="a2a")
    assert came.state is TaskState.INPUT_REQUIRED
    assert came.messages[-1].text == "which colour?"

    came.messages += saying(second, Part.text("blue")).messages
    done = client.send_task(agent.base, came, protocol="a2a")

    assert same(agent.calls[0], first)
    assert same(agent.calls[1], second)
    assert (done.state, done.get_output()) == (TaskState.COMPLETED, "second turn got: blue")
    assert [m.text for m in done.messages if m.role == "agent"] == [
        "working on it",
        "which colour?",
        "done after input",
    ]


def test_cancel(agent_of, client):
    exchange = named("protolink-client-a2a-cancel")
    waiting = {**exchange.result, "status": {"state": "TASK_STATE_INPUT_REQUIRED"}}
    agent = a2a_only(
        agent_of,
        methods={"SendMessage": result({"task": waiting}), "CancelTask": result(exchange.result)},
    )
    ours = client.send_task(agent.base, Task.create("input"))

    gone = client.cancel_task(agent.base, ours.id, reason="stop", metadata={"source": "cli"})

    assert same(agent.calls[1], exchange)
    assert (gone.state, gone.messages[-1].text) == (TaskState.CANCELED, "stopped on request")
