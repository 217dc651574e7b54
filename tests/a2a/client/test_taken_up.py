"""Streams that are taken up after a cut (``resume``): nothing lost, nothing shown as success."""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref

import pytest

from protolink_sync import CancelToken
from protolink_sync.a2a import TaskState
from protolink_sync.errors import (
    CallCancelledError,
    StreamInterruptedError,
    TransportTimeoutError,
)
from tests.a2a.client.scenes import heard
from tests.a2a.scripted import (
    HOLD,
    SSE,
    artifact,
    artifact_update,
    error,
    old_card,
    result,
    sent,
    status_update,
    stream,
    task,
)
from tests.cases.play import eventually
from tests.transport.scenes import no_garbage_collected

BEGIN = sent(task("working"))


@pytest.mark.parametrize("old", [False, True])
def test_what_was_said_during_the_cut_is_asked_for_if_nobody_tells_it_again(old, meet):
    """0.3 agents begin a subscription with what comes next, not with the task (Q: 0.3.26)."""
    whole = task("completed", old=old, artifacts=[artifact("Hello", " world", old=old)])
    names = ("message/stream", "tasks/resubscribe", "tasks/get")
    if not old:
        names = ("SendStreamingMessage", "SubscribeToTask", "GetTask")
    first = stream(task("working", old=True) if old else BEGIN, artifact_update("Hel", old=old))
    rest = stream(
        artifact_update(" world", old=old, append=True),
        status_update("completed", old=old, **({"final": True} if old else {})),
    )
    words = {"card": old_card()} if old else {}
    agent, client = meet(
        methods=dict(zip(names, (first, rest, result(whole)), strict=True)), **words
    )

    seen = heard(lambda: client.stream_message("hi", resume=1))

    assert seen.error is None
    assert seen.task.text == "Hello world"
    assert agent.methods == list(names)


def test_a_gap_that_nobody_fills_is_no_success(meet):
    _, client = meet(
        methods={
            "SendStreamingMessage": stream(BEGIN, artifact_update("Hel")),
            "SubscribeToTask": stream(status_update("completed")),
            "GetTask": error(-32001),
        }
    )
    events = client.stream_message("hi", resume=1)

    for _ in range(2):
        with pytest.raises(StreamInterruptedError) as caught:
            list(events)
        assert caught.value.task is not None


@pytest.mark.parametrize("asked_for", ["SubscribeToTask", "GetTask"])
def test_credentials_that_raise_stop_iteration_are_no_end_of_the_stream(
    agent_of, client_of, asked_for
):
    first = stream(BEGIN, artifact_update("Hel"))
    rest = stream(status_update("completed"))
    agent = agent_of(methods={"SendStreamingMessage": first, "SubscribeToTask": rest})
    # For the card, the message, and the subscription.
    tokens = iter(["t"] * (2 if asked_for == "SubscribeToTask" else 3))
    client = client_of(
        agent.base, credentials=lambda origin, refresh: {"Authorization": next(tokens)}
    )
    events = client.stream_message("hi", resume=1)

    for _ in range(2):
        with pytest.raises(RuntimeError, match="StopIteration"):
            list(events)
    assert asked_for not in agent.methods


def test_a_stream_without_any_event_is_not_taken_up(meet):
    """Nobody knows then whether the message has arrived, whatever the task says."""
    agent, client = meet(
        methods={
            "SendStreamingMessage": [SSE, {"op": "close"}],
            "SubscribeToTask": stream(sent(task("input-required"))),
        }
    )

    seen = heard(lambda: client.stream_message("Athens", task_id="t1", resume=1))

    assert isinstance(seen.error, StreamInterruptedError)
    assert agent.methods == ["SendStreamingMessage"]


def test_close_ends_a_stream_that_is_being_taken_up(meet):
    agent, client = meet(methods={"SendStreamingMessage": stream(BEGIN), "SubscribeToTask": [HOLD]})
    events = client.stream_message("hi", resume=1)
    next(events)
    rest = []
    reader = threading.Thread(target=lambda: rest.extend(events))
    reader.start()
    assert eventually(lambda: len(agent.calls) == 2)

    events.close()

    reader.join(5)
    assert not reader.is_alive()
    assert rest == []


def test_a_token_ends_a_stream_that_is_being_taken_up(meet):
    agent, client = meet(methods={"SendStreamingMessage": stream(BEGIN), "SubscribeToTask": [HOLD]})
    token = CancelToken()
    events = client.stream_message("hi", resume=1, cancel=token)
    next(events)

    def cancel() -> None:
        assert eventually(lambda: len(agent.calls) == 2)
        token.cancel("enough")

    threading.Thread(target=cancel).start()

    with pytest.raises(CallCancelledError) as caught:
        next(events)

    assert caught.value.reason == "enough"


def test_a_budget_that_ends_while_it_is_taken_up_is_a_time_out(meet):
    _, client = meet(methods={"SendStreamingMessage": stream(BEGIN), "SubscribeToTask": [HOLD]})
    events = client.stream_message("hi", resume=1, timeout=0.5)

    for _ in range(2):
        with pytest.raises(TransportTimeoutError):
            list(events)


def test_many_cuts_are_taken_up_one_after_the_other(meet):
    """In a loop, not by recursion."""
    _, client = meet(
        methods={
            "SendStreamingMessage": stream(BEGIN),
            "SubscribeToTask": stream(BEGIN),
        }
    )

    seen = heard(lambda: client.stream_message("hi", resume=1100))

    assert isinstance(seen.error, StreamInterruptedError)
    assert len(seen.events) == 1101


