"""Envelopes and errors: what a reply says is what the caller gets, and nothing else."""

from __future__ import annotations

import pytest

from protolink_sync import errors
from protolink_sync.a2a.wire import (
    error_reply,
    error_value,
    is_other_dialect,
    read_request,
    readable_id,
    reply,
    request,
    result_of,
    rpc_error,
)
from protolink_sync.errors import A2ARpcError, ModelError
from tests.a2a.wire.recorded import exchanges

OURS = 7
OK = {"jsonrpc": "2.0", "id": OURS, "result": {"a": 1}}
FAILED = {"code": -32001, "message": "Task not found"}

CLASSES = {
    -32700: errors.A2AParseError,
    -32600: errors.A2AInvalidRequestError,
    -32601: errors.A2AMethodNotFoundError,
    -32602: errors.A2AInvalidParamsError,
    -32603: errors.A2AInternalError,
    -32001: errors.A2ATaskNotFoundError,
    -32002: errors.A2ATaskNotCancelableError,
    -32003: errors.A2APushNotificationNotSupportedError,
    -32004: errors.A2AUnsupportedOperationError,
    -32005: errors.A2AContentTypeNotSupportedError,
    -32006: errors.A2AInvalidAgentResponseError,
    -32007: errors.A2AExtendedCardNotConfiguredError,
    -32008: errors.A2AExtensionRequiredError,
    -32009: errors.A2AVersionNotSupportedError,
}


def read(value, id=OURS, **more):
    return result_of(value, id, where="SendMessage to http://a", **more)


def without(value, *names):
    return {name: item for name, item in value.items() if name not in names}


def test_a_request_has_params_only_if_there_are_any():
    assert request(1, "M", {}) == {"jsonrpc": "2.0", "id": 1, "method": "M", "params": {}}
    assert request(1, "M", None) == {"jsonrpc": "2.0", "id": 1, "method": "M"}


# --- B55, B57: the envelope ------------------------------------------------------------------


def test_b55_a_result_is_returned():
    assert read(OK) == {"a": 1}
    assert read({**OK, "result": None}) is None
    assert read({**OK, "error": None}) == {"a": 1}


def test_b55_an_error_wins_over_a_result():
    """Case C037, and an error whose own form is wrong: a failure is never shown as success."""
    for value in (
        {**OK, "error": FAILED},
        {**OK, "result": None, "error": FAILED},
        {"id": OURS, "error": FAILED},
        {**OK, "error": "boom"},
        {**OK, "error": False},
        {**OK, "error": {}},
    ):
        with pytest.raises(A2ARpcError):
            read(value)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (None, "$"),
        ([], "$"),
        ([OK], "$"),
        ("x", "$"),
        ({}, "$.id"),
        (without(OK, "jsonrpc"), "$.jsonrpc"),
        ({**OK, "jsonrpc": "1.0"}, "$.jsonrpc"),
        ({**OK, "jsonrpc": 2.0}, "$.jsonrpc"),
        (without(OK, "result"), "$"),
        ({**without(OK, "result"), "error": None}, "$"),
    ],
    ids=repr,
)
def test_b55_what_is_no_reply_raises(value, path):
    """Case C040."""
    with pytest.raises(ModelError) as raised:
        read(value)

    assert raised.value.path == path


def test_q1_a_deletion_in_0_3_is_confirmed_by_nothing_at_all():
    assert read(without(OK, "result"), result_optional=True) is None
    with pytest.raises(A2ARpcError):
        read({**without(OK, "result"), "error": FAILED}, result_optional=True)
    with pytest.raises(ModelError):
        read({}, result_optional=True)


@pytest.mark.parametrize("id", [12345, "7", None, True, 7.5, [7], {}])
def test_b57_a_result_for_another_call_is_not_used(id):
    """Case C035: it may be the answer to somebody else."""
    with pytest.raises(ModelError, match="the call 7") as raised:
        read({**OK, "id": id})

    assert raised.value.path == "$.id"


def test_b57_an_absent_id_belongs_to_nobody():
    with pytest.raises(ModelError):
        read(without(OK, "id"))


