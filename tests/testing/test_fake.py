"""FakeAgent: an agent that says what a test needs."""

from __future__ import annotations

import pytest

from protolink_sync import AgentClient, connect
from protolink_sync.errors import TransportConnectionError, TransportError
from protolink_sync.models import Message, Task, TaskState
from protolink_sync.testing import FakeAgent


def test_answers_come_in_turn_and_the_last_one_again():
    with FakeAgent("one", "two") as agent:
        assert [agent.peer.invoke("?") for _ in range(4)] == ["one", "two", "two", "two"]
        assert [task.messages[0].parts[0].content["prompt"] for task in agent.tasks] == ["?"] * 4


@pytest.mark.parametrize("answer", [{"a": 1}, [1, 2], 0, None, False])
def test_json_values_are_answers(answer):
    with FakeAgent(answer) as agent:
        assert agent.peer.invoke("?") == answer


def test_a_function_answers_with_a_text_or_the_task():
    def by_text(task):
        return f"you said {task.messages[-1].text}"

    def refuse(task):
        return task.fail("out of paper")

    with FakeAgent(by_text, refuse) as agent:
        first = agent.client.send_task(agent.url, Task.create(Message.user("hi")))
        second = agent.client.send_task(agent.url, Task.create(Message.user("hi")))

    assert first.text == "you said hi"
    assert second.state is TaskState.FAILED


@pytest.mark.parametrize("url", [None, "http://127.0.0.1:0"])
def test_an_exception_is_one_of_the_handler(url):
    with FakeAgent(KeyError("mine"), "fine", url=url) as agent:
        with pytest.raises(TransportError):
            agent.peer.invoke("?")
        assert agent.peer.invoke("?") == "fine"


def test_tools_are_called():
    def add(a: int, b: int) -> int:
        return a + b

    with FakeAgent(tools=[add]) as agent:
        assert agent.peer.call_tool("add", a=1, b=2) == 3


def test_a_stream_ends_with_the_answer():
    with FakeAgent("Faust") as agent:
        assert "".join(agent.peer.stream("?").text()) == "Faust"


def test_at_a_real_address_anybody_can_call_it_until_it_is_closed():
    with FakeAgent("Faust", url="http://127.0.0.1:0") as agent:
        with connect(agent.url) as peer:
            assert peer.invoke("?") == "Faust"
        with AgentClient("http") as client:
            assert client.get_agent_card(agent.url).name == "fake"
    agent.close()

    with AgentClient("http") as client, pytest.raises(TransportConnectionError):
        client.get_agent_card(agent.url)


def test_two_of_them_are_two():
    with FakeAgent("one") as one, FakeAgent("two") as two:
        assert (one.peer.invoke("?"), two.peer.invoke("?")) == ("one", "two")
