"""A2A cards for ``AgentClient``: what is one, which origin is called, and who hears a secret."""

from __future__ import annotations

import pickle
import time

import pytest

from protolink_sync import AgentClient, APIKey, BearerToken
from protolink_sync.a2a import A2AClientError, A2AMemory
from protolink_sync.errors import AuthenticationError, TransportRemoteError, TransportTimeoutError
from protolink_sync.transport import HTTPTransport
from tests.a2a.client.bridges import EXPLICIT, MISSING, a2a_only, asked, paths
from tests.a2a.scripted import HOLD, card, done, interface, old_card, reply, result, sent, task

SECRET = "s3cret-of-mine"


@pytest.fixture
def client():
    with AgentClient("http", timeout=20, a2a=True) as client:
        yield client


@pytest.fixture
def two(agent_of):
    """An agent whose card names a second one: ``two(card)`` returns both."""

    def start(offered=None, answer=None):
        stranger = agent_of(answer or done("from afar"))
        named = offered or card(interface("{{base:0}}/rpc"))
        return a2a_only(agent_of, card=named, peers=[stranger]), stranger

    return start


def heard_by(server):
    return b"".join(bytes(connection.received) for connection in list(server.connections))


# ---- the card ----------------------------------------------------------------------------------

CARDS = {
    "1.0": card(provider={"url": "https://e.example", "organization": "E"}, odd={"a": [1, None]}),
    "0.3": old_card(odd={"a": [1, None]}),
}


@pytest.mark.parametrize("name", CARDS)
def test_the_card_comes_as_it_was_read(name, agent_of, client):
    agent = a2a_only(agent_of, card=CARDS[name])

    first = client.get_a2a_agent_card(agent.base)
    first["odd"]["a"].append("mine")
    second = client.get_a2a_agent_card(agent.base + "/")

    expected = {**CARDS[name]}
    for member in ("url", "supportedInterfaces"):
        expected.pop(member, None)
        second.pop(member, None)
    assert second == expected


def test_the_card_is_asked_for_as_protolink_does(agent_of, client):
    agent = a2a_only(agent_of)

    client.get_a2a_agent_card(agent.base)

    (request,) = agent.requests
    assert f"GET {request.path}" == EXPLICIT[0]
    assert request.header("Accept") == "application/json"
    assert request.header("A2A-Version") == "1.0"
    assert len(request.header("X-Protolink-Request-ID")) == 32


WITHOUT_A_CARD = {
    "404": MISSING,
    "405": reply("no", status=405),
    "HTML": reply("<html>", headers={"Content-Type": "text/html"}),
    "empty": reply(""),
    "a list": reply([]),
    "an empty object": reply({}),
    "null": reply("null"),
}


@pytest.mark.parametrize("answer", WITHOUT_A_CARD.values(), ids=WITHOUT_A_CARD)
def test_without_a_card_nothing_is_called(answer, agent_of, client):
    """A2AClient would try; here a task must not go to whatever answers."""
    agent = a2a_only(agent_of, card=answer)

    for protocol in ("auto", "a2a"):
        with pytest.raises(A2AClientError):
            client.send_task(agent.base, asked(), protocol=protocol)
    with pytest.raises(A2AClientError):
        client.get_a2a_agent_card(agent.base)

    assert agent.calls == []


@pytest.mark.parametrize(("status", "why"), [(401, AuthenticationError), (500, RuntimeError)])
def test_what_else_keeps_the_card_away_is_raised_as_it_is(status, why, agent_of, client):
    agent = a2a_only(agent_of, card=reply("no", status=status))

    with pytest.raises(TransportRemoteError) as caught:
        client.send_task(agent.base, asked(), protocol="a2a")

    assert isinstance(caught.value, why)
    assert caught.value.status_code == status
    assert agent.calls == []


NOT_TO_BE_CALLED = {
    "nothing spoken": card(interface(binding="GRPC")),
    "2.0": card(interface(version="2.0")),
    "another scheme": card(interface("ftp://h/rpc")),
    "no URL": card(interface("")),
    "a user": card(interface("http://user:pw@{{hdr:Host}}/rpc")),
    "blanks": card(interface("http://h /rpc")),
}


@pytest.mark.parametrize("offered", NOT_TO_BE_CALLED.values(), ids=NOT_TO_BE_CALLED)
def test_a_card_by_which_nobody_can_be_called_is_refused(offered, agent_of, client):
    agent = a2a_only(agent_of, card=offered)

    with pytest.raises(A2AClientError):
        client.send_task(agent.base, asked(), protocol="a2a")
    with pytest.raises(A2AClientError):
        client.get_a2a_agent_card(agent.base)

    assert agent.calls == []


@pytest.mark.parametrize("wrong", ["", "agent.test", "ftp://h", "http://u:p@h", "http://h?x=1"])
def test_an_address_that_is_none_is_refused_before_anything_is_sent(wrong, client):
    for call in (
        lambda: client.send_task(wrong, asked(), protocol="a2a"),
        lambda: client.send_task(wrong, asked()),
        lambda: client.cancel_task(wrong, "t"),
        lambda: client.get_a2a_agent_card(wrong),
    ):
        with pytest.raises(ValueError):
            call()


