"""ProtoLink's objects as A2A's and back (wire/a2a.md 19)."""

from __future__ import annotations

import base64

import pytest

from protolink_sync import models
from protolink_sync.a2a.wire import (
    Artifact,
    Message,
    Part,
    Role,
    TaskState,
    artifact_from_a2a,
    artifact_to_a2a,
    message_from_a2a,
    message_to_a2a,
    part_from_a2a,
    part_to_a2a,
    state_from_a2a,
    state_to_a2a,
    task_to_a2a,
)
from protolink_sync.errors import ModelError

HI = base64.b64encode(b"hi").decode()


@pytest.mark.parametrize("state", models.TaskState)
def test_the_states_of_protolink_survive_the_way_there_and_back(state):
    assert state_from_a2a(state_to_a2a(state)) is state


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (TaskState.REJECTED, models.TaskState.FAILED),
        (TaskState.AUTH_REQUIRED, models.TaskState.INPUT_REQUIRED),
        (TaskState.UNKNOWN, models.TaskState.UNKNOWN),
    ],
)
def test_states_that_protolink_has_not_become_the_nearest(state, expected):
    assert state_from_a2a(state) is expected


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (models.Part.text("x"), {"text": "x"}),
        (models.Part.text(""), {"text": ""}),
        (models.Part.infer_output("x"), {"text": "x"}),
        (models.Part.infer_output({"a": "ä"}), {"text": '{"a": "ä"}'}),
        (models.Part("infer_output", None), {"text": ""}),
        (models.Part.infer("do", "ada"), {"text": "do"}),
        (models.Part.infer(user="ada"), {"text": "ada"}),
        (models.Part("infer", "do"), {"text": "do"}),
        (models.Part.json({"a": [1]}), {"data": {"a": [1]}}),
        (models.Part.json(None), {"data": None}),
        (
            models.Part.bytes(b"hi", "a/b", filename="f", metadata={"m": 1}),
            {"raw": HI, "filename": "f", "mediaType": "a/b", "metadata": {"m": 1}},
        ),
        (models.Part("file", HI), {"raw": HI}),
        (models.Part("file", "no base64!"), {"raw": base64.b64encode(b"no base64!").decode()}),
        (models.Part("bytes", b"hi"), {"raw": HI}),
        (
            models.Part("file", {"uri": "http://x", "media_type": "a/b"}),
            {"url": "http://x", "mediaType": "a/b"},
        ),
        (models.Part("file", {"raw": HI, "url": "http://x"}), {"raw": HI}),
        (models.Part("file", {"name": "x"}), {"data": {"name": "x"}}),
        (
            models.Part.uri("http://x", "a/b", "f"),
            {"url": "http://x", "filename": "f", "mediaType": "a/b"},
        ),
        (models.Part("uri", {"url": "http://x", "raw": HI}), {"url": "http://x"}),
        (models.Part("uri", "http://x"), {"url": "http://x"}),
        (
            models.Part.tool_call("t", {"a": 1}, "c"),
            {
                "data": {"tool_name": "t", "args": {"a": 1}, "call_id": "c"},
                "metadata": {"protolinkPartType": "tool_call"},
            },
        ),
        (
            models.Part.warning("careful"),
            {"data": "careful", "metadata": {"protolinkPartType": "warning"}},
        ),
    ],
)
def test_parts_of_protolink_become_parts_of_a2a(part, expected):
    assert part_to_a2a(part).to_dict() == expected


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (Part("x", media_type="text/html", metadata={"m": 1}), models.Part.text("x")),
        (Part(""), models.Part.text("")),
        (Part.from_data({"a": 1}), models.Part.json({"a": 1})),
        (Part.from_data(None), models.Part.json(None)),
        (Part(extra={"video": 1}), models.Part.json({"video": 1})),
        (
            Part(raw=b"hi", filename="f", media_type="a/b", metadata={"m": 1}),
            models.Part(
                "bytes", {"raw": HI, "filename": "f", "mediaType": "a/b", "metadata": {"m": 1}}
            ),
        ),
        (
            Part(url="http://x"),
            models.Part(
                "uri", {"url": "http://x", "filename": None, "mediaType": None, "metadata": {}}
            ),
        ),
    ],
)
def test_parts_of_a2a_become_parts_of_protolink(part, expected):
    assert part_from_a2a(part).to_dict() == expected.to_dict()


