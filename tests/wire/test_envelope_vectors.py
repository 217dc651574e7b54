"""Recorded envelopes of WebSocket and gRPC: what protolink's client sent, what came back.

Not among the vectors: streams (they are another codec's), and captures in which no envelope came
back (refused upgrades, close frames, gRPC statuses): those belong to the transports.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from protolink_sync import errors
from protolink_sync.models import AgentCard, HistoryCompactionResult, StateOperationResult, Task
from protolink_sync.wire import TransportRequestContext, WireReply, envelope, http
from tests.models.records import lost
from tests.wire.recorded import exchanges, named, plain, spec_for

URL = "http://agent.test"

RECORDED = {**exchanges("ws_"), **exchanges("grpc_")}
CLIENTS = {name: e for name, e in RECORDED.items() if e["client"] == "protolink"}
TYPES = {
    "Task": Task,
    "AgentCard": AgentCard,
    "HistoryCompactionResult": HistoryCompactionResult,
    "StateOperationResult": StateOperationResult,
}


def asked(exchange: dict[str, Any]) -> dict[str, Any]:
    """Return a recorded request; one that was no object has neither id nor path."""
    try:
        request = json.loads(exchange["request"])
    except ValueError:
        request = None
    nothing = {"id": None, "method": "GET", "path": "/"}
    return {**nothing, **request} if isinstance(request, dict) else nothing


def context(request: dict[str, Any]) -> TransportRequestContext:
    return TransportRequestContext("recorded", URL, request["id"], request.get("idempotency_key"))


def test_our_envelopes_of_the_recorded_calls_are_the_recorded_ones():
    """Given the same id and key; keys of our own making are tested with the HTTP vectors."""
    for name, exchange in CLIENTS.items():
        recorded = json.loads(exchange["request"])
        spec = spec_for(recorded["method"], recorded["path"])
        data = recorded.get("data")
        if spec.path == "/tasks/":
            data = Task.from_dict(data)

        body = envelope.encode_body(spec, data)
        request = envelope.encode(spec, context(recorded), body, data, recorded.get("params"))

        assert json.loads(request.body or b"") == recorded, name
        assert (request.method, request.path) == (recorded["method"], recorded["path"]), name
        assert request.headers == {}, name
    assert len(CLIENTS) > 25


def read(exchange: dict[str, Any]) -> Any:
    request = asked(exchange)
    who = context(request)
    path = request["path"]
    spec = spec_for(request["method"], "/tasks/" if path == "/tasks" else path)
    value = envelope.decode(WireReply(200, "", {}, exchange["reply"].encode()), who)
    return http.parse(spec.response_parser, value, who)


def test_every_recorded_result_is_read_whole():
    lost_in = {}
    for name, exchange in RECORDED.items():
        kind = exchange["expected"].get("value")
        if kind is not None:
            value = read(exchange)
            assert isinstance(value, TYPES.get(kind, object)), name
            lost_in[name] = lost(json.loads(exchange["reply"])["result"], plain(value))

    assert len(lost_in) > 30
    assert {name: paths for name, paths in lost_in.items() if paths} == {}


def test_every_recorded_error_is_the_typed_error():
    count = 0
    for name, exchange in RECORDED.items():
        expected = exchange["expected"]
        if "error" in expected:
            with pytest.raises(errors.TransportRemoteError) as caught:
                read(exchange)
            error = caught.value
            assert type(error) is errors.TransportRemoteError, name
            assert error.error_type == expected["error_type"], name
            assert error.error_message == expected["error_message"], name
            assert error.retryable is False, name
            assert expected["error_message"] in str(error), name
            count += 1

    assert count > 15


def test_an_answer_to_another_call_is_never_this_calls():
    exchange = named("ws_send_task")
    request = {**asked(exchange), "id": "f" * 32}

    with pytest.raises(errors.TransportProtocolError, match="has the id"):
        envelope.decode_reply(exchange["reply"].encode(), context(request))
