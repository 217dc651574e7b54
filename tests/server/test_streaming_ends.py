"""Streams of a hosted agent over HTTP: leaving, cancelling, heartbeats, limits, the host's end."""

from __future__ import annotations

import gc
import io
import ssl
import threading
import time
import wsgiref.util

import pytest

from protolink_sync import AgentClient, CancelToken
from protolink_sync.config import TransportConfig, TransportLimits
from protolink_sync.errors import (
    CallCancelledError,
    StreamInterruptedError,
    TransportConnectionError,
    TransportRemoteError,
)
from protolink_sync.models import TaskState
from protolink_sync.security import TLSConfig
from protolink_sync.server import RefusedError, runtime_agent
from protolink_sync.wire import TransportRequestContext, local
from tests.server.hosting import LIMIT, Caller, in_background
from tests.server.streaming import (
    Agent,
    Theatre,
    begin,
    card,
    connected,
    dechunked,
    envelopes,
    request,
    standing,
    stream_threads,
    streaming,
    text_task,
    wait_until,
)

AT_ONCE = 2.0  # seconds; far below every time-out of the host, and the heartbeat


# ---- leaving ----


@pytest.mark.parametrize("how", ["close", "with", "break", "collected", "token", "client"])
def test_leaving_cancels_the_run_and_closes_the_handler(how):
    agent, token = Theatre(), CancelToken()
    with streaming(agent) as (client, server):
        stream = begin(client, server, "wait", cancel=token)
        next(stream)
        agent.started.acquire()

        if how == "close":
            stream.close()
        elif how == "with":
            with stream:
                pass
        elif how == "break":
            for _ in begin(client, server, "many 100000"):
                break
            stream.close()
        elif how == "collected":
            del stream
            gc.collect()
        elif how == "token":
            token.cancel()
            with pytest.raises(CallCancelledError):
                list(stream)
        else:
            client.close()

        # No heartbeat is due for a long time: the host looks whether the client is there.
        assert agent.closed.wait(AT_ONCE)
        assert agent.reason == "the client left"
        wait_until(lambda: not stream_threads())


def test_a_busy_handler_is_closed_at_its_next_event():
    agent = Theatre()
    with streaming(agent) as (client, server):
        stream = begin(client, server, "many 10000000")
        for _ in range(1000):
            next(stream)
        stream.close()

        assert agent.closed.wait(AT_ONCE)
    assert agent.reason == "the client left"
    assert agent.made < 10_000_000


def test_a_handler_that_does_not_look_keeps_only_its_own_thread():
    agent = Theatre()
    with streaming(agent) as (client, server):
        task = text_task("stubborn")
        stream = begin(client, server, task)
        agent.started.acquire()
        stream.close()
        wait_until(lambda: agent._engine.runs.is_running(task.id, None) is False)

        with pytest.raises(TransportRemoteError, match="being executed already"):
            begin(client, server, task)

        agent.gate.set()
        assert agent.closed.wait(AT_ONCE)
        wait_until(lambda: not stream_threads())


def test_without_the_hosts_help_a_heartbeat_finds_that_the_client_has_left():
    """As in any other WSGI server: the body is closed when sending fails."""
    agent = Theatre()
    agent.heartbeat = 0.01
    body = _body(agent.wsgi_app(), "wait")
    agent.started.acquire()

    first = next(body)
    beats = [next(body), next(body)]
    body.close()

    assert first.startswith(b"data: ")
    assert beats == [b": \n\n"] * 2
    assert agent.closed.wait(AT_ONCE)
    assert agent.reason == "the client left"


def test_a_body_that_is_dropped_is_closed():
    agent = Theatre()
    body = _body(agent.wsgi_app(), "wait")
    agent.started.acquire()

    del body
    gc.collect()

    assert agent.closed.wait(AT_ONCE)


def _body(app, text):
    content = request(text).partition(b"\r\n\r\n")[2]
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/tasks/stream",
        "CONTENT_LENGTH": str(len(content)),
        "wsgi.input": io.BytesIO(content),
    }
    wsgiref.util.setup_testing_defaults(environ)
    return app(environ, lambda status, headers: None)


# ---- heartbeats ----


