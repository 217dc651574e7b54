"""What the A2A objects have in common: equality, and a short ``repr`` that shows no secret."""

from __future__ import annotations

import reprlib
from typing import Any

import attrs

__all__ = ["A2AObject"]

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 70
_SHORT.maxlevel = 3


class A2AObject:
    """An A2A object: compares by its fields, shows those that are set."""

    __slots__ = ()

    # Written once here: attrs would compile both anew for each class at import.
    def __repr__(self) -> str:
        kind: Any = type(self)
        shown = [
            f"{field.name}={_SHORT.repr(value)}"
            for field in attrs.fields(kind)
            for value in (getattr(self, field.name),)
            if field.repr and value not in (None, "", [], {}, (), False)
        ]
        return f"{kind.__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        kind: Any = type(self)
        return all(
            getattr(self, field.name) == getattr(other, field.name)
            for field in attrs.fields(kind)
            if field.eq
        )

    __hash__ = None  # type: ignore[assignment]
