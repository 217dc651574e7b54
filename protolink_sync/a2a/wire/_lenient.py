"""How members of agent cards are read: whatever has not the form that is expected counts as unset.

Cards come from strangers. What they say wrongly about an icon must not keep anyone from calling
the agent; what matters for a call, the interfaces, is checked where one is chosen.

Source:
    wire/a2a.md Q16.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["flag", "json_object", "objects", "text", "texts"]


def text(members: Mapping[str, Any], name: str) -> str:
    """Return text; of a number its text, for some peers write versions so."""
    value = members.get(name)
    if type(value) is str:
        return value
    return str(value) if type(value) is float or type(value) is int else ""


def texts(members: Mapping[str, Any], name: str) -> list[str]:
    """Return the texts in a list."""
    value = members.get(name)
    return [item for item in value if type(item) is str] if type(value) is list else []


def flag(members: Mapping[str, Any], name: str) -> bool:
    """Return True for true, and False for anything else."""
    return members.get(name) is True


def json_object(members: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object; empty if there is none."""
    value = members.get(name)
    return value if isinstance(value, Mapping) else {}


def objects(members: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the objects in a list."""
    value = members.get(name)
    return [item for item in value if isinstance(item, Mapping)] if type(value) is list else []