def test_a_silent_stream_sends_comments_that_readers_skip():
    agent = Theatre()
    agent.heartbeat = 0.01
    with streaming(agent) as (client, server), connected(server) as sock:
        stream = begin(client, server, "wait")
        sock.sendall(request("stubborn", headers="Connection: close\r\n"))
        read = b""
        while read.count(b": \n\n") < 5:
            read += sock.recv(65536)

        agent.gate.set()
        while piece := sock.recv(65536):
            read += piece
        events = list(stream)

    chunks = dechunked(read.partition(b"\r\n\r\n")[2])
    assert chunks.count(b": \n\n") >= 5
    told = envelopes(b"".join(chunk for chunk in chunks if chunk != b": \n\n"))
    assert [envelope["final"] for envelope in told] == [False, False, True]
    assert [event.get("message") for event in events] == [None, "late", None]


# ---- cancelling ----


@pytest.mark.parametrize("word", ["wait", "stubborn", "impolite"])
def test_a_cancelled_stream_ends_with_the_canceled_task(word):
    """Source: capture sse_stream_cancelled."""
    agent = Theatre()
    with streaming(agent) as (client, server):
        stream = begin(client, server, word)
        first = next(stream)
        agent.started.acquire()

        canceled = stream.cancel("enough")
        agent.gate.set()
        events = list(stream)

    last = events[-1]
    assert canceled.state is TaskState.CANCELED
    assert first["new_state"] == "working"
    assert (last["previous_state"], last["new_state"], last["final"]) == (
        "working",
        "canceled",
        True,
    )
    assert set(last["metadata"]) == {"task", "cancel_reason"}
    assert last["metadata"]["cancel_reason"] == "enough"
    assert stream.task.metadata["cancel_reason"] == "enough"
    assert stream.task.to_dict() == {
        **canceled.to_dict(),
        "messages": stream.task.to_dict()["messages"],
    }


def test_an_exception_after_the_cancel_is_no_error():
    class Raising(Theatre):
        def handle_task_streaming(self, task):
            yield from super().handle_task_streaming(task)
            raise RuntimeError("interrupted")

    agent = Raising()
    with streaming(agent) as (client, server):
        stream = begin(client, server, "wait")
        agent.started.acquire()
        stream.cancel()

        assert stream.result().state is TaskState.CANCELED
        assert "cancel_reason" not in stream.task.metadata


def test_a_task_whose_last_event_is_told_cannot_be_cancelled_any_more():
    """Else one hears that it was canceled, and the other that it waits for input."""

    class Asking(Agent):
        def handle_task_streaming(self, task):
            yield {"n": 1}
            return task.require_input()

    with Asking(card()).serve("runtime://asking"):
        host = runtime_agent("runtime://asking")
        task = text_task("x")
        events = host.stream("POST", "/tasks/stream", local.dump_data(task))
        context = TransportRequestContext("op", "runtime://asking", "1")
        last, _ = [local.decode_event(next(events), context) for _ in range(3)][-1]

        cancel = host.begin("POST", "/tasks/cancel", local.dump_data({"id": task.id}), None)
        cancel.run()
        with pytest.raises(RefusedError) as caught:
            cancel.answer()

        events.close()
    assert last["new_state"] == "input-required"
    assert caught.value.kind == "TaskNotFoundError"


# ---- limits ----


def test_a_reader_that_is_slow_holds_the_handler_up():
    agent = Theatre()
    with streaming(agent) as (_, server), connected(server) as sock:
        sock.sendall(request("large 400", headers="Connection: close\r\n"))

        made = standing(lambda: agent.made)
        read = bytearray()
        while piece := sock.recv(1 << 20):
            read += piece

    # What fits into the sockets' buffers, and a few more.
    assert 0 < made < 300
    assert len(envelopes(b"".join(dechunked(bytes(read).partition(b"\r\n\r\n")[2])))) == 402


