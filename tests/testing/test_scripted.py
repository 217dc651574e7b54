"""ScriptedTransport: what a user's test reads like, and that it is a transport like any other."""

from __future__ import annotations

import pickle
import threading
import time

import pytest

from protolink_sync import AgentClient, CancelToken, RetryPolicy, Task, TransportConfig
from protolink_sync.errors import (
    AuthenticationError,
    CallCancelledError,
    StreamInterruptedError,
    TransportConnectionError,
    TransportLimitError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import TaskState
from protolink_sync.specs import TASK_REQUEST
from protolink_sync.testing import ScriptedTransport, events, refused, reply, silence
from protolink_sync.transport import TransportLimits

URL = "http://peer.test"
DONE = {"state": "completed"}


def test_a_retry_repeats_the_very_same_call():
    """The peer can only replay a finished task if key and body are unchanged."""
    transport = ScriptedTransport(
        refused(),
        reply({"state": "completed"}),
        retry=RetryPolicy(max_attempts=3, jitter=0, initial_backoff=0.1),
    )

    result = transport.send(TASK_REQUEST, URL, {"id": "task-1"})

    first, second = transport.calls
    assert result.state is TaskState.COMPLETED
    assert second == first
    assert (first.attempt, second.attempt) == (1, 2)
    assert first.headers["Idempotency-Key"].startswith("task-1:")
    assert transport.waits == [pytest.approx(0.1)]


def test_pauses_are_noted_and_take_no_time():
    policy = RetryPolicy(max_attempts=4, initial_backoff=10, max_backoff=40, jitter=0)
    busy = reply(status=503, headers={"Retry-After": "25"}, body=b"")
    transport = ScriptedTransport(refused(), busy, refused(), reply(DONE), retry=policy)

    began = time.monotonic()
    AgentClient(transport).send_task(URL, Task.create("hi"))

    assert time.monotonic() - began < 2
    assert transport.waits == [10, 25, 40]


def test_what_was_sent_is_there_to_be_looked_at():
    transport = ScriptedTransport(reply({"state": "completed"}), credentials="s3cret")
    sent = Task.create("hi")

    AgentClient(transport).send_task(URL, sent)

    (call,) = transport.calls
    assert (call.operation, call.method, call.path, call.url) == (
        "send_task",
        "POST",
        "/tasks/",
        URL,
    )
    assert call.data == sent.to_dict()
    assert call.credentials["Authorization"] == "Bearer s3cret"
    assert "s3cret" not in repr(call)


def test_a_model_a_status_and_a_function_are_answers():
    task = Task.create("?").complete("42")
    transport = ScriptedTransport(
        reply(task),
        reply(status=401, body=b"no"),
        lambda call: reply(Task.from_dict(call.data).complete("as you say")),
        reply(body=b"<html>"),
        lambda call: TransportConnectionError("cut"),
    )
    client = AgentClient(transport)

    assert client.send_task(URL, Task.create("?")).text == "42"
    with pytest.raises(AuthenticationError):
        client.send_task(URL, Task.create("?"))
    assert client.send_task(URL, Task.create("?")).text == "as you say"
    with pytest.raises(TransportProtocolError):
        client.send_task(URL, Task.create("?"))
    with pytest.raises(TransportConnectionError, match="cut"):
        client.send_task(URL, Task.create("?"))
    assert transport.unused == 0


def test_budgets_and_tokens_end_a_silence():
    transport = ScriptedTransport(silence(), silence())
    client = AgentClient(transport)
    token = CancelToken()

    with pytest.raises(TransportTimeoutError):
        client.send_task(URL, Task.create("?"), timeout=0.05)
    threading.Timer(0.05, token.cancel).start()
    with pytest.raises(CallCancelledError):
        client.send_task(URL, Task.create("?"), cancel=token)
    assert transport.waits == []


def test_limits_hold():
    config = TransportConfig(limits=TransportLimits(max_request_bytes=100))
    transport = ScriptedTransport(config=config)

    with pytest.raises(TransportLimitError):
        AgentClient(transport).send_task(URL, Task.create("x" * 200))
    assert transport.calls == []


def test_a_call_that_the_script_does_not_know_fails_the_test():
    client = AgentClient(ScriptedTransport(reply(DONE), events()))

    client.send_task(URL, Task.create("?"))
    with pytest.raises(AssertionError, match="is no stream"):
        client.send_task(URL, Task.create("?"))
    with pytest.raises(AssertionError, match="call 3, and the script has no step"):
        client.send_task(URL, Task.create("?"))


FINAL = {"type": "task_status_update", "new_state": "completed", "final": True}


def test_a_stream_is_played():
    task = Task.create("?").complete("42")
    final = {**FINAL, "metadata": {"task": task.to_dict()}}
    transport = ScriptedTransport(events({"type": "task_progress", "progress": 5}, final))

    stream = AgentClient(transport).send_task_streaming(URL, Task.create("?"))

    assert [event["type"] for event in stream] == ["task_progress", "task_status_update"]
    assert stream.task.text == "42"
    assert transport.calls[0].operation == "send_task_stream"


def test_a_stream_can_break_stall_or_be_cut():
    step = {"type": "task_progress"}
    transport = ScriptedTransport(
        events(step, cut=True),
        events(step, TransportRemoteError("the model failed")),
        events(step, silence(), FINAL),
        reply(status=503, body=b""),
        refused(),
    )
    client = AgentClient(transport)

    def opened(**options):
        return client.send_task_streaming(URL, Task.create("?"), **options)

    with pytest.raises(StreamInterruptedError):
        list(opened())
    stream = opened()
    assert next(stream) == step
    with pytest.raises(TransportRemoteError, match="the model failed"):
        next(stream)
    with pytest.raises(TransportTimeoutError):
        list(opened(idle_timeout=0.1))
    with pytest.raises(TransportRemoteError, match="503"):
        opened()
    with pytest.raises(TransportConnectionError):
        opened()


def test_a_retry_policy_is_given_once():
    with pytest.raises(TypeError, match="retry= or config="):
        ScriptedTransport(retry=RetryPolicy(), config=TransportConfig())


def test_it_does_not_travel():
    with pytest.raises(TypeError, match="belongs to its test"):
        pickle.dumps(AgentClient(ScriptedTransport()))
