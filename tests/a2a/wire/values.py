"""Small A2A values for tests, in both dialects' forms."""

from __future__ import annotations

from typing import Any

from protolink_sync.a2a.wire import StreamEvent, WireDialect, dialect_of

V1_0 = dialect_of(WireDialect.V1_0)
V0_3 = dialect_of(WireDialect.V0_3)


def message(
    text: str = "hi", role: str = "ROLE_AGENT", id: str = "m", **more: Any
) -> dict[str, Any]:
    return {"messageId": id, "role": role, "parts": [{"text": text}], **more}


def status(state: str = "WORKING", said: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"state": f"TASK_STATE_{state}", **({"message": said} if said else {})}


def task(state: str = "WORKING", said: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"id": "t", "contextId": "c", "status": status(state, said), **more}


def artifact(*texts: str, id: str = "a", **more: Any) -> dict[str, Any]:
    return {"artifactId": id, "parts": [{"text": text} for text in texts], **more}


def event(value: dict[str, Any]) -> StreamEvent:
    return V1_0.parse_event(value)


def task_event(state: str = "WORKING", **more: Any) -> StreamEvent:
    return event({"task": task(state, **more)})


def moved(state: str, said: dict[str, Any] | None = None, **more: Any) -> StreamEvent:
    update = {"taskId": "t", "contextId": "c", "status": status(state, said), **more}
    return event({"statusUpdate": update})


def brought(*texts: str, id: str = "a", artifact_members: Any = (), **more: Any) -> StreamEvent:
    inside = artifact(*texts, id=id, **dict(artifact_members))
    return event({"artifactUpdate": {"taskId": "t", "contextId": "c", "artifact": inside, **more}})


def moved_0_3(state: str, final: bool) -> StreamEvent:
    update = {"kind": "status-update", "taskId": "t", "contextId": "c", "final": final}
    return V0_3.parse_event({**update, "status": {"state": state}})
