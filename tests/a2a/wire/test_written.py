"""Requests: each member where its dialect has it, and nothing that was not given."""

from __future__ import annotations

from typing import Any

import pytest

from protolink_sync.a2a.wire import (
    Message,
    MessageSendParams,
    Part,
    PushNotificationConfig,
    Role,
    SendConfiguration,
)
from protolink_sync.errors import ModelError
from tests.a2a.wire.values import V0_3, V1_0, message

BOTH = pytest.mark.parametrize("dialect", [V1_0, V0_3], ids=["1.0", "0.3"])


def test_each_request_about_a_task_names_the_task():
    assert V1_0.subscribe_params("t") == {"id": "t"}
    assert V1_0.push_get_params("t", "c") == {"taskId": "t", "id": "c"}
    assert V1_0.push_list_params("t") == {"taskId": "t"}
    assert V1_0.push_list_params("t", 5, "p") == {"taskId": "t", "pageSize": 5, "pageToken": "p"}
    assert V1_0.push_delete_params("t", "c") == {"taskId": "t", "id": "c"}
    config = PushNotificationConfig("http://hook", "c", "t")
    assert V1_0.push_create_params(config) == {"id": "c", "taskId": "t", "url": "http://hook"}

    assert V0_3.subscribe_params("t") == {"id": "t"}
    assert V0_3.push_get_params("t", "c") == {"id": "t", "pushNotificationConfigId": "c"}
    assert V0_3.push_get_params("t", "") == {"id": "t"}
    assert V0_3.push_list_params("t", 5, "p") == {"id": "t"}
    assert V0_3.push_delete_params("t", "c") == {"id": "t", "pushNotificationConfigId": "c"}


@BOTH
def test_a_cancel_without_metadata_has_none_and_a_fault_says_where(dialect):
    assert dialect.cancel_params("t", {}) == {"id": "t"}
    with pytest.raises(ModelError) as caught:
        dialect.cancel_params("t", {"score": float("inf")})

    assert caught.value.path == "$.metadata.score"


@BOTH
def test_what_a_message_has_not_is_not_sent(dialect):
    written = dialect.send_params(MessageSendParams(Message.user("x")))

    assert set(written) == {"message"}
    assert set(written["message"]) - {"kind"} == {"messageId", "role", "parts"}


@BOTH
def test_what_a_message_has_is_sent(dialect):
    said = Message.user(
        "x",
        context_id="c",
        task_id="t",
        metadata={"a": 1},
        extensions=["urn:x"],
        reference_task_ids=["r"],
    )

    written = dialect.send_params(MessageSendParams(said, metadata={"b": 2}))

    assert written["metadata"] == {"b": 2}
    told = {k: v for k, v in written["message"].items() if k not in ("kind", "role", "parts")}
    assert told == {
        "messageId": said.message_id,
        "contextId": "c",
        "taskId": "t",
        "metadata": {"a": 1},
        "extensions": ["urn:x"],
        "referenceTaskIds": ["r"],
    }


@pytest.mark.parametrize(
    ("config", "in_1_0", "in_0_3"),
    [
        ({"credentials": "x"}, {"credentials": "x"}, {"schemes": [], "credentials": "x"}),
        ({"schemes": ["Basic"]}, {"scheme": "Basic"}, {"schemes": ["Basic"]}),
        ({}, None, None),
    ],
)
def test_a_receiver_is_told_how_to_identify_itself_if_it_has_to(config, in_1_0, in_0_3):
    push = PushNotificationConfig("u", task_id="t", **config)

    assert V1_0.push_create_params(push).get("authentication") == in_1_0
    inside = V0_3.push_create_params(push)["pushNotificationConfig"]
    assert inside.get("authentication") == in_0_3


def test_members_of_a_configuration_that_nobody_knows_are_sent():
    params = MessageSendParams(Message.user("x"), SendConfiguration(extra={"x-mode": 1}))

    assert V1_0.send_params(params)["configuration"] == {"x-mode": 1}
    assert V0_3.send_params(params)["configuration"] == {"x-mode": 1, "blocking": True}


def test_a_part_that_has_nothing_but_unknown_members_is_sent_where_it_can_be():
    """It may be of a kind that comes after this library."""
    params = MessageSendParams(Message.user([Part("t"), Part(extra={"video": "v"})]))

    assert V1_0.send_params(params)["message"]["parts"][1] == {"video": "v"}
    with pytest.raises(ModelError, match="without content") as caught:
        V0_3.send_params(params)
    assert caught.value.path == "$.message.parts[1]"


def test_data_that_0_3_cannot_carry_is_refused_with_its_place():
    with pytest.raises(ModelError) as caught:
        V0_3.send_params(MessageSendParams(Message.user([Part.from_data([1])])))

    assert caught.value.path == "$.message.parts[0].data"


