"""What A2A objects keep, how they are read, and what the answer in a task is."""

from __future__ import annotations

import copy
import pickle
import re

import pytest

from protolink_sync.a2a.wire import (
    Artifact,
    Message,
    Part,
    PushNotificationConfig,
    Role,
    SendConfiguration,
    StreamEvent,
    Task,
    TaskState,
    TaskStatus,
)
from protolink_sync.errors import ModelError
from tests.a2a.wire.values import artifact, event, message, task

UUID_4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


@pytest.mark.parametrize("state", [s for s in TaskState if s is not TaskState.UNKNOWN])
def test_b27_either_spelling_of_a_state_is_read(state):
    for text in (state.value, f"TASK_STATE_{state.name}"):
        read = TaskStatus.from_dict({"state": text})

        assert (read.state, read.state_text) == (state, None)
        assert read.to_dict() == {"state": f"TASK_STATE_{state.name}"}


@pytest.mark.parametrize("text", ["TASK_STATE_CANCELLED", "cancelled"])
def test_b27_the_double_l_of_canceled_is_read(text):
    assert TaskStatus.from_dict({"state": text}).state is TaskState.CANCELED


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("user", Role.USER),
        ("ROLE_USER", Role.USER),
        ("agent", Role.AGENT),
        ("ROLE_AGENT", Role.AGENT),
        ("ROLE_UNSPECIFIED", Role.UNSPECIFIED),
        (None, Role.UNSPECIFIED),
    ],
)
def test_b27_either_spelling_of_a_role_is_read(text, role):
    assert Message.from_dict({"role": text, "parts": []}).role is role


def test_the_value_of_a_role_is_its_word():
    assert {role: role.value for role in Role} == {
        Role.USER: "user",
        Role.AGENT: "agent",
        Role.UNSPECIFIED: "unspecified",
    }


def test_the_states_that_end_and_those_that_wait():
    ends = {state for state in TaskState if state.is_terminal}
    waits = {state for state in TaskState if state.is_interrupted}

    assert {state.value for state in ends} == {"completed", "failed", "canceled", "rejected"}
    assert {state.value for state in waits} == {"input-required", "auth-required"}


@pytest.mark.parametrize("text", ["TASK_STATE_PAUSED", "archived", "unknown", 17])
def test_b28_an_unknown_state_keeps_its_text(text):
    """Also a number: what protobuf prints for a state that its definition does not name."""
    read = TaskStatus.from_dict({"state": text})

    assert (read.state, read.state_text) == (TaskState.UNKNOWN, str(text))
    assert not read.state.is_terminal
    assert read.to_dict() == {"state": str(text)}


def test_b28_unknown_members_are_kept_and_written_back():
    value = task("COMPLETED", message("x", new=1), other=[2], artifacts=[artifact("y", more={})])
    value["status"]["since"] = "z"
    value["status"]["message"]["role"] = "ROLE_SYSTEM"

    read = Task.from_dict(value)

    assert read.to_dict() == value
    assert read.extra == {"other": [2]}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"text": ""}, "text"),
        ({"text": "a", "raw": "AA==", "url": "u", "data": 1}, "text"),
        ({"raw": "AA==", "url": "u", "data": 1}, "raw"),
        ({"raw": ""}, "raw"),
        ({"url": "u", "data": 1}, "url"),
        ({"data": {}}, "data"),
        ({"data": 0}, "data"),
        ({"data": False}, "data"),
        ({"data": None}, "data"),
        ({"text": "a", "data": None}, "text"),
        ({"hologram": 1}, "unknown"),
        ({"text": None, "url": ""}, "unknown"),
    ],
)
def test_b29_the_members_that_are_set_tell_what_a_part_is(value, kind):
    assert Part.from_dict(value).kind == kind


def test_b29_null_is_data_and_stays_null():
    value = {"data": None, "mediaType": "application/json"}

    read = Part.from_dict(value)

    assert (read.data, read.null_data) == (None, True)
    assert read.to_dict() == value == Part.from_data(None, "application/json").to_dict()
    assert read.copy() == read


@pytest.mark.parametrize("value", [5, [1, "x"], "s", False, {}, 1.5, 2**70])
def test_data_is_any_json_value_and_stays_what_it_is(value):
    """Case C097."""
    read = Part.from_dict({"data": value})

    assert read.data == value
    assert type(read.data) is type(value)
    assert read.to_dict() == {"data": value}


@pytest.mark.parametrize(
    ("value", "raw"),
    [("AAH/+w==", b"\0\1\xff\xfb"), ("AAH_-w", b"\0\1\xff\xfb"), ("AAH/\r\n+w==", b"\0\1\xff\xfb")],
)
def test_bytes_come_in_any_base64(value, raw):
    """Case C098; URL-safe, without padding and in lines too."""
    assert Part.from_dict({"raw": value}).raw == raw
    assert Part.from_dict({"kind": "file", "file": {"bytes": value}}).raw == raw


