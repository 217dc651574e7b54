"""AgentClient's A2A side: how it is switched on, and what it says when it is not."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys

import pytest

from protolink_sync import AgentClient, connect
from protolink_sync.a2a import A2AClientError, A2AMemory
from protolink_sync.models import Message, Task
from protolink_sync.transport import HTTPTransport, RuntimeTransport, SSEJSONRPCTransport

URL = "http://127.0.0.1:9"


def calls(client: AgentClient):
    """Return each call that takes ``protocol``, as a function of it."""
    return [
        lambda protocol: client.send_task(URL, Task.create("hi"), protocol=protocol),
        lambda protocol: client.send_infer_task("hi", URL, protocol=protocol),
        lambda protocol: client.send_message(URL, Message.user("hi"), protocol=protocol),
        lambda protocol: client.cancel_task(URL, "t", protocol=protocol),
    ]


def test_the_constructor_takes_two_switches_by_name():
    parameters = inspect.signature(AgentClient).parameters

    assert list(parameters) == ["transport", "url", "timeout", "a2a", "a2a_allow_cross_origin"]
    for name in ("a2a", "a2a_allow_cross_origin"):
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[name].default is False


@pytest.mark.parametrize("name", ["sse", "json-rpc", "websocket", "runtime"])
def test_only_http_carries_a2a(name):
    with pytest.raises(ValueError, match="'http'"):
        AgentClient(name, a2a=True)


@pytest.mark.parametrize("transport", [SSEJSONRPCTransport, RuntimeTransport])
def test_a_given_transport_must_be_http_too(transport):
    with transport() as given, pytest.raises(ValueError, match="'http'"):
        AgentClient(given, a2a=True)


def test_a_transport_of_ones_own_that_is_http_carries_a2a():
    class Own(HTTPTransport):
        pass

    with Own() as transport:
        assert AgentClient(transport, a2a=True).transport is transport


@pytest.mark.parametrize("name", ["a2a", "a2a_allow_cross_origin"])
@pytest.mark.parametrize("value", [1, "yes", None])
def test_a_switch_is_true_or_false(name, value):
    with pytest.raises(TypeError, match=name):
        AgentClient("http", **{"a2a": True, name: value})


def test_nothing_to_allow_is_said_so():
    with pytest.raises(ValueError, match="a2a=True"):
        AgentClient("http", a2a_allow_cross_origin=True)


def test_the_client_says_whether_it_speaks_a2a():
    with AgentClient("http") as plain, AgentClient("http", a2a=True) as both:
        assert (plain.a2a, both.a2a) == (False, True)
        for client in (plain, both):
            with pytest.raises(AttributeError):
                client.a2a = True


@pytest.mark.parametrize("number", range(4))
def test_a2a_has_to_be_switched_on(number):
    with AgentClient("http") as client, pytest.raises(A2AClientError, match="a2a=True"):
        calls(client)[number]("a2a")


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("a2a", [False, True])
def test_an_unknown_protocol_is_refused_before_anything_is_sent(number, a2a):
    with AgentClient("http", a2a=a2a) as client:
        for wrong in ("soap", "A2A", "", None):
            with pytest.raises(ValueError, match="auto, protolink, a2a"):
                calls(client)[number](wrong)


def test_the_card_and_the_memory_need_a2a():
    with AgentClient("http") as client:
        with pytest.raises(A2AClientError, match="a2a=True"):
            client.get_a2a_agent_card(URL)
        with pytest.raises(A2AClientError, match="a2a=True"):
            _ = client.a2a_memory
        with pytest.raises(A2AClientError, match="a2a=True"):
            client.a2a_memory = A2AMemory()


def test_the_memory_is_one():
    with AgentClient("http", a2a=True) as client:
        memory = client.a2a_memory = A2AMemory()

        with pytest.raises(TypeError, match="A2AMemory"):
            client.a2a_memory = {}
        assert client.a2a_memory is memory


@pytest.mark.parametrize("a2a", [False, True])
def test_a_copy_speaks_as_the_client_does(a2a):
    with AgentClient("http", a2a=a2a) as client:
        for other in (pickle.loads(pickle.dumps(client)), copy.copy(client)):
            assert other.a2a is a2a
            other.close()


def test_connect_takes_the_switch():
    with connect(URL, a2a=True) as peer:
        assert peer.client.a2a
        assert peer.client.transport.supports_streaming
    with connect(URL) as peer:
        assert not peer.client.a2a
    for url in ("ws://127.0.0.1:9", "runtime://x"):
        with pytest.raises(ValueError, match="'http'"):
            connect(url, a2a=True)
    with pytest.raises(TypeError, match="a2a"):
        connect(URL, a2a="yes")


def test_a_client_without_a2a_does_not_load_it():
    program = (
        "import sys; from protolink_sync import AgentClient; AgentClient('http').close(); "
        "print(*[name for name in sys.modules if '.a2a.' in name])"
    )

    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    assert run.stdout.split() == []
