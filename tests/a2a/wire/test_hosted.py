"""A hosted task as A2A callers see it: what was said last, when, and why it ended."""

from __future__ import annotations

import pytest

from protolink_sync import models
from protolink_sync.a2a.wire import Artifact, Message, Part, Role, TaskState
from protolink_sync.a2a.wire.translation import (
    artifact_from_a2a,
    artifact_to_a2a,
    message_from_a2a,
    part_from_a2a,
    part_to_a2a,
    status_to_a2a,
    task_to_a2a,
)

EARLY, LATE = "2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00"


def said(text: str, role: str = "agent", at: str = EARLY) -> models.Message:
    return models.Message(f"id-{text}", role, [models.Part.text(text)], at)


def hosted(*messages: models.Message, **members: object) -> models.Task:
    return models.Task("t", messages=list(messages), created_at=EARLY, **members)  # type: ignore[arg-type]


def test_the_status_has_the_newest_message_that_is_not_the_users():
    task = hosted(said("old"), said("new", "assistant"), said("asked", "user"))

    status = status_to_a2a(task, "c")

    assert status.message is not None
    assert (status.message.message_id, status.message.role) == ("id-new", Role.AGENT)
    assert (status.message.task_id, status.message.context_id) == ("t", "c")


def test_where_only_the_user_spoke_the_status_has_no_message():
    assert status_to_a2a(hosted(said("asked", "user")), "c").message is None
    assert status_to_a2a(hosted(), "c").message is None


def test_a_reason_is_told_under_one_id_each_time():
    """Callers tell messages apart by their ids: a new one each time would be a new message."""
    task = hosted(said("working"))
    task.fail("no key")

    first, second = status_to_a2a(task, "c").message, status_to_a2a(task, "c").message

    assert first is not None
    assert first == second
    assert (first.text, first.message_id) == ("no key", "t-failed")
    assert (first.task_id, first.context_id, first.role) == ("t", "c", Role.AGENT)
    assert status_to_a2a(task, "c").state is TaskState.FAILED


@pytest.mark.parametrize(
    ("history", "moment"),
    [
        ([{"timestamp": EARLY}, {"timestamp": LATE}], "2026-01-02T00:00:00Z"),
        ([{"timestamp": "2026-01-02T00:00:00+02:00"}], "2026-01-02T00:00:00+02:00"),
        ([{"timestamp": 5}], "2026-01-01T00:00:00Z"),
        (["x"], "2026-01-01T00:00:00Z"),
        ([], "2026-01-01T00:00:00Z"),
        ({"a": 1}, "2026-01-01T00:00:00Z"),
        (None, "2026-01-01T00:00:00Z"),
    ],
)
def test_the_moment_is_that_of_the_last_change_or_message(history, moment):
    task = hosted(said("hi"), metadata={"state_history": history})

    assert status_to_a2a(task, "c").timestamp == moment


def test_without_messages_the_moment_is_that_of_the_task():
    assert status_to_a2a(hosted(), "c").timestamp == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("length", "told"),
    [(None, ["a", "b", "c"]), (0, []), (1, ["c"]), (2, ["b", "c"]), (9, ["a", "b", "c"])],
)
def test_the_history_has_the_newest_messages(length, told):
    task = hosted(said("a"), said("b", "user"), said("c"))

    read = task_to_a2a(task, "c", history_length=length)

    assert [message.text for message in read.history] == told


def test_artifacts_are_told_unless_the_caller_does_not_want_them():
    task = hosted(said("a"), artifacts=[models.Artifact("a", [models.Part.text("x")])])

    assert [a.text for a in task_to_a2a(task, "c").artifacts] == ["x"]
    assert task_to_a2a(task, "c", with_artifacts=False).artifacts == []


def test_an_artifact_with_parts_is_its_parts_and_one_without_is_its_address():
    both = models.Artifact("a", [models.Part.text("x")], uri="http://h/f", media_type="text/plain")
    address = models.Artifact("a", uri="http://h/f", media_type="text/plain", name="n")
    nothing = models.Artifact("a")

    assert artifact_to_a2a(both).parts == [Part("x")]
    told = artifact_to_a2a(address)
    assert (told.parts, told.name) == (
        [Part(url="http://h/f", media_type="text/plain")],
        "n",
    )
    assert (artifact_to_a2a(nothing).parts, artifact_to_a2a(nothing).name) == ([], "")


def test_what_has_no_id_or_name_gets_an_id_and_no_name():
    read = artifact_from_a2a(Artifact([], ""))

    assert read.id
    assert read.name is None
    assert artifact_from_a2a(Artifact([], "a", "n")).name == "n"
    assert message_from_a2a(Message([], Role.AGENT, "")).id


@pytest.mark.parametrize(
    ("role", "expected"),
    [(Role.USER, "user"), (Role.AGENT, "agent"), (Role.UNSPECIFIED, "agent")],
)
def test_the_role_of_the_user_stays_the_users(role, expected):
    assert message_from_a2a(Message([], role, "m")).role == expected


def test_an_empty_text_stays_text():
    part = part_from_a2a(Part(""))

    assert (part.type, part.content) == ("text", "")


def test_metadata_of_a_file_that_is_no_object_is_left_out():
    for metadata, told in (({"a": 1}, {"a": 1}), ("text", {}), (None, {})):
        part = models.Part("file", {"raw": "YQ==", "metadata": metadata})
        assert part_to_a2a(part).metadata == told
