"""Streams over WebSocket: what comes, how they end, and that nothing of them is left."""

from __future__ import annotations

import gc
import signal
import sys
import threading
import time
from typing import Any

import pytest

from protolink_sync import CancelToken
from protolink_sync.errors import (
    AuthenticationError,
    CallCancelledError,
    ProtoLinkError,
    StreamInterruptedError,
    TransportConnectionError,
    TransportLimitError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import Message, Task
from protolink_sync.transport import Hooks, TransportConfig, TransportLimits
from tests.transport.scenes import (
    ASK,
    CLOSE,
    HOLD,
    RECV,
    RST,
    Calling,
    reply,
    serving,
    wait_until,
)
from tests.transport.ws_scenes import (
    BEGIN,
    BINARY,
    CLOSE_FRAME,
    LAST,
    PING,
    PONG,
    TAKE,
    TEXT,
    answer,
    closing,
    envelope,
    event,
    frame,
    frames,
    streamed,
    transport,
)

FLOOD = event("x" * 1000, id=None)


def contents(stream: Any) -> list[str]:
    return [happened["content"] for happened in stream]


def broken(stream: Any) -> tuple[list[str], Any]:
    """Read a stream that must break; return what came before and the error."""
    came: list[str] = []
    try:
        for happened in stream:
            came.append(happened["content"])
    except ProtoLinkError as error:
        return came, error
    raise AssertionError(f"the stream ended well, after {came}")


def streamers() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("protolink-stream")]


# ---- what comes --------------------------------------------------------------------------------


def test_events_come_in_order_and_the_connection_is_closed_politely():
    with serving([*BEGIN, *map(event, range(500)), LAST, TAKE]) as server:
        with transport(server) as client:
            assert contents(streamed(client)) == [str(number) for number in range(500)]
            assert server.wait_for_end() == "client"

        assert [opcode for opcode, _ in frames(server)] == [TEXT, CLOSE_FRAME]


def test_the_request_has_no_key():
    with serving([*BEGIN, LAST]) as server, transport(server) as client:
        list(streamed(client))

        ((_, sent),) = frames(server)[:1]
    assert b'"/tasks/stream"' in sent
    assert b"idempotency_key" not in sent


def test_no_event_is_told_once_the_stream_was_ended():
    """Whatever has arrived with it, and after it."""
    token, told = CancelToken(), []

    def end_at_the_third(happened: Any) -> None:
        told.append(happened.number)
        if len(told) == 3:
            token.cancel()

    many = {**event(0, id=None), "times": 20_000}
    hooks = Hooks(on_event=end_at_the_third)
    with serving([*BEGIN, many, HOLD]) as server, transport(server, hooks=hooks) as client:
        error = broken(streamed(client, cancel=token))[1]

        assert type(error) is CallCancelledError
        assert wait_until(lambda: not streamers())
    assert told == [1, 2, 3]


def test_events_in_every_form_of_frames():
    steps = [
        *BEGIN,
        event(1),
        frame(BINARY, envelope({"content": "2"}, final=False)),
        frame(PING, "a"),
        event(3),
        frame(TEXT, '{"ok":true,"result":{"content":"4"}', fin=False),
        frame(PING, "b"),
        frame(0, ',"final":false}'),
        frame(PONG, "nobody asked"),
        event("5" * 100_000),
        event(6),
        LAST,
        TAKE,
        TAKE,
        TAKE,
    ]
    with serving(steps) as server, transport(server) as client:
        came = contents(streamed(client))

        assert server.wait_for_end() is not None
        assert [payload for opcode, payload in frames(server) if opcode == PONG] == [b"a", b"b"]
    assert came == ["1", "2", "3", "4", "5" * 100_000, "6"]


def test_the_first_event_does_not_wait_for_the_second():
    with (
        serving([*BEGIN, event(1), {"op": "wait", "event": "more"}, LAST]) as server,
        transport(server) as client,
        streamed(client) as stream,
    ):
        assert next(stream)["content"] == "1"
        server.fire("more")
        assert list(stream) == []


def test_a_stream_has_a_connection_of_its_own_beside_calls():
    stream_steps = [*BEGIN, event(1), {"op": "wait", "event": "more"}, LAST]
    with (
        serving(stream_steps, [*BEGIN, answer(), TAKE, answer()]) as server,
        transport(server) as client,
        streamed(client) as stream,
    ):
        next(stream)
        assert client.send(ASK, data={}) == client.send(ASK, data={}) == "done"
        server.fire("more")
        list(stream)
        assert len(server.connections) == 2


