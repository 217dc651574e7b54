"""Errors: JSON-RPC errors, HTTP statuses, envelopes that are none, ids."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from protolink_sync import BearerToken, a2a
from protolink_sync.a2a import (
    A2AClientError,
    A2AExtensionRequiredError,
    A2AInvalidParamsError,
    A2AParseError,
    A2ARpcError,
    A2ATaskNotFoundError,
    Message,
    TaskState,
)
from protolink_sync.errors import (
    AuthenticationError,
    TransportError,
    TransportProtocolError,
    TransportRemoteError,
)
from tests.a2a.client.scenes import heard, in_threads, outcome
from tests.a2a.scripted import (
    CARD_PATH,
    ScriptedAgent,
    card,
    done,
    envelope,
    error,
    frame,
    old_card,
    reply,
    result,
    sent,
    status_update,
    stream,
    task,
)

CODES = {
    -32700: "A2AParseError",
    -32600: "A2AInvalidRequestError",
    -32601: "A2AMethodNotFoundError",
    -32602: "A2AInvalidParamsError",
    -32603: "A2AInternalError",
    -32001: "A2ATaskNotFoundError",
    -32002: "A2ATaskNotCancelableError",
    -32003: "A2APushNotificationNotSupportedError",
    -32004: "A2AUnsupportedOperationError",
    -32005: "A2AContentTypeNotSupportedError",
    -32006: "A2AInvalidAgentResponseError",
    -32007: "A2AExtendedCardNotConfiguredError",
    -32008: "A2AExtensionRequiredError",
    -32009: "A2AVersionNotSupportedError",
}


def raised_by(client):
    with pytest.raises(A2ARpcError) as caught:
        client.get_task("t1")
    return caught.value


@pytest.mark.parametrize("card_of", [card, old_card])
@pytest.mark.parametrize("code", CODES)
def test_b50_the_number_chooses_the_class(code, card_of, meet):
    agent, client = meet(error(code, "Method not found"), card=card_of())

    seen = raised_by(client)

    assert type(seen) is getattr(a2a, CODES[code])
    assert seen.code == code
    assert "Method not found" in str(seen)
    assert len(agent.calls) == 1


@pytest.mark.parametrize("code", ["-32601", -32601.5, None, True, -32050, 7, [1]])
def test_b50_any_other_code_is_the_base_class(code, meet):
    """A text that looks like a code is none: nothing is tried in the other dialect."""
    agent, client = meet(error(code, "Method not found"), card=None)

    assert type(raised_by(client)) is A2ARpcError
    assert len(agent.calls) == 1


def test_b50_an_error_may_lack_a_message(meet):
    _, client = meet(reply(envelope(error={"code": -32001})))

    assert type(raised_by(client)) is A2ATaskNotFoundError


@pytest.mark.parametrize("value", ["bad", 7, [], True])
def test_b50_an_error_that_is_no_object_is_an_error_all_the_same(value, meet):
    _, client = meet(reply(envelope(error=value)))

    with pytest.raises((A2ARpcError, TransportProtocolError)):
        client.get_task("t1")


@pytest.mark.parametrize("state", ["failed", "rejected"])
def test_b51_an_agent_that_fails_is_no_rpc_error(state, meet):
    _, client = meet(result(sent(task(state, "no luck"))))

    received = client.send_message("hi")

    assert received.status.state is TaskState[state.upper()]
    assert received.text == "no luck"


INFO = {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    "reason": "TASK_NOT_FOUND",
    "domain": "a2a-protocol.org",
    "metadata": {"taskId": "t1", "errors": [{"loc": ["x"]}]},
}
FIELDS = [{"field": "message.parts", "description": "must not be empty"}]
BAD = {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": FIELDS}


def test_b52_the_details_of_an_error_can_be_read(meet):
    _, client = meet(error(-32602, data=[INFO, BAD, "other"]))

    seen = raised_by(client)

    assert seen.data == [INFO, BAD, "other"]
    assert (seen.reason, seen.domain) == ("TASK_NOT_FOUND", "a2a-protocol.org")
    assert seen.metadata == INFO["metadata"]
    assert [dict(one) for one in seen.field_violations] == FIELDS


@pytest.mark.parametrize("data", [[], "text", 7, None, {"a": 1}, [{"@type": 5}], [[]], [None]])
def test_b52_any_data_is_kept_as_it_came(data, meet):
    _, client = meet(error(-32603, data=data))

    seen = raised_by(client)

    assert seen.data == data
    assert not seen.reason
    assert pickle.loads(pickle.dumps(seen)).data == copy.copy(seen).data == data


# ---- HTTP (B53, B54) ---------------------------------------------------------------------------


@pytest.mark.parametrize("status", [404, 500, 502, 599])
@pytest.mark.parametrize("operation", ["send_message", "stream_message"])
def test_b53_a_status_that_is_no_success_raises_with_what_came(operation, status, meet):
    agent, client = meet(reply("sorry", status=status, headers={"X-Why": "because"}))

    with pytest.raises(TransportRemoteError) as caught:
        outcome(getattr(client, operation)("hi"))

    assert caught.value.status_code == status
    assert caught.value.headers["x-why"] == "because"
    assert caught.value.body == b"sorry"
    assert len(agent.calls) == 1


def test_b53_a_json_rpc_error_in_such_a_reply_is_kept(meet):
    _, client = meet(error(-32001, "no such task", status=404))

    with pytest.raises(TransportError) as caught:
        client.get_task("t1")

    assert caught.value.status_code == 404
    assert "-32001" in str(caught.value)
    assert "no such task" in str(caught.value)


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("operation", ["send_message", "stream_message"])
def test_b53_a_refusal_of_credentials_has_its_own_class(operation, status, meet):
    challenge = {"WWW-Authenticate": 'Bearer realm="agents"'}
    agent, client = meet(
        reply({}, status=status, headers=challenge), client={"credentials": BearerToken("s3cret")}
    )

    with pytest.raises(AuthenticationError) as caught:
        outcome(getattr(client, operation)("hi"))

    assert caught.value.headers["www-authenticate"] == challenge["WWW-Authenticate"]
    assert "s3cret" not in f"{caught.value} {caught.value!r}"
    assert len(agent.calls) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_b53_a_busy_agent_says_how_long_and_is_not_asked_again(status, meet):
    agent, client = meet(reply({}, status=status, headers={"Retry-After": "7"}))

    with pytest.raises(TransportRemoteError) as caught:
        client.send_message("hi")

    assert caught.value.retry_after == 7
    assert len(agent.calls) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("operation", ["send_message", "stream_message"])
def test_b54_a_call_is_never_sent_on(operation, status, meet):
    agent, client = meet(reply("", status=status, headers={"Location": "/other"}))

    with pytest.raises(TransportRemoteError, match="/other") as caught:
        outcome(getattr(client, operation)("hi"))

    assert caught.value.status_code == status
    assert [r.name for r in agent.requests] == [f"GET {CARD_PATH}", "POST /rpc"]


def test_b54_a_redirect_of_the_card_within_the_origin_is_followed(meet):
    moved = {"Location": "/cards/one.json"}
    agent, client = meet(
        done(),
        card=[reply("", status=307, headers=moved)],
        routes={"GET /cards/one.json": [[reply(card())]]},
    )

    assert client.fetch_agent_card().name == "scripted"

    assert [get.path for get in agent.gets] == [CARD_PATH, "/cards/one.json"]


def test_b54_a_redirect_of_the_card_to_another_origin_is_not_followed(meet, agent_of):
    stranger = agent_of(done())
    moved = {"Location": stranger.base + CARD_PATH}
    agent, client = meet(
        done(),
        card=[reply("", status=302, headers=moved)],
        client={"credentials": BearerToken("s3cret")},
    )

    with pytest.raises(A2AClientError, match=stranger.address):
        client.fetch_agent_card()
    client.send_message("hi")

    assert stranger.connections == []
    assert len(agent.calls) == 1


def test_b54_redirects_of_the_card_in_a_circle_end(meet):
    agent, client = meet(done(), card=[reply("", status=302, headers={"Location": CARD_PATH})])

    with pytest.raises(A2AClientError, match="redirected"):
        client.fetch_agent_card()

    assert len(agent.gets) < 25


# ---- envelopes and ids (B55 to B59) ------------------------------------------------------------

TASK = task(text="ok")
NO_ENVELOPES = {
    "no version": reply({"id": 1, "result": TASK}),
    "another version": reply(envelope(result=TASK).replace("2.0", "1.0")),
    "a version that is a number": reply(envelope(result=TASK).replace('"2.0"', "2.0")),
    "neither result nor error": reply(envelope()),
    "neither, for error is null": reply(envelope(error=None)),
    "no object": reply("[1]"),
    "a text": reply('"ok"'),
    "null": reply("null"),
    "nothing": reply(""),
    "HTML": reply("<html>", headers={"Content-Type": "text/html"}),
    "half of it": reply(envelope(result=TASK)[:-9]),
    "text after it": reply(envelope(result=TASK) + "\n{}"),
    "NaN": reply(envelope(result=TASK).replace('"c1"', "NaN")),
}


@pytest.mark.parametrize("card_of", [card, old_card])
@pytest.mark.parametrize("what", NO_ENVELOPES)
def test_b55_what_is_no_envelope_is_a_protocol_error(what, card_of, meet):
    agent, client = meet(NO_ENVELOPES[what], card=card_of())

    with pytest.raises(TransportProtocolError):
        client.get_task("t1")

    assert len(agent.calls) == 1


def test_b55_neither_result_nor_error_is_no_result_of_none(meet):
    _, client = meet(reply(envelope()))

    with pytest.raises(TransportProtocolError, match="result"):
        client.rpc_call("Own", {})


def test_b55_an_error_beside_a_result_wins(meet):
    _, client = meet(reply(envelope(result=TASK, error={"code": -32001, "message": "no"})))

    assert raised_by(client).code == -32001


def test_b55_a_null_error_beside_a_result_is_a_result(meet):
    _, client = meet(reply(envelope(result=TASK, error=None)))

    assert client.get_task("t1").text == "ok"


def test_b55_deleting_a_push_config_may_answer_with_no_result(meet):
    """What every 0.3 agent of a2a-sdk does."""
    _, client = meet(reply(envelope()), card=old_card())

    assert client.delete_push_config("t1", "p1") is None


def test_b56_ids_are_distinct_over_all_threads(meet):
    agent, client = meet(methods={"SendMessage": done(), "GetTask": result(task())})

    outcomes = in_threads(
        32, lambda n: client.send_message("hi") if n % 2 else client.get_task("t1")
    )

    assert [one.id for one in outcomes] == ["t1"] * 32
    assert len({json.dumps(call.id) for call in agent.calls}) == 32
    assert all(isinstance(call.id, (str, int)) for call in agent.calls)


OTHER_IDS = ["other", 12345, 1.5, None, True, [1], "absent"]


@pytest.mark.parametrize("other", OTHER_IDS)
@pytest.mark.parametrize("operation", ["get_task", "send_message"])
def test_b57_a_reply_with_another_id_is_not_our_answer(operation, other, meet):
    value = sent(TASK) if operation == "send_message" else TASK
    body = {"jsonrpc": "2.0", "id": other, "result": value}
    if other == "absent":
        del body["id"]
    agent, client = meet(reply(body))

    with pytest.raises(TransportProtocolError, match="id"):
        getattr(client, operation)("x")

    assert len(agent.calls) == 1


def test_b57_an_id_that_only_looks_like_ours_is_another(meet):
    """The text of a number is not the number."""
    agent, client = meet(result(TASK))
    client.get_task("t1")
    asked = agent.calls[0].id
    turned = str(asked) if isinstance(asked, int) else asked + " "
    lying = ScriptedAgent(reply({"jsonrpc": "2.0", "id": turned, "result": TASK}))

    with lying, a2a.A2AClient(lying.base) as other, pytest.raises(TransportProtocolError):
        other.get_task("t1")


@pytest.mark.parametrize("other", ["other", 12345])
def test_b57_an_error_with_another_id_is_not_our_answer(other, meet):
    body = {"jsonrpc": "2.0", "id": other, "error": {"code": -32001, "message": "no"}}
    _, client = meet(reply(body))

    with pytest.raises((TransportProtocolError, A2ARpcError)) as caught:
        client.get_task("t1")

    assert not isinstance(caught.value, A2ATaskNotFoundError)


@pytest.mark.parametrize("given", [{"id": None}, {}])
def test_b57_an_error_without_an_id_is_ours(given, meet):
    """The agent could not read the id: 1.x says null, 0.3.26 leaves it out."""
    body = {"jsonrpc": "2.0", **given, "error": {"code": -32700, "message": "what?"}}
    _, client = meet(reply(body))

    assert type(raised_by(client)) is A2AParseError


def test_b58_one_request_is_sent_at_a_time_and_a_batch_is_no_answer(meet):
    agent, client = meet(reply(f"[{envelope(result=TASK)}]"))

    with pytest.raises(TransportProtocolError):
        client.get_task("t1")

    assert isinstance(agent.calls[0].body, dict)


def test_b59_a_unary_answer_may_come_as_an_event(meet):
    agent, client = meet(stream(frame(TASK)))

    assert client.get_task("t1").text == "ok"

    accept = agent.calls[0].header("Accept")
    assert {part.strip() for part in accept.split(",")} == {
        "application/json",
        "text/event-stream",
    }


def test_b59_an_error_may_come_as_an_event_too(meet):
    _, client = meet(stream(frame(envelope(error={"code": -32602, "message": "bad"}))))

    assert type(raised_by(client)) is A2AInvalidParamsError


def test_b59_a_stream_asks_for_events_and_says_what_it_sends(meet):
    agent, client = meet(stream(sent(TASK)))

    heard(lambda: client.stream_message("hi"))

    assert agent.calls[0].header("Accept") == "text/event-stream"
    assert agent.calls[0].header("Content-Type") == "application/json"


def test_b59_an_event_stream_without_an_answer_is_none(meet):
    _, client = meet(stream())

    with pytest.raises(TransportError):
        client.get_task("t1")


def test_b65_an_agent_that_needs_an_extension_says_so(meet):
    _, client = meet(error(-32008, data=[{**INFO, "reason": "EXTENSION_SUPPORT_REQUIRED"}]))

    with pytest.raises(A2AExtensionRequiredError) as caught:
        client.send_message(Message.user("hi"))

    assert caught.value.reason == "EXTENSION_SUPPORT_REQUIRED"


def test_b40_a_stream_of_a_wrong_id_from_its_first_event_on_is_refused(meet):
    agent, client = meet(stream(frame(envelope(id="other", result=status_update("completed")))))

    seen = heard(lambda: client.stream_message("hi"))

    assert isinstance(seen.error, TransportProtocolError)
    assert seen.events == []
    assert len(agent.calls) == 1
