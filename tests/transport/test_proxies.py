"""Which calls go through a proxy, how, and what the proxy gets to see."""

from __future__ import annotations

import base64
import socket
import time
from typing import Any

import pytest

from protolink_sync import CancelToken
from protolink_sync.errors import (
    CallCancelledError,
    TLSVerificationError,
    TransportConnectionError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.security import TLSConfig
from protolink_sync.transport import HTTPTransport, TransportConfig
from tests.cases.server import ScriptedServer
from tests.transport.scenes import (
    ASK,
    CLOSE,
    HOLD,
    LOOK,
    RECV,
    RECV_HEAD,
    RST,
    Calling,
    about,
    answering,
    failed,
    held_back,
    reply,
    send,
    serving,
    transport,
)
from tests.transport.tunnels import Tunnels

NOBODY = "http://127.0.0.1:9"
PASSWORD = "pr0xy-pw"


def basic(pair: str) -> str:
    return "Basic " + base64.b64encode(pair.encode()).decode()


def known_names(monkeypatch: pytest.MonkeyPatch, **names: str) -> None:
    """Have host names looked up here (``agent_test`` stands for ``agent.test``)."""
    table = {name.replace("_", "."): address for name, address in names.items()}
    real = socket.getaddrinfo

    def lookup(host: str, port: Any, *args: Any, **words: Any) -> Any:
        if host not in table:
            return real(host, port, *args, **words)
        if words.get("flags"):
            raise socket.gaierror(socket.EAI_NONAME, "a name")
        return real(table[host], port, *args, **words)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)


# ---- from where --------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_the_environment_names_a_proxy_for_http(variable, monkeypatch):
    with answering() as server, Tunnels() as proxy, transport(server) as client:
        monkeypatch.setenv(variable, proxy.url)

        assert client.send(ASK, None, {"a": 1}) == {"ok": True}

        assert proxy.heads[0].startswith(f"POST {server.base}/ask HTTP/1.1\r\n")
        assert proxy.headers("Host") == [server.address]
        assert server.requests[0].body == b'{"a":1}'


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"])
def test_the_environment_names_a_proxy_for_https(variable, monkeypatch, tls_server, tls_client):
    with answering(tls=tls_server) as server, Tunnels() as proxy:
        monkeypatch.setenv(variable, proxy.url)
        with transport(server, tls=tls_client) as client:
            assert client.send(ASK, None, {}) == {"ok": True}
            assert client.send(ASK, None, {}) == {"ok": True}

        assert len(proxy.heads) == 1
        assert proxy.heads[0].startswith(f"CONNECT {server.address} HTTP/1.")
        assert len(server.requests) == 2
        assert server.requests[0].target == "/ask"


@pytest.mark.parametrize(("variable", "scheme"), [("HTTP_PROXY", "https"), ("HTTPS_PROXY", "http")])
def test_a_proxy_is_for_its_scheme_only(variable, scheme, monkeypatch, tls_server, tls_client):
    monkeypatch.setenv(variable, NOBODY)

    with (
        answering(tls=tls_server if scheme == "https" else None) as server,
        transport(server, tls=tls_client) as client,
    ):
        assert client.send(ASK, None, {}) == {"ok": True}


def test_lower_case_wins(monkeypatch):
    with answering() as server, Tunnels() as proxy, transport(server) as client:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("HTTP_PROXY", NOBODY)

        assert client.send(ASK, None, {}) == {"ok": True}


def test_the_proxy_of_the_scheme_wins_over_the_one_for_all(monkeypatch):
    with answering() as server, Tunnels() as proxy, transport(server) as client:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("all_proxy", NOBODY)

        assert client.send(ASK, None, {}) == {"ok": True}


def test_a_cgi_program_does_not_take_its_proxy_from_a_visitor(monkeypatch):
    monkeypatch.setenv("REQUEST_METHOD", "GET")
    monkeypatch.setenv("HTTP_PROXY", NOBODY)

    with answering() as server, transport(server) as client:
        assert client.send(ASK, None, {}) == {"ok": True}


def test_the_environment_can_be_switched_off(monkeypatch):
    for name in ("http_proxy", "all_proxy"):
        monkeypatch.setenv(name, NOBODY)

    with answering() as server, transport(server, trust_env=False) as client:
        assert client.send(ASK, None, {}) == {"ok": True}


def test_a_proxy_without_scheme_speaks_http(monkeypatch):
    with answering() as server, Tunnels() as proxy, transport(server) as client:
        monkeypatch.setenv("http_proxy", f"127.0.0.1:{proxy.port}")

        assert client.send(ASK, None, {}) == {"ok": True}


