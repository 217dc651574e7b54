"""Calls that are traced: ``python -m tests.transport.traced`` prints spans and headers as JSON.

In a process of its own: a tracer provider is set once, and would keep the spans of other tests.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Iterator
from typing import Any

from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from protolink_sync import (
    AgentCapabilities,
    AgentCard,
    AgentClient,
    ProtoLinkError,
    RetryPolicy,
    Task,
    TransportConfig,
)
from protolink_sync.server import Agent
from protolink_sync.transport import HTTPTransport

EXPORTER = InMemorySpanExporter()


class Seeing(Agent):
    """Keeps the headers of each request, and makes a span of its own."""

    def __init__(self, url: str) -> None:
        self.seen: list[dict[str, Any]] = []
        self.may_end = threading.Event()
        card = AgentCard("seeing", "for tests", url)
        card.capabilities = AgentCapabilities(streaming=True)
        super().__init__(card, authenticate=self.see)

    def see(self, environ: dict[str, Any]) -> str:
        self.seen.append({name: environ.get(name) for name in ("HTTP_TRACEPARENT", "HTTP_BAGGAGE")})
        return "ann"

    def handle_task(self, task: Task) -> Task:
        with trace.get_tracer("agent").start_as_current_span("handling"):
            return task.complete("done")

    def handle_task_streaming(self, task: Task) -> Iterator[Any]:
        yield {"type": "task_progress", "progress": 50, "message": "half"}
        self.may_end.wait(30)
        task.complete("done")


def spans() -> list[dict[str, Any]]:
    """Return the spans that have ended, and forget them."""
    found = [
        {
            "name": span.name,
            "kind": span.kind.name,
            "trace": f"{span.context.trace_id:032x}",
            "id": f"{span.context.span_id:016x}",
            "parent": None if span.parent is None else f"{span.parent.span_id:016x}",
            "status": span.status.status_code.name,
            "attributes": dict(span.attributes or {}),
            "all": span.to_json(),
        }
        for span in EXPORTER.get_finished_spans()
    ]
    EXPORTER.clear()
    return found


def main() -> None:
    """Make the calls and print what was seen of each."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(EXPORTER))
    trace.set_tracer_provider(provider)
    agent, found = Seeing("http://127.0.0.1"), {}
    context.attach(baggage.set_baggage("customer", "ann"))
    headers = {"X-Pass": "hush"}
    config = TransportConfig(retry=RetryPolicy(max_attempts=2, initial_backoff=0.0, jitter=0.0))
    with (
        agent.serve("http://127.0.0.1:0") as server,
        HTTPTransport(headers=headers, credentials="hush", config=config) as transport,
    ):
        client = AgentClient(transport)
        with trace.get_tracer("user").start_as_current_span("work"):
            client.send_task(server.url, Task.create("secret words"))
        found["call"] = {"spans": spans(), "seen": agent.seen[-1], "url": server.url}
        is_left = not trace.get_current_span().get_span_context().is_valid
        found["left"] = is_left
        with contextlib.suppress(ProtoLinkError):
            client.cancel_task(server.url, "unknown")
        found["refused"] = {"spans": spans()}
        with AgentClient("sse") as streaming:
            with streaming.send_task_streaming(server.url, Task.create("?")) as stream:
                next(stream)
                before = spans()
                agent.may_end.set()
                found["left"] = is_left and not trace.get_current_span().get_span_context().is_valid
                stream.result()
            found["stream"] = {"before": before, "seen": agent.seen[-1]}
    found["stream"]["spans"] = spans()
    with HTTPTransport(config=config) as transport, contextlib.suppress(ProtoLinkError):
        AgentClient(transport).get_agent_card("http://127.0.0.1:1")
    found["retried"] = {"spans": spans()}
    near = Seeing("runtime://near")
    with near.serve("runtime://near"), AgentClient("runtime") as client:
        client.send_task("runtime://near", Task.create("?"))
    found["near"] = {"spans": spans()}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
