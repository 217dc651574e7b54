"""RegistryClient against real protolink registries, and agents found by name."""

from __future__ import annotations

import itertools
import json
import queue
import socket
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import pytest

from protolink_sync import AgentPeer, CancelToken, RegistryClient
from protolink_sync.client import AgentClient
from protolink_sync.errors import (
    CallCancelledError,
    TransportConnectionError,
    TransportError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import AgentCard, Task
from protolink_sync.security import APIKey
from protolink_sync.testing import ScriptedTransport, reply, silence
from protolink_sync.transport import HTTPTransport, SSEJSONRPCTransport
from tests.aio.silent import SilentPeer
from tests.cases.play import eventually

KINDS = ["http", "websocket", "grpc"]


def card(name: str, url: str = "http://127.0.0.1:9", **more) -> AgentCard:
    return AgentCard(name, "for tests", url, **more)


@pytest.fixture(params=KINDS)
def registry(request, shared_peer):
    url = shared_peer("registry", "--over", request.param).url
    with RegistryClient(request.param, url=url, timeout=20) as client:
        yield client
        for left in client.discover():
            client.unregister(left.url)


@pytest.fixture
def http_registry(shared_peer):
    with RegistryClient("http", url=shared_peer("registry").url, timeout=20) as client:
        yield client
        for left in client.discover():
            client.unregister(left.url)


def names(cards: list[AgentCard]) -> list[str]:
    return sorted(card.name for card in cards)


# --- what a registry does -----------------------------------------------------------------------


def test_an_agent_is_entered_found_and_taken_out_again_and_again(registry):
    """With the agent's address as key a registry would only remember its first answers."""
    alpha = card("alpha", tags=["math", "x"], version="2.0")
    for _ in range(3):
        assert registry.register(alpha)["status"] == "agent registered successfully"
        (found,) = registry.discover()
        assert (found.name, found.tags, found.version) == ("alpha", ["math", "x"], "2.0")
        assert registry.heartbeat(alpha.url)["status"] == "agent heartbeat recorded"
        assert registry.unregister(alpha.url)["status"] == "agent unregistered successfully"
        assert registry.discover() == []


def test_a_card_with_the_same_address_takes_the_place_of_the_old_one(registry):
    registry.register(card("old"))
    registry.register(card("new"))

    assert names(registry.discover()) == ["new"]


def test_agents_are_found_by_what_their_cards_say(registry):
    registry.register(card("a", "http://127.0.0.1:1", tags=["x", "y"]))
    registry.register(card("b", "http://127.0.0.1:2", tags=["y"], transport="sse"))
    registry.register(card("c", "http://127.0.0.1:3", version="2"))

    assert names(registry.discover({"name": "a"})) == ["a"]
    assert names(registry.discover({"name": "A"})) == []
    assert names(registry.discover({"tags": "y"})) == ["a", "b"]
    assert names(registry.discover({"tags": ["x", "y"]})) == ["a"]
    assert names(registry.discover({"tags": ("y", "x")})) == ["a"]
    assert names(registry.discover({"tags": "y", "transport": "sse"})) == ["b"]
    assert names(registry.discover({"version": "2"})) == ["c"]
    assert names(registry.discover({"url": "http://127.0.0.1:3"})) == ["c"]
    assert names(registry.discover({"tags": []})) == ["a", "b", "c"]


def test_a_heartbeat_of_an_agent_that_is_not_there_is_an_error(registry):
    """The registry answers so with status 200."""
    with pytest.raises(TransportRemoteError, match="register it again") as caught:
        registry.heartbeat("http://127.0.0.1:9")

    assert caught.value.error_message == "agent not found"


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"nmae": "a"}, ValueError),
        ({"capabilities": "x"}, ValueError),
        ({"name": 5}, TypeError),
        ({"name": ["a", "b"]}, TypeError),
        ({"name": None}, TypeError),
        ({"tags": ["a", 5]}, TypeError),
        ("name=a", TypeError),
    ],
)
def test_a_filter_that_would_find_the_wrong_agents_is_refused(asked, error):
    transport = ScriptedTransport(url="http://agent.test")

    with pytest.raises(error):
        RegistryClient(transport).discover(asked)
    assert transport.calls == []


