"""Streams of server-sent events from a scripted server: limits and bodies of every form."""

from __future__ import annotations

import contextlib
import gzip
import json
import threading
import time

import pytest

from protolink_sync import AgentClient
from protolink_sync.config import TransportConfig, TransportLimits
from protolink_sync.errors import (
    StreamInterruptedError,
    TransportError,
    TransportLimitError,
    TransportProtocolError,
    TransportTimeoutError,
)
from protolink_sync.specs import TASK_STREAM_REQUEST
from protolink_sync.streaming import EventStream
from protolink_sync.transport import Hooks, SSEJSONRPCTransport, WebSocketTransport, sse
from tests.cases.play import new_task
from tests.cases.server import ScriptedServer
from tests.transport.matrix_watch import until_asleep

LIMIT = 10.0  # seconds for what happens at once, or never

CHUNKS = {"op": "sse_head"}
CLOSE = {"op": "close"}
TO_THE_CLOSE = {"op": "head", "headers": {"Content-Type": "text/event-stream"}}


GZIP_CHUNKS = {
    "op": "head",
    "headers": {
        "Content-Type": "text/event-stream",
        "Content-Encoding": "gzip",
        "Transfer-Encoding": "chunked",
    },
}


def member(data):
    """Return bytes as a gzip member of their own, as a script has them."""
    return gzip.compress(data.encode()).decode("latin-1")


def event(content, *, final=False):
    """Return the bytes of one event, as a script has them."""
    told = {"type": "task_progress", "message": content}
    return "data: " + json.dumps({"id": None, "ok": True, "result": told, "final": final}) + "\n\n"


@contextlib.contextmanager
def streaming(*steps, **limits):
    """Stream what a server sends in these steps; give the stream and the server."""
    script = {"routes": {"POST /tasks/stream": [list(steps)]}}
    config = TransportConfig(limits=TransportLimits(**limits))
    with (
        ScriptedServer(script) as server,
        SSEJSONRPCTransport(timeout=10, config=config) as transport,
        AgentClient(transport) as client,
        client.send_task_streaming(server.base, new_task()) as stream,
    ):
        yield stream, server


def read(stream):
    """Read to the end; return the messages and the error after them."""
    found = []
    try:
        for told in stream:
            found.append(told["message"])
    except Exception as error:
        return found, error
    return found, None


@pytest.mark.parametrize("pieces", [1, 2], ids=["in one piece", "in two"])
def test_events_before_one_that_is_too_large_arrive(pieces):
    data = [event("a") + event("b"), event("x" * 3000)]
    sent = ["".join(data)] if pieces == 1 else data
    chunks = [{"op": "chunk", "data": piece} for piece in sent]

    with streaming(CHUNKS, *chunks, {"op": "hold", "s": 30}, max_event_bytes=2000) as opened:
        stream, server = opened
        found, error = read(stream)

        assert server.wait_for_end(within=2) == "client"
    assert found == ["a", "b"]
    assert type(error) is TransportLimitError
    assert "limit is 2000" in str(error)
    assert server.base in str(error)


def test_an_event_that_never_ends_is_given_up_at_the_limit():
    steps = [
        CHUNKS,
        {"op": "chunk", "data": event("a")},
        {"op": "chunk", "data": "data: " + "x" * 3000},
        {"op": "hold", "s": 30},
    ]

    with streaming(*steps, max_event_bytes=2000) as (stream, _):
        found, error = read(stream)

    assert found == ["a"]
    assert type(error) is TransportLimitError


def test_what_follows_the_final_envelope_is_not_read():
    data = event("a") + event("b", final=True) + event("c") + "data: no JSON\n\n"

    with streaming(CHUNKS, {"op": "chunk", "data": data}, {"op": "end_chunks"}) as (stream, _):
        assert read(stream) == (["a", "b"], None)


