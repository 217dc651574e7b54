"""Streams of a hosted agent over A2A."""

from __future__ import annotations

import http.client
import threading

import pytest

from protolink_sync.config import TransportConfig, TransportLimits
from protolink_sync.models import Artifact
from protolink_sync.server import Agent
from tests.server.a2a_calling import calling, message, model, said, state
from tests.server.hosting import LIMIT, Kitchen, card, in_background, wait_until
from tests.server.streaming import Theatre


def kinds(events):
    return [next(iter(event)) for event in events]


def texts(events):
    return [
        part["text"]
        for event in events
        if "artifactUpdate" in event
        for part in event["artifactUpdate"]["artifact"]["parts"]
    ]


def streams(caller, which="active_streams"):
    return caller.request("GET", "/healthz").json()["metrics"][which]


class Gated(Agent):
    """Its model gives pieces, each when the test says so."""

    heartbeat = 20.0

    def __init__(self, *pieces, **settings):
        super().__init__(card(), **settings)
        self.gate = threading.Semaphore(0)
        self.given = 0
        self.closed = threading.Event()
        self.infer(self._answer(pieces))

    def _answer(self, pieces):
        def answer(prompt):
            try:
                for piece in pieces:
                    while not self.gate.acquire(timeout=0.01):
                        if self.current_run().cancelled:
                            return
                    self.given += 1
                    yield piece
            finally:
                self.closed.set()

        return answer

    def let(self, number=1):
        self.gate.release(number)


def test_the_pieces_of_a_model_come_one_by_one():
    agent = Gated("Hel", "lo", "!")
    with calling(agent) as (caller, _):
        with caller.stream("SendStreamingMessage", message("x", contextId="c1")) as events:
            assert events.type == "text/event-stream; charset=utf-8"
            first, second = next(events), next(events)
            agent.let()
            third = next(events)
            assert agent.given == 1
            agent.let(2)
            rest = list(events)
        task = caller.result("GetTask", {"id": first["task"]["id"]})

    assert state(first["task"]) == "SUBMITTED"
    assert first["task"]["contextId"] == "c1"
    assert state(second["statusUpdate"]) == "WORKING"
    updates = [event["artifactUpdate"] for event in (third, *rest[:-1])]
    assert texts([third, *rest]) == ["Hel", "lo", "!", ""]
    assert [update.get("append", False) for update in updates] == [False, True, True, True]
    assert [update.get("lastChunk", False) for update in updates] == [False] * 3 + [True]
    assert len({update["artifact"]["artifactId"] for update in updates}) == 1
    assert kinds(rest[-1:]) == ["statusUpdate"]
    assert state(rest[-1]["statusUpdate"]) == "COMPLETED"
    # The same artifact, whole.
    (artifact,) = task["artifacts"]
    assert artifact["artifactId"] == updates[0]["artifact"]["artifactId"]
    assert artifact["parts"] == [{"text": "Hello!"}]
    assert task["status"] == rest[-1]["statusUpdate"]["status"]


def test_what_a_streaming_handler_tells_is_told():
    class Guide(Agent):
        def handle_task_streaming(self, task):
            yield {"type": "task_progress", "progress": 40, "message": "half way"}
            yield {"n": 1}
            yield {"type": "task_llm_stream", "llm_event_type": "llm_chunk", "content": "loose"}
            artifact = Artifact("a1").add_text("told")
            task.add_artifact(artifact)
            yield {"type": "task_artifact_update", "artifact": artifact.to_dict()}
            yield {"type": "task_artifact_update", "artifact": "none"}
            task.add_artifact(Artifact("a2").add_text("only kept"))
            return task.complete("the end")

    with calling(Guide(card())) as (caller, _):
        with caller.stream("SendStreamingMessage", message("x")) as stream:
            events = list(stream)
        id = events[0]["task"]["id"]
        task = caller.result("GetTask", {"id": id})

    _, _, half, number, loose, whole, told, odd, kept, last = events
    assert said(half["statusUpdate"]) == "half way"
    assert half["statusUpdate"]["metadata"]["protolinkEvent"]["progress"] == 40
    assert number["statusUpdate"]["metadata"] == {"protolinkEvent": {"n": 1}}
    assert texts([loose, whole]) == ["loose", ""]
    assert told["artifactUpdate"]["artifact"]["artifactId"] == "a1"
    assert odd["statusUpdate"]["metadata"]["protolinkEvent"]["artifact"] == "none"
    assert kept["artifactUpdate"]["artifact"]["artifactId"] == "a2"
    assert said(last["statusUpdate"]) == "the end"
    kept_texts = ["".join(p["text"] for p in a["parts"]) for a in task["artifacts"]]
    assert sorted(kept_texts) == ["loose", "only kept", "told"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("raise secret", "FAILED"),
        ("bytes x", "FAILED"),
        ("exit x", "FAILED"),
        ("tell x", "COMPLETED"),
        ("untyped x", "COMPLETED"),
    ],
)
def test_a_stream_ends_with_the_state_of_the_task(text, expected):
    with calling(Theatre()) as (caller, _):
        with caller.stream("SendStreamingMessage", message(text)) as stream:
            events = list(stream)
        task = caller.result("GetTask", {"id": events[0]["task"]["id"]})

    assert state(events[-1]["statusUpdate"]) == state(task) == expected
    assert "secret" not in str(task["status"])


