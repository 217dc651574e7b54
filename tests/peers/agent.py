"""A real protolink 0.8.3 agent, run by the Python of :mod:`tests.peers.environment`.

It prints one line ``READY <url>`` and serves until its standard input closes.

What it does with a task is told by the first word of the task's last text, the rest of the text
being the argument:

==================  ===========================================================================
``echo TEXT``       complete with TEXT
``count [SECONDS]`` wait, then tell how often this task id was executed and how it came
``wait [SECONDS]``  stay in ``working``, then complete; can be cancelled
``need``            ask for input
``fail [TEXT]``     end the task as failed
``raise [TEXT]``    let an exception out of the handler
``big BYTES``       complete with an answer of that size
``artifacts``       two artifacts and no message
``allparts``        one agent message with a part of every type
``back``            complete with the task as it arrived, as a JSON part
``many N``          (stream) N progress events, at once
``slow N [GAP]``    (stream) N progress events with pauses
``nested``          (stream) an event with a ``final`` of its own in the middle
``untyped``         (stream) an event without type that says ``final``, then another
``nofinal``         (stream) events, then no final one
==================  ===========================================================================

A streaming peer answers the words of the first group in its streams too. A task whose last item
is an ``infer`` or ``tool_call`` part takes protolink's default way, with a mock model.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import sys
from collections import Counter

from protolink.agents import Agent
from protolink.core.agent_card import AgentCapabilities, AgentSkill
from protolink.core.events import (
    TaskArtifactUpdateEvent,
    TaskLLMStreamEvent,
    TaskProgressEvent,
    TaskStatusUpdateEvent,
)
from protolink.discovery.registry import Registry
from protolink.llms import MockLLM
from protolink.models import AgentCard, Artifact, Message, Part
from protolink.security.auth import APIKeyAuth, BasicAuth, BearerTokenAuth
from protolink.security.tls import TLSConfig
from protolink.tools import Tool
from protolink.transport import (
    GRPCTransport,
    HTTPTransport,
    SSEJSONRPCTransport,
    WebSocketTransport,
)
from protolink.transport.config import TransportConfig, TransportLimits

TRANSPORTS = {
    "http": (HTTPTransport, "http"),
    "sse": (SSEJSONRPCTransport, "http"),
    "websocket": (WebSocketTransport, "ws"),
    "grpc": (GRPCTransport, "grpc"),
}

STEPS = {"many", "slow", "nested", "untyped", "nofinal"}
ACTS = {"echo", "count", "wait", "need", "fail", "raise", "big", "artifacts", "allparts", "back"}
EXECUTIONS: Counter[str] = Counter()


def last_text(task):
    item = task.get_last_item()
    content = item.parts[-1].content if item is not None and item.parts else ""
    return content if isinstance(content, str) else ""


def every_part():
    return [
        Part.text("plain"),
        Part.json({"nested": {"list": [1, 2.5, None, True]}}),
        Part.tool_call(tool_name="add", args={"a": 1, "b": 2}, call_id="call-1"),
        Part.tool_output(call_id="call-1", result=3),
        Part.infer(prompt="who?", output_schema={"type": "object"}),
        Part.infer_output(content="somebody"),
        Part.route("quality", reason="ready", confidence=0.5),
        Part.decision("yes"),
        Part.error("E1", "went wrong", retryable=True),
        Part.status("working", "on it"),
    ]


class TestAgent(Agent):
    """Behaves as the text says; counts how often each task id was executed."""

    async def act(self, task):
        """Carry out the task's text; return the task, or None when the text is no word of ours."""
        word, _, rest = last_text(task).partition(" ")
        EXECUTIONS[task.id] += 1
        if word == "echo":
            return task.complete(rest)
        if word == "count":
            await asyncio.sleep(float(rest or 0))
            return task.complete(f"{EXECUTIONS[task.id]} executions, {len(task.messages)} messages")
        if word == "wait":
            task.begin()
            await asyncio.sleep(float(rest or 30))
            return task.complete("waited")
        if word == "need":
            return task.require_input(Message.agent("which city?"))
        if word == "fail":
            return task.fail(rest or "no reason")
        if word == "raise":
            raise RuntimeError(rest or "boom")
        if word == "big":
            return task.complete("x" * int(rest))
        if word == "artifacts":
            task.begin()
            task.add_artifact(Artifact(name="a", media_type="text/plain").add_text("first"))
            task.add_artifact(Artifact(name="b", media_type="text/plain").add_text("second"))
            return task.update_state("completed")
        if word == "allparts":
            task.begin()
            task.add_message(Message(role="agent", parts=every_part()))
            return task.update_state("completed")
        if word == "back":
            arrived = task.to_dict()
            task.begin()
            task.add_message(Message(role="agent", parts=[Part.json(arrived)]))
            return task.update_state("completed")
        return None

    async def handle_task(self, task):
        done = await self.act(task)
        return await super().handle_task(task) if done is None else done

    async def handle_task_streaming(self, task):
        word, _, rest = last_text(task).partition(" ")
        if word in STEPS:
            task.begin()
            yield self.status(task, "submitted", "working")
            async for event in self.steps(task, word, rest):
                yield event
            if word != "nofinal":
                task.complete("done")
                yield self.status(task, "working", "completed", final=True)
            return
        if word in ACTS:
            yield self.status(task, "submitted", "working")
            await self.act(task)
            for artifact in task.artifacts:
                yield TaskArtifactUpdateEvent(task_id=task.id, artifact=artifact)
            yield self.status(task, "working", task.state.value, final=True)
            return
        async for event in super().handle_task_streaming(task):
            yield event

    async def steps(self, task, word, rest):
        if word == "nested":
            yield TaskLLMStreamEvent(
                task_id=task.id,
                agent_name=self.card.name,
                llm_event_type="llm_final",
                step=1,
                content="hi",
                final=True,
            )
            yield TaskProgressEvent(task_id=task.id, progress=90, message="after the nested final")
            return
        if word == "untyped":
            yield {"final": True}
            yield TaskProgressEvent(task_id=task.id, progress=90, message="after the end")
            return
        count, _, gap = (rest or "3").partition(" ")
        for number in range(int(count)):
            yield TaskProgressEvent(task_id=task.id, progress=0, message=f"step {number}")
            if word == "slow":
                await asyncio.sleep(float(gap or 0.1))

    @staticmethod
    def status(task, before, after, *, final=False):
        metadata = {"task": task.to_dict()} if final else {}
        return TaskStatusUpdateEvent(
            task_id=task.id,
            previous_state=before,
            new_state=after,
            final=final,
            metadata=metadata,
        )


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=[*TRANSPORTS, "registry"])
    parser.add_argument(
        "--over", choices=TRANSPORTS, default="http", help="transport of the registry"
    )
    parser.add_argument("--a2a", action="store_true", help="offer A2A beside the native protocol")
    parser.add_argument("--answer", default="the mock model says hi", help="the mock model's text")
    parser.add_argument("--api-key", help="accept this key only")
    parser.add_argument("--bearer", help="accept tokens signed with this secret (HS256) only")
    parser.add_argument("--basic", help="accept this USER:PASSWORD only")
    parser.add_argument("--cert", help="PEM file; turns TLS on, with --key")
    parser.add_argument("--key", help="PEM file")
    parser.add_argument("--ca", help="PEM file; ask clients for a certificate of this authority")
    parser.add_argument("--limit", action="append", default=[], help="NAME=NUMBER of the limits")
    parser.add_argument("--setting", action="append", default=[], help="NAME=SECONDS of the config")
    return parser.parse_args()


