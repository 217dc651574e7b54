"""Streams: how they are read, what ends them, what task they come to."""

from __future__ import annotations

import threading
import time

import pytest

from protolink_sync import CancelToken
from protolink_sync.a2a import A2AInternalError, A2AInvalidParamsError, A2ARpcError, TaskState
from protolink_sync.config import TransportConfig, TransportLimits
from protolink_sync.errors import (
    CallCancelledError,
    StreamInterruptedError,
    TransportLimitError,
    TransportProtocolError,
    TransportRemoteError,
)
from tests.a2a.client.scenes import heard
from tests.a2a.scripted import (
    END,
    HOLD,
    SSE,
    artifact,
    artifact_update,
    card,
    envelope,
    error,
    error_frame,
    frame,
    message,
    old_card,
    reply,
    result,
    sent,
    status_update,
    stream,
    task,
)
from tests.cases.play import eventually
from tests.transport.scenes import at_once

BEGIN = sent(task("submitted"))
WORK = status_update("working")
DONE = status_update("completed", "done")
OLD_BEGIN = task("submitted", old=True)

# ---- frames (B36, B37) -------------------------------------------------------------------------

FIRST = envelope(result=WORK)
LAST = envelope(result=DONE)
SPREAD = LAST.replace('"result": ', '"result":\ndata: ')

