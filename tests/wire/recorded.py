"""Recorded exchanges with protolink 0.8.3, and what of them may differ from ours."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

from protolink_sync import specs
from protolink_sync.models import ClientRequestSpec

__all__ = ["exchanges", "named", "normal", "plain", "spec_for", "without"]

FOLDER = pathlib.Path(__file__).with_name("vectors")

# Ids and times are made anew by every client: each becomes a mark of its kind.
_ID = re.compile(
    r"(?:task|msg|art|tool_call|tool_output|call|run)_[0-9]{14}_[0-9a-f]{6,8}"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:\+00:00|Z)")

_BY_ROUTE = {
    (spec.method, spec.path): spec
    for spec in (getattr(specs, name) for name in specs.__all__)
    if isinstance(spec, ClientRequestSpec)
}


def exchanges(prefix: str) -> dict[str, dict[str, Any]]:
    """Return the recorded exchanges of all files whose names begin so, by a name for a test."""
    found = {}
    for file in sorted(FOLDER.glob("*.json")):
        if file.name.startswith(prefix):
            content = json.loads(file.read_text(encoding="utf-8"))
            assert content["source"].startswith("protolink 0.8.3 on the wire, capture "), file
            for number, exchange in enumerate(content["exchanges"]):
                found[f"{file.stem}-{exchange.get('step', number)}"] = exchange
    assert found, f"no vectors {prefix}*"
    return found


def named(name: str, number: int = 0) -> dict[str, Any]:
    """Return one exchange of one file."""
    exchange = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["exchanges"][
        number
    ]
    assert isinstance(exchange, dict)
    return exchange


def spec_for(method: str, target: str) -> ClientRequestSpec:
    """Return the operation of a recorded request, or a bare one where we have none."""
    path = target.partition("?")[0]
    known = _BY_ROUTE.get((method.upper(), path))
    return known or ClientRequestSpec("recorded", path, method.upper(), None, "none")


def normal(value: Any) -> Any:
    """Return a decoded value with every id and time replaced by a mark."""
    if isinstance(value, dict):
        return {name: normal(item) for name, item in value.items()}
    if isinstance(value, list):
        return [normal(item) for item in value]
    if isinstance(value, str):
        return _TIME.sub("<time>", _ID.sub("<id>", value))
    return value


def without(value: dict[str, Any], *paths: str) -> dict[str, Any]:
    """Return a decoded value without some members, for those that are our choice."""
    copy = json.loads(json.dumps(value))
    for path in paths:
        *parents, last = path.split(".")
        place = copy
        for name in parents:
            place = place[int(name) if name.isdigit() else name]
        del place[last]
    return copy


def plain(parsed: Any) -> Any:
    """Return what a spec's parser made as plain JSON values."""
    if isinstance(parsed, list):
        return [plain(item) for item in parsed]
    to_dict = getattr(parsed, "to_dict", None)
    return parsed if to_dict is None else json.loads(json.dumps(to_dict()))
