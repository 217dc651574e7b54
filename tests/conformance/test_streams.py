"""Every stream ends the same way on every transport (wire/protolink.md 9)."""

from __future__ import annotations

import pytest

from protolink_sync import CancelToken
from protolink_sync.config import TransportConfig, TransportLimits
from protolink_sync.errors import (
    CallCancelledError,
    StreamingNotSupportedError,
    StreamInterruptedError,
    TransportLimitError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import Task, TaskState
from tests.conformance.sides import SIDES
from tests.conformance.test_operations import task

STATUS = "task_status_update"


@pytest.fixture(params=[side for side in SIDES if side.streams], ids=str)
def side(request):
    """The side the test runs on: one that streams."""
    return request.param


def stream_of(stage, text, **settings):
    return stage.client().send_task_streaming(stage.url, task(text), **settings)


def messages(events):
    return [event["message"] for event in events if event.get("type") == "task_progress"]


# --- ends ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["many 300", "slow 3 0.05"])
def test_events_come_in_order_and_then_the_task(stage, client, text):
    sent = task(text)
    before = sent.to_dict()

    stream = client.send_task_streaming(stage.url, sent)
    first, *middle, last = list(stream)

    assert (first["type"], first["new_state"], first["final"]) == (STATUS, "working", False)
    assert messages(middle) == [f"step {number}" for number in range(int(text.split()[1]))]
    assert len(middle) == len(messages(middle))
    assert (last["type"], last["new_state"], last["final"]) == (STATUS, "completed", True)
    assert stream.task.to_dict() == last["metadata"]["task"]
    assert (stream.task.id, stream.task.text) == (sent.id, "done")
    assert stream.events == len(middle) + 2
    assert sent.to_dict() == before, "the caller's task is not changed"


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("echo hello", "completed"),
        ("need", "input-required"),
        ("fail on purpose", "failed"),
    ],
)
def test_each_final_status_is_an_end(stage, text, state):
    stream = stream_of(stage, text)

    *_, last = stream

    assert (last["type"], last["new_state"], last["final"]) == (STATUS, state, True)
    assert stream.task.state.value == state
    assert stream.result() is stream.task
    assert list(stream) == [], "after its end a stream stays at its end"


def test_a_nested_final_is_no_end(stage):
    _, nested, after, last = list(stream_of(stage, "nested"))

    assert (nested["type"], nested["content"], nested["final"]) == ("task_llm_stream", "hi", True)
    assert after["type"] == "task_progress"
    assert last["new_state"] == "completed"


def test_an_untyped_final_is_an_end(stage):
    stream = stream_of(stage, "untyped")

    _, last = list(stream)

    assert last == {"final": True}
    assert stream.task is None
    with pytest.raises(TransportProtocolError, match="without a final status"):
        stream.result()


def test_a_stream_without_a_final_event_ends_too(stage):
    stream = stream_of(stage, "nofinal")

    first, *middle = list(stream)

    if stage.side.tells_each_end:
        assert middle.pop()["new_state"] == "completed"
        assert stream.result().text == "done"
    else:
        assert stream.task is None
        with pytest.raises(TransportProtocolError, match="without a final status"):
            stream.result()
    assert first["new_state"] == "working"
    assert messages(middle) == ["step 0", "step 1", "step 2"]
    assert len(middle) == 3


def test_a_task_that_has_ended_is_told_as_it_is(stage, client):
    ended = task("nothing to do").begin().complete("done before")

    stream = client.send_task_streaming(stage.url, ended)
    (only,) = list(stream)

    assert (only["type"], only["previous_state"], only["new_state"]) == (STATUS, None, "completed")
    assert [m.to_dict() for m in stream.result().messages] == [m.to_dict() for m in ended.messages]


def test_the_task_is_cancelled_while_its_stream_runs(stage, client):
    sent = task("wait 30")
    stream = client.send_task_streaming(stage.url, sent)
    first = next(stream)

    canceled = stage.cancel_when_running(client, sent.id, reason="enough")
    *_, last = stream

    assert first["new_state"] == "working"
    assert canceled.state is TaskState.CANCELED
    assert (last["type"], last["new_state"], last["final"]) == (STATUS, "canceled", True)
    assert last["metadata"]["cancel_reason"] == "enough"
    assert last["metadata"]["task"]["id"] == sent.id
    assert stream.result().state is TaskState.CANCELED


def test_a_stream_cancels_its_own_task(stage):
    stream = stream_of(stage, "slow 600 0.05")
    next(stream)
    next(stream)

    canceled = stream.cancel("enough")

    assert canceled.state is TaskState.CANCELED
    assert stream.result().state is TaskState.CANCELED
    # Its end is here already: nothing is sent.
    assert stream.cancel().state is TaskState.CANCELED


# --- errors -------------------------------------------------------------------------------------


