"""What protolink's own client sent and its agents answered over HTTP, played against our codec.

Ours differs from the recorded client in these points, and in no other:

* ids are UUIDs and times are now, as in every client;
* the headers of the HTTP library (``Host``, ``Connection``, ``Accept-Encoding``,
  ``Content-Length``, ``User-Agent``) are the transport's, not the codec's;
* ``Accept`` names ``application/json``, where theirs says ``*/*``;
* the key of a task is its id *and a digest of the body*; the key of any other idempotent call is
  its request id, also of a cancel and of the registry's calls (design.md 4);
* a card that is registered carries ``role``, which theirs never does and its agents ignore;
* two captures are not among the vectors because no bytes came back in them:
  ``http_duplicate_after_oversize_response_hangs``, ``http_status_page_with_repeated_key_hangs``;
  ``http_transport_has_no_stream_route_404`` belongs to streams.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from protolink_sync import errors
from protolink_sync.client import AgentClient, AgentPeer
from protolink_sync.models import (
    AgentCard,
    HistoryCompactionResult,
    Message,
    StateOperationResult,
    Task,
)
from protolink_sync.specs import (
    REGISTRY_DISCOVER_REQUEST,
    REGISTRY_HEARTBEAT_REQUEST,
    REGISTRY_REGISTER_REQUEST,
    REGISTRY_UNREGISTER_REQUEST,
    TASK_CANCEL_REQUEST,
)
from protolink_sync.testing import ScriptedTransport, reply
from protolink_sync.wire import TransportRequestContext, WireReply, http
from tests.models.records import lost
from tests.wire.recorded import exchanges, named, normal, plain, spec_for

URL = "http://agent.test"

RECORDED = {**exchanges("http_"), **exchanges("registry_"), **exchanges("auth_")}
CLIENTS = {name: e for name, e in RECORDED.items() if e["client"] == "protolink"}

TYPES = {
    "Task": Task,
    "AgentCard": AgentCard,
    "list of AgentCard": AgentCard,
    "HistoryCompactionResult": HistoryCompactionResult,
    "StateOperationResult": StateOperationResult,
}
RETRYABLE = frozenset((429, 502, 503, 504))

HTTP_LIBRARY = {
    "host",
    "connection",
    "accept",
    "accept-encoding",
    "content-length",
    "user-agent",
}


def context(exchange: dict[str, Any]) -> TransportRequestContext:
    """Return who the recorded call is; a call without an id of its own gets an empty one back."""
    headers = exchange["request"]["headers"]
    return TransportRequestContext("recorded", URL, headers.get("x-protolink-request-id", "0" * 32))


def received(exchange: dict[str, Any]) -> WireReply:
    answer = exchange["reply"]
    return WireReply(
        answer["status"], answer["reason"], answer["headers"], answer["body"].encode("utf-8")
    )


def decoded(exchange: dict[str, Any]) -> Any:
    request = exchange["request"]
    parser = spec_for(request["method"], request["target"]).response_parser
    value = http.decode(
        received(exchange), context(exchange), retryable_statuses=RETRYABLE, now=lambda: 0.0
    )
    return http.parse(parser, value, context(exchange))


def test_every_recorded_answer_is_read_whole():
    lost_in = {}
    for name, exchange in RECORDED.items():
        kind = exchange["expected"].get("value")
        if kind is not None:
            value = decoded(exchange)
            items = value if kind == "list of AgentCard" else [value]
            assert all(isinstance(item, TYPES.get(kind, object)) for item in items), name
            lost_in[name] = lost(json.loads(exchange["reply"]["body"]), plain(value))

    assert len(lost_in) > 50
    assert {name: paths for name, paths in lost_in.items() if paths} == {}


def test_every_recorded_failure_is_the_typed_error():
    seen, statuses = {}, set()
    for name, exchange in RECORDED.items():
        expected = exchange["expected"]
        if "error" in expected:
            with pytest.raises(errors.TransportRemoteError) as caught:
                decoded(exchange)
            error = caught.value
            told = (type(error).__name__, error.status_code, error.retryable, error.error_message)
            assert told == tuple(expected.values()), name
            assert error.body == exchange["reply"]["body"].encode(), name
            assert error.headers == exchange["reply"]["headers"], name
            seen[name] = error
            statuses.add(error.status_code)

    assert len(seen) > 30
    assert statuses == {307, 401, 404, 405, 500, 503}


def test_a_redirect_is_an_error_that_names_the_place():
    exchange = named("http_post_tasks_without_trailing_slash")

    with pytest.raises(errors.TransportRemoteError, match="Redirects are not followed") as caught:
        decoded(exchange)

    assert exchange["reply"]["headers"]["location"] in str(caught.value)


# --- requests -----------------------------------------------------------------------------------


def sent(transport: ScriptedTransport) -> dict[str, Any]:
    (request,) = transport.calls
    return {
        "method": request.method,
        "target": request.path,
        "headers": {name.lower(): value for name, value in request.headers.items()},
        "body": b"" if request.body is None else request.body,
    }


def test_recorded_bodies_come_out_of_our_models_byte_for_byte():
    """What we read of a task and write again is what the peer's own client wrote."""
    different = []
    for name, exchange in CLIENTS.items():
        recorded = exchange["request"]
        spec = spec_for(recorded["method"], recorded["target"])
        data: Any = json.loads(recorded["body"] or "null")
        if spec.path == "/tasks/":
            data = Task.from_dict(data)
        if (http.encode_body(spec, data) or b"").decode() != recorded["body"]:
            different.append(name)

    assert len(CLIENTS) > 30
    assert different == []


