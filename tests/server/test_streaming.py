"""Streams of a hosted agent over HTTP: what is told, in which form, and how it is refused."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading

import pytest

from protolink_sync import AgentClient
from protolink_sync.config import TransportConfig, TransportLimits
from protolink_sync.errors import TransportRemoteError
from protolink_sync.models import Task, TaskState
from tests.server.hosting import Caller, raw
from tests.server.streaming import (
    LIMIT,
    Agent,
    Theatre,
    begin,
    card,
    connected,
    dechunked,
    envelopes,
    request,
    streaming,
    text_task,
)
from tests.server.test_wsgi import call

COMMON = {"event_id", "type", "task_id", "timestamp", "metadata"}


def kinds(events):
    return [event.get("llm_event_type") or event.get("type") for event in events]


# ---- what is told ----


def test_the_events_come_in_order_and_the_task_last():
    with streaming(Theatre()) as (client, server):
        stream = begin(client, server, "many 500")
        first, *events, last = stream

    assert (first["previous_state"], first["new_state"]) == ("submitted", "working")
    assert [event["n"] for event in events] == [*range(1, 501)]
    assert (last["previous_state"], last["new_state"], last["final"]) == (
        "working",
        "completed",
        True,
    )
    assert stream.result().messages[-1].text == "500"
    assert set(last["metadata"]) == {"task"}


def test_each_piece_of_an_answer_is_an_event():
    agent = Agent(card())

    @agent.infer
    def answer(prompt):
        yield "Hello "
        yield prompt

    with streaming(agent) as (client, server):
        events = list(begin(client, server, Task.create_infer(prompt="you")))
        pieces = list(begin(client, server, Task.create_infer(prompt="you")).text())

    assert kinds(events) == [
        "task_status_update",
        "llm_chunk",
        "llm_chunk",
        "llm_final",
        "task_artifact_update",
        "task_status_update",
    ]
    assert all(set(event) >= COMMON for event in events)
    assert [event["content"] for event in events[1:4]] == ["Hello ", "you", "Hello you"]
    assert {event["agent_name"] for event in events[1:4]} == {"kitchen"}
    assert [event["final"] for event in events[1:4]] == [False, False, True]
    assert pieces == ["Hello ", "you"]


def test_a_tool_call_brings_its_artifact():
    agent = Agent(card())

    @agent.tool
    def add(a: int, b: int) -> int:
        return a + b

    with streaming(agent) as (client, server):
        stream = begin(client, server, Task.create_tool_call("add", {"a": 2, "b": 3}))
        events = list(stream)

    assert kinds(events) == [
        "task_status_update",
        "task_progress",
        "task_artifact_update",
        "task_status_update",
    ]
    assert events[2]["artifact"] == stream.task.artifacts[0].to_dict()
    assert stream.task.get_output() == 5


def test_what_a_typed_event_has_not_is_added():
    with streaming(Theatre()) as (client, server):
        task = text_task("short x")
        _, event, _ = begin(client, server, task)

    assert set(event) >= COMMON
    assert (event["progress"], event["task_id"]) == (10, task.id)


def test_a_final_status_of_the_handler_gets_the_task():
    class Own(Agent):
        def handle_task_streaming(self, task):
            task.fail("no")
            yield {"type": "task_status_update", "new_state": "failed", "final": True}
            raise AssertionError("nobody asks for more")

    with streaming(Own(card())) as (client, server):
        task = begin(client, server, "x").result()

    assert (task.state, task.metadata["error"]) == (TaskState.FAILED, "no")


def test_an_async_generator_may_be_the_handler():
    class Async(Agent):
        async def handle_task_streaming(self, task):
            for n in range(3):
                await asyncio.sleep(0)
                yield {"n": n, "task": self.current_run().task_id}

    with streaming(Async(card())) as (client, server):
        task = text_task("x")
        _, *events, last = begin(client, server, task)

    assert events == [{"n": n, "task": task.id} for n in range(3)]
    assert last["new_state"] == "completed"


def test_an_async_generator_is_one_task_from_begin_to_end():
    """Else a tracing span, a time-out or a group of tasks around a yield fails when it is left."""
    variable = contextvars.ContextVar("variable", default=0)
    cleaned = threading.Event()
    tasks = set()

    class Async(Agent):
        async def handle_task_streaming(self, task):
            token = variable.set(1)
            try:
                for _ in range(int(task.messages[0].text)):
                    tasks.add(asyncio.current_task())
                    yield {"n": variable.get()}
            finally:
                variable.reset(token)
                await asyncio.sleep(0)
                cleaned.set()

    with streaming(Async(card())) as (client, server):
        _, *events, last = begin(client, server, "3")
        assert (last["new_state"], cleaned.is_set(), len(tasks)) == ("completed", True, 1)

        cleaned.clear()
        for _ in begin(client, server, "1000000"):
            break
        assert cleaned.wait(LIMIT)
    assert events == [{"n": 1}] * 3


def test_what_an_async_generator_raises_is_told(caplog):
    caplog.set_level(logging.CRITICAL)

    class Async(Agent):
        async def handle_task_streaming(self, task):
            yield {"n": 1}
            raise LookupError("gone")

    with streaming(Async(card())) as (client, server):
        stream = begin(client, server, "x")
        with pytest.raises(TransportRemoteError, match="LookupError: gone"):
            list(stream)

    assert stream.events == 2


def test_a_task_that_has_ended_is_told_as_it_is():
    with streaming(Theatre()) as (client, server):
        (event,) = begin(client, server, text_task("x").complete("y"))

    assert (event["previous_state"], event["new_state"]) == (None, "completed")


def test_a_key_is_ignored():
    """Source: capture sse_stream_with_idempotency_key."""
    agent = Theatre()
    with streaming(agent) as (_, server), Caller(server.url) as caller:
        task = text_task("short x")
        for _ in range(2):
            caller.request("POST", "/tasks/stream", task.to_dict(), Idempotency_Key="k")

    assert agent.executions[task.id] == 2


# ---- in which form ----


def test_the_head_says_that_it_is_a_stream():
    with streaming(Theatre()) as (_, server), Caller(server.url) as caller:
        task = text_task("short x").to_dict()
        reply = caller.request("POST", "/tasks/stream", task, X_Protolink_Request_ID="r1")

        assert caller.request("GET", "/healthz").json()["capabilities"]["streaming"] is True
        assert server.connections == 1
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert reply.headers["cache-control"] == "no-cache"
    assert reply.headers["x-accel-buffering"] == "no"
    assert reply.headers["x-protolink-request-id"] == "r1"
    assert reply.headers["transfer-encoding"] == "chunked"
    for envelope in envelopes(reply.body):
        assert list(envelope) == ["jsonrpc", "id", "ok", "result", "final"]
        assert (envelope["jsonrpc"], envelope["id"], envelope["ok"]) == ("2.0", "r1", True)
    assert [envelope["final"] for envelope in envelopes(reply.body)] == [False, False, True]


def test_without_a_request_id_it_is_null():
    """Source: capture sse_stream_without_request_id."""
    with streaming(Theatre()) as (_, server):
        answer = raw(server.url, request("short x", headers="Connection: close\r\n"), closes=False)

    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"X-Protolink-Request-ID: \r\n" in head
    assert {e["id"] for e in envelopes(b"".join(dechunked(body)))} == {None}


def test_head_and_first_event_come_together_and_at_once():
    agent = Theatre()
    with streaming(agent) as (_, server), connected(server) as sock:
        sock.sendall(request("wait"))
        head, _, body = sock.recv(65536).partition(b"\r\n\r\n")
        agent.gate.set()

    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b'"new_state":"working"' in body


def test_a_client_of_http_1_0_reads_to_the_end_of_the_connection():
    with streaming(Theatre()) as (_, server):
        sent = request("short x", version="1.0", headers="Connection: keep-alive\r\n")
        head, _, body = raw(server.url, sent, closes=False).partition(b"\r\n\r\n")

    assert b"Transfer-Encoding" not in head
    assert b"Connection: close" in head
    assert len(envelopes(body)) == 3


def test_what_some_readers_take_for_the_end_of_a_line_is_escaped():
    """The peer's reader uses str.splitlines(). Source: capture sse_stream_unicode."""
    text = "\u03b3 \u2028 \u2029 \x85 \x0b \x1c \n \r\n \U0001f600"
    with streaming(Theatre()) as (client, server), Caller(server.url) as caller:
        task = text_task(f"short {text}")
        body = caller.request("POST", "/tasks/stream", task.to_dict()).body
        events = list(begin(client, server, task))

    assert len(body.decode().splitlines()) == 6
    assert events[1]["message"] == text


