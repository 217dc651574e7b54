"""Whatever ends a stream ends its worker and its connection within 100 ms."""

from __future__ import annotations

import gc
import time

import pytest

from protolink_sync import CancelToken
from protolink_sync.errors import CallCancelledError, ClientClosedError, TransportTimeoutError
from tests.a2a.client.scenes import Running, stream_workers
from tests.a2a.scripted import HOLD, artifact_update, frame, sent, stream, task
from tests.cases.play import eventually
from tests.transport.scenes import at_once

SILENT = stream(sent(task("working")), end=(HOLD,))
# More than any buffer between agent and reader holds, so that the worker waits for room.
FLOOD = stream(
    sent(task("working")),
    *[artifact_update("x" * 100_000, append=True)] * 200,
    end=(HOLD,),
)


@pytest.fixture(params=["silent", "unread"])
def opened(request, meet):
    """A stream of a silent agent, or one whose events nobody reads; its token and its agent."""
    answer = SILENT if request.param == "silent" else FLOOD
    token = CancelToken()
    agent, client = meet(methods={"SendStreamingMessage": answer, "SubscribeToTask": answer})
    made = {"agent": agent, "client": client, "token": token}
    made["stream"] = client.stream_message("hi", cancel=token)
    next(made["stream"])
    assert stream_workers()
    yield made
    made.pop("stream", None)


def gone(agent, since):
    """Say that worker and connection have ended in time."""
    connection = agent.calls[0].request.connection
    assert eventually(lambda: not stream_workers(), 2), "the worker goes on"
    ended = time.monotonic()
    assert agent.wait_for_end(connection, 2) == "client"
    closed = agent.connections[connection - 1].closed_at
    assert closed - since < at_once()
    assert ended - since < at_once() + 0.05  # the clock of the test ticks too
    return True


def test_b42_close_ends_worker_and_connection(opened):
    began = time.monotonic()

    opened["stream"].close()
    opened["stream"].close()

    assert gone(opened["agent"], began)
    assert list(opened["stream"]) == []


def test_b103_a_token_ends_worker_and_connection(opened):
    began = time.monotonic()

    opened["token"].cancel("enough")

    assert gone(opened["agent"], began)
    with pytest.raises(CallCancelledError, match="enough"):
        list(opened["stream"])


def test_b104_garbage_collection_ends_worker_and_connection(opened):
    agent = opened["agent"]
    began = time.monotonic()

    del opened["stream"]
    gc.collect()

    assert gone(agent, began)


def test_b104_leaving_with_ends_worker_and_connection(opened):
    with opened["stream"]:
        began = time.monotonic()

    assert gone(opened["agent"], began)


def test_closing_the_client_ends_worker_and_connection(opened):
    began = time.monotonic()

    opened["client"].close()

    assert gone(opened["agent"], began)
    with pytest.raises((ClientClosedError, CallCancelledError)):
        list(opened["stream"])


@pytest.mark.parametrize("operation", ["stream_message", "subscribe"])
def test_b107_a_spent_budget_ends_worker_and_connection(operation, meet):
    agent, client = meet(methods={"SendStreamingMessage": SILENT, "SubscribeToTask": SILENT})
    began = time.monotonic()
    stream_ = getattr(client, operation)("t1", timeout=0.4)
    next(stream_)

    with pytest.raises(TransportTimeoutError):
        next(stream_)

    assert gone(agent, began + 0.4)


def test_b103_a_token_reaches_a_blocked_reader(meet):
    agent, client = meet(SILENT)
    token = CancelToken()
    stream_ = client.stream_message("hi", cancel=token)
    next(stream_)
    reading = Running(lambda: next(stream_))

    cancelled = time.monotonic()
    token.cancel()

    assert isinstance(reading.end(5).error, CallCancelledError)
    assert reading.ended_at - cancelled < at_once()
    assert gone(agent, cancelled)


def test_closing_reaches_a_blocked_reader(meet):
    _agent, client = meet(SILENT)
    stream_ = client.stream_message("hi")
    next(stream_)
    reading = Running(lambda: list(stream_))

    closed = time.monotonic()
    stream_.close()

    assert reading.end(5).value == []
    assert reading.ended_at - closed < at_once()


def test_b103_a_token_ends_a_callback_stream(meet):
    agent, client = meet(SILENT)
    token = CancelToken()
    running = Running(lambda: client.send_message_streaming("hi", lambda e: True, cancel=token))
    agent.wait_for_requests(2)

    cancelled = time.monotonic()
    token.cancel()

    assert isinstance(running.end(5).error, CallCancelledError)
    assert running.ended_at - cancelled < at_once()


def test_b103_a_token_ends_the_opening_of_a_stream(meet):
    agent, client = meet([HOLD])
    token = CancelToken()
    running = Running(lambda: list(client.stream_message("hi", cancel=token)))
    agent.wait_for_requests(2)

    cancelled = time.monotonic()
    token.cancel()

    assert isinstance(running.end(5).error, CallCancelledError)
    assert running.ended_at - cancelled < at_once()


def test_b43_a_token_ends_a_stream_that_is_taken_up_again(meet):
    """The second connection is under the same token."""
    agent, client = meet(
        methods={"SendStreamingMessage": stream(sent(task("working"))), "SubscribeToTask": SILENT}
    )
    token = CancelToken()
    stream_ = client.stream_message("hi", resume=1, cancel=token)
    reading = Running(lambda: list(stream_))
    agent.wait_for_requests(3)

    cancelled = time.monotonic()
    token.cancel()

    assert isinstance(reading.end(5).error, CallCancelledError)
    assert reading.ended_at - cancelled < at_once()
    assert eventually(lambda: not stream_workers(), 2)


def test_b42_two_hundred_streams_leave_nothing_behind(meet):
    """Each with a connection of its own, ended by its last event."""
    agent, client = meet([*stream(frame(sent(task("completed"))))])

    for _ in range(200):
        client.stream_message("hi").result()

    assert eventually(lambda: not stream_workers())
    assert eventually(lambda: all(c.closed_at for c in agent.connections[1:]), 3)
