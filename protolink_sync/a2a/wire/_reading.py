"""How members of A2A objects are read from decoded JSON: tolerantly where peers differ.

A missing member, null and, for text, ``""`` all mean unset. A value of the wrong type raises
:class:`~protolink_sync.errors.ModelError` with its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from protolink_sync.errors import ModelError
from protolink_sync.models import described

__all__ = [
    "Place",
    "absent",
    "flag_at",
    "list_at",
    "members_of",
    "number_at",
    "object_at",
    "others",
    "path_of",
    "required_text_at",
    "text_at",
    "texts_at",
    "unexpected",
]

_T = TypeVar("_T")

Place: TypeAlias = "tuple[Place, str | int] | None"
"""Where a value stands: the place around it and the step from there; None is the root.

A step costs one tuple; the text is made only when there is an error to report.
"""


def path_of(place: Place) -> str:
    """Return a place as a JSON path.

    >>> path_of(((None, "parts"), 0))
    '$.parts[0]'
    """
    steps = []
    while place is not None:
        place, step = place
        steps.append(f".{step}" if isinstance(step, str) else f"[{step}]")
    return "$" + "".join(reversed(steps))


def unexpected(expected: str, value: Any, place: Place) -> ModelError:
    """Return the error that says what stands in place of what was expected."""
    path = path_of(place)
    return ModelError(f"expected {expected}, found {described(value)} @ {path}", path=path)


def absent(name: str, place: Place) -> ModelError:
    """Return the error about a member without which the object means nothing."""
    path = path_of((place, name))
    return ModelError(f"required member missing @ {path}", path=path)


def members_of(value: Any, what: str, place: Place) -> Mapping[str, Any]:
    """Return the members of a JSON object."""
    if type(value) is dict or isinstance(value, Mapping):
        return value
    raise unexpected(what, value, place)


def text_at(members: Mapping[str, Any], name: str, place: Place) -> str:
    """Read optional text."""
    value = members.get(name)
    if value is None:
        return ""
    if type(value) is not str:
        raise unexpected("a string", value, (place, name))
    return value


def required_text_at(members: Mapping[str, Any], name: str, place: Place) -> str:
    """Read text that must be there and not empty."""
    value = text_at(members, name, place)
    if not value:
        raise absent(name, place)
    return value


def texts_at(members: Mapping[str, Any], name: str, place: Place) -> list[str]:
    """Read an optional list of text."""
    return list_at(members, name, place, _one_text)


def list_at(
    members: Mapping[str, Any], name: str, place: Place, read: Callable[[Any, Place], _T]
) -> list[_T]:
    """Read an optional list, each item with ``read``."""
    value = members.get(name)
    if value is None:
        return []
    if type(value) is not list:
        raise unexpected("an array", value, (place, name))
    around = (place, name)
    return [read(item, (around, index)) for index, item in enumerate(value)]


def object_at(members: Mapping[str, Any], name: str, place: Place) -> dict[str, Any]:
    """Read an optional object into a dictionary of its own."""
    value = members.get(name)
    if value is None:
        return {}
    return dict(members_of(value, "an object", (place, name)))


def number_at(members: Mapping[str, Any], name: str, place: Place) -> int | None:
    """Read an optional integer; ``2.0`` is one, for some peers know no integers."""
    value = members.get(name)
    if value is None or type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    raise unexpected("an integer", value, (place, name))


def flag_at(members: Mapping[str, Any], name: str, place: Place) -> bool | None:
    """Read an optional true or false."""
    value = members.get(name)
    if value is None or type(value) is bool:
        return value
    raise unexpected("true or false", value, (place, name))


def others(members: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Return the members that are not known."""
    if members.keys() <= known:
        return {}
    return {name: value for name, value in members.items() if name not in known}


def _one_text(value: Any, place: Place) -> str:
    if type(value) is not str:
        raise unexpected("a string", value, place)
    return value
