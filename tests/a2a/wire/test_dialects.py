"""What each dialect sends, and what it makes of results."""

from __future__ import annotations

import datetime
import re
from typing import Any, get_args

import pytest

from protolink_sync.a2a.wire import (
    Message,
    MessageSendParams,
    Operation,
    Part,
    PushNotificationConfig,
    Role,
    SendConfiguration,
    TaskState,
    WireDialect,
    dialect_of,
)
from protolink_sync.errors import A2AClientError, ModelError
from tests.a2a.wire.recorded import exchanges, plain
from tests.a2a.wire.values import V0_3, V1_0, artifact, message, task

BOTH = pytest.mark.parametrize("dialect", [V1_0, V0_3], ids=["1.0", "0.3"])


def all_members(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*(all_members(item) for item in value.values()))
    if isinstance(value, list):
        return set().union(*(all_members(item) for item in value))
    return set()


MANY_PARTS = [
    Part.from_text("t", "text/markdown"),
    Part.from_bytes(b"ab", "image/png", "x.png"),
    Part.from_url("https://e/x", "image/png", "x.png"),
    Part.from_data({"n": 1}, "application/json"),
]


METHODS: dict[Operation, tuple[str, str | None]] = {
    "send": ("SendMessage", "message/send"),
    "stream": ("SendStreamingMessage", "message/stream"),
    "get": ("GetTask", "tasks/get"),
    "list": ("ListTasks", None),
    "cancel": ("CancelTask", "tasks/cancel"),
    "subscribe": ("SubscribeToTask", "tasks/resubscribe"),
    "push_create": ("CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set"),
    "push_get": ("GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get"),
    "push_list": ("ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list"),
    "push_delete": ("DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete"),
    "extended_card": ("GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard"),
}


@pytest.mark.parametrize("operation", get_args(Operation))
def test_each_operation_has_its_method(operation):
    assert (V1_0.method(operation), V0_3.method(operation)) == METHODS[operation]


def test_the_dialects_are_found_by_name():
    assert dialect_of(WireDialect.V1_0).wire is WireDialect.V1_0
    assert dialect_of(WireDialect.V0_3).wire is WireDialect.V0_3


def test_b26_there_is_no_kind_in_1_0_and_one_on_everything_in_0_3():
    params = MessageSendParams(Message.user(MANY_PARTS))

    assert "kind" not in all_members(V1_0.send_params(params))
    written = V0_3.send_params(params)["message"]
    assert written["kind"] == "message"
    assert [part["kind"] for part in written["parts"]] == ["text", "file", "file", "data"]


def test_parts_in_the_form_of_each_dialect():
    params = MessageSendParams(Message.user(MANY_PARTS))

    assert V1_0.send_params(params)["message"]["parts"] == [
        {"text": "t", "mediaType": "text/markdown"},
        {"raw": "YWI=", "filename": "x.png", "mediaType": "image/png"},
        {"url": "https://e/x", "filename": "x.png", "mediaType": "image/png"},
        {"data": {"n": 1}, "mediaType": "application/json"},
    ]
    file = {"name": "x.png", "mimeType": "image/png"}
    # B30: the media type of text and data has no place in 0.3.
    assert V0_3.send_params(params)["message"]["parts"] == [
        {"kind": "text", "text": "t"},
        {"kind": "file", "file": {"bytes": "YWI=", **file}},
        {"kind": "file", "file": {"uri": "https://e/x", **file}},
        {"kind": "data", "data": {"n": 1}},
    ]


@pytest.mark.parametrize("value", [None, 5, "s", [1], False])
def test_b30_data_that_is_no_object_is_refused_in_0_3(value):
    """Left out or wrapped without being asked, it would be another message."""
    params = MessageSendParams(Message.user([Part("t"), Part.from_data(value)]))

    with pytest.raises(ModelError, match=r"@ \$\.message\.parts\[1\]\.data") as raised:
        V0_3.send_params(params)

    assert isinstance(raised.value, ValueError)
    assert V1_0.send_params(params)["message"]["parts"][1] == {"data": value}


def test_b16_the_tenant_goes_into_every_1_0_request_and_into_none_of_0_3():
    send = MessageSendParams(Message.user("x"))
    config = PushNotificationConfig("u", "c", "t")
    for dialect, tenants in ((V1_0, {"acme"}), (V0_3, {None})):
        built: list[dict[str, Any]] = [
            dialect.send_params(send, "acme"),
            dialect.get_params("t", 1, "acme"),
            dialect.cancel_params("t", None, "acme"),
            dialect.subscribe_params("t", "acme"),
            dialect.push_create_params(config, "acme"),
            dialect.push_get_params("t", "c", "acme"),
            dialect.push_list_params("t", tenant="acme"),
            dialect.push_delete_params("t", "c", "acme"),
            dialect.extended_card_params("acme") or {},
        ]
        if dialect is V1_0:
            built.append(dialect.list_params(tenant="acme"))

        assert {params.get("tenant") for params in built} == tenants


