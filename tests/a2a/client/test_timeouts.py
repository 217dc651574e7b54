"""Time-outs: none by default, a bound for connecting, budgets that really bound."""

from __future__ import annotations

import itertools
import math
import time

import pytest

from protolink_sync import CancelToken
from protolink_sync.errors import (
    CallCancelledError,
    TransportConnectionError,
    TransportTimeoutError,
)
from tests.a2a.client.scenes import Running, heard, in_threads, outcome
from tests.a2a.scripted import (
    HOLD,
    artifact_update,
    card,
    done,
    error,
    frame,
    reply,
    sent,
    status_update,
    stream,
    task,
)
from tests.cases.server import ScriptedServer


@pytest.fixture
def silent():
    """An address at which connects stay unanswered."""
    with ScriptedServer({"listen": "blackhole"}) as server:
        yield server.base


def timed(call):
    began = time.monotonic()
    with pytest.raises(TransportTimeoutError) as caught:
        call()
    return caught.value, time.monotonic() - began


@pytest.mark.parametrize("how", ["constructor", "setter"])
def test_b106_connecting_has_a_bound_of_its_own(how, silent, client_of):
    if how == "constructor":
        client = client_of(silent, connect_timeout=0.3)
    else:
        client = client_of(silent)
        client.set_connect_timeout(0.3)

    failed, elapsed = timed(lambda: client.send_message("hi"))

    assert 0.3 <= elapsed < 2
    assert failed.phase == "connect"


def test_b106_it_does_not_count_once_the_request_can_be_written(meet):
    slow = [{"op": "sleep", "s": 0.6}, done()]
    _agent, client = meet(slow, client={"connect_timeout": 0.2})

    assert client.send_message("hi").text == "done"


def test_b106_zero_removes_it(silent, client_of):
    client = client_of(silent, connect_timeout=0.2)
    client.set_connect_timeout(0)
    token = CancelToken()
    running = Running(lambda: client.send_message("hi", cancel=token))

    running.wait(0.6)
    assert running.alive
    token.cancel()

    assert isinstance(running.end(5).error, CallCancelledError)


@pytest.mark.parametrize("how", ["constructor", "setter", "call"])
def test_b107_a_timeout_bounds_the_whole_exchange(how, meet):
    agent, client = meet([HOLD], client={"timeout": 0.3} if how == "constructor" else {})
    if how == "setter":
        client.set_timeout(0.3)
    given = {"timeout": 0.3} if how == "call" else {}

    failed, elapsed = timed(lambda: client.send_message("hi", **given))

    assert 0.3 <= elapsed < 2
    assert len(agent.calls) == 1
    assert agent.wait_for_end(agent.calls[0].request.connection, 2) == "client"
    assert failed.phase in {"wait", "read"}


def test_b107_a_timeout_bounds_a_stream_to_its_end(meet):
    """However often something comes."""
    drip = [step for number in range(40) for step in ({"op": "sleep", "s": 0.05}, _piece(number))]
    _agent, client = meet(stream(sent(task("working")), *drip), client={"timeout": 0.4})
    began = time.monotonic()

    seen = heard(lambda: client.stream_message("hi"))

    assert isinstance(seen.error, TransportTimeoutError)
    assert 0.4 <= time.monotonic() - began < 1.8  # the drip takes 2 s
    assert len(seen.events) > 1


def _piece(number):
    return frame(artifact_update(str(number), append=True))


def test_b107_a_timeout_covers_the_card_too(meet):
    """One budget: discovery and send share it, and nothing is sent when it is spent."""
    slow = [{"op": "sleep", "s": 5}, reply(card())]
    agent, client = meet(done(), card=[slow])

    _failed, elapsed = timed(lambda: client.send_message("hi", timeout=0.3))

    assert elapsed < 3
    assert agent.calls == []


def test_b107_a_probe_begins_with_what_is_left(meet):
    agent, client = meet(
        methods={
            "SendMessage": [{"op": "sleep", "s": 0.6}, error(-32601)],
            "message/send": [HOLD],
        },
        card=None,
    )

    _, elapsed = timed(lambda: client.send_message("hi", timeout=1.2))

    assert 1.2 <= elapsed < 1.7
    assert agent.methods == ["SendMessage", "message/send"]


def test_b107_zero_removes_a_bound_set_earlier(meet):
    _agent, client = meet([{"op": "sleep", "s": 0.6}, done()], client={"timeout": 0.2})
    client.set_timeout(0)

    assert client.send_message("hi").text == "done"


def test_b107_without_a_bound_a_call_waits(meet):
    """The default: a task may take minutes."""
    agent, client = meet(methods={"SendMessage": [{"op": "wait", "event": "go", "s": 30}, done()]})
    running = Running(lambda: client.send_message("hi"))
    agent.wait_for_requests(2)

    running.wait(1.5)
    assert running.alive
    agent.fire("go")

    assert running.end().value.text == "done"


