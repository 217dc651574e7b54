"""What the classes of this room have in common: members with wire names, and the unknown ones."""

from __future__ import annotations

import functools
import reprlib
from collections.abc import Mapping
from typing import Any, TypeVar, cast

import attrs

from protolink_sync.models._converter import structure
from protolink_sync.models._json import jsonable

__all__ = ["JSONObject", "LazyExtra", "brief"]

_Self = TypeVar("_Self", bound="JSONObject")


class JSONObject:
    """An object with a JSON form: ``from_dict`` reads it, ``to_dict`` writes it.

    Members that the class does not know are kept in ``extra`` and written back.
    """

    __slots__ = ()

    extra: Any

    @classmethod
    def from_dict(cls: type[_Self], data: Mapping[str, Any]) -> _Self:
        """Read the object from its JSON form.

        Args:
            data: The decoded JSON object. Containers inside it may be shared, not copied.

        Returns:
            The object; unknown members are in its ``extra``.

        Raises:
            ModelError: A member has the wrong type or is missing; ``path`` says where.
        """
        return structure(cls, data)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form: a fresh dictionary of plain JSON types.

        Raises:
            TypeError: Some content has no JSON form; the message says where.
            ModelError: Some number is NaN or infinite, or a structure contains itself.
        """
        return cast("dict[str, Any]", jsonable(self))

    # Written once here: attrs would compile both anew for each of twenty classes, which took a
    # fifth of the time to import the package.
    def __repr__(self) -> str:
        kind: Any = type(self)
        shown = [
            f"{field.name}={brief(value)}"
            for field in attrs.fields(kind)
            for value in (getattr(self, field.name),)
            if value or field.name != "extra"
        ]
        return f"{kind.__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        kind: Any = type(self)
        return all(
            (getattr(self, field.name) or None) == (getattr(other, field.name) or None)
            if field.name == "_extra"  # asking for it makes no difference
            else getattr(self, field.name) == getattr(other, field.name)
            for field in attrs.fields(kind)
            if field.eq
        )

    __hash__ = None  # type: ignore[assignment]

    def _json_members(self) -> dict[str, Any]:
        """Return the members under their wire names, their values not converted."""
        kind: Any = type(self)
        members = {wire: getattr(self, name) for name, wire in _wire_names(kind)}
        for name, value in self._unknown_members().items():
            members.setdefault(name, value)
        return members

    def _unknown_members(self) -> dict[str, Any]:
        members: dict[str, Any] = self.extra
        return members

    @classmethod
    def _before_reading(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what is to be read: ``data``, with other spellings brought to ours."""
        return data

    def _after_reading(self, data: Mapping[str, Any]) -> None:
        """Take over from the received ``data`` what a single member does not tell."""


@attrs.define(repr=False, eq=False)
class LazyExtra(JSONObject):
    """An object made by the thousand: its ``extra`` is made when it is asked for."""

    _extra: dict[str, Any] | None = attrs.field(default=None, kw_only=True)

    @property
    def extra(self) -> dict[str, Any]:
        """The members that the class does not know, by name; written back as they are."""
        if self._extra is None:
            self._extra = {}
        return self._extra

    @extra.setter
    def extra(self, members: dict[str, Any]) -> None:
        self._extra = members

    def _unknown_members(self) -> dict[str, Any]:
        return self._extra or {}  # to write an object changes nothing in it


@functools.cache
def _wire_names(kind: Any) -> tuple[tuple[str, str], ...]:
    return tuple(
        (field.name, field.metadata.get("name", field.name))
        for field in attrs.fields(kind)
        if field.name != "extra" and not field.name.startswith("_")
    )


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 70
_SHORT.maxlevel = 3


def brief(value: Any) -> str:
    """Return a ``repr`` of bounded length, without making the whole one first."""
    return _SHORT.repr(value)
