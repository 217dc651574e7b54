"""From good inputs to bad ones, the same ones for the same seed."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

# What readers look for, and what tends to break them.
_TOKENS = (
    b"\r",
    b"\n",
    b"\r\n\r\n",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"data:",
    b"data: [DONE]\n\n",
    b"event: error\n",
    b"0\r\n\r\n",
    b"ffffffffffffffff\r\n",
    b"-1",
    b"1e999",
    b"9" * 400,
    b"NaN",
    b"Infinity",
    b"null",
    b"{}",
    b"[" * 400,
    b'{"a":' * 400,
    b'"\\ud800"',
    b"HTTP/1.1 103 Early\r\n\r\n",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x01\x00",
    b"\x88\x02\x03\xe8",
    b"\x1f\x8b\x08\0\0\0\0\0\0\3",
)

_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    10**30,
    1.5,
    "",
    "x",
    "\u2028",
    "\ud83d\ude00",
    "completed",
    "TASK_STATE_COMPLETED",
    "2026-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999999+23:59",
    "0000-00-00T99:99:99Z",
    "//x",
    "http://[",
    "http://h:99999/",
    "\x7f\r\nX: y",
    [],
    {},
    [None],
    [[]],
    {"": None},
    {"kind": "message"},
    {"text": 1, "url": "x", "data": {}},
    {"code": -32001, "message": None, "data": [{"@type": 5}]},
)


def mutated(seeds: list[bytes], chance: random.Random) -> bytes:
    """Return one of the inputs after a few changes to its bytes."""
    data = bytearray(chance.choice(seeds))
    for _ in range(chance.choice((0, 1, 1, 2, 3, 8))):
        at = chance.randint(0, len(data))
        end = min(len(data), at + chance.choice((1, 1, 2, 5, 20, 100)))
        how = chance.randrange(7)
        if how == 0:
            del data[at:end]
        elif how == 1:
            data[at:at] = chance.choice(_TOKENS)
        elif how == 2:
            data[at:end] = data[at:end] * 2
        elif how == 3 and at < len(data):
            data[at] = chance.randrange(256)
        elif how == 4:
            data[at:end] = chance.choice(_TOKENS)
        elif how == 5:
            other = chance.choice(seeds)
            data[at:] = other[chance.randint(0, len(other)) :]
        elif how == 6:
            del data[at:]
    return bytes(data)


def mutated_json(seeds: list[Any], chance: random.Random) -> Any:
    """Return one of the values after a few changes to its members."""
    value = json.loads(json.dumps(chance.choice(seeds)))
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        value = _changed(value, seeds, chance)
    return value


def _changed(value: Any, seeds: list[Any], chance: random.Random) -> Any:
    """Change one place, however deep."""
    if not isinstance(value, (dict, list)) or not value or chance.random() < 0.1:
        return _other(value, seeds, chance)
    if isinstance(value, list):
        at = chance.randrange(len(value))
        how = chance.random()
        if how < 0.1:
            del value[at]
        elif how < 0.2:
            value.insert(at, copy.deepcopy(value[at]))
        else:
            value[at] = _changed(value[at], seeds, chance)
        return value
    name = chance.choice(list(value))
    how = chance.random()
    if how < 0.12:
        del value[name]
    elif how < 0.2:
        value[chance.choice(("", "id", "kind", "extra", "result", name + "s"))] = copy.deepcopy(
            value[name]
        )
    else:
        value[name] = _changed(value[name], seeds, chance)
    return value


def _other(value: Any, seeds: list[Any], chance: random.Random) -> Any:
    how = chance.random()
    if how < 0.7:
        return copy.deepcopy(chance.choice(_VALUES))
    if how < 0.8:
        return [value]
    if how < 0.9:
        return {"nested": value}
    return json.loads(json.dumps(chance.choice(seeds)))
