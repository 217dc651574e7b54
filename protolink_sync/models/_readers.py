"""How single JSON values are read: as they are, or not at all.

A reader is called with the value and, as cattrs does it, with the type that is wanted. Where the
type of a field does not say how it is read, the field names its reader:
``attrs.field(metadata={"read": identifier})``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

__all__ = [
    "Reader",
    "UnexpectedError",
    "boolean",
    "described",
    "identifier",
    "integer",
    "json_object",
    "nullable_number",
    "nullable_text",
    "text",
]

Reader: TypeAlias = Callable[[Any, Any], Any]


class UnexpectedError(TypeError):
    """A JSON value is not of the type that stands in its place.

    Args:
        expected: What was expected, with its article.
        value: What was found; the message describes it and cuts it.
    """

    def __init__(self, expected: str, value: Any) -> None:
        super().__init__(f"expected {expected}, found {described(value)}")


def text(value: Any, _: Any = None) -> str:
    """Read text. Of fields whose type lists words too: a peer may know others."""
    if type(value) is not str:
        raise UnexpectedError("a string", value)
    return value


def nullable_text(value: Any, _: Any = None) -> Any:
    """Read text; null is kept, also where the documented type is ``str``."""
    if value is not None and type(value) is not str:
        raise UnexpectedError("a string or null", value)
    return value


def identifier(value: Any, _: Any = None) -> Any:
    """Read an id: any scalar, for peers do not check theirs and want back what they sent."""
    if type(value) is not str and isinstance(value, (list, tuple, Mapping)):
        raise UnexpectedError("a string or another scalar", value)
    return value


def integer(value: Any, _: Any = None) -> int:
    """Read an integer; true and 1.0 are none."""
    if type(value) is not int:
        raise UnexpectedError("an integer", value)
    return value


def boolean(value: Any, _: Any = None) -> bool:
    """Read true or false; 0 and 1 are neither."""
    if type(value) is not bool:
        raise UnexpectedError("true or false", value)
    return value


def nullable_number(value: Any, _: Any = None) -> float | None:
    """Read a finite number, which stays the int or the float that it is, or null."""
    if value is None or type(value) is int or (type(value) is float and math.isfinite(value)):
        return value
    raise UnexpectedError("a number or null", value)


def json_object(value: Any, _: Any = None) -> dict[str, Any]:
    """Read a JSON object into a new dictionary; null reads as an empty one."""
    if value is None:
        return {}
    if type(value) is not dict and not isinstance(value, Mapping):
        raise UnexpectedError("an object", value)
    return dict(value)


def described(value: Any) -> str:
    """Say what kind of JSON value there is, for an error; a long one is cut."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "an array"
    if isinstance(value, str):
        return f"a string ({value[:40]!r})"
    if isinstance(value, (int, float)):
        return f"a number ({value!r:.40})"
    return f"a Python {type(value).__name__}"
