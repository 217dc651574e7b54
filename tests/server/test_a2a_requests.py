"""Requests over A2A that are not what they should be: each is told what is wrong, with 200."""

from __future__ import annotations

import json

import pytest

from protolink_sync.config import TransportConfig, TransportLimits
from protolink_sync.server import Agent
from tests.server.a2a_calling import HEADERS, calling, message, state
from tests.server.hosting import Caller, Kitchen, card

DEEP = 200_000


@pytest.fixture
def caller():
    """A connection that answers again after whatever the test has sent."""
    with calling(Kitchen()) as (caller, _):
        yield caller
        assert state(caller.send("echo x")) == "COMPLETED"


def code_of(caller, body, **headers):
    reply = caller.request("POST", "/", body, **{**HEADERS, **headers})
    assert reply.status == 200, reply.body
    value = reply.json()
    assert value["jsonrpc"] == "2.0"
    assert value["error"]["message"]
    assert len(reply.body) < 2000
    return value["error"]["code"], value["id"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{nope",
        b"\xff\xfe",
        b"[" * DEEP,
        b'{"a":' * DEEP,
        b'{"jsonrpc":"2.0","id":NaN,"method":"GetTask"}',
        b'{"jsonrpc":"2.0","id":' + b"9" * 10_000 + b',"method":"GetTask"}',
    ],
)
def test_what_is_not_json_is_a_parse_error(caller, body):
    assert code_of(caller, body) == (-32700, None)


@pytest.mark.parametrize(
    ("body", "id"),
    [
        ("null", None),
        ("7", None),
        ('"text"', None),
        ("[]", None),
        ('[{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{}}]', None),
        ("{}", None),
        ('{"id":7,"method":"GetTask"}', 7),
        ('{"jsonrpc":"1.0","id":7,"method":"GetTask"}', 7),
        ('{"jsonrpc":"2.0","id":1.5,"method":"GetTask"}', None),
        ('{"jsonrpc":"2.0","id":true,"method":"GetTask"}', None),
        ('{"jsonrpc":"2.0","id":{},"method":"GetTask"}', None),
        ('{"jsonrpc":"2.0","id":"a"}', "a"),
        ('{"jsonrpc":"2.0","id":"a","method":7}', "a"),
        ('{"jsonrpc":"2.0","id":"a","method":""}', "a"),
    ],
)
def test_what_is_no_call_is_an_invalid_request(caller, body, id):
    assert code_of(caller, body) == (-32600, id)


@pytest.mark.parametrize("id", [None, 0, -1, 2**70, "", "ä\u2028", "\ud800"])
def test_the_id_comes_back_as_it_was(caller, id):
    reply = caller.request("POST", "/", json.dumps(call("ListTasks", {}, id)), **HEADERS)

    assert reply.json()["id"] == id
    assert "result" in reply.json()


def call(method, params, id=7):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


PART = {"text": "x"}


@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        ("SendMessage", [], None),
        ("SendMessage", "x", None),
        ("SendMessage", {}, "message"),
        ("SendMessage", {"message": None}, "message"),
        ("SendMessage", {"message": "hello"}, "message"),
        ("SendMessage", message("x", messageId=""), "message.messageId"),
        ("SendMessage", message("x", messageId=7), "message.messageId"),
        ("SendMessage", message("x", role="king"), "message.role"),
        ("SendMessage", message("x", role=None), "message.role"),
        ("SendMessage", message("x", parts=[]), "message.parts"),
        ("SendMessage", message("x", parts={"text": "x"}), "message.parts"),
        ("SendMessage", message("x", parts=["x"]), "message.parts[0]"),
        ("SendMessage", message("x", parts=[PART, {}]), "message.parts[1]"),
        ("SendMessage", message("x", parts=[{**PART, "data": 1}]), "message.parts[0]"),
        ("SendMessage", message("x", parts=[{"text": 7}]), "message.parts[0].text"),
        ("SendMessage", message("x", parts=[{"raw": "ä"}]), "message.parts[0].raw"),
        ("SendMessage", message("x", contextId=7), "message.contextId"),
        ("SendMessage", message("x", taskId=["a"]), "message.taskId"),
        ("SendMessage", message("x", metadata=[]), "message.metadata"),
        ("SendMessage", {**message("x"), "metadata": 7}, "metadata"),
        ("SendMessage", {**message("x"), "tenant": 7}, "tenant"),
        ("SendMessage", {**message("x"), "configuration": []}, "configuration"),
        (
            "SendMessage",
            {**message("x"), "configuration": {"historyLength": -1}},
            "configuration.historyLength",
        ),
        (
            "SendMessage",
            {**message("x"), "configuration": {"returnImmediately": "yes"}},
            "configuration.returnImmediately",
        ),
        ("SendStreamingMessage", {}, "message"),
        ("GetTask", {}, "id"),
        ("GetTask", {"id": ""}, "id"),
        ("GetTask", {"id": 7}, "id"),
        ("GetTask", {"id": "x", "historyLength": -1}, "historyLength"),
        ("GetTask", {"id": "x", "historyLength": "1"}, "historyLength"),
        ("CancelTask", {"id": "x", "metadata": "m"}, "metadata"),
        ("SubscribeToTask", {"tenant": "x"}, "id"),
        ("ListTasks", {"pageSize": 0}, "pageSize"),
        ("ListTasks", {"pageSize": 101}, "pageSize"),
        ("ListTasks", {"pageSize": 1.5}, "pageSize"),
        ("ListTasks", {"pageToken": "!!"}, None),
        ("ListTasks", {"pageToken": "9" * 10_000 + "-x"}, None),
        ("ListTasks", {"pageToken": 7}, "pageToken"),
        ("ListTasks", {"status": "DONE"}, "status"),
        ("ListTasks", {"status": "TASK_STATE_KING"}, "status"),
        ("ListTasks", {"status": 3}, "status"),
        ("ListTasks", {"statusTimestampAfter": "yesterday"}, "statusTimestampAfter"),
        ("ListTasks", {"statusTimestampAfter": "2026-01-01T00:00:00"}, "statusTimestampAfter"),
        ("ListTasks", {"includeArtifacts": 1}, "includeArtifacts"),
        ("ListTasks", {"contextId": {}}, "contextId"),
    ],
)
def test_wrong_parameters_are_told_with_their_place(caller, method, params, field):
    reply = caller.request("POST", "/", call(method, params), **HEADERS)

    error = reply.error
    assert error["code"] == -32602
    if field is not None:
        (detail,) = error["data"]
        assert detail["fieldViolations"][0]["field"] == field