@pytest.mark.parametrize("value", [-1, math.nan, True, False, "5"])
@pytest.mark.parametrize(
    "where", ["timeout", "connect_timeout", "set_timeout", "set_connect_timeout"]
)
def test_b107_what_is_no_duration_is_refused(value, where, meet):
    agent, client = meet(done())

    change = {
        "timeout": lambda: type(client)(agent.base, timeout=value),
        "connect_timeout": lambda: type(client)(agent.base, connect_timeout=value),
        "set_timeout": lambda: client.set_timeout(value),
        "set_connect_timeout": lambda: client.set_connect_timeout(value),
    }

    with pytest.raises((ValueError, TypeError)):
        change[where]()

    assert agent.connections == []


def test_b108_a_change_does_not_reach_a_call_in_flight(meet):
    agent, client = meet(methods={"SendMessage": [{"op": "wait", "event": "go", "s": 10}, done()]})
    running = Running(lambda: client.send_message("hi"))
    agent.wait_for_requests(2)

    client.set_timeout(0.05)
    running.wait(0.4)
    assert running.alive
    agent.fire("go")

    assert running.end().value.text == "done"


def test_b108_settings_change_while_thirty_two_threads_send(meet):
    agent, client = meet(done())
    values = itertools.cycle((5, 60, 0, 7.5))

    def work(number):
        if number == 32:
            for _ in range(1000):
                client.set_timeout(next(values))
            return 0
        return sum(client.send_message("hi").text == "done" for _ in range(5))

    assert in_threads(33, work) == [5] * 32 + [0]
    assert len(agent.calls) == 160


@pytest.mark.parametrize("operation", ["send_message", "stream_message"])
def test_b109_silence_is_no_time_out(operation, meet):
    """Two real clients fail after five seconds of it; the real peers are tried with six."""
    wait = {"op": "sleep", "s": 1.2}
    _agent, client = meet(
        methods={
            "SendMessage": [wait, done()],
            "SendStreamingMessage": stream(
                sent(task("working")), wait, status_update("completed", "done")
            ),
        }
    )

    answer = outcome(getattr(client, operation)("hi"))

    assert answer.text == "done"


def test_b110_an_idle_time_out_bounds_the_pause_between_events(meet):
    agent, client = meet(stream(sent(task("working")), artifact_update("so far"), end=(HOLD,)))
    stream_ = client.stream_message("hi", idle_timeout=0.4)
    next(stream_)
    next(stream_)

    _failed, elapsed = timed(lambda: next(stream_))

    assert elapsed < 0.9
    assert stream_.task.artifacts[0].text == "so far"
    assert agent.wait_for_end(agent.calls[0].request.connection, 2) == "client"


def test_b110_events_that_come_in_time_keep_a_stream_alive(meet):
    pauses = [step for number in range(5) for step in ({"op": "sleep", "s": 0.15}, _piece(number))]
    _, client = meet(stream(sent(task("working")), *pauses, status_update("completed")))

    seen = heard(lambda: client.stream_message("hi", idle_timeout=0.5))

    assert seen.error is None
    assert len(seen.events) == 7


def test_b110_comments_are_no_events(meet):
    """Heartbeats keep a connection alive, not a task that does nothing."""
    ping = {"op": "repeat", "data": "8\r\n: ping\n\n\r\n", "times": 30, "every_s": 0.1}
    _, client = meet(stream(sent(task("working")), ping, end=(HOLD,)))
    stream_ = client.stream_message("hi", idle_timeout=0.5)
    next(stream_)

    _, elapsed = timed(lambda: next(stream_))

    assert elapsed < 0.9


@pytest.mark.parametrize(
    "operation", [lambda c: c.send_message("hi"), lambda c: c.fetch_agent_card()]
)
def test_b106_the_bound_covers_the_tls_handshake(operation, client_of):
    with ScriptedServer({"connections": [[HOLD]], "repeat_last": True}) as mute:
        client = client_of(mute.base.replace("http:", "https:"), connect_timeout=0.3)

        failed, elapsed = timed(lambda: operation(client))

        assert elapsed < 2
        assert failed.phase == "tls"
        assert not any(b"hi" in connection.received for connection in mute.connections)


def test_b111_a_time_out_says_which_limit_and_what_may_go_on(meet):
    agent, client = meet([HOLD])

    failed, _ = timed(lambda: client.send_message("hi", timeout=0.3))

    assert "0.3" in str(failed)
    assert "may" in str(failed)
    assert "task" in str(failed)
    assert agent.base in str(failed)
    assert failed.elapsed >= 0.3
    assert not failed.retryable


def test_b111_a_time_out_of_connecting_is_told_apart(silent, client_of):
    failed, _ = timed(lambda: client_of(silent, connect_timeout=0.2).get_task("t1"))

    assert failed.phase == "connect"
    assert "0.2" in str(failed)
    assert isinstance(failed, TimeoutError)
    assert not isinstance(failed, TransportConnectionError)
