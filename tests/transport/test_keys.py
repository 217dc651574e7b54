"""By which key a peer recognises a call that it has seen."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import attrs
import pytest

from protolink_sync.models import Message, Task
from protolink_sync.specs import (
    AGENT_CARD_REQUEST,
    COMPACT_HISTORY_REQUEST,
    REGISTRY_HEARTBEAT_REQUEST,
    TASK_CANCEL_REQUEST,
    TASK_REQUEST,
)
from tests.cases.server import ScriptedServer
from tests.transport.scenes import ASK, ASK_ONCE, answering, transport

# What every peer answers here is no task: the parser is left out.
SUBMIT = attrs.evolve(TASK_REQUEST, response_parser=None)


def keys(server: ScriptedServer) -> list[str]:
    return [request.header("Idempotency-Key") or "" for request in server.requests]


def key_of(data: Any, spec: Any = SUBMIT, **words: Any) -> str:
    with answering() as server, transport(server) as client:
        client.send(spec, None, data, **words)
    return keys(server)[0]


def test_the_key_of_a_task_is_its_id_and_a_digest_of_what_is_sent():
    with answering() as server, transport(server) as client:
        client.send(SUBMIT, None, {"id": "t-1", "state": "submitted"})

    digest = hashlib.sha256(server.requests[0].body).hexdigest()
    assert keys(server) == [f"t-1:{digest[:32]}"]


def test_the_same_task_sent_again_has_the_same_key():
    task = Task.create(Message.user("hi"))

    with answering() as server, transport(server) as client:
        client.send(SUBMIT, None, task)
        client.send(SUBMIT, None, task)
    one, other = keys(server)

    assert one == other
    assert one.startswith(f"{task.id}:")


def test_another_client_gives_the_same_task_the_same_key():
    task = Task.create(Message.user("hi"))

    assert key_of(task) == key_of(task) == key_of(task.to_dict())


def test_an_object_of_another_library_has_the_id_of_its_task():
    class Given:
        id = "t-1"

        def to_dict(self) -> dict[str, Any]:
            return {"id": "t-1", "state": "submitted"}

    assert key_of(Given()) == key_of(Given().to_dict())
    assert key_of(Given()).startswith("t-1:")


def test_a_task_that_was_continued_has_another_key():
    """The peer looks at nothing but the key: it would answer the new message with the old task."""
    task = Task.create(Message.user("hi"))
    before = key_of(task)

    task.add_message(Message.user("and now?"))

    assert key_of(task) != before


ODD_IDS = ["", "ä", "日本", "a\nb", "a\x00b", "a\x7f", "x" * 201, "\ud800", "tab\there"]


@pytest.mark.parametrize("task_id", ODD_IDS)
def test_an_id_that_no_header_can_carry_is_replaced_by_its_digest(task_id):
    key = key_of({"id": task_id})

    whole = hashlib.sha256(task_id.encode("utf-8", "surrogatepass")).hexdigest()
    assert key.startswith(f"{whole}:")
    assert re.fullmatch("[0-9a-f]{64}:[0-9a-f]{32}", key)


@pytest.mark.parametrize("task_id", ["t", "x" * 200, "a b", "a:b", '"quoted", and more', "~!"])
def test_an_id_of_printable_ascii_is_kept_as_it_is(task_id):
    assert key_of({"id": task_id}).startswith(f"{task_id}:")


def test_a_task_without_id_has_a_key_all_the_same():
    assert re.fullmatch("[!-~]+:[0-9a-f]{32}", key_of({"state": "submitted"}))


@pytest.mark.parametrize("spec", [TASK_CANCEL_REQUEST, REGISTRY_HEARTBEAT_REQUEST, ASK])
def test_every_other_call_has_its_request_id_as_key_fresh_for_each(spec):
    """With the task's id a later cancel would be answered from the peer's memory."""
    spec = attrs.evolve(spec, response_parser=None)

    with answering() as server, transport(server) as client:
        client.send(spec, None, {"task_id": "t-1", "id": "t-1"})
        client.send(spec, None, {"task_id": "t-1", "id": "t-1"})

    one, other = keys(server)
    assert one != other
    ids = [request.header("X-Protolink-Request-ID") for request in server.requests]
    assert [one, other] == ids


@pytest.mark.parametrize("spec", [COMPACT_HISTORY_REQUEST, ASK_ONCE])
def test_a_call_that_may_have_another_effect_each_time_has_no_key(spec):
    assert key_of({"id": "t-1"}, attrs.evolve(spec, response_parser=None)) == ""


def test_a_card_is_asked_for_with_a_key():
    assert key_of(None, attrs.evolve(AGENT_CARD_REQUEST, response_parser=None))


@pytest.mark.parametrize("spec", [SUBMIT, ASK, ASK_ONCE])
def test_a_key_of_the_caller_wins(spec):
    assert key_of({"id": "t-1"}, spec, idempotency_key="mine 1") == "mine 1"


@pytest.mark.parametrize("key", ["", "a\r\nX-Evil: 1", "a\nb", "ä", "a\x00"])
def test_a_key_that_cannot_be_sent_is_refused_before_anything_is_sent(key):
    with answering() as server, transport(server) as client:
        with pytest.raises(ValueError, match="idempotency_key"):
            client.send(ASK, None, {}, idempotency_key=key)

        assert not server.connections
        assert client.metrics.requests_started == 0


def test_a_key_that_is_no_text_is_refused():
    with answering() as server, transport(server) as client:
        with pytest.raises(TypeError, match="idempotency_key"):
            client.send(ASK, None, {}, idempotency_key=5)

        assert not server.connections


def test_a_real_peer_executes_a_repeated_task_once(agent_peer):
    """The reason for the key: a retry whose first attempt did arrive is answered from memory."""
    task = Task.create(Message.user("count"))

    with transport() as client:
        first = client.send(TASK_REQUEST, agent_peer.url, task)
        again = client.send(TASK_REQUEST, agent_peer.url, task)
        task.add_message(Message.user("count"))
        continued = client.send(TASK_REQUEST, agent_peer.url, task)

    assert first.text.startswith("1 executions")
    assert again.text == first.text
    assert continued.text.startswith("2 executions")
