"""Streams of agents in the same process: what is told, ends, leaving, back-pressure."""

from __future__ import annotations

import gc
import logging
import threading
import time

import pytest

from protolink_sync import AgentClient, CancelToken
from protolink_sync.config import TransportConfig, TransportLimits
from protolink_sync.errors import (
    CallCancelledError,
    ClientClosedError,
    TransportConnectionError,
    TransportLimitError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import AgentCard, Artifact, Message, Task, TaskState
from protolink_sync.server import Agent, RefusedError, runtime_agent
from protolink_sync.transport import RuntimeTransport
from protolink_sync.wire import TransportRequestContext, local
from tests.transport.scenes import LIMIT, wait_until

URL = "runtime://kitchen"


def text_task(text: str) -> Task:
    return Task.create(Message.user(text))


def workers() -> int:
    names = ("protolink-stream", "protolink-runtime")
    return sum(thread.name.startswith(names) for thread in threading.enumerate())


class Kitchen(Agent):
    """Does what the first word of the task's text says."""

    def __init__(self, **settings):
        super().__init__(AgentCard("kitchen", "does what it is told", URL), **settings)
        self.gone = threading.Event()
        self.made = 0
        self.reason = None

    def handle_task_streaming(self, task):
        word, _, rest = task.get_last_item().text.partition(" ")
        if word == "many":
            for self.made in range(int(rest)):
                yield {"type": "task_progress", "message": f"step {self.made}"}
        elif word == "raise":
            yield {"type": "task_progress", "message": "before"}
            raise RuntimeError(rest)
        elif word == "wait":
            run = self.current_run()
            try:
                wait_until(lambda: run.cancelled, LIMIT)
            finally:
                self.reason = run.reason
                self.gone.set()
        elif word == "need":
            return task.require_input(Message.agent("which city?"))
        elif word == "nested":
            yield {"type": "task_llm_stream", "llm_event_type": "llm_final", "final": True}
            yield {"type": "task_progress", "message": "after"}
        elif word == "untyped":
            yield {"final": True, "n": 1}
            yield {"n": 2}
        elif word == "own":
            task.begin()
            yield {"type": "task_status_update", "new_state": "working", "final": False}
            yield {
                "type": "task_status_update",
                "new_state": "failed",
                "final": True,
                "metadata": {"task": task.fail("no").to_dict()},
            }
        elif word == "bytes":
            yield {"n": b"x"}
        elif word == "big":
            yield "x" * int(rest)
        else:
            return (yield from super().handle_task_streaming(task))


@pytest.fixture
def agent():
    agent = Kitchen()
    with agent.serve(URL):
        yield agent


@pytest.fixture
def client():
    with AgentClient("runtime", URL, timeout=LIMIT) as client:
        yield client


def kinds(events) -> list[str]:
    return [event.get("llm_event_type") or event.get("type") for event in events]


# ---- what is told ------------------------------------------------------------------------------


def test_a_handlers_events_stand_between_the_first_status_and_the_last(agent, client):
    stream = client.send_task_streaming(URL, text_task("many 500"))
    first, *events, last = stream

    assert (first["previous_state"], first["new_state"]) == ("submitted", "working")
    assert [event["message"] for event in events] == [f"step {n}" for n in range(500)]
    assert (last["previous_state"], last["new_state"], last["final"]) == (
        "working",
        "completed",
        True,
    )
    assert stream.task.state is TaskState.COMPLETED
    assert stream.task.metadata["run_id"] == stream.task.id


def test_pieces_of_an_answer_come_one_by_one(agent, client):
    @agent.infer
    def answer(prompt):
        yield "Hello "
        yield prompt

    stream = client.send_task_streaming(URL, Task.create_infer(prompt="you"))
    events = list(stream)

    assert kinds(events) == [
        "task_status_update",
        "llm_chunk",
        "llm_chunk",
        "llm_final",
        "task_artifact_update",
        "task_status_update",
    ]
    assert events[3]["content"] == "Hello you"
    assert stream.task.get_output() == "Hello you"
    again = client.send_task_streaming(URL, Task.create_infer(prompt="you"))
    assert list(again.text()) == ["Hello ", "you"]


def test_an_answer_that_is_a_value(agent, client):
    agent.infer(lambda prompt: {"asked": prompt})

    stream = client.send_task_streaming(URL, Task.create_infer(prompt="x"))

    assert kinds(list(stream))[1:-1] == ["llm_final", "task_artifact_update"]
    assert stream.task.get_output() == {"asked": "x"}


def test_an_async_generator_answers_as_it_goes(agent, client):
    more = threading.Event()

    @agent.infer
    async def answer(prompt):
        yield "one "
        assert more.wait(LIMIT)
        yield "two"

    pieces = client.send_task_streaming(URL, Task.create_infer(prompt="x")).text()

    assert next(pieces) == "one "
    more.set()
    assert list(pieces) == ["two"]


def test_a_tool_call_is_told(agent, client):
    @agent.tool
    def add(a: int, b: int) -> int:
        return a + b

    stream = client.send_task_streaming(URL, Task.create_tool_call("add", {"a": 1, "b": 2}))
    events = list(stream)

    assert kinds(events)[1:-1] == ["task_progress", "task_artifact_update"]
    assert events[1]["message"] == "Executing tool: add"
    assert stream.result().get_output() == 3


def test_a_handler_that_does_not_stream_is_told_as_a_whole(client):
    class Plain(Agent):
        def handle_task(self, task):
            task.begin()
            return task.add_artifact(Artifact(name="made").add_text("x")).complete("done")

    with Plain(AgentCard("plain", "d", URL)).serve(URL):
        stream = client.send_task_streaming(URL, text_task("x"))
        events = list(stream)

    assert kinds(events) == ["task_status_update", "task_artifact_update", "task_status_update"]
    assert stream.task.messages[-1].text == "done"


@pytest.mark.parametrize("form", ["async", "list"])
def test_other_forms_of_handlers(client, form):
    class Streams(Agent):
        if form == "async":

            async def handle_task_streaming(self, task):
                yield {"n": 1}
                yield {"n": 2}

        else:

            def handle_task_streaming(self, task):
                return [{"n": 1}, {"n": 2}]

    with Streams(AgentCard("s", "d", URL)).serve(URL):
        events = list(client.send_task_streaming(URL, text_task("x")))

    assert events[1:-1] == [{"n": 1}, {"n": 2}]


def test_the_card_says_that_it_streams(agent, client):
    assert client.get_agent_card(URL).capabilities.streaming is True


# ---- ends --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "state"),
    [("need", TaskState.INPUT_REQUIRED), ("own", TaskState.FAILED), ("other", TaskState.COMPLETED)],
)
def test_each_final_status_is_an_end(agent, client, text, state):
    assert client.send_task_streaming(URL, text_task(text)).result().state is state


