"""Results that are not what was asked for are refused, and the error says what they are."""

from __future__ import annotations

import collections

import pytest

from protolink_sync.a2a.wire import Message, StreamEvent
from protolink_sync.errors import ModelError
from tests.a2a.wire.values import V0_3, V1_0, artifact, message, status, task

BOTH = pytest.mark.parametrize("dialect", [V1_0, V0_3], ids=["1.0", "0.3"])


@BOTH
@pytest.mark.parametrize(
    ("said", "why"),
    [
        (message(role="ROLE_USER"), "a message of the user is no answer"),
        ({"messageId": "m", "role": "ROLE_AGENT", "parts": []}, "without parts is no answer"),
    ],
)
def test_a_message_that_answers_nothing_is_no_finished_task(dialect, said, why):
    """An echo of the question, or nothing, would pass for the answer of a completed task."""
    for read in (dialect.parse_send, dialect.parse_event):
        for value in ({"message": said}, {"kind": "message", **said}):
            with pytest.raises(ModelError, match=why) as caught:
                read(value)
            assert caught.value.path == "$"


@BOTH
def test_an_answer_of_the_agent_is_taken(dialect):
    said = message("yes")

    assert dialect.parse_send({"message": said}).text == "yes"
    assert dialect.parse_event({"message": said}).message == Message.from_dict(said)


@BOTH
@pytest.mark.parametrize(
    ("value", "has"),
    [
        ({}, "nothing"),
        ({"b": 1, "a": 2}, "a, b"),
        (dict.fromkeys("gfedcba", 1), "a, b, c, d, e"),
        ({"statusUpdate": {"taskId": "t", "status": status()}}, "statusUpdate"),
    ],
)
def test_what_is_neither_task_nor_message_says_what_it_has(dialect, value, has):
    with pytest.raises(ModelError) as caught:
        dialect.parse_send(value)

    assert caught.value.args[0] == f"neither a task nor a message: it has {has} @ $"
    assert caught.value.path == "$"


@BOTH
def test_a_task_is_read_bare_and_wrapped(dialect):
    assert dialect.parse_task(task()).id == "t"
    assert dialect.parse_task({"task": task()}).id == "t"
    # A member of that name beside a task's own is none of its wrappers.
    assert dialect.parse_task({**task(), "task": task(id="other")}).id == "t"


@BOTH
def test_the_place_of_a_fault_is_told_from_the_root(dialect):
    for value, path in (({"task": {**task(), "id": 5}}, "$.task.id"), (task(id=5), "$.id")):
        with pytest.raises(ModelError) as caught:
            dialect.parse_send(value)
        assert caught.value.path == path
    for value, path in (({"task": {"id": 5}}, "$.task.status"), (task(status=5), "$.status")):
        with pytest.raises(ModelError) as caught:
            dialect.parse_task(value)
        assert caught.value.path == path


@BOTH
@pytest.mark.parametrize("value", [None, [], "x", 5, True])
def test_what_is_no_object_is_refused(dialect, value):
    for read in (dialect.parse_send, dialect.parse_task, dialect.parse_event, dialect.parse_page):
        with pytest.raises(ModelError, match=r"expected .*@ \$"):
            read(value)


def test_any_mapping_is_an_object():
    """A parser of one's own may make ordered ones."""
    assert V1_0.parse_task(collections.UserDict(task())).id == "t"


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, "a string"),
        (5, "found a number (5)"),
        (2.5, "found a number (2.5)"),
        (True, "found true"),
        (False, "found false"),
        ([], "found an array"),
        ({}, "found an object"),
    ],
)
def test_a_fault_says_what_stands_there(value, found):
    if value is None:  # unset
        assert V1_0.parse_task(task(contextId=None)).context_id == ""
        return
    with pytest.raises(ModelError) as caught:
        V1_0.parse_task({**task(), "contextId": value})

    assert caught.value.args[0] == f"expected a string, {found} @ $.contextId"


def test_a_fault_shows_the_begin_of_a_long_text():
    with pytest.raises(ModelError) as caught:
        V1_0.parse_task({"id": "t", "status": "x" * 50})

    assert f"found a string ('{'x' * 40}') @ $.status" in caught.value.args[0]


def test_members_that_nobody_knows_are_kept_with_updates():
    """Nothing a peer sends is lost on the way to the caller."""
    moved = {"taskId": "t", "contextId": "c", "status": status(), "x-more": [1], "metadata": {}}
    brought = {
        "taskId": "t",
        "contextId": "c",
        "artifact": artifact("a"),
        "append": False,
        "lastChunk": True,
        "metadata": {"a": 1},
        "x-more": [2],
    }

    update = V1_0.parse_event({"statusUpdate": moved}).status_update
    other = V1_0.parse_event({"artifactUpdate": brought}).artifact_update

    assert update is not None
    assert update.extra == {"x-more": [1]}
    assert other is not None
    assert other.extra == {"x-more": [2]}


def test_an_event_of_a_kind_that_nobody_knows_is_an_event_without_anything():
    event = V1_0.parse_event({"kind": "weather", "rain": True})

    assert event == StreamEvent(raw={"kind": "weather", "rain": True})
    assert (event.context_id, event.task_id, event.state) == ("", "", None)


@pytest.mark.parametrize("kind", [["task"], {"a": 1}, 5, None, "weather"])
def test_a_kind_that_nobody_knows_is_no_reason_to_guess(kind):
    """A list cannot even be looked up in a table."""
    value = {**task(), "kind": kind}

    assert V1_0.parse_event(value).content is None
    assert V1_0.parse_event(value).to_dict() == value
    with pytest.raises(ModelError, match="neither a task nor a message"):
        V1_0.parse_send(value)


@pytest.mark.parametrize("value", [{"role": "agent"}, {"parts": []}, {"role": None, "parts": []}])
def test_a_bare_message_has_a_role_and_parts(value):
    with pytest.raises(ModelError, match="neither a task nor a message"):
        V1_0.parse_send({"messageId": "m", **value})


def test_two_things_in_one_wrapper_are_refused_at_its_place():
    with pytest.raises(ModelError, match="both task and message") as caught:
        V1_0.parse_send({"task": task(), "message": message()})

    assert caught.value.path == "$"


def test_the_place_of_a_fault_in_a_status_is_told():
    for said, path in ((5, "$.status.message"), (message(role=[]), "$.status.message.role")):
        with pytest.raises(ModelError) as caught:
            V1_0.parse_task(task(said=said))  # type: ignore[arg-type]
        assert caught.value.path == path


def test_an_event_that_was_made_here_has_no_members_of_a_peer():
    assert StreamEvent().to_dict() == {}
    assert StreamEvent().kind == "unknown"
