"""WebSocket against real protolink agents."""

from __future__ import annotations

import time
from typing import Any

import pytest

from protolink_sync.client import AgentClient
from protolink_sync.errors import (
    AuthenticationError,
    StreamInterruptedError,
    TransportConnectionError,
    TransportRemoteError,
)
from protolink_sync.models import Message, Task, TaskState
from protolink_sync.security import APIKey, BasicAuth, BearerToken, TLSConfig
from protolink_sync.transport import TransportConfig, TransportLimits, WebSocketTransport
from tests.peers import bearer_jwt
from tests.transport.scenes import together, wait_until


def text_task(text: str) -> Task:
    return Task.create(Message.user(text))


@pytest.fixture
def agent(shared_peer):
    return shared_peer("websocket")


@pytest.fixture
def client():
    with AgentClient("websocket") as made:
        yield made


def test_calls_of_every_kind(agent, client):
    assert client.send_task(agent.url, text_task("echo hi")).text == "hi"
    assert client.get_agent_card(agent.url).name == "websocket_agent"
    assert client.send_infer_task("hello", agent.url).state is TaskState.COMPLETED


def test_a_thousand_calls_use_one_connection_and_threads_one_each(agent, client, counting_proxy):
    proxy = counting_proxy(agent.url)

    for number in range(1000):
        assert client.send_task(proxy.url, text_task(f"echo {number}")).text == str(number)
    assert proxy.total == 1

    def work(thread: int) -> None:
        for number in range(20):
            text = f"{thread}-{number}"
            assert client.send_task(proxy.url, text_task(f"echo {text}")).text == text

    together(8, work)
    assert proxy.total <= 8


def test_the_same_task_sent_again_is_run_once(agent, client):
    task = text_task("count")

    first, second = (client.send_task(agent.url, task).text for _ in range(2))

    assert first == second
    assert first.startswith("1 executions")


def test_an_error_in_the_handler_is_told(agent, client):
    with pytest.raises(TransportRemoteError, match="kaput"):
        client.send_task(agent.url, text_task("raise kaput"))


def test_a_large_task_goes_and_comes(agent, client):
    text = "x" * 2_000_000

    assert client.send_task(agent.url, text_task(f"echo {text}")).text == text


def test_two_thousand_events_in_order(agent, client):
    stream = client.send_task_streaming(agent.url, text_task("many 2000"))

    steps = [event["message"] for event in stream if event["type"] == "task_progress"]

    assert steps == [f"step {number}" for number in range(2000)]
    assert stream.task.state is TaskState.COMPLETED


@pytest.mark.parametrize("text", ["nofinal", "need", "fail x", "nested"])
def test_every_end_of_a_stream(agent, client, text):
    events = list(client.send_task_streaming(agent.url, text_task(text)))

    assert events


def test_a_stream_is_cancelled_beside_it(agent, client):
    stream = client.send_task_streaming(agent.url, text_task("wait 20"))
    next(stream)
    began = time.monotonic()

    stream.cancel("enough")

    assert stream.result().state is TaskState.CANCELED
    assert time.monotonic() - began < 2


def test_a_cut_stream_is_interrupted(agent, client, counting_proxy):
    proxy = counting_proxy(agent.url)
    stream = client.send_task_streaming(proxy.url, text_task("slow 50 0.1"))
    next(stream)

    proxy.cut()

    with pytest.raises(StreamInterruptedError):
        list(stream)


def test_a_reader_that_stalls_beyond_the_agents_pings_is_told_so(start_peer):
    peer = start_peer(
        "websocket", "--setting", "keepalive_interval=0.2", "--setting", "keepalive_timeout=0.2"
    )
    with AgentClient("websocket") as client:
        stream = client.send_task_streaming(peer.url, text_task("slow 100000 0.001"))
        next(stream)
        time.sleep(2)  # the stall is what is tested

        with pytest.raises(StreamInterruptedError, match="too slow") as caught:
            list(stream)
        assert "1011" in str(caught.value)
        assert caught.value.events > 1