@BOTH
def test_the_message_of_the_user_keeps_its_id_and_another_ones_too(dialect):
    for role in Role:
        params = MessageSendParams(Message([Part("x")], role, "given"))
        assert dialect.send_params(params)["message"]["messageId"] == "given"


@BOTH
@pytest.mark.parametrize("uri", ["a\tb", "a\x00b", "a\x7fb"])
def test_an_extension_with_a_control_character_is_refused(dialect, uri):
    with pytest.raises(ValueError, match="no URI"):
        dialect.headers([uri])


# --- requests as a host reads them --------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({}, "$.message"),
        ({"message": None}, "$.message"),
        ({"message": message(id="")}, "$.message.messageId"),
        ({"message": message(role="ROLE_UNSPECIFIED")}, "$.message.role"),
        ({"message": {**message(role="user"), "parts": []}}, "$.message.parts"),
        ({"message": 5}, "$.message"),
        ({"message": message(role="user"), "configuration": {"historyLength": -1}},
         "$.configuration.historyLength"),
        ({"message": message(role="user"), "configuration": {"historyLength": 1.5}},
         "$.configuration.historyLength"),
        ({"message": message(role="user"),
          "configuration": {"taskPushNotificationConfig": {}}},
         "$.configuration.taskPushNotificationConfig.url"),
        ({"message": message(role="user"),
          "configuration": {"taskPushNotificationConfig":
                            {"url": "u", "authentication": {"scheme": 5}}}},
         "$.configuration.taskPushNotificationConfig.authentication.scheme"),
        (5, "$"),
    ],
)  # fmt: skip
def test_a_request_that_is_not_whole_is_refused_with_its_place(value, path):
    with pytest.raises(ModelError) as caught:
        V1_0.read_send_params(value)

    assert caught.value.path == path


def test_a_request_is_read_as_it_was_sent():
    value: dict[str, Any] = {
        "tenant": "acme",
        "message": message(role="ROLE_USER", contextId="c"),
        "configuration": {
            "acceptedOutputModes": ["text/plain"],
            "historyLength": 2.0,
            "returnImmediately": True,
            "taskPushNotificationConfig": {
                "url": "u",
                "id": "p",
                "taskId": "t",
                "token": "k",
                "authentication": {"scheme": "Basic", "credentials": "x"},
                "x-push": 1,
            },
            "x-configuration": 2,
        },
        "metadata": {"a": 1},
        "x-send": 3,
    }

    read = V1_0.read_send_params(value)

    assert read == MessageSendParams(
        Message([Part("hi")], Role.USER, "m", "c"),
        SendConfiguration(
            ["text/plain"],
            2,
            True,
            PushNotificationConfig("u", "p", "t", "k", ["Basic"], "x", extra={"x-push": 1}),
            extra={"x-configuration": 2},
        ),
        {"a": 1},
        extra={"tenant": "acme", "x-send": 3},
    )


def test_metadata_that_says_nothing_is_none():
    assert V1_0.read_send_params({"message": message(), "metadata": {}}).metadata is None


@pytest.mark.parametrize(
    ("value", "task_id", "schemes"),
    [
        ({"url": "u", "taskId": "t", "authentication": {"scheme": "A"}}, "t", ("A",)),
        ({"url": "u", "authentication": {"schemes": ["A", "B"]}}, "", ("A", "B")),
        ({"taskId": "t", "pushNotificationConfig": {"url": "u"}}, "t", ()),
        ({"pushNotificationConfig": {"url": "u", "taskId": "t"}}, "t", ()),
        ({"taskId": "t", "pushNotificationConfig": {"url": "u", "taskId": "other"}}, "t", ()),
    ],
)
def test_a_push_configuration_is_read_flat_and_nested(value, task_id, schemes):
    read = V0_3.parse_push(value)

    assert (read.url, read.task_id, read.schemes) == ("u", task_id, schemes)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"pushNotificationConfig": 5}, "$.pushNotificationConfig"),
        ({"pushNotificationConfig": {}}, "$.pushNotificationConfig.url"),
        ({"pushNotificationConfig": {"url": "u", "authentication": 5}},
         "$.pushNotificationConfig.authentication"),
        ({"taskId": 5}, "$.taskId"),
    ],
)  # fmt: skip
def test_a_push_configuration_that_is_none_says_where(value, path):
    with pytest.raises(ModelError) as caught:
        V0_3.parse_push(value)

    assert caught.value.path == path


def test_a_push_configuration_shows_no_secret():
    shown = repr(PushNotificationConfig("u", token="s3cret", credentials="s3cret2"))

    assert "s3cret" not in shown


def test_a_page_keeps_what_nobody_knows():
    page = V1_0.parse_page({"tasks": [], "nextPageToken": "n", "pageSize": 1, "totalSize": 0,
                            "x-more": 1})  # fmt: skip

    assert (page.tasks, page.next_page_token, page.page_size, page.total_size) == ([], "n", 1, 0)
    assert page.extra == {"x-more": 1}