def test_streams_have_a_limit_of_their_own():
    limits = TransportLimits(max_concurrent_requests=1, max_concurrent_streams=2)
    agent = Theatre(config=TransportConfig(limits=limits))
    with streaming(agent) as (client, server), Caller(server.url) as caller:
        streams = [begin(client, server, "wait") for _ in range(2)]
        for _ in streams:
            agent.started.acquire()

        refused = caller.request("POST", "/tasks/stream", text_task("wait").to_dict())
        health = caller.request("GET", "/healthz").json()["metrics"]

        agent.gate.set()
        assert [stream.result().state for stream in streams] == [TaskState.COMPLETED] * 2
        assert begin(client, server, "short x").result().state is TaskState.COMPLETED
    assert refused.status == 503
    assert refused.error == "too many streams at a time"
    assert (health["active_streams"], health["streams_started"]) == (2, 2)


def test_many_streams_at_a_time():
    agent = Theatre()
    with streaming(agent) as (client, server):
        streams = [begin(client, server, "stubborn") for _ in range(50)]
        for _ in streams:
            agent.started.acquire()
        assert len(stream_threads()) == 50
        agent.gate.set()

        assert {stream.result().state for stream in streams} == {TaskState.COMPLETED}


# ---- the end of the host ----


def test_closing_the_host_cancels_what_is_streamed():
    agent = Theatre()
    with AgentClient("sse", timeout=LIMIT) as client:
        server = agent.serve("http://127.0.0.1:0")
        stream = begin(client, server, "wait")
        agent.started.acquire()

        began = time.monotonic()
        server.close()
        took = time.monotonic() - began

        assert stream.result().state is TaskState.CANCELED
        assert stream.task.metadata["cancel_reason"] == "the host was closed"
    assert took < AT_ONCE
    assert agent.reason == "the host was closed"


def test_closing_the_host_leaves_streams_whose_handler_does_not_end():
    agent = Theatre()
    with AgentClient("sse", timeout=LIMIT) as client:
        server = agent.serve("http://127.0.0.1:0")
        stream = begin(client, server, "stubborn")
        agent.started.acquire()

        began = time.monotonic()
        server.close()
        took = time.monotonic() - began

        with pytest.raises(StreamInterruptedError):
            list(stream)
        assert took < AT_ONCE
        agent.gate.set()
        wait_until(lambda: not stream_threads())


def test_closing_the_host_leaves_clients_that_do_not_read():
    config = TransportConfig(shutdown_timeout=0.2)
    agent = Theatre(config=config)
    server = agent.serve("http://127.0.0.1:0")
    with connected(server) as sock:
        sock.sendall(request("large 1000"))
        standing(lambda: agent.made)

        began = time.monotonic()
        server.close()
        took = time.monotonic() - began

        assert agent.closed.wait(AT_ONCE)
    assert took < AT_ONCE
    wait_until(lambda: not stream_threads())


def test_a_stream_that_begins_while_the_host_is_closed_is_refused():
    go_on = threading.Event()

    class Slow(Theatre):
        def __init__(self):
            super().__init__(authenticate=self.look)
            self.is_slow = False
            self.asked = threading.Event()

        def look(self, environ):
            if self.is_slow:
                self.asked.set()
                go_on.wait(LIMIT)
            return "somebody"

    agent = Slow()
    with AgentClient("sse", timeout=LIMIT) as client:
        server = agent.serve("http://127.0.0.1:0")
        running = begin(client, server, "wait")
        agent.started.acquire()
        agent.is_slow = True
        begun = in_background(begin, client, server, "short x")
        agent.asked.wait(LIMIT)
        closed = in_background(server.close)
        # Who streams is told when nobody can begin any more.
        agent.closed.wait(LIMIT)
        go_on.set()
        closed()

        with pytest.raises((TransportRemoteError, TransportConnectionError)):
            begun()
        assert running.result().state is TaskState.CANCELED


# ---- TLS ----


def test_streams_are_encrypted_and_left(tls_files):
    agent = Theatre()
    agent.heartbeat = 0.05
    tls = TLSConfig(certfile=tls_files.server_cert, keyfile=tls_files.server_key)
    with agent.serve("https://127.0.0.1:0", tls=tls) as server:
        context = ssl.create_default_context(cafile=tls_files.ca)
        with connected(server) as plain:
            sock = context.wrap_socket(plain, server_hostname="127.0.0.1")
            sock.sendall(request("wait"))
            assert b"working" in sock.recv(65536)
            agent.started.acquire()
            sock.close()

        assert agent.closed.wait(AT_ONCE)
    assert agent.reason == "the client left"
