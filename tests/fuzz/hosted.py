"""What anybody can send to a hosted agent: how to feed it to one, and good inputs."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from typing import Any

from protolink_sync.models import AgentCard
from protolink_sync.server import Agent, http1
from protolink_sync.server.refusal import RefusedError
from tests.a2a.scripted import message
from tests.fuzz.decoders import Decoder
from tests.fuzz.mutations import mutated, mutated_json
from tests.fuzz.seeds import CALL, NATIVE

HEADS: list[bytes] = [
    b"GET /status?token=a%20b&x=1 HTTP/1.1\r\nHost: h:80\r\nConnection: keep-alive, x\r\nA: b c",
    b"POST /tasks/ HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 5\r\nIdempotency-Key: k",
    b'GET http://h/.well-known/agent-card.json HTTP/1.0\r\nHost: h\r\nIf-None-Match: W/"a", *',
    b"POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/json; a=b\r\nA2A-Version: 1.0.3",
    b"GET /tasks?a=b HTTP/1.1\r\nHost: h\r\nX-Protolink-Request-ID: a\r\nExpect: 100-continue",
]


def _rpc(method: str, **params: Any) -> tuple[str, Any]:
    return "/", {"jsonrpc": "2.0", "id": CALL, "method": method, "params": params}


CALLS: list[tuple[str, Any]] = [
    ("/tasks/", NATIVE[0]),
    ("/tasks/", {"id": 5, "messages": [NATIVE[3]], "artifacts": [NATIVE[5]], "created_at": "x"}),
    ("/tasks/stream", {"id": "s", "messages": [{"role": "user", "parts": [NATIVE[4]]}]}),
    ("/tasks/cancel", {"id": "t", "reason": "r", "metadata": {}}),
    ("/state/reset", {"session_id": "s", "stores": ["conversation"], "metadata": {}}),
    ("/llm/history/compact", {"session_id": "s", "max_messages": 2}),
    _rpc("SendMessage", message=message("hi"), configuration={"historyLength": 1}, tenant="t"),
    _rpc("SendStreamingMessage", message=message("hi"), metadata={"a": [1]}),
    _rpc("GetTask", id="t", historyLength=2),
    _rpc("ListTasks", status="TASK_STATE_WORKING", statusTimestampAfter="2026-01-01T00:00:00.5Z"),
    _rpc("ListTasks", pageSize=5, pageToken="5-t", includeArtifacts=True),
    _rpc("CancelTask", id="t", metadata={"reason": "r"}),
]


def _authenticate(environ: dict[str, Any]) -> str | None:
    return None if environ["REQUEST_METHOD"] == "GET" else "ann"


_agent = Agent(AgentCard("fuzzed", "answers", "http://fuzzed.test"), authenticate=_authenticate)
_agent.infer(lambda prompt: "answer")
_application = _agent.wsgi_app(a2a=True)


def _answer(environ: dict[str, Any]) -> int:
    """Have a request answered; whatever it holds, it is not the agent that fails."""
    statuses: list[str] = []
    pieces = _application(environ, lambda status, headers: statuses.append(status))
    try:
        answer = b"".join(pieces)
    finally:
        getattr(pieces, "close", lambda: None)()
    assert not statuses[0].startswith("5"), statuses[0]
    assert b"-32603" not in answer, answer
    return 0


def _answer_head(data: bytes) -> int:
    head = http1.parse_head(data)
    return _answer(http1.environ_of(head, io.BytesIO(), ("h", 1), "c", "http"))


def _answer_call(call: tuple[str, bytes]) -> int:
    path, body = call
    return _answer(
        {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": path,
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_A2A_VERSION": "1.0",
            "wsgi.input": io.BytesIO(body),
        }
    )


def _make_call(chance: random.Random) -> tuple[str, bytes]:
    path, value = chance.choice(CALLS)
    if chance.random() < 0.3:
        return path, mutated([json.dumps(value).encode()], chance)
    return path, json.dumps(mutated_json([value], chance)).encode()


HEAD = Decoder("hosted head", lambda chance: mutated(HEADS, chance), _answer_head, (RefusedError,))
CALLED = Decoder("hosted call", _make_call, _answer_call, ())


# ---- long runs of one byte ---------------------------------------------------------------------

_RUNS = (b" ", b"\t", b"\r", b"\n", b"0", b"9", b"a", b"Z", b".", b"-", b",", b";", b":")
_RUNS_OF_HEADS = (*_RUNS, b"/", b"%", b"&", b"=", b"[", b'"', b"\\", b"@", b"\xff")
# What no header, number, timestamp or address ends with: what fits so far is tried otherwise.
_END = "\x01"


def heads_with_runs(size: int) -> Iterator[bytes]:
    """Give each head with a run at each place where something begins, ended well and badly."""
    for head in HEADS:
        places = [at + 1 for at, byte in enumerate(head) if byte in b' :/?="[;,%'] + [len(head)]
        for at in places:
            for run in _RUNS_OF_HEADS:
                yield head[:at] + run * size + head[at:]
                yield head[:at] + run * size + _END.encode() + head[at:]


def calls_with_runs(size: int) -> Iterator[tuple[str, bytes]]:
    """Give each call with a run in each of its texts, behind what stands there."""
    for path, value in CALLS:
        for run in _RUNS:
            for changed in _with_runs(value, run.decode() * size):
                yield path, json.dumps(changed).encode()


def _with_runs(value: Any, run: str) -> Iterator[Any]:
    if isinstance(value, str):
        yield value + run + _END
        yield value[:-1] + run + _END
    elif isinstance(value, dict):
        for name, member in value.items():
            for changed in _with_runs(member, run):
                yield {**value, name: changed}
    elif isinstance(value, list):
        for at, item in enumerate(value):
            for changed in _with_runs(item, run):
                yield [*value[:at], changed, *value[at + 1 :]]