# ---- how it begins -----------------------------------------------------------------------------


def test_a_refused_upgrade_is_raised_by_the_call():
    with (
        serving([RECV, reply(status=403)]) as server,
        transport(server) as client,
        pytest.raises(AuthenticationError),
    ):
        streamed(client)

    assert not streamers()


def test_a_refused_connection_is_raised_by_the_call(unused_port):
    url = f"ws://127.0.0.1:{unused_port()}"
    with transport() as client, pytest.raises(TransportConnectionError):
        client.subscribe(url, Task.create(Message.user("hi")))


def test_credentials_that_were_refused_are_asked_for_once_more():
    with (
        serving([RECV, reply(status=401)], [*BEGIN, event(1), LAST]) as server,
        transport(server, credentials=lambda _, again: {"X-API-Key": str(again)}) as client,
    ):
        assert contents(streamed(client)) == ["1"]

    assert [request.header("X-API-Key") for request in server.requests] == ["False", "True"]


# ---- how it ends -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "word"),
    [
        (CLOSE, "without a close frame"),
        (closing(1000), "1000"),
        (closing(1001, "restart"), "restart"),
        (frame(CLOSE_FRAME), "1005"),
    ],
)
def test_a_connection_that_ends_before_the_stream_is_an_interruption(end, word):
    with serving([*BEGIN, event(1), event(2), end]) as server, transport(server) as client:
        stream = streamed(client)
        came, error = broken(stream)

        assert came == ["1", "2"]
        assert type(error) is StreamInterruptedError
        assert word in str(error)
        assert "cancel_task" in str(error)
        assert (error.events, error.retryable) == (2, False)
        assert error.task_id is not None
        # An ended stream answers alike.
        assert broken(stream) == ([], error)


def test_a_reset_is_an_interruption():
    steps = [*BEGIN, event(1), {"op": "wait", "event": "read"}, RST]
    with serving(steps) as server, transport(server) as client:
        stream = streamed(client)
        next(stream)
        server.fire("read")

        assert type(broken(stream)[1]) is StreamInterruptedError


def test_unanswered_pings_are_blamed_on_the_reader():
    end = closing(1011, "keepalive ping timeout")
    with serving([*BEGIN, event(1), end]) as server, transport(server) as client:
        _, error = broken(streamed(client))

    assert type(error) is StreamInterruptedError
    assert "too slow" in str(error)
    assert "keepalive ping timeout" in str(error)


def test_an_error_of_the_agent_comes_after_the_events_before_it():
    problem = answer(ok=False, final=True, error={"type": "ValueError", "message": "boom"})
    with serving([*BEGIN, event(1), problem]) as server, transport(server) as client:
        came, error = broken(streamed(client))

    assert came == ["1"]
    assert type(error) is TransportRemoteError
    assert error.error_message == "boom"


@pytest.mark.parametrize(
    "wrong", [frame(TEXT, "no json"), event(2, id="other"), frame(TEXT, "{}", rsv1=True)]
)
def test_what_cannot_be_understood_comes_after_the_events_before_it(wrong):
    with serving([*BEGIN, event(1), wrong, HOLD]) as server, transport(server) as client:
        came, error = broken(streamed(client))

        assert came == ["1"]
        assert type(error) is TransportProtocolError
        assert server.wait_for_end() == "client"


@pytest.mark.parametrize(
    "large",
    [frame(TEXT, "", declared_len=2001), frame(TEXT, "x" * 1500, fin=False, times=1)],
)
def test_an_event_beyond_the_limit_is_refused_before_it_is_read(large):
    config = TransportConfig(limits=TransportLimits(max_event_bytes=2000))
    steps = [*BEGIN, event(1), large, frame(0, "x" * 1500), HOLD]
    with serving(steps) as server, transport(server, config=config) as client:
        came, error = broken(streamed(client))

        assert came == ["1"]
        assert type(error) is TransportLimitError
        assert "max_event_bytes" in str(error)
        assert server.wait_for_end() == "client"


# ---- time --------------------------------------------------------------------------------------