FORMS = {
    "LF": f"data: {FIRST}\n\ndata: {LAST}\n\n",
    "CRLF": f"data: {FIRST}\r\n\r\ndata: {LAST}\r\n\r\n",
    "CR": f"data: {FIRST}\r\rdata: {LAST}\r\r",
    "no space after the colon": f"data:{FIRST}\n\ndata:{LAST}\n\n",
    "several data lines": f"data: {FIRST}\n\ndata: {SPREAD}\n\n",
    "comments and other fields": (
        f": ping\n\nid: 4\nretry: 10\nevent: message\ndata: {FIRST}\nfoo: x\nbar\n\n: p\n"
        f"data: {LAST}\n\n"
    ),
    "no blank line at the end": f"data: {FIRST}\n\ndata: {LAST}\n",
    "no line end at the end": f"data: {FIRST}\n\ndata: {LAST}",
    "a byte order mark": f"\u00ef\u00bb\u00bfdata: {FIRST}\n\ndata: {LAST}\n\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_b36_every_form_of_an_event_is_read(form, meet):
    _agent, client = meet([SSE, {"op": "chunk", "data": FORMS[form]}, END])

    seen = heard(lambda: client.stream_message("hi"))

    assert seen.error is None
    assert len(seen.events) == 2
    assert seen.task.text == "done"


@pytest.mark.parametrize("form", FORMS)
def test_b36_an_event_in_pieces_is_kept(form, meet):
    _agent, client = meet([SSE, {"op": "chunks", "data": FORMS[form], "size": 7}, END])

    seen = heard(lambda: client.stream_message("hi"))

    assert seen.error is None
    assert len(seen.events) == 2
    assert seen.task.text == "done"


def test_b37_an_event_beyond_its_limit_ends_the_stream(meet):
    limits = TransportConfig(limits=TransportLimits(max_event_bytes=10_000))
    agent, client = meet(
        [SSE, frame(WORK), {"op": "chunk", "data": "data: " + "x" * 20_000}, HOLD],
        client={"config": limits},
    )

    seen = heard(lambda: client.stream_message("hi"))

    assert isinstance(seen.error, TransportLimitError)
    assert len(seen.events) == 1
    assert agent.wait_for_end(agent.calls[0].request.connection, 2) == "client"


def test_b37_what_an_error_keeps_of_a_body_is_bounded(meet):
    _, client = meet(reply("x" * 3_000_000, status=500))

    seen = heard(lambda: client.stream_message("hi"))

    assert isinstance(seen.error, TransportRemoteError)
    assert len(seen.error.body) <= 1 << 20


# ---- other answers (B38 to B40) ----------------------------------------------------------------


def test_b38_a_json_error_instead_of_a_stream_is_raised_with_its_code(meet):
    agent, client = meet(error(-32602, "bad"))

    seen = heard(lambda: client.stream_message("hi"))

    assert isinstance(seen.error, A2AInvalidParamsError)
    assert seen.error.code == -32602
    assert len(agent.calls) == 1


@pytest.mark.parametrize("value", [sent(task(text="at once")), {"message": message("at once")}])
def test_b38_a_json_result_instead_of_a_stream_is_one_event(value, meet):
    _, client = meet(result(value))

    seen = heard(lambda: client.stream_message("hi"))

    assert seen.error is None
    assert len(seen.events) == 1
    assert seen.task.text == "at once"


@pytest.mark.parametrize(
    "answer",
    [
        reply("<html>app</html>", headers={"Content-Type": "text/html"}),
        reply(""),
        reply("[]"),
        reply('"ok"'),
        result(None),
    ],
)
def test_b38_garbage_instead_of_a_stream_is_an_error_and_no_empty_success(answer, meet):
    _, client = meet(answer)

    seen = heard(lambda: client.stream_message("hi"))

    assert isinstance(seen.error, TransportProtocolError)
    assert seen.events == []


def test_b38_a_json_result_of_no_kind_is_no_success_either(meet):
    _, client = meet(result({}))

    seen = heard(lambda: client.stream_message("hi"))

    assert isinstance(seen.error, (TransportProtocolError, StreamInterruptedError))
    assert seen.task is None


@pytest.mark.parametrize(
    "kind", ["text/event-stream; charset=utf-8", "Text/Event-Stream", "text/event-stream;x=1"]
)
def test_b38_a_media_type_may_have_parameters_and_any_case(kind, meet):
    head = {"op": "sse_head", "headers": {"Content-Type": kind}}
    _, client = meet([head, frame(BEGIN), frame(DONE), END])

    assert client.stream_message("hi").result().text == "done"


def test_b39_a_status_that_is_no_success_raises_whatever_the_body(meet):
    head = {"op": "head", "status": 500}
    chunked = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
    agent, client = meet([{**head, "headers": chunked}, frame(BEGIN), frame(DONE), END])

    seen = heard(lambda: client.stream_message("hi"))

    assert isinstance(seen.error, TransportRemoteError)
    assert seen.error.status_code == 500
    assert seen.events == []
    assert len(agent.calls) == 1


@pytest.mark.parametrize("name", ["", "error", "message", "anything"])
def test_b40_an_error_frame_ends_the_stream_after_the_events_before_it(name, meet):
    _, client = meet(stream(BEGIN, WORK, error_frame(-32603, "kaput", name=name), DONE))

    seen = heard(lambda: client.stream_message("hi"))

    assert len(seen.events) == 2
    assert isinstance(seen.error, A2AInternalError)
    assert "kaput" in str(seen.error)


def test_b40_a_first_frame_that_is_an_error_is_raised(meet):
    _, client = meet(stream(error_frame(-32602)), card=old_card())

    seen = heard(lambda: client.stream_message("hi"))

    assert isinstance(seen.error, A2AInvalidParamsError)
    assert seen.events == []


# ---- the end (B41 to B43) ----------------------------------------------------------------------

TERMINAL = ["completed", "failed", "canceled", "rejected"]
INTERRUPTED = ["input-required", "auth-required"]


@pytest.mark.parametrize("state", [*TERMINAL, *INTERRUPTED])
def test_b41_the_last_event_of_a_1_0_stream_is_final_by_its_state(state, meet):
    _, client = meet(stream(BEGIN, WORK, status_update(state)))

    seen = heard(lambda: client.stream_message("hi"))

    assert seen.error is None
    assert [event.is_final for event in seen.events] == [False, False, True]


def test_b41_in_0_3_the_member_says_which_event_is_final(meet):
    _, client = meet(
        stream(
            OLD_BEGIN,
            status_update("working", old=True),
            status_update("completed", old=True, final=True),
        ),
        card=old_card(),
    )

    seen = heard(lambda: client.stream_message("hi"))

    assert [event.is_final for event in seen.events] == [False, False, True]


def test_b41_a_message_is_final(meet):
    _, client = meet(stream({"message": message("hi")}))

    assert [event.is_final for event in client.stream_message("hi")] == [True]


ENDS = {
    "a message": (card, {"message": message("end")}),
    "a message of 0.3": (old_card, message("end", old=True)),
    **{f"{state}, as status": (card, status_update(state, "end")) for state in TERMINAL},
    **{f"{state}, as task": (card, sent(task(state, "end"))) for state in TERMINAL},
    **{f"{state} of 0.3": (old_card, status_update(state, "end", old=True)) for state in TERMINAL},
    "final of 0.3": (old_card, status_update("working", "end", old=True, final=True)),
    **{state: (card, status_update(state, "end")) for state in INTERRUPTED},
    "input-required of 0.3": (old_card, status_update("input-required", "end", old=True)),
}


@pytest.mark.parametrize("how", ENDS)
def test_b42_what_ends_a_stream_ends_it_though_the_agent_holds_the_line(how, meet):
    card_of, last = ENDS[how]
    agent, client = meet(stream(last, end=(HOLD,)), card=card_of())
    began = time.monotonic()

    seen = heard(lambda: client.stream_message("hi"))
    ended = time.monotonic()

    assert seen.error is None
    assert len(seen.events) == 1
    assert ended - began < 2
    streamed = agent.calls[-1].request.connection
    assert agent.wait_for_end(streamed, 2) == "client"
    assert agent.connections[streamed - 1].closed_at - ended < at_once()


def test_b42_nothing_after_the_end_changes_the_task(meet):
    """Not one real client stops here, and one lets a later WORKING undo the completion."""
    _, client = meet(stream(BEGIN, DONE, WORK, error_frame(-32603)))

    seen = heard(lambda: client.stream_message("hi"))

    assert len(seen.events) == 2
    assert seen.error is None
    assert seen.task.status.state is TaskState.COMPLETED
    assert seen.task.text == "done"


def test_b42_an_interrupted_task_may_be_waited_for(meet):
    _agent, client = meet(stream(BEGIN, status_update("auth-required"), WORK, DONE, end=(HOLD,)))

    seen = heard(lambda: client.stream_message("hi", stop_on_interrupted=False))

    assert len(seen.events) == 4
    assert seen.error is None
    assert seen.task.status.state is TaskState.COMPLETED


def test_b42_a_followed_task_may_begin_interrupted(meet):
    _agent, client = meet(stream(sent(task("input-required")), WORK, DONE, end=(HOLD,)))

    seen = heard(lambda: client.subscribe("t1"))

    assert len(seen.events) == 3
    assert seen.task.status.state is TaskState.COMPLETED


def test_b42_a_followed_task_that_is_over_ends_with_its_first_event(meet):
    _, client = meet(stream(sent(task("completed", "done")), end=(HOLD,)))

    assert client.subscribe("t1").result().text == "done"


CUTS = {
    "a clean end": (END,),
    "no last chunk": ({"op": "close"},),
    "in the middle of an event": ({"op": "chunk", "data": 'data: {"jsonrpc"'}, {"op": "close"}),
    "in the middle of a chunk": ({"op": "send", "data": "ff\r\ndata: "}, {"op": "close"}),
    "a reset": ({"op": "rst"},),
}


@pytest.mark.parametrize("card_of", [card, old_card])
@pytest.mark.parametrize("cut", CUTS)
def test_b43_an_end_without_a_mark_is_an_interruption_that_has_the_task(cut, card_of, meet):
    old = card_of is old_card
    begun = sent(task("submitted", old=old), old=old)
    piece = artifact_update("so far", old=old)
    agent, client = meet(
        stream(begun, status_update("working", old=old), piece, end=CUTS[cut]), card=card_of()
    )

    seen = heard(lambda: client.stream_message("hi"))

    if cut != "a reset":  # it may overtake what came before
        assert len(seen.events) == 3
        assert seen.error.task.artifacts[0].text == "so far"
        assert seen.error.task_id == "t1"
        assert seen.error.task.status.state is TaskState.WORKING
    assert isinstance(seen.error, StreamInterruptedError)
    assert len(agent.calls) == 1


def test_b43_a_stream_without_any_event_is_an_interruption(meet):
    """What a crashed 0.3.26 agent sends, and no empty success."""
    _, client = meet(stream(end=({"op": "close"},)), card=old_card())

    seen = heard(lambda: client.stream_message("hi"))

    assert isinstance(seen.error, StreamInterruptedError)
    assert seen.error.task is None


def test_b43_the_result_of_a_cut_stream_is_no_task(meet):
    _, client = meet(stream(BEGIN, WORK))

    with pytest.raises(StreamInterruptedError):
        client.stream_message("hi").result()

    with pytest.raises(StreamInterruptedError):
        client.send_message_streaming("hi", lambda event: True)


def test_b43_a_cut_stream_may_be_taken_up_again(meet):
    agent, client = meet(
        methods={
            "SendStreamingMessage": stream(BEGIN, WORK, artifact_update("one ")),
            "SubscribeToTask": stream(
                sent(task("working", artifacts=[artifact("one ")])),
                artifact_update("two", append=True),
                DONE,
            ),
        }
    )

    seen = heard(lambda: client.stream_message("hi", resume=1))

    assert seen.error is None
    assert agent.methods == ["SendStreamingMessage", "SubscribeToTask"]
    assert agent.calls[1].params["id"] == "t1"
    assert seen.task.artifacts[0].text == "one two"
    assert seen.task.status.state is TaskState.COMPLETED


def test_b43_a_task_that_ended_meanwhile_is_got_instead(meet):
    """So agents answer who subscribes to a task that is over: -32004."""
    agent, client = meet(
        methods={
            "SendStreamingMessage": stream(BEGIN, WORK),
            "SubscribeToTask": error(-32004),
            "GetTask": result(task("completed", "ended")),
        }
    )

    seen = heard(lambda: client.stream_message("hi", resume=1))

    assert seen.error is None
    assert seen.task.text == "ended"
    assert agent.methods == ["SendStreamingMessage", "SubscribeToTask", "GetTask"]


@pytest.mark.parametrize("answer", [error(-32001), reply({}, status=503), [{"op": "rst"}]])
def test_b43_what_cannot_be_taken_up_is_no_success_and_nothing_is_sent_again(answer, meet):
    agent, client = meet(
        methods={"SendStreamingMessage": stream(BEGIN, WORK), "SubscribeToTask": answer}
    )

    seen = heard(lambda: client.stream_message("hi", resume=1))

    assert len(seen.events) == 2
    assert isinstance(seen.error, StreamInterruptedError)
    assert seen.error.task.status.state is TaskState.WORKING
    assert seen.error.__cause__ is not None  # why it could not be taken up
    assert agent.methods == ["SendStreamingMessage", "SubscribeToTask"]


def test_b43_it_is_taken_up_as_often_as_was_said(meet):
    agent, client = meet(
        methods={
            "SendStreamingMessage": stream(BEGIN),
            "SubscribeToTask": stream(sent(task("working"))),
        }
    )

    seen = heard(lambda: client.stream_message("hi", resume=1))

    assert isinstance(seen.error, StreamInterruptedError)
    assert agent.methods == ["SendStreamingMessage", "SubscribeToTask"]


def test_b43_a_message_is_never_sent_again_for_a_cut_without_a_task(meet):
    agent, client = meet(stream(end=({"op": "close"},)))

    seen = heard(lambda: client.stream_message("hi", resume=1))

    assert isinstance(seen.error, StreamInterruptedError)
    assert agent.methods == ["SendStreamingMessage"]


# ---- the task (B44 to B46) ---------------------------------------------------------------------


@pytest.mark.parametrize("old", [False, True])
def test_b44_the_task_is_put_together_of_its_events(old, meet):
    """In either dialect: the task, statuses with messages and metadata, artifacts."""
    begun = sent(task("submitted", old=old, metadata={"a": 1, "b": 1}), old=old)
    asked = message("asked", old=old, number=5)
    working = status_update("working", old=old, metadata={"b": 2, "c": 3})
    inner = working if old else working["statusUpdate"]
    inner["status"]["message"] = asked
    _, client = meet(
        stream(
            begun,
            working,
            working,
            artifact_update("one", old=old),
            artifact_update("two", old=old, append=True, name="a2"),
            artifact_update("first", old=old),
            status_update("completed", old=old, final=True) if old else DONE,
        ),
        card=old_card() if old else card(),
    )

    seen = heard(lambda: client.stream_message("hi"))

    assert seen.error is None
    made = seen.task
    assert (made.id, made.context_id) == ("t1", "c1")
    assert made.metadata == {"a": 1, "b": 2, "c": 3}
    assert [one.message_id for one in made.history].count("m5") == 1
    assert [(one.artifact_id, one.text) for one in made.artifacts] == [
        ("a1", "first"),
        ("a2", "two"),
    ]
    assert made.status.state is TaskState.COMPLETED


def test_b44_a_later_task_event_replaces_everything(meet):
    whole = task("completed", artifacts=[artifact("all", name="b")])
    _, client = meet(stream(BEGIN, artifact_update("piece"), sent(whole)))

    made = client.stream_message("hi").result()

    assert [(one.artifact_id, one.text) for one in made.artifacts] == [("b", "all")]


def test_b44_a_task_comes_about_without_a_task_event(meet):
    _, client = meet(stream(artifact_update("so"), status_update("completed")))

    made = client.stream_message("hi").result()

    assert (made.id, made.context_id, made.text) == ("t1", "c1", "so")


def test_b45_append_adds_parts_and_its_absence_starts_over(meet):
    _, client = meet(
        stream(
            BEGIN,
            artifact_update("old"),
            artifact_update("Hel", lastChunk=True),
            artifact_update("lo", append=True),
            artifact_update("!", append=True, lastChunk=True),
            DONE,
        )
    )

    (made,) = client.stream_message("hi").result().artifacts

    assert [part.text for part in made.parts] == ["Hel", "lo", "!"]
    assert made.text == "Hello!"


def test_b46_events_are_snapshots_that_outlive_the_client(agent_of, client_of):
    agent = agent_of(
        stream(BEGIN, artifact_update("Hel"), artifact_update("lo", append=True), DONE)
    )
    client = client_of(agent)
    kept = []

    client.send_message_streaming("hi", lambda event: kept.append(event) or True)
    client.close()

    assert [len(event.artifact_update.artifact.parts) for event in kept[1:3]] == [1, 1]
    assert kept[0].task.status.state is TaskState.SUBMITTED
    assert kept[0].task.artifacts in ([], None, ())


def test_b46_a_caller_may_edit_what_it_is_given(meet):
    """The task as assembled is the client's own."""
    _, client = meet(
        stream(BEGIN, artifact_update("Hel"), artifact_update("lo", append=True), DONE)
    )
    stream_ = client.stream_message("hi")

    next(stream_)
    first = next(stream_)
    first.artifact_update.artifact.parts.clear()
    stream_.task.artifacts.clear()

    assert stream_.result().artifacts[0].text == "Hello"


def test_b46_the_task_of_a_moment_is_not_changed_by_later_events(meet):
    _, client = meet(stream(BEGIN, WORK, DONE))
    stream_ = client.stream_message("hi")

    next(stream_)
    before = stream_.task
    rest = list(stream_)

    assert len(rest) == 2
    assert before.status.state is TaskState.SUBMITTED
    assert stream_.task.status.state is TaskState.COMPLETED


def test_b46_a_callback_runs_one_event_at_a_time_in_order(meet):
    _, client = meet(stream(BEGIN, WORK, DONE))
    threads, kinds = set(), []

    def see(event):
        threads.add(threading.current_thread())
        kinds.append(event.state)
        return True

    made = client.send_message_streaming("hi", see)

    assert kinds == [TaskState.SUBMITTED, TaskState.WORKING, TaskState.COMPLETED]
    assert len(threads) == 1
    assert made.text == "done"


# ---- odd events (B47, B48), several streams (B49) ----------------------------------------------


@pytest.mark.parametrize("odd", [{"weather": {"sun": True}}, {}, {"kind": "weather", "sun": True}])
def test_b47_an_event_of_an_unknown_kind_is_not_fatal(odd, meet):
    _, client = meet(stream(BEGIN, odd, DONE))

    seen = heard(lambda: client.stream_message("hi"))

    assert seen.error is None
    assert seen.task.text == "done"
    assert seen.task.id == "t1"
    assert not any(event.is_final for event in seen.events[:-1])


MALFORMED = {
    "no JSON": "data: {oops\n\n",
    "no envelope": "data: [1]\n\n",
    "neither result nor error": "data: " + envelope() + "\n\n",
    "an empty result": "data: " + envelope(result=None) + "\n\n",
    "another id": "data: " + envelope(id="not-ours", result=WORK) + "\n\n",
    "a task of the wrong shape": "data: " + envelope(result={"task": 5}) + "\n\n",
    "NaN": "data: " + envelope(result=WORK).replace('"c1"', "NaN") + "\n\n",
}


@pytest.mark.parametrize("how", MALFORMED)
def test_b48_a_malformed_frame_ends_the_stream_after_the_events_before_it(how, meet):
    """To drop it in silence is to lose what the agent said."""
    _, client = meet(stream(BEGIN, {"op": "chunk", "data": MALFORMED[how]}, DONE))

    seen = heard(lambda: client.stream_message("hi"))

    assert isinstance(seen.error, TransportProtocolError)
    assert len(seen.events) == 1


@pytest.mark.parametrize("operation", ["stream_message", "subscribe"])
def test_b44_an_event_of_another_task_is_not_ours(operation, meet):
    """Its end is not the end of ours, and its words are nobody's here."""
    stray = status_update("completed", "not yours")
    stray["statusUpdate"]["taskId"] = "t2"
    _, client = meet(stream(sent(task("working")), stray))

    seen = heard(lambda: getattr(client, operation)("t1"))

    assert isinstance(seen.error, TransportProtocolError)
    assert len(seen.events) == 1
    assert seen.stream.task.id == "t1"
    assert not seen.stream.task.is_terminal


def test_b49_each_of_several_streams_gets_all_events(meet):
    step = {"op": "wait", "event": "go", "s": 10}
    agent, client = meet(stream(sent(task("working")), step, WORK, DONE))

    with client.subscribe("t1") as one, client.subscribe("t1") as two:
        next(one)
        next(two)
        left = client.subscribe("t1")
        next(left)
        left.close()
        agent.fire("go")

        assert [len(list(one)), len(list(two))] == [2, 2]

    assert agent.methods == ["SubscribeToTask"] * 3


def test_b49_leaving_a_stream_cancels_no_task(meet):
    agent, client = meet(stream(BEGIN, WORK, end=(HOLD,)))

    with client.stream_message("hi") as stream_:
        next(stream_)

    assert agent.wait_for_end(agent.calls[0].request.connection, 2) == "client"
    assert agent.methods == ["SendStreamingMessage"]


def test_cancelling_a_stream_asks_the_agent_to_cancel_the_task(meet):
    agent, client = meet(
        methods={
            "SendStreamingMessage": stream(
                BEGIN,
                WORK,
                {"op": "wait", "event": "canceled", "s": 10},
                status_update("canceled"),
            ),
            "CancelTask": result(task("canceled")),
        }
    )

    with client.stream_message("hi") as stream_:
        next(stream_)
        answered = stream_.cancel("enough")
        agent.fire("canceled")
        list(stream_)

    assert answered.status.state is TaskState.CANCELED
    assert stream_.task.status.state is TaskState.CANCELED
    assert agent.methods == ["SendStreamingMessage", "CancelTask"]
    assert agent.calls[1].params["id"] == "t1"
    assert "enough" in str(agent.calls[1].params["metadata"])


def test_the_text_of_a_stream_comes_in_pieces_and_joined_is_the_answer(meet):
    _, client = meet(
        stream(
            BEGIN,
            status_update("working", "thinking"),
            artifact_update("Hel"),
            artifact_update("lo", append=True),
            status_update("completed"),
        )
    )

    stream_ = client.stream_message("hi")

    assert "".join(stream_.text()) == "Hello" == stream_.task.text


def test_the_texts_of_two_artifacts_stand_one_below_the_other_as_in_the_task(meet):
    _, client = meet(
        stream(
            BEGIN,
            artifact_update("a"),
            artifact_update("b", append=True),
            artifact_update("c", name="a2"),
            status_update("completed"),
        )
    )

    stream_ = client.stream_message("hi")

    assert list(stream_.text()) == ["a", "b", "\nc"]
    assert stream_.task.text == "ab\nc"


def test_the_raw_text_is_every_text_as_it_is_sent(meet):
    _, client = meet(
        stream(BEGIN, status_update("working", "thinking"), artifact_update("a"), DONE)
    )

    assert list(client.stream_message("hi").raw_text()) == ["thinking", "a", "done"]


@pytest.mark.parametrize("text", ["hi", ""])
def test_the_text_of_a_message_stream_is_the_message(text, meet):
    _, client = meet(stream({"message": message(text)}))

    assert "".join(client.stream_message("hi").text()) == text


def test_a_closed_stream_has_no_result(meet):
    _agent, client = meet(stream(BEGIN, end=(HOLD,)))
    stream_ = client.stream_message("hi")

    stream_.close()

    with pytest.raises(CallCancelledError):
        stream_.result()
    assert list(stream_) == []


def test_a_token_that_is_cancelled_already_opens_no_stream(meet):
    agent, client = meet(stream(BEGIN))
    token = CancelToken()
    token.cancel()

    seen = heard(lambda: client.stream_message("hi", cancel=token))

    assert isinstance(seen.error, CallCancelledError)
    assert eventually(lambda: agent.requests == [])


def test_an_error_that_ended_a_stream_is_given_again(meet):
    _, client = meet(stream(BEGIN, error_frame(-32603)))
    stream_ = client.stream_message("hi")
    next(stream_)

    for _ in range(3):
        with pytest.raises(A2ARpcError):
            next(stream_)
