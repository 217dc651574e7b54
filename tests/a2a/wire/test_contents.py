"""Parts, statuses, artifacts and tasks: how they are made, copied and written."""

from __future__ import annotations

import base64

import pytest

from protolink_sync.a2a.wire import (
    Artifact,
    Message,
    Part,
    Role,
    Task,
    TaskState,
    TaskStatus,
    WireDialect,
)
from protolink_sync.errors import ModelError


def test_parts_are_made_of_what_they_carry():
    assert Part.from_text("t") == Part("t")
    assert Part.from_text("t", "text/markdown") == Part("t", media_type="text/markdown")
    assert Part.from_bytes(b"b") == Part(raw=b"b")
    assert Part.from_bytes(bytearray(b"b"), "image/png", "x") == Part(
        raw=b"b", media_type="image/png", filename="x"
    )
    assert Part.from_url("u") == Part(url="u")
    assert Part.from_url("u", "image/png", "x") == Part(
        url="u", media_type="image/png", filename="x"
    )
    assert Part.from_data({"a": 1}) == Part(data={"a": 1})
    assert Part.from_data([1], "application/json") == Part(data=[1], media_type="application/json")
    assert Part.from_data(None) == Part(null_data=True)
    for part in (Part.from_text("t"), Part.from_bytes(b"b"), Part.from_url("u"), Part.from_data(1)):
        assert (part.media_type, part.filename) == ("", "")


@pytest.mark.parametrize("wrong", [5, b"b", None])
def test_text_is_text(wrong):
    with pytest.raises(TypeError, match="expected text"):
        Part.from_text(wrong)


def test_bytes_are_bytes():
    with pytest.raises(TypeError, match="expected bytes"):
        Part.from_bytes("text")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="empty"):
        Part.from_url("")


@pytest.mark.parametrize("length", range(5))
@pytest.mark.parametrize("pad", [True, False])
@pytest.mark.parametrize("url_safe", [True, False])
def test_base64_of_any_peer_is_read(length, pad, url_safe):
    raw = b"\xfb\xff\xfe\xfb\xff"[:length]
    encode = base64.urlsafe_b64encode if url_safe else base64.b64encode
    text = encode(raw).decode()

    assert Part.from_dict({"raw": text if pad else text.rstrip("=")}).raw == raw


def test_every_letter_of_base64_counts():
    for letter in "AXx/+9":
        raw = base64.b64decode(letter * 8)
        assert Part.from_dict({"raw": letter * 8}).raw == raw
        assert Part.from_dict({"raw": f" {letter * 4}\r\n\t{letter * 4}\n"}).raw == raw


@pytest.mark.parametrize("text", ["a", "YQ==YQ==", "Y*Q=", "ä"])
def test_what_is_no_base64_is_refused_and_not_read_as_other_bytes(text):
    with pytest.raises(ModelError, match="not base64") as caught:
        Part.from_dict({"raw": text})

    assert caught.value.path == "$.raw"


@pytest.mark.parametrize(
    "part",
    [
        Part("t"),
        Part("t", metadata={"a": [1]}),
        Part("t", data={"b": [1]}),
        Part("t", extra={"c": [1]}),
        Part("t", media_type="text/markdown", filename="f", url="u", raw=b"r"),
        Part(raw=b"r", metadata={"a": 1}),
        Part(null_data=True),
        Part(data={"b": [1]}, extra={"c": [1]}),
    ],
    ids=repr,
)
def test_a_copy_of_a_part_is_equal_and_shares_nothing(part):
    copy = part.copy()

    assert copy == part
    assert copy.to_dict() == part.to_dict()
    for name in ("metadata", "extra"):
        assert getattr(copy, name) is not getattr(part, name)
    if part.data is not None:
        assert copy.data is not part.data
        copy.data["b"].append(2)
        assert part.data == {"b": [1]}


def test_copies_keep_what_nobody_knows():
    said = Message([Part("x")], Role.AGENT, "m", extra={"a": 1})
    status = TaskStatus(TaskState.WORKING, said, "now", extra={"b": 1})
    artifact = Artifact([Part("y")], "a", "n", "d", {"k": 1}, ["urn:x"], extra={"c": 1})
    task = Task("t", "c", status, [artifact], [said], {"m": 1}, from_message=True, extra={"d": 1})

    for one in (said, status, artifact, task):
        assert one.copy() == one  # type: ignore[attr-defined]
        assert one.copy().to_dict() == one.to_dict()  # type: ignore[attr-defined]


def test_what_is_not_set_is_not_written():
    assert Task("t", status=TaskStatus(TaskState.WORKING)).to_dict() == {
        "id": "t",
        "status": {"state": "TASK_STATE_WORKING"},
    }
    assert Artifact([], "a").to_dict() == {"artifactId": "a", "parts": []}


