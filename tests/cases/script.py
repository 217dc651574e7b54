"""The language of server scripts: which steps exist, which words they take, and the placeholders.

A script is checked as a whole before a server starts, so that a misspelt step or word
fails the test at once instead of being left out in silence.

``{"routes": {"POST /tasks/": [[step, ...], ...]}}``
    Requests are read one by one from each connection, and the steps of the route run: its
    first list for its first request and so on, the last list for all later ones. ``METHOD *``
    and ``*`` take the rest; what no route with a list takes is answered 404.
``{"connections": [[step, ...], ...], "repeat_last": true}``
    The nth connection runs the nth list, and nothing is read unless a step says so. Beyond the
    last list a connection is closed at once, unless the last one repeats.
``{"listen": false}``, ``{"listen": "blackhole"}``
    Connects are refused, or stay unanswered.

A list without ``close`` leaves its connection open. A pause (``sleep``, ``wait``, ``barrier``,
``hold``) ends with the client's close. An event or a barrier that does not come within ``s`` is
a problem; ``hold`` and ``ws_recv`` go on when ``s`` is over. In ``ws_frame``, ``fill`` appends
so many ``x`` and ``times`` sends the frame so often.

A text stands for bytes, one for each character (latin-1). Placeholders: ``{{rpc_id}}`` (JSON of
the ``id`` in the request's body or the last WebSocket message), ``{{req_id}}`` (its
X-Protolink-Request-ID), ``{{task_id}}``, ``{{base}}``, ``{{base:N}}`` (a peer), ``{{hdr:Name}}``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Step = Mapping[str, Any]
Steps = Sequence[Step]

#: What each step takes: the words it needs, and those it may have.
STEPS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    op: (frozenset(needs.split()), frozenset(may.split()))
    for op, needs, may in (
        ("recv", "", ""),
        ("recv_head", "", ""),
        ("recv_some", "", ""),
        ("send", "data", ""),
        ("split", "data at", "gap_s"),
        ("drip", "data every_s", "bytes"),
        ("repeat", "data times", "every_s"),
        ("fill", "byte count", ""),
        ("reply", "", "status reason headers body content_length"),
        ("head", "", "status reason headers"),
        ("sse_head", "", "headers"),
        ("chunk", "data", ""),
        ("chunks", "data size", "every_s"),
        ("end_chunks", "", ""),
        ("gzip_chunk", "data", "sync"),
        ("gzip_end", "", ""),
        ("sleep", "s", ""),
        ("wait", "event", "s"),
        ("barrier", "name n", "s"),
        ("hold", "", "s"),
        ("close", "", ""),
        ("rst", "", ""),
        ("ws_accept", "", ""),
        ("ws_frame", "opcode", "data fin rsv1 mask declared_len fill times"),
        ("ws_recv", "", "s"),
    )
}
_SCRIPT_WORDS = frozenset({"routes", "connections", "repeat_last", "listen"})
_PLACEHOLDER = re.compile(rb"\{\{([^{}]*)\}\}")
_PLACEHOLDER_NAME = re.compile(r"rpc_id|req_id|task_id|base|base:\d+|hdr:[!#$%&'*+.^_`|~\w-]+")


class ScriptError(Exception):
    """Tell that a script, or the way it went, is not what its author meant."""


def check_script(script: Mapping[str, Any]) -> None:
    """Refuse a script with an unknown word, step or placeholder.

    Raises:
        ScriptError: Names what is unknown and what is possible.
    """
    unknown = set(script) - _SCRIPT_WORDS
    if unknown:
        raise ScriptError(f"unknown words {sorted(unknown)} in a script")
    ways = [word for word in ("routes", "connections", "listen") if word in script]
    if len(ways) != 1:
        raise ScriptError(f"a script has one of routes, connections, listen; this has {ways}")
    if "listen" in script and script["listen"] not in (False, "blackhole"):
        raise ScriptError(f"listen is {script['listen']!r}, must be false or 'blackhole'")
    if "repeat_last" in script and "connections" not in script:
        raise ScriptError("repeat_last belongs to connections")
    for route in script.get("routes", {}):
        if route != "*" and len(route.split(" ")) != 2:
            raise ScriptError(f"route {route!r} is neither 'METHOD path', 'METHOD *' nor '*'")
    for steps in step_lists(script):
        for step in steps:
            _check_step(step)


def step_lists(script: Mapping[str, Any]) -> Iterator[Steps]:
    """Give every list of steps of a script."""
    for lists in script.get("routes", {}).values():
        yield from lists
    yield from script.get("connections", ())


def _check_step(step: Step) -> None:
    op = step.get("op")
    if op not in STEPS:
        raise ScriptError(f"unknown step {op!r}; known: {', '.join(sorted(STEPS))}")
    needs, may = STEPS[op]
    words = set(step) - {"op"}
    if needs - words:
        raise ScriptError(f"step {op!r} lacks {sorted(needs - words)}")
    if words - needs - may:
        raise ScriptError(f"step {op!r} has unknown words {sorted(words - needs - may)}")
    for text in _texts(step):
        for name in _PLACEHOLDER.findall(to_bytes(text)):
            if not _PLACEHOLDER_NAME.fullmatch(name.decode("latin-1")):
                raise ScriptError(f"unknown placeholder {name!r} in step {op!r}")


def _texts(step: Step) -> Iterator[str]:
    for word in ("data", "body", "byte"):
        if isinstance(step.get(word), str):
            yield step[word]
    for name, value in header_pairs(step.get("headers")):
        yield name
        yield value


def to_bytes(text: str) -> bytes:
    """Return the bytes a script's text stands for: one for each character."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError as exc:
        raise ScriptError(f"a script's text has a character above U+00FF: {text!r}") from exc


def header_pairs(headers: Mapping[str, str] | Sequence[Sequence[str]] | None) -> list[list[str]]:
    """Return headers as pairs; a script may give an object, or a list to repeat a name."""
    if headers is None:
        return []
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [[str(name), str(value)] for name, value in pairs]


def fill_in(text: str, lookup: Callable[[str], bytes]) -> bytes:
    """Return a text's bytes with each placeholder replaced by what ``lookup`` gives for it."""
    return _PLACEHOLDER.sub(lambda m: lookup(m[1].decode("latin-1")), to_bytes(text))


def json_inside_quotes(value: Any) -> bytes:
    """Return a value as it stands between the quotes of a JSON string."""
    text = value if isinstance(value, str) else json.dumps(value)
    return json.dumps(text, ensure_ascii=False)[1:-1].encode()