def test_a_handler_may_tell_its_own_end(agent, client):
    events = list(client.send_task_streaming(URL, text_task("own")))

    assert [event["new_state"] for event in events] == ["working", "failed"]


def test_a_nested_final_is_none(agent, client):
    events = list(client.send_task_streaming(URL, text_task("nested")))

    assert kinds(events) == [
        "task_status_update",
        "llm_final",
        "task_progress",
        "task_status_update",
    ]


def test_an_untyped_final_is_one(agent, client):
    stream = client.send_task_streaming(URL, text_task("untyped"))

    assert list(stream)[1:] == [{"final": True, "n": 1}]
    with pytest.raises(TransportProtocolError, match="without a final status"):
        stream.result()


def test_a_task_that_has_ended_is_told_as_it_is(agent, client):
    task = text_task("many 3").fail("before")
    [event] = client.send_task_streaming(URL, task)

    assert (event["previous_state"], event["new_state"]) == (None, "failed")


@pytest.mark.parametrize(("text", "words"), [("raise kaput", "kaput"), ("bytes", "bytes")])
def test_an_error_comes_after_the_events_before_it(agent, client, text, words, caplog):
    caplog.set_level(logging.CRITICAL, "protolink_sync.server")
    stream, seen = client.send_task_streaming(URL, text_task(text)), []
    with pytest.raises(TransportRemoteError, match=words):
        seen += stream

    assert seen
    with pytest.raises(TransportRemoteError, match=words):
        next(stream)


def test_nobody_is_served_there(client):
    with pytest.raises(TransportConnectionError, match="serves no agent"):
        client.send_task_streaming("runtime://nobody", text_task("x"))


def test_a_task_streams_once_at_a_time(agent, client):
    task = text_task("wait")
    with client.send_task_streaming(URL, task) as stream:
        next(stream)
        with pytest.raises(TransportRemoteError, match="executed already"):
            list(client.send_task_streaming(URL, task))


# ---- cancelling and leaving --------------------------------------------------------------------


def test_the_task_is_cancelled_while_its_stream_runs(agent, client):
    stream = client.send_task_streaming(URL, text_task("wait"))
    next(stream)

    assert stream.cancel("enough").state is TaskState.CANCELED
    [last] = stream
    assert (last["new_state"], last["metadata"]["cancel_reason"]) == ("canceled", "enough")
    assert stream.task.state is TaskState.CANCELED