def test_an_error_of_the_handler_comes_after_the_events_before_it(stage):
    stream = stream_of(stage, "raise on purpose")

    first = next(stream)
    errors = []
    for _ in range(2):
        with pytest.raises(TransportRemoteError, match="on purpose") as caught:
            next(stream)
        errors.append(caught.value)

    assert first["new_state"] == "working"
    assert errors[0] is errors[1], "a stream that failed stays failed"
    assert type(errors[0]) is TransportRemoteError
    assert (errors[0].url, errors[0].retryable) == (stage.url, False)
    assert len(errors[0].request_id or "") == 32
    with pytest.raises(TransportRemoteError, match="on purpose"):
        stream.result()


@pytest.mark.parametrize("reset", [False, True], ids=["fin", "rst"])
def test_a_cut_stream_is_not_a_finished_one(stage, client, counting_proxy, reset):
    if not client.transport.capabilities.networked:
        pytest.skip("there is no network to cut")
    proxy = counting_proxy(stage.url)
    sent = task("wait 3")
    stream = client.send_task_streaming(proxy.url, sent)
    first = next(stream)

    proxy.cut(reset=reset)
    errors = []
    for read in (lambda: next(stream), stream.result):
        with pytest.raises(StreamInterruptedError) as caught:
            read()
        errors.append(caught.value)

    assert first["new_state"] == "working"
    assert errors[0] is errors[1]
    assert isinstance(errors[0], ConnectionError)
    assert (errors[0].task_id, errors[0].last_state) == (sent.id, "working")
    assert (errors[0].events, errors[0].task) == (1, None)
    assert proxy.total == 1, "a stream is not sent again"


def test_silence_has_a_limit(stage):
    stream = stream_of(stage, "wait 3", idle_timeout=0.3)

    assert next(stream)["new_state"] == "working"
    with pytest.raises(TransportTimeoutError):
        next(stream)


def test_an_event_beyond_the_limit_comes_after_those_within_it(stage):
    client = stage.client(config=TransportConfig(limits=TransportLimits(max_event_bytes=2000)))
    stream = client.send_task_streaming(stage.url, task("big 5000"))

    assert next(stream)["new_state"] == "working"
    with pytest.raises(TransportLimitError, match="2000"):
        next(stream)


def test_the_whole_stream_has_a_limit(stage):
    stream = stream_of(stage, "slow 60 0.05", timeout=0.5)

    assert next(stream)["new_state"] == "working"
    with pytest.raises(TransportTimeoutError):
        list(stream)


def test_a_token_ends_a_stream(stage):
    token = CancelToken()
    stream = stream_of(stage, "wait 3", cancel=token)
    assert next(stream)["new_state"] == "working"

    token.cancel()

    with pytest.raises(CallCancelledError):
        next(stream)


def test_a_closed_stream_is_at_its_end_and_has_no_result(stage):
    with stream_of(stage, "slow 60 0.05") as stream:
        assert next(stream)["new_state"] == "working"

    assert list(stream) == []
    with pytest.raises(CallCancelledError):
        stream.result()


# --- what is read -------------------------------------------------------------------------------


def test_the_answer_as_text(stage, client):
    stream = client.send_task_streaming(stage.url, Task.create_infer(prompt="hello?"))

    assert "".join(stream.text()) == "the mock model says hi"
    assert stream.task.state is TaskState.COMPLETED
    assert stream.result().get_output() == "the mock model says hi"


def test_the_text_of_an_answer_that_comes_as_a_whole(stage):
    stream = stream_of(stage, "echo hello there")

    assert list(stream.text()) == ["hello there"]
    assert stream.result().text == "hello there"


def test_artifacts_come_before_the_task(stage):
    stream = stream_of(stage, "artifacts")

    found = [event for event in stream if event["type"] == "task_artifact_update"]

    assert [event["artifact"]["name"] for event in found] == ["a", "b"]
    assert [artifact.name for artifact in stream.task.artifacts] == ["a", "b"]


def test_events_in_the_versioned_form(stage):
    sequence = [event.sequence for event in stream_of(stage, "many 3").run_events()]

    assert sequence == [1, 2, 3, 4, 5]


def test_a_stream_that_is_refused_is_no_stream(stage):
    if not stage.side.guards:
        pytest.skip("nobody asks for credentials there")
    url = stage.agent(guard="key")
    client = stage.client()

    with pytest.raises(TransportRemoteError) as caught:
        client.send_task_streaming(url, task("echo x")).result()

    assert caught.value.status_code == stage.side.refusal


@pytest.mark.parametrize("side", [side for side in SIDES if not side.streams], ids=str)
def test_a_transport_that_does_not_stream_says_so(stage, client):
    with pytest.raises(StreamingNotSupportedError, match="does not stream"):
        client.send_task_streaming(stage.url, task("echo x"))
