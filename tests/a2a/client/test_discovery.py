"""Discovery: where the card is, how often it is asked for, and what it is asked with."""

from __future__ import annotations

import gc
import itertools
import threading
import time
import traceback
import weakref

import pytest

from protolink_sync import BearerToken
from protolink_sync.a2a import (
    A2AClientError,
    A2AMethodNotFoundError,
    AgentInterface,
    WireDialect,
)
from protolink_sync.errors import (
    TransportConnectionError,
    TransportError,
    TransportProtocolError,
    TransportRemoteError,
)
from tests.a2a.client.scenes import Running, in_threads
from tests.a2a.scripted import CARD_PATH, card, done, error, interface, old_card, reply
from tests.cases.play import eventually

ETAG = 'W/"4f1d"'


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("", CARD_PATH),
        ("/", CARD_PATH),
        ("/a/b", "/a/b" + CARD_PATH),
        ("/a/b///", "/a/b" + CARD_PATH),
    ],
)
def test_b01_the_card_stands_below_the_path_of_the_base_url(given, path, agent_of, client_of):
    agent = agent_of(done())

    client_of(agent.base + given).fetch_agent_card()

    assert [get.target for get in agent.gets] == [path]
    assert agent.gets[0].header("Accept") == "application/json"


def test_b02_a_base_url_that_ends_in_the_well_known_path_is_cut(agent_of, client_of):
    """Card and RPC both go where they would have gone without it."""
    agent = agent_of(done(), card=None)

    client_of(f"{agent.base}/agents/x{CARD_PATH}").send_message("hi")

    assert [request.name for request in agent.requests] == [
        f"GET /agents/x{CARD_PATH}",
        "POST /agents/x",
    ]


def test_b03_a_second_fetch_makes_no_request_and_force_makes_one(meet):
    agent, client = meet()

    first, second = client.fetch_agent_card(), client.fetch_agent_card()
    assert len(agent.gets) == 1
    assert first == second

    client.fetch_agent_card(force=True)
    assert len(agent.gets) == 2


def test_b04_sixteen_threads_that_begin_at_once_make_one_request(meet):
    agent, client = meet(card=[[{"op": "wait", "event": "go", "s": 10}, reply(card())]])
    asked = threading.Semaphore(0)

    def fetch(_):
        asked.release()
        return client.fetch_agent_card()

    running = Running(lambda: in_threads(16, fetch))
    for _ in range(16):
        assert asked.acquire(timeout=10)
    agent.wait_for_requests(1)
    agent.fire("go")
    cards = running.end().value

    assert len(agent.gets) == 1
    assert all(card == cards[0] for card in cards)
    assert all(a is not b for a, b in itertools.combinations(cards, 2))


def test_b04_eight_forced_fetches_make_eight_requests_one_at_a_time(meet):
    pause = 0.03
    agent, client = meet(card=[[{"op": "sleep", "s": pause}, reply(card())]])

    in_threads(8, lambda _: client.fetch_agent_card(force=True))

    times = sorted(get.at for get in agent.gets)
    assert len(times) == 8
    assert all(later - earlier >= pause * 0.9 for earlier, later in itertools.pairwise(times))


def test_b04_a_fetch_does_not_wait_for_itself(agent_of, client_of):
    """A credentials callable that calls the agent would keep the fetch waiting that asks it."""
    agent = agent_of(done())

    def credentials(origin, refresh):
        client.send_message("hi", timeout=20)

    client = client_of(agent.base, credentials=credentials)
    began = time.monotonic()

    with pytest.raises(RuntimeError, match="from inside another one"):
        client.send_message("hi", timeout=20)

    assert time.monotonic() - began < 5
    assert agent.requests == []


