"""Every recorded answer of a real server is read whole: nothing in it is lost or misread."""

from __future__ import annotations

from typing import Any, get_args

import attrs
import pytest

from protolink_sync.a2a.wire import (
    AgentCard,
    Dialect,
    Operation,
    StreamEvent,
    TaskAssembly,
    WireDialect,
    dialect_of,
    read_notification,
    result_of,
)
from protolink_sync.errors import A2ARpcError
from tests.a2a.wire.recorded import Exchange, exchanges, named, notifications, plain

V1_0 = dialect_of(WireDialect.V1_0)
V0_3 = dialect_of(WireDialect.V0_3)

OPERATION: dict[Any, tuple[Dialect, str]] = {
    dialect.method(operation): (dialect, operation)
    for dialect in (V1_0, V0_3)
    for operation in get_args(Operation)
}

REPLIES = [
    exchange
    for exchange in exchanges("")
    if exchange.received and (isinstance(exchange.sent, dict) or "error" in exchange.received[0])
]
STREAMS = [e for e in REPLIES if e.media_type == "text/event-stream"]

# The client closed this one; the agent behind that one died without a word (Q3).
CUT = ("jsonrpc-1.0-SendStreamingMessage-client-abort", "real-0.3-message-stream-raiselate")


def as_1_0(value: Any) -> Any:
    """Turn a value of 0.3 into 1.0, by rules of its own: what ours is compared with."""
    if isinstance(value, list):
        return [as_1_0(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("kind") == "file":
        names = {"bytes": "raw", "uri": "url", "name": "filename", "mimeType": "mediaType"}
        file = {names[name]: item for name, item in value["file"].items()}
        return file | {name: item for name, item in value.items() if name not in ("kind", "file")}
    turned = {}
    for name, item in value.items():
        if name in ("kind", "final") or (name in ("append", "lastChunk") and not item):
            continue
        if name == "role" and not item.startswith("ROLE_"):
            item = f"ROLE_{item.upper()}"
        if name == "state" and not item.startswith("TASK_STATE_"):
            item = f"TASK_STATE_{item.upper().replace('-', '_')}"
        turned[name] = item if name in ("data", "metadata") else as_1_0(item)
    return turned


def bare(value: Any) -> Any:
    """Take the wrapper of 1.0 away."""
    names = ("task", "message", "statusUpdate", "artifactUpdate")
    for name in names:
        if name in value:
            return value[name]
    return value


def errors_of(exchange: Exchange) -> list[dict[str, Any]]:
    return [reply["error"] for reply in exchange.received if "error" in reply]


@pytest.mark.parametrize("exchange", REPLIES, ids=lambda e: e.name)
def test_a_recorded_reply_is_read_without_loss(exchange):
    sent = exchange.sent if isinstance(exchange.sent, dict) else {}  # a batch, or no JSON
    id = sent.get("id")
    dialect, operation = OPERATION.get(sent.get("method"), (V1_0, "none"))

    for reply in exchange.received:
        if "error" in reply:
            with pytest.raises(A2ARpcError) as raised:
                result_of(reply, id, where="x")
            assert raised.value.code == reply["error"]["code"]
            assert raised.value.data == reply["error"].get("data")
            assert raised.value.error_message == reply["error"]["message"]
            continue
        result = result_of(reply, id, where="x", result_optional=operation == "push_delete")
        check(dialect, operation, result)


def unknown_members(value: Any) -> dict[str, Any]:
    """Return what an object, or one inside it, took for a member that nobody knows."""
    found: dict[str, Any] = {}
    if isinstance(value, list):
        for item in value:
            found |= unknown_members(item)
    elif attrs.has(type(value)):
        found |= getattr(value, "extra", {})
        for field in attrs.fields(type(value)):
            found |= unknown_members(getattr(value, field.name))
    return found


def check(dialect: Dialect, operation: str, result: Any) -> None:
    """Read a result, and compare what is written again with what came."""
    if operation == "send":
        task = dialect.parse_send(result)
        assert unknown_members(task) == {}
        sent = bare(result)
        is_message = "messageId" in sent
        assert task.from_message is is_message
        written = (
            (task.status.message.to_dict() if task.status.message else {})
            if is_message
            else task.to_dict()
        )
        assert plain(written) == plain(as_1_0(sent))
    elif operation in ("get", "cancel"):
        assert plain(dialect.parse_task(result).to_dict()) == plain(as_1_0(result))
    elif operation in ("stream", "subscribe"):
        event = dialect.parse_event(result)
        assert event.raw == result
        assert unknown_members(event) == {}
        assert event.kind in ("task", "message", "status-update", "artifact-update")
        assert plain(bare(event.to_dict())) == plain(as_1_0(bare(result)))
    elif operation == "list":
        page = dialect.parse_page(result)
        assert unknown_members(page) == {}
        assert plain([task.to_dict() for task in page.tasks]) == plain(result["tasks"])
        assert page.next_page_token == result["nextPageToken"]
        assert page.page_size == result.get("pageSize")
        assert page.total_size == result.get("totalSize")
    elif operation == "push_list":
        configs, token = dialect.parse_pushes(result)
        values = result if isinstance(result, list) else result.get("configs", [])
        assert [dialect.push_create_params(config) for config in configs] == values
        assert token == ""
    elif operation in ("push_create", "push_get"):
        config = dialect.parse_push(result)
        assert unknown_members(config).keys() <= {"tenant"}  # a2a-sdk repeats it
        assert dialect.push_create_params(config) == result
    elif operation == "push_delete":
        assert result is None
    else:
        assert operation == "extended_card"
        assert AgentCard.from_dict(result).raw == result


def test_all_operations_of_both_dialects_are_recorded():
    """Otherwise the test above would prove less than its name says."""
    methods = {e.sent.get("method") for e in REPLIES if isinstance(e.sent, dict)}

    assert set(OPERATION) - {None} <= methods


@pytest.mark.parametrize(
    "exchange",
    [e for e in STREAMS if e.results and not errors_of(e)],
    ids=lambda e: e.name,
)
def test_a_recorded_stream_ends_when_its_last_event_says_so(exchange):
    dialect, operation = OPERATION[exchange.sent["method"]]
    assembly = TaskAssembly()

    for number, result in enumerate(exchange.results):
        assembly.see(dialect.parse_event(result))
        is_last = number == len(exchange.results) - 1
        if not is_last and operation == "stream":
            assert not assembly.may_end

    assert assembly.task is not None
    assert assembly.may_end is (exchange.name not in CUT)


def test_a_recorded_stream_gives_the_task_that_the_same_call_gives_at_once():
    """Chunks that append, a chunk that starts over, mixed parts: as the server put it together."""
    for streamed, unary, dialect in (
        ("jsonrpc-1.0-SendStreamingMessage-chunks", "jsonrpc-1.0-SendMessage-chunks", V1_0),
        ("jsonrpc-0.3-message-stream-chunks", "jsonrpc-0.3-message-send-chunks", V0_3),
    ):
        assembly = TaskAssembly()
        for result in named(streamed).results:
            assembly.see(dialect.parse_event(result))
        expected = dialect.parse_send(named(unary).result)

        task = assembly.task

        assert task is not None
        assert task.artifacts == expected.artifacts
        assert task.status.state is expected.status.state
        assert task.text == expected.text == "replaced"


CARDS = [e for e in exchanges("card-", "real-0.3-card", "protolink-server-card-a2a") if e.received]


@pytest.mark.parametrize("exchange", CARDS, ids=lambda e: e.name)
def test_a_recorded_card_is_read(exchange):
    (value,) = exchange.received

    card = AgentCard.from_dict(value)

    assert card.raw == value
    assert card.is_usable
    assert (card.name, card.version) == (value["name"], value["version"])
    listed = value.get("supportedInterfaces")
    assert card.is_legacy is (not listed)
    assert card.interfaces[0].url == (listed[0]["url"] if listed else value["url"])
    assert [skill.id for skill in card.skills] == [skill["id"] for skill in value["skills"]]
    assert card.capabilities.streaming is value["capabilities"].get("streaming", False)
    assert list(card.security_schemes) == list(value.get("securitySchemes", {}))


@pytest.mark.parametrize("version", ["0.3", "1.0"])
def test_b74_recorded_notifications_are_read_and_give_the_task(version):
    """A configuration made in 0.3 gets the bodies of 1.0."""
    received = notifications(f"push-delivery-received-{version}")
    assembly = TaskAssembly()

    events: list[StreamEvent] = [read_notification(body) for _, body in received]
    for event in events:
        assembly.see(event)

    assert [plain(event.to_dict()) for event in events] == [plain(body) for _, body in received]
    assert assembly.may_end
    assert assembly.task is not None
    assert assembly.task.is_terminal