def test_a_state_is_written_as_it_came():
    assert TaskStatus(TaskState.UNKNOWN).to_dict() == {"state": "TASK_STATE_UNSPECIFIED"}
    assert TaskStatus(TaskState.UNKNOWN, state_text="resting").to_dict() == {"state": "resting"}
    # A state that was set is told, whatever text the one before it had.
    assert TaskStatus(TaskState.FAILED, state_text="resting").to_dict() == {
        "state": "TASK_STATE_FAILED"
    }


@pytest.mark.parametrize(
    ("role", "in_extra", "written"),
    [
        (Role.USER, {}, "ROLE_USER"),
        (Role.UNSPECIFIED, {}, "ROLE_UNSPECIFIED"),
        (Role.UNSPECIFIED, {"role": "narrator"}, "narrator"),
        (Role.AGENT, {"role": "narrator"}, "ROLE_AGENT"),
    ],
)
def test_a_role_is_written_as_it_came_unless_another_was_set(role, in_extra, written):
    assert Message([Part("x")], role, "m", extra=in_extra).to_dict()["role"] == written


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_role_that_is_a_number_is_unspecified(number):
    assert Message.from_dict({"role": number, "parts": []}).role is Role.UNSPECIFIED


def test_what_the_agent_said_while_still_working_is_no_answer():
    passing = Message([Part("thinking")], Role.AGENT, "p")
    before = Message([Part("before")], Role.AGENT, "b")
    asked = Message([Part("question")], Role.USER, "q")

    working = Task("t", status=TaskStatus(TaskState.WORKING, passing), history=[before, passing])
    done = Task("t", status=TaskStatus(TaskState.COMPLETED), history=[before, passing, asked])
    nameless = Task(
        "t",
        status=TaskStatus(TaskState.WORKING, Message([Part("thinking")], Role.AGENT, "")),
        history=[Message([Part("before")], Role.AGENT, "")],
    )

    assert working.text == "before"
    assert done.text == "thinking"
    assert nameless.text == "before"


def test_messages_are_made_with_all_they_were_given():
    by_user = Message.user(
        "x",
        task_id="t",
        context_id="c",
        metadata={"a": 1},
        extensions=["urn:x"],
        reference_task_ids=["r"],
    )
    by_agent = Message.agent("x", context_id="c", task_id="t")

    assert by_user == Message(
        [Part("x")], Role.USER, by_user.message_id, "c", "t", {"a": 1}, ["urn:x"], ["r"]
    )
    assert by_agent == Message([Part("x")], Role.AGENT, by_agent.message_id, "c", "t")
    assert by_user.message_id != by_agent.message_id


def test_a_message_of_nobodys_task_names_none():
    for made in (Message.user("x"), Message.agent("x")):
        assert (made.context_id, made.task_id, made.metadata) == ("", "", {})


def test_roles_and_dialects_have_the_words_that_messages_show():
    assert [role.value for role in Role] == ["user", "agent", "unspecified"]
    assert [dialect.value for dialect in WireDialect] == ["1.0", "0.3"]


def test_members_that_are_known_are_not_kept_a_second_time():
    said = {
        "kind": "message",
        "messageId": "m",
        "role": "ROLE_AGENT",
        "parts": [{"kind": "text", "text": "x", "metadata": {"a": 1}, "mediaType": "text/plain"}],
        "contextId": "c",
        "taskId": "t",
        "metadata": {"a": 1},
        "extensions": ["urn:x"],
        "referenceTaskIds": ["r"],
    }
    made = {
        "artifactId": "a",
        "name": "n",
        "description": "d",
        "parts": [],
        "metadata": {"a": 1},
        "extensions": ["urn:x"],
    }
    whole = {
        "kind": "task",
        "id": "t",
        "contextId": "c",
        "status": {"state": "working", "message": said, "timestamp": "now"},
        "artifacts": [made],
        "history": [said],
        "metadata": {"a": 1},
    }

    read = Task.from_dict(whole)

    assert read.extra == read.status.extra == read.artifacts[0].extra == {}
    assert read.history[0].extra == read.history[0].parts[0].extra == {}
    assert (read.status.message, read.status.timestamp) == (read.history[0], "now")
    assert read.artifacts[0] == Artifact([], "a", "n", "d", {"a": 1}, ["urn:x"])


@pytest.mark.parametrize(
    ("word", "role"),
    [("user", Role.USER), ("agent", Role.AGENT), ("ROLE_USER", Role.USER), ("x", None)],
)
def test_a_role_is_read_in_either_spelling(word, role):
    read = Message.from_dict({"role": word, "parts": []})

    assert read.role is (role or Role.UNSPECIFIED)
    if role is not None:
        assert read.to_dict()["role"] == f"ROLE_{role.name}"
