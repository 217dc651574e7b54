"""Agents that are served to their own process."""

from __future__ import annotations

import json

import pytest

from protolink_sync.config import TransportConfig, TransportLimits
from protolink_sync.models import AgentCard, Task
from protolink_sync.server import runtime_agent
from tests.server.hosting import Kitchen, in_background, text_task

URL = "runtime://kitchen"


@pytest.fixture
def agent():
    agent = Kitchen()
    with agent.serve(URL):
        yield agent


def ask(path, data=None, *, method="POST", key=None, url=URL):
    envelope = {"id": "r1", "method": method, "path": path, "data": data}
    if key is not None:
        envelope["idempotency_key"] = key
    reply = json.loads(runtime_agent(url).handle(json.dumps(envelope).encode()))
    assert reply["id"] == "r1"
    return reply


def test_a_task_is_answered_in_an_envelope(agent):
    reply = ask("/tasks/", text_task("echo hi").to_dict())

    assert reply["ok"] is True
    assert Task.from_dict(reply["result"]).messages[-1].text == "hi"


def test_the_card_says_where(agent):
    card = AgentCard.from_dict(ask("/.well-known/agent.json", method="GET")["result"])

    assert (card.url, card.transport) == (URL, "runtime")


def test_an_exception_is_told(agent):
    """Nothing has to be hidden from the own process; the peer tells over envelopes too."""
    reply = ask("/tasks/", text_task("raise boom").to_dict())

    assert reply["ok"] is False
    assert reply["error"] == {"message": "boom", "type": "RuntimeError"}


@pytest.mark.parametrize(
    ("path", "data", "words"),
    [
        ("/nowhere", {}, "no endpoint POST /nowhere"),
        ("/healthz", {}, "does not answer POST"),
        ("/tasks/", [], "expected an object"),
        ("/tasks/cancel", {"id": "x"}, "not running here"),
    ],
)
def test_a_refusal_says_why(agent, path, data, words):
    assert words in ask(path, data)["error"]["message"]


@pytest.mark.parametrize("payload", [b"", b"[]", b"{}", b'{"method": 1, "path": "/"}', b"\xff"])
def test_what_is_no_envelope_gets_an_error(agent, payload):
    reply = json.loads(runtime_agent(URL).handle(payload))

    assert reply["ok"] is False


def test_a_page_is_text(agent):
    assert "<h1>kitchen</h1>" in ask("/status", method="GET")["result"]


def test_a_repeated_call_is_carried_out_once_whatever_its_request_id(agent):
    task = text_task("count").to_dict()
    first = ask("/tasks/", task, key="k")
    envelope = {"id": "r2", "method": "POST", "path": "/tasks/", "data": task}
    payload = json.dumps({**envelope, "idempotency_key": "k"}).encode()

    second = json.loads(runtime_agent(URL).handle(payload))

    assert (second["id"], second["result"]) == ("r2", first["result"])


def test_a_key_with_another_task_is_another_call(agent):
    first = ask("/tasks/", text_task("echo one").to_dict(), key="k")
    second = ask("/tasks/", text_task("echo two").to_dict(), key="k")

    assert first["result"]["id"] != second["result"]["id"]


def test_a_task_is_cancelled_from_another_thread(agent):
    task = text_task("wait")
    answer = in_background(ask, "/tasks/", task.to_dict())
    agent.started.acquire()

    assert ask("/tasks/cancel", {"id": task.id})["result"]["state"] == "canceled"
    assert answer()["result"]["state"] == "canceled"


def test_too_large_a_request_is_refused():
    agent = Kitchen(config=TransportConfig(limits=TransportLimits(max_request_bytes=1000)))
    with agent.serve("runtime://small"):
        payload = b'{"id":"r1","method":"GET","path":"/' + b"x" * 1000 + b'"}'
        reply = json.loads(runtime_agent("runtime://small").handle(payload))

    assert reply["error"]["type"] == "TransportLimitError"


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
        task = text_task("count").to_dict()
        ask("/tasks/", task, url="runtime://one")
        ask("/tasks/", task, url="runtime://two")

    assert agent.executions[task["id"]] == 2


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