@BOTH
def test_b16_without_a_tenant_there_is_no_member(dialect):
    assert "tenant" not in dialect.send_params(MessageSendParams(Message.user("x")))
    assert dialect.extended_card_params() is None


@pytest.mark.parametrize(
    ("configuration", "in_1_0", "in_0_3"),
    [
        (None, None, None),
        (SendConfiguration(), None, None),
        (
            SendConfiguration(return_immediately=True),
            {"returnImmediately": True},
            {"blocking": False},
        ),
        (
            SendConfiguration(return_immediately=False),
            {"returnImmediately": False},
            {"blocking": True},
        ),
        (
            SendConfiguration(history_length=0),
            {"historyLength": 0},
            {"historyLength": 0, "blocking": True},
        ),
        (
            SendConfiguration(["text/plain"]),
            {"acceptedOutputModes": ["text/plain"]},
            {"acceptedOutputModes": ["text/plain"], "blocking": True},
        ),
        (
            SendConfiguration(
                push_config=PushNotificationConfig("u", "c", token="t", schemes=["Bearer"])
            ),
            {
                "taskPushNotificationConfig": {
                    "url": "u",
                    "id": "c",
                    "token": "t",
                    "authentication": {"scheme": "Bearer"},
                }
            },
            {
                "pushNotificationConfig": {
                    "url": "u",
                    "id": "c",
                    "token": "t",
                    "authentication": {"schemes": ["Bearer"]},
                },
                "blocking": True,
            },
        ),
    ],
)
def test_b20_b21_a_configuration_says_what_was_given(configuration, in_1_0, in_0_3):
    """0.3 agents read a configuration without ``blocking`` as if it were false."""
    params = MessageSendParams(Message.user("x"), configuration)

    assert V1_0.send_params(params).get("configuration") == in_1_0
    assert V0_3.send_params(params).get("configuration") == in_0_3


@BOTH
def test_b22_a_history_length_of_0_is_sent_and_none_is_not(dialect):
    assert dialect.get_params("t", 0) == {"id": "t", "historyLength": 0}
    assert dialect.get_params("t") == {"id": "t"}


def test_b23_a_list_asks_for_what_is_given():
    assert V1_0.list_params() == {}
    assert V1_0.list_params(
        context_id="c",
        status=TaskState.INPUT_REQUIRED,
        page_size=2,
        page_token="p",
        history_length=0,
        status_timestamp_after="2026-01-01T00:00:00Z",
        include_artifacts=False,
    ) == {
        "contextId": "c",
        "status": "TASK_STATE_INPUT_REQUIRED",
        "pageSize": 2,
        "pageToken": "p",
        "historyLength": 0,
        "statusTimestampAfter": "2026-01-01T00:00:00Z",
        "includeArtifacts": False,
    }
    with pytest.raises(A2AClientError, match="no method that lists tasks"):
        V0_3.list_params()


@pytest.mark.parametrize(("dialect", "user"), [(V1_0, "ROLE_USER"), (V0_3, "user")])
def test_b34_whatever_is_sent_is_sent_by_the_user(dialect, user):
    answer = Message.agent("x")

    written = dialect.send_params(MessageSendParams(answer))["message"]

    assert written["role"] == user
    assert answer.role is Role.AGENT


@BOTH
def test_b33_a_message_without_id_gets_one(dialect):
    params = MessageSendParams(Message([Part("x")], message_id=""))

    first, second = (dialect.send_params(params)["message"]["messageId"] for _ in "ab")

    assert first
    assert first != second


@BOTH
@pytest.mark.parametrize("parts", [[], [Part()], [Part("a"), Part(url="")]])
def test_a_message_without_content_is_not_sent(dialect, parts):
    with pytest.raises(ValueError, match="part"):
        dialect.send_params(MessageSendParams(Message(parts)))


@BOTH
def test_metadata_is_converted_and_nan_refused(dialect):
    """Case C093."""
    day = datetime.date(2026, 11, 29)
    good = MessageSendParams(Message.user("x", metadata={"day": day}), metadata={"day": day})
    bad = MessageSendParams(Message.user("x"), metadata={"score": float("nan")})

    written = dialect.send_params(good)

    assert written["metadata"] == written["message"]["metadata"] == {"day": "2026-11-29"}
    with pytest.raises(ModelError, match=r"\$\.metadata\.score"):
        dialect.send_params(bad)
    assert dialect.cancel_params("t", {"reason": day}) == {
        "id": "t",
        "metadata": {"reason": "2026-11-29"},
    }