def test_mistakes_are_told_before_anything_is_sent():
    transport = ScriptedTransport(url="http://agent.test")
    registry = RegistryClient(transport)

    for mistake in (lambda: registry.register({"name": "a"}), lambda: registry.heartbeat(None)):
        with pytest.raises(TypeError):
            mistake()
    with pytest.raises(ValueError, match="empty"):
        registry.unregister("")
    with pytest.raises(ValueError, match="address"):
        RegistryClient(HTTPTransport())
    with pytest.raises(ValueError, match="unknown transport"):
        RegistryClient("htpp", url="http://agent.test")
    assert transport.calls == []


@pytest.mark.parametrize("answer", [None, [], {}, {"status": 5}, "ok"])
def test_an_answer_that_is_none_of_a_registry_is_no_success(answer):
    registry = RegistryClient(ScriptedTransport(reply(answer), url="http://agent.test"))

    with pytest.raises(TransportProtocolError, match="is a registry there"):
        registry.unregister("http://127.0.0.1:9")


def test_every_call_has_a_key_of_its_own_and_registering_has_none():
    ok = reply({"status": "ok"})
    transport = ScriptedTransport(*[ok] * 5, url="http://agent.test")
    registry = RegistryClient(transport)

    for _ in range(2):
        registry.heartbeat("http://127.0.0.1:9")
        registry.unregister("http://127.0.0.1:9")
    registry.register(card("a"))

    keys = [call.headers.get("Idempotency-Key") for call in transport.calls]
    assert len({*keys[:4]}) == 4
    assert keys[4] is None
    assert json.loads(transport.calls[0].body) == {"agent_url": "http://127.0.0.1:9"}


def test_a_client_closes_the_transport_it_made_only():
    given = ScriptedTransport(url="http://agent.test")
    with RegistryClient(given), RegistryClient("http", url="http://agent.test") as made:
        pass

    assert given.health()["ready"]
    assert not made.transport.health()["ready"]


# --- heartbeats ----------------------------------------------------------------------------------


class Beaten(RegistryClient):
    """Tells of each heartbeat."""

    def __init__(self, *args, **options) -> None:
        super().__init__(*args, **options)
        self.beats: queue.SimpleQueue[str] = queue.SimpleQueue()

    def heartbeat(self, agent_url, **options):
        try:
            return super().heartbeat(agent_url, **options)
        finally:
            self.beats.put(agent_url)


def beating() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name == "protolink-heartbeat"]


def test_an_agent_is_registered_while_the_block_lasts(shared_peer):
    with Beaten("http", url=shared_peer("registry").url) as registry:
        with registry.registered(card("alpha"), interval=0.05) as place:
            assert names(registry.discover()) == ["alpha"]
            for _ in range(3):
                registry.beats.get(timeout=5)
            assert place.error is None
        assert registry.discover() == []

    assert beating() == []


def test_a_registry_that_has_forgotten_the_agent_gets_its_card_again(shared_peer):
    registry = Beaten("http", url=shared_peer("registry").url)
    with registry, registry.registered(card("alpha"), interval=0.05):
        registry.unregister("http://127.0.0.1:9")  # as a restart of the registry would
        end = time.monotonic() + 5
        while not registry.discover() and time.monotonic() < end:
            registry.beats.get(timeout=5)
        assert names(registry.discover()) == ["alpha"]


def test_a_registry_that_is_gone_for_a_while_is_asked_again(start_peer, counting_proxy):
    peer = start_peer("registry")
    with Beaten("http", url=counting_proxy(peer.url).url, timeout=5) as registry:
        place = registry.registered(card("a"), interval=0.05).__enter__()
        registry.beats.get(timeout=5)
        peer.stop()
        end = time.monotonic() + 5
        while place.error is None and time.monotonic() < end:
            registry.beats.get(timeout=5)
        assert isinstance(place.error, TransportConnectionError)
        registry.beats.get(timeout=5)  # it goes on trying
        with pytest.raises(TransportError):  # it cannot unregister, and says so
            place.__exit__(None, None, None)
    assert beating() == []


