"""Transports by name, their arguments, and what a wrong one is told."""

from __future__ import annotations

import inspect
import math
import threading

import pytest

from protolink_sync.security import TLSConfig
from protolink_sync.transport import (
    HTTPTransport,
    RuntimeTransport,
    SSEJSONRPCTransport,
    Transport,
    TransportConfig,
    WebSocketTransport,
    factory,
    get_transport,
    register_transport,
)
from tests.transport.scenes import ASK, answering, descriptors, transport

CLASSES = [HTTPTransport, SSEJSONRPCTransport, WebSocketTransport, RuntimeTransport]


@pytest.fixture
def registered(monkeypatch) -> None:
    """What a test registers ends with it."""
    monkeypatch.setattr(factory, "_registered", {})


# ---- names -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "cls"),
    [
        ("http", HTTPTransport),
        ("HTTP", HTTPTransport),
        ("sse", SSEJSONRPCTransport),
        ("sse-json-rpc", SSEJSONRPCTransport),
        ("json-rpc", SSEJSONRPCTransport),
        ("websocket", WebSocketTransport),
        ("runtime", RuntimeTransport),
    ],
)
def test_a_name_makes_a_transport(name, cls):
    with get_transport(name) as made:
        assert type(made) is cls


def test_settings_go_to_the_class():
    config = TransportConfig(connect_timeout=3.0)

    with get_transport("http", url="http://127.0.0.1:8010/", timeout=7, config=config) as made:
        assert (made.url, made.timeout, made.config) == ("http://127.0.0.1:8010", 7.0, config)


@pytest.mark.parametrize("name", ["htpp", "", "http ", "HTTPTransport"])
def test_an_unknown_name_is_told_which_there_are(name):
    with pytest.raises(ValueError, match="unknown transport") as caught:
        get_transport(name)

    assert repr(name) in str(caught.value)
    for known in ("http", "runtime", "sse", "websocket"):
        assert known in str(caught.value)


@pytest.mark.parametrize("name", [None, 5, HTTPTransport, b"http"])
def test_a_name_that_is_no_text_is_a_type_error(name):
    with pytest.raises(TypeError, match="transport"):
        get_transport(name)


def test_a_transport_of_your_own_gets_a_name(registered):
    class Mine(HTTPTransport):
        transport_type = "mine"

    register_transport("Mine", Mine)

    with get_transport("mine", url="http://127.0.0.1:1") as made:
        assert type(made) is Mine
    with pytest.raises(ValueError, match="mine"):
        get_transport("yours")


def test_a_factory_may_be_any_callable(registered):
    register_transport("local", lambda **settings: HTTPTransport(trust_env=False, **settings))

    with get_transport("local", timeout=3) as made:
        assert made.timeout == 3


def test_a_built_in_name_can_be_replaced(registered):
    class Mine(HTTPTransport):
        pass

    register_transport("http", Mine)

    with get_transport("http") as made:
        assert type(made) is Mine


@pytest.mark.parametrize(
    ("alias", "made"), [(5, HTTPTransport), (None, HTTPTransport), ("mine", None), ("mine", "http")]
)
def test_what_cannot_be_registered_is_a_type_error(alias, made, registered):
    with pytest.raises(TypeError):
        register_transport(alias, made)


def test_an_empty_name_cannot_be_registered(registered):
    with pytest.raises(ValueError, match="empty"):
        register_transport("", HTTPTransport)


# ---- arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", CLASSES)
def test_an_unknown_argument_is_told_which_there_are(cls):
    with pytest.raises(TypeError, match="'retries'") as caught:
        cls(retries=3)

    assert cls.__name__ in str(caught.value)
    for known in ("url", "timeout", "config"):
        assert known in str(caught.value)


@pytest.mark.parametrize("make", [*CLASSES, lambda **words: get_transport("http", **words)])
@pytest.mark.parametrize(
    ("word", "instead"), [("authenticator", "credentials="), ("backend", "agent.serve")]
)
def test_protolinks_words_for_servers_are_told_what_to_use_here(make, word, instead):
    """The original's transports are servers too; code that is moved over has these arguments."""
    with pytest.raises(TypeError, match=instead) as caught:
        make(**{word: object()})

    assert repr(word) in str(caught.value)


@pytest.mark.parametrize("cls", CLASSES)
def test_the_signature_lists_the_arguments(cls):
    """For help(), editors and the reference: what explains wrong ones must not hide right ones."""
    parameters = inspect.signature(cls).parameters

    assert list(parameters)[:2] == ["url", "timeout"]
    assert "config" in parameters
    assert not {"args", "settings"} & set(parameters)


def test_url_and_timeout_may_be_given_by_position():
    with HTTPTransport("http://127.0.0.1:8010", 5) as made:
        assert (made.url, made.timeout) == ("http://127.0.0.1:8010", 5.0)


@pytest.mark.parametrize("timeout", [math.inf, 0.001, 1, 10**9])
def test_a_time_out_is_a_positive_number(timeout):
    with HTTPTransport(timeout=timeout) as made:
        assert made.timeout == timeout


@pytest.mark.parametrize("timeout", [0, -1, math.nan, -math.inf])
def test_a_time_out_that_is_not_positive_is_a_value_error(timeout):
    with pytest.raises(ValueError, match="timeout"):
        HTTPTransport(timeout=timeout)
    with HTTPTransport("http://127.0.0.1:9") as client, pytest.raises(ValueError, match="timeout"):
        client.send(ASK, None, {}, timeout=timeout)


