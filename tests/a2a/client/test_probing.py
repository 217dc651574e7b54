"""Probing: what is tried when no card can be had, and what is never tried."""

from __future__ import annotations

import logging
import traceback

import pytest

from protolink_sync import CancelToken
from protolink_sync.a2a import (
    A2AMethodNotFoundError,
    A2ARpcError,
    A2AVersionNotSupportedError,
    WireDialect,
)
from protolink_sync.errors import (
    AuthenticationError,
    TransportConnectionError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from tests.a2a.client.scenes import Running, heard, outcome
from tests.a2a.scripted import (
    CARD_PATH,
    END,
    HOLD,
    card,
    done,
    envelope,
    error,
    error_frame,
    interface,
    message,
    reply,
    result,
    sent,
    stream,
    task,
)

NO_CARD = {
    "404": reply({}, status=404),
    "500": reply({}, status=500),
    "a redirect elsewhere": reply(
        "", status=302, headers={"Location": "http://127.0.0.1:9/card.json"}
    ),
    "HTML": reply("<html>", headers={"Content-Type": "text/html"}),
    "a list": reply([]),
    "a reset": {"op": "rst"},
    "a cut": {"op": "close"},
}

NOT_UNDERSTOOD = {
    "no such method": error(-32601),
    "no such version": error(-32009),
    "HTTP 400": reply({}, status=400),
}


@pytest.mark.parametrize("why", NO_CARD)
def test_b83_without_a_card_1_0_is_tried_at_the_base_url(why, meet):
    agent, client = meet(done(), card=[NO_CARD[why]])

    assert client.send_message("hi").text == "done"

    (call,) = agent.calls
    assert (call.method, call.header("A2A-Version")) == ("SendMessage", "1.0")
    assert call.path.rstrip("/") == ""
    assert client.wire_dialect is WireDialect.V1_0


@pytest.mark.parametrize("status", [401, 403])
def test_b83_a_card_that_is_refused_asks_for_credentials(status, meet):
    """Probing with a missing credential only yields a second refusal."""
    agent, client = meet(done(), card=[reply({}, status=status)])

    with pytest.raises(AuthenticationError):
        client.send_message("hi")

    assert agent.calls == []


def test_b83_each_call_gets_an_error_of_its_own_that_does_not_grow(meet):
    _, client = meet(done(), card=[reply({}, status=401)])
    errors = []

    for _ in range(3):
        with pytest.raises(AuthenticationError) as caught:
            client.send_message("hi")
        errors.append(caught.value)

    assert len({id(error) for error in errors}) == len(errors)
    assert len({str(error) for error in errors}) == 1
    assert all(error.status_code == 401 for error in errors)
    first, *others = [len(traceback.extract_tb(error.__traceback__)) for error in errors]
    assert all(length <= first for length in others)


@pytest.mark.parametrize("status", [401, 403])
def test_b83_a_card_that_is_refused_is_probed_with_credentials_for_rpcs(status, meet):
    agent, client = meet(done(), card=[reply({}, status=status)])
    client.set_authorization_header("Bearer for-rpcs")

    assert client.send_message("hi").text == "done"

    assert agent.calls[0].header("Authorization") == "Bearer for-rpcs"


def test_b83_an_agent_that_is_not_there_is_not_there(client_of, agent_of):
    gone = agent_of(done())
    gone.stop()

    with pytest.raises(TransportConnectionError):
        client_of(gone).send_message("hi")


@pytest.mark.parametrize("operation", ["send_message", "stream_message"])
def test_b84_a_dialect_that_was_learned_is_remembered(operation, meet):
    answers = {"SendMessage": done(), "SendStreamingMessage": stream({"message": message("x")})}
    agent, client = meet(methods=answers, card=None)

    for _ in range(3):
        outcome(getattr(client, operation)("hi"))

    assert len(agent.calls) == 3
    assert len(agent.gets) == 1


@pytest.mark.parametrize("why", NOT_UNDERSTOOD)
def test_b85_what_was_not_understood_is_said_once_more_in_0_3(why, meet):
    agent, client = meet(
        methods={"SendMessage": NOT_UNDERSTOOD[why], "message/send": done(old=True)}, card=None
    )

    assert client.send_message("hi").text == "done"

    first, second = agent.calls
    assert (first.method, second.method) == ("SendMessage", "message/send")
    assert second.header("A2A-Version") is None
    assert second.params["message"]["kind"] == "message"
    assert second.params["message"]["messageId"] == first.params["message"]["messageId"]
    assert client.wire_dialect is WireDialect.V0_3


FINAL_ANSWERS = {
    "-32600": (error(-32600), A2ARpcError),
    "-32602": (error(-32602), A2ARpcError),
    "-32603": (error(-32603, "Method not found"), A2ARpcError),
    "-32004": (error(-32004), A2ARpcError),
    "a code as text": (error("-32601", "Method not found"), A2ARpcError),
    "401": (reply({}, status=401), TransportRemoteError),
    "404": (reply({}, status=404), TransportRemoteError),
    "405": (reply({}, status=405), TransportRemoteError),
    "415": (reply({}, status=415), TransportRemoteError),
    "500": (reply({}, status=500), TransportRemoteError),
    "404 with -32601": (error(-32601, status=404), TransportRemoteError),
    "HTML": (reply("<html>", headers={"Content-Type": "text/html"}), TransportProtocolError),
    "a wrong id": (reply(envelope(id="x", error={"code": 1})), Exception),
    "a reset": ([{"op": "rst"}], TransportConnectionError),
}


@pytest.mark.parametrize("operation", ["send_message", "stream_message", "get_task"])
@pytest.mark.parametrize("what", FINAL_ANSWERS)
def test_b86_any_other_answer_is_the_agents_last_word(what, operation, meet):
    answer, kind = FINAL_ANSWERS[what]
    agent, client = meet(answer, card=None)

    with pytest.raises(kind):
        outcome(getattr(client, operation)("hi"))

    assert len(agent.calls) == 1
    assert client.wire_dialect is None


@pytest.mark.parametrize("why", NOT_UNDERSTOOD)
def test_b87_if_neither_is_understood_the_second_error_is_raised(why, meet):
    agent, client = meet(
        methods={"SendMessage": NOT_UNDERSTOOD[why], "message/send": error(-32601, "the second")},
        card=None,
    )

    for _ in range(2):
        with pytest.raises(A2AMethodNotFoundError, match="the second"):
            client.send_message("hi")

    assert agent.methods == ["SendMessage", "message/send"] * 2
    assert client.wire_dialect is None


def test_b88_a_stream_is_probed_in_the_same_way(meet):
    agent, client = meet(
        methods={
            "SendStreamingMessage": error(-32601),
            "message/stream": stream(message("hi", old=True)),
        },
        card=None,
    )

    assert client.stream_message("hi").result().text == "hi"

    assert agent.methods == ["SendStreamingMessage", "message/stream"]
    assert client.wire_dialect is WireDialect.V0_3


@pytest.mark.parametrize("code", [-32601, -32009])
def test_b88_an_error_frame_before_any_event_probes_too(code, meet):
    _agent, client = meet(
        methods={
            "SendStreamingMessage": stream(error_frame(code)),
            "message/stream": stream(message("hi", old=True)),
        },
        card=None,
    )

    assert client.stream_message("hi").result().text == "hi"


def test_b88_nothing_is_sent_again_once_an_event_was_seen(meet):
    agent, client = meet(stream(sent(task("submitted")), error_frame(-32601)), card=None)

    seen = heard(lambda: client.stream_message("hi"))

    assert len(seen.events) == 1
    assert isinstance(seen.error, A2AMethodNotFoundError)
    assert agent.methods == ["SendStreamingMessage"]


def test_b88_an_early_stop_causes_no_second_request(meet):
    agent, client = meet(stream(sent(task("submitted")), end=(HOLD,)), card=None)

    stopped = client.send_message_streaming("hi", lambda event: False)

    assert stopped.id == "t1"
    assert agent.methods == ["SendStreamingMessage"]


def test_b88_a_stream_that_ends_without_an_event_is_not_sent_again(meet):
    agent, client = meet(stream(end=(END,)), card=None)

    seen = heard(lambda: client.stream_message("hi"))

    assert isinstance(seen.error, TransportConnectionError)
    assert agent.methods == ["SendStreamingMessage"]


def test_b89_a_probe_has_no_tenant_and_goes_to_the_base_url(meet):
    """Also after a card that had one was read and could not be read again."""
    offered = card(interface("{{base}}/x", tenant="acme"))
    agent, client = meet(done(), card=[offered, reply({}, status=500)])
    client.send_message("hi")

    with pytest.raises(TransportRemoteError):
        client.fetch_agent_card(force=True)
    client.send_message("hi")

    call = agent.calls[-1]
    if call.path.rstrip("/") == "":
        assert "tenant" not in call.params
    else:  # the card that was read is still held
        assert (call.path, call.params["tenant"]) == ("/x", "acme")


def test_b90_a_card_that_could_not_be_had_is_not_asked_for_again(meet):
    agent, client = meet(error(-32602), card=None)

    for _ in range(3):
        with pytest.raises(A2ARpcError):
            client.send_message("hi")

    assert len(agent.gets) == 1
    assert len(agent.calls) == 3


def test_b90_a_card_that_is_fetched_later_ends_the_probing(meet):
    agent, client = meet(
        methods={"SendMessage": (error(-32602), done())},
        card=[reply({}, status=404), card(interface("{{base}}/new", tenant="acme"))],
    )
    with pytest.raises(A2ARpcError):
        client.send_message("hi")

    client.fetch_agent_card(force=True)
    client.send_message("hi")

    assert agent.calls[-1].path == "/new"
    assert agent.calls[-1].params["tenant"] == "acme"


def test_b90_a_call_the_caller_ended_says_nothing_of_the_card(meet):
    """A cancelled or late discovery is no failed one: it is asked again by the next call."""
    slow = [{"op": "wait", "event": "go", "s": 10}, reply(card())]
    agent, client = meet(done(), card=[slow, card()])
    token = CancelToken()
    running = Running(lambda: client.send_message("hi", cancel=token))
    agent.wait_for_requests(1)
    token.cancel()
    running.end()

    client.send_message("hi")

    assert len(agent.gets) == 2
    assert agent.calls[0].path == "/rpc"


def test_b91_a_send_goes_out_twice_only_after_it_was_not_understood(meet):
    """HTTP 503 and a reset say nothing of the kind, and neither does time."""
    for answer in (reply({}, status=503), [{"op": "rst"}], [{"op": "close"}]):
        agent, client = meet(answer, card=None)
        with pytest.raises((TransportRemoteError, TransportConnectionError)):
            client.send_message("hi")
        assert len(agent.calls) == 1

    agent, client = meet([HOLD], card=None)
    with pytest.raises(TransportTimeoutError):
        client.send_message("hi", timeout=0.3)
    assert len(agent.calls) == 1


def test_b92_the_log_says_once_what_was_learned_and_why(meet, caplog):
    _agent, client = meet(
        methods={"SendMessage": error(-32601), "message/send": done(old=True)}, card=None
    )

    with caplog.at_level(logging.INFO, logger="protolink_sync"):
        client.send_message("hi")
        client.send_message("hi")

    told = [record.getMessage() for record in caplog.records]
    assert sum("card" in text and "404" in text for text in told) == 1
    assert any("0.3" in text for text in told)


def test_b85_a_1_0_only_agent_refuses_what_has_no_version(meet):
    """-32009 for both leaves no dialect."""
    _, client = meet(error(-32009), card=None)

    with pytest.raises(A2AVersionNotSupportedError):
        client.send_message("hi")


def test_b87_what_works_afterwards_is_learned_then(meet):
    _agent, client = meet(
        methods={
            "SendMessage": (error(-32601), done()),
            "message/send": error(-32601),
        },
        card=None,
    )
    with pytest.raises(A2AMethodNotFoundError):
        client.send_message("hi")

    assert client.send_message("hi").text == "done"
    assert client.wire_dialect is WireDialect.V1_0


def test_b84_other_operations_learn_too(meet):
    agent, client = meet(methods={"GetTask": result(task()), "SendMessage": done()}, card=None)

    client.get_task("t1")
    client.send_message("hi")

    assert agent.methods == ["GetTask", "SendMessage"]
    assert [get.path for get in agent.gets] == [CARD_PATH]
