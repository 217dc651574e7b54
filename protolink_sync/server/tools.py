"""Tools: functions that callers may have called, and the schemas of their arguments."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs

from protolink_sync.models import AgentSkill
from protolink_sync.server.functions import completed

__all__ = ["Tool"]

_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_UNIONS = (Union, types.UnionType)


@attrs.frozen
class Tool:
    """A function that callers may have called by name.

    Args:
        name: The name.
        description: What it does.
        function: Called with the arguments by name.
        input_schema: JSON Schema of the arguments.
        output_schema: JSON Schema of the result.
    """

    name: str
    description: str
    function: Callable[..., Any]
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]

    @classmethod
    def of(
        cls, function: Callable[..., Any], name: str | None = None, description: str | None = None
    ) -> Tool:
        """Make a tool of a function; what is not given is read from it.

        Raises:
            TypeError: It cannot be called, or not by names alone.
        """
        if not callable(function):
            raise TypeError(f"a tool is a function, not a {type(function).__name__}")
        known_as = name or str(getattr(function, "__name__", type(function).__name__))
        does = inspect.getdoc(function) if description is None else description
        inputs, output = _schemas(function, known_as)
        return cls(known_as, does or "", function, inputs, output)

    @property
    def skill(self) -> AgentSkill:
        """The tool as an entry of an agent card."""
        return AgentSkill(self.name, self.description, self.input_schema, self.output_schema)

    def problem(self, args: Mapping[str, Any]) -> str | None:
        """Return what is wrong with some arguments, or None: a bad call is never begun."""
        schema = self.input_schema
        for name in schema["required"]:
            if name not in args:
                return f"tool args.{name} is required"
        for name, value in args.items():
            if name in schema["properties"]:
                if not _fits(value, schema["properties"][name]):
                    wanted = _described(schema["properties"][name])
                    return f"tool args.{name} must be {wanted}"
            elif schema["additionalProperties"] is False:
                return f"tool args.{name} is not an argument of this tool"
        return None

    def call(self, args: Mapping[str, Any]) -> Any:
        """Call the function; what an ``async def`` returned is run to its end."""
        return completed(self.function(**args))


def _schemas(function: Callable[..., Any], name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        hints = get_type_hints(function)
    except Exception:  # a name that only a type checker knows: the tool works without it
        hints = {}
    properties: dict[str, Any] = {}
    required = []
    open_ended = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            open_ended = True
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            raise TypeError(f"tool {name!r} takes {parameter.name!r} by position only")
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            properties[parameter.name] = schema_of(hints.get(parameter.name, Any))
            if parameter.default is parameter.empty:
                required.append(parameter.name)
    inputs = {
        "type": "object",
        "title": f"{name}Input",
        "properties": properties,
        "required": required,
        "additionalProperties": open_ended,
    }
    return inputs, schema_of(hints["return"]) if "return" in hints else {}


def schema_of(hint: Any) -> dict[str, Any]:
    """Return the JSON Schema of an annotation; ``{}``, which allows all, for what has none."""
    if hint is None or hint in _SIMPLE:
        return {"type": "null" if hint is None else _SIMPLE[hint]}
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in _UNIONS:
        return {"anyOf": [schema_of(one) for one in inner]}
    kind = origin or hint
    if kind in (list, Sequence):
        return {"type": "array", "items": schema_of(inner[0]) if inner else {}}
    if kind in (dict, Mapping):
        values = schema_of(inner[1]) if len(inner) == 2 else {}
        return {"type": "object", "additionalProperties": values or True}
    return {}


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    if "anyOf" in schema:
        return any(_fits(value, one) for one in schema["anyOf"])
    if "enum" in schema:
        return any(value == one and type(value) is type(one) for one in schema["enum"])
    kind = schema.get("type")
    if kind == "array":
        return isinstance(value, list) and all(_fits(item, schema["items"]) for item in value)
    if kind == "object":
        return isinstance(value, dict)
    # True is no 1; but 1 is a number, and so is 1.0 where JSON has only numbers.
    kinds = {"string": str, "integer": int, "boolean": bool, "null": type(None)}
    if kind == "number":
        return type(value) in (int, float)
    return kind is None or type(value) is kinds[kind]


def _described(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_described(one) for one in schema["anyOf"])
    if "enum" in schema:
        return "one of " + ", ".join(map(repr, schema["enum"]))
    kind: str = schema.get("type", "anything")
    if kind == "array" and schema["items"]:
        return f"array of {_described(schema['items'])}"
    return kind
