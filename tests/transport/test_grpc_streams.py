"""Streams over gRPC: order, ends, leaving early, cuts, limits; real agents and scripted ones."""

from __future__ import annotations

import gc
import threading
import time

import grpc
import pytest

from protolink_sync import AgentClient, CancelToken
from protolink_sync.config import TransportConfig, TransportLimits
from protolink_sync.errors import (
    AuthenticationError,
    CallCancelledError,
    ClientClosedError,
    StreamInterruptedError,
    TransportConnectionError,
    TransportLimitError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import Message, Task, TaskState
from protolink_sync.transport import GRPCTransport
from tests.transport.grpc_peer import GRPCPeer, done, until_cancelled, wrapped
from tests.transport.scenes import ASK, LIMIT, Calling, at_once, in_fresh_process, wait_until


def text_task(text: str = "go") -> Task:
    return Task.create(Message.user(text))


def steps(events) -> list[str]:
    return [event["message"] for event in events if event.get("type") == "task_progress"]


def workers() -> int:
    return sum(thread.name.startswith("protolink-stream") for thread in threading.enumerate())


def one_and_wait(envelope, context):
    yield wrapped(envelope, {"n": 0})
    until_cancelled(context)


# ---- a real agent ------------------------------------------------------------------------------


def test_events_come_in_order_and_then_the_task(shared_peer):
    with AgentClient("grpc") as client:
        stream = client.send_task_streaming(shared_peer("grpc").url, text_task("many 300"))
        events = list(stream)

    assert steps(events) == [f"step {n}" for n in range(300)]
    assert stream.task.state is TaskState.COMPLETED


@pytest.mark.parametrize(
    ("text", "state"),
    [("need", TaskState.INPUT_REQUIRED), ("fail x", TaskState.FAILED)],
)
def test_each_final_status_is_an_end(shared_peer, text, state):
    with AgentClient("grpc") as client:
        stream = client.send_task_streaming(shared_peer("grpc").url, text_task(text))

        assert stream.result().state is state


def test_a_nested_final_is_no_end_and_no_final_event_is_one(shared_peer):
    url = shared_peer("grpc").url
    with AgentClient("grpc") as client:
        nested = list(client.send_task_streaming(url, text_task("nested")))
        assert nested[-1]["type"] == "task_status_update"
        unfinished = client.send_task_streaming(url, text_task("nofinal"))
        assert list(unfinished)
        with pytest.raises(TransportProtocolError, match="without a final status"):
            unfinished.result()


def test_an_error_of_the_handler_comes_after_the_events_before_it(shared_peer):
    with AgentClient("grpc") as client:
        stream = client.send_task_streaming(shared_peer("grpc").url, text_task("raise kaput"))
        seen = []
        with pytest.raises(TransportRemoteError, match="kaput"):
            seen += stream


def test_the_task_is_cancelled_while_its_stream_runs(shared_peer):
    with AgentClient("grpc") as client:
        stream = client.send_task_streaming(shared_peer("grpc").url, text_task("wait 20"))
        next(stream)
        stream.cancel(reason="enough")

        assert stream.result().state is TaskState.CANCELED


def test_a_cut_stream_is_not_a_finished_one(shared_peer, counting_proxy):
    proxy = counting_proxy(shared_peer("grpc").url)
    with AgentClient("grpc") as client:
        stream = client.send_task_streaming(proxy.url, text_task("wait 20"))
        assert next(stream)["type"] == "task_status_update"
        proxy.cut()
        with pytest.raises(StreamInterruptedError) as caught:
            list(stream)

    assert caught.value.events == 1
    assert caught.value.last_state == "working"
    assert not caught.value.retryable


# ---- credentials -------------------------------------------------------------------------------


class Vault:
    """Credentials that are renewed when they are refused."""

    def __init__(self, fresh: str = "new") -> None:
        self.asked: list[bool] = []
        self._fresh = fresh

    def __call__(self, _origin: str, refresh: bool) -> dict[str, str]:
        self.asked.append(refresh)
        return {"Authorization": f"Bearer {self._fresh if refresh else 'old'}"}


def guarded(envelope, context):
    if dict(context.invocation_metadata())["authorization"] != "Bearer new":
        context.abort(grpc.StatusCode.UNAUTHENTICATED, "stale")
    yield wrapped(envelope, {"n": 0})
    yield done(envelope)


def test_stale_credentials_of_a_stream_are_renewed_once():
    """The refusal comes where the first event would, when the stream is open already."""
    vault = Vault()
    with GRPCPeer(stream=guarded) as peer, GRPCTransport(credentials=vault) as client:
        assert list(client.subscribe(peer.url, text_task())) == [{"n": 0}]

        first, second = peer.requests
        assert first == second
        assert client.metrics.streams_started == 1
    assert vault.asked == [False, True]


@pytest.mark.parametrize(("fresh", "sent"), [("wrong", 2), ("old", 1)])
def test_a_stream_that_is_refused_again_is_an_error(fresh, sent):
    vault = Vault(fresh)
    with GRPCPeer(stream=guarded) as peer, GRPCTransport(credentials=vault) as client:
        with pytest.raises(AuthenticationError):
            list(client.subscribe(peer.url, text_task()))

        assert len(peer.requests) == sent
    assert vault.asked == [False, True]


def test_a_stream_that_has_begun_is_never_sent_again():
    """The task runs already."""
    vault = Vault()

    def late(envelope, context):
        yield wrapped(envelope, {"n": 0})
        context.abort(grpc.StatusCode.UNAUTHENTICATED, "over")

    with GRPCPeer(stream=late) as peer, GRPCTransport(credentials=vault) as client:
        stream = client.subscribe(peer.url, text_task())
        assert next(stream) == {"n": 0}
        with pytest.raises(AuthenticationError):
            next(stream)

        assert len(peer.requests) == 1
    assert vault.asked == [False]


def test_a_stream_with_renewed_credentials_can_be_left():
    token = CancelToken()

    def waiting(envelope, context):
        yield next(guarded(envelope, context))
        until_cancelled(context)

    with GRPCPeer(stream=waiting) as peer, GRPCTransport(credentials=Vault()) as client:
        stream = client.subscribe(peer.url, text_task(), cancel=token)
        assert next(stream) == {"n": 0}
        peer.ended.clear()
        token.cancel()

        with pytest.raises(CallCancelledError):
            next(stream)
        assert peer.ended.wait(1)


def test_a_stream_opens_before_its_first_event():
    go = threading.Event()

    def slow(envelope, _context):
        assert go.wait(LIMIT)
        yield done(envelope)

    with GRPCPeer(stream=slow) as peer, GRPCTransport(credentials=Vault()) as client:
        stream = client.subscribe(peer.url, text_task())
        go.set()

        assert list(stream) == []


# ---- leaving early -----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["close", "break", "drop", "token", "client"])
def test_leaving_frees_the_worker_and_tells_the_peer(how):
    token = CancelToken()
    with GRPCPeer(stream=one_and_wait) as peer, GRPCTransport(peer.url) as client:
        before = workers()
        stream = client.subscribe(peer.url, text_task(), cancel=token)
        if how == "break":
            for _ in stream:
                break
        else:
            next(stream)
        begin = time.monotonic()
        if how == "token":
            token.cancel()
        elif how == "client":
            client.close()
        elif how == "close":
            stream.close()
        if how in ("break", "drop"):
            del stream
            gc.collect()

        assert wait_until(lambda: workers() == before, at_once())
        assert time.monotonic() - begin < at_once()
        assert peer.ended.wait(1)
        if how == "token":
            with pytest.raises(CallCancelledError):
                next(stream)
        if how == "client":
            with pytest.raises(ClientClosedError):
                next(stream)


def test_close_wakes_a_reader():
    with GRPCPeer(stream=one_and_wait) as peer, GRPCTransport(peer.url) as client:
        stream = client.subscribe(peer.url, text_task())
        reader = Calling(list, stream)
        assert peer.arrived.acquire(timeout=LIMIT)
        begin = time.monotonic()
        stream.close()

        assert len(reader.result()) <= 1
        assert time.monotonic() - begin < at_once()


def test_streams_that_were_left_keep_no_connection(counting_proxy):
    """grpcio keeps the connection of a cancelled stream whose last events nobody took."""
    with GRPCPeer(stream=one_and_wait) as peer:
        proxy = counting_proxy(peer.url)
        with GRPCTransport(proxy.url) as client:
            streams = [client.subscribe(proxy.url, text_task()) for _ in range(3)]
            for stream in streams:
                next(stream)
                stream.close()
            assert proxy.total == 1

        assert wait_until(lambda: proxy.open == 0, 1)


# ---- ends that are none ------------------------------------------------------------------------


def ending(how):
    def handler(envelope, context):
        yield wrapped(envelope, {"n": 0})
        if how in grpc.StatusCode.__members__:
            context.abort(grpc.StatusCode[how], "no")
        elif how == "exception":
            raise RuntimeError("broken")
        elif how == "wrong id":
            yield b'{"id":"x","ok":true,"result":{},"final":false}'
        elif how == "no json":
            yield b"nope"

    return handler


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ("silence", StreamInterruptedError),
        ("UNAVAILABLE", StreamInterruptedError),
        ("CANCELLED", StreamInterruptedError),
        ("INTERNAL", TransportRemoteError),
        ("RESOURCE_EXHAUSTED", TransportRemoteError),
        ("DEADLINE_EXCEEDED", TransportTimeoutError),
        ("UNAUTHENTICATED", AuthenticationError),
        ("exception", TransportRemoteError),
        ("wrong id", TransportProtocolError),
        ("no json", TransportProtocolError),
    ],
)
def test_only_final_ends_a_stream(how, kind):
    with GRPCPeer(stream=ending(how)) as peer, GRPCTransport(peer.url) as client:
        stream = client.subscribe(peer.url, text_task())
        seen = [next(stream)]
        with pytest.raises(kind) as caught:
            seen += stream
        with pytest.raises(kind):
            next(stream)

    assert seen == [{"n": 0}]
    assert type(caught.value) is kind
    assert not caught.value.retryable