def test_b04_nothing_waits_for_a_fetch_but_who_needs_the_card(meet):
    """No I/O under the lock of the state: settings can be read and set meanwhile."""
    agent, client = meet(card=[[{"op": "wait", "event": "go", "s": 10}, reply(card())]])
    fetching = Running(client.fetch_agent_card)
    agent.wait_for_requests(1)

    def look():
        client.set_timeout(5)
        client.set_authorization_header("Bearer x")
        return client.endpoint_url, client.wire_dialect, client.base_url

    assert Running(look).end(2).value == (agent.base, None, agent.base)
    assert fetching.alive
    agent.fire("go")
    assert fetching.end().error is None


def test_b05_a_forced_fetch_drops_the_selection(meet):
    cards = [
        card(interface("{{base}}/new", tenant="acme")),
        old_card("{{base}}/old"),
    ]
    agent, client = meet(
        card=cards, methods={"SendMessage": done(), "message/send": done(old=True)}
    )
    client.send_message("hi")
    assert client.wire_dialect is WireDialect.V1_0

    client.fetch_agent_card(force=True)
    client.send_message("hi")

    first, second = agent.calls
    assert (first.path, first.method, first.params["tenant"]) == ("/new", "SendMessage", "acme")
    assert (second.path, second.method) == ("/old", "message/send")
    assert "tenant" not in second.params
    assert client.wire_dialect is WireDialect.V0_3


def test_b05_no_dialect_is_tried_out_once_a_card_was_read(meet):
    agent, client = meet(error(-32601), card=[card(), old_card()])
    client.fetch_agent_card()
    client.fetch_agent_card(force=True)

    with pytest.raises(A2AMethodNotFoundError):
        client.send_message("hi")

    assert agent.methods == ["message/send"]


def test_b06_editing_the_callers_card_changes_nothing_in_the_client(meet):
    agent, client = meet(done())
    mine = client.fetch_agent_card()

    mine.name = "mine"
    mine.interfaces = (
        AgentInterface(
            url=agent.base + "/trap", protocol_binding="JSONRPC", protocol_version="1.0"
        ),
    )
    mine.default_input_modes.append("text/mine")
    mine.raw["supportedInterfaces"][0]["url"] = agent.base + "/trap"
    client.send_message("hi")

    assert client.fetch_agent_card().name == "scripted"
    assert client.fetch_agent_card().default_input_modes == ["text/plain"]
    assert agent.calls[0].path == "/rpc"


def test_b07_the_header_for_rpcs_does_not_go_with_the_card(meet):
    agent, client = meet(done())
    client.set_authorization_header("Bearer for-rpcs")

    client.send_message("hi")

    assert agent.gets[0].header("Authorization") is None
    assert agent.calls[0].header("Authorization") == "Bearer for-rpcs"


def test_b07_credentials_go_with_both(meet):
    """0.3 allows cards behind authentication."""
    agent, client = meet(done(), client={"credentials": BearerToken("held")})

    client.send_message("hi")

    assert agent.gets[0].all("Authorization") == ["Bearer held"]
    assert agent.calls[0].request.all("Authorization") == ["Bearer held"]


def test_b08_a_forced_fetch_asks_whether_the_card_has_changed(meet):
    headers = {"Content-Type": "application/json", "ETag": ETAG}
    agent, client = meet(
        card=[
            reply(card(), headers=headers),
            {"op": "reply", "status": 304, "headers": {"ETag": ETAG}, "content_length": None},
            reply(card(name="changed")),
        ]
    )
    client.fetch_agent_card()

    kept, changed = client.fetch_agent_card(force=True), client.fetch_agent_card(force=True)

    assert [get.header("If-None-Match") for get in agent.gets] == [None, ETAG, ETAG]
    assert (kept.name, changed.name) == ("scripted", "changed")


def test_b08_max_age_makes_no_request_by_itself(meet):
    """A client asks once; only ``force`` asks again."""
    headers = {"Content-Type": "application/json", "Cache-Control": "max-age=0"}
    agent, client = meet(done(), card=[reply(card(), headers=headers)])

    client.fetch_agent_card()
    client.send_message("hi")
    client.send_message("hi")

    assert len(agent.gets) == 1


