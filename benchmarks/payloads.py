"""The tasks that all contenders send and receive: always the same, in the form of the wire.

This module is read by the peers' interpreter too: standard library only.
"""

from __future__ import annotations

from typing import Any

__all__ = ["SIZES", "task"]

_LINE = 'The quick brown fox said "hello" to the lazy dog, twice, and left.\n'
_TIMESTAMP = "2026-01-01T00:00:00.000000+00:00"

# Name -> messages, parts a message, characters a part.
SIZES = {
    "small": (1, 1, 600),  # about 1 KB
    "big": (64, 4, 3900),  # about 1 MB
    "nested": (100, 3, 60),  # many small objects: what models cost, not what text costs
}


def task(size: str) -> dict[str, Any]:
    """Return a new task of a size of :data:`SIZES`.

    >>> len(task("big")["messages"])
    64
    """
    messages, parts, characters = SIZES[size]
    text = (_LINE * (characters // len(_LINE) + 1))[:characters]
    return {
        "id": "task_20260101000000_0123abcd",
        "state": "completed",
        "messages": [
            {
                "id": f"msg_{number:08d}",
                "role": "agent" if number % 2 else "user",
                "parts": [{"type": "text", "content": text} for _ in range(parts)],
                "timestamp": _TIMESTAMP,
            }
            for number in range(messages)
        ],
        "artifacts": [],
        "metadata": {"session_id": "s1"},
        "flow_state": {},
        "created_at": _TIMESTAMP,
    }