@pytest.mark.parametrize("trust_env", [True, False])
def test_a_proxy_of_the_caller_is_for_all_calls(trust_env, monkeypatch, tls_server, tls_client):
    monkeypatch.setenv("http_proxy", NOBODY)
    monkeypatch.setenv("https_proxy", NOBODY)
    monkeypatch.setenv("no_proxy", "*")

    with answering() as plain, answering(tls=tls_server) as secure, Tunnels() as proxy:
        with transport(proxy=proxy.url, trust_env=trust_env, tls=tls_client) as client:
            assert client.send(ASK, plain.base, {}) == {"ok": True}
            assert client.send(ASK, secure.base, {}) == {"ok": True}

        assert [head.split(" ")[0] for head in proxy.heads] == ["POST", "CONNECT"]


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "ftp://h:1", "http://", "://"])
def test_a_proxy_that_cannot_be_used_is_a_value_error(proxy):
    with pytest.raises(ValueError, match="proxy"):
        HTTPTransport(proxy=proxy)


@pytest.mark.parametrize("proxy", [5, b"http://h:1", {"http": "http://h:1"}])
def test_a_proxy_of_another_type_is_a_type_error(proxy):
    with pytest.raises(TypeError, match="proxy"):
        HTTPTransport(proxy=proxy)


def test_a_proxy_of_the_environment_that_cannot_be_used_is_a_value_error(monkeypatch):
    monkeypatch.setenv("http_proxy", f"socks5://me:{PASSWORD}@127.0.0.1:9")

    with (
        answering() as server,
        transport(server) as client,
        pytest.raises(ValueError, match="socks5") as caught,
    ):
        client.send(ASK, None, {})

    assert PASSWORD not in str(caught.value)


# ---- except for whom ---------------------------------------------------------------------------

EXCEPTED = {
    "an address": ("127.0.0.1", "127.0.0.1"),
    "an address among others": ("127.0.0.1", "10.0.0.1, 127.0.0.1 ,h.test"),
    "an IPv4 network": ("127.0.0.1", "127.0.0.0/8"),
    "an address with its port": ("127.0.0.1", "127.0.0.1:{port}"),
    "an IPv6 address": ("::1", "::1"),
    "an IPv6 address in brackets": ("::1", "[::1]"),
    "an IPv6 address with its port": ("::1", "[::1]:{port}"),
    "an IPv6 address, spelled out": ("::1", "0:0:0:0:0:0:0:1"),
    "an IPv6 network": ("::1", "::/64"),
    "a name": ("agent.test", "agent.test"),
    "a name with its port": ("agent.test", "agent.test:{port}"),
    "a domain": ("agent.test", "test"),
    "a domain with a dot": ("agent.test", ".test"),
    "localhost": ("localhost", "localhost"),
    "everybody": ("127.0.0.1", "*"),
}

NOT_EXCEPTED = {
    "another address": ("127.0.0.1", "127.0.0.2"),
    "another network": ("127.0.0.1", "10.0.0.0/8,192.168.0.0/16"),
    "another port": ("127.0.0.1", "127.0.0.1:1"),
    "another IPv6 network": ("::1", "fe80::/10"),
    "another IPv6 port": ("::1", "[::1]:1"),
    "another name": ("agent.test", "other.test"),
    "the name at another port": ("agent.test", "agent.test:1"),
    "nobody": ("127.0.0.1", ""),
    "nonsense": ("127.0.0.1", ",,/,127.0.0.1/99"),
}


def through_the_proxy(case: tuple[str, str], variable: str, monkeypatch: Any) -> bool:
    """Make one call; say whether it went through the proxy."""
    host, excepted = case
    known_names(monkeypatch, agent_test="127.0.0.1")
    listen = "::1" if host == "::1" else "127.0.0.1"
    with (
        answering(host=listen) as server,
        Tunnels(resolve={"agent.test": "127.0.0.1"}) as proxy,
    ):
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv(variable, excepted.format(port=server.port))
        shown = f"[{host}]" if ":" in host else host
        with transport() as client:
            assert client.send(ASK, f"http://{shown}:{server.port}", {}) == {"ok": True}
        return bool(proxy.heads)


@pytest.mark.parametrize("case", EXCEPTED)
def test_no_proxy_is_used_for(case, monkeypatch):
    variable = "NO_PROXY" if len(case) % 2 else "no_proxy"

    assert not through_the_proxy(EXCEPTED[case], variable, monkeypatch)


@pytest.mark.parametrize("case", NOT_EXCEPTED)
def test_the_proxy_is_used_in_spite_of(case, monkeypatch):
    assert through_the_proxy(NOT_EXCEPTED[case], "NO_PROXY", monkeypatch)


# ---- what it sees ------------------------------------------------------------------------------


def test_the_password_of_a_proxy_goes_to_the_proxy_only():
    with answering() as server, answering() as there:
        url = f"http://me:{PASSWORD}@127.0.0.1:{there.port}"
        with transport(server, proxy=url) as client:
            client.send(ASK, None, {})

    assert there.requests[0].all("Proxy-Authorization") == [basic(f"me:{PASSWORD}")]
    assert there.requests[0].target == f"{server.base}/ask"
    assert not server.connections


