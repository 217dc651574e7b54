"""Connections between calls: which are kept, which are used again, and that none is left."""

from __future__ import annotations

import gc
import runpy
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable

import pytest

from protolink_sync.errors import ClientClosedError
from protolink_sync.specs import AGENT_CARD_REQUEST
from protolink_sync.transport import HTTPTransport, TransportConfig, _idle
from tests.cases.server import ScriptedServer
from tests.peers import CountingProxy
from tests.transport.scenes import (
    ASK,
    ASK_ONCE,
    CLOSE,
    HOLD,
    JSON,
    LOOK,
    RECV,
    Calling,
    answering,
    descriptors,
    failed,
    held_back,
    in_fresh_process,
    reply,
    send,
    serving,
    something_to_read,
    together,
    transport,
    wait_until,
)

GO = {"op": "wait", "event": "go"}


def open_connections(server: ScriptedServer) -> int:
    return sum(connection.closed_by is None for connection in server.connections)


def at_the_same_time(client: HTTPTransport, count: int) -> None:
    """Make so many calls at the same time."""
    assert together(count, lambda number: client.send(ASK, None, {})) == [{"ok": True}] * count


def meeting(count: int) -> ScriptedServer:
    """Return a server that answers its first call at once, the next when so many have come."""
    barrier = {"op": "barrier", "name": "all", "n": count, "s": 20}
    return answering(reply(), [barrier, reply()])


# ---- used again --------------------------------------------------------------------------------


def test_a_thousand_calls_use_one_connection():
    with answering() as server, transport(server) as client:
        for _ in range(1000):
            client.send(ASK, None, {})

        assert len(server.connections) == 1


def test_a_thousand_calls_use_one_connection_to_a_real_peer(agent_peer, counting_proxy):
    proxy: CountingProxy = counting_proxy(agent_peer.url)

    with HTTPTransport(proxy.url) as client:
        for _ in range(1000):
            client.send(AGENT_CARD_REQUEST)

        assert proxy.total == 1


def test_two_peers_have_connections_of_their_own():
    with answering() as one, answering() as other, transport() as client:
        for _ in range(3):
            client.send(ASK, one.base, {})
            client.send(ASK, other.base, {})

        assert len(one.connections) == len(other.connections) == 1


def test_many_peers_keep_their_connections(monkeypatch):
    """More than urllib3 keeps pools for; each has two operations, whose routes are its own."""
    look_up = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *args, **words: look_up("127.0.0.1", *args, **words)
    )
    config = TransportConfig(keepalive_interval=None)

    with answering() as server, transport(config=config) as client:
        urls = [f"http://agent-{number}.test:{server.port}" for number in range(300)]
        for spec in (ASK, LOOK, ASK):
            for url in urls:
                client.send(spec, url, {} if spec is ASK else None)

        assert len(server.connections) == len(urls)


def test_operations_of_one_peer_share_its_connection():
    with answering() as server, transport(server) as client:
        client.send(ASK, None, {})
        client.send(LOOK)
        client.send(ASK, f"{server.base}/behind/a/path", {})

        assert len(server.connections) == 1


def test_calls_at_the_same_time_have_a_connection_each():
    with meeting(8) as server, transport(server) as client:
        client.send(ASK, None, {})
        at_the_same_time(client, 8)

        assert len(server.connections) == 8


def test_calls_after_a_burst_use_one_of_its_connections():
    with meeting(4) as server, transport(server) as client:
        client.send(ASK, None, {})
        at_the_same_time(client, 4)
        for _ in range(8):
            client.send(ASK, None, {})

        assert len({request.connection for request in server.requests[-8:]}) == 1


def test_an_error_of_the_caller_leaves_its_connection_in_use():
    with answering(reply(status=404), reply()) as server, transport(server) as client:
        failed(client)
        client.send(ASK, None, {})

        assert len(server.connections) == 1


def test_a_peer_that_says_close_is_believed():
    parting = reply(headers={**JSON, "Connection": "close"})

    with answering(parting) as server, transport(server) as client:
        client.send(ASK, None, {})
        client.send(ASK, None, {})

        assert len(server.connections) == 2
        assert server.wait_for_end(1) == "client"


# ---- not used again ----------------------------------------------------------------------------