def test_framing_without_end_behind_the_final_envelope_does_not_keep_it_back():
    steps = [
        CHUNKS,
        {"op": "chunk", "data": event("a", final=True)},
        {"op": "send", "data": "0\r\n"},
        {"op": "drip", "data": "X-T: y\r\n" * 5000, "every_s": 0.005},
    ]

    begin = time.monotonic()
    with streaming(*steps) as (stream, server):
        assert read(stream) == (["a"], None)
        assert server.wait_for_end(within=5) == "client"
    assert time.monotonic() - begin < 5, "it took until the idle limit of ten seconds"


def in_one_chunk(data):
    return f"{len(data):x}\r\n{data}"


LAST = event("a", final=True)
PACKED = member(LAST)
# The last event, and what else there is of its body, in pieces that come one by one.
BODIES = {
    "one piece": (CHUNKS, [in_one_chunk(LAST) + "\r\n0\r\n\r\n"]),
    "two": (CHUNKS, [in_one_chunk(LAST) + "\r\n", "0\r\n\r\n"]),
    "four": (CHUNKS, [in_one_chunk(LAST), "\r\n", "0\r\n", "\r\n"]),
    "extensions and trailers": (CHUNKS, [in_one_chunk(LAST), "\r\n0;a=b\r\nX-", "T: y\r\n\r\n"]),
    "gzip": (
        GZIP_CHUNKS,
        [in_one_chunk(PACKED[:-8]) + "\r\n", in_one_chunk(PACKED[-8:]), "\r\n0\r\n\r\n"],
    ),
}


@pytest.mark.parametrize("body", BODIES)
def test_the_connection_of_a_finished_stream_is_used_again(body, monkeypatch):
    """However the framing behind its last event is cut."""
    monkeypatch.setattr(sse, "_END_OF_BODY", LIMIT)
    head, (begin, *rest) = BODIES[body]
    steps = [head, {"op": "send", "data": begin}, {"op": "wait", "event": "read"}]
    steps += [{"op": "send", "data": piece} for piece in rest]

    script = {"routes": {"*": [steps]}}
    with ScriptedServer(script) as server, AgentClient("sse", timeout=LIMIT) as client:
        for _ in range(3):
            stream = client.send_task_streaming(server.base, new_task())
            assert next(stream)["message"] == "a"
            server.fire("read")
            assert list(stream) == []
        assert len(server.connections) == 1


@pytest.mark.parametrize("behind", [": a comment\n\n", event("b"), "\n"])
def test_a_connection_is_not_used_again_with_anything_behind_the_last_event(behind, monkeypatch):
    monkeypatch.setattr(sse, "_END_OF_BODY", LIMIT)
    steps = [CHUNKS, {"op": "chunk", "data": LAST}, {"op": "wait", "event": "read"}]
    steps += [{"op": "chunk", "data": behind}, {"op": "end_chunks"}]

    with streaming(*steps) as (stream, server):
        assert next(stream)["message"] == "a"
        server.fire("read")
        assert list(stream) == []
        assert server.wait_for_end(within=LIMIT) == "client"


@pytest.mark.parametrize("limit", ["idle_timeout", "timeout"])
def test_events_that_have_come_are_not_lost_to_a_slow_hook(limit):
    """Nor is their stream's end: the peer is not what takes the time."""
    data = event("a") + event("b") + event("c", final=True)
    script = {"routes": {"*": [[CHUNKS, {"op": "chunk", "data": data}, {"op": "end_chunks"}]]}}
    told = []

    def slow(seen):
        told.append(seen.event["message"])
        if len(told) == 1:
            time.sleep(1.2)  # longer than the limit, which is what this is about

    with (
        ScriptedServer(script) as server,
        SSEJSONRPCTransport(timeout=LIMIT, hooks=Hooks(on_event=slow)) as transport,
    ):
        stream = transport.subscribe(server.base, new_task(), **{limit: 1.0})
        assert read(stream) == (["a", "b", "c"], None)
        assert transport.metrics.streams_completed == 1
    assert told == ["a", "b", "c"]