CARD = json.loads(named("registry_http_sequence")["request"]["body"])

# The vector (file, number), our call that is the recorded one.
CALLS: dict[str, tuple[str, int, Callable[[AgentClient], object]]] = {
    "send_task": (
        "http_send_task",
        0,
        lambda c: c.send_task(URL, Task.create(Message.user("echo hello"))),
    ),
    "send_task over sse": (
        "http_sse_unary_send_task",
        0,
        lambda c: c.send_task(
            URL,
            Task.create(Message.user(_text("http_sse_unary_send_task"))),
        ),
    ),
    "send_infer_task": (
        "http_send_infer_task",
        0,
        lambda c: c.send_infer_task(agent_url=URL, **_infer("http_send_infer_task")),
    ),
    "send_message": (
        "http_send_message",
        0,
        lambda c: c.send_message(URL, Message.user(_text("http_send_message"))),
    ),
    "tool call": (
        "http_send_tool_call",
        0,
        lambda c: c.send_task(URL, Task.create(_message("http_send_tool_call"))),
    ),
    "every part": (
        "http_send_task_all_part_types",
        0,
        lambda c: c.send_task(URL, Task.create(_message("http_send_task_all_part_types"))),
    ),
    "cancel_task": (
        "http_cancel_unknown_task",
        0,
        lambda c: c.cancel_task(URL, "task_nope", reason="stop", metadata={"source": "cli"}),
    ),
    "cancel_task without reason": (
        "http_cancel_terminal_task",
        0,
        lambda c: c.cancel_task(URL, "task_20261129231733_b1292ccc"),
    ),
    "compact_history": (
        "http_compact_history",
        0,
        lambda c: c.compact_history(URL, strategy="recent", max_messages=2, **_rest()),
    ),
    "compact_history by default": (
        "http_compact_history_no_llm",
        0,
        lambda c: c.compact_history(URL),
    ),
    "describe_state": (
        "http_describe_state",
        0,
        lambda c: c.describe_state(URL, session_id="sess-1"),
    ),
    "describe_state with data": (
        "http_describe_state_include_data",
        0,
        lambda c: c.describe_state(
            URL,
            session_id="sess-1",
            stores=["conversation", "flow"],
            include_data=True,
            metadata=json.loads(named("http_describe_state_include_data")["request"]["body"])[
                "metadata"
            ],
        ),
    ),
    "reset_state": (
        "http_reset_state",
        0,
        lambda c: c.reset_state(URL, session_id="sess-1"),
    ),
    "compact_state": (
        "http_compact_state",
        0,
        lambda c: c.compact_state(URL, session_id="sess-1", **_compaction("http_compact_state")),
    ),
    "compact_state of a missing session": (
        "http_compact_state_missing_session",
        0,
        lambda c: c.compact_state(URL, session_id="ghost"),
    ),
    "get_agent_card": ("http_get_agent_card", 0, lambda c: c.get_agent_card(URL)),
    "peer.invoke": (
        "http_peer_invoke",
        0,
        lambda c: AgentPeer(c, URL).invoke("hi", session_id="S", budget={"max_steps": 5}),
    ),
    "register": (
        "registry_http_sequence",
        0,
        lambda c: c.transport.send(REGISTRY_REGISTER_REQUEST, URL, AgentCard.from_dict(CARD)),
    ),
    "discover": (
        "registry_http_sequence",
        2,
        lambda c: c.transport.send(REGISTRY_DISCOVER_REQUEST, URL),
    ),
    "discover by name": (
        "registry_http_sequence",
        3,
        lambda c: c.transport.send(REGISTRY_DISCOVER_REQUEST, URL, {"name": "alpha"}),
    ),
    "discover by tags": (
        "registry_http_sequence",
        5,
        lambda c: c.transport.send(REGISTRY_DISCOVER_REQUEST, URL, {"tags": ["math", "x"]}),
    ),
    "heartbeat": (
        "registry_http_sequence",
        8,
        lambda c: c.transport.send(
            REGISTRY_HEARTBEAT_REQUEST, URL, {"agent_url": "http://127.0.0.1:9999"}
        ),
    ),
    "unregister": (
        "registry_http_sequence",
        10,
        lambda c: c.transport.send(
            REGISTRY_UNREGISTER_REQUEST, URL, {"agent_url": "http://127.0.0.1:9999"}
        ),
    ),
}


