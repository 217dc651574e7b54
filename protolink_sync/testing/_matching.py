"""How a call is found among recorded ones, and what is new in the answer to it."""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import attrs

from protolink_sync.testing._masking import MASK, Masks, is_telling
from protolink_sync.testing.recorder import NOT_JSON

__all__ = [
    "Fresh",
    "bytes_of",
    "ids_of",
    "origin_of",
    "other_body",
    "other_text",
    "renewed",
    "values_of",
]

# Members that are another text in every run. Ids are renewed in the answer; moments are not,
# because it is their order that tells which item of a task is the latest.
_IDS = ("id", "idempotency_key", "run_id", "task_id")
_MOMENTS = ("created_at", "timestamp")

# Of A2A only messages are named by the caller: the ids of tasks come from answers, as recorded.
_A2A_IDS = ("messageId",)

# Members that say where an agent is called.
_ADDRESSES = ("url", "location")


@attrs.define
class Fresh:
    """What stands in an answer in the place of what was recorded.

    Args:
        ids: This run's ids, by the recorded ones; first those of this call, then of all before.
        recorded: The recorded ids, by this run's.
        masked: How much of the call only a mask stands for.
        numbers: Recorded and present number of an A2A call; None for another call.
        origins: Recorded and present begin of the agent's addresses; None where they are the same.
    """

    ids: ChainMap[str, str]
    recorded: ChainMap[str, str]
    masked: int = 0
    numbers: tuple[Any, Any] | None = None
    origins: tuple[str, str] | None = None


def other_body(then: Any, now: Any, fresh: Fresh) -> str | None:
    """Return where what is sent differs from what was recorded, or None; note this run's ids."""
    ids: tuple[str, ...] = _IDS
    if _is_a2a(then) and _is_a2a(now):
        # A number that is counted in each process.
        fresh.numbers, ids = (then.get("id"), now.get("id")), _A2A_IDS
        then = {**then, "id": now.get("id")}
    return _difference(then, now, "$", ids, fresh)


def _difference(then: Any, now: Any, path: str, ids: tuple[str, ...], fresh: Fresh) -> str | None:
    if isinstance(then, str) and isinstance(now, str):
        return other_text(then, now, path, fresh)
    if then == MASK:
        fresh.masked += 1 + len(repr(now))
        return None
    if isinstance(then, dict) and isinstance(now, dict):
        if then.keys() != now.keys():
            has = "other members" if MASK in repr([*then]) else f"the members {sorted(now)}"
            return f"{path} has {has}, recorded are {sorted(then)}"
        found = (_member(then, now, name, path, ids, fresh) for name in then)
        return next((reason for reason in found if reason is not None), None)
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        pairs = enumerate(zip(then, now, strict=True))
        found = (_difference(a, b, f"{path}[{n}]", ids, fresh) for n, (a, b) in pairs)
        return next((reason for reason in found if reason is not None), None)
    if type(then) is type(now) and then == now:
        return None
    return _other(then, now, path)


def _member(
    then: dict[str, Any],
    now: dict[str, Any],
    name: str,
    path: str,
    ids: tuple[str, ...],
    fresh: Fresh,
) -> str | None:
    old, new = then[name], now[name]
    if isinstance(old, str) and isinstance(new, str):
        if name in _MOMENTS:
            return None
        if name in ids:
            return _other_id(old, new, f"{path}.{name}", fresh)
    return _difference(old, new, f"{path}.{name}", ids, fresh)


def _other_id(old: str, new: str, path: str, fresh: Fresh) -> str | None:
    """Return that an id is not this run's one for what was recorded; note it where it is new."""
    if fresh.ids.get(old) == new:
        return None
    # What was masked may be several ids.
    is_named = old in fresh.ids and MASK not in old
    if is_named or fresh.recorded.get(new, old) != old:
        return _other(old, new, path)
    fresh.ids[old], fresh.recorded[new] = new, old
    return None


def ids_of(value: Any) -> Iterator[str]:
    """Give the ids that stand in a recording."""
    for item in value if isinstance(value, list) else ():
        yield from ids_of(item)
    for name, item in value.items() if isinstance(value, dict) else ():
        if name in (*_IDS, *_A2A_IDS) and isinstance(item, str) and MASK not in item:
            yield item
        yield from ids_of(item)


def other_text(then: str, now: str, path: str, fresh: Fresh) -> str | None:
    """Return that a text is another one than was recorded; what was masked may be anything."""
    if then == now:
        return None
    first, *others = then.split(MASK)
    if not others or not _is_made_of(first, others, now):
        return _other(then, now, path)
    fresh.masked += 1 + len(now) - len(first) - sum(map(len, others))
    return None


def _is_made_of(first: str, others: list[str], text: str) -> bool:
    """Tell whether a text is made of these pieces, in this order, and of anything between them."""
    last, end = others[-1], len(text) - len(others[-1])
    if not text.startswith(first) or not text.endswith(last):
        return False
    begin = len(first)
    for piece in others[:-1]:
        found = text.find(piece, begin, end)
        if found < 0:
            return False
        begin = found + len(piece)
    return begin <= end


def _other(then: Any, now: Any, path: str) -> str:
    """Return that something is another than was recorded, without what may be a secret."""
    if MASK in repr(then) or is_telling(path):
        return f"{path} is another, recorded is {then!r}"
    masks = Masks(())
    return f"{path} is {masks.path(repr(masks.value(now)))}, recorded is {then!r}"


def _is_a2a(value: Any) -> bool:
    return isinstance(value, dict) and value.get("jsonrpc") == "2.0"


def origin_of(url: str) -> str:
    """Return with what the addresses of an agent begin."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def values_of(body: bytes) -> Any:
    """Return a body as it is recorded, but for what is masked."""
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except ValueError:
        return {NOT_JSON: text}


def renewed(value: Any, fresh: Fresh, name: str = "") -> Any:
    """Return recorded values with this run's ids in the place of the recorded ones."""
    if isinstance(value, str):
        is_id = name == "id" or name.endswith(("_id", "-id", "Id"))
        return fresh.ids.get(value, value) if is_id else _moved(value, fresh, name)
    if isinstance(value, list):
        return [renewed(item, fresh, name) for item in value]
    if isinstance(value, dict):
        return {name: renewed(item, fresh, name) for name, item in value.items()}
    return value


def _moved(value: str, fresh: Fresh, name: str) -> str:
    """Return an address of an agent that is at a new place by now."""
    if name not in _ADDRESSES or fresh.origins is None:
        return value
    was, now = fresh.origins
    rest = value.removeprefix(was)
    return now + rest if value.startswith(was) and rest[:1] in ("", "/", "?") else value


def bytes_of(content: Any, fresh: Fresh) -> bytes:
    """Return a recorded body as it is sent, with what is fresh in it."""
    if isinstance(content, dict) and content.keys() == {NOT_JSON}:
        return str(content[NOT_JSON]).encode("utf-8", "backslashreplace")
    value = renewed(content, fresh)
    if fresh.numbers and _is_a2a(value) and value.get("id") == fresh.numbers[0]:
        value["id"] = fresh.numbers[1]
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace")
