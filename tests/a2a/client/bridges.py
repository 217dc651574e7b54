"""Agents for ``AgentClient(a2a=True)``: of A2A only, of ProtoLink only, of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from protolink_sync.models import Message, Task
from tests.a2a.scripted import ScriptedAgent, card, done, reply

NATIVE = "/.well-known/agent.json"
STANDARD = "/.well-known/agent-card.json"

NATIVE_CARD = {"name": "native", "description": "speaks ProtoLink", "url": "{{base}}"}
# The id stands for whatever task was sent.
NATIVE_TASK = reply('{"id": "{{task_id}}", "state": "completed"}')
MISSING = reply("Not Found", status=404)


def a2a_only(agent_of: Callable[..., ScriptedAgent], *answers: Any, **words: Any) -> ScriptedAgent:
    """Start an agent that has an A2A card only."""
    routes = {f"GET {NATIVE}": [[MISSING]], **words.pop("routes", {})}
    return agent_of(*(answers or (done(),)), routes=routes, **words)


def native_agent(
    agent_of: Callable[..., ScriptedAgent],
    *,
    card: Any = None,
    native_card: Any = None,
    routes: Mapping[str, Any] | None = None,
    **words: Any,
) -> ScriptedAgent:
    """Start an agent that has a ProtoLink card; an A2A card only if one is given."""
    own = {
        f"GET {NATIVE}": [[native_card or reply(NATIVE_CARD)]],
        "POST /tasks/": [[NATIVE_TASK]],
        "POST /tasks/cancel": [[NATIVE_TASK]],
        **(routes or {}),
    }
    return agent_of(card=card, routes=own, **words)


def asked(text: str = "hi", **members: Any) -> Task:
    """Return a task with one message of the user."""
    task = Task.create(Message.user(text))
    for name, value in members.items():
        setattr(task, name, value)
    return task


def paths(agent: ScriptedAgent) -> list[str]:
    """Return what came, in order: method and path of each request."""
    return [f"{request.method} {request.path}" for request in list(agent.requests)]


AUTO = [f"GET {NATIVE}", f"GET {STANDARD}", "POST /rpc"]
EXPLICIT = AUTO[1:]

CARD = card()