def test_b57_one_is_not_true():
    with pytest.raises(ModelError):
        read({**OK, "id": True}, id=1)
    assert read({**OK, "id": 1.0}, id=1) == {"a": 1}
    assert read({**OK, "id": "abc"}, id="abc") == {"a": 1}


def test_b57_an_error_of_a_request_that_was_not_understood_has_no_id():
    """Q10; case C036."""
    unread = {"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}}
    for value in ({**unread, "id": None}, unread):
        with pytest.raises(errors.A2AParseError):
            read(value)
    with pytest.raises(ModelError):
        read({**unread, "id": 8})


# --- B50, B52: errors ------------------------------------------------------------------------


@pytest.mark.parametrize("code", CLASSES)
def test_b50_the_number_chooses_the_class(code):
    error = rpc_error({"code": code, "message": "Method not found"}, "x")

    assert type(error) is CLASSES[code]
    assert error.code == code


@pytest.mark.parametrize("code", ["-32601", None, True, -32601.0, -32050, 5, [], {}])
def test_b50_anything_else_is_the_base_class(code):
    error = rpc_error({"code": code, "message": "Method not found"}, "x")

    assert type(error) is A2ARpcError
    assert error.code == (code if type(code) is int else None)
    assert not is_other_dialect(error)


def test_an_error_that_is_no_object_keeps_what_it_is():
    error = rpc_error("boom", "GetTask to http://a")

    assert (error.code, error.data, error.error_message) == (None, "boom", None)
    assert error.message == "GetTask to http://a: the agent reports an error"


def test_the_message_says_which_call_what_and_why():
    assert rpc_error(FAILED, "GetTask to http://a").message == (
        "GetTask to http://a: Task not found (-32001)"
    )


def test_b50_a_message_is_not_needed():
    error = rpc_error({"code": -32001}, "GetTask to http://a")

    assert (error.code, error.error_message) == (-32001, None)
    assert "GetTask to http://a" in str(error)
    assert "-32001" in str(error)


@pytest.mark.parametrize("data", [[{"@type": "x"}], "text", 7, None, {"errors": []}, [1]])
def test_b52_data_is_kept_as_received(data):
    """Case C042."""
    assert rpc_error({**FAILED, "data": data}, "x").data == data
    assert rpc_error(FAILED, "x").data is None


def test_b52_what_the_details_say_can_be_read():
    violation = {"field": "message.role", "description": "Field is required."}
    metadata = {"errors": [{"field": "message.role"}]}
    error = rpc_error(
        {
            "code": -32602,
            "message": "Validation failed",
            "data": [
                {
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": "INVALID_PARAMS",
                    "domain": "a2a-protocol.org",
                    "metadata": metadata,
                },
                {
                    "@type": "type.googleapis.com/google.rpc.BadRequest",
                    "fieldViolations": [violation],
                },
            ],
        },
        "x",
    )

    assert (error.reason, error.domain) == ("INVALID_PARAMS", "a2a-protocol.org")
    assert (error.metadata, error.field_violations) == (metadata, (violation,))
    assert "message.role: Field is required." in str(error)


def test_what_an_agent_says_cannot_forge_lines_or_fill_a_log():
    error = rpc_error({"code": -32603, "message": "no\r\nERROR forged" + "x" * 10**6}, "y")

    assert "\n" not in str(error)
    assert len(str(error)) < 1000
    assert error.error_message is not None
    assert len(error.error_message) > 10**6


def test_b85_only_two_codes_mean_the_other_dialect():
    meant = {code for code in CLASSES if is_other_dialect(rpc_error({"code": code}, "x"))}

    assert meant == {-32601, -32009}
    assert not is_other_dialect(ModelError("x"))
    assert not is_other_dialect(rpc_error({"message": "Method not found"}, "x"))


# --- hosting ---------------------------------------------------------------------------------


@pytest.mark.parametrize("id", [1, 2**70, "abc", "", None])
def test_a_call_is_read(id):
    call = read_request({"jsonrpc": "2.0", "id": id, "method": "M", "params": {"a": 1}})

    assert (call.id, call.method, call.params) == (id, "M", {"a": 1})
    assert read_request({"jsonrpc": "2.0", "method": "M"}).params == {}
    assert read_request({"jsonrpc": "2.0", "method": "M", "params": None}).params == {}


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        [{"jsonrpc": "2.0", "id": 7, "method": "M"}],
        "x",
        {"id": 1, "method": "M"},
        {"jsonrpc": "1.0", "id": 1, "method": "M"},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": 1, "method": ""},
        {"jsonrpc": "2.0", "id": 1.5, "method": "M"},
        {"jsonrpc": "2.0", "id": True, "method": "M"},
        {"jsonrpc": "2.0", "id": {}, "method": "M"},
    ],
    ids=repr,
)
def test_b58_what_is_no_call_is_refused(value):
    with pytest.raises(errors.A2AInvalidRequestError) as raised:
        read_request(value)

    assert raised.value.code == -32600


