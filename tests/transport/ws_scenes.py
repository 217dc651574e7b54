"""What the tests of WebSocket share: steps of scripted peers, operations, a client."""

from __future__ import annotations

import json
from typing import Any

from protolink_sync.models import Message, Task
from protolink_sync.transport import WebSocketTransport
from tests.cases.server import ScriptedServer
from tests.transport.scenes import LIMIT, RECV, Step

ACCEPT: Step = {"op": "ws_accept"}
TAKE: Step = {"op": "ws_recv"}
UPGRADE = [RECV, ACCEPT]
BEGIN = [*UPGRADE, TAKE]
"""The upgrade, and the first message of the client."""

CONTINUATION, TEXT, BINARY, CLOSE_FRAME, PING, PONG = 0, 1, 2, 8, 9, 10


def frame(opcode: int, data: str = "", **words: Any) -> Step:
    return {"op": "ws_frame", "opcode": opcode, "data": data, **words}


def envelope(result: Any = "done", **members: Any) -> str:
    """Return an answer to the last message, as text; ``ok`` and ``id`` unless given."""
    told = {"ok": True, **members}
    if told["ok"]:
        told["result"] = result
    inner = json.dumps(told)[1:-1]
    return inner.join(("{", "}")) if "id" in members else '{"id":{{rpc_id}},' + inner + "}"


def answer(result: Any = "done", **members: Any) -> Step:
    return frame(TEXT, envelope(result, **members))


def event(number: Any, **members: Any) -> Step:
    """Return an event of a stream."""
    happened = {"type": "task_llm_stream", "content": str(number)}
    return answer(happened, **{"final": False, "stream": True, **members})


LAST = answer(None, final=True, stream=True)


def closing(code: int, reason: str = "") -> Step:
    return frame(CLOSE_FRAME, code.to_bytes(2, "big").decode("latin-1") + reason)


def transport(server: ScriptedServer | None = None, **settings: Any) -> WebSocketTransport:
    settings.setdefault("timeout", LIMIT)
    return WebSocketTransport(None if server is None else server.ws_base, **settings)


def streamed(client: WebSocketTransport, **words: Any) -> Any:
    """Open a stream of a new task at the client's own address."""
    assert client.url is not None
    return client.subscribe(client.url, Task.create(Message.user("hi")), **words)


def frames(server: ScriptedServer, number: int = 1) -> list[tuple[int, bytes]]:
    """Return what the nth connection sent, as opcodes and payloads."""
    return [(sent.opcode, sent.payload) for sent in server.connections[number - 1].frames]