def test_text_in_the_task_of_a_subscription_counts(meet):
    _, client = meet(
        stream(
            sent(task("working", artifacts=[artifact("Hel")])),
            artifact_update("lo", append=True),
            status_update("completed"),
        )
    )

    events = client.subscribe("t1")

    assert list(events.text()) == ["Hel", "lo"]


def test_a_task_that_tells_again_what_is_known_gives_only_the_rest(meet):
    _, client = meet(
        methods={
            "SendStreamingMessage": stream(BEGIN, artifact_update("Hel")),
            "SubscribeToTask": stream(
                sent(task("working", artifacts=[artifact("Hello")])),
                artifact_update(" world", append=True),
                status_update("completed"),
            ),
        }
    )

    assert list(client.stream_message("hi", resume=1).text()) == ["Hel", "lo", " world"]


def test_a_closing_message_follows_the_artifacts_on_a_line_of_its_own(meet):
    _, client = meet(stream(BEGIN, artifact_update("Report"), status_update("completed", "Done.")))

    events = client.stream_message("hi")

    assert list(events.text()) == ["Report", "\nDone."]
    assert events.task.text == "Done."


def test_a_finished_task_is_returned_after_its_stream_was_closed(meet):
    agent, client = meet(stream(BEGIN, status_update("completed", "done")))

    with client.stream_message("hi") as events:
        list(events)

    assert events.result().status.state is TaskState.COMPLETED
    assert events.cancel().status.state is TaskState.COMPLETED
    assert agent.methods == ["SendStreamingMessage"]


def test_a_stream_that_could_not_be_taken_up_has_ended(meet):
    """Every further next gives the same error, and nothing is sent any more."""
    agent, client = meet(
        methods={"SendStreamingMessage": stream(BEGIN), "SubscribeToTask": error(-32001)}
    )
    events = client.stream_message("hi", resume=3)

    for _ in range(3):
        with pytest.raises(StreamInterruptedError):
            list(events)

    assert agent.methods == ["SendStreamingMessage", "SubscribeToTask"]


def test_a_stream_that_no_thread_can_take_up_has_ended(meet, monkeypatch):
    """It holds nothing then, and may be closed like any other."""
    agent, client = meet(
        methods={
            "SendStreamingMessage": stream(BEGIN),
            "SubscribeToTask": stream(BEGIN, end=[HOLD]),
        }
    )
    token = CancelToken()
    events = client.stream_message("hi", resume=3, cancel=token)
    next(events)
    start = threading.Thread.start

    def refused(thread):
        if thread.name.startswith("protolink-stream"):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refused)

    for _ in range(3):
        with pytest.raises(StreamInterruptedError) as caught:
            next(events)
        assert "can't start new thread" in str(caught.value.__cause__)
        assert caught.value.task.id == "t1"
    assert client.transport.metrics.active_streams == 0
    assert agent.methods == ["SendStreamingMessage", "SubscribeToTask"]
    assert not token._callbacks
    events.close()


def test_a_token_keeps_nothing_of_streams_that_were_taken_up(meet):
    """One token may serve a program for days."""
    _, client = meet(
        methods={"SendStreamingMessage": stream(BEGIN), "SubscribeToTask": stream(BEGIN)}
    )
    token = CancelToken()

    events = client.stream_message("hi", resume=20, cancel=token)
    with pytest.raises(StreamInterruptedError):
        list(events)

    assert not token._callbacks


@pytest.mark.parametrize("resume", [0, 2])
def test_a_stream_that_broke_can_be_collected(resume, meet):
    """Its error has a traceback, whose frames have the stream; nothing else may hold them."""
    _, client = meet(
        methods={"SendStreamingMessage": stream(BEGIN), "SubscribeToTask": stream(BEGIN)}
    )

    def read():
        events = client.stream_message("hi", resume=resume)
        with contextlib.suppress(StreamInterruptedError):
            list(events)
        return weakref.ref(events)

    known = read()
    gc.collect()

    assert known() is None


def workers():
    return [one for one in threading.enumerate() if one.name.startswith("protolink-stream")]


def test_one_that_was_taken_up_ends_as_soon_as_it_is_left(meet):
    """Not when garbage is collected: what it keeps of the cut must not lead back to it."""
    rest = [*stream(artifact_update("lo"))[:-1], HOLD]
    _, client = meet(
        methods={
            "SendStreamingMessage": stream(BEGIN, artifact_update("Hel")),
            "SubscribeToTask": rest,
        }
    )

    with no_garbage_collected():
        for number, _event in enumerate(client.stream_message("hi", resume=1)):
            if number == 2:
                break

        assert eventually(lambda: not workers())


@pytest.mark.parametrize(
    "more",
    [
        {"SubscribeToTask": error(-32001)},
        {"SubscribeToTask": stream(status_update("completed")), "GetTask": error(-32001)},
    ],
    ids=["not taken up", "no task"],
)
def test_one_that_cannot_be_taken_up_leaves_nothing_behind(more, meet):
    first = stream(BEGIN, artifact_update("Hel"))
    _, client = meet(methods={"SendStreamingMessage": first, **more})

    def read():
        events = client.stream_message("hi", resume=1)
        with contextlib.suppress(StreamInterruptedError):
            list(events)
            raise AssertionError("it was not interrupted")
        return weakref.ref(events)

    with no_garbage_collected():
        assert read()() is None
