"""``connect(url, a2a=True)``: a ProtoLink agent streams; an A2A agent is said not to."""

from __future__ import annotations

import pickle
import time

import pytest

from protolink_sync import AgentPeer, CancelToken, connect
from protolink_sync.errors import (
    CallCancelledError,
    StreamingNotSupportedError,
    TransportTimeoutError,
)
from protolink_sync.models import AgentCapabilities, AgentCard
from protolink_sync.server import Agent
from tests.a2a.client.bridges import AUTO, NATIVE, NATIVE_CARD, a2a_only, native_agent, paths
from tests.a2a.scripted import HOLD, reply

SLOWLY_NATIVE = {
    f"GET {NATIVE}": [[{"op": "sleep", "s": 0.4}, reply(NATIVE_CARD)]],
    "POST /tasks/stream": [[HOLD]],
}


@pytest.fixture
def poet():
    """Address of an agent that answers in pieces and speaks both protocols."""
    agent = Agent(AgentCard("poet", "rhymes", "", capabilities=AgentCapabilities(streaming=True)))

    @agent.infer
    def rhyme(prompt):
        yield from ("to", "get", "her")

    with agent.serve("http://127.0.0.1:0", a2a=True) as server:
        yield server.url


def test_an_agent_that_speaks_protolink_streams(poet):
    with connect(poet, a2a=True, timeout=20) as agent:
        assert list(agent.stream("rhyme").text()) == ["to", "get", "her"]
        assert agent.invoke("rhyme") == "together"


def test_an_agent_of_a2a_only_is_sent_no_task_of_protolinks(agent_of):
    """The task would be lost there; a caller that falls back to invoke() gets its answer."""
    agent = a2a_only(agent_of)

    with connect(agent.base, a2a=True, timeout=20) as peer:
        with pytest.raises(StreamingNotSupportedError, match="stream_message"):
            peer.stream("hi")
        assert paths(agent) == AUTO[:-1]
        assert peer.invoke("hi") == "done"

    assert paths(agent) == AUTO


def test_a_token_ends_the_question_of_which_protocol(agent_of):
    agent = native_agent(agent_of, routes=SLOWLY_NATIVE)
    token = CancelToken()
    token.cancel()

    with connect(agent.base, a2a=True, timeout=20) as peer, pytest.raises(CallCancelledError):
        peer.stream("hi", cancel=token)

    assert paths(agent) == []


@pytest.mark.parametrize("is_view", [False, True])
def test_the_bound_of_a_stream_covers_the_selection(is_view, agent_of):
    agent = native_agent(agent_of, routes=SLOWLY_NATIVE)

    with connect(agent.base, a2a=True, timeout=20) as peer:
        client = peer.client.with_options(timeout=0.8) if is_view else peer.client
        began = time.monotonic()
        with pytest.raises(TransportTimeoutError):
            list(AgentPeer(client, agent.base).stream("hi", timeout=None if is_view else 0.8))

    # A bound of its own for each of the two would be 1.2 s.
    assert 0.7 < time.monotonic() - began < 1.15
    assert paths(agent) == [f"GET {NATIVE}", "POST /tasks/stream"]


def test_a_copy_of_its_client_speaks_both_too(poet):
    with connect(poet, a2a=True) as agent, pickle.loads(pickle.dumps(agent.client)) as copy:
        assert copy.a2a
        assert AgentPeer(copy, poet).stream("rhyme").result().text == "together"