def test_pings_during_a_long_call_are_answered(start_peer):
    peer = start_peer(
        "websocket", "--setting", "keepalive_interval=0.1", "--setting", "keepalive_timeout=0.3"
    )
    with AgentClient("websocket") as client:
        assert client.send_task(peer.url, text_task("wait 1.5")).text == "waited"


@pytest.mark.parametrize(
    ("options", "good", "bad"),
    [
        (("--api-key", "k1"), APIKey("k1"), APIKey("k2")),
        (("--basic", "ada:pw"), BasicAuth("ada", "pw"), BasicAuth("ada", "wrong")),
        (("--bearer", "secret"), None, BearerToken("x.y.z")),
    ],
)
def test_credentials_go_with_the_upgrade(shared_peer, options, good, bad):
    peer = shared_peer("websocket", *options)
    good = good or BearerToken(bearer_jwt("secret"))

    with AgentClient(WebSocketTransport(credentials=good)) as client:
        assert client.send_task(peer.url, text_task("echo hi")).text == "hi"
        client.transport.close()
    for wrong in (bad, None):
        with (
            WebSocketTransport(credentials=wrong) as transport,
            pytest.raises(AuthenticationError) as caught,
        ):
            AgentClient(transport).send_task(peer.url, text_task("echo hi"))
        assert caught.value.status_code == 401
        assert b"Unauthorized" in caught.value.body


def tls_options(files: Any, *more: str) -> tuple[str, ...]:
    return ("--cert", files.server_cert, "--key", files.server_key, *more)


def test_calls_and_streams_over_tls(shared_peer, tls_files):
    peer = shared_peer("websocket", *tls_options(tls_files))
    with WebSocketTransport(tls=TLSConfig(cafile=tls_files.ca)) as transport:
        client = AgentClient(transport)
        assert peer.url.startswith("wss://")
        assert client.send_task(peer.url, text_task("echo hi")).text == "hi"
        assert len(list(client.send_task_streaming(peer.url, text_task("many 500")))) == 502


def test_a_client_shows_its_certificate(shared_peer, tls_files):
    peer = shared_peer("websocket", *tls_options(tls_files, "--ca", tls_files.ca))
    known = TLSConfig(tls_files.client_cert, tls_files.client_key, tls_files.ca)

    with WebSocketTransport(tls=known) as transport:
        client = AgentClient(transport)
        assert client.send_task(peer.url, text_task("echo hi")).text == "hi"
    with (
        WebSocketTransport(tls=TLSConfig(cafile=tls_files.ca)) as transport,
        pytest.raises(TransportConnectionError),
    ):
        AgentClient(transport).send_task(peer.url, text_task("echo hi"))


def test_sizes_beyond_the_agents_limits(start_peer):
    peer = start_peer("websocket", "--limit", "max_request_bytes=5000")
    with AgentClient("websocket") as client:
        with pytest.raises(TransportConnectionError, match="1009") as caught:
            client.send_task(peer.url, text_task("echo " + "x" * 10_000))
        assert caught.value.retryable is False
        assert client.send_task(peer.url, text_task("echo hi")).text == "hi"


def test_sizes_beyond_our_limits_are_refused_here(agent):
    config = TransportConfig(limits=TransportLimits(max_response_bytes=5000))
    with WebSocketTransport(config=config) as transport:
        client = AgentClient(transport)
        with pytest.raises(ValueError, match="max_response_bytes"):
            client.send_task(agent.url, text_task("big 10000"))
        assert client.send_task(agent.url, text_task("echo hi")).text == "hi"


def test_nothing_is_left_open_at_the_agent(agent, counting_proxy):
    proxy = counting_proxy(agent.url)
    with AgentClient("websocket") as client:
        client.send_task(proxy.url, text_task("echo hi"))
        list(client.send_task_streaming(proxy.url, text_task("many 10")))
        assert wait_until(lambda: proxy.open == 1)
    assert wait_until(lambda: proxy.open == 0)
