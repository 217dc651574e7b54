"""What goes beside the body: version, extensions, credentials; and calls sent as they are."""

from __future__ import annotations

import pytest

from protolink_sync import APIKey, BasicAuth, BearerToken
from protolink_sync.a2a import A2AMethodNotFoundError, TaskState, WireDialect
from tests.a2a.client.test_selection import NEW, OLD, OPERATIONS
from tests.a2a.scripted import (
    card,
    done,
    error,
    interface,
    message,
    old_card,
    result,
    sent,
    status_update,
    stream,
    task,
)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_b60_every_1_0_request_says_its_version(operation, meet):
    method, answer = NEW[operation]
    agent, client = meet(methods={method: answer})

    OPERATIONS[operation](client)

    assert agent.calls[0].request.all("A2A-Version") == ["1.0"]
    assert "?" not in agent.calls[0].request.target


@pytest.mark.parametrize("operation", OLD)
def test_b60_no_0_3_request_says_a_version(operation, meet):
    method, answer = OLD[operation]
    agent, client = meet(methods={method: answer}, card=old_card())

    OPERATIONS[operation](client)

    assert agent.calls[0].request.all("A2A-Version") == []


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.0.3", "1"])
def test_b61_the_version_sent_is_one_that_every_1_0_agent_takes(version, meet):
    """protolink refuses 1.1."""
    agent, client = meet(done(), card=card(interface(version=version)))

    client.send_message("hi")

    assert agent.calls[0].header("A2A-Version") == "1.0"


def test_b62_the_version_is_never_part_of_the_address(meet):
    """a2a-sdk does not read it there."""
    agent, client = meet(done(), card=card(interface("{{base}}/rpc?key=1")))

    client.send_message("hi")

    assert agent.calls[0].request.target == "/rpc?key=1"


@pytest.mark.parametrize(
    ("dialect", "method"), [(WireDialect.V1_0, "SendMessage"), (WireDialect.V0_3, "message/send")]
)
def test_b63_a_pinned_dialect_is_the_only_one_that_is_tried(dialect, method, meet):
    agent, client = meet(error(-32601), card=None, client={"dialect": dialect})

    with pytest.raises(A2AMethodNotFoundError):
        client.send_message("hi")

    assert agent.methods == [method]


@pytest.mark.parametrize(
    ("dialect", "header"), [(None, []), (WireDialect.V1_0, ["1.0"]), (WireDialect.V0_3, [])]
)
def test_b64_a_call_of_the_callers_own_goes_out_as_it_is(dialect, header, meet):
    agent, client = meet(result({"any": [1]}))

    received = client.rpc_call("some/Method", {"kind": 1, "tenant": None}, dialect)

    assert received == {"any": [1]}
    (call,) = agent.calls
    assert (call.method, call.params) == ("some/Method", {"kind": 1, "tenant": None})
    assert call.request.all("A2A-Version") == header
    assert (call.path.rstrip("/"), agent.gets) == ("", [])


def test_b64_it_goes_to_the_endpoint_that_is_known(meet):
    agent, client = meet(methods={"SendMessage": done(), "Own": result(None)})
    client.send_message("hi")

    assert client.rpc_call("Own", {}) is None

    assert agent.calls[1].path == "/rpc"


def test_b64_its_error_raises_and_is_tried_in_no_other_way(meet):
    agent, client = meet(error(-32601), card=None)

    with pytest.raises(A2AMethodNotFoundError):
        client.rpc_call("Own", [1, 2], WireDialect.V1_0)

    assert agent.methods == ["Own"]
    assert agent.calls[0].params == [1, 2]


EXTENSIONS = ("https://x.invalid/one", "urn:two")


def test_b65_extensions_are_named_in_one_header(meet):
    new, client = meet(done(), client={"extensions": EXTENSIONS})
    client.send_message("hi")
    old, client = meet(done(old=True), card=old_card(), client={"extensions": EXTENSIONS})
    client.send_message("hi")

    def named(agent, header):
        return [v.replace(" ", "") for v in agent.calls[0].request.all(header)]

    assert named(new, "A2A-Extensions") == [",".join(EXTENSIONS)]
    assert named(old, "X-A2A-Extensions") == [",".join(EXTENSIONS)]


def test_b65_no_extension_is_no_header(meet):
    agent, client = meet(done())

    client.send_message("hi")

    assert agent.calls[0].header("A2A-Extensions") is None
    assert agent.calls[0].header("X-A2A-Extensions") is None


