"""AgentPeer.stream: the answer while it is made."""

from __future__ import annotations

import json

import pytest

from protolink_sync import AgentPeer, CancelToken, connect
from protolink_sync.client import AgentClient
from protolink_sync.errors import CallCancelledError, StreamingNotSupportedError
from protolink_sync.models import Message
from protolink_sync.testing import ScriptedTransport

URL = "http://agent.test"


@pytest.mark.parametrize("kind", ["sse", "websocket", "grpc"])
def test_a_question_is_answered_in_pieces(shared_peer, kind):
    with connect(shared_peer(kind).url) as agent:
        assert "".join(agent.stream("hello").text()) == "the mock model says hi"
        assert agent.stream(Message.user("echo hi")).result().text == "hi"


def test_session_and_budget_travel(shared_peer):
    with connect(shared_peer("sse").url) as agent:
        done = agent.stream(
            Message.user("back"), session_id="S", budget={"max_steps": 5}, context={"trace_id": "T"}
        ).result()

    arrived = done.messages[-1].parts[0].content["metadata"]["run_context"]
    assert (arrived["session_id"], arrived["trace_id"]) == ("S", "T")
    assert arrived["budget"]["max_steps"] == 5


def test_a_token_and_a_budget_end_it(shared_peer):
    token = CancelToken()
    with connect(shared_peer("sse").url) as agent:
        stream = agent.stream(Message.user("slow 100 0.05"), cancel=token)
        next(stream)
        token.cancel()
        with pytest.raises(CallCancelledError):
            list(stream)
        with pytest.raises(TimeoutError):
            list(agent.stream(Message.user("slow 100 0.05"), timeout=0.3))
        with pytest.raises(TimeoutError):
            list(agent.stream(Message.user("wait 20"), idle_timeout=0.3))


def test_what_cannot_be_streamed_is_told_before_anything_is_sent():
    transport = ScriptedTransport()

    with AgentClient("http") as client, pytest.raises(StreamingNotSupportedError):
        AgentPeer(client, URL).stream("hello")
    with pytest.raises(TypeError, match="str or a Message"):
        AgentPeer(AgentClient(transport), URL).stream(json)
    assert transport.calls == []