def test_what_breaks_the_block_is_not_hidden_by_a_registry_that_is_gone():
    registry = RegistryClient(
        ScriptedTransport(
            reply({"status": "ok"}), TransportConnectionError("gone"), url="http://agent.test"
        )
    )

    with pytest.raises(KeyError), registry.registered(card("a")):
        raise KeyError("the block's own")


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (RuntimeError("can't start new thread"), TransportError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_an_agent_without_heartbeats_is_not_left_behind(raised, kind, shared_peer, monkeypatch):
    """The block is not entered, so nobody would leave it."""
    start = threading.Thread.start

    def disturbed(thread):
        if thread.name != "protolink-heartbeat":
            start(thread)
        else:
            if isinstance(raised, KeyboardInterrupt):  # it comes when the thread runs
                start(thread)
            raise raised

    with Beaten("http", url=shared_peer("registry").url) as registry:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", disturbed)
            place = registry.registered(card("alpha"), interval=0.05)
            with pytest.raises(kind):
                place.__enter__()
        if kind is TransportError:
            assert registry.discover() == []
            with pytest.raises(RuntimeError, match="entered before"):
                place.__enter__()
        else:
            registry.unregister(card("alpha").url)
        assert eventually(lambda: beating() == [])


def test_leaving_does_not_wait_for_a_heartbeat_that_hangs():
    asked = threading.Event()

    def hanging(call):
        asked.set()
        return silence()

    ok = reply({"status": "ok"})
    transport = ScriptedTransport(ok, hanging, ok, url="http://agent.test")
    with RegistryClient(transport).registered(card("a"), interval=0.6):
        assert asked.wait(5)
        left = time.monotonic()
    assert time.monotonic() - left < 3


def test_an_error_of_the_callers_own_does_not_end_the_heartbeats():
    """Without a further heartbeat the registry would drop the agent."""
    asked = itertools.count(1)

    def credentials(origin, refresh):
        if next(asked) == 3:  # after registering and the first heartbeat
            raise ConnectionResetError("the identity provider is gone for a moment")
        return {"Authorization": "Bearer token"}

    errors: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()

    def answer(call):
        errors.put(place.error)
        return reply({"status": "ok"})

    transport = ScriptedTransport(
        reply({"status": "ok"}),
        *[answer] * 200,
        url="http://agent.test",
        credentials=credentials,
    )
    place = RegistryClient(transport).registered(card("a"), interval=0.02)
    with place:
        assert errors.get(timeout=5) is None
        assert isinstance(errors.get(timeout=5), ConnectionResetError)
        assert errors.get(timeout=5) is None


def test_what_breaks_the_block_is_not_hidden_by_an_error_of_the_callers_own():
    asked = itertools.count(1)

    def credentials(origin, refresh):
        if next(asked) == 2:
            raise ConnectionResetError("the identity provider is gone")
        return {}

    transport = ScriptedTransport(
        reply({"status": "ok"}), url="http://agent.test", credentials=credentials
    )

    with pytest.raises(KeyError), RegistryClient(transport).registered(card("a")):
        raise KeyError("the block's own")


def test_a_registration_is_entered_once():
    ok = reply({"status": "ok"})
    registry = RegistryClient(ScriptedTransport(ok, ok, url="http://agent.test"))
    place = registry.registered(card("a"))
    with place:
        pass

    with pytest.raises(RuntimeError, match="make another"), place:
        pass
    with pytest.raises(ValueError, match="interval"):
        registry.registered(card("a"), interval=0)


# --- agents by name ------------------------------------------------------------------------------


@pytest.fixture
def client():
    with AgentClient("http", timeout=20) as client:
        yield client


def test_an_agent_is_called_by_its_name(client, http_registry, agent_peer):
    http_registry.register(card("kitchen", agent_peer.url))
    peer = client.peer("kitchen", registry=http_registry)

    assert peer.invoke("hi") == "the mock model says hi"
    assert peer.call_tool("add", a=1, b=2) == 3
    assert peer.card.name == "http_agent"
    assert (peer.target, peer.url) == ("kitchen", agent_peer.url)


def test_a_name_is_looked_up_for_each_call(client, http_registry, agent_peer):
    peer = client.peer("kitchen", registry=http_registry)

    with pytest.raises(ValueError, match="no agent has the name 'kitchen'"):
        peer.invoke("hi")
    http_registry.register(card("kitchen", agent_peer.url))
    assert peer.invoke("hi") == "the mock model says hi"
    http_registry.register(card("kitchen", "http://127.0.0.1:7"))
    with pytest.raises(ValueError, match="2 agents have the name"):
        peer.invoke("hi")


def test_a_name_needs_a_registry_and_an_address_none(client, agent_peer, http_registry):
    with pytest.raises(ValueError, match="registry="):
        client.peer("kitchen")
    with pytest.raises(TypeError, match="RegistryClient"):
        client.peer("kitchen", registry="http://127.0.0.1:1")
    with pytest.raises(TypeError, match="AgentCard"):
        client.peer(5)
    with pytest.raises(ValueError, match="unknown protocol"):
        client.peer(agent_peer.url, protocol="http")

    assert isinstance(client.peer(agent_peer.url), AgentPeer)
    assert client.peer(card("x", agent_peer.url)).invoke("hi") == "the mock model says hi"
    # An address is not looked up, registry or not.
    assert client.peer(agent_peer.url, registry=http_registry).url == agent_peer.url


def registry_naming(url: str) -> RegistryClient:
    """Return a registry that names one address for an agent, whoever asks."""
    found = reply([card("kitchen", url).to_dict()])
    return RegistryClient(ScriptedTransport(*[found] * 10, url="http://registry.test"))


WAYS = [
    lambda agent: agent.invoke("hi", timeout=0.5),
    lambda agent: agent.invoke_typed("hi", int, timeout=0.5),
    lambda agent: agent.call_tool("add", a=1),
    lambda agent: agent.run_task(Task.create("hi"), timeout=0.5),
    lambda agent: agent.stream("hi", timeout=0.5),
    lambda agent: agent.card,
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"credentials": "s3cret"}, "credentials="),
        ({"credentials": APIKey("s3cret")}, "credentials="),
        ({"headers": {"X-Team": "t0psecret"}}, "X-Team"),
        (
            {"credentials": {"http://other.test": "s3cret"}, "headers": {"X-Team": "t0psecret"}},
            "X-Team",
        ),
    ],
)
def test_an_address_that_only_a_registry_names_is_shown_no_secret(way, settings, named):
    with SilentPeer() as stranger, SSEJSONRPCTransport(timeout=0.5, **settings) as transport:
        agent = AgentClient(transport).peer("kitchen", registry=registry_naming(stranger.url))

        with pytest.raises(ValueError, match="nothing was sent") as caught:
            way(agent)

        assert named in str(caught.value)
        assert repr(stranger.url) in str(caught.value)  # what to write into a mapping
        assert "s3cret" not in str(caught.value)
        assert "t0psecret" not in str(caught.value)
        assert agent.url == stranger.url  # looking it up shows nothing
        assert stranger.asked.empty()


