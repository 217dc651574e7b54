"""The bytes of calls within the process say what JSON would."""

from __future__ import annotations

import datetime
import enum
from typing import Any

import pytest

from protolink_sync.errors import ModelError, TransportRemoteError
from protolink_sync.models import AgentCard, Artifact, Message, Part, Task
from protolink_sync.specs import AGENT_CARD_REQUEST, TASK_CANCEL_REQUEST, TASK_REQUEST
from protolink_sync.wire import TransportRequestContext, WireReply, json, local

CONTEXT = TransportRequestContext("send_task", "runtime://agent", "id", "key")


class Word(str, enum.Enum):
    YES = "yes"


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def busy_task() -> Task:
    parts = [
        Part.text("ä € \U0001f600 \x00 \ud800"),
        Part.json({"n": 10**40, "f": -0.0, "t": (1, 2), 3: None, True: "x"}),
        Part("json", datetime.datetime(2026, 11, 30, tzinfo=datetime.timezone.utc)),
        Part.tool_call("add", {"a": Word.YES}),
        Part(Word.YES, [1.5e300, False]),
    ]
    task = Task.create(Message("m", "user", parts), session_id="s")
    task.add_artifact(Artifact(parts=[Part.bytes(b"\xff")])).extra["odd"] = {"deep": nested(50)}
    return task


class Own:
    """Says itself what it is as JSON."""

    def to_dict(self) -> Any:
        return {"own": ("a", Word.YES)}


class OwnTask(Task):
    def to_dict(self) -> Any:
        return {**super().to_dict(), "also": (1,)}


VALUES = [
    None,
    True,
    "",
    10**4000,
    [1, [2.5, {"a": None}]],
    {"a": (1, 2), 3: Word.YES, None: 0},
    Task.create("hi"),
    busy_task(),
    OwnTask("t"),
    Own(),
    [Own(), Message.user("x")],
    AgentCard("n", "d", "runtime://x"),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_arrives_as_over_json(value):
    encoded = local.dump_data(value)
    there = json.loads(json.dump_data(value))

    # As text, because 1, 1.0 and True are equal, and so are 0.0 and -0.0.
    assert repr(local.take(encoded)) == repr(there)
    assert repr(local.take(encoded)) == repr(there)  # from the bytes


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (b"x", TypeError),
        ({"a": {1}}, TypeError),
        (1j, TypeError),
        ([Ellipsis], TypeError),
        (float("nan"), ValueError),
        (Task(metadata={"a": float("inf")}), ModelError),
        (Task(metadata={"a": b"x"}), TypeError),
        (nested(5000), ModelError),
    ],
)
def test_what_is_no_json_is_refused(value, kind):
    """marshal itself takes most of these."""
    with pytest.raises(kind):
        local.dump_data(value)


def test_equal_values_have_equal_bytes():
    """The key of a task stands on it: the same task, sent again, must not be another one."""
    text = "".join(["a", "b"])
    once = {"x": text, "y": text, "z": [text]}
    again = {"x": "".join(["a", "b"]), "y": "".join(["a", "b"]), "z": ["".join(["a", "b"])]}
    task = Task.create("hi")
    kept = [task.to_dict(), task.to_dict()]  # more references to the same texts

    assert local.dump_data(once) == local.dump_data(again)
    first = bytes(local.dump_data(task))
    assert bytes(local.dump_data(Task.from_dict(json.loads(json.dumps(kept[0]))))) == first


def test_each_one_who_takes_a_value_gets_its_own():
    given = {"a": [1]}
    encoded = local.dump_data(given)

    taken = [local.take(encoded) for _ in range(3)]
    for value in taken:
        value["a"].append(2)

    assert given == {"a": [1]}
    assert taken == [{"a": [1, 2]}] * 3
    assert local.take(encoded) == {"a": [1]}


def test_an_event_has_its_mark():
    for final in (True, False):
        event = local.encode_event(local.dump_data({"n": 1}), final=final)
        assert local.decode_event(event, CONTEXT) == ({"n": 1}, final)


def test_a_call_is_its_method_its_path_and_its_data():
    request = local.encode(TASK_REQUEST, CONTEXT, local.encode_body(TASK_REQUEST, Task("t")))

    assert (request.method, request.path, request.channel) == ("POST", "/tasks/", "default")
    assert Task.from_dict(local.take(request.body or b"")).id == "t"
    assert local.encode(TASK_CANCEL_REQUEST, CONTEXT, None).channel == "control"
    assert local.encode_body(AGENT_CARD_REQUEST, {"a": 1}) is None
    assert local.decode(WireReply(200, "", {}, local.dump_data([1])), CONTEXT) == [1]


def test_an_error_says_what_the_agent_said():
    error = local.remote_error("ValueError", "no\r\nERROR forged " + "x" * 2000, CONTEXT)

    assert type(error) is TransportRemoteError
    assert str(error).startswith("send_task to runtime://agent: the peer answered with an error: ")
    assert "ValueError: no ERROR forged" in str(error)
    assert (error.error_type, len(str(error)) < 1200) == ("ValueError", True)
    assert error.error_message is not None
    assert error.error_message.endswith("x" * 2000)
