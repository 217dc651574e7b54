"""Hooks, the name a transport gives itself, and answers as they came."""

from __future__ import annotations

import json
import pickle
import threading

import pytest

from protolink_sync import AgentCapabilities, AgentCard, AgentClient, BearerToken, RetryPolicy, Task
from protolink_sync.config import TransportConfig
from protolink_sync.errors import AuthenticationError, TransportConnectionError
from protolink_sync.server import Agent
from protolink_sync.specs import AGENT_CARD_REQUEST, TASK_REQUEST
from protolink_sync.testing import ScriptedTransport, reply
from protolink_sync.transport import (
    GRPCTransport,
    Hooks,
    HTTPTransport,
    RuntimeTransport,
    SSEJSONRPCTransport,
    WebSocketTransport,
)
from tests.transport.grpc_peer import GRPCPeer

URL = "http://agent.test"

SECRET = "hush-hush"
CARD = AgentCard("a", "b", URL).to_dict()


class Told:
    """Hooks that keep what they were told, in order."""

    def __init__(self):
        self.all = []
        self.threads = set()
        self.hooks = Hooks(
            on_request=lambda told: self.keep("request", told),
            on_response=lambda told: self.keep("response", told),
            on_retry=lambda told: self.keep("retry", told),
            on_event=lambda told: self.keep("event", told),
        )

    def keep(self, name, told):
        self.all.append((name, told))
        self.threads.add(threading.current_thread().name.partition("-")[0])

    @property
    def names(self):
        return [name for name, _ in self.all]


def quick(attempts):
    return TransportConfig(
        retry=RetryPolicy(max_attempts=attempts, initial_backoff=0.0, jitter=0.0)
    )


class Seeing(Agent):
    def __init__(self, url="http://127.0.0.1"):
        self.seen = []
        card = AgentCard("seeing", "for tests", url)
        card.capabilities = AgentCapabilities(streaming=True)
        super().__init__(card, authenticate=self.see)

    def see(self, environ):
        self.seen.append(environ)
        return "ann" if environ.get("HTTP_AUTHORIZATION") == f"Bearer {SECRET}" else None


@pytest.fixture
def seeing():
    agent = Seeing()
    with agent.serve("http://127.0.0.1:0") as server:
        agent.url = server.url
        yield agent


# --- what is told --------------------------------------------------------------------------------


def test_each_attempt_is_told_with_what_it_brought_and_each_pause_before_it():
    told = Told()
    refused = TransportConnectionError("refused", retryable=True)
    transport = ScriptedTransport(
        refused, reply({}, status=503), reply(CARD), config=quick(3), hooks=told.hooks
    )
    AgentClient(transport).get_agent_card(URL)

    assert told.names == ["request", "response", "retry"] * 2 + ["request", "response"]
    requests = [one for name, one in told.all if name == "request"]
    responses = [one for name, one in told.all if name == "response"]
    retries = [one for name, one in told.all if name == "retry"]
    assert [one.attempt for one in requests] == [1, 2, 3]
    assert len({one.request_id for _, one in told.all}) == 1
    assert {one.operation for _, one in told.all} == {"get_agent_card"}
    assert {one.idempotency_key for one in requests} == {
        transport.calls[0].headers["X-Protolink-Request-ID"]
    }
    assert [one.status for one in responses] == [None, 503, 200]
    assert [one.error for one in responses] == [refused, None, None]
    assert responses[2].size > 100
    assert all(one.seconds >= 0 for one in responses)
    assert [one.attempt for one in retries] == [1, 2]
    assert retries[0].error is refused
    assert all(one.pause == 0 for one in retries)


def test_a_call_that_is_not_sent_is_not_told():
    told = Told()
    with pytest.raises(TypeError):
        ScriptedTransport(hooks=told.hooks).send(TASK_REQUEST, URL, {"x": object()})

    assert told.all == []


@pytest.mark.parametrize("kind", [HTTPTransport, SSEJSONRPCTransport])
def test_no_secret_is_told(seeing, kind):
    told = Told()
    with kind(
        credentials=BearerToken(SECRET), headers={"X-Pass": "also-secret"}, hooks=told.hooks
    ) as transport:
        AgentClient(transport).send_task(seeing.url, Task.create("?"))

    assert told.names == ["request", "response"]
    assert seeing.seen[0]["HTTP_X_PASS"] == "also-secret"
    assert SECRET not in repr(told.all)
    assert "also-secret" not in repr(told.all)


def test_an_attempt_with_other_credentials_is_told_too(seeing):
    told = Told()

    def credentials(_origin, refresh):
        return {"Authorization": f"Bearer {SECRET if refresh else 'old'}"}

    with HTTPTransport(credentials=credentials, hooks=told.hooks) as transport:
        AgentClient(transport).send_task(seeing.url, Task.create("?"))

    assert [one.status for name, one in told.all if name == "response"] == [401, 200]


def test_the_events_of_a_stream_are_told_by_its_worker(seeing):
    told = Told()
    with (
        SSEJSONRPCTransport(credentials=BearerToken(SECRET), hooks=told.hooks) as transport,
        transport.subscribe(seeing.url, Task.create("?")) as stream,
    ):
        events = list(stream)

    assert told.names[:2] == ["request", "response"]
    assert [one.event for name, one in told.all if name == "event"] == events
    assert [one.number for name, one in told.all if name == "event"] == [
        number + 1 for number in range(len(events))
    ]
    assert "protolink" in told.threads
    assert told.all[1][1].status is None