@BOTH
def test_b73_a_push_configuration_names_its_task(dialect):
    with pytest.raises(ValueError, match="names no task"):
        dialect.push_create_params(PushNotificationConfig("u"))


def test_a_push_configuration_in_1_0_has_one_scheme():
    config = PushNotificationConfig("u", "c", "t", schemes=["Bearer", "Basic"], credentials="x")

    with pytest.raises(ValueError, match="one authentication scheme, not 2"):
        V1_0.push_create_params(config)
    written = V0_3.push_create_params(config)["pushNotificationConfig"]["authentication"]
    assert written == {"schemes": ["Bearer", "Basic"], "credentials": "x"}


def test_b60_only_1_0_names_its_version():
    assert V1_0.headers([]) == {"A2A-Version": "1.0"}
    assert V0_3.headers([]) == {}


def test_b65_extensions_go_into_one_header():
    uris = ["https://e/a", "urn:b"]

    assert V1_0.headers(uris)["A2A-Extensions"] == "https://e/a,urn:b"
    assert V0_3.headers(uris) == {"X-A2A-Extensions": "https://e/a,urn:b"}


@BOTH
@pytest.mark.parametrize("uri", ["", "a b", "a,b", "a\r\nX: y", "ä"])
def test_b65_what_no_header_can_carry_is_refused(dialect, uri):
    with pytest.raises(ValueError, match="no URI"):
        dialect.headers([uri])


# --- results ---------------------------------------------------------------------------------

BARE_0_3 = {
    "kind": "task",
    "id": "t",
    "contextId": "c",
    "status": {
        "state": "completed",
        "message": {
            "kind": "message",
            "role": "agent",
            "messageId": "m",
            "parts": [{"kind": "text", "text": "hi"}],
        },
    },
}


@BOTH
@pytest.mark.parametrize(
    "value",
    [
        {"task": task("COMPLETED", message())},
        task("COMPLETED", message()),
        BARE_0_3,
        {"task": BARE_0_3},
    ],
    ids=["wrapped", "bare", "0.3", "0.3 wrapped"],
)
def test_b27_a_task_is_read_wrapped_or_bare_in_either_dialect(dialect, value):
    """Case C045."""
    sent, got = dialect.parse_send(value), dialect.parse_task(value)

    assert sent == got
    assert (sent.id, sent.text, sent.status.state) == ("t", "hi", TaskState.COMPLETED)
    assert not sent.from_message


@BOTH
@pytest.mark.parametrize(
    "value",
    [
        {"message": message("pong", contextId="c")},
        message("pong", contextId="c"),
        {
            "kind": "message",
            "role": "agent",
            "messageId": "m",
            "contextId": "c",
            "parts": [{"kind": "text", "text": "pong"}],
        },
    ],
    ids=["wrapped", "bare", "0.3"],
)
def test_a_bare_message_becomes_a_completed_task(dialect, value):
    """Case C085."""
    read = dialect.parse_send(value)

    assert (read.status.state, read.text, read.from_message) == (TaskState.COMPLETED, "pong", True)
    assert read.history == [read.status.message]
    assert (read.id, read.context_id) == ("", "c")


@BOTH
@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        [],
        "x",
        5,
        {"task": None},
        {"foo": 1},
        {"kind": "other"},
        {"task": []},
        {"statusUpdate": {"taskId": "t", "status": {"state": "x"}}},
        {"task": task(), "message": message()},
    ],
    ids=repr,
)
def test_a_result_that_is_neither_raises(dialect, value):
    """A task that nobody sent would be an answer that nobody gave."""
    with pytest.raises(ModelError):
        dialect.parse_send(value)


@BOTH
@pytest.mark.parametrize("value", [None, {}, {"task": None}, {"message": message()}], ids=repr)
def test_what_is_no_task_is_not_read_as_one(dialect, value):
    with pytest.raises(ModelError):
        dialect.parse_task(value)


@BOTH
def test_b47_an_event_of_an_unknown_kind_is_an_event_with_nothing_set(dialect):
    for value, kind in (
        ({"kind": "usage-update", "tokens": 5}, "usage-update"),
        ({"usageUpdate": {}}, "usageUpdate"),
        ({}, "unknown"),
    ):
        event = dialect.parse_event(value)

        assert (event.content, event.kind, event.raw) == (None, kind, value)
        assert (event.is_final, event.state, event.task_id) == (False, None, "")


