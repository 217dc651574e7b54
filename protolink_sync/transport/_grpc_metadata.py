"""Headers as gRPC carries them."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["metadata_of"]

# gRPC sets these itself.
_OWN = frozenset(("content-type", "te", "user-agent"))


def metadata_of(headers: Mapping[str, str], *, what: str) -> list[tuple[str, str]]:
    """Return headers as metadata, names in lower case.

    Args:
        headers: Names and values, checked for HTTP.
        what: Where the caller gave them, for the message.

    Raises:
        ValueError: gRPC does not take a name or a value; the value is not shown.
    """
    return [(_checked_name(name, what), _checked(name, headers[name], what)) for name in headers]


def _checked_name(name: str, what: str) -> str:
    key = name.lower()
    if not all(c.isalnum() or c in "-_." for c in key):
        raise ValueError(f"{what} has the name {name!r}: gRPC takes letters, digits, '-_.' only")
    if key.endswith("-bin"):
        raise ValueError(f"{what} has the name {name!r}: names with -bin are for bytes, not text")
    if key in _OWN or key.startswith("grpc-"):
        raise ValueError(f"{what} has the name {name!r}, which gRPC sets itself: leave it out")
    return key


def _checked(name: str, value: str, what: str) -> str:
    if "\t" in value:
        raise ValueError(f"{what} holds a tab in the value of {name!r}, which gRPC does not take")
    return value