def test_a_connection_that_is_too_old_is_not_used_again():
    config = TransportConfig(keepalive_interval=2.0)

    with answering() as server, transport(server, config=config) as client:
        client.send(ASK, None, {})
        client.send(ASK, None, {})
        assert len(server.connections) == 1
        # Three quarters of the interval, and it goes by itself.
        begin = time.monotonic()
        assert server.wait_for_end(1) == "client"
        assert time.monotonic() - begin < 10.0
        client.send(ASK, None, {})

        assert len(server.connections) == 2


# The clock that goes on while the machine sleeps.
SLEEPLESS = getattr(time, "CLOCK_MONOTONIC" if sys.platform == "darwin" else "CLOCK_BOOTTIME", None)


@pytest.mark.skipif(SLEEPLESS is None, reason="this system has no second clock, or needs none")
def test_a_connection_ages_while_the_machine_sleeps(monkeypatch):
    """The monotonic clock stands still then; what stands between has forgotten the connection."""
    real, slept = time.clock_gettime, [0.0]

    def clock(which: int) -> float:
        return real(which) + (slept[0] if which == SLEEPLESS else 0.0)

    with answering() as server, transport(server) as client:
        monkeypatch.setattr(time, "clock_gettime", clock)
        client.send(ASK, None, {})
        slept[0] = 3600.0
        client.send(ASK, None, {})
        client.send(ASK, None, {})

        assert len(server.connections) == 2
        assert server.wait_for_end(1) == "client"


@pytest.mark.skipif(not hasattr(time, "CLOCK_MONOTONIC"), reason="Windows has no such clocks")
@pytest.mark.parametrize("system", ["linux", "darwin", "freebsd14"])
def test_each_system_has_its_clock_that_goes_on_in_sleep(monkeypatch, system):
    """That of macOS has the name of one that stands still on Linux."""
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    if system == "linux":
        monkeypatch.setattr(time, "CLOCK_BOOTTIME", 7, raising=False)
    asked = []
    monkeypatch.setattr(time, "clock_gettime", asked.append)
    clocks = runpy.run_path(_idle.__file__)

    clocks["_now"]()

    assert asked == {"linux": [7], "darwin": [time.CLOCK_MONOTONIC]}.get(system, [])


def test_without_an_interval_no_connection_is_too_old():
    config = TransportConfig(keepalive_interval=None)

    with answering() as server, transport(server, config=config) as client:
        client.send(ASK, None, {})
        threading.Event().wait(0.5)
        client.send(ASK, None, {})

        assert len(server.connections) == 1


@pytest.mark.parametrize("spec", [ASK, ASK_ONCE], ids=["repeatable", "not repeatable"])
@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_a_connection_that_the_peer_closed_is_replaced_before_anything_is_written(
    spec, secure, tls_server, tls_client
):
    """That is no retry: the call was not sent yet, so it may be one that must not be repeated."""
    tls = tls_server if secure else None
    scenes = ([RECV, reply(), CLOSE], [RECV, reply({"n": 2})])

    with serving(*scenes, tls=tls) as server, transport(server, tls=tls_client) as client:
        client.send(ASK, None, {})
        assert server.wait_for_end(1) == "server"
        assert wait_until(lambda: something_to_read(server.port))

        assert client.send(spec, None, {}) == {"n": 2}
        assert client.metrics.retries == 0
        assert len(server.requests) == 2


