"""What all contenders send and receive: always the same, in the form of the wire.

This module is read by the peers' interpreter too: standard library only.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

__all__ = [
    "A2A_EVENTS",
    "A2A_TEXT",
    "PACED",
    "REQUEST_ID",
    "SIZES",
    "STREAMS",
    "a2a_card",
    "a2a_events",
    "a2a_task",
    "event",
    "event_in_lines",
    "events",
    "final_event",
    "paced_events",
    "stream_task",
    "task",
]

_LINE = 'The quick brown fox said "hello" to the lazy dog, twice, and left.\n'
_TIMESTAMP = "2026-01-01T00:00:00.000000+00:00"

# Name -> messages, parts a message, characters a part.
SIZES = {
    "small": (1, 1, 600),  # about 1 KB
    "big": (64, 4, 3900),  # about 1 MB
    "nested": (100, 3, 60),  # many small objects: what models cost, not what text costs
}

# Name -> events before the last one, characters an event.
STREAMS = {
    "10k": (10_000, 30),
    "1mb": (100, 1_000_000),
    "event256k": (1, 256 * 1024),
    "event1m": (1, 1024 * 1024),
    "lines256k": (1, 256 * 1024),  # in lines of ten characters
    "lines1m": (1, 1024 * 1024),
}

PACED = (20, 0.01)  # events before the last one, seconds between two

# Stands for the id of a request, which a server puts in its place: both have the same length.
REQUEST_ID = "0" * 32


def _text(characters: int) -> str:
    return (_LINE * (characters // len(_LINE) + 1))[:characters]


def task(size: str) -> dict[str, Any]:
    """Return a new task of a size of :data:`SIZES`.

    >>> len(task("big")["messages"])
    64
    """
    messages, parts, characters = SIZES[size]
    text = _text(characters)
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


def stream_task(kind: str) -> dict[str, Any]:
    """Return the task that asks for a stream: gRPC has no path that could name it."""
    value = task("small")
    value["metadata"]["stream"] = kind
    return value


def event(characters: int, **more: Any) -> bytes:
    """Return one event in its envelope."""
    return _envelope({**_event("task_llm_stream"), "content": _text(characters), **more}, False)


def event_in_lines(characters: int) -> bytes:
    """Return one event in its envelope, with a list of which each item has a line of its own."""
    items = [1_234_567] * (characters // 10)
    return _envelope({**_event("task_llm_stream"), "content": items}, False, indent=1)


def final_event() -> bytes:
    """Return the event that ends a stream, in its envelope."""
    return _envelope(
        {**_event("task_status_update"), "new_state": "completed", "final": True}, True
    )


def events(kind: str) -> Iterator[bytes]:
    """Return the events of a stream of :data:`STREAMS`, the last one included."""
    count, characters = STREAMS[kind]
    # One object for all that are large: a server keeps it once.
    make = event_in_lines if kind.startswith("lines") else event
    large = make(characters) if characters > 1000 else b""
    for number in range(count):
        yield large or event(characters, index=number)
    yield final_event()


def paced_events() -> Iterator[bytes]:
    """Return events at an even pace, each with the time at which it was made."""
    count, pause = PACED
    due = time.monotonic()
    for _ in range(count):
        yield event(30, sent_ns=time.monotonic_ns())
        due += pause
        time.sleep(max(0.0, due - time.monotonic()))
    yield final_event()


def _event(kind: str) -> dict[str, Any]:
    return {
        "type": kind,
        "task_id": "task_20260101000000_0123abcd",
        "metadata": {},
        "timestamp": _TIMESTAMP,
        "final": False,
    }


def _envelope(result: dict[str, Any], final: bool, indent: int | None = None) -> bytes:
    told = {"id": REQUEST_ID, "ok": True, "result": result, "final": final}
    return json.dumps(told, indent=indent).encode()


A2A_TEXT = _text(600)  # a call of about 1 KB
A2A_EVENTS = 10_000  # before the last one


def a2a_card(url: str) -> dict[str, Any]:
    """Return the card of an A2A agent that is called at an address."""
    interface = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    return {
        "name": "canned",
        "description": "answers from prebuilt bytes",
        "version": "1",
        "capabilities": {"streaming": True},
        "skills": [],
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "supportedInterfaces": [interface],
    }


def a2a_task() -> dict[str, Any]:
    """Return what an A2A agent answers: a task with one artifact."""
    return {
        "id": "t",
        "contextId": "c",
        "status": {"state": "TASK_STATE_COMPLETED", "timestamp": "2026-01-01T00:00:00.000Z"},
        "artifacts": [{"artifactId": "a", "parts": [{"text": A2A_TEXT}]}],
    }


def a2a_events(count: int) -> Iterator[dict[str, Any]]:
    """Return the results on an A2A stream: a task, pieces of an artifact, the last status."""
    where = {"taskId": "t", "contextId": "c"}
    yield {"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}}
    for number in range(count - 1):
        artifact = {"artifactId": "a", "parts": [{"text": f"{_text(20)}{number}"}]}
        yield {"artifactUpdate": {**where, "artifact": artifact, "append": True}}
    yield {"statusUpdate": {**where, "status": {"state": "TASK_STATE_COMPLETED"}}}
