"""Headers that go with A2A calls: what nobody else may set."""

from __future__ import annotations

from collections.abc import Mapping

from protolink_sync.security import caller_headers

__all__ = ["checked_headers"]

_OWN_HEADERS = frozenset(
    ("a2a-extensions", "a2a-version", "accept", "content-type", "x-a2a-extensions")
)


def checked_headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return the caller's headers.

    Raises:
        TypeError: A name or a value is no text.
        ValueError: A header is not allowed, or is one that A2A calls have of their own.
    """
    checked = caller_headers(headers)
    own = sorted(name for name in checked if name.lower() in _OWN_HEADERS)
    if own:
        raise ValueError(
            f"headers= has {', '.join(own)}, which A2A calls set themselves: leave it out "
            "(extensions= names extensions, dialect= the version)"
        )
    return checked
