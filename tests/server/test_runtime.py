"""Agents that are served to their own process."""

from __future__ import annotations

import copy

import pytest

from protolink_sync.config import TransportConfig, TransportLimits
from protolink_sync.models import AgentCard, Task
from protolink_sync.server import RefusedError, runtime_agent
from protolink_sync.wire import local
from tests.server.hosting import Caller, Kitchen, in_background, text_task

URL = "runtime://kitchen"


@pytest.fixture
def agent():
    agent = Kitchen()
    with agent.serve(URL):
        yield agent


def ask(path, data=None, *, method="POST", key=None, url=URL):
    body = None if data is None else local.dump_data(data)
    execution = runtime_agent(url).begin(method, path, body, key)
    execution.run()
    return local.take(execution.answer())


def test_a_task_is_answered(agent):
    answer = ask("/tasks/", text_task("echo hi"))

    assert Task.from_dict(answer).messages[-1].text == "hi"


def test_the_card_says_where(agent):
    card = AgentCard.from_dict(ask("/.well-known/agent.json", method="GET"))

    assert (card.url, card.transport) == (URL, "runtime")


def test_an_exception_is_told(agent):
    """Nothing has to be hidden from the own process."""
    with pytest.raises(RefusedError, match="boom") as caught:
        ask("/tasks/", text_task("raise boom"))

    assert caught.value.kind == "RuntimeError"
    assert type(caught.value.__cause__) is RuntimeError


@pytest.mark.parametrize(
    ("path", "data", "words"),
    [
        ("/nowhere", {}, "no endpoint POST /nowhere"),
        ("/healthz", {}, "does not answer POST"),
        ("/tasks/", [], "expected an object"),
        ("/tasks/cancel", {"id": "x"}, "not running here"),
        ("/tasks/stream", {}, "answers with a stream"),
    ],
)
def test_a_refusal_says_why(agent, path, data, words):
    with pytest.raises(RefusedError, match=words):
        ask(path, data)


def test_a_page_is_text(agent):
    assert "<h1>kitchen</h1>" in ask("/status", method="GET")


def test_a_repeated_call_is_carried_out_once(agent):
    task = text_task("count")

    first, second = (ask("/tasks/", task, key="k") for _ in range(2))

    assert second == first
    assert agent.executions[task.id] == 1


def test_the_answer_to_a_repeated_call_is_an_object_of_its_own(agent):
    """What one caller does to its answer must not be what the next one gets."""
    task = text_task("echo hi")
    first = ask("/tasks/", task, key="k")
    before = copy.deepcopy(first)
    first["messages"].clear()

    second, third = (ask("/tasks/", task, key="k") for _ in range(2))
    second["metadata"].clear()

    assert third == before


def test_a_key_with_another_task_is_another_call(agent):
    first = ask("/tasks/", text_task("echo one"), key="k")
    second = ask("/tasks/", text_task("echo two"), key="k")

    assert first["id"] != second["id"]


def test_an_answer_over_http_is_not_repeated_here(agent):
    """The call and its key are the same, but one's bytes say nothing to the other's reader."""
    with agent.serve("http://127.0.0.1:0") as server, Caller(server.url) as caller:
        there = caller.request("POST", "/state/reset", Idempotency_Key="k").json()

    assert ask("/state/reset", key="k") == there


def test_a_task_is_cancelled_from_another_thread(agent):
    task = text_task("wait")
    answer = in_background(ask, "/tasks/", task)
    agent.started.acquire()

    assert ask("/tasks/cancel", {"id": task.id})["state"] == "canceled"
    assert answer()["state"] == "canceled"


def test_too_large_a_request_is_refused():
    agent = Kitchen(config=TransportConfig(limits=TransportLimits(max_request_bytes=1000)))
    with (
        agent.serve("runtime://small"),
        pytest.raises(RefusedError, match="limit is 1000") as caught,
    ):
        ask("/tasks/", text_task("x" * 1000), url="runtime://small")

    assert caught.value.kind == "TransportLimitError"


def test_an_address_is_served_once_until_it_is_closed(agent):
    with pytest.raises(ValueError, match="served already"):
        Kitchen().serve(URL + "/")

    assert runtime_agent(URL + "/") is runtime_agent(URL)


def test_a_closed_address_is_free_again():
    first = Kitchen().serve("runtime://again")
    first.close()
    assert runtime_agent("runtime://again") is None

    with Kitchen().serve("runtime://again"):
        first.close()
        assert runtime_agent("runtime://again") is not None


def test_the_same_agent_may_be_served_at_several_addresses():
    agent = Kitchen()
    with agent.serve("runtime://one"), agent.serve("runtime://two"):
        task = text_task("count")
        ask("/tasks/", task, url="runtime://one")
        ask("/tasks/", task, url="runtime://two")

    assert agent.executions[task.id] == 2


@pytest.mark.parametrize(
    "url",
    [
        "runtime://",
        "kitchen",
        "ftp://x",
        "http://",
        "",
        None,
        5,
        "http://127.0.0.1:0/path",
        "http://u@127.0.0.1:0",
    ],
)
def test_what_is_no_address_is_refused(url):
    with pytest.raises(ValueError, match="cannot serve at"):
        Kitchen().serve(url)