def test_a_connection_on_which_something_arrived_unasked_is_not_used_again():
    """What stands there would be taken for the next call's answer."""
    late = [RECV, reply({"n": 1}), GO, send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n9"), HOLD]

    with serving(late, [RECV, reply({"n": 2})]) as server, transport(server) as client:
        assert client.send(ASK, None, {}) == {"n": 1}
        server.fire("go")
        assert wait_until(lambda: something_to_read(server.port))

        assert client.send(ASK, None, {}) == {"n": 2}
        assert server.wait_for_end(1) == "client"


def test_what_tls_holds_back_is_no_answer_to_the_next_call(tls_server, tls_client):
    """It does not stand at the socket any more: TLS took it from there with the answer."""
    scripts = [[RECV, *held_back({"n": 1}), HOLD], [RECV, reply({"n": 2})]]

    with (
        serving(*scripts, tls=tls_server) as server,
        transport(server, tls=tls_client) as client,
    ):
        assert [client.send(ASK, None, {}) for _ in range(2)] == [{"n": 1}, {"n": 2}]


# ---- closed in time ----------------------------------------------------------------------------


def test_idle_connections_beyond_the_allowed_number_are_closed_after_a_second():
    config = TransportConfig(max_idle_connections=2, keepalive_interval=None)

    with meeting(6) as server, transport(server, config=config) as client:
        client.send(ASK, None, {})
        at_the_same_time(client, 6)
        assert open_connections(server) == 6

        assert wait_until(lambda: open_connections(server) == 2, 10.0)
        client.send(ASK, None, {})
        assert len(server.connections) == 6


def test_spare_connections_are_closed_after_a_second_also_when_others_are_kept_for_long():
    """What is looked after every fifteen seconds must not hide what has one."""
    config = TransportConfig(max_idle_connections=1, keepalive_interval=20.0)

    with meeting(5) as server, transport(server, config=config) as client:
        client.send(ASK, None, {})
        at_the_same_time(client, 5)

        assert wait_until(lambda: open_connections(server) == 1, 10.0)


def test_spare_connections_are_there_for_calls_that_come_within_a_second():
    config = TransportConfig(max_idle_connections=1)

    with meeting(4) as server, transport(server, config=config) as client:
        client.send(ASK, None, {})
        at_the_same_time(client, 4)
        at_the_same_time(client, 4)

        assert len(server.connections) == 4


def test_calls_after_a_burst_do_not_keep_its_connections_open():
    config = TransportConfig(max_idle_connections=2, keepalive_interval=None)

    with meeting(6) as server, transport(server, config=config) as client:
        client.send(ASK, None, {})
        at_the_same_time(client, 6)

        def calling() -> bool:
            client.send(ASK, None, {})
            return open_connections(server) <= 3

        # Two of them idle, beside the one in use; when no call has it, it is one too many.
        assert wait_until(calling, 10.0)
        assert wait_until(lambda: open_connections(server) == 2, 10.0)


def test_connections_are_not_spare_while_as_many_threads_make_calls():
    """They would be opened again when the calls fall together, and be more than the threads."""
    config = TransportConfig(max_idle_connections=1, keepalive_interval=None)
    threads = 6

    with meeting(threads) as server, transport(server, config=config) as client:
        client.send(ASK, None, {})
        at_the_same_time(client, threads)
        talking, end = threading.Lock(), time.monotonic() + 2.5

        def one_after_the_other(number: int) -> None:
            while time.monotonic() < end:
                with talking:
                    client.send(ASK, None, {})
                threading.Event().wait(0.02)

        together(threads, one_after_the_other)

        assert len(server.connections) == threads
        assert open_connections(server) == threads


def test_no_idle_connection_at_all_is_a_possible_setting():
    config = TransportConfig(max_idle_connections=0)

    with answering() as server, transport(server, config=config) as client:
        client.send(ASK, None, {})

        assert wait_until(lambda: open_connections(server) == 0, 10.0)
        assert client.send(ASK, None, {}) == {"ok": True}


# ---- the end -----------------------------------------------------------------------------------


def test_closing_closes_all_connections():
    with meeting(3) as server:
        client = transport(server)
        client.send(ASK, None, {})
        at_the_same_time(client, 3)

        client.close()

        for number in (1, 2, 3):
            assert server.wait_for_end(number) == "client"


def test_closing_again_is_silent():
    with answering() as server:
        client = transport(server)
        client.send(ASK, None, {})
        for _ in range(3):
            client.close()

        assert client.health()["status"] == "stopped"


def test_closing_what_was_never_used_is_silent():
    HTTPTransport().close()


def test_a_call_after_closing_is_refused():
    with answering() as server:
        client = transport(server)
        client.send(ASK, None, {})
        client.close()

        error = failed(client)

        assert type(error) is ClientClosedError
        assert isinstance(error, RuntimeError)
        assert len(server.requests) == 1


def test_a_transport_is_a_context_manager():
    with answering() as server:
        with transport(server) as client:
            assert client.send(ASK, None, {}) == {"ok": True}

        assert type(failed(client)) is ClientClosedError


def test_closing_ends_calls_in_flight():
    with answering([HOLD]) as server:
        client = transport(server)
        calls = [Calling(client.send, ASK, None, {}) for _ in range(5)]
        server.wait_for_requests(5)
        begin = time.monotonic()

        client.close()

        for call in calls:
            with pytest.raises(ClientClosedError):
                call.result()
        assert time.monotonic() - begin < 1.0
        assert client.metrics.requests_cancelled == 5
        assert client.metrics.active_requests == 0


def test_a_connection_that_comes_back_after_closing_is_closed():
    with answering([GO, reply()]) as server:
        client = transport(server)
        call = Calling(client.send, ASK, None, {})
        server.wait_for_requests(1)
        client.close()
        server.fire("go")
        with pytest.raises(ClientClosedError):
            call.result()

        assert server.wait_for_end(1) == "client"


def test_many_threads_that_close_at_the_same_time_are_fine():
    with answering() as server:
        client = transport(server)
        client.send(ASK, None, {})

        together(8, lambda number: client.close())

        assert server.wait_for_end(1) == "client"


def test_a_transport_that_is_dropped_leaves_no_connection():
    """Warnings are errors here: a socket that only the garbage collector closes fails the test."""
    with answering() as server:
        before = sum(1 for _ in descriptors())
        client = transport(server)
        client.send(ASK, None, {})
        gone = weakref.ref(client)

        del client
        gc.collect()

        assert gone() is None
        assert server.wait_for_end(1) == "client"
        assert wait_until(lambda: sum(1 for _ in descriptors()) <= before)


def test_a_transport_that_is_dropped_leaves_no_connection_over_tls(tls_server, tls_client):
    with answering(tls=tls_server) as server:
        client = transport(server, tls=tls_client)
        client.send(ASK, None, {})
        gone = weakref.ref(client)

        del client
        gc.collect()

        assert gone() is None
        assert server.wait_for_end(1) == "client"


def test_a_transport_that_is_dropped_needs_no_garbage_collector():
    """Nothing refers to it but the caller: it goes at once, as a file does."""
    gc.disable()
    try:
        with answering() as server:
            client = transport(server)
            client.send(ASK, None, {})
            gone = weakref.ref(client)

            del client

            assert gone() is None
    finally:
        gc.enable()


def test_a_thousand_transports_leave_nothing():
    with answering() as server:
        before = sum(1 for _ in descriptors())
        for _ in range(50):
            with transport(server) as client:
                client.send(ASK, None, {})

        assert wait_until(lambda: sum(1 for _ in descriptors()) <= before + 2)


FORMS: dict[str, str] = {
    "closed": "client.close()",
    "not closed": "pass",
    "dropped": "del client",
    "with a call in a daemon thread": (
        "threading.Thread(target=client.send, args=(ask, None, {}), daemon=True).start()\n"
        "        time.sleep(0.2)"
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_nothing_idle_keeps_a_process_alive_and_nothing_is_said_at_its_end(form):
    program = f"""
        import sys, threading, time
        from protolink_sync.models import ClientRequestSpec
        from protolink_sync.transport import HTTPTransport

        ask = ClientRequestSpec("ask", "/ask", "POST")
        client = HTTPTransport(sys.argv[1])
        client.send(ask, None, {{}})
        {FORMS[form]}
        print("end", flush=True)
    """

    with answering(reply(), [HOLD]) as server:
        begin = time.monotonic()
        assert in_fresh_process(program, server.base).strip() == "end"
        assert time.monotonic() - begin < 10


# ---- in many threads ---------------------------------------------------------------------------


def test_threads_use_at_most_one_connection_each():
    calls_of_each = 50

    def work(client: HTTPTransport) -> Callable[[int], int]:
        def one(number: int) -> int:
            return sum(
                client.send(ASK, None, {"n": number}) == {"ok": True} for _ in range(calls_of_each)
            )

        return one

    with answering() as server, transport(server) as client:
        assert together(8, work(client)) == [calls_of_each] * 8

        assert len(server.connections) <= 8


def test_every_thread_gets_its_own_answer():
    echo = reply({"echo": "{{hdr:X-Protolink-Request-ID}}", "for": "{{hdr:Idempotency-Key}}"})

    def one(number: int) -> bool:
        answers = [
            client.send(ASK, None, {}, idempotency_key=f"{number}-{turn}") for turn in range(30)
        ]
        return [answer["for"] for answer in answers] == [f"{number}-{turn}" for turn in range(30)]

    with answering(echo) as server, transport(server) as client:
        assert all(together(8, one))