def numbers(pairs, kind):
    return {name: kind(value) for name, _, value in (pair.partition("=") for pair in pairs)}


def authenticator(options):
    if options.api_key:
        return APIKeyAuth({options.api_key: ["all"]})
    if options.bearer:
        return BearerTokenAuth(options.bearer)
    if options.basic:
        user, _, password = options.basic.partition(":")
        return BasicAuth({user: password})
    return None


def transport(options, port):
    cls, scheme = TRANSPORTS[options.over if options.kind == "registry" else options.kind]
    settings = {
        "authenticator": authenticator(options),
        "config": TransportConfig(
            limits=TransportLimits(**numbers(options.limit, int)),
            **numbers(options.setting, float),
        ),
    }
    if options.cert:
        scheme += "s"
        settings["tls"] = TLSConfig(
            certfile=options.cert,
            keyfile=options.key,
            cafile=options.ca,
            require_client_cert=options.ca is not None,
        )
    if issubclass(cls, HTTPTransport):
        settings |= {"log_level": "critical", "access_log": False}
    return cls(url=f"{scheme}://127.0.0.1:{port}", **settings)


def agent(options, served):
    card = AgentCard(
        name=f"{options.kind}_agent",
        description="does what the text of a task says",
        url=served.url,
        transport=served.transport_type,
        capabilities=AgentCapabilities(streaming=served.supports_streaming, has_llm=True),
        skills=[AgentSkill(id="add", description="adds two numbers")],
    )
    return TestAgent(
        card=card,
        transport=served,
        llm=MockLLM(default_response=options.answer),
        tools=[Tool.from_callable(add)],
        state=["conversation"],
        authenticator=served.authenticator,
        verbosity=0,
        a2a=options.a2a,
    )


def main():
    options = arguments()
    # Kept, so that the system gives the port to nobody else before the agent listens.
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    served = transport(options, held.getsockname()[1])
    if options.kind == "registry":
        Registry(transport=served, verbosity=0).start(background=True)
    else:
        agent(options, served).start(background=True, register=False)
    print("READY", served.url, flush=True)
    sys.stdin.read()
    # At once: a graceful stop waits five seconds for a WebSocket client that left its connection.
    os._exit(0)


main()