def test_pings_do_not_count_as_events():
    pings = [step for _ in range(200) for step in (frame(PING, "x"), {"op": "sleep", "s": 0.02})]
    with serving([*BEGIN, event(1), *pings]) as server, transport(server) as client:
        came, error = broken(streamed(client, idle_timeout=0.3))

    assert came == ["1"]
    assert type(error) is TransportTimeoutError
    assert "idle_timeout" in str(error)


def test_the_whole_stream_has_a_limit_of_its_own():
    events = [step for n in range(200) for step in (event(n), {"op": "sleep", "s": 0.02})]
    with serving([*BEGIN, *events]) as server, transport(server) as client:
        came, error = broken(streamed(client, timeout=0.4))

    assert came
    assert type(error) is TransportTimeoutError


# ---- leaving -----------------------------------------------------------------------------------

# What the peer does while the stream is left, and with which events the reader has begun.
LEFT: dict[str, list[Any]] = {
    "in recv": [*BEGIN, event(1), HOLD],
    "within an event": [*BEGIN, event(1), frame(TEXT, "x", declared_len=2_000_000), HOLD],
    "in put": [*BEGIN, event(1), {**FLOOD, "times": 20_000}, HOLD],
    # Pings without end that nobody reads the pongs of.
    "in a pong": [*BEGIN, event(1), frame(PING, "x" * 125, times=200_000), HOLD],
}


def settle(where: str) -> None:
    """Wait until the worker stands where the test wants it."""
    worker = next(t for t in threading.enumerate() if t.name.startswith("protolink-stream"))
    expected = {
        "in recv": "fill",
        "within an event": "take",
        "in put": "wait_for_room",
        "in a pong": "send",
    }[where]

    def stands() -> bool:
        found = sys._current_frames().get(worker.ident or 0)
        while found is not None:
            if found.f_code.co_name == expected:
                return True
            found = found.f_back
        return False

    assert wait_until(stands, 5)


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("where", LEFT)
@pytest.mark.parametrize("how", ["close", "del", "break", "token", "client"])
def test_leaving_a_stream_ends_worker_and_connection(where, how, encrypted, tls_server, tls_client):
    words = {"tls": tls_server} if encrypted else {}
    token = CancelToken()
    with serving(LEFT[where], **words) as server, transport(server, tls=tls_client) as client:
        stream = streamed(client, cancel=token)
        assert next(stream)["content"] == "1"
        settle(where)

        began = time.monotonic()
        if how == "close":
            stream.close()
        elif how == "del":
            del stream
            gc.collect()
        elif how == "break":
            with stream:
                pass
        elif how == "token":
            token.cancel()
            # Behind what was already handed over.
            with pytest.raises(CallCancelledError):
                list(stream)
        else:
            client.close()
            with pytest.raises(Exception, match="closed"):
                list(stream)

        assert wait_until(lambda: not streamers())
        assert time.monotonic() - began < 2
        assert server.wait_for_end(within=2.0) == "client"


def test_closing_from_another_thread_wakes_the_reader():
    with serving([*BEGIN, event(1), HOLD]) as server, transport(server) as client:
        stream = streamed(client)
        reader = Calling(contents, stream)
        assert wait_until(lambda: stream.events == 1)
        stream.close()

        assert reader.result() == ["1"]


def test_an_interrupt_while_reading_leaves_the_stream_to_be_closed():
    with serving([*BEGIN, event(1), HOLD]) as server, transport(server) as client:
        stream = streamed(client)

        def interrupt() -> None:
            wait_until(lambda: stream.events == 1)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        helper = threading.Thread(target=interrupt, daemon=True)
        helper.start()
        with pytest.raises(KeyboardInterrupt), stream:
            list(stream)
        helper.join()
        assert server.wait_for_end(within=2.0) == "client"
        assert not streamers()


def test_an_unread_stream_holds_back_the_peer():
    """40 MB wait at the peer, and what the reader then reads is complete."""
    big = event("x" * 100_000)
    with (
        serving([*BEGIN, *[big] * 400, LAST]) as server,
        transport(server) as client,
        streamed(client) as stream,
    ):
        next(stream)
        settle("in put")
        assert stream._channel._bytes - stream._channel._taken_bytes < 8 * 1024 * 1024
        assert sum(1 for _ in stream) == 399
