"""WebSockets are kept for the next call, looked at before it, and closed politely."""

from __future__ import annotations

import os
from typing import Any

import pytest
import websocket

from protolink_sync._deadline import Deadline
from protolink_sync.errors import (
    ClientClosedError,
)
from protolink_sync.models import ClientRequestSpec
from protolink_sync.specs import TASK_CANCEL_REQUEST
from protolink_sync.transport import (
    TransportConfig,
    WebSocketTransport,
)
from tests.transport.scenes import (
    ASK,
    CLOSE,
    HOLD,
    LIMIT,
    Calling,
    connections_to,
    in_fresh_process,
    serving,
    together,
    unread,
    wait_until,
)
from tests.transport.ws_scenes import (
    BEGIN,
    BINARY,
    CLOSE_FRAME,
    CONTINUATION,
    PING,
    PONG,
    TAKE,
    TEXT,
    UPGRADE,
    answer,
    closing,
    frame,
    frames,
    transport,
)

CONTROL = ClientRequestSpec("look_in", "/look", "POST", channel="control", idempotent=True)


def test_calls_one_after_the_other_use_one_connection():
    with (
        serving([*UPGRADE, *[TAKE, answer()] * 50]) as server,
        transport(server) as client,
    ):
        for _ in range(50):
            client.send(ASK, data={})

        assert len(server.connections) == 1


def test_threads_have_a_connection_each():
    gate = {"op": "barrier", "name": "all", "n": 8, "s": LIMIT}
    more = [TAKE, answer()] * 8
    with serving([*BEGIN, gate, answer(), *more]) as server, transport(server) as client:
        together(8, lambda _: [client.send(ASK, data={}) for _ in range(2)])

        assert len(server.connections) == 8


def test_a_control_request_does_not_wait_behind_a_call():
    held = [*BEGIN, {"op": "wait", "event": "go"}, answer("slow"), TAKE, answer("again")]
    with (
        serving(held, [*BEGIN, answer("control"), TAKE, answer("control")]) as server,
        transport(server) as client,
    ):
        slow = Calling(client.send, ASK, None, {})
        server.wait_for_requests(1)
        assert client.send(CONTROL, data={}) == "control"
        assert slow.running
        server.fire("go")
        assert slow.result() == "slow"
        assert client.send(CONTROL, data={}) == "control"
        assert client.send(ASK, data={}) == "again"

        assert len(server.connections) == 2


def test_cancelling_a_task_is_a_control_request():
    assert TASK_CANCEL_REQUEST.channel == "control"


@pytest.mark.parametrize("count", [1, 3])
def test_pings_to_an_idle_connection_are_answered_before_it_is_used_again(count):
    steps = [*BEGIN, answer(), frame(PING, "idle", times=count), *[TAKE] * (count + 1), answer(2)]
    with serving(steps) as server, transport(server) as client:
        client.send(ASK, data={})
        # The pings may come a moment after the answer, and be answered during the next call.
        assert client.send(ASK, data={}) == 2

        opcodes = [opcode for opcode, _ in frames(server)]
    assert opcodes in ([TEXT, *[PONG] * count, TEXT], [TEXT, TEXT, *[PONG] * count])
    assert len(server.connections) == 1


def test_a_connection_with_very_many_pings_is_replaced():
    """To answer them all would take longer than another connection, and than the call may."""
    pings = [*BEGIN, answer(1), frame(PING, times=20_000), HOLD]
    with serving(pings, [*BEGIN, answer(2)]) as server, transport(server) as client:
        client.send(ASK, data={})
        assert wait_until(lambda: not any(c.is_alive() for c in idle_connections(client)))

        assert client.send(ASK, data={}) == 2


@pytest.mark.parametrize(
    "flood",
    [
        frame(PING, times=9000),
        frame(PONG, times=9000),
        frame(TEXT, "{}", times=5000),
        frame(BINARY, fin=False),
    ],
    ids=["pings", "pongs", "messages", "a part of a message"],
)
def test_nothing_more_is_read_from_a_connection_that_was_cut(flood):
    """What has arrived can be so much that to read it takes longer than a call may to be gone."""
    more = frame(CONTINUATION, times=9000, fin=False)
    steps = [*BEGIN, answer(), {"op": "wait", "event": "idle"}, flood, more, HOLD]
    with serving(steps) as server, transport(server) as client:
        client.send(ASK, data={})
        (connection,) = idle_connections(client)
        server.fire("idle")
        with connections_to(server.port) as (ours, *_):
            assert wait_until(lambda: unread(ours) > 18_000)
            there = unread(ours)

            connection.cut()

            with pytest.raises((OSError, websocket.WebSocketException)):
                connection.receive(1000, Deadline(LIMIT))
            assert unread(ours) >= there


