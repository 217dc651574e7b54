"""A task is executed once however often it is sent, and its answer is never another's (wire 8)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from protolink_sync.errors import TransportRemoteError
from protolink_sync.models import ClientRequestSpec, Message, Task, TaskState
from tests.conformance.test_operations import task


def test_the_same_task_sent_again_is_executed_once(stage, client):
    sent = task("count")

    answers = [client.send_task(stage.url, sent).text for _ in range(3)]

    assert answers == ["1 executions, 1 messages"] * 3


def test_the_same_task_sent_at_the_same_time_is_executed_once(stage, client):
    sent, url = task("count 0.2"), stage.url

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: client.send_task(url, sent).text, range(4)))

    assert answers == ["1 executions, 1 messages"] * 4


def test_a_task_continued_with_a_new_message_is_executed_again(stage, client):
    """protolink's own client sends the same key and gets the old answer."""
    first = client.send_task(stage.url, task("need"))
    first.add_message(Message.user("count"))

    second = client.send_task(stage.url, first)

    assert (second.id, second.state) == (first.id, TaskState.COMPLETED)
    assert second.text == f"2 executions, {len(first.messages)} messages"


def test_another_task_with_a_key_that_was_used_is_the_callers_affair(stage, client):
    """The key is the caller's word that it is the same submission; ours are never alike."""
    one = client.send_task(stage.url, task("echo one"))
    two = client.send_task(stage.url, task("echo two"))

    assert (one.text, two.text) == ("one", "two")


def test_a_submission_that_failed_at_the_agent_is_executed_again(stage):
    sent = task("raise boom")
    count = Task(sent.id, messages=[Message.user("count")])

    for _ in range(2):
        with pytest.raises(TransportRemoteError):
            stage.client().send_task(stage.url, sent)

    assert stage.client().send_task(stage.url, count).text == "3 executions, 1 messages"


def test_without_a_key_a_task_is_executed_each_time(stage, client):
    """An operation that is not idempotent carries no key."""
    spec = ClientRequestSpec("plain", "/tasks/", "POST", Task.from_dict)
    sent = task("count")

    answers = [client.transport.send(spec, stage.url, sent).text for _ in range(2)]

    assert answers == ["1 executions, 1 messages", "2 executions, 1 messages"]


def test_a_second_cancel_is_not_answered_from_memory(stage, client):
    """With the task's id as key, as protolink has it, it would be: and nothing be cancelled."""
    for number in (1, 2):
        sent = Task("cancelled-twice", messages=[Message.user(f"wait 3{number}")])
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(client.send_task, stage.url, sent)
            canceled = stage.cancel_when_running(client, sent.id, reason=f"reason {number}")
            assert running.result(30).state is TaskState.CANCELED
        assert canceled.metadata["cancel_reason"] == f"reason {number}"


def test_threads_get_their_own_answers(stage, client):
    url = stage.url

    def call(number: int) -> str:
        return client.send_task(url, task(f"echo {number}")).text

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(call, range(100)))

    assert answers == [str(number) for number in range(100)]
    metrics = client.transport.metrics
    assert (metrics.requests_started, metrics.requests_succeeded) == (100, 100)
    assert (metrics.requests_failed, metrics.active_requests, metrics.retries) == (0, 0, 0)