def test_nothing_after_final_is_read():
    def handler(envelope, context):
        yield wrapped(envelope, {"n": 0}, final=True)
        yield wrapped(envelope, {"n": 1})
        until_cancelled(context)

    with GRPCPeer(stream=handler) as peer, GRPCTransport(peer.url) as client:
        begin = time.monotonic()
        assert list(client.subscribe(peer.url, text_task())) == [{"n": 0}]
        assert time.monotonic() - begin < 1
        assert wait_until(lambda: client.metrics.streams_completed == 1)


def test_a_finished_stream_is_not_cancelled_at_the_peer():
    """Its handler would be told so, and a ProtoLink agent would cancel the task."""
    cancelled: list[bool] = []

    def handler(envelope, context):
        context.add_callback(lambda: cancelled.append(context.code() is None))
        yield wrapped(envelope, {"n": 0})
        yield done(envelope)

    with GRPCPeer(stream=handler) as peer, GRPCTransport(peer.url) as client:
        for _ in range(20):
            assert list(client.subscribe(peer.url, text_task())) == [{"n": 0}]
        assert wait_until(lambda: len(cancelled) == 20)
        assert client.metrics.streams_completed == 20


def test_nobody_listens():
    with GRPCTransport() as client, pytest.raises(TransportConnectionError) as caught:
        list(client.subscribe("grpc://127.0.0.1:9", text_task()))

    assert caught.value.phase == "connect"