@pytest.mark.parametrize("how", ["close", "break", "drop", "token", "client", "idle"])
def test_leaving_frees_the_reader_and_tells_the_handler(agent, how):
    token = CancelToken()
    client = AgentClient("runtime", URL, timeout=LIMIT)
    words = {"idle_timeout": 0.2} if how == "idle" else {}
    stream = client.send_task_streaming(URL, text_task("wait"), cancel=token, **words)
    if how == "break":
        for _ in stream:
            break
    else:
        next(stream)
    begin = time.monotonic()
    if how == "close":
        stream.close()
    elif how == "token":
        token.cancel()
    elif how == "client":
        client.close()
    elif how == "idle":
        with pytest.raises(TransportTimeoutError, match="idle_timeout"):
            next(stream)
    ends = {"token": CallCancelledError, "client": ClientClosedError}
    if how in ends:
        with pytest.raises(ends[how]):
            next(stream)
    del stream
    gc.collect()

    assert agent.gone.wait(1)
    assert agent.reason == "the stream was left"
    assert time.monotonic() - begin < 3
    client.close()
    assert wait_until(lambda: workers() == 0, 1)


def test_leaving_a_busy_handler_closes_it_at_its_next_event(agent, client):
    stream = client.send_task_streaming(URL, text_task("many 1000000"))
    next(stream)
    stream.close()
    client.close()

    assert wait_until(lambda: workers() == 0, 1)
    assert agent.made < 999_999


def test_leaving_one_stream_does_not_harm_the_next_run_of_its_thread(agent, client):
    for _ in range(50):
        client.send_task_streaming(URL, text_task("many 300")).close()
        stream = client.send_task_streaming(URL, text_task("many 3"))
        assert len(list(stream)) == 5


# ---- limits ------------------------------------------------------------------------------------


def test_a_handler_works_only_a_little_ahead(agent, client):
    stream = client.send_task_streaming(URL, text_task("many 100000"))
    next(stream)
    last = -1
    while last != agent.made:  # it stands still
        last = agent.made
        threading.Event().wait(0.05)

    assert agent.made < 2000
    assert [event["message"] for event, _ in zip(stream, range(3000), strict=False)] == [
        f"step {n}" for n in range(3000)
    ]
    stream.close()


@pytest.mark.parametrize("side", ["agent", "client"])
def test_an_event_beyond_a_limit(side):
    config = TransportConfig(limits=TransportLimits(max_event_bytes=10_000))
    agent = Kitchen(config=config if side == "agent" else None)
    transport = RuntimeTransport(config=config if side == "client" else None)
    with agent.serve(URL), transport, AgentClient(transport) as client:
        stream = client.send_task_streaming(URL, text_task("big 20000"))
        kind = TransportRemoteError if side == "agent" else TransportLimitError
        with pytest.raises(kind, match="max_event_bytes"):
            list(stream)


def test_two_streams_and_a_call_at_once(agent, client):
    streams = [client.send_task_streaming(URL, text_task("many 200")) for _ in range(2)]
    assert client.send_task(URL, text_task("other")).state is TaskState.COMPLETED
    for pair in zip(*streams, strict=True):
        assert len(pair) == 2
    assert all(stream.task.state is TaskState.COMPLETED for stream in streams)


# ---- the host ----------------------------------------------------------------------------------


def told(path, data=None, *, method="POST") -> list[tuple[object, bool]]:
    context = TransportRequestContext("op", URL, "1")
    body = None if data is None else local.dump_data(data)
    replies = runtime_agent(URL).stream(method, path, body)
    return [local.decode_event(reply, context) for reply in replies]


@pytest.mark.parametrize(
    ("path", "data", "words"),
    [
        ("/nowhere", None, "no endpoint"),
        ("/tasks/", None, "not answer with a stream"),
        ("/tasks/stream", [], "expected an object"),
    ],
)
def test_a_refused_stream_says_why(agent, path, data, words):
    with pytest.raises(RefusedError, match=words):
        told(path, data)


def test_exactly_the_last_event_is_final(agent):
    replies = told("/tasks/stream", text_task("many 3"))

    assert [final for _, final in replies] == [False] * 4 + [True]


def test_a_unary_call_to_the_stream_is_refused(agent):
    with pytest.raises(RefusedError, match="/tasks/stream answers with a stream"):
        runtime_agent(URL).begin("POST", "/tasks/stream", local.dump_data({}), None)