def test_b66_the_tenant_is_a_member_and_no_part_of_the_path(meet):
    agent, client = meet(done(), card=card(interface("{{base}}/x/rpc", tenant="a/b")))

    client.send_message("hi")

    assert agent.calls[0].path == "/x/rpc"
    assert agent.calls[0].params["tenant"] == "a/b"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_b67_an_explicit_authorization_goes_with_every_rpc(operation, meet):
    method, answer = NEW[operation]
    agent, client = meet(methods={method: answer})
    client.set_authorization_header("Custom abc")

    OPERATIONS[operation](client)

    (call,) = agent.calls
    assert call.request.all("Authorization") == ["Custom abc"]
    assert b"abc" not in call.request.body


def test_b67_an_empty_text_clears_it(meet):
    agent, client = meet(done())
    client.set_authorization_header("Custom abc")
    client.set_authorization_header("")

    client.send_message("hi")

    assert agent.calls[0].header("Authorization") is None


def test_b67_it_stands_before_credentials_and_replaces_nothing_else(meet):
    agent, client = meet(
        done(), client={"credentials": BearerToken("held"), "headers": {"X-Mine": "1"}}
    )
    client.set_authorization_header("Custom abc")

    client.send_message("hi")

    assert agent.calls[0].request.all("Authorization") == ["Custom abc"]
    assert agent.calls[0].header("X-Mine") == "1"
    assert agent.gets[0].header("Authorization") == "Bearer held"


def test_b67_it_stands_before_a_header_of_the_caller(meet):
    agent, client = meet(done(), client={"headers": {"authorization": "Bearer header"}})
    client.set_authorization_header("Custom abc")

    client.send_message("hi")

    assert agent.calls[0].request.all("Authorization") == ["Custom abc"]


def test_b67_a_value_that_could_end_its_line_is_refused(meet):
    agent, client = meet(done())

    with pytest.raises(ValueError) as caught:
        client.set_authorization_header("Bearer a\r\nX-Evil: 1")

    assert "Evil" not in str(caught.value)
    assert agent.requests == []


@pytest.mark.parametrize(
    ("credentials", "header", "value"),
    [
        (BearerToken("t"), "Authorization", "Bearer t"),
        ("t", "Authorization", "Bearer t"),
        (APIKey("k"), "X-API-Key", "k"),
        (APIKey("k", header="X-Own"), "X-Own", "k"),
        (BasicAuth("u", "p"), "Authorization", "Basic dTpw"),
    ],
)
def test_b67_credentials_go_with_every_request_of_their_origin(credentials, header, value, meet):
    agent, client = meet(
        methods={"SendMessage": done(), "SendStreamingMessage": stream({"message": message("x")})},
        client={"credentials": credentials},
    )

    client.send_message("hi")
    client.stream_message("hi").result()

    assert [request.all(header) for request in agent.requests] == [[value]] * 3


@pytest.mark.parametrize("operation", ["send", "stream"])
def test_b67_credentials_are_asked_for_again_after_a_401(operation, meet):
    """It was not processed, so it may go out once more, with what is new."""
    method, answer = NEW[operation]
    tokens = iter(["old", "new"])

    def ask(origin, refresh):
        ask.token = next(tokens) if refresh or not hasattr(ask, "token") else ask.token
        return {"Authorization": f"Bearer {ask.token}"}

    refused = {"op": "reply", "status": 401, "body": "{}"}
    agent, client = meet(methods={method: (refused, answer)}, client={"credentials": ask})

    OPERATIONS[operation](client)

    sent_with = [call.header("Authorization") for call in agent.calls]
    assert sent_with == ["Bearer old", "Bearer new"]
    assert agent.calls[0].request.body == agent.calls[1].request.body


def test_b67_no_secret_shows(meet):
    _, client = meet(done(), client={"credentials": BearerToken("s3cret-1")})
    client.set_authorization_header("Bearer s3cret-2")

    assert "s3cret" not in repr(client) + str(vars(client))


def test_b68_auth_required_is_no_error(meet):
    _agent, client = meet(
        methods={
            "SendMessage": (
                result(sent(task("auth-required", "log in"))),
                done("thanks"),
            ),
            "SubscribeToTask": stream(
                sent(task("auth-required")), status_update("completed", "went on")
            ),
        }
    )

    waiting = client.send_message("hi")
    assert waiting.status.state is TaskState.AUTH_REQUIRED
    assert waiting.status.state.is_interrupted
    assert not waiting.is_terminal

    assert client.subscribe(waiting.id).result().text == "went on"
    assert client.send_message("done", task_id=waiting.id).text == "thanks"


def test_a_call_carries_no_key_and_no_cookie(meet):
    """A2A knows no idempotency keys, and cookies are never kept."""
    cookie = {"Content-Type": "application/json", "Set-Cookie": "a=1"}
    agent, client = meet(done() | {"headers": cookie})

    client.send_message("hi")
    client.send_message("hi")

    for request in agent.requests:
        assert request.header("Cookie") is None
    for call in agent.calls:
        assert call.header("Idempotency-Key") is None
        assert call.header("User-Agent").startswith("protolink-sync/")