@pytest.mark.parametrize("value", ["A", "A*==", "ä", 5, {}])
def test_what_is_no_base64_says_where_it_stands(value):
    with pytest.raises(ModelError) as raised:
        Task.from_dict(
            task(artifacts=[{"artifactId": "a", "parts": [{"text": "x"}, {"raw": value}]}])
        )

    assert raised.value.path == "$.artifacts[0].parts[1].raw"


def test_a_file_of_0_3_is_read_with_all_it_says():
    value = {
        "kind": "file",
        "file": {"uri": "https://e/x", "name": "x.png", "mimeType": "image/png", "size": 9},
        "metadata": {"f": True},
    }

    read = Part.from_dict(value)

    assert (read.kind, read.url, read.filename) == ("url", "https://e/x", "x.png")
    assert (read.media_type, read.metadata) == ("image/png", {"f": True})
    assert read.extra == {"file": {"size": 9}}


def test_b32_empty_members_mean_unset():
    value = {
        "messageId": "m",
        "role": "ROLE_USER",
        "parts": [{"text": "", "filename": "", "mediaType": "", "metadata": {}}],
        "contextId": "",
        "extensions": [],
        "referenceTaskIds": [],
    }

    read = Message.from_dict(value)

    assert read == Message([Part("")], Role.USER, "m")
    assert read.to_dict() == {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": ""}]}


def test_null_means_unset():
    value = task(artifacts=None, history=None, metadata=None, contextId=None)
    value["status"] |= {"message": None, "timestamp": None}

    read = Task.from_dict(value)

    assert (read.artifacts, read.history, read.metadata, read.context_id) == ([], [], {}, "")
    read.artifacts.append(Artifact())
    assert read.status == TaskStatus(TaskState.WORKING)


def test_b33_every_message_has_an_id_of_its_own():
    ids = {Message.user("x").message_id for _ in range(1000)} | {Message().message_id}

    assert len(ids) == 1001
    assert all(UUID_4.fullmatch(id) for id in ids)


def test_b34_ids_that_are_not_given_are_absent():
    assert set(Message.user("x").to_dict()) == {"messageId", "role", "parts"}
    written = Message.user("x", task_id="t", context_id="c").to_dict()
    assert (written["taskId"], written["contextId"]) == ("t", "c")


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (None, "$"),
        ([], "$"),
        ({**task(), "id": None}, "$.id"),
        ({**task(), "id": ""}, "$.id"),
        ({**task(), "id": 5}, "$.id"),
        ({**task(), "status": None}, "$.status"),
        ({**task(), "status": {}}, "$.status.state"),
        ({**task(), "status": {"state": None}}, "$.status.state"),
        ({**task(), "status": {"state": ["x"]}}, "$.status.state"),
        ({**task(), "status": "completed"}, "$.status"),
        ({**task(), "contextId": 5}, "$.contextId"),
        ({**task(), "history": {}}, "$.history"),
        ({**task(), "history": [message(), {"parts": "oops"}]}, "$.history[1].parts"),
        ({**task(), "history": [{"role": 1.5, "parts": []}]}, "$.history[0].role"),
        ({**task(), "artifacts": [{"parts": [{"text": 1}]}]}, "$.artifacts[0].parts[0].text"),
        ({**task(), "metadata": []}, "$.metadata"),
        ({**task(), "artifacts": [{"extensions": [1]}]}, "$.artifacts[0].extensions[0]"),
    ],
)
def test_what_is_no_task_says_where(value, path):
    """Case C104; a task without id or state would be an answer that nobody gave."""
    with pytest.raises(ModelError, match=re.escape(f"@ {path}")) as raised:
        Task.from_dict(value)

    assert raised.value.path == path


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (task("COMPLETED", message("done"), artifacts=[artifact("no")]), "done"),
        (task("FAILED", message("why")), "why"),
        (
            task("COMPLETED", artifacts=[artifact("Hel", "lo"), artifact("more", id="b")]),
            "Hello\nmore",
        ),
        (task("COMPLETED", message("mine", "ROLE_USER"), artifacts=[artifact("a")]), "a"),
        (task("COMPLETED", {**message(), "parts": [{"data": 1}]}, artifacts=[artifact("a")]), "a"),
        (task("WORKING", message("at it"), artifacts=[artifact("part")]), "part"),
        (task("WORKING", message("at it")), ""),
        (task("WORKING", message("at it"), history=[message("at it")]), ""),
        (
            task("COMPLETED", history=[message("old"), message("last"), message("me", "user")]),
            "last",
        ),
        (task("COMPLETED", history=[message("me", "user")]), ""),
        (task("SUBMITTED"), ""),
    ],
)
def test_the_answer_is_found_where_it_stands_and_never_elsewhere(value, text):
    """A working status message is never the answer, nor is what the user said."""
    assert Task.from_dict(value).text == text