@pytest.mark.parametrize(
    "unasked",
    [answer("late"), closing(1001), frame(PING, "x", declared_len=5), frame(BINARY, "x"), CLOSE],
)
def test_a_connection_on_which_anything_else_came_is_replaced(unasked):
    rest = [] if unasked is CLOSE else [HOLD]
    with (
        serving([*BEGIN, answer(1), unasked, *rest], [*BEGIN, answer(2)]) as server,
        transport(server) as client,
    ):
        assert client.send(ASK, data={}) == 1
        # The peer's second frame may come a moment after the first; it is sent at once.
        assert wait_until(lambda: not any(c.is_alive() for c in idle_connections(client)))
        assert client.send(ASK, data={}) == 2
        assert client.metrics.retries == 0


def idle_connections(client: WebSocketTransport) -> list[Any]:
    assert client._network is not None
    return [connection for pool in client._network._pools.values() for connection in pool._idle]


def test_an_idle_connection_is_closed_with_a_close_frame_when_it_is_old():
    with (
        serving([*BEGIN, answer(), TAKE, HOLD]) as server,
        transport(server, config=TransportConfig(keepalive_interval=0.2)) as client,
    ):
        client.send(ASK, data={})

        assert server.wait_for_end() == "client"
        assert frames(server)[-1] == (CLOSE_FRAME, b"\x03\xe8")


@pytest.mark.parametrize("interval", [None, 20.0, 600.0])
@pytest.mark.parametrize(("idle", "connections"), [(14.5, 1), (15.5, 2)])
def test_a_connection_that_was_idle_for_fifteen_seconds_is_replaced(interval, idle, connections):
    """Whatever the interval: a ping of the agent may be due, or its place in a table gone."""
    with (
        serving([*BEGIN, answer(), TAKE, answer()], [*BEGIN, answer()]) as server,
        transport(server, config=TransportConfig(keepalive_interval=interval)) as client,
    ):
        client.send(ASK, data={})
        for connection in idle_connections(client):
            connection.idle_since -= idle
        client.send(ASK, data={})

        assert len(server.connections) == connections


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_has_connections_of_its_own_and_ends_none_of_its_parents():
    program = """
        import os, sys, warnings
        from protolink_sync.models import ClientRequestSpec
        from protolink_sync.transport import WebSocketTransport

        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside a thread
        ask = ClientRequestSpec("ask", "/ask", "POST")
        with WebSocketTransport(sys.argv[1]) as client:
            assert client.send(ask, data={}) == "first"
            child = os.fork()
            if not child:
                assert client.send(ask, data={}) == "child"
                sys.exit()
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert client.send(ask, data={}) == "second"
    """
    of_the_parent = [*BEGIN, answer("first"), TAKE, answer("second"), TAKE]
    with serving(of_the_parent, [*BEGIN, answer("child"), TAKE]) as server:
        in_fresh_process(program, server.ws_base)

        assert server.wait_for_end(1) == "client"
        assert [opcode for opcode, _ in frames(server, 1)] == [TEXT, TEXT, CLOSE_FRAME]
        assert len(server.connections) == 2


def test_closing_says_goodbye_and_ends_what_runs():
    with (
        serving([*BEGIN, answer(), TAKE, TAKE], [*BEGIN, HOLD]) as server,
        transport(server) as client,
    ):
        client.send(ASK, data={})
        idle = Calling(client.send, CONTROL, None, {})
        assert server.wait_until(lambda s: len(s.connections) == 2 and s.connections[1].frames, 5)
        client.close()
        client.close()

        with pytest.raises(ClientClosedError):
            idle.result()
        assert server.wait_for_end(1) == "client"
        assert server.wait_for_end(2) == "client"
        assert frames(server)[-1][0] == CLOSE_FRAME
        with pytest.raises(ClientClosedError):
            client.send(ASK, data={})