def test_parameters_may_be_left_out_where_none_are_needed(caller):
    for params in ({}, {"params": None}):
        body = {"jsonrpc": "2.0", "id": 7, "method": "ListTasks", **params}
        assert "result" in caller.request("POST", "/", body, **HEADERS).json()


@pytest.mark.parametrize("version", ["", "0.3", "2.0", "1.1", "1", "1.0.x", "x" * 5000])
def test_other_versions_are_refused(caller, version):
    assert caller.code("ListTasks", A2A_Version=version) == -32009


@pytest.mark.parametrize("version", ["1.0", "1.0.3", " 1.0 "])
def test_patches_of_the_version_are_not(caller, version):
    assert caller.result("ListTasks", A2A_Version=version)["pageSize"] == 50


@pytest.mark.parametrize("kind", ["text/plain", "", "application/jsonx", "x" * 5000])
def test_other_content_types_are_refused(caller, kind):
    """A form of a stranger's page can send text/plain, but not application/json."""
    assert caller.code("ListTasks", Content_Type=kind) == -32005


@pytest.mark.parametrize("depth", [500, 900, 5_000, 50_000])
def test_deep_data_is_answered_or_refused(depth):
    nested = "[" * depth + "]" * depth
    body = json.dumps(call("SendMessage", message("x", parts=[{"data": "NESTED"}])))
    body = body.replace('"NESTED"', nested)
    with calling(Agent(card(input_formats=["application/json"]))) as (caller, _):
        reply = caller.request("POST", "/", body, **HEADERS)

    assert reply.status == 200
    value = reply.json()
    if "error" in value:
        assert value["error"]["code"] in (-32602, -32700)
    else:
        assert state(value["result"]["task"]) == "COMPLETED"


def test_an_answer_beyond_the_limit_is_an_error():
    config = TransportConfig(limits=TransportLimits(max_response_bytes=1000))
    with calling(Kitchen(config=config)) as (caller, _):
        assert caller.code("SendMessage", message("big 2000")) == -32603


def test_a_request_beyond_the_limit_is_refused_as_natively():
    config = TransportConfig(limits=TransportLimits(max_request_bytes=1000))
    with calling(Kitchen(config=config)) as (caller, _):
        assert caller.rpc("SendMessage", message("x" * 2000)).status == 413


def test_other_methods_of_http_are_refused(caller):
    assert caller.request("GET", "/").headers["allow"] == "POST"
    reply = caller.request("POST", "/.well-known/agent-card.json", "{}")
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")


def test_without_the_switch_nothing_is_served_over_a2a():
    with Kitchen().serve("http://127.0.0.1:0") as server, Caller(server.url) as caller:
        assert caller.request("GET", "/.well-known/agent-card.json").status == 404
        assert caller.request("POST", "/", call("ListTasks", {}), **HEADERS).status == 404


def test_a_runtime_address_cannot_be_served_over_a2a():
    with pytest.raises(ValueError, match="A2A"):
        Kitchen().serve("runtime://kitchen", a2a=True)