def test_timestamps_stay_as_they_came():
    """Case C090."""
    for moment in ("2025-11-09T10:30:00Z", "2025-11-09T10:30:00.123456789Z", "yesterday"):
        value = {"state": "TASK_STATE_WORKING", "timestamp": moment}

        assert TaskStatus.from_dict(value).to_dict() == value


def test_content_is_text_a_part_or_parts():
    part = Part.from_url("https://e/x", "image/png", "x.png")

    assert Message.user("a").parts == [Part("a")]
    assert Message.user(part).parts == [part]
    assert Message.user([Part("a"), part]).parts == [Part("a"), part]
    assert Message.agent("a").role is Role.AGENT
    with pytest.raises(TypeError, match="text or parts, not dict"):
        Message.user([{"text": "a"}])  # type: ignore[list-item]


def test_wrong_content_of_a_part_is_refused():
    with pytest.raises(TypeError, match="expected text, got bytes"):
        Part.from_text(b"a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected bytes, got str"):
        Part.from_bytes("a")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="empty"):
        Part.from_url("")


def test_settings_that_mean_nothing_are_refused():
    with pytest.raises(ValueError, match="0 or more"):
        SendConfiguration(history_length=-1)
    with pytest.raises(TypeError, match="history_length is bool"):
        SendConfiguration(history_length=True)
    with pytest.raises(TypeError, match="list of texts"):
        SendConfiguration("text/plain")  # type: ignore[arg-type]


def test_a_copy_shares_nothing():
    value = task(
        "COMPLETED",
        message("x", metadata={"a": [1]}),
        artifacts=[{**artifact("y"), "parts": [{"data": {"b": [2]}, "metadata": {"c": [3]}}]}],
        history=[message(extensions=["e"])],
        metadata={"d": [4]},
        other={"e": [5]},
    )
    original = Task.from_dict(copy.deepcopy(value))

    twin = original.copy()
    twin.metadata["d"].append(0)
    twin.extra["other"]["e"].append(0)
    twin.history[0].extensions.append("f")
    twin.artifacts[0].parts[0].data["b"].append(0)
    twin.artifacts[0].parts[0].metadata["c"].append(0)
    twin.artifacts[0].parts.append(Part("z"))
    assert twin.status.message is not None
    twin.status.message.metadata["a"].append(0)
    twin.status.state = TaskState.FAILED

    assert original.to_dict() == value
    assert original.copy() == original


@pytest.mark.parametrize(
    "one",
    [
        Message.user("x"),
        Task.from_dict(task("COMPLETED", message())),
        event({"task": task()}),
        PushNotificationConfig("u", credentials="c"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_objects_can_be_pickled(one):
    assert pickle.loads(pickle.dumps(one)) == one
    assert copy.deepcopy(one) == one


def test_a_repr_shows_no_secret_and_stays_short():
    config = PushNotificationConfig("u", token="t0ken", schemes=["Bearer"], credentials="s3cret")

    assert "t0ken" not in repr(config)
    assert "s3cret" not in repr(config)
    assert len(repr(Part.from_bytes(bytes(10**6)))) < 200


def test_b46_an_event_cannot_be_changed():
    one = StreamEvent(message=Message.user("x"))

    with pytest.raises(AttributeError):
        one.task = Task("t")  # type: ignore[misc]


def test_the_text_of_an_event_is_what_it_says():
    """A reader who only shows text need not know in which member it came."""
    parts = [{"text": "a"}, {"data": 1}, {"text": "b"}]
    said = {"messageId": "m", "role": "ROLE_AGENT", "parts": parts}
    where = {"taskId": "t", "contextId": "c"}
    artifact = {"artifactId": "x", "parts": parts}
    working = {"state": "TASK_STATE_WORKING"}
    events = [
        {"message": said},
        {"artifactUpdate": {**where, "artifact": artifact}},
        {"statusUpdate": {**where, "status": {**working, "message": said}}},
        {"statusUpdate": {**where, "status": working}},
        {"task": {"id": "t", "status": {"state": "TASK_STATE_COMPLETED", "message": said}}},
        {"somethingNew": {"text": "?"}},
    ]

    assert [StreamEvent.from_dict(event).text for event in events] == [
        "ab", "ab", "ab", "", "ab", "",
    ]  # fmt: skip