def test_a_slow_hook_takes_none_of_the_time_that_a_peer_has_for_an_event():
    taken = threading.Event()
    steps = [CHUNKS, {"op": "chunk", "data": event("a")}, {"op": "wait", "event": "told"}]
    steps += [{"op": "chunk", "data": event("b", final=True)}, {"op": "end_chunks"}]

    def slow(_):
        if not taken.is_set():
            time.sleep(1.2)  # longer than the limit, which is what this is about
            taken.set()
            server.fire("told")

    with (
        ScriptedServer({"routes": {"*": [steps]}}) as server,
        SSEJSONRPCTransport(timeout=LIMIT, hooks=Hooks(on_event=slow)) as transport,
    ):
        stream = transport.subscribe(server.base, new_task(), idle_timeout=1.0)
        assert read(stream) == (["a", "b"], None)


def test_a_silent_peer_ends_a_stream_with_hooks_too():
    steps = [CHUNKS, {"op": "chunk", "data": event("a")}, {"op": "hold", "s": 5}, CLOSE]

    with (
        ScriptedServer({"routes": {"*": [steps]}}) as server,
        SSEJSONRPCTransport(timeout=LIMIT, hooks=Hooks(on_event=lambda _: None)) as transport,
    ):
        stream = transport.subscribe(server.base, new_task(), idle_timeout=0.5)
        found, error = read(stream)

    assert found == ["a"]
    assert type(error) is TransportTimeoutError


def test_a_body_without_length_may_end_with_its_connection():
    steps = [TO_THE_CLOSE, {"op": "send", "data": event("a") + event("b", final=True)}]

    with streaming(*steps, CLOSE) as (stream, _):
        assert read(stream) == (["a", "b"], None)


@pytest.mark.parametrize(
    "steps",
    [
        [TO_THE_CLOSE, {"op": "send", "data": event("a")}, CLOSE],
        [CHUNKS, {"op": "chunk", "data": event("a")}, CLOSE],
        [CHUNKS, {"op": "chunk", "data": event("a")}, {"op": "end_chunks"}],
        [CHUNKS, {"op": "chunk", "data": event("a") + "data: {"}, {"op": "end_chunks"}],
        [CHUNKS, {"op": "chunk", "data": event("a")}, {"op": "send", "data": "40\r\nda"}, CLOSE],
    ],
    ids=["no length", "no last chunk", "no final", "half an event", "half a chunk"],
)
def test_a_body_that_ends_before_the_stream_is_an_interruption(steps):
    with streaming(*steps) as (stream, _):
        found, error = read(stream)
        again = read(stream)

    assert found == ["a"]
    assert type(error) is StreamInterruptedError
    assert again == ([], error)


@pytest.mark.parametrize("wrong", ["no JSON", "[]", '"text"', '{"ok": 1}', '{"ok": true,'])
def test_what_is_no_envelope_comes_after_the_events_before_it(wrong):
    data = event("a") + f"data: {wrong}\n\n"

    with streaming(CHUNKS, {"op": "chunk", "data": data}, {"op": "end_chunks"}) as (stream, _):
        found, error = read(stream)

    assert found == ["a"]
    assert isinstance(error, TransportProtocolError)


FRAMINGS = ["zz", "-5", "+5", "0x5", "1_0", "", "f" * 21, "5\r\ndata:too long"]


@pytest.mark.parametrize("framing", FRAMINGS)
def test_wrong_chunks_end_the_stream_after_the_events_before_them(framing):
    data = event("a")
    steps = [CHUNKS, {"op": "send", "data": f"{len(data):x}\r\n{data}\r\n{framing}\r\n"}]

    with streaming(*steps, {"op": "hold", "s": 30}) as (stream, server):
        found, error = read(stream)

        assert server.wait_for_end(within=2) == "client"
    assert found == ["a"]
    assert "chunk" in str(error)
    assert server.base in str(error)


@pytest.mark.parametrize(
    "form", ["{}", "event: message\n{}", "{}\nid: 1", ": comment\n{}", "{}\ndata:"]
)
def test_what_is_no_utf8_is_an_error_whatever_else_the_event_has(form):
    """To go on with other characters would change the answer without a word."""
    wrong = event("caf@").strip().replace("@", "\xe9")
    data = event("a") + form.format(wrong) + "\n\n"

    with streaming(CHUNKS, {"op": "chunk", "data": data}, {"op": "end_chunks"}) as (stream, _):
        found, error = read(stream)

    assert found == ["a"]
    assert type(error) is TransportProtocolError
    assert "not UTF-8" in str(error)