def test_bytes_survive_the_way_there_and_back():
    data = bytes(range(256))

    assert part_from_a2a(part_to_a2a(models.Part.bytes(data))).as_bytes() == data


def test_nothing_is_shared_with_what_was_translated():
    content = {"a": [1]}
    told = part_to_a2a(models.Part.json(content))
    back = part_from_a2a(told)
    content["a"].append(2)
    told.data["a"].append(3)

    assert told.data == {"a": [1, 3]}
    assert back.content == {"a": [1]}


def test_content_that_is_no_json_is_refused():
    with pytest.raises(TypeError, match="bytes"):
        part_to_a2a(models.Part.json(b"x"))
    with pytest.raises(ModelError):
        part_to_a2a(models.Part.json(float("nan")))


@pytest.mark.parametrize(
    ("role", "expected"),
    [("user", Role.USER), ("agent", Role.AGENT), ("assistant", Role.AGENT), ("tool", Role.AGENT)],
)
def test_whoever_is_not_the_user_is_the_agent(role, expected):
    message = models.Message("m1", role, [models.Part.text("x")])

    told = message_to_a2a(message, task_id="t", context_id="c")

    assert (told.role, told.message_id, told.task_id, told.context_id) == (expected, "m1", "t", "c")
    alone = message_to_a2a(message, role=Role.USER)
    assert (alone.role, alone.task_id, alone.context_id) == (Role.USER, "", "")


def test_a_message_of_a2a_keeps_its_id():
    back = message_from_a2a(Message.agent("x", task_id="t"))
    named = message_from_a2a(Message([Part("x")], Role.UNSPECIFIED, "m1"))

    assert back.role == named.role == "agent"
    assert named.id == "m1"
    assert message_from_a2a(Message([Part("x")], Role.USER, "")).id
    assert back.extra == {}


def test_artifacts_keep_id_name_and_metadata():
    artifact = models.Artifact("a1", [models.Part.text("x")], {"m": 1}, name="n", kind="preview")

    told = artifact_to_a2a(artifact)
    back = artifact_from_a2a(told)

    assert told == Artifact([Part("x")], "a1", "n", metadata={"m": 1})
    assert (back.id, back.name, back.metadata, back.kind) == ("a1", "n", {"m": 1}, "result")


def test_an_artifact_that_has_only_an_address_says_it():
    told = artifact_to_a2a(models.Artifact("a1", uri="http://x", media_type="a/b"))

    assert told.parts == [Part(url="http://x", media_type="a/b")]


def test_a_task_says_where_it_stands_and_since_when():
    task = models.Task.create("hi").complete("ho")
    moment = task.metadata["state_history"][-1]["timestamp"]

    told = task_to_a2a(task, "c")

    assert (told.id, told.context_id, told.metadata) == (task.id, "c", {})
    assert told.status.state is TaskState.COMPLETED
    assert told.status.timestamp == moment.replace("+00:00", "Z")
    assert told.status.message == told.history[-1]
    assert [m.text for m in task_to_a2a(task, "c", history_length=1).history] == ["ho"]
    assert task_to_a2a(task, "c", history_length=0).history == []


@pytest.mark.parametrize(
    ("task", "state"),
    [
        (models.Task.create("x").add_message(models.Message.agent("soon")).fail("why"), "failed"),
        (models.Task.create("x").cancel("why"), "canceled"),
    ],
)
def test_a_task_that_did_not_succeed_says_why(task, state):
    """A2A has no place for the reason but the status message."""
    first, second = task_to_a2a(task, "c"), task_to_a2a(task, "c")

    assert first.status.state.value == state
    assert first.text == "why"
    assert first.status.message.role is Role.AGENT
    # Readers tell messages apart by their ids.
    assert first.status.message.message_id == second.status.message.message_id