@BOTH
@pytest.mark.parametrize(
    ("value", "path"),
    [
        (None, "$"),
        ([], "$"),
        ({"task": 5}, "$.task"),
        ({"statusUpdate": {}}, "$.statusUpdate.status"),
        ({"artifactUpdate": {"taskId": "t"}}, "$.artifactUpdate.artifact"),
        ({"kind": "status-update"}, "$.status"),
        ({"artifactUpdate": {"artifact": {}, "append": "yes"}}, "$.artifactUpdate.append"),
        ({"statusUpdate": {"status": {}}}, "$.statusUpdate.status.state"),
        (
            {"artifactUpdate": {"artifact": {"parts": [5]}}},
            "$.artifactUpdate.artifact.parts[0]",
        ),
    ],
    ids=repr,
)
def test_a_malformed_event_raises(dialect, value, path):
    with pytest.raises(ModelError) as raised:
        dialect.parse_event(value)

    assert raised.value.path == path


@BOTH
def test_both_forms_of_a_push_list_are_read(dialect):
    """Bare in 0.3, a page in 1.0."""
    nested = {"taskId": "t", "pushNotificationConfig": {"url": "u", "id": "c"}}
    flat = {"taskId": "t", "url": "u", "id": "c"}
    expected = [PushNotificationConfig("u", "c", "t")]

    assert dialect.parse_pushes([nested]) == (expected, "")
    assert dialect.parse_pushes({"configs": [flat], "nextPageToken": "n"}) == (expected, "n")
    assert dialect.parse_push(nested) == dialect.parse_push(flat) == expected[0]
    with pytest.raises(ModelError, match=re.escape("$[1].url")):
        dialect.parse_pushes([nested, {}])


def test_b23_a_page_is_read_with_what_it_says():
    value = {"tasks": [task()], "nextPageToken": "", "pageSize": 50, "totalSize": 1.0}

    page = V1_0.parse_page(value)

    assert [one.id for one in page.tasks] == ["t"]
    assert (page.next_page_token, page.page_size, page.total_size) == ("", 50, 1)
    with pytest.raises(ModelError, match=re.escape("$.tasks[0].status")):
        V1_0.parse_page({"tasks": [{"id": "t"}]})


# --- hosting ---------------------------------------------------------------------------------

SENDS = [
    exchange
    for exchange in exchanges(
        "sdk-client-jsonrpc-1.0", "neograph-client", "protolink-client", "jsonrpc-1.0", "tenant"
    )
    if exchange.sent
    and exchange.sent["method"] in ("SendMessage", "SendStreamingMessage")
    and exchange.received
    and "result" in exchange.received[0]
]


@pytest.mark.parametrize("exchange", SENDS, ids=lambda e: e.name)
def test_a_host_reads_what_recorded_clients_send(exchange):
    params = exchange.sent["params"]

    read = V1_0.read_send_params(params)

    assert plain(V1_0.send_params(read)) == plain(params)


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({}, "$.message"),
        (None, "$"),
        ({"message": None}, "$.message"),
        ({"message": {**message(), "parts": []}}, "$.message.parts"),
        ({"message": {**message(), "messageId": ""}}, "$.message.messageId"),
        ({"message": {**message(), "role": "boss"}}, "$.message.role"),
        ({"message": {"messageId": "m", "parts": [{"text": "x"}]}}, "$.message.role"),
        (
            {"message": message(), "configuration": {"historyLength": -1}},
            "$.configuration.historyLength",
        ),
        (
            {"message": message(), "configuration": {"historyLength": "1"}},
            "$.configuration.historyLength",
        ),
    ],
    ids=repr,
)
def test_a_host_says_what_is_wrong_with_a_send(params, path):
    with pytest.raises(ModelError) as raised:
        V1_0.read_send_params(params)

    assert raised.value.path == path


def test_a_host_sees_the_tenant_and_the_configuration():
    read = V1_0.read_send_params(
        {
            "tenant": "acme",
            "message": message(),
            "configuration": {
                "historyLength": 0,
                "returnImmediately": True,
                "acceptedOutputModes": ["text/plain"],
                "taskPushNotificationConfig": {"url": "u"},
            },
        }
    )

    assert read.extra == {"tenant": "acme"}
    assert read.configuration == SendConfiguration(
        ["text/plain"], 0, True, PushNotificationConfig("u")
    )


def test_a_host_writes_events_in_their_wrappers():
    for value in (
        {"task": task("COMPLETED", message(), artifacts=[artifact("x")])},
        {"message": message()},
        {
            "statusUpdate": {
                "taskId": "t",
                "contextId": "c",
                "status": {"state": "TASK_STATE_FAILED"},
            }
        },
        {
            "artifactUpdate": {
                "taskId": "t",
                "contextId": "c",
                "artifact": artifact("x"),
                "append": True,
                "lastChunk": True,
                "metadata": {"a": 1},
            }
        },
    ):
        assert V1_0.parse_event(value).to_dict() == value