# ---- compressed --------------------------------------------------------------------------------

MEMBERS = [member(event("a")), member(event("b")), member(event("c", final=True))]


@pytest.mark.parametrize(
    "chunks",
    [
        MEMBERS,
        ["".join(MEMBERS)],
        ["\0\0\0".join(MEMBERS)],
        [MEMBERS[0], "\0", "\0", *MEMBERS[1:]],
        [member(""), MEMBERS[0] + member(""), *MEMBERS[1:]],
        list("".join(MEMBERS)),
    ],
    ids=["one a chunk", "together", "padded", "padded apart", "empty ones", "byte by byte"],
)
def test_every_member_of_a_gzip_body_is_read(chunks):
    """A proxy may compress what each flush brings as a member of its own."""
    steps = [{"op": "chunk", "data": chunk} for chunk in chunks]

    with streaming(GZIP_CHUNKS, *steps, {"op": "end_chunks"}) as (stream, _):
        assert read(stream) == (["a", "b", "c"], None)


@pytest.mark.parametrize("size", [65_500, 65_535, 65_536, 65_537, 65_600, 131_072, 131_100])
def test_a_large_compressed_event_comes_before_anything_follows_it(size):
    """Its last bytes are not held back, wherever inflating it paused."""
    content = "x" * (size - len(event("")))
    sent = {"op": "chunk", "data": member(event(content))}

    with streaming(GZIP_CHUNKS, sent, {"op": "hold", "s": 30}) as (stream, _):
        assert next(stream)["message"] == content


@pytest.mark.parametrize("rest", ["rubbish behind it", MEMBERS[1][:-4] + "\0\0\0\0"])
def test_what_is_no_member_ends_the_stream_after_the_events_before_it(rest):
    chunk = {"op": "chunk", "data": MEMBERS[0] + rest}

    with streaming(GZIP_CHUNKS, chunk, {"op": "end_chunks"}) as (stream, _):
        found, error = read(stream)

    assert found[0] == "a"
    assert type(error) is TransportProtocolError


# ---- an interrupt before anybody has it ---------------------------------------------------------


@pytest.mark.parametrize("kind", [SSEJSONRPCTransport, WebSocketTransport])
def test_an_interrupt_when_the_worker_reads_already_ends_it(kind, start_peer):
    """As Ctrl-C while the thread starts: to close what it reads would wait for it."""
    made = []

    def make(source):
        made.append(EventStream(source))
        next(made[0])
        until_asleep(made[0]._worker)
        raise KeyboardInterrupt

    url = start_peer({SSEJSONRPCTransport: "sse", WebSocketTransport: "websocket"}[kind]).url
    with kind(timeout=30) as transport:
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            transport.subscribe_as(
                transport._codec, TASK_STREAM_REQUEST, url, new_task("wait 60"), make
            )

        assert time.monotonic() - began < 5
        made[0]._worker.join(5)
        assert not made[0]._worker.is_alive()
        assert transport.metrics.active_streams == 0


# ---- no thread ----------------------------------------------------------------------------------


def test_a_stream_that_no_thread_can_read_is_an_error_and_over(monkeypatch):
    """Python 3.12 starts none at its exit; and there may be too many."""
    start = threading.Thread.start

    def refused(thread):
        if thread.name.startswith("protolink-stream"):
            raise RuntimeError("can't start new thread")
        start(thread)

    script = {"routes": {"POST /tasks/stream": [[CHUNKS, {"op": "hold", "s": 30}]]}}
    with ScriptedServer(script) as server, SSEJSONRPCTransport(timeout=10) as transport:
        monkeypatch.setattr(threading.Thread, "start", refused)

        with pytest.raises(TransportError, match="can't start new thread") as caught:
            transport.subscribe(server.base, new_task())

        assert transport.metrics.active_streams == 0
    assert not caught.value.retryable
