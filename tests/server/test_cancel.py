"""Cancelling a task, and running it twice."""

from __future__ import annotations

import threading

import pytest

from protolink_sync.models import Task, TaskState
from protolink_sync.server import Agent
from tests.server.hosting import LIMIT, Caller, Kitchen, calling, card, in_background, text_task


@pytest.fixture
def kitchen():
    """A kitchen that is at work on ``task``, and a second connection to it."""
    agent = Kitchen()
    with calling(agent) as (caller, server), Caller(server.url) as other:
        agent.task = text_task("wait")
        agent.caller, agent.other, agent.server = caller, other, server
        agent.answer = in_background(caller.send, agent.task)
        agent.started.acquire()
        yield agent
        agent.gate.set()


def cancel(caller, task, reason="enough", **headers):
    body = {"id": task.id, "metadata": {"source": "test", "reason": reason}}
    return caller.request("POST", "/tasks/cancel", body, **headers)


def test_both_get_the_canceled_task(kitchen):
    """Source: capture http_cancel_active_task."""
    canceled = cancel(kitchen.other, kitchen.task).task()
    answer = kitchen.answer().task()

    for task in (canceled, answer):
        assert task.state is TaskState.CANCELED
        assert task.metadata["canceled"] is True
        assert task.metadata["cancel_reason"] == "enough"
        assert task.metadata["run_context"]["canceled"] is True
        assert task.metadata["run_context"]["cancel_reason"] == "enough"
        assert [entry["new_state"] for entry in task.metadata["state_history"]] == [
            "working",
            "canceled",
        ]


def test_what_the_handler_made_until_then_is_kept(kitchen):
    cancel(kitchen.other, kitchen.task)

    (artifact,) = kitchen.answer().task().artifacts

    assert artifact.text == "cancelled: enough"


def test_the_canceler_does_not_wait_for_the_handler():
    agent = Kitchen()
    with calling(agent) as (caller, server), Caller(server.url) as other:
        task = text_task("stubborn")
        answer = in_background(caller.send, task)
        agent.started.acquire()

        canceled = cancel(other, task)
        again = cancel(other, task, "another reason")

        assert canceled.task().state is TaskState.CANCELED
        assert again.body == canceled.body
        agent.gate.set()
        assert answer().task().state is TaskState.CANCELED


def test_an_unknown_task_is_a_404(kitchen):
    reply = cancel(kitchen.other, text_task("x"))

    assert reply.status == 404
    assert "is not running here" in reply.error


def test_an_ended_task_is_a_404(kitchen):
    kitchen.gate.set()
    kitchen.answer()

    assert cancel(kitchen.other, kitchen.task).status == 404


def test_a_task_that_its_handler_has_ended_is_a_409():
    done, go_on = threading.Event(), threading.Event()

    class Dawdling(Agent):
        def handle_task(self, task):
            task.complete("done")
            done.set()
            go_on.wait(LIMIT)
            return task

    with calling(Dawdling(card())) as (caller, server), Caller(server.url) as other:
        task = text_task("x")
        answer = in_background(caller.send, task)
        done.wait(LIMIT)

        reply = cancel(other, task)

        go_on.set()
        assert answer().task().state is TaskState.COMPLETED
    assert reply.status == 409
    assert "completed already" in reply.error


@pytest.mark.parametrize("body", [{}, {"id": ""}, {"id": "  "}, []])
def test_a_cancellation_without_an_id_is_a_400(kitchen, body):
    assert kitchen.other.request("POST", "/tasks/cancel", body).status == 400


def test_the_id_may_be_called_task_id(kitchen):
    """Source: capture http_cancel_task_id_alias."""
    reply = kitchen.other.request("POST", "/tasks/cancel", {"task_id": kitchen.task.id})

    assert reply.task().state is TaskState.CANCELED
    assert "cancel_reason" not in reply.task().metadata


def test_an_exception_after_the_cancel_is_no_error():
    class Raising(Kitchen):
        def handle_task(self, task):
            super().handle_task(task)
            raise RuntimeError("interrupted")

    agent = Raising()
    with calling(agent) as (caller, server), Caller(server.url) as other:
        task = text_task("wait")
        answer = in_background(caller.send, task)
        agent.started.acquire()
        cancel(other, task)

        assert answer().task().state is TaskState.CANCELED


def test_a_repeated_cancel_of_one_key_gets_the_same_answer(kitchen):
    """Whoever lost the first answer learns that the task was cancelled."""
    first = cancel(kitchen.other, kitchen.task, Idempotency_Key="k")
    kitchen.answer()

    assert cancel(kitchen.other, kitchen.task, Idempotency_Key="k").body == first.body


def test_a_later_run_of_the_task_is_cancelled_whatever_the_key(kitchen):
    """The peer's client sends the task id as key; its host answers from memory."""
    key = kitchen.task.id
    cancel(kitchen.other, kitchen.task, Idempotency_Key=key)
    kitchen.answer()
    again = in_background(kitchen.caller.send, kitchen.task)
    kitchen.started.acquire()

    cancel(kitchen.other, kitchen.task, Idempotency_Key=key)

    assert again().task().state is TaskState.CANCELED


def test_a_running_task_is_not_run_a_second_time(kitchen):
    """Source: capture http_concurrent_same_id_without_key."""
    reply = kitchen.other.send(kitchen.task)

    assert reply.status == 409
    assert "being executed already" in reply.error
    assert kitchen.executions[kitchen.task.id] == 1


def test_nobody_cancels_the_task_of_somebody_else():
    agent = Kitchen(authenticate=lambda environ: environ.get("HTTP_AUTHORIZATION"))
    with calling(agent) as (caller, server), Caller(server.url) as other:
        task = text_task("wait")
        answer = in_background(caller.send, task, Authorization="ann")
        agent.started.acquire()

        assert cancel(other, task, Authorization="bob").status == 404
        agent.gate.set()
        assert answer().task().state is TaskState.COMPLETED


def test_the_default_lifecycle_stops_between_parts():
    agent = Agent(card())
    started, go_on = threading.Event(), threading.Event()
    calls = []

    @agent.tool
    def step(n: int):
        calls.append(n)
        started.set()
        go_on.wait(5)

    with calling(agent) as (caller, server), Caller(server.url) as other:
        task = Task.create_tool_call("step", {"n": 1})
        task.messages[0].parts += Task.create_tool_call("step", {"n": 2}).messages[0].parts
        answer = in_background(caller.send, task)
        started.wait(5)
        cancel(other, task)
        go_on.set()

        assert answer().task().state is TaskState.CANCELED
    assert calls == [1]


def test_outside_of_a_run_there_is_no_current_one():
    with pytest.raises(RuntimeError, match="no hosted task"):
        Agent(card()).current_run()
