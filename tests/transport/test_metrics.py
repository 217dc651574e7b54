"""The counters: what they count, and that they add up at every moment."""

from __future__ import annotations

import threading

import pytest

from protolink_sync import CancelToken
from protolink_sync.errors import ProtoLinkError, TransportError
from protolink_sync.transport import (
    HTTPTransport,
    SSEJSONRPCTransport,
    TransportConfig,
    TransportLimits,
    TransportMetricsSnapshot,
)
from tests.cases.server import ScriptedServer
from tests.transport.scenes import (
    ASK,
    HOLD,
    Calling,
    answering,
    failed,
    raw_reply,
    reply,
    retrying,
    transport,
    wait_until,
)


def adds_up(counted: TransportMetricsSnapshot) -> bool:
    ended = counted.requests_succeeded + counted.requests_failed + counted.requests_cancelled
    return counted.requests_started == ended + counted.active_requests


def test_a_new_transport_has_counted_nothing():
    with HTTPTransport() as client:
        assert client.metrics == TransportMetricsSnapshot()


def test_a_call_that_returns_is_counted_with_its_bytes_and_time():
    with (
        answering([{"op": "sleep", "s": 0.1}, raw_reply('{"text":"abc"}')]) as server,
        transport(server) as client,
    ):
        client.send(ASK, None, {"n": 1})
        counted = client.metrics

    assert (counted.requests_started, counted.requests_succeeded) == (1, 1)
    assert (counted.requests_failed, counted.requests_cancelled, counted.retries) == (0, 0, 0)
    assert counted.active_requests == 0
    assert counted.bytes_sent == len('{"n":1}')
    assert counted.bytes_received == len('{"text":"abc"}')
    assert 100 <= counted.total_latency_ms < 2000


def test_a_call_that_raises_is_counted_as_failed():
    with answering(reply(status=500)) as server, transport(server) as client:
        failed(client)
        counted = client.metrics

    assert (counted.requests_started, counted.requests_failed) == (1, 1)
    assert counted.bytes_received == len(reply()["body"])


def test_a_call_that_was_ended_is_counted_as_cancelled():
    token = CancelToken()

    with answering([HOLD]) as server, transport(server) as client:
        call = Calling(client.send, ASK, None, {}, cancel=token)
        server.wait_for_requests(1)
        assert client.metrics.active_requests == 1
        token.cancel()
        with pytest.raises(ProtoLinkError):
            call.result()
        counted = client.metrics

    assert (counted.requests_started, counted.requests_cancelled) == (1, 1)
    assert counted.active_requests == 0


def test_a_call_whose_time_is_over_is_counted_as_failed():
    with answering([HOLD]) as server, transport(server) as client:
        failed(client, timeout=0.1)
        counted = client.metrics

    assert (counted.requests_started, counted.requests_failed) == (1, 1)


def test_a_call_that_waits_for_its_turn_is_active():
    config = TransportConfig(limits=TransportLimits(max_concurrent_requests=1))
    go = {"op": "wait", "event": "go"}

    with answering([go, reply()]) as server, transport(server, config=config) as client:
        calls = [Calling(client.send, ASK, None, {}) for _ in range(3)]

        assert wait_until(lambda: client.metrics.active_requests == 3)
        assert len(server.requests) <= 1
        assert client.metrics.requests_started == 3

        server.fire("go")
        assert [call.result() for call in calls] == [{"ok": True}] * 3
        assert client.metrics.requests_succeeded == 3


def test_bytes_of_every_attempt_are_counted():
    with (
        answering(reply(status=503), reply()) as server,
        transport(server, config=retrying(2)) as client,
    ):
        client.send(ASK, None, {"n": 1})

        assert client.metrics.bytes_sent == 2 * len('{"n":1}')


def test_a_callers_mistake_is_no_call():
    with transport() as client:
        with pytest.raises(ValueError):
            client.send(ASK, "nonsense", {})
        with pytest.raises(TypeError):
            client.send(ASK, "http://127.0.0.1:9", {"a": object()})

        assert client.metrics == TransportMetricsSnapshot()