def test_the_headers_of_a_view_do_not_go_to_a_stranger_either(client):
    with SilentPeer() as stranger:
        view = client.with_options(headers={"X-Team": "t0psecret"})

        with pytest.raises(ValueError, match="X-Team"):
            view.peer("kitchen", registry=registry_naming(stranger.url)).invoke("hi")

        assert stranger.asked.empty()


def head_sent(stranger: SilentPeer, settings: Any, registry: RegistryClient) -> str:
    """Return the head of the request that an agent gets whose name is looked up."""
    with HTTPTransport(timeout=0.3, **settings) as transport, pytest.raises(TransportTimeoutError):
        AgentClient(transport).peer("kitchen", registry=registry).invoke("hi")
    return stranger.asked.get(timeout=5)


def test_what_is_meant_for_the_origin_goes_there():
    with SilentPeer() as agent:
        given = {"credentials": {agent.url: "s3cret"}, "headers": {"X-Team": "t0psecret"}}

        head = head_sent(agent, given, registry_naming(agent.url))

    assert "Authorization: Bearer s3cret" in head
    assert "X-Team: t0psecret" in head


def test_a_mapping_without_the_origin_calls_it_without_credentials():
    with SilentPeer() as agent:
        head = head_sent(
            agent, {"credentials": {"http://other.test": "s3cret"}}, registry_naming(agent.url)
        )

    assert "authorization" not in head.lower()


def test_a_callable_is_told_the_origin_and_decides():
    asked = []

    def credentials(origin, refresh):
        asked.append(origin)

    with SilentPeer() as agent:
        head = head_sent(agent, {"credentials": credentials}, registry_naming(agent.url))

        assert asked == [agent.url]
    assert "authorization" not in head.lower()


class Naming(SilentPeer):
    """A registry that names an agent at its own origin, which says nothing."""

    def _hold(self, caller: socket.socket) -> None:
        if b"/agents" in caller.recv(65536, socket.MSG_PEEK).partition(b"\r\n")[0]:
            body = json.dumps([card("kitchen", f"{self.url}/kitchen").to_dict()]).encode()
            caller.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                b"Connection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
            )
        super()._hold(caller)