NO_CARDS = {
    "a list": reply([]),
    "a text": reply('"card"'),
    "null": reply("null"),
    "a number": reply("7"),
    "HTML": reply("<html>app</html>", headers={"Content-Type": "text/html"}),
    "nothing": reply(""),
    "half a card": reply('{"name": "n"'),
}


@pytest.mark.parametrize("what", NO_CARDS)
def test_b09_what_is_no_json_object_is_no_card(what, meet):
    """The same as none at all: the agent is probed, 1.0 first, and never taken for a 0.3 one."""
    agent, client = meet(done(), card=[NO_CARDS[what]])

    client.send_message("hi")
    assert agent.methods == ["SendMessage"]
    assert client.wire_dialect is WireDialect.V1_0

    with pytest.raises((A2AClientError, TransportProtocolError)):
        client.fetch_agent_card(force=True)


def test_b09_an_empty_card_does_not_mean_0_3(meet):
    agent, client = meet(done(), card=[reply({})])

    try:
        client.send_message("hi")
    except A2AClientError:
        pass

    assert "message/send" not in agent.methods


class Told(ValueError):
    """An exception of the caller's."""


def test_what_the_caller_handles_meanwhile_is_left_as_it_is(meet):
    """A client that asks in vain for a card neither changes nor keeps it."""
    _, client = meet(done(), card=None)

    def handle():
        try:
            raise Told
        except Told as mine:
            handled, before = mine, mine.__traceback__
            assert client.send_message("hi").text == "done"
            with pytest.raises(TransportRemoteError):
                client.fetch_agent_card()
        assert handled.__traceback__ is before
        return weakref.ref(handled)

    left = handle()
    gc.collect()
    assert left() is None


class VaultError(A2AClientError):
    """Of a user's own, made from something else than a message."""

    def __init__(self, code, where):
        super().__init__(f"{where} says {code}")
        self.code = code


def test_an_error_of_the_callers_own_class_comes_as_it_is(meet):
    def credentials(_origin, _refresh):
        raise VaultError(7, where="vault")

    _, client = meet(client={"credentials": credentials})

    for _ in range(2):
        with pytest.raises(VaultError, match="vault says 7") as caught:
            client.fetch_agent_card()
        assert caught.value.code == 7
        frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert frames[-1] == "credentials", "where it was raised"


def test_an_error_of_the_librarys_that_credentials_raise_is_not_taken_for_no_card(meet):
    """They may ask an agent themselves, for a token: that this one is away says nothing of ours."""
    failures = [TransportConnectionError("no vault")]

    def credentials(_origin, _refresh):
        if failures:
            raise failures.pop()
        return {"Authorization": "Bearer t"}

    agent, client = meet(
        card=[reply(card(interface("{{base}}/new")))],
        methods={"SendMessage": done()},
        client={"credentials": credentials},
    )

    with pytest.raises(TransportConnectionError, match="no vault"):
        client.send_message("hi")
    assert agent.requests == []
    client.send_message("hi")

    assert [call.path for call in agent.calls] == ["/new"]


def test_what_credentials_raise_ends_all_who_wait_for_the_card(meet):
    """One after the other they would wait longer than their time."""
    asked = []

    def credentials(_origin, _refresh):
        asked.append(1)
        assert eventually(lambda: len(client._peer.discovery._flight._waiting) == 7)
        raise VaultError(7, where="vault")

    agent, client = meet(client={"credentials": credentials})

    failures = in_threads(8, lambda _: client.fetch_agent_card())

    assert [type(failure) for failure in failures] == [VaultError] * 8
    assert len(asked) == 1
    assert agent.gets == []


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (reply({}, status=404), TransportRemoteError),
        (reply({}, status=500), TransportRemoteError),
        ([{"op": "rst"}], TransportError),
    ],
)
def test_b03_a_fetch_that_fails_says_so_and_is_no_card(answer, kind, meet):
    agent, client = meet(card=[answer, reply(card())])

    with pytest.raises(kind):
        client.fetch_agent_card()

    assert client.fetch_agent_card(force=True).name == "scripted"
    assert eventually(lambda: len(agent.gets) == 2)
