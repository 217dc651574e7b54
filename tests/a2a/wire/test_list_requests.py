"""What a caller may ask a host's list of tasks for, and what is refused with its place."""

from __future__ import annotations

import pytest

from protolink_sync.a2a.wire import Part, TaskState
from protolink_sync.a2a.wire.requests import ListRequest, SendRequest, TaskRequest
from protolink_sync.errors import ModelError
from tests.a2a.wire.values import message

DAY = 86_400 * 10**9


def test_without_anything_it_is_the_first_page_of_all_tasks_without_artifacts():
    assert ListRequest.from_dict({}) == ListRequest("", "", None, 50, "", None, None, False)
    assert TaskRequest("t").tenant == ""


def test_each_member_is_read():
    asked = {
        "tenant": "acme",
        "contextId": "c",
        "status": "TASK_STATE_WORKING",
        "pageSize": 7,
        "pageToken": "p",
        "historyLength": 0,
        "statusTimestampAfter": "1970-01-02T00:00:00Z",
        "includeArtifacts": True,
    }

    assert ListRequest.from_dict(asked) == ListRequest(
        "acme", "c", TaskState.WORKING, 7, "p", 0, DAY, True
    )


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01z", 10**9),
        ("1970-01-02T00:00:00+00:00", DAY),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T00:00:00Z", -DAY),
        ("1970-01-02T00:00:05.5Z", DAY + 5_500_000_000),
        ("1970-01-01T00:00:00.123456Z", 123_456_000),
        ("1970-01-01T00:00:00.123456789Z", 123_456_000),
        (f"1970-01-01T00:00:00.123456{'7' * 37}Z", 123_456_000),
        ("", None),
    ],
)
def test_a_moment_is_read_to_the_microsecond(text, moment):
    assert ListRequest.from_dict({"statusTimestampAfter": text}).changed_since == moment


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yesterday", "a timestamp as in ISO 8601"),
        ("1970-13-01T00:00:00Z", "a timestamp as in ISO 8601"),
        ("1970-01-01T00:00:00", "a timestamp with a time zone"),
        (f"1970-01-01T00:00:00.{'0' * 60}Z", "a timestamp as in ISO 8601"),
    ],
)
def test_what_is_no_moment_is_refused(text, expected):
    with pytest.raises(ModelError, match=f"expected {expected}, found") as caught:
        ListRequest.from_dict({"statusTimestampAfter": text})

    assert caught.value.path == "$.statusTimestampAfter"


@pytest.mark.parametrize("size", [1, 50, 100, 2.0])
def test_a_page_has_one_to_a_hundred_tasks(size):
    assert ListRequest.from_dict({"pageSize": size}).page_size == size


@pytest.mark.parametrize(
    ("member", "value", "expected"),
    [
        ("pageSize", 0, "a number from 1 to 100"),
        ("pageSize", 101, "a number from 1 to 100"),
        ("pageSize", "5", "an integer"),
        ("historyLength", -1, "0 or more"),
        ("status", "working", "a state of A2A"),
        ("status", "WORKING", "a state of A2A"),
        ("status", "TASK_STATE_RESTING", "a state of A2A"),
        ("status", "WORKINGTASK_STATE_", "a state of A2A"),
        ("includeArtifacts", "yes", "true or false"),
    ],
)
def test_what_is_out_of_its_range_is_refused(member, value, expected):
    with pytest.raises(ModelError, match=f"expected {expected}, found") as caught:
        ListRequest.from_dict({member: value})

    assert caught.value.path == f"$.{member}"


@pytest.mark.parametrize("word", ["", "TASK_STATE_UNSPECIFIED", None])
def test_no_state_is_every_state(word):
    assert ListRequest.from_dict({"status": word}).state is None


def test_many_messages_are_asked_for():
    assert ListRequest.from_dict({"historyLength": 100_000}).history_length == 100_000


@pytest.mark.parametrize(
    ("part", "content"),
    [
        ({"text": ""}, Part("")),
        ({"data": None}, Part(null_data=True)),
        ({"data": 0}, Part(data=0)),
        ({"url": "u"}, Part(url="u")),
        ({"raw": ""}, Part(raw=b"")),
        ({"text": "t", "url": None, "raw": None}, Part("t")),
    ],
)
def test_a_part_of_a_request_has_one_content(part, content):
    sent = {"message": {**message(role="ROLE_USER"), "parts": [part]}}

    assert SendRequest.from_dict(sent).params.message.parts == [content]


def test_a_message_may_be_sent_for_a_tenant():
    sent = {"message": message(role="ROLE_USER")}

    assert SendRequest.from_dict({**sent, "tenant": "acme"}).tenant == "acme"
    assert SendRequest.from_dict(sent).tenant == ""


@pytest.mark.parametrize(
    "part", [{}, {"text": None}, {"text": "t", "data": None}, {"text": "t", "url": "u"}]
)
def test_a_part_with_no_content_or_with_two_is_refused_with_its_place(part):
    sent = {"message": {**message(role="ROLE_USER"), "parts": [{"text": "a"}, part]}}

    with pytest.raises(ModelError) as caught:
        SendRequest.from_dict(sent)

    assert caught.value.path == "$.message.parts[1]"


def test_a_request_about_a_task_is_read_whole():
    asked = {"id": "t", "tenant": "acme", "historyLength": 0, "metadata": {"a": 1}}

    assert TaskRequest.from_dict(asked) == TaskRequest("t", "acme", 0, {"a": 1})
    assert TaskRequest.from_dict({"id": "t"}) == TaskRequest("t", "", None, {})