def test_parameters_that_are_no_object_are_refused():
    with pytest.raises(errors.A2AInvalidParamsError) as raised:
        read_request({"jsonrpc": "2.0", "id": 1, "method": "M", "params": [1]})

    assert raised.value.code == -32602


def test_the_reply_to_an_unreadable_call_carries_the_id_it_has():
    assert [
        readable_id(v) for v in ({"id": 7}, {"id": "a"}, {"id": 1.5}, {"id": True}, [], None)
    ] == [
        7,
        "a",
        None,
        None,
        None,
        None,
    ]


@pytest.mark.parametrize(
    "exchange",
    [
        exchange
        for exchange in exchanges("jsonrpc-1.0", "error-", "protolink-server")
        if exchange.received
        and "error" in exchange.received[0]
        and isinstance(exchange.received[0]["error"].get("data"), list)
        and exchange.received[0]["error"]["code"] > -32100
    ],
    ids=lambda exchange: exchange.name,
)
def test_a_host_gives_the_reason_that_recorded_servers_give(exchange):
    theirs = exchange.received[0]["error"]

    ours = rpc_error(error_value(theirs["code"], theirs["message"]), "x")

    read_theirs = rpc_error(theirs, "x")
    assert (ours.reason, ours.domain) == (read_theirs.reason, read_theirs.domain)


def test_every_code_that_a2a_defines_has_a_reason():
    """The words of the specification; no recorded server used the last ones."""
    reasons = {
        code: rpc_error(error_value(code, "m"), "x").reason for code in range(-32009, -32000)
    }

    assert reasons == {
        -32001: "TASK_NOT_FOUND",
        -32002: "TASK_NOT_CANCELABLE",
        -32003: "PUSH_NOTIFICATION_NOT_SUPPORTED",
        -32004: "UNSUPPORTED_OPERATION",
        -32005: "CONTENT_TYPE_NOT_SUPPORTED",
        -32006: "INVALID_AGENT_RESPONSE",
        -32007: "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
        -32008: "EXTENSION_SUPPORT_REQUIRED",
        -32009: "VERSION_NOT_SUPPORTED",
    }


def test_b56_a_written_reply_is_read_again():
    assert result_of(reply("a", {"x": 1}), "a", where="x") == {"x": 1}
    violations = [{"field": "f", "description": "d"}]
    written = error_value(-32001, "Task not found", metadata={"taskId": "t"})
    refused = error_value(-32602, "Validation failed", field_violations=violations)

    with pytest.raises(errors.A2ATaskNotFoundError) as raised:
        result_of(error_reply(1, written), 1, where="x")
    assert (raised.value.reason, raised.value.metadata) == ("TASK_NOT_FOUND", {"taskId": "t"})
    assert raised.value.domain == "a2a-protocol.org"
    with pytest.raises(errors.A2AInvalidParamsError) as other:
        result_of(error_reply(1, refused), 1, where="x")
    assert (other.value.reason, other.value.field_violations) == (None, tuple(violations))
    bare = error_value(-32603, "m")
    assert bare == {"code": -32603, "message": "m"}
    assert error_reply(1, bare) == {"jsonrpc": "2.0", "id": 1, "error": bare}