def test_a_snapshot_does_not_change():
    with answering() as server, transport(server) as client:
        before = client.metrics
        client.send(ASK, None, {})

        assert before.requests_started == 0
        with pytest.raises(AttributeError):
            before.requests_started = 5


def test_a_snapshot_is_plain_values():
    with answering() as server, transport(server) as client:
        client.send(ASK, None, {})

        assert client.metrics.to_dict()["requests_succeeded"] == 1
        assert set(client.metrics.to_dict()) >= {
            "requests_started",
            "requests_succeeded",
            "requests_failed",
            "retries",
            "streams_started",
            "streams_completed",
            "streams_failed",
            "active_requests",
            "active_streams",
            "bytes_sent",
            "bytes_received",
            "total_latency_ms",
        }


def test_the_counters_add_up_at_every_moment():
    """Calls that succeed, fail and are cancelled in many threads, looked at all the while."""
    mixed = [reply(), reply(status=500), reply(status=503), raw_reply("<p>")]
    routes = {f"POST /{number}/ask": [[step]] for number, step in enumerate(mixed)}
    over = threading.Event()
    seen: list[TransportMetricsSnapshot] = []

    def look(client: HTTPTransport) -> None:
        while not over.is_set():
            seen.append(client.metrics)

    def work(client: HTTPTransport, base: str, number: int) -> None:
        for turn in range(60):
            token = CancelToken()
            killer = None
            if turn % 10 == number % 10:
                killer = Calling(token.cancel)
            try:
                client.send(ASK, f"{base}/{(turn + number) % 4}", {}, cancel=token)
            except ProtoLinkError:
                pass
            if killer is not None:
                killer.result()

    config = retrying(2, config={"limits": TransportLimits(max_concurrent_requests=3)})
    with ScriptedServer({"routes": routes}) as server, transport(config=config) as client:
        watchers = [Calling(look, client) for _ in range(2)]
        workers = [Calling(work, client, server.base, number) for number in range(6)]
        for worker in workers:
            worker.result(60)
        over.set()
        for watcher in watchers:
            watcher.result()
        end = client.metrics

    assert all(adds_up(counted) for counted in seen)
    assert all(0 <= counted.active_requests <= 6 for counted in seen)
    assert end.active_requests == 0
    assert end.requests_started == 6 * 60
    assert adds_up(end)


def test_counting_can_be_switched_off():
    config = retrying(2, config={"collect_metrics": False})

    with (
        answering(reply(status=503), reply()) as server,
        transport(server, config=config) as client,
    ):
        client.send(ASK, None, {})

        assert client.metrics == TransportMetricsSnapshot()


# ---- health and capabilities -------------------------------------------------------------------


def test_the_health_of_an_open_transport():
    with answering() as server, transport(server) as client:
        client.send(ASK, None, {})
        health = client.health()

        assert health["status"] == "ready"
        assert health["ready"] is True
        assert health["transport"] == "http"
        assert health["url"] == server.base
        assert health["capabilities"] == client.capabilities.to_dict()
        assert health["metrics"]["requests_succeeded"] == 1


def test_the_health_of_a_closed_transport():
    client = HTTPTransport()
    client.close()

    assert client.health()["status"] == "stopped"
    assert client.health()["ready"] is False


def test_capabilities_say_what_a_kind_of_transport_can_do():
    assert HTTPTransport.capabilities.to_dict() == {
        "networked": True,
        "streaming": False,
        "tls": True,
        "bidirectional": False,
        "persistent_connections": True,
    }
    assert SSEJSONRPCTransport.capabilities.streaming


def test_a_transport_that_does_not_stream_says_so_before_anything_is_sent():
    with answering() as server, transport(server) as client:
        assert not client.supports_streaming
        with pytest.raises(NotImplementedError) as caught:
            client.subscribe(server.base, {"id": "t"})

        assert isinstance(caught.value, TransportError)
        assert not server.connections
        assert client.metrics == TransportMetricsSnapshot()