@pytest.mark.parametrize("timeout", [True, "5", b"5", [5]])
def test_a_time_out_that_is_no_number_is_a_type_error(timeout):
    with pytest.raises(TypeError, match="timeout"):
        HTTPTransport(timeout=timeout)
    with HTTPTransport("http://127.0.0.1:9") as client, pytest.raises(TypeError, match="timeout"):
        client.send(ASK, None, {}, timeout=timeout)


@pytest.mark.parametrize(
    "wrong", [{"config": {}}, {"tls": {}}, {"trust_env": "no"}, {"trust_env": 1}]
)
def test_an_argument_of_another_type_is_a_type_error(wrong):
    with pytest.raises(TypeError, match=next(iter(wrong))):
        HTTPTransport(**wrong)


# ---- addresses ---------------------------------------------------------------------------------

NO_ADDRESS = [
    "",
    "127.0.0.1:8010",
    "//127.0.0.1",
    "http://",
    "http:///path",
    "http://h:port",
    "http://h:70000",
    "http://h?x=1",
    "http://h/#f",
    "http://h h",
    "http://h/\r\nX-Evil: 1",
    "http://h/\t",
    "http://hä.test",
    "http://[::1",
    "ftp://h",
    "ws://h",
    "grpc://h",
    "runtime://h",
    "file:///etc/passwd",
]


def give_address(where: str, url: str) -> None:
    if where == "transport":
        HTTPTransport(url)
    else:
        with HTTPTransport() as client:
            client.send(ASK, url, {})


@pytest.mark.parametrize("url", NO_ADDRESS)
@pytest.mark.parametrize("where", ["transport", "call"])
def test_an_address_that_cannot_be_called_is_a_value_error_before_anything_is_sent(url, where):
    with pytest.raises(ValueError):
        give_address(where, url)


@pytest.mark.parametrize("url", [5, b"http://h", ["http://h"]])
def test_an_address_that_is_no_text_is_a_type_error(url):
    with pytest.raises(TypeError, match="URL"):
        HTTPTransport(url)


def test_a_scheme_of_another_transport_is_told_which_this_one_takes():
    with pytest.raises(ValueError, match="http:// or https://"):
        HTTPTransport("grpc://127.0.0.1:8010")


def test_a_call_without_any_address_is_a_value_error():
    with HTTPTransport() as client, pytest.raises(ValueError, match="no url"):
        client.send(ASK, None, {})


@pytest.mark.parametrize(("path", "target"), [("", "/ask"), ("/", "/ask"), ("/a/b/", "/a/b/ask")])
def test_an_address_may_have_a_path_and_slashes_at_its_end(path, target):
    with answering() as server, transport() as client:
        client.send(ASK, f"{server.base}{path}", {})

    assert server.requests[0].target == target


def test_the_scheme_may_be_written_in_capitals():
    with answering() as server, transport() as client:
        assert client.send(ASK, f"HTTP://127.0.0.1:{server.port}", {}) == {"ok": True}


def test_many_addresses_leave_the_memory_as_it_is():
    """Who calls ever new addresses must not make the tables of them grow without end."""
    with answering() as server, transport() as client:
        for number in range(1100):
            client.send(ASK, f"{server.base}/agent-{number}", {})

        assert len(server.connections) == 1
        assert len(client._addresses) <= 1024


# ---- what is sent ------------------------------------------------------------------------------


def test_data_that_is_no_json_is_a_type_error_before_anything_is_sent():
    with answering() as server, transport(server) as client:
        with pytest.raises(TypeError):
            client.send(ASK, None, {"a": object()})
        with pytest.raises(ValueError):
            client.send(ASK, None, {"a": math.nan})

        assert not server.connections
        assert client.metrics.requests_started == 0


def test_a_spec_of_another_type_is_a_type_error():
    with transport() as client, pytest.raises(TypeError, match="ClientRequestSpec"):
        client.send("ask", "http://127.0.0.1:9", {})


def test_every_call_says_who_sends_it():
    with answering() as server, transport(server, headers={"X-Any": "1"}) as client:
        client.send(ASK, None, {})

    (agent,) = server.requests[0].all("User-Agent")
    assert agent.startswith("protolink-sync/")


# ---- before the first call ---------------------------------------------------------------------


@pytest.mark.parametrize("cls", [HTTPTransport, SSEJSONRPCTransport, WebSocketTransport])
def test_a_constructor_opens_and_starts_nothing(cls, tls_files):
    """Servers construct clients before they fork."""
    before = (sum(1 for _ in descriptors()), threading.active_count())
    scheme = cls.schemes[-1]

    made = cls(f"{scheme}://127.0.0.1:9", tls=TLSConfig(cafile=tls_files.ca), credentials="x")

    assert (sum(1 for _ in descriptors()), threading.active_count()) == before
    made.close()


def test_the_base_is_not_a_transport_itself():
    class Bare(Transport):
        schemes = ("bare",)

    with pytest.raises(NotImplementedError):
        Bare().send(ASK, "bare://x", {})


def test_transports_of_one_class_share_nothing():
    with answering() as server, transport(server) as one, transport(server) as other:
        one.send(ASK, None, {})
        one.close()

        assert other.send(ASK, None, {}) == {"ok": True}
        assert other.metrics.requests_started == 1
