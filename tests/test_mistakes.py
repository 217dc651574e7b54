"""A caller's mistake is told at once, in words that name it, before anything is opened."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from protolink_sync import AgentClient, RegistryClient
from protolink_sync.a2a import A2AClient, PushReceiver, SchemeCredentials
from protolink_sync.aio import AsyncAgentClient
from protolink_sync.models import AgentCard
from protolink_sync.server import Agent
from protolink_sync.testing import FakeAgent, ScriptedTransport
from protolink_sync.transport import GRPCTransport, HTTPTransport, WebSocketTransport

NOBODY = "http://127.0.0.1:9"
CARD = AgentCard("n", "d", NOBODY)


def a2a(**settings: Any) -> A2AClient:
    return A2AClient(NOBODY, **settings)


def agent(**settings: Any) -> Agent:
    return Agent(CARD, **settings)


MISTAKES = {
    "a2a dialect": (lambda: a2a(dialect="1.0"), TypeError, "dialect is '1.0'"),
    "a2a switch": (lambda: a2a(strict=1), TypeError, "strict is 1"),
    "a2a other switch": (lambda: a2a(allow_cross_origin="no"), TypeError, "allow_cross_origin"),
    "a2a extensions as text": (lambda: a2a(extensions="urn:x"), TypeError, "sequence of URIs"),
    "a2a extension of another type": (lambda: a2a(extensions=[5]), TypeError, "sequence of URIs"),
    "a2a extension that is none": (lambda: a2a(extensions=["a b"]), ValueError, "no URI"),
    "a2a empty id": (lambda: a2a().get_task(""), ValueError, "id is ''"),
    "a2a id of another type": (lambda: a2a().cancel_task(5), ValueError, "id is 5"),
    "a2a length as text": (lambda: a2a().get_task("t", "5"), TypeError, "must be an int"),
    "a2a length as truth": (lambda: a2a().get_task("t", True), TypeError, "must be an int"),
    "a2a negative length": (lambda: a2a().get_task("t", -1), ValueError, "must be 0 or more"),
    "a2a state as text": (
        lambda: next(iter(a2a().list_tasks(status="working"))),
        TypeError,
        "status is 'working'",
    ),
    "a2a page of nothing": (
        lambda: next(iter(a2a().list_tasks(page_size=0))),
        ValueError,
        "must be 1 or more",
    ),
    "a2a resume as truth": (lambda: a2a().stream_message("x", resume=True), ValueError, "resume"),
    "a2a negative resume": (lambda: a2a().stream_message("x", resume=-1), ValueError, "resume"),
    "a2a callback that is none": (
        lambda: a2a().send_message_streaming("x", 5),
        TypeError,
        "must be a function",
    ),
    "a2a method without a name": (lambda: a2a().rpc_call(""), ValueError, "name of a method"),
    "a2a dialect of a call": (
        lambda: a2a().rpc_call("GetTask", {}, dialect="1.0"),
        TypeError,
        "dialect",
    ),
    "push receiver": (lambda: PushReceiver(5), TypeError, "must be a function"),
    "schemes as a list": (lambda: SchemeCredentials([]), TypeError, "needs a mapping"),
    "scheme's value": (lambda: SchemeCredentials({"a": 5}), TypeError, "scheme 'a' is a int"),
    "agent's card": (lambda: Agent("card"), TypeError, "must be an AgentCard"),
    "agent's authenticate": (lambda: agent(authenticate=5), TypeError, "must be a function"),
    "agent's config": (lambda: agent(config={}), TypeError, "must be a TransportConfig"),
    "agent's tool": (lambda: agent(tools=[5]), TypeError, "a tool is a function, not a int"),
    "agent's tool by position": (
        lambda: agent(tools=[pow, _by_position]),
        TypeError,
        "by position only",
    ),
    "agent's infer": (lambda: agent().infer(5), TypeError, "expected a function, got int"),
    "grpc trust_env": (lambda: GRPCTransport(trust_env=1), TypeError, "trust_env is 1"),
    "websocket trust_env": (lambda: WebSocketTransport(trust_env=1), TypeError, "trust_env is 1"),
    "http trust_env": (lambda: HTTPTransport(trust_env=1), TypeError, "trust_env is 1"),
    "text of a check": (lambda: AgentClient("http").check(NOBODY, text=5), TypeError, "text is"),
    "twin of something else": (lambda: AsyncAgentClient.of(5), TypeError, "AgentClient"),
    "registration of no card": (
        lambda: RegistryClient("http", NOBODY).registered("card"),
        TypeError,
        "must be an AgentCard",
    ),
}


def _by_position(value: int, /) -> int:
    return value


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_at_once(name):
    make, kind, words = MISTAKES[name]

    with pytest.raises(kind, match=words):
        make()


def with_a_secret() -> A2AClient:
    client = a2a()
    client.set_authorization_header("Bearer s3cret")
    return client


@pytest.mark.parametrize(
    "make",
    [
        with_a_secret,
        lambda: HTTPTransport(proxy="http://user:s3cret@127.0.0.1:9"),
        lambda: WebSocketTransport(proxy="http://user:s3cret@127.0.0.1:9"),
    ],
    ids=["authorization", "http proxy", "websocket proxy"],
)
def test_what_holds_a_secret_is_not_pickled_and_does_not_tell_it(make):
    holder = make()

    with pytest.raises(TypeError) as caught:
        pickle.dumps(holder)

    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr(holder)


def test_clients_say_who_they_are():
    """In a notebook or a debugger; none of them shows what goes over the wire."""
    client = AgentClient("http")
    told = {
        repr(client.aio): "AsyncAgentClient",
        repr(a2a()): NOBODY,
        repr(a2a().aio): NOBODY,
        repr(RegistryClient("http", NOBODY)): NOBODY,
        repr(SchemeCredentials({"key": "s3cret"})): "key",
        repr(ScriptedTransport()): "ScriptedTransport",
    }
    with FakeAgent("hi") as fake:
        told[repr(fake)] = "0 tasks"

    for shown, words in told.items():
        assert words in shown
        assert "s3cret" not in shown