def test_the_password_of_a_proxy_stays_outside_the_tunnel(tls_server, tls_client):
    with answering(tls=tls_server) as server, Tunnels() as proxy:
        url = f"http://me:{PASSWORD}@127.0.0.1:{proxy.port}"
        with transport(server, proxy=url, tls=tls_client, credentials="s3cr3t") as client:
            client.send(ASK, None, {})

        assert proxy.headers("Proxy-Authorization") == [basic(f"me:{PASSWORD}")]
    assert server.requests[0].header("Proxy-Authorization") is None


def test_a_proxy_sees_nothing_of_what_goes_through_its_tunnel(tls_server, tls_client):
    with answering(tls=tls_server) as server, Tunnels() as proxy:
        settings = {"credentials": "s3cr3t", "headers": {"X-Tenant": "t1"}}
        with transport(server, proxy=proxy.url, tls=tls_client, **settings) as client:
            client.send(ASK, None, {})

        assert "s3cr3t" not in proxy.heads[0]
        assert "X-Tenant" not in proxy.heads[0]
    assert server.requests[0].header("Authorization") == "Bearer s3cr3t"


def test_a_special_character_in_the_password_is_decoded():
    with answering() as there:
        url = f"http://me:a%40b%3Ac@127.0.0.1:{there.port}"
        with transport(proxy=url) as client:
            client.send(LOOK, "http://agent.test:8010")

    assert there.requests[0].header("Proxy-Authorization") == basic("me:a@b:c")


def test_the_proxy_looks_names_up_itself():
    """Nobody here needs to know the name."""
    with (
        answering() as server,
        Tunnels(resolve={"agent.test": "127.0.0.1"}) as proxy,
        transport(proxy=proxy.url) as client,
    ):
        assert client.send(ASK, f"http://agent.test:{server.port}", {}) == {"ok": True}


def test_calls_to_several_peers_share_the_connections_to_a_proxy():
    with answering() as proxy, transport(proxy=proxy.base) as client:
        for number in range(5):
            client.send(ASK, f"http://agent{number}.test:8010", {})

        assert len(proxy.connections) == 1
        assert [request.header("Host") for request in proxy.requests] == [
            f"agent{number}.test:8010" for number in range(5)
        ]


# ---- when it fails -----------------------------------------------------------------------------

REFUSED = send(
    "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n"
    "Content-Length: 0\r\n\r\n"
)


def test_a_refused_tunnel_is_an_error_that_says_so(tls_client):
    with serving([RECV_HEAD, REFUSED, CLOSE]) as proxy:
        url = f"http://me:{PASSWORD}@127.0.0.1:{proxy.port}"
        with transport(proxy=url, tls=tls_client) as client:
            error = failed(client, url="https://127.0.0.1:8010")

        assert isinstance(error, (TransportConnectionError, TransportRemoteError))
        assert not error.retryable
        assert "407" in str(error)
        assert "proxy" in str(error)
        assert PASSWORD not in str(error)
        assert proxy.wait_for_end() is not None


def test_a_proxy_that_refuses_a_plain_call_is_a_remote_error():
    with answering(reply(status=407)) as proxy, transport(proxy=proxy.base) as client:
        error = failed(client, url="http://agent.test:8010")

    assert type(error) is TransportRemoteError
    assert error.status_code == 407


@pytest.mark.parametrize("how", [CLOSE, RST], ids=["closed", "reset"])
def test_a_tunnel_that_is_cut_while_it_is_made_is_a_connection_error(how, tls_client):
    with (
        serving([RECV_HEAD, how]) as proxy,
        transport(proxy=proxy.base, tls=tls_client) as client,
    ):
        error = failed(client, url="https://127.0.0.1:8010")

    assert type(error) is TransportConnectionError
    assert error.retryable


@pytest.mark.parametrize("answer", ["SSH-2.0-x\r\n", "HTTP/1.1 200 OK\r\n" + "X: y\r\n" * 200])
def test_a_proxy_that_speaks_nonsense_is_an_error_of_the_family(answer, tls_client):
    with (
        serving([RECV_HEAD, send(answer), CLOSE]) as proxy,
        transport(proxy=proxy.base, tls=tls_client) as client,
    ):
        failed(client, url="https://127.0.0.1:8010")


def test_a_proxy_that_is_not_there_is_a_connection_error():
    with ScriptedServer({"listen": False}) as proxy, transport(proxy=proxy.base) as client:
        error = failed(client, url="http://agent.test:8010")

    assert type(error) is TransportConnectionError
    assert error.retryable
    assert f"port {proxy.port}" in str(error)


