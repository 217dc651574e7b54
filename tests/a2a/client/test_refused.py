"""What looks like an answer and is none, and what is not sent a second time."""

from __future__ import annotations

import threading

import pytest

from protolink_sync.a2a import (
    A2AClient,
    A2AClientError,
    PushReceiver,
    SchemeCredentials,
    WireDialect,
)
from protolink_sync.errors import ProtoLinkError, TransportProtocolError, TransportRemoteError
from tests.a2a.scripted import (
    END,
    SSE,
    card,
    done,
    error,
    frame,
    interface,
    message,
    result,
    sent,
    task,
)


@pytest.mark.parametrize("code", [-32603, -32602, -32004])
def test_a_status_400_with_the_agents_own_error_is_final(code, meet):
    """The agent has understood the call, so it must not go out a second time (B86, B91)."""
    agent, client = meet(error(code, "crashed", status=400), done(old=True), card=None)

    with pytest.raises(TransportRemoteError, match="crashed"):
        client.send_message("hi")

    assert agent.methods == ["SendMessage"]


@pytest.mark.parametrize("code", [-32601, -32600])
def test_a_status_400_that_tells_of_no_method_is_tried_in_0_3(code, meet):
    agent, client = meet(error(code, status=400), done(old=True), card=None)

    assert client.send_message("hi").text == "done"

    assert agent.methods == ["SendMessage", "message/send"]


def test_a_setting_holds_for_what_a_call_under_way_selects(agent_of, client_of):
    """Off is off: a call that began before must not leave its choice to those after it."""
    stranger = agent_of(done())
    asked, go = threading.Event(), threading.Event()
    agent = agent_of(done(), card=card(interface(f"{stranger.base}/rpc")))
    client = client_of(agent, allow_cross_origin=True)
    real = client._peer._calls.card

    def slowly(*args, **words):
        answer = real(*args, **words)
        asked.set()
        go.wait(10)
        return answer

    client._peer._calls.card = slowly
    first = threading.Thread(target=client.send_message, args=("one",))
    first.start()
    asked.wait(10)

    client.set_allow_cross_origin_interfaces(False)
    go.set()
    first.join()
    client.send_message("two")

    assert [call.params["message"]["parts"][0]["text"] for call in agent.calls] == ["two"]


def test_an_answer_of_several_events_is_no_answer(meet):
    """The first one would be taken for the end of the work."""
    _, client = meet([SSE, frame(sent(task("submitted"))), frame(sent(task("completed"))), END])

    with pytest.raises(TransportProtocolError, match="2 events"):
        client.send_message("hi")


def test_a_forced_look_forgets_the_dialect_that_was_learned(meet):
    agent, client = meet(done(), error(-32601), done(old=True), card=None)
    client.send_message("one")
    assert client.wire_dialect is WireDialect.V1_0

    with pytest.raises(ProtoLinkError):
        client.fetch_agent_card(force=True)

    assert client.wire_dialect is None
    assert client.send_message("two").text == "done"
    assert agent.methods == ["SendMessage", "SendMessage", "message/send"]


def test_a_dialect_that_is_none_is_refused():
    with A2AClient("http://127.0.0.1:1") as client, pytest.raises(TypeError, match="dialect"):
        client.rpc_call("GetTask", {}, "1.0")


@pytest.mark.parametrize("settings", [{"expects": "task-1"}, {"max_bytes": 0}, {"token": 5}])
def test_a_receiver_refuses_settings_that_mean_nothing(settings):
    """As a str, expects would take every part of the id for an id."""
    with pytest.raises((TypeError, ValueError)):
        PushReceiver(print, **settings)


@pytest.mark.parametrize("name", ["Content-Type", "Host", "A2A-Version", "Bad Name"])
def test_a_scheme_that_wants_a_header_of_ours_is_refused(name, meet):
    schemes = {"key": {"apiKeySecurityScheme": {"location": "header", "name": name}}}
    agent, client = meet(
        done(),
        card=card(
            securitySchemes=schemes, securityRequirements=[{"schemes": {"key": {"list": []}}}]
        ),
        client={"credentials": SchemeCredentials({"key": "s3cret"})},
    )

    with pytest.raises(A2AClientError, match="'key'") as caught:
        client.send_message("hi")

    assert "s3cret" not in str(caught.value)
    assert agent.calls == []


@pytest.mark.parametrize(
    "said", [{}, {"messageId": "m", "role": "ROLE_AGENT"}, {**message("hi"), "role": "ROLE_USER"}]
)
def test_a_message_that_is_no_answer_completes_nothing(said, meet):
    _, client = meet(result({"message": said}))

    with pytest.raises(TransportProtocolError):
        client.send_message("hi")