def _body(name: str) -> Any:
    return json.loads(named(name)["request"]["body"])


def _message(name: str) -> Message:
    return Message.from_dict(_body(name)["messages"][0])


def _text(name: str) -> str:
    content = _body(name)["messages"][0]["parts"][0]["content"]
    assert isinstance(content, str)
    return content


def _infer(name: str) -> dict[str, Any]:
    content = _body(name)["messages"][0]["parts"][0]["content"]
    return {"query": content["prompt"], **{k: v for k, v in content.items() if k != "prompt"}}


def _rest() -> dict[str, Any]:
    names = ("session_id", "preserve_recent", "metadata")
    return {k: v for k, v in _body("http_compact_history").items() if k in names}


def _compaction(name: str) -> dict[str, Any]:
    names = ("strategy", "max_messages", "max_tokens", "preserve_recent", "metadata")
    return {k: v for k, v in _body(name).items() if k in names}


@pytest.mark.parametrize("name", CALLS)
def test_our_call_makes_the_recorded_request(name):
    file, number, make = CALLS[name]
    recorded = named(file, number)["request"]
    transport = ScriptedTransport(reply(status=418, body=b""))

    with pytest.raises(errors.TransportRemoteError):
        make(AgentClient(transport))

    ours = sent(transport)
    headers, theirs = ours["headers"], recorded["headers"]
    assert (ours["method"], ours["target"]) == (recorded["method"], recorded["target"])
    assert headers.keys() == theirs.keys() - HTTP_LIBRARY | {"accept"}
    assert headers.get("content-type") == theirs.get("content-type")
    request_id = headers["x-protolink-request-id"]
    assert len(request_id) == len(theirs["x-protolink-request-id"]) == 32
    assert int(request_id, 16) >= 0
    assert same_body(name, ours["body"], recorded["body"])
    assert is_our_key(headers.get("idempotency-key"), ours, wanted="idempotency-key" in theirs)


def same_body(name: str, ours: bytes, recorded: str) -> bool:
    if not recorded:
        return ours == b""
    body, theirs = json.loads(ours), json.loads(recorded)
    if name == "register":
        assert body.pop("role") == "worker"
    assert normal(body) == normal(theirs)
    return list(body) == list(theirs)


def is_our_key(key: str | None, ours: dict[str, Any], *, wanted: bool) -> bool:
    if not wanted:
        return key is None
    assert key is not None
    if ours["target"] == "/tasks/":
        identity, _, digest = key.partition(":")
        return identity == json.loads(ours["body"])["id"] and len(digest) == 32
    return key == str(ours["headers"]["x-protolink-request-id"])


def test_a_cancel_has_another_key_each_time():
    """With the task's id as key, as recorded, the peer answers the second one from memory."""
    transport = ScriptedTransport(*[reply({"id": "t", "state": "canceled"})] * 2)
    client = AgentClient(transport)

    client.cancel_task(URL, "t")
    client.cancel_task(URL, "t")

    first, second = (c.headers["Idempotency-Key"] for c in transport.calls)
    assert first != second
    assert TASK_CANCEL_REQUEST.idempotent
