"""The run context that an agent leaves in the metadata of every task it executes."""

from __future__ import annotations

from typing import Any

from protolink_sync.models import Task

__all__ = ["enter_run", "session_of"]


def enter_run(task: Task, agent_name: str) -> None:
    """Note run, session and agent in the metadata of a task; what is there already is kept.

    Members that would hold a default are left out, which is read as the same.

    Source:
        wire/protolink.md 14, "What the server adds to ``metadata``", "``run_context`` keys".
    """
    metadata = task.metadata
    context: dict[str, Any] = {
        "run_id": metadata.get("run_id", task.id),
        "session_id": metadata.get("session_id", task.id),
        "agent_chain": [agent_name],
    }
    given = metadata.get("run_context")
    if isinstance(given, dict):
        _take_over(context, given, agent_name)
    metadata["run_context"] = context
    metadata["run_id"] = context["run_id"]
    metadata["session_id"] = context["session_id"]


def _take_over(context: dict[str, Any], given: dict[str, Any], agent_name: str) -> None:
    """Keep what a caller's run context says; the chain of agents goes on with this one."""
    session_id = context["session_id"]
    context.update(given)
    if context["session_id"] is None:
        context["session_id"] = session_id
    chain = context["agent_chain"]
    if isinstance(chain, list) and chain[-1:] != [agent_name]:
        context["agent_chain"] = [*chain, agent_name]


def session_of(task: Task) -> str:
    """Return the conversation that a task belongs to: that of its metadata, else its own."""
    return str(task.metadata.get("session_id", task.id))
