"""WebSocket over TLS and through proxies."""

from __future__ import annotations

import base64

import pytest

from protolink_sync.errors import (
    TLSVerificationError,
    TransportConnectionError,
)
from protolink_sync.security import BearerToken
from tests.cases.server import ScriptedServer
from tests.transport.scenes import (
    ASK,
    RECV,
    failed,
    reply,
    send,
    serving,
)
from tests.transport.tunnels import Tunnels
from tests.transport.ws_scenes import (
    BEGIN,
    PING,
    TAKE,
    answer,
    frame,
    transport,
)


def test_a_call_over_tls(tls_server, tls_client):
    steps = [*BEGIN, answer("a" * 100_000), TAKE, answer(2)]
    with serving(steps, tls=tls_server) as server, transport(server, tls=tls_client) as client:
        assert client.send(ASK, data={"q": "x" * 200_000}) == "a" * 100_000
        assert client.send(ASK, data={}) == 2
        assert len(server.connections) == 1


def test_pings_to_an_idle_tls_connection_are_answered(tls_server, tls_client):
    steps = [*BEGIN, answer(), frame(PING, "idle"), TAKE, TAKE, answer(2)]
    with serving(steps, tls=tls_server) as server, transport(server, tls=tls_client) as client:
        client.send(ASK, data={})
        assert client.send(ASK, data={}) == 2
        assert len(server.connections) == 1


def test_a_certificate_of_a_stranger_is_refused(tls_server):
    with serving([RECV], tls=tls_server) as server, transport(server) as client:
        error = failed(client)

    assert type(error) is TLSVerificationError
    assert error.retryable is False
    assert error.phase == "tls"


def test_tls_to_a_port_without_it_says_what_to_call():
    with (
        ScriptedServer(
            {"connections": [[{"op": "recv_some"}, send("HTTP/1.1 400 x\r\n\r\n")]]}
        ) as server,
        transport() as client,
    ):
        error = failed(client, url=f"wss://{server.address}")

    assert type(error) is TransportConnectionError
    assert "ws://" in str(error)


def test_a_call_through_a_proxy_gives_the_proxy_its_password_and_nothing_else():
    with Tunnels() as tunnels, serving([*BEGIN, answer()]) as server:
        proxy = tunnels.url.replace("://", "://us%40er:pass%3Aword@")
        with transport(server, proxy=proxy, credentials=BearerToken("t0ken")) as client:
            assert client.send(ASK, data={}) == "done"

    (head,) = tunnels.heads
    assert head.startswith(f"CONNECT {server.address} HTTP/1.1\r\n")
    expected = "Basic " + base64.b64encode(b"us@er:pass:word").decode()
    assert tunnels.headers("Proxy-Authorization") == [expected]
    assert "t0ken" not in head
    assert server.requests[0].header("Proxy-Authorization") is None


def test_a_call_over_tls_through_a_proxy(tls_server, tls_client):
    with (
        Tunnels() as tunnels,
        serving([*BEGIN, answer()], tls=tls_server) as server,
        transport(server, proxy=tunnels.url, tls=tls_client) as client,
    ):
        assert client.send(ASK, data={}) == "done"
    assert tunnels.connections == 1


def test_a_call_through_a_proxy_that_speaks_tls(tls_server, tls_client):
    with (
        Tunnels(tls=tls_server) as tunnels,
        serving([*BEGIN, answer()]) as server,
        transport(server, proxy=tunnels.url, tls=tls_client) as client,
    ):
        assert client.send(ASK, data={}) == "done"


def test_a_proxy_that_speaks_tls_is_not_shown_the_certificate_for_the_peers(
    curious_tls_server, tls_identity
):
    with (
        Tunnels(tls=curious_tls_server) as tunnels,
        serving([*BEGIN, answer()]) as server,
        transport(server, proxy=tunnels.url, tls=tls_identity) as client,
    ):
        assert client.send(ASK, data={}) == "done"

    assert tunnels.certificates == [None]


def test_tls_within_the_tls_of_a_proxy_is_refused_before_anything_is_sent():
    with (
        Tunnels() as tunnels,
        transport(proxy=tunnels.url.replace("http", "https")) as client,
        pytest.raises(ValueError, match="https"),
    ):
        client.send(ASK, "wss://127.0.0.1:9", {})
    assert not tunnels.connections


@pytest.mark.parametrize("variable", ["http_proxy", "ALL_PROXY"])
def test_the_environment_names_the_proxy(variable, monkeypatch):
    with Tunnels() as tunnels, serving([*BEGIN, answer()]) as server:
        monkeypatch.setenv(variable, tunnels.url)
        with transport(server) as client, transport(server, trust_env=False) as direct:
            assert client.send(ASK, data={}) == direct.send(ASK, data={}) == "done"
    assert tunnels.connections == 1


def test_a_proxy_that_refuses_is_named(monkeypatch):
    with (
        serving([{"op": "recv_head"}, reply(status=407)]) as proxy,
        transport(proxy=proxy.base) as client,
    ):
        error = failed(client, url="ws://agent.test:80")

    assert type(error) is TransportConnectionError
    assert "proxy refused" in str(error)
    assert "407" in str(error)
