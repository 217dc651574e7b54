"""Types as JSON: their schema, and what is read into them, through AgentPeer.invoke_typed."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import sys
from typing import Annotated, Any, Literal, NewType, Optional, TypedDict, Union

import attrs
import pytest

from protolink_sync import AgentPeer
from protolink_sync.client import AgentClient
from protolink_sync.errors import StructuredResponseError
from protolink_sync.models import Artifact, Message, Part, Task, TaskState
from protolink_sync.testing import ScriptedTransport, reply

URL = "http://agent.test"


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


@attrs.define
class Item:
    name: str
    price: float = 0.0
    _hidden: int = 0
    derived: int = attrs.field(init=False, default=1)


@attrs.frozen
class Order:
    items: list[Item]
    note: str | None = None


@dataclasses.dataclass
class Point:
    x: int
    y: int = dataclasses.field(default=0)
    length: float = dataclasses.field(init=False, default=0.0)


class Person(TypedDict):
    name: str
    age: Annotated[int, "in years"]


class Partly(TypedDict, total=False):
    name: str


@dataclasses.dataclass
class Tree:
    value: int
    children: list[Tree] = dataclasses.field(default_factory=list)


@attrs.define
class Positive:
    value: int = attrs.field(validator=attrs.validators.gt(0))


UserId = NewType("UserId", int)


def answer(output: Any) -> Any:
    """Return the reply of an agent whose model has said this."""
    task = Task("t-1", TaskState.COMPLETED, [Message.user("asked")])
    task.add_artifact(Artifact(parts=[Part("infer_output", output)]))
    return reply(task.to_dict())


def asked(kind: Any, output: Any) -> tuple[Any, dict[str, Any]]:
    """Return what an output is read as, and the schema that was sent."""
    transport = ScriptedTransport(answer(output))
    value = AgentPeer(AgentClient(transport), URL).invoke_typed("?", kind)
    (call,) = transport.calls
    part = json.loads(call.body)["messages"][0]["parts"][0]["content"]
    return value, part["output_schema"]


NUMBER = {"type": "number"}
INTEGER = {"type": "integer"}
TEXT = {"type": "string"}


def an_object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


ITEM = an_object(["name"], name=TEXT, price=NUMBER, hidden=INTEGER)

FITTING = [
    (str, "as it is", "as it is", TEXT),
    (str, '"quoted"', '"quoted"', TEXT),
    (int, 5, 5, INTEGER),
    (int, "5", 5, INTEGER),
    (int, 5.0, 5, INTEGER),
    (int, "12345678901234567890", 12345678901234567890, INTEGER),
    (UserId, 7, 7, INTEGER),
    (float, 5, 5.0, NUMBER),
    (float, "2.5", 2.5, NUMBER),
    (bool, "true", True, {"type": "boolean"}),
    (type(None), "null", None, {"type": "null"}),
    (Any, "{}", {}, {}),
    (list[int], "[1, 2]", [1, 2], {"type": "array", "items": INTEGER}),
    (list, [1, "a"], [1, "a"], {"type": "array", "items": {}}),
    (
        tuple[int, str],
        [1, "a"],
        (1, "a"),
        {"type": "array", "prefixItems": [INTEGER, TEXT], "minItems": 2, "maxItems": 2},
    ),
    (tuple[int, ...], [1, 2, 3], (1, 2, 3), {"type": "array", "items": INTEGER}),
    (set[str], ["a"], {"a"}, {"type": "array", "items": TEXT, "uniqueItems": True}),
    (
        dict[str, float],
        {"a": 1},
        {"a": 1.0},
        {"type": "object", "additionalProperties": NUMBER},
    ),
    (int | None, None, None, {"anyOf": [INTEGER, {"type": "null"}]}),
    (Optional[int], 3, 3, {"anyOf": [INTEGER, {"type": "null"}]}),  # noqa: UP045
    (Union[int, str], "three", "three", {"anyOf": [INTEGER, TEXT]}),  # noqa: UP007
    (int | str, "3", 3, {"anyOf": [INTEGER, TEXT]}),
    (Literal["a", "b"], "b", "b", {"enum": ["a", "b"]}),
    (Literal[1, 2], 2, 2, {"enum": [1, 2]}),
    (Colour, "green", Colour.GREEN, {"enum": ["red", "green"]}),
    (
        datetime.datetime,
        "2026-01-02T03:04:05Z",
        datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc),
        {"type": "string", "format": "date-time"},
    ),
    (
        datetime.date,
        "2026-01-02",
        datetime.date(2026, 1, 2),
        {"type": "string", "format": "date"},
    ),
    (Item, '{"name": "tea", "hidden": 2}', Item("tea", 0.0, 2), ITEM),
    (Item, '```json\n{"name": "tea"}\n```', Item("tea"), ITEM),
    (
        Order,
        {"items": [{"name": "tea", "price": 3}]},
        Order([Item("tea", 3.0)]),
        an_object(
            ["items"],
            items={"type": "array", "items": ITEM},
            note={"anyOf": [TEXT, {"type": "null"}]},
        ),
    ),
    (Point, {"x": 1}, Point(1, 0), an_object(["x"], x=INTEGER, y=INTEGER)),
    (
        Person,
        {"name": "Ada", "age": 36},
        {"name": "Ada", "age": 36},
        an_object(["name", "age"], name=TEXT, age={"type": "integer", "description": "in years"}),
    ),
    (Partly, {}, {}, an_object([], name=TEXT)),
]


@pytest.mark.parametrize(("kind", "output", "value", "schema"), FITTING)
def test_an_answer_becomes_the_type_and_its_schema_was_sent(kind, output, value, schema):
    got, sent = asked(kind, output)

    assert got == value
    assert type(got) is type(value)
    assert sent == schema


def test_a_class_that_contains_itself_is_named():
    got, sent = asked(Tree, {"value": 1, "children": [{"value": 2}]})

    assert got == Tree(1, [Tree(2)])
    assert sent["$ref"] == "#/$defs/Tree"
    assert sent["$defs"]["Tree"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="typing.NotRequired came with 3.11")
def test_members_that_are_not_required():
    from typing import NotRequired

    class Some(TypedDict):
        name: str
        age: NotRequired[int]

    Some.__annotations__["age"] = NotRequired[int]
    got, sent = asked(Some, {"name": "Ada"})

    assert got == {"name": "Ada"}
    assert sent["required"] == ["name"]


NOT_FITTING = [
    (int, "five", "no JSON"),
    (int, "5.5", "expected an integer, found 5.5"),
    (int, True, "expected an integer, found true"),
    (int, {"a": 1}, "expected an integer"),
    (float, '"5"', "expected a number"),
    (float, "NaN", "NaN is no JSON"),
    (bool, 1, "expected true or false"),
    (list[int], '[1, "a"]', r"\$\[1\]"),
    (tuple[int, str], [1], "a list of 2"),
    (dict[str, int], {"a": "b"}, r"\$\.a"),
    (int | None, "x", "no JSON"),
    (Literal[1], True, "one of"),
    (Colour, '"blue"', "one of"),
    (datetime.date, '"soon"', "ISO 8601"),
    (Item, "{}", r"required member missing @ \$\.name"),
    (Item, {"name": "tea", "prize": 3}, r"unknown member @ \$\.prize"),
    (Order, {"items": [{"name": 5}]}, r"\$\.items\[0\]\.name"),
    (Tree, {"value": 1, "children": [{"value": "2"}]}, r"\$\.children\[0\]\.value"),
    (Positive, {"value": 0}, "must be > 0"),
    (Partly, {"nmae": "x"}, "unknown member"),
]


@pytest.mark.parametrize(("kind", "output", "said"), NOT_FITTING)
def test_an_answer_that_does_not_fit_is_refused_and_said_where(kind, output, said):
    with pytest.raises(StructuredResponseError, match=said) as caught:
        asked(kind, output)

    assert caught.value.attempts == 1
    assert caught.value.validation_error
    assert caught.value.task.state is TaskState.COMPLETED


class Plain:
    """No data class of any sort."""


@pytest.mark.parametrize("kind", [Plain, object(), bytes, dict[int, str], list[Plain], type[int]])
def test_a_type_without_a_json_form_is_refused_before_anything_is_sent(kind):
    transport = ScriptedTransport()

    with pytest.raises(TypeError):
        AgentPeer(AgentClient(transport), URL).invoke_typed("?", kind)
    assert transport.calls == []


def test_pydantic_models_alone_and_inside_others():
    pydantic = pytest.importorskip("pydantic", reason="an optional library, in the extra test")

    class Inner(pydantic.BaseModel):
        when: datetime.date

    class Outer(pydantic.BaseModel):
        inner: Inner
        count: int = pydantic.Field(gt=0)

    good = {"inner": {"when": "2026-01-02"}, "count": 1}
    got, sent = asked(Outer, json.dumps(good))
    several, schema = asked(list[Outer], [good])

    assert got == several[0] == Outer(inner=Inner(when=datetime.date(2026, 1, 2)), count=1)
    assert sent["properties"]["inner"] == {"$ref": "#/$defs/Inner"}
    assert sent["$defs"].keys() == schema["$defs"].keys() == {"Inner"}
    with pytest.raises(StructuredResponseError, match="greater than 0"):
        asked(Outer, {**good, "count": 0})
