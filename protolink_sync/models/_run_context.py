"""The run context: what travels with a task about session, budget and origin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from protolink_sync.models._json import jsonable
from protolink_sync.models._time import utc_now

__all__ = ["run_metadata"]

_NO_BUDGET: dict[str, Any] = {
    "max_steps": None,
    "max_llm_calls": None,
    "max_tool_calls": None,
    "max_runtime_seconds": None,
    "max_input_tokens": None,
    "max_output_tokens": None,
}
# What the peer also puts beside run_context, for its older readers.
_MIRRORED = ("session_id", "trace_id", "workspace_uri", "parent_run_id", "cancel_reason")


def run_metadata(
    task_id: str,
    *,
    session_id: str | None,
    budget: Any,
    context: Any,
) -> dict[str, Any]:
    """Return the task metadata that carries a run context; empty if nothing is given.

    Args:
        task_id: The run's id, unless the context has one.
        session_id: Conversation that the run belongs to; wins over that of the context.
        budget: Limits of the run, as a mapping or an object with ``to_dict``; wins likewise.
        context: The run context, as a mapping or an object with ``to_dict``.

    Raises:
        TypeError: Budget or context is neither.

    Source:
        wire/protolink.md 14, ``run_context`` keys and ``Task.create``.
    """
    if session_id is None and budget is None and context is None:
        return {}
    run: dict[str, Any] = {
        "run_id": task_id,
        "session_id": None,
        "trace_id": None,
        "workspace_uri": None,
        "parent_run_id": None,
        "agent_chain": [],
        "permissions": {},
        "budget": None,
        "canceled": False,
        "cancel_reason": None,
        "metadata": {},
        "created_at": utc_now(),
    }
    run.update(_object("context", context))
    if session_id is not None:
        run["session_id"] = session_id
    limits = _object("budget", run["budget"] if budget is None else budget)
    run["budget"] = {**_NO_BUDGET, "metadata": {}, **limits}

    metadata = {"run_context": run, "run_id": run["run_id"]}
    metadata.update((name, run[name]) for name in _MIRRORED if run[name] is not None)
    if run["canceled"]:
        metadata["canceled"] = True
    return metadata


def _object(what: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) and not hasattr(value, "to_dict"):
        raise TypeError(
            f"{what} is a {type(value).__name__}; give a mapping or an object with to_dict()"
        )
    copied: dict[str, Any] = jsonable(value)
    return copied