def test_the_application_keeps_to_pep_3333():
    app = Theatre().wsgi_app()

    status, headers, body = call(app, path="/tasks/stream", body=request("many 30")[-400:])
    assert status == 400
    status, headers, body = call(
        app, path="/tasks/stream", body=request("many 30").partition(b"\r\n\r\n")[2]
    )

    assert status == 200
    assert "Content-Length" not in headers
    assert len(envelopes(body)) == 32


@pytest.mark.parametrize(("told", "served"), [("http", "http"), ("sse", "sse"), ("grpc", "http")])
def test_the_card_says_how_it_is_spoken_to(told, served):
    """Both are spoken at one address; an author who wants callers to stream says sse."""
    with streaming(Theatre()) as (client, server):
        assert client.get_agent_card(server.url).capabilities.streaming is True
    with streaming(Agent(card(transport=told))) as (client, server):
        assert client.get_agent_card(server.url).transport == served


def test_plain_http_still_says_that_it_does_not_stream():
    with (
        streaming(Theatre()) as (_, server),
        AgentClient("http") as client,
        pytest.raises(NotImplementedError),
    ):
        client.send_task_streaming(server.url, text_task("x"))


# ---- what goes wrong ----


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("{", "not JSON"),
        ([], "expected an object"),
        ({"messages": [{"parts": [{}]}]}, "$.messages[0].parts[0]"),
    ],
)
def test_what_is_no_task_is_a_400(body, words):
    with streaming(Theatre()) as (_, server), Caller(server.url) as caller:
        reply = caller.request("POST", "/tasks/stream", body)

        assert caller.request("GET", "/healthz").json()["metrics"]["active_streams"] == 0
    assert reply.status == 400
    assert words in reply.error