def test_a_stream_that_is_refused_is_a_plain_error():
    with calling(Kitchen()) as (caller, _):
        done = caller.send("echo x")
        with caller.stream("SendStreamingMessage", message("x", taskId=done["id"])) as stream:
            body = stream.response.read()

    assert stream.type == "application/json"
    assert b"-32004" in body


def test_a_client_that_leaves_does_not_end_the_task():
    """B49: it may come back, and follow on."""
    agent = Gated("one", " two", " three")
    with calling(agent) as (caller, _):
        first = caller.stream("SendStreamingMessage", message("x"))
        id = next(first)["task"]["id"]
        agent.let()
        assert kinds([next(first), next(first)]) == ["statusUpdate", "artifactUpdate"]
        first.close()
        first.response.close()
        assert streams(caller, "streams_started") == 1
        wait_until(lambda: streams(caller) == 0)
        assert state(caller.result("GetTask", {"id": id})) == "WORKING"

        with caller.stream("SubscribeToTask", {"id": id}) as again:
            seen = next(again)["task"]
            agent.let(2)
            rest = list(again)

    assert seen["artifacts"][0]["parts"] == [{"text": "one"}]
    assert texts(rest) == [" two", " three", ""]
    assert state(rest[-1]["statusUpdate"]) == "COMPLETED"


def test_many_may_follow_one_task():
    agent = Gated("a", "b")
    with calling(agent) as (caller, _), caller.stream("SendStreamingMessage", message("x")) as one:
        id = next(one)["task"]["id"]
        next(one)
        with (
            caller.stream("SubscribeToTask", {"id": id}) as two,
            caller.stream("SubscribeToTask", {"id": id}) as three,
        ):
            assert next(two)["task"]["id"] == next(three)["task"]["id"] == id
            agent.let(2)
            told = [list(stream) for stream in (one, two, three)]

    assert told[0] == told[1] == told[2]
    assert texts(told[0]) == ["a", "b", ""]


def test_cancelling_ends_the_streams_and_the_handler():
    agent = Gated("a", "b")
    with calling(agent) as (caller, _), caller.stream("SendStreamingMessage", message("x")) as one:
        id = next(one)["task"]["id"]
        agent.let()
        assert kinds([next(one), next(one)]) == ["statusUpdate", "artifactUpdate"]
        caller.result("CancelTask", {"id": id, "metadata": {"reason": "enough"}})
        rest = list(one)
        assert agent.closed.wait(LIMIT)

    assert [state(event["statusUpdate"]) for event in rest] == ["CANCELED"]
    assert said(rest[0]["statusUpdate"]) == "enough"


def test_a_task_that_waits_for_input_can_be_followed_till_it_goes_on():
    with calling(Kitchen()) as (caller, _):
        with caller.stream("SendStreamingMessage", message("need")) as stream:
            events = list(stream)
        id = events[0]["task"]["id"]
        assert state(events[-1]["statusUpdate"]) == "INPUT_REQUIRED"
        with caller.stream("SubscribeToTask", {"id": id}) as follower:
            assert state(next(follower)["task"]) == "INPUT_REQUIRED"
            with caller.stream("SendStreamingMessage", message("echo x", taskId=id)) as second:
                # Not "input-required" any more: readers stop at that.
                assert state(next(second)["task"]) == "WORKING"
                assert state(list(second)[-1]["statusUpdate"]) == "COMPLETED"
            assert state(list(follower)[-1]["statusUpdate"]) == "COMPLETED"


