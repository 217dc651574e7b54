"""Python types as JSON: the schema of a type, and values read into it.

One function for each kind of type, in a table. A shape is strict: ``"5"`` is no number, and an
object has the members of its class and no others, as its schema says.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import enum
import json
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, Union, get_args, get_origin

import attrs

from protolink_sync.errors import ModelError

__all__ = ["Shape", "shape_of"]

Reader = Callable[[Any, str], Any]

_KNOWN = (
    "an attrs class, a dataclass, a TypedDict, a pydantic model, an Enum, a Literal, str, int, "
    "float, bool, None, datetime, date, list, tuple, set, dict with text keys, or a union of these"
)
# NotRequired[X] stands around a type in a TypedDict; Python 3.10 has neither.
_REQUIRED, _NOT_REQUIRED = (getattr(typing, n, None) for n in ("Required", "NotRequired"))


@attrs.frozen
class Shape:
    """What JSON a type takes.

    Args:
        schema: Its JSON schema.
        read: Makes a value of the type out of JSON, or raises ``ModelError`` with the path.
    """

    schema: dict[str, Any]
    read: Reader


@attrs.frozen
class _Member:
    name: str
    shape: Shape
    required: bool


class _Shapes:
    """The types that make up one type; classes that contain themselves are named."""

    def __init__(self) -> None:
        self.named: dict[str, dict[str, Any]] = {}
        self._open: dict[Any, list[Shape]] = {}

    def of(self, kind: Any) -> Shape:
        """Return the shape of a type."""
        if kind in (Any, object):
            return Shape({}, lambda value, _: value)
        if kind in _PLAIN:
            return _PLAIN[kind]
        if hasattr(kind, "__supertype__"):  # NewType
            return self.of(kind.__supertype__)
        if hasattr(kind, "__value__"):  # type X = ...
            return self.of(kind.__value__)
        origin = get_origin(kind)
        if origin is not None or kind in (list, tuple, set, frozenset, dict):
            return self._composed(kind, origin or kind, get_args(kind))
        if isinstance(kind, type):
            return self._of_class(kind)
        raise _unknown(kind)

    def _composed(self, kind: Any, origin: Any, args: tuple[Any, ...]) -> Shape:
        if origin is typing.Annotated:
            inner = self.of(args[0])
            told = next((one for one in args[1:] if isinstance(one, str)), None)
            if told is None:
                return inner
            return Shape({**inner.schema, "description": told}, inner.read)
        if origin is Literal:
            return _one_of([(value, value) for value in args])
        if origin in (Union, types.UnionType):
            return _union([self.of(arg) for arg in args], kind)
        if origin in (dict, collections.abc.Mapping):
            return self._mapping(kind, args)
        if origin is tuple and args and args[-1] is not Ellipsis:
            return _fixed([self.of(arg) for arg in args if arg != ()])
        if origin in _ARRAYS:
            make = _ARRAYS[origin]
            return _array(self.of(args[0] if args else Any), make)
        raise _unknown(kind)

    def _mapping(self, kind: Any, args: tuple[Any, ...]) -> Shape:
        if args and args[0] is not str:
            raise TypeError(f"the keys of {kind} must be str: those of a JSON object are text")
        inner = self.of(args[1] if args else Any)

        def read(value: Any, path: str) -> Any:
            _expect(isinstance(value, dict), "an object", value, path)
            return {key: inner.read(item, f"{path}.{key}") for key, item in value.items()}

        return Shape({"type": "object", "additionalProperties": inner.schema}, read)

    def _of_class(self, kind: Any) -> Shape:
        if issubclass(kind, enum.Enum):
            return _one_of([(member.value, member) for member in kind])
        if hasattr(kind, "model_json_schema") and hasattr(kind, "model_validate_json"):
            return self._of_pydantic(kind)
        if kind in self._open:
            return self._recursive(kind)
        self._open[kind] = []
        try:
            shape = _object(kind, list(self._members(kind)))
            if self._open[kind]:
                self.named[kind.__name__] = shape.schema
                self._open[kind].append(shape)
                return Shape({"$ref": f"#/$defs/{kind.__name__}"}, shape.read)
            return shape
        finally:
            del self._open[kind]

    def _recursive(self, kind: Any) -> Shape:
        """Return the shape of a class inside itself: a name, which is read with what is made."""
        made = self._open[kind]
        schema = {"$ref": f"#/$defs/{kind.__name__}"}
        shape = Shape(schema, lambda value, path: made[-1].read(value, path))
        made.append(shape)
        return shape

    def _of_pydantic(self, kind: Any) -> Shape:
        schema = kind.model_json_schema(ref_template="#/$defs/{model}")
        self.named.update(schema.pop("$defs", {}))

        def read(value: Any, path: str) -> Any:
            try:
                return kind.model_validate_json(json.dumps(value))
            except ValueError as error:
                raise ModelError(f"{error} @ {path}", path=path) from error

        return Shape(schema, read)

    def _members(self, kind: Any) -> Iterator[_Member]:
        if typing.is_typeddict(kind):
            for name, hint in typing.get_type_hints(kind, include_extras=True).items():
                required = name in kind.__required_keys__
                if get_origin(hint) is not None and get_origin(hint) in (_REQUIRED, _NOT_REQUIRED):
                    required = get_origin(hint) is _REQUIRED
                    (hint,) = get_args(hint)
                yield _Member(name, self.of(hint), required)
            return
        hints = typing.get_type_hints(kind, include_extras=True)
        if attrs.has(kind):
            for field in attrs.fields(kind):
                if field.init:
                    shape = self.of(hints.get(field.name, Any))
                    yield _Member(field.alias or field.name, shape, field.default is attrs.NOTHING)
        elif dataclasses.is_dataclass(kind):
            for one in dataclasses.fields(kind):
                if one.init:
                    is_missing = dataclasses.MISSING
                    required = one.default is is_missing and one.default_factory is is_missing
                    yield _Member(one.name, self.of(hints[one.name]), required)
        else:
            raise _unknown(kind)


def shape_of(kind: Any) -> Shape:
    """Return the schema of a type and what reads values into it.

    Raises:
        TypeError: The type has no JSON form.

    >>> shape_of(list[int]).schema
    {'type': 'array', 'items': {'type': 'integer'}}
    >>> shape_of(tuple[int, str]).read([1, "a"], "$")
    (1, 'a')
    """
    shapes = _Shapes()
    shape = shapes.of(kind)
    if shapes.named:
        return Shape({**shape.schema, "$defs": shapes.named}, shape.read)
    return shape


# ---- the kinds ----------------------------------------------------------------------------------


def _unknown(kind: Any) -> TypeError:
    return TypeError(f"{kind!r} has no JSON form here; known: {_KNOWN}")


def _expect(fits: bool, what: str, value: Any, path: str) -> None:
    if not fits:
        shown = json.dumps(value, ensure_ascii=False, default=repr)
        raise ModelError(f"expected {what}, found {shown[:200]} @ {path}", path=path)


def _plain(name: str, what: str, fits: Callable[[Any], bool], make: Callable[[Any], Any]) -> Shape:
    def read(value: Any, path: str) -> Any:
        _expect(fits(value), what, value, path)
        try:
            return make(value)
        except OverflowError as error:  # an integer that no float can be
            raise ModelError(f"{error} @ {path}", path=path) from error

    return Shape({"type": name}, read)


def _is_integer(value: Any) -> bool:
    # A JSON schema takes 5.0 for an integer.
    whole = isinstance(value, float) and value.is_integer()
    return whole or (isinstance(value, int) and not isinstance(value, bool))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _moment(kind: Any, name: str) -> Shape:
    def read(value: Any, path: str) -> Any:
        _expect(isinstance(value, str), f"an ISO 8601 {name}", value, path)
        try:
            # Python 3.10 does not know Z.
            return kind.fromisoformat(value[:-1] + "+00:00" if value.endswith("Z") else value)
        except ValueError:
            _expect(False, f"an ISO 8601 {name}", value, path)

    return Shape({"type": "string", "format": name}, read)


_PLAIN: Mapping[Any, Shape] = {
    str: _plain("string", "text", lambda value: isinstance(value, str), str),
    int: _plain("integer", "an integer", _is_integer, int),
    float: _plain("number", "a number", _is_number, float),
    bool: _plain("boolean", "true or false", lambda value: isinstance(value, bool), bool),
    None: _plain("null", "null", lambda value: value is None, lambda _: None),
    type(None): _plain("null", "null", lambda value: value is None, lambda _: None),
    datetime.datetime: _moment(datetime.datetime, "date-time"),
    datetime.date: _moment(datetime.date, "date"),
}

_ARRAYS: Mapping[Any, Callable[[list[Any]], Any]] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    collections.abc.Sequence: list,
    collections.abc.Iterable: list,
}


def _array(inner: Shape, make: Callable[[list[Any]], Any]) -> Shape:
    def read(value: Any, path: str) -> Any:
        _expect(isinstance(value, list), "a list", value, path)
        items = [inner.read(item, f"{path}[{n}]") for n, item in enumerate(value)]
        try:
            return make(items)
        except TypeError as error:  # a set cannot hold a list
            raise ModelError(f"{error} @ {path}", path=path) from error

    schema: dict[str, Any] = {"type": "array", "items": inner.schema}
    if make in (set, frozenset):
        schema["uniqueItems"] = True
    return Shape(schema, read)


def _fixed(shapes: list[Shape]) -> Shape:
    """Return the shape of a tuple of a fixed length."""

    def read(value: Any, path: str) -> Any:
        fits = isinstance(value, list) and len(value) == len(shapes)
        _expect(fits, f"a list of {len(shapes)}", value, path)
        return tuple(
            shape.read(item, f"{path}[{n}]")
            for n, (shape, item) in enumerate(zip(shapes, value, strict=True))
        )

    items = [shape.schema for shape in shapes]
    length = len(shapes)
    return Shape(
        {"type": "array", "prefixItems": items, "minItems": length, "maxItems": length}, read
    )


def _one_of(choices: list[tuple[Any, Any]]) -> Shape:
    """Return the shape of a choice: JSON values, and what each means."""
    values = [value for value, _ in choices]

    def read(value: Any, path: str) -> Any:
        # True is 1, and 1 is 1.0.
        fitting = [m for known, m in choices if type(known) is type(value) and known == value]
        _expect(bool(fitting), f"one of {values}", value, path)
        return fitting[0]

    return Shape({"enum": values}, read)


def _union(shapes: list[Shape], kind: Any) -> Shape:
    def read(value: Any, path: str) -> Any:
        errors = []
        for shape in shapes:
            try:
                return shape.read(value, path)
            except ModelError as error:
                errors.append(error)
        # That of the member that got furthest says most.
        raise max(errors, key=lambda error: len(error.path or ""))

    return Shape({"anyOf": [shape.schema for shape in shapes]}, read)


def _object(kind: Any, members: list[_Member]) -> Shape:
    known = {member.name: member for member in members}
    required = [member.name for member in members if member.required]

    def read(value: Any, path: str) -> Any:
        _expect(isinstance(value, dict), "an object", value, path)
        for name in required:
            if name not in value:
                raise ModelError(f"required member missing @ {path}.{name}", path=f"{path}.{name}")
        for name in value:
            if name not in known:
                raise ModelError(f"unknown member @ {path}.{name}", path=f"{path}.{name}")
        read_members = {
            name: known[name].shape.read(item, f"{path}.{name}") for name, item in value.items()
        }
        try:
            return kind(**read_members)
        except (TypeError, ValueError) as error:  # of the class's own checks
            raise ModelError(f"{error} @ {path}", path=path) from error

    schema = {
        "type": "object",
        "properties": {member.name: member.shape.schema for member in members},
        "required": required,
        "additionalProperties": False,
    }
    return Shape(schema, read)