def test_without_credentials_it_is_a_401():
    agent = Theatre(authenticate=lambda environ: None)
    with streaming(agent) as (_, server), Caller(server.url) as caller:
        reply = caller.request("POST", "/tasks/stream", {})

    assert (reply.status, reply.error) == (401, "Missing credentials")


def test_a_task_is_worked_on_once_at_a_time():
    agent = Theatre()
    with streaming(agent) as (client, server), Caller(server.url) as caller:
        task = text_task("wait")
        stream = begin(client, server, task)
        agent.started.acquire()

        again = caller.request("POST", "/tasks/stream", task.to_dict())
        unary = caller.send(task)

        agent.gate.set()
        assert stream.result().state is TaskState.COMPLETED
        assert begin(client, server, task).result().state is TaskState.COMPLETED
    assert (again.status, unary.status) == (409, 409)
    assert "being executed already" in again.error


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("raise gone", "LookupError", "gone"),
        ("bytes", "TypeError", "bytes"),
        ("exit", "SystemExit", "out"),
    ],
)
def test_an_exception_is_the_last_envelope(text, kind, words, caplog):
    """Source: capture sse_stream_handler_raises."""
    caplog.set_level(logging.CRITICAL)
    with streaming(Theatre()) as (client, server), Caller(server.url) as caller:
        stream = begin(client, server, text)
        came = [next(stream), next(stream)]
        with pytest.raises(TransportRemoteError) as caught:
            next(stream)
        body = caller.request("POST", "/tasks/stream", text_task(text).to_dict()).body
        assert caller.request("GET", "/healthz").status == 200

    assert kinds(came) == ["task_status_update", "task_progress"]
    assert caught.value.error_type == kind
    assert words in caught.value.error_message
    last = envelopes(body)[-1]
    assert (last["ok"], last["final"]) == (False, True)
    assert set(last["error"]) == {"message", "type"}


def test_an_event_that_is_too_large_is_the_last_envelope():
    """Source: capture sse_oversize_event_server_limit."""
    config = TransportConfig(limits=TransportLimits(max_event_bytes=5000))
    with streaming(Theatre(config=config)) as (client, server):
        stream = begin(client, server, "big 6000")
        with pytest.raises(TransportRemoteError) as caught:
            list(stream)

        assert begin(client, server, "short x").result().state is TaskState.COMPLETED
    assert caught.value.error_type == "TransportLimitError"
    assert stream.events == 2


def test_an_untyped_final_ends_it_without_a_task():
    with streaming(Theatre()) as (client, server):
        assert list(begin(client, server, "untyped"))[2:] == [{"final": True}]