def test_every_transport_tells():
    told = Told()
    near = Agent(AgentCard("near", "for tests", "runtime://near"))
    near.infer(lambda prompt: prompt)
    with near.serve("runtime://near"), RuntimeTransport(hooks=told.hooks) as transport:
        AgentClient(transport).send_infer_task("?", "runtime://near")
    with GRPCPeer(lambda *_: CARD) as peer, GRPCTransport(hooks=told.hooks) as transport:
        AgentClient(transport).get_agent_card(peer.url)

    assert told.names == ["request", "response"] * 2


def test_websocket_tells(start_peer):
    told = Told()
    with WebSocketTransport(hooks=told.hooks) as transport:
        AgentClient(transport).get_agent_card(start_peer("websocket").url)

    assert told.names == ["request", "response"]


# --- hooks that fail -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["on_request", "on_response", "on_retry"])
def test_a_hook_that_fails_does_not_touch_the_call_and_is_heard_of(name, caplog):
    def failing(_told):
        raise ValueError("a mistake in the hook")

    transport = ScriptedTransport(
        TransportConnectionError("refused", retryable=True),
        reply(CARD),
        config=quick(2),
        hooks=Hooks(**{name: failing}),
    )
    with pytest.warns(RuntimeWarning, match=f"{name} failed.*a mistake in the hook"):
        assert AgentClient(transport).get_agent_card(URL).name == "a"

    assert [
        r
        for r in caplog.records
        if r.levelname == "ERROR" and r.exc_info and name in r.msg % r.args
    ]


def test_a_hook_that_fails_does_not_touch_a_stream(seeing, recwarn):
    def failing(_told):
        raise ValueError("a mistake in the hook")

    with (
        SSEJSONRPCTransport(
            credentials=BearerToken(SECRET), hooks=Hooks(on_event=failing)
        ) as transport,
        transport.subscribe(seeing.url, Task.create("?")) as stream,
    ):
        assert stream.result().state.value == "completed"


def test_where_warnings_are_errors_a_failing_hook_still_ends_nothing(caplog):
    def failing(_told):
        raise ValueError("a mistake in the hook")

    transport = ScriptedTransport(reply(CARD), hooks=Hooks(on_request=failing))

    assert AgentClient(transport).get_agent_card(URL).name == "a"
    assert "a mistake in the hook" in caplog.text


def test_ctrl_c_in_a_hook_ends_the_call():
    def interrupted(_told):
        raise KeyboardInterrupt

    transport = ScriptedTransport(reply(CARD), hooks=Hooks(on_request=interrupted))
    with pytest.raises(KeyboardInterrupt):
        AgentClient(transport).get_agent_card(URL)

    assert transport.calls == []
    assert transport.metrics.active_requests == 0


@pytest.mark.parametrize("given", [{"on_request": 7}, {"on_call": print}])
def test_what_is_no_hook_is_told_at_once(given):
    with pytest.raises(TypeError):
        Hooks(**given)


def test_hooks_must_be_hooks():
    with pytest.raises(TypeError, match="Hooks"):
        HTTPTransport(hooks={"on_request": print})


def test_hooks_travel_with_a_transport():
    transport = HTTPTransport(hooks=Hooks(on_request=print), user_agent="shop/1.0")

    copy = pickle.loads(pickle.dumps(transport))
    assert copy.user_agent == transport.user_agent
    assert copy._hooks == Hooks(on_request=print)


# --- the name ------------------------------------------------------------------------------------


def test_the_suffix_stands_behind_our_name(seeing):
    with HTTPTransport(user_agent="shop/1.0") as transport, pytest.raises(AuthenticationError):
        AgentClient(transport).send_task(seeing.url, Task.create("?"))

    assert seeing.seen[0]["HTTP_USER_AGENT"] == transport.user_agent
    assert transport.user_agent.startswith("protolink-sync/")
    assert transport.user_agent.endswith(" shop/1.0")


def test_grpc_says_it_too():
    with GRPCPeer(lambda *_: CARD) as peer, GRPCTransport(user_agent="shop/1.0") as transport:
        AgentClient(transport).get_agent_card(peer.url)

    assert " shop/1.0" in peer.metadata[0]["user-agent"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("", ValueError), (" ", ValueError), ("a\r\nX: 1", ValueError), (7, TypeError)],
)
def test_a_name_that_cannot_be_sent(name, kind):
    with pytest.raises(kind):
        HTTPTransport(user_agent=name)


# --- answers as they came ------------------------------------------------------------------------


def test_an_answer_as_it_came(agent_peer):
    with HTTPTransport() as transport:
        raw = transport.with_raw_response.send(AGENT_CARD_REQUEST, agent_peer.url)
        card = AgentClient(transport).get_agent_card(agent_peer.url)

    assert raw.status == 200
    assert raw.headers["content-type"].startswith("application/json")
    assert raw.parsed == card
    assert json.loads(raw.body)["name"] == card.name
    with pytest.raises(TypeError):
        raw.headers["x"] = "y"


def test_a_task_is_submitted_once_and_under_its_key(seeing):
    with SSEJSONRPCTransport(credentials=BearerToken(SECRET)) as transport:
        task = Task.create("?")
        raw = transport.with_raw_response.send(TASK_REQUEST, seeing.url, task)

    assert raw.parsed.id == task.id
    assert len(seeing.seen) == 1
    assert seeing.seen[0]["HTTP_IDEMPOTENCY_KEY"].startswith(f"{task.id}:")


def test_an_error_is_raised_as_always(seeing):
    with HTTPTransport() as transport, pytest.raises(AuthenticationError) as caught:
        transport.with_raw_response.send(TASK_REQUEST, seeing.url, Task.create("?"))

    assert caught.value.status_code == 401
    assert caught.value.body