def test_a_silent_stream_sends_comments():
    agent = Gated("a")
    agent.heartbeat = 0.02
    with calling(agent) as (caller, _), caller.stream("SendStreamingMessage", message("x")) as one:
        next(one)
        next(one)
        assert b": \n" in (one.line(), one.line())
        agent.let()
        assert state(list(one)[-1]["statusUpdate"]) == "COMPLETED"


def test_line_ends_of_python_do_not_break_an_event():
    with calling(model()) as (caller, _):
        with caller.stream("SendStreamingMessage", message("a\u2028b\u0085c")) as stream:
            events = list(stream)
        raw = caller.stream("SendStreamingMessage", message("\u2028"))
        with raw:
            body = raw.response.read()

    assert "".join(texts(events)).split() == ["a", "b", "c"]
    assert len(body.decode().splitlines()) == len(body.split(b"\n")) - 1


def test_closing_the_host_cancels_what_is_streamed():
    agent = Gated("a")
    with (
        calling(agent) as (caller, server),
        caller.stream("SendStreamingMessage", message("x")) as stream,
    ):
        next(stream)
        next(stream)
        server.close()
        rest = list(stream)

    assert [state(event["statusUpdate"]) for event in rest] == ["CANCELED"]
    assert agent.closed.wait(LIMIT)


def test_closing_the_host_lets_a_send_that_waits_end_in_its_time():
    agent = Kitchen(config=TransportConfig(shutdown_timeout=LIMIT))
    with calling(agent) as (caller, server):
        sent = in_background(caller.send, "stubborn")
        assert agent.started.acquire(timeout=LIMIT)
        closed = in_background(server.close)
        agent.gate.set()
        task = sent()
        closed()

    assert said(task) == "waited"


def test_closing_the_host_stops_a_send_that_takes_longer():
    agent = Kitchen(config=TransportConfig(shutdown_timeout=0.05))
    with calling(agent) as (caller, server):
        sent = in_background(caller.rpc, "SendMessage", message("wait"))
        assert agent.started.acquire(timeout=LIMIT)
        server.close()
        assert agent.ended.acquire(timeout=LIMIT)
        with pytest.raises((OSError, http.client.HTTPException)):
            sent()


def test_too_many_streams_are_refused_and_leave_the_task_alone():
    config = TransportConfig(limits=TransportLimits(max_concurrent_streams=1))
    agent = Gated("a", config=config)
    with calling(agent) as (caller, _), caller.stream("SendStreamingMessage", message("x")) as one:
        id = next(one)["task"]["id"]
        assert caller.code("SubscribeToTask", {"id": id}) == -32603
        assert caller.code("SendStreamingMessage", message("y")) == -32603
        assert caller.result("ListTasks")["totalSize"] == 1
        agent.let()
        assert state(list(one)[-1]["statusUpdate"]) == "COMPLETED"


def test_too_many_tasks_at_a_time_are_refused():
    config = TransportConfig(limits=TransportLimits(max_concurrent_requests=2))
    agent = Kitchen(config=config)
    with calling(agent) as (caller, _):
        started = [caller.start("wait") for _ in range(2)]
        sent = {**message("wait"), "configuration": {"returnImmediately": True}}
        assert caller.code("SendMessage", sent) == -32603
        agent.gate.set()
        for task in started:
            wait_until(lambda: state(caller.result("GetTask", {"id": task["id"]})) == "COMPLETED")  # noqa: B023
        wait_until(lambda: "result" in caller.rpc("SendMessage", sent).json())


def test_an_event_beyond_the_limit_ends_the_stream_but_not_the_task():
    config = TransportConfig(limits=TransportLimits(max_event_bytes=2000))
    agent = Gated("x" * 3000, config=config)
    with calling(agent) as (caller, _):
        with caller.stream("SendStreamingMessage", message("x")) as stream:
            id = next(stream)["task"]["id"]
            agent.let()
            rest = list(stream)
        wait_until(lambda: state(caller.result("GetTask", {"id": id})) == "COMPLETED")

    assert rest[-1]["code"] == -32603
    assert "max_event_bytes" in rest[-1]["message"]


def test_a_reader_who_is_slow_gets_everything():
    """The handler waits for who follows; nothing is left out."""

    class Many(Agent):
        def handle_task_streaming(self, task):
            for number in range(2000):
                yield {"type": "task_progress", "message": str(number)}
            return task.complete("done")

    with (
        calling(Many(card())) as (caller, _),
        caller.stream("SendStreamingMessage", message("x")) as stream,
    ):
        next(stream)
        next(stream)
        numbers = [said(event["statusUpdate"]) for event in stream]

    assert numbers == [*map(str, range(2000)), "done"]