# ---- origins -----------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["auto", "a2a"])
@pytest.mark.parametrize("offered", [None, old_card("{{base:0}}/")], ids=["1.0", "0.3"])
def test_another_origin_is_refused(protocol, offered, two, client):
    agent, stranger = two(offered)

    with pytest.raises(A2AClientError, match="a2a_allow_cross_origin"):
        client.send_task(agent.base, asked(), protocol=protocol)
    with pytest.raises(A2AClientError, match="a2a_allow_cross_origin"):
        client.get_a2a_agent_card(agent.base)

    assert agent.calls == []
    assert len(stranger.connections) == 0


def allowing(**settings):
    transport = HTTPTransport(timeout=20, **settings)
    return AgentClient(transport, a2a=True, a2a_allow_cross_origin=True), transport


@pytest.mark.parametrize(
    "credentials",
    [
        BearerToken(SECRET),
        APIKey(SECRET),
        SECRET,
        lambda origin, refresh: {"Authorization": f"Bearer {SECRET}"},
    ],
    ids=["bearer", "key", "text", "callable"],
)
def test_a_stranger_that_may_be_called_hears_no_secret(credentials, two):
    """The second call too, which goes by what is remembered; and the cancel."""
    agent, stranger = two(answer=result(sent(task("working"))))
    client, transport = allowing(credentials=credentials)

    with transport:
        for protocol in ("auto", "auto", "a2a"):
            came = client.send_task(agent.base, asked(), protocol=protocol)
        client.cancel_task(agent.base, came.id)

    assert len(stranger.calls) == 4
    assert SECRET.encode() in heard_by(agent)
    assert SECRET.encode() not in heard_by(stranger)


def test_an_origin_that_the_caller_names_hears_what_is_written_beside_it(two):
    agent, stranger = two()
    client, transport = allowing(
        credentials={agent.base: "for-the-agent", stranger.base: "for-the-other"}
    )

    with transport:
        client.send_task(agent.base, asked())

    assert stranger.calls[0].header("Authorization") == "Bearer for-the-other"
    assert b"for-the-agent" not in heard_by(stranger)
    assert b"for-the-other" not in heard_by(agent)


@pytest.mark.parametrize("allow", [False, True])
def test_a_pickled_client_is_allowed_what_the_client_is(allow, two):
    agent, stranger = two()
    with AgentClient("http", a2a=True, a2a_allow_cross_origin=allow) as client:
        copy = pickle.loads(pickle.dumps(client))

    with copy:
        if allow:
            copy.send_task(agent.base, asked())
        else:
            with pytest.raises(A2AClientError, match="a2a_allow_cross_origin"):
                copy.send_task(agent.base, asked())

    assert len(stranger.calls) == allow


def test_headers_of_the_transport_keep_a_stranger_from_being_called(two):
    """They would go with every call, and nobody knows which of them is a secret."""
    agent, stranger = two()
    client, transport = allowing(headers={"Cookie": SECRET})

    with transport, pytest.raises(A2AClientError, match=r"headers=.*Cookie") as caught:
        client.send_task(agent.base, asked())

    assert SECRET not in str(caught.value)
    assert len(stranger.connections) == 0


def test_credentials_and_headers_go_to_the_agents_own_origin(agent_of):
    agent = a2a_only(agent_of)
    with HTTPTransport(credentials=BearerToken(SECRET), headers={"X-Own": "1"}) as transport:
        AgentClient(transport, a2a=True).send_task(agent.base, asked())

    assert [r.header("Authorization") for r in agent.requests] == [f"Bearer {SECRET}"] * 3
    assert [r.header("X-Own") for r in agent.requests] == ["1"] * 3


def test_a_shared_memory_does_not_allow_what_the_client_does_not(two, client):
    """Another client may have been allowed more."""
    agent, stranger = two(answer=result(sent(task("working"))))
    permissive, transport = allowing()
    client.a2a_memory = permissive.a2a_memory = A2AMemory()

    with transport:
        came = permissive.send_task(agent.base, asked())
    for call in (
        lambda: client.send_task(agent.base, asked()),
        lambda: client.cancel_task(agent.base, came.id),
    ):
        with pytest.raises(A2AClientError, match="a2a_allow_cross_origin"):
            call()

    assert len(stranger.calls) == 1


def test_the_address_of_the_card_is_that_of_the_agent(agent_of, client):
    agent = a2a_only(agent_of)

    came = client.send_task(agent.base + "/.well-known/agent-card.json", asked(), protocol="a2a")

    assert paths(agent) == EXPLICIT
    assert came.metadata["a2a_remote_agent_url"] == agent.base


def test_one_budget_covers_card_and_send(agent_of, client):
    agent = a2a_only(agent_of, HOLD, card=[[{"op": "sleep", "s": 0.4}, reply(card())]])

    began = time.monotonic()
    with pytest.raises(TransportTimeoutError, match=r"timeout of 0\.8 s"):
        client.send_task(agent.base, asked(), protocol="a2a", timeout=0.8)

    assert len(agent.calls) == 1
    assert time.monotonic() - began < 1.1
