"""The same call twice is carried out once; another call never gets its answer."""

from __future__ import annotations

import json

import pytest

from protolink_sync.config import TransportConfig
from protolink_sync.models import Message
from tests.server.hosting import Caller, Kitchen, calling, in_background, text_task, wait_until


def test_a_repeated_call_gets_the_first_answer():
    with calling(Kitchen()) as (caller, _):
        task = text_task("count")
        first = caller.send(task, Idempotency_Key="k", X_Protolink_Request_ID="one")
        second = caller.send(task, Idempotency_Key="k", X_Protolink_Request_ID="two")

    assert first.body == second.body
    assert second.headers["x-protolink-request-id"] == "two"


def test_without_a_key_a_call_is_carried_out_again():
    """Source: capture http_idem_no_key_same_id."""
    with calling(Kitchen()) as (caller, _):
        task = text_task("count")
        texts = [caller.send(task).task().messages[-1].text for _ in range(2)]

    assert texts == ["1 executions", "2 executions"]


def test_a_continued_task_is_another_call_whatever_its_key():
    """The peer's own client sends the task id as key, and its host answers with the old task."""
    with calling(Kitchen()) as (caller, _):
        task = text_task("echo one")
        caller.send(task, Idempotency_Key=task.id)
        task.add_message(Message.user("echo two"))

        answer = caller.send(task, Idempotency_Key=task.id).task()

    assert answer.messages[-1].text == "two"


def test_a_key_is_its_principals_own():
    agent = Kitchen(authenticate=lambda environ: environ.get("HTTP_AUTHORIZATION"))
    with calling(agent) as (caller, _):
        task = text_task("who")
        answers = [
            caller.send(task, Idempotency_Key="k", Authorization=name).task().messages[-1].text
            for name in ("ann", "bob")
        ]

    assert answers == ["ann", "bob"]


def test_a_key_is_its_paths_own():
    """Source: capture http_idem_same_key_other_path_not_shared."""
    with calling(Kitchen()) as (caller, _):
        caller.request("POST", "/state/reset", {}, Idempotency_Key="k")
        reply = caller.request("POST", "/state/compact", {}, Idempotency_Key="k")

    assert reply.json()["operation"] == "compact"


def test_a_repetition_waits_for_the_first():
    agent = Kitchen()
    with calling(agent) as (caller, server), Caller(server.url) as other:
        task = text_task("wait")
        first = in_background(caller.send, task, Idempotency_Key="k")
        agent.started.acquire()
        second = in_background(other.send, task, Idempotency_Key="k")
        agent.gate.set()

        assert first().body == second().body
    assert agent.executions[task.id] == 1


def test_the_first_goes_on_when_its_caller_has_gone():
    agent = Kitchen()
    with calling(agent) as (caller, server):
        task = text_task("wait")
        with Caller(server.url) as gone:
            body = task.to_dict()
            gone.connection.request("POST", "/tasks/", json.dumps(body), {"Idempotency-Key": "k"})
            agent.started.acquire()
        repeated = in_background(caller.send, task, Idempotency_Key="k")
        agent.gate.set()

        assert repeated().task().messages[-1].text == "waited"
    assert agent.executions[task.id] == 1


def test_a_failure_is_not_remembered_but_told_to_who_waits():
    agent = Kitchen()
    agent.gate.clear()
    with calling(agent) as (caller, server), Caller(server.url) as other:
        task = text_task("raise x")
        assert caller.send(task, Idempotency_Key="k").status == 500
        assert other.send(task, Idempotency_Key="k").status == 500
    assert agent.executions[task.id] == 2


def test_who_waits_for_a_failing_call_gets_its_failure():
    class Failing(Kitchen):
        def handle_task(self, task):
            super().handle_task(task)
            raise RuntimeError("in the end")

    agent = Failing()
    with calling(agent) as (caller, server), Caller(server.url) as other:
        task = text_task("wait")
        first = in_background(caller.send, task, Idempotency_Key="k")
        agent.started.acquire()
        second = in_background(other.send, task, Idempotency_Key="k")
        wait_until(lambda: server.connections == 2)
        agent.gate.set()

        assert first().status == second().status == 500


def test_a_failed_task_is_an_answer():
    """Source: capture http_idem_failed_task_is_cached."""
    with calling(Kitchen()) as (caller, _):
        body = {"messages": [{"parts": [{"type": "tool_call", "content": {"tool_name": "x"}}]}]}
        first, second = (
            caller.request("POST", "/tasks/", body, Idempotency_Key="k") for _ in range(2)
        )

    assert first.json()["state"] == "failed"
    assert first.body == second.body


def test_an_answer_is_forgotten_after_its_time():
    agent = Kitchen(config=TransportConfig(idempotency_ttl=0.05))
    with calling(agent) as (caller, _):
        task = text_task("count")
        caller.send(task, Idempotency_Key="k")

        wait_until(
            lambda: (
                caller.send(task, Idempotency_Key="k").task().messages[-1].text == "2 executions"
            )
        )


def test_the_least_recently_used_answer_is_forgotten_first():
    agent = Kitchen(config=TransportConfig(idempotency_cache_size=2))
    with calling(agent) as (caller, _):
        a, b, c = (text_task("count") for _ in range(3))
        for task in (a, b, a, c, a, b):
            caller.send(task, Idempotency_Key=task.id)

    assert [agent.executions[task.id] for task in (a, b, c)] == [1, 2, 1]


def test_a_repetition_does_not_wait_for_ever():
    agent = Kitchen(config=TransportConfig(idempotency_ttl=0.05))
    with calling(agent) as (caller, server), Caller(server.url) as other:
        task = text_task("wait")
        first = in_background(caller.send, task, Idempotency_Key="k")
        agent.started.acquire()

        repeated = other.send(task, Idempotency_Key="k")

        agent.gate.set()
        assert first().status == 200
    assert repeated.status == 409
    assert "still running" in repeated.error


@pytest.mark.parametrize("key", ["", None])
def test_an_empty_key_is_none(key):
    agent = Kitchen()
    with calling(agent) as (caller, _):
        task = text_task("count")
        headers = {} if key is None else {"Idempotency_Key": key}
        for _ in range(2):
            caller.send(task, **headers)

    assert agent.executions[task.id] == 2


def test_a_call_that_runs_is_not_forgotten_for_answers_to_others():
    """Else its repetition would be carried out beside it."""
    agent = Kitchen(config=TransportConfig(idempotency_cache_size=1))
    with calling(agent) as (caller, server), Caller(server.url) as other:
        task = text_task("wait")
        first = in_background(caller.send, task, Idempotency_Key="k")
        agent.started.acquire()
        for quick in (text_task("count") for _ in range(3)):
            other.send(quick, Idempotency_Key=quick.id)
        second = in_background(other.send, task, Idempotency_Key="k")
        agent.gate.set()

        assert first().body == second().body
    assert agent.executions[task.id] == 1


@pytest.mark.parametrize("length", [1, 5000], ids=["short", "long"])
def test_content_that_differs_in_its_last_letter_is_another_call(length):
    def body(letter):
        part = {"type": "text", "content": f"echo {'x' * length}{letter}"}
        message = {"id": "m", "role": "user", "parts": [part], "timestamp": None}
        return {"id": "t", "messages": [message], "created_at": None}

    agent = Kitchen()
    with calling(agent) as (caller, _):
        answers = [
            caller.request("POST", "/tasks/", body(letter), Idempotency_Key="k").task()
            for letter in "abab"
        ]

    assert [answer.messages[-1].text[-1] for answer in answers] == ["a", "b", "a", "b"]
    assert agent.executions["t"] == 2
