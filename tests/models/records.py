"""What the tests of the models share: the captured bodies, and what "nothing lost" means."""

from __future__ import annotations

import json
import pathlib
from typing import Any, NamedTuple

from protolink_sync import models

_CAPTURES = pathlib.Path(__file__).parent / "data" / "captures.jsonl"


class Captured(NamedTuple):
    """One JSON object that a real protolink 0.8.3 peer or client sent."""

    kind: str
    capture: str
    data: dict[str, Any]


def captured() -> list[Captured]:
    """Return every body of wire/captures/protolink that a class here stands for."""
    # Not splitlines(): one body holds U+2028, which ends a line there.
    lines = _CAPTURES.read_text(encoding="utf-8").rstrip("\n").split("\n")
    rows = [json.loads(line) for line in lines]
    return [Captured(row["class"], row["capture"], row["data"]) for row in rows]


def model(kind: str) -> Any:
    return getattr(models, kind)


def lost(sent: Any, kept: Any, path: str = "$") -> list[str]:
    """Return the places where ``kept`` does not contain ``sent``.

    Null for an object or a list equals its absence, which gives an empty or a default one; numbers
    keep their type.
    """
    if isinstance(sent, dict):
        if not isinstance(kept, dict):
            return [path]
        missing = [f"{path}.{name}" for name in sent if name not in kept]
        found = [(name, value) for name, value in sent.items() if name in kept]
        return missing + [p for n, v in found for p in lost(v, kept[n], f"{path}.{n}")]
    if isinstance(sent, list):
        if not isinstance(kept, list) or len(sent) != len(kept):
            return [path]
        pairs = enumerate(zip(sent, kept, strict=True))
        return [p for i, (a, b) in pairs for p in lost(a, b, f"{path}[{i}]")]
    if sent is None and isinstance(kept, (dict, list)):
        return []
    return [] if type(sent) is type(kept) and sent == kept else [path]