def test_a_stalled_tunnel_ends_with_the_connect_time_out(tls_client):
    config = TransportConfig(connect_timeout=0.3)

    with serving([RECV_HEAD, HOLD]) as proxy:
        with transport(proxy=proxy.base, tls=tls_client, config=config) as client:
            error = failed(client, url="https://127.0.0.1:8010")

        assert type(error) is TransportTimeoutError
        assert error.retryable
        assert error.phase == "connect"
        assert error.elapsed == about(0.3)
        assert proxy.wait_for_end() == "client"


def test_a_tunnel_whose_answer_drips_ends_with_the_budget(tls_client):
    drip = {"op": "drip", "data": "HTTP/1.1 200 OK\r\n" + "X-A: b\r\n" * 50, "every_s": 0.05}

    with serving([RECV_HEAD, drip]) as proxy, transport(proxy=proxy.base, tls=tls_client) as client:
        error = failed(client, url="https://127.0.0.1:8010", timeout=0.3)

    assert type(error) is TransportTimeoutError
    assert error.elapsed == about(0.3)


def test_a_stalled_tunnel_ends_with_its_token(tls_client):
    token = CancelToken()

    with (
        serving([RECV_HEAD, HOLD]) as proxy,
        transport(proxy=proxy.base, tls=tls_client) as client,
    ):
        call = Calling(client.send, ASK, "https://127.0.0.1:8010", {}, cancel=token)
        proxy.wait_for_requests(1)
        begin = time.monotonic()
        token.cancel()
        with pytest.raises(CallCancelledError):
            call.result()

    assert time.monotonic() - begin < 0.5


def test_a_peer_behind_a_tunnel_is_checked_like_any_other(tls_server, tls_files):
    with answering(tls=tls_server, host="127.0.0.2") as server, Tunnels() as proxy:
        for tls in (None, TLSConfig(cafile=tls_files.ca)):
            with transport(server, proxy=proxy.url, tls=tls) as client:
                assert type(failed(client)) is TLSVerificationError

    assert not server.requests


def test_a_call_through_a_tunnel_ends_with_its_token_too(tls_server, tls_client):
    token = CancelToken()

    with (
        serving([RECV, HOLD], tls=tls_server) as server,
        Tunnels() as proxy,
        transport(server, proxy=proxy.url, tls=tls_client) as client,
    ):
        call = Calling(client.send, ASK, None, {}, cancel=token)
        server.wait_for_requests(1)
        begin = time.monotonic()
        token.cancel()
        with pytest.raises(CallCancelledError) as caught:
            call.result()

    assert time.monotonic() - begin < 0.5
    assert caught.value.phase == "wait"


# ---- a proxy that is spoken to over TLS --------------------------------------------------------


def test_a_proxy_may_itself_be_called_over_tls(tls_server, tls_client):
    """Its certificate is checked by the same settings."""
    with (
        answering() as server,
        Tunnels(tls=tls_server) as proxy,
        transport(server, proxy=proxy.url, tls=tls_client) as client,
    ):
        assert client.send(ASK, None, {}) == {"ok": True}


def test_a_proxy_over_tls_that_nobody_vouches_for_gets_nothing(tls_server):
    with answering() as server, Tunnels(tls=tls_server) as proxy:
        with transport(server, proxy=proxy.url, credentials="s3cr3t") as client:
            error = failed(client)

        assert isinstance(error, TransportConnectionError)
        assert not proxy.heads


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_over_tls_is_not_shown_the_certificate_for_the_peers(
    scheme, curious_tls_server, tls_identity
):
    tls = curious_tls_server if scheme == "https" else None
    with (
        answering(tls=tls) as server,
        Tunnels(tls=curious_tls_server) as proxy,
        transport(server, proxy=proxy.url, tls=tls_identity) as client,
    ):
        assert client.send(ASK, None, {}) == {"ok": True}

    assert proxy.certificates == [None]
    assert len(proxy.heads) == 1


def test_what_tls_inside_of_tls_holds_back_is_no_answer_to_the_next_call(tls_server, tls_client):
    scripts = [[RECV, *held_back({"n": 1}), HOLD], [RECV, reply({"n": 2})]]

    with (
        serving(*scripts, tls=tls_server) as server,
        Tunnels(tls=tls_server) as proxy,
        transport(server, proxy=proxy.url, tls=tls_client) as client,
    ):
        assert [client.send(ASK, None, {}) for _ in range(2)] == [{"n": 1}, {"n": 2}]


def test_a_tunnel_through_a_proxy_over_tls(tls_server, tls_client):
    with answering(tls=tls_server) as server, Tunnels(tls=tls_server) as proxy:
        with transport(server, proxy=proxy.url, tls=tls_client) as client:
            assert client.send(ASK, None, {}) == {"ok": True}
            assert client.send(ASK, None, {}) == {"ok": True}

        assert proxy.connections == 1
