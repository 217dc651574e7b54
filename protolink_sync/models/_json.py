"""What may travel as JSON: user content turned into plain dictionaries, lists and scalars."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, time
from enum import Enum
from typing import Any

from protolink_sync.errors import ModelError
from protolink_sync.models._paths import Path, render

__all__ = ["ODD", "jsonable", "plain"]

ODD = (TypeError, ValueError, LookupError, AttributeError, RecursionError)
"""What a fast lane may raise about a value it was not made for; the careful lane then decides."""

_ATOMS = frozenset({str, int, bool, type(None)})
_BYTES = (bytes, bytearray, memoryview)


def jsonable(value: Any, path: str = "$") -> Any:
    """Return a value as plain JSON types: a fresh copy, made of dict, list and scalars.

    Converted are the models of this library and whatever else has ``to_dict()``, dataclasses,
    attrs classes, enums (by value), ``datetime``, ``date``, ``time``, ``UUID``, tuples and other
    mappings. Keys become text as ``json.dumps`` writes them.

    Args:
        value: Content of a part, metadata, data of a request: anything.
        path: Where the value stands, for the messages of errors.

    Returns:
        The same value in JSON types. Text and other scalars are returned as they are.

    Raises:
        TypeError: Something has no JSON form; for ``bytes`` the message names the ways out.
        ModelError: NaN or an infinity, a structure that contains itself or is nested too
            deeply, two keys with the same text. ``path`` says where.

    Source:
        design.md 7, "Content is JSON"; RFC 8259, 6.

    >>> jsonable({"when": date(2026, 11, 29), "pair": (1, None), 3: True})
    {'when': '2026-11-29', 'pair': [1, None], '3': True}
    """
    kind = type(value)
    if kind in _ATOMS:
        return value
    try:
        if kind is not dict and kind is not list and hasattr(kind, "_json_members"):
            return plain(value._json_members())
        return plain(value)
    except (_NotPlainError, RecursionError):
        pass
    try:
        return _converted(value, None, set(), path)
    except RecursionError:
        raise ModelError(f"nested too deeply for JSON @ {path}", path=path) from None


class _NotPlainError(ValueError):
    """The value is not made of the types that ``json.loads`` makes."""


def plain(value: Any) -> Any:
    """Copy a value that is JSON already: the common case, without paths and conversions.

    Raises:
        ValueError, RecursionError: It is something else; :func:`jsonable` may know what to make
            of it. Text and other scalars but floats count as something else.
    """
    kind = type(value)
    if kind is dict:
        copy = {}
        for key, item in value.items():
            if type(key) is not str:
                raise _NotPlainError
            copy[key] = item if type(item) in _ATOMS else plain(item)
        return copy
    if kind is list:
        return [item if type(item) in _ATOMS else plain(item) for item in value]
    if kind is float and math.isfinite(value):
        return value
    raise _NotPlainError


def _converted(value: Any, path: Path, around: set[int], root: str) -> Any:
    """Convert a value; ``around`` holds the ids of the containers that it stands in."""
    if type(value) in _ATOMS:
        return value
    if isinstance(value, Enum):
        return _converted(value.value, path, around, root)
    if isinstance(value, float):
        return _finite(float(value), path, root)
    # Subclasses of str and int: their JSON form is that of the base, whatever str() says.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if id(value) in around:
        place = render(path, root)
        raise ModelError(f"the value contains itself @ {place}", path=place)
    around.add(id(value))
    try:
        if isinstance(value, Mapping):
            return _converted_object(value, path, around, root)
        if isinstance(value, (list, tuple)):
            return [_converted(v, (path, i), around, root) for i, v in enumerate(value)]
        return _converted(_open(value, path, root), path, around, root)
    finally:
        around.discard(id(value))


def _converted_object(
    value: Mapping[Any, Any], path: Path, around: set[int], root: str
) -> dict[str, Any]:
    copy: dict[str, Any] = {}
    for key, item in value.items():
        name = _key(key, path, root)
        if name in copy:
            place = render((path, name), root)
            raise ModelError(f"two keys have the text {name!r} @ {place}", path=place)
        copy[name] = _converted(item, (path, name), around, root)
    return copy


def _open(value: Any, path: Path, root: str) -> Any:
    """Take an object one level apart: return its members, or its text."""
    kind = type(value)
    if not isinstance(value, type):
        # Models first: their to_dict() would convert the members too, and lose the path.
        members = getattr(kind, "_json_members", None) or getattr(kind, "to_dict", None)
        if callable(members):
            return members(value)
        if hasattr(kind, "__dataclass_fields__"):
            return {name: getattr(value, name) for name in kind.__dataclass_fields__}
        if hasattr(kind, "__attrs_attrs__"):
            return {field.name: getattr(value, field.name) for field in kind.__attrs_attrs__}
        if kind.__module__ == "uuid" and kind.__name__ == "UUID":
            return str(value)
    place = render(path, root)
    if isinstance(value, _BYTES):
        raise TypeError(
            f"{kind.__name__} are not JSON @ {place}: send them as a part made by "
            "Part.bytes(data, media_type), Part.file(path) or Part.uri(url)"
        )
    raise TypeError(
        f"{kind.__name__} is not JSON @ {place}: give a dict, list, text, number, bool or None, "
        "or an object with to_dict()"
    )


def _key(key: Any, path: Path, root: str) -> str:
    """Return the text of a key, as ``json.dumps`` writes it."""
    if isinstance(key, Enum):
        key = key.value
    if isinstance(key, str):
        return str.__str__(key)
    if key is None:
        return "null"
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int):
        return int.__repr__(key)
    if isinstance(key, float):
        return float.__repr__(_finite(key, path, root))
    raise TypeError(
        f"a key of type {type(key).__name__} is not JSON @ {render(path, root)}: use text"
    )


def _finite(value: float, path: Path, root: str) -> float:
    if math.isfinite(value):
        return value
    place = render(path, root)
    raise ModelError(f"{value!r} is not JSON @ {place}: use None or text", path=place)