# ---- limits ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "name"),
    [({"idle_timeout": 0.3}, "idle_timeout"), ({"timeout": 0.3}, "timeout")],
)
def test_silence_has_a_limit_and_so_has_the_whole(limits, name):
    with GRPCPeer(stream=one_and_wait) as peer, GRPCTransport(peer.url) as client:
        begin = time.monotonic()
        stream = client.subscribe(peer.url, text_task(), **limits)
        next(stream)
        with pytest.raises(TransportTimeoutError, match=f"{name} of 0.3 s"):
            next(stream)

        assert 0.25 < time.monotonic() - begin < 3
        assert peer.ended.wait(1)


def test_a_call_budget_is_none_of_a_stream():
    """The transport's timeout bounds the silence only."""

    def handler(envelope, context):
        for number in range(6):
            yield wrapped(envelope, {"n": number})
            assert not pause.wait(0.1)
        yield done(envelope)

    pause = threading.Event()
    with GRPCPeer(stream=handler) as peer, GRPCTransport(peer.url, 0.4) as client:
        assert len(list(client.subscribe(peer.url, text_task()))) == 6


def test_an_event_beyond_the_limit():
    """The limit of replies is another: one channel serves both."""

    def handler(envelope, context):
        yield wrapped(envelope, {"n": 0})
        yield wrapped(envelope, "x" * 20_000)

    limits = TransportLimits(max_event_bytes=10_000)
    with (
        GRPCPeer(stream=handler) as peer,
        GRPCTransport(peer.url, config=TransportConfig(limits=limits)) as client,
    ):
        stream = client.subscribe(peer.url, text_task())
        assert next(stream) == {"n": 0}
        with pytest.raises(TransportLimitError, match="max_event_bytes"):
            next(stream)


def test_unary_calls_go_beside_a_stream_that_nobody_reads():
    """They share one connection, whose window the stream must not use up."""

    def flood(envelope, context):
        while context.is_active():
            yield wrapped(envelope, "x" * 50_000)

    with GRPCPeer(lambda *_: 1, flood) as peer, GRPCTransport(peer.url) as client:
        streams = [client.subscribe(peer.url, text_task()) for _ in range(4)]
        for stream in streams:
            next(stream)
        assert [client.send(ASK, None, {}) for _ in range(20)] == [1] * 20
        for stream in streams:
            stream.close()


HELD = """
import sys, time
from protolink_sync.models import Message, Task
from protolink_sync.transport import GRPCTransport

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096

client = GRPCTransport(sys.argv[1])
stream = client.subscribe(sys.argv[1], Task.create(Message.user("many 3")))
list(stream)
before = resident()
stream = client.subscribe(sys.argv[1], Task.create(Message.user("many 150000")))
next(stream)
# It is held back when nothing more arrives; the worker has stopped reading by then.
last, still = -1, 0
while still < 10:
    time.sleep(0.1)
    now = resident()
    still = still + 1 if now - last < 100_000 else 0
    last = now
print(resident() - before)
stream.close()
client.close()
"""


def test_a_stream_that_nobody_reads_holds_the_peer_back(shared_peer):
    held = int(in_fresh_process(HELD, shared_peer("grpc").url))

    assert held < 12 << 20
