"""What callers are told of a tool's arguments, and which calls of it are not begun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pytest

from protolink_sync.server.tools import Tool


def lookup(
    word: str,
    times: int,
    share: float,
    deep: bool,
    nothing: None,
    one: Literal["a", 1],
    either: int | None,
    words: list[str],
    more: Sequence[int],
    bare: list,  # type: ignore[type-arg]
    table: dict[str, int],
    mapping: Mapping[str, Any],
    plain: dict,  # type: ignore[type-arg]
    anything: Any,
    unknown: Tool,
    unsaid=None,
) -> list[dict[str, Any]]:
    """Look a word up."""
    return []


SCHEMAS = {
    "word": {"type": "string"},
    "times": {"type": "integer"},
    "share": {"type": "number"},
    "deep": {"type": "boolean"},
    "nothing": {"type": "null"},
    "one": {"enum": ["a", 1]},
    "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    "words": {"type": "array", "items": {"type": "string"}},
    "more": {"type": "array", "items": {"type": "integer"}},
    "bare": {"type": "array", "items": {}},
    "table": {"type": "object", "additionalProperties": {"type": "integer"}},
    "mapping": {"type": "object", "additionalProperties": True},
    "plain": {"type": "object", "additionalProperties": True},
    "anything": {},
    "unknown": {},
    "unsaid": {},
}


def test_the_annotations_are_the_schema():
    skill = Tool.of(lookup).skill

    assert skill.id == "lookup"
    assert skill.description == "Look a word up."
    assert skill.input_schema == {
        "type": "object",
        "title": "lookupInput",
        "properties": SCHEMAS,
        "required": [name for name in SCHEMAS if name != "unsaid"],
        "additionalProperties": False,
    }
    assert skill.output_schema == {
        "type": "array",
        "items": {"type": "object", "additionalProperties": True},
    }


def one_argument(hint: Any) -> Tool:
    def tool(x):
        return x

    tool.__annotations__ = {"x": hint}
    return Tool.of(tool)


@pytest.mark.parametrize(
    ("hint", "good", "bad", "wanted"),
    [
        (str, ["", "a"], [None, 1], "string"),
        (int, [0, 5], [True, 1.0, "1"], "integer"),
        (float, [0.5, 1], [True, "1"], "number"),
        (bool, [True, False], [1, None], "boolean"),
        (None, [None], [0, ""], "null"),
        (Literal["a", 1], ["a", 1], ["b", True, 1.0], "one of 'a', 1"),
        (int | None, [1, None], ["1"], "integer or null"),
        (list[int], [[], [1]], [[1, "2"], (1,), None], "array of integer"),
        (list, [[], ["x", 1]], [{}], "array"),
        (dict[str, int], [{}, {"a": "not looked at"}], [[]], "object"),
        (list[int | str], [[1, "a"]], [[None]], "array of integer or string"),
        (Any, [None, 5, "x", [], {}], [], ""),
    ],
    ids=str,
)
def test_a_call_with_the_wrong_type_is_not_begun(hint, good, bad, wanted):
    tool = one_argument(hint)

    assert [tool.problem({"x": value}) for value in good] == [None] * len(good)
    for value in bad:
        assert tool.problem({"x": value}) == f"tool args.x must be {wanted}"


def test_missing_and_unknown_arguments_are_named():
    def tool(a: int, b: int = 1) -> None:
        """Do."""

    made = Tool.of(tool, "named", "said")

    assert (made.name, made.description) == ("named", "said")
    assert made.problem({}) == "tool args.a is required"
    assert made.problem({"a": 1, "c": 2}) == "tool args.c is not an argument of this tool"
    assert made.problem({"a": 1, "b": 2}) is None


def test_a_tool_that_takes_any_name_takes_it():
    def tool(*rest: int, **named: int) -> None: ...

    made = Tool.of(tool)

    assert made.problem({"whatever": "x"}) is None
    assert made.input_schema["properties"] == {}
    assert made.input_schema["additionalProperties"] is True


def test_annotations_that_only_a_type_checker_knows_leave_the_tool_usable():
    def tool(x: OnlyForTypeCheckers) -> Nowhere:  # type: ignore[name-defined]  # noqa: F821
        return x

    made = Tool.of(tool)

    assert made.problem({"x": object()}) is None
    assert made.output_schema == {}


def test_a_tool_that_is_a_method_or_an_async_function_is_called_to_its_end():
    class Shop:
        async def price(self, of: str) -> str:
            return f"{of} costs 1"

    assert Tool.of(Shop().price).call({"of": "tea"}) == "tea costs 1"
