"""Threads: one client for all of them, settings that change, an event loop around the call."""

from __future__ import annotations

import asyncio
import pickle

import pytest

from protolink_sync import CancelToken
from protolink_sync._deadline import Deadline
from protolink_sync.a2a import A2AClient, TaskState
from protolink_sync.a2a.client._budget import Budget
from protolink_sync.a2a.client._flight import Flight
from protolink_sync.errors import ClientClosedError
from tests.a2a.client.scenes import Running, in_threads
from tests.a2a.scripted import HOLD, done, envelope, message, reply, sent, stream, task
from tests.streaming.scripted import interrupted_after


def test_b112_thirty_two_threads_get_each_its_own_answer(meet):
    """The task's id is the id of the request that it answers."""
    own = reply(envelope(result=sent({**task(), "id": "ID"})).replace('"ID"', '"{{task_id}}"'))
    agent, client = meet(own)

    def work(number):
        return [
            (f"{number}-{turn}", client.send_message(f"{number}-{turn}").id) for turn in range(10)
        ]

    answers = dict(pair for pairs in in_threads(32, work) for pair in pairs)

    told = {call.params["message"]["parts"][0]["text"]: str(call.id) for call in agent.calls}
    assert len(told) == 320
    assert answers == told
    assert len(agent.gets) == 1
    assert len(agent.connections) <= 33


def test_b112_calls_one_after_the_other_use_one_connection(meet):
    agent, client = meet(done())

    for _ in range(50):
        client.send_message("hi")

    assert len(agent.connections) == 1


def test_b112_streams_and_calls_go_on_side_by_side(meet):
    _agent, client = meet(
        methods={
            "SendMessage": done(),
            "SendStreamingMessage": stream({"message": message("done")}),
        }
    )

    def work(number):
        if number % 2:
            return client.send_message("hi").text
        return client.stream_message("hi").result().text

    assert in_threads(16, work) == ["done"] * 16


def test_b113_a_setting_changes_later_calls_only(meet):
    agent, client = meet(methods={"SendMessage": [{"op": "wait", "event": "go", "s": 10}, done()]})
    client.set_authorization_header("Bearer one")
    running = Running(lambda: client.send_message("hi"))
    agent.wait_for_requests(2)

    client.set_authorization_header("Bearer two")
    agent.fire("go")
    running.end()
    client.send_message("hi")

    assert [call.header("Authorization") for call in agent.calls] == ["Bearer one", "Bearer two"]


def test_b114_a_call_works_inside_a_running_event_loop(meet):
    _agent, client = meet(
        methods={
            "SendMessage": done(),
            "SendStreamingMessage": stream({"message": message("done")}),
        }
    )

    async def main():
        return client.send_message("hi").text, client.stream_message("hi").result().text

    assert asyncio.run(main()) == ("done", "done")


@pytest.mark.parametrize("which", ["another thread", "the next look"])
def test_ctrl_c_where_a_wait_begins_leaves_nothing_with_the_token(meet, which):
    """The same where it cannot begin, because no thread can start: the token may be kept."""
    _agent, client = meet()
    token = CancelToken()
    budget = Budget(5, token)
    flight = Running(Flight).end().value

    def wait():
        if which == "another thread":
            flight.wait("send_message", client.base_url, budget)
        else:
            client._pause(budget, 1, "t1", TaskState.WORKING)

    interrupted_after(Deadline.begin, "self._token._add_call", wait)

    assert not token._calls


def test_closing_ends_what_is_in_flight_and_what_comes_later(meet):
    agent, client = meet(methods={"SendMessage": [HOLD]})
    running = Running(lambda: client.send_message("hi"))
    agent.wait_for_requests(2)

    client.close()
    client.close()

    assert isinstance(running.end(5).error, ClientClosedError)
    with pytest.raises(ClientClosedError):
        client.send_message("hi")
    assert len(agent.calls) == 1


def test_a_client_is_closed_by_with(agent_of):
    agent = agent_of(done())

    with A2AClient(agent.base) as client:
        client.send_message("hi")

    with pytest.raises(ClientClosedError):
        client.fetch_agent_card(force=True)


def test_a_client_that_was_pickled_calls_the_same_agent(meet):
    agent, client = meet(done(), client={"timeout": 5, "headers": {"X-Mine": "1"}})
    client.send_message("hi")

    with pickle.loads(pickle.dumps(client)) as other:
        assert other.send_message("hi").text == "done"

    assert agent.calls[1].header("X-Mine") == "1"


def test_making_a_client_opens_nothing(agent_of, client_of):
    agent = agent_of(done())

    client_of(agent)

    assert agent.connections == []


@pytest.mark.parametrize("base", ["", "ftp://h", "h", "http://", 5, None])
def test_an_address_that_is_none_is_refused(base):
    with pytest.raises((ValueError, TypeError)):
        A2AClient(base).send_message("hi")
