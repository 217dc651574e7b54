"""HTTP headers from several sources."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["merged"]


def merged(*sources: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of all sources, each name once however it is spelled; the last wins.

    >>> merged({"Accept": "a", "X": "1"}, {"accept": "b"})
    {'accept': 'b', 'X': '1'}
    """
    result: dict[str, str] = {}
    for source in sources:
        result.update(source)
    if len({name.lower() for name in result}) < len(result):
        last = {name.lower(): (name, value) for source in sources for name, value in source.items()}
        return dict(last.values())
    return result
