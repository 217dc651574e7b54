"""What may be content: converted if it has a JSON form, refused with its place if not."""

from __future__ import annotations

import collections
import dataclasses
import enum
import json
import types
import uuid
from datetime import date, datetime, time, timedelta, timezone

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protolink_sync.errors import ModelError
from protolink_sync.models import Artifact, Message, Part, RunEvent, Task
from protolink_sync.models._json import jsonable

UTC = timezone.utc


class Color(enum.Enum):
    RED = "red"


class Word(str, enum.Enum):
    YES = "yes"


class Level(enum.IntEnum):
    HIGH = 3


class Name(str):
    def __str__(self):
        return "something else"


@dataclasses.dataclass
class Point:
    x: int
    tags: tuple[str, ...] = ()


@attrs.define
class Box:
    inner: object


Pair = collections.namedtuple("Pair", "a b")


class Money:
    def to_dict(self):
        return {"amount": (1, 2), "currency": Color.RED}


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ((1, (2,)), [1, [2]]),
        (Pair(1, 2), [1, 2]),
        (Color.RED, "red"),
        (Word.YES, "yes"),
        (Level.HIGH, 3),
        (Name("n"), "n"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05+00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (time(3, 4), "03:04:00"),
        (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (Point(1, ("a",)), {"x": 1, "tags": ["a"]}),
        (Box(Point(1)), {"inner": {"x": 1, "tags": []}}),
        (Money(), {"amount": [1, 2], "currency": "red"}),
        (types.MappingProxyType({"a": (1,)}), {"a": [1]}),
        (collections.defaultdict(list, {"a": [1]}), {"a": [1]}),
        (Part.text("t"), {"type": "text", "content": "t"}),
        ([{"part": Part.json(Color.RED)}], [{"part": {"type": "json", "content": "red"}}]),
    ],
)
def test_values_with_a_json_form_are_converted(value, form):
    assert jsonable(value) == form
    assert jsonable([value]) == [form]
    assert json.loads(json.dumps(jsonable({"k": value}))) == {"k": form}


def test_the_subclass_is_gone():
    assert type(jsonable([Name("n")])[0]) is str
    assert type(jsonable([Level.HIGH])[0]) is int


def test_keys_become_the_text_that_json_writes():
    value = {True: 0, 2: 0, 1.5: 0, None: 0, Word.YES: 0, Level.HIGH: 0, "g": 0}

    assert list(jsonable(value)) == ["true", "2", "1.5", "null", "yes", "3", "g"]
    assert list(jsonable(value)) == list(json.loads(json.dumps(value)))
    assert jsonable({Color.RED: 0}) == {"red": 0}


@pytest.mark.parametrize("data", [b"x", bytearray(b"x"), memoryview(b"x")])
def test_bytes_are_refused_with_the_ways_out(data):
    task = Task.create(Message(parts=[Part.text("t"), Part("image", {"k": [data]})]))

    with pytest.raises(TypeError) as caught:
        task.to_dict()

    assert "$.messages[0].parts[1].content.k[0]" in str(caught.value)
    for way in ("Part.bytes(data, media_type)", "Part.file(path)", "Part.uri(url)"):
        assert way in str(caught.value)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(
    ("place", "path"),
    [
        (lambda n: Task(metadata={"a b": n}), '$.metadata["a b"]'),
        (lambda n: Task(flow_state={"s": (n,)}), "$.flow_state.s[0]"),
        (lambda n: Task(extra={"x": n}), "$.x"),
        (lambda n: Task(artifacts=[Artifact(metadata={"m": n})]), "$.artifacts[0].metadata.m"),
        (lambda n: Message(parts=[Part.json([n])]), "$.parts[0].content[0]"),
        (lambda n: Artifact(metadata={"m": n}), "$.metadata.m"),
        (lambda n: Part.route("k", confidence=n), "$.content.confidence"),
        (lambda n: RunEvent("t", payload={"p": {"q": n}}), "$.payload.p.q"),
    ],
)
def test_numbers_that_are_no_json_are_refused_with_their_place(number, place, path):
    with pytest.raises(ModelError) as caught:
        place(number).to_dict()

    assert caught.value.path == path


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, Task, lambda: None, 1j, ValueError("x"), Point, range(3)]
)
def test_what_has_no_json_form_is_refused_with_its_place(value):
    with pytest.raises(TypeError, match=r"is not JSON @ \$\.metadata\.k: give"):
        Task(metadata={"k": value}).to_dict()


@pytest.mark.parametrize("key", [(1, 2), b"k", object()])
def test_a_key_that_has_no_text_is_refused(key):
    with pytest.raises(TypeError, match=r"a key of type \w+ is not JSON @ \$\.metadata"):
        Task(metadata={key: 1}).to_dict()


def test_two_keys_with_one_text_are_refused():
    with pytest.raises(ModelError, match=r"two keys have the text '1' @ \$\[?"):
        jsonable({1: "a", "1": "b"})


def test_a_structure_that_contains_itself_is_refused():
    loop: dict[str, object] = {}
    loop["list"] = [{"again": loop}]

    with pytest.raises(ModelError, match="contains itself") as caught:
        Task(metadata=loop).to_dict()

    assert caught.value.path == "$.metadata.list[0].again"


def test_a_task_that_contains_itself_is_refused():
    task = Task()
    task.metadata["me"] = task

    with pytest.raises(ModelError, match="contains itself"):
        task.to_dict()


def test_a_value_may_stand_in_several_places():
    shared = [1]

    assert jsonable({"a": shared, "b": (shared, shared)}) == {"a": [1], "b": [[1], [1]]}


def test_nesting_that_python_cannot_follow_is_refused():
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(ModelError, match="nested too deeply"):
        jsonable(deep)


def test_a_copy_is_made_of_every_container():
    value = {"a": [{"b": 1}]}

    copy = jsonable(value)
    copy["a"][0]["b"] = 2

    assert value == {"a": [{"b": 1}]}


def test_ids_and_times_given_as_objects_are_written_as_text():
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    message = Message(uuid.UUID(int=1), Color.RED, [Part(Word.YES, 1)], moment)
    task = Task(uuid.UUID(int=2), messages=[message], created_at=moment)

    data = task.to_dict()

    assert data["id"].endswith("-000000000002")
    assert data["created_at"] == "2026-01-02T00:00:00+00:00"
    assert data["messages"][0]["role"] == "red"
    assert data["messages"][0]["parts"][0] == {"type": "yes", "content": 1}
    assert type(data["messages"][0]["parts"][0]["type"]) is str


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=20,
)


@given(values)
def test_json_comes_back_equal_and_of_the_same_types(value):
    assert jsonable(value) == value
    assert json.dumps(jsonable(value)) == json.dumps(value)


@given(values)
def test_a_part_carries_any_json_there_and_back(value):
    part = Part.json(value)

    assert Part.from_dict(json.loads(json.dumps(part.to_dict()))) == part


def test_a_timedelta_is_refused():
    """It has several usual forms, and to guess one would be a wrong answer to somebody."""
    with pytest.raises(TypeError, match="timedelta is not JSON"):
        jsonable(timedelta(seconds=1))