@pytest.mark.parametrize("is_view", [False, True])
def test_the_origin_of_a_registry_that_the_client_calls_itself_was_named(is_view):
    """The registry has got the secret with the look-up."""
    with (
        Naming() as agent,
        HTTPTransport(agent.url, timeout=0.3, credentials="s3cret") as transport,
    ):
        client = AgentClient(transport)
        client = client.with_options(timeout=0.3) if is_view else client
        registry = RegistryClient(transport)
        with pytest.raises(TransportTimeoutError):
            client.peer("kitchen", registry=registry).invoke("hi")

        heads = [agent.asked.get(timeout=5) for _ in range(2)]

    assert all("Authorization: Bearer s3cret" in head for head in heads)


def test_the_origin_of_a_registry_that_another_transport_calls_is_a_strangers():
    with Naming() as stranger, HTTPTransport(timeout=0.5, credentials="s3cret") as transport:
        with RegistryClient("http", url=stranger.url) as registry:
            agent = AgentClient(transport).peer("kitchen", registry=registry)
            with pytest.raises(ValueError, match="nothing was sent"):
                agent.invoke("hi")

        assert "s3cret" not in stranger.asked.get(timeout=5)  # the look-up
        assert stranger.asked.empty()


def test_an_address_and_a_card_are_named_by_the_caller():
    with SilentPeer() as agent, HTTPTransport(timeout=0.3, credentials="s3cret") as transport:
        client = AgentClient(transport)
        for target in (agent.url, card("kitchen", agent.url)):
            with pytest.raises(TransportTimeoutError):
                client.peer(target, registry=registry_naming("http://127.0.0.1:9")).invoke("hi")
            assert "Authorization: Bearer s3cret" in agent.asked.get(timeout=5)


def test_a_call_by_name_has_one_budget(client):
    """The look-up has used it up: nothing is sent to the agent."""
    with SilentPeer() as silent, RegistryClient("http", url=silent.url) as registry:
        began = time.monotonic()
        with pytest.raises(TransportTimeoutError):
            client.peer("kitchen", registry=registry).invoke("hi", timeout=0.3)
        assert time.monotonic() - began < 2


def test_what_the_look_up_takes_is_missing_for_the_call(client):
    with SilentPeer() as silent:

        def slowly(call):
            time.sleep(0.5)
            return reply([card("kitchen", silent.url).to_dict()])

        registry = RegistryClient(ScriptedTransport(slowly, url="http://registry.test"))
        began = time.monotonic()
        with pytest.raises(TransportTimeoutError):
            client.peer("kitchen", registry=registry).invoke("hi", timeout=0.8)
        assert 0.7 < time.monotonic() - began < 1.2


def test_a_view_bounds_the_look_up_too(client):
    with SilentPeer() as silent, RegistryClient("http", url=silent.url) as registry:
        began = time.monotonic()
        with pytest.raises(TransportTimeoutError):
            client.with_options(timeout=0.3).peer("kitchen", registry=registry).invoke("hi")
        assert time.monotonic() - began < 2


def test_a_token_ends_the_look_up(client):
    token = CancelToken()
    with SilentPeer() as silent, RegistryClient("http", url=silent.url) as registry:
        threading.Thread(target=lambda: (silent.asked.get(timeout=5), token.cancel())).start()
        with pytest.raises(CallCancelledError):
            client.peer("kitchen", registry=registry).invoke("hi", cancel=token)


def test_a_forked_child_that_leaves_the_block_unregisters_nothing(shared_peer):
    program = """
        import os, sys
        from protolink_sync import AgentCard, RegistryClient

        registry = RegistryClient("http", url=sys.argv[1])
        card = AgentCard("forked", "for tests", "http://127.0.0.1:5")
        with registry.registered(card, interval=30):
            child = os.fork()
            if child:
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
                print(len(registry.discover({"name": "forked"})))
    """
    url = shared_peer("registry").url

    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program), url],
        capture_output=True,
        text=True,
        timeout=60,
    )
    with RegistryClient("http", url=url) as registry:
        registry.unregister("http://127.0.0.1:5")

    assert run.stdout == "1\n", run.stderr
