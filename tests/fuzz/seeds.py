"""Good inputs: what real peers say, of every form the readers know."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

from protolink_sync.models import Artifact, Message, Part, Task
from tests.a2a.scripted import (
    artifact_update,
    card,
    message,
    old_card,
    sent,
    status_update,
    task,
)
from tests.cases.frames import write_frame

CALL = "0123456789abcdef0123456789abcdef"


def _native_task() -> dict[str, Any]:
    made = Task.create(Message.user("hi"))
    made.begin()
    made.messages.append(Message.agent("a"))
    made.artifacts.append(Artifact().add_text("text"))
    made.messages[-1].parts.append(Part("tool_call", {"tool_name": "t", "args": {"n": 1}}))
    return made.complete("done").to_dict()


NATIVE: list[Any] = [
    _native_task(),
    {"id": 5, "state": "odd", "messages": None, "metadata": {"a": [1, 2.5, None]}},
    {
        "name": "a",
        "description": "d",
        "url": "http://h",
        "capabilities": {"streaming": True, "x": 1},
        "skills": [{"id": "s", "description": "d", "tags": ["t"], "input_schema": {}}],
        "role": "worker",
        "security_schemes": {"k": {"type": "apiKey", "in": "header", "name": "X"}},
    },
    {
        "role": "agent",
        "parts": [{"type": "text", "content": "x"}],
        "timestamp": "2026-01-01T00:00Z",
    },
    {"type": "text", "content": {"a": 1}},
    {"artifact_id": "a", "parts": [], "metadata": {}, "created_at": None},
    {"task_id": "t", "reason": "r"},
    {"messages": [{"role": "user", "content": "x"}], "token_count": 5},
    {"type": "task_llm_stream", "content": "x", "llm_event_type": "llm_chunk", "final": False},
    {"type": "task_status_update", "new_state": "completed", "metadata": {"task": _native_task()}},
]

EVENTS: list[Any] = [
    {"id": CALL, "ok": True, "result": NATIVE[8], "final": False, "stream": True},
    {"id": CALL, "ok": True, "result": NATIVE[9], "final": True},
    {"id": CALL, "ok": False, "error": {"message": "no", "type": "ValueError"}},
    {"id": None, "ok": False, "error": "words"},
]

_A2A_TASK = task(
    "completed",
    "done",
    history=[message("one"), message("two", number=2)],
    artifacts=[{"artifactId": "a", "parts": [{"raw": "aGk=", "mediaType": "x/y"}, {"data": {}}]}],
    metadata={"k": 1},
)

A2A: list[Any] = [
    sent(_A2A_TASK),
    {"message": message("hello")},
    _A2A_TASK,
    task("working", "wait", old=True, history=[message("x", old=True)]),
    message("hello", old=True),
    status_update("working", "w"),
    status_update("completed", "w", old=True, final=True),
    artifact_update("x", append=True, lastChunk=True),
    artifact_update("x", old=True, append=True),
    {"tasks": [_A2A_TASK], "nextPageToken": "t", "pageSize": 1, "totalSize": 2},
    {"configs": [{"id": "c", "url": "http://h", "token": "t", "authentication": {}}]},
    {"kind": "message", "messageId": "m", "role": "agent", "parts": [{"kind": "file", "file": {}}]},
]

CARDS: list[Any] = [
    card(),
    card(
        securitySchemes={"b": {"httpAuthSecurityScheme": {"scheme": "bearer"}}},
        securityRequirements=[{"schemes": {"b": {"list": []}}}],
        provider={"organization": "o", "url": "http://o"},
        signatures=[{"protected": "x", "signature": "y"}],
    ),
    old_card(),
    old_card(
        additionalInterfaces=[{"url": "http://h/x", "transport": "JSONRPC"}],
        securitySchemes={"k": {"type": "apiKey", "in": "header", "name": "X"}},
        security=[{"k": []}],
    ),
]

RPC: list[Any] = [
    {"jsonrpc": "2.0", "id": CALL, "result": A2A[0]},
    {"jsonrpc": "2.0", "id": CALL, "error": {"code": -32001, "message": "no", "data": []}},
    {
        "jsonrpc": "2.0",
        "id": None,
        "error": {
            "code": -32602,
            "message": "no",
            "data": [
                {
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": "R",
                    "metadata": {},
                },
                {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [{}]},
            ],
        },
    },
]


def _chunked(body: bytes, size: int) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def _stream(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


SSE: list[bytes] = [
    b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in EVENTS),
    b"\xef\xbb\xbfevent: x\r\nid: 5\r\ndata: a\r\ndata: b\r\n\r\n: beat\r\n\r\ndata\r\n\r\n",
    _stream("retry: 10", "data:{}", "data: ", "", "data: x", "", ""),
    b"data: a\rdata: b\r\r:c\r\rdata:d\r\r",
    b"id: 1\nevent: e\ndata: \xff\xfe\n\n" + b"data: y\n" * 70 + b"\n",
]

_BODY = json.dumps(NATIVE[0]).encode()
_DEFLATED = zlib.compress(_BODY)
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

HTTP: list[bytes] = [
    _HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY),
    _HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + _chunked(_BODY, 100),
    b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + _HEAD + b"Connection: close\r\n\r\n" + _BODY,
    _HEAD
    + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    + _chunked(gzip.compress(_BODY, mtime=0), 50),
    _HEAD + b"Content-Encoding: deflate\r\nContent-Length: %d\r\n\r\n" % len(_DEFLATED) + _DEFLATED,
    b"HTTP/1.0 429 Slow\r\nRetry-After: 5\r\nX-A: a\r\n  b\r\nX-A: c\r\n\r\nno",
    b"HTTP/1.1 204 None\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    + _chunked(SSE[0], 77),
]

UPGRADES: list[bytes] = [
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: {accept}\r\n\r\n\x81\x02{}",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: x\r\n\r\n",
    b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno",
    b"HTTP/1.1 302 Found\r\nLocation: ws://elsewhere.test/\r\n\r\n",
]


def _frame(opcode: int, payload: bytes, **words: Any) -> bytes:
    return write_frame({"opcode": opcode, **words}, payload)


FRAMES: list[bytes] = [
    _frame(1, json.dumps(EVENTS[0]).encode()) + _frame(1, b"{}") + _frame(8, b"\x03\xe8bye"),
    _frame(1, b"ab", fin=False) + _frame(9, b"ping") + _frame(0, b"cd") + _frame(2, b"\0\1"),
    _frame(1, b"x" * 300) + _frame(10, b"") + _frame(1, b"y" * 70_000),
    _frame(1, b"masked", mask=True) + _frame(3, b"") + _frame(1, b"r", rsv1=True),
    _frame(1, b"lie", declared_len=5000),
]

REQUESTS: list[bytes] = [
    b"POST /tasks/ HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue",
    b"GET http://h/x?y=%20 HTTP/1.0\r\nConnection: keep-alive, x\r\nA_B: c",
]

ANSWERS: list[bytes] = [
    b"5",
    b"[1.5, 2e3]",
    b"```json\n[1, 2]\n```",
    b"\n```\r\n -0.5\r\n```\n",
    b"```\n7\n",
]

RETRY_AFTER: list[bytes] = [
    b"5",
    b"Thu, 01 Jan 1970 00:01:00 GMT",
    b"Thursday, 01-Jan-70 00:01:00 GMT",
    b"Thu Jan  1 00:01:00 1970",
    b"-1",
    b"1e5",
]
