"""The operations that agents and registries offer, as data.

Source:
    ProtoLink, Client and transport reference, "Built-in Request Specs"; wire/protolink.md 2.
    Submitting a task may be retried here, as the document says and 0.8.3 does not: every attempt
    carries one idempotency key, by which the peer recognises it (design.md 4).
"""

from __future__ import annotations

from typing import Any

from protolink_sync.errors import ModelError
from protolink_sync.models import (
    AgentCard,
    ClientRequestSpec,
    HistoryCompactionResult,
    StateOperationResult,
    Task,
)

__all__ = [
    "AGENT_CARD_REQUEST",
    "COMPACT_HISTORY_REQUEST",
    "COMPACT_STATE_REQUEST",
    "DESCRIBE_STATE_REQUEST",
    "REGISTRY_DISCOVER_REQUEST",
    "REGISTRY_HEARTBEAT_REQUEST",
    "REGISTRY_REGISTER_REQUEST",
    "REGISTRY_UNREGISTER_REQUEST",
    "RESET_STATE_REQUEST",
    "TASK_CANCEL_REQUEST",
    "TASK_REQUEST",
    "TASK_STREAM_REQUEST",
]


def _answered_task(value: Any) -> Task:
    """Return the task of an answer.

    A task that is read from elsewhere may leave its state out. An agent always writes it: an object
    without it is something else, the error of a gateway, say.
    """
    if isinstance(value, dict) and value.get("state") is None:
        raise ModelError("the answer is no task: it has no state @ $", path="$")
    return Task.from_dict(value)


TASK_REQUEST = ClientRequestSpec(
    "send_task",
    "/tasks/",
    "POST",
    _answered_task,
    idempotent=True,
)
"""Send a task and get it back when the agent is done with it."""

TASK_STREAM_REQUEST = ClientRequestSpec("send_task_stream", "/tasks/stream", "POST")
"""Send a task and get the events of the work on it. A stream is never repeated."""

TASK_CANCEL_REQUEST = ClientRequestSpec(
    "cancel_task",
    "/tasks/cancel",
    "POST",
    _answered_task,
    channel="control",
    idempotent=True,
)
"""Ask the agent to stop a task."""

COMPACT_HISTORY_REQUEST = ClientRequestSpec(
    "compact_history",
    "/llm/history/compact",
    "POST",
    HistoryCompactionResult.from_dict,
    channel="control",
)
"""Shorten the history of the agent's language model."""

DESCRIBE_STATE_REQUEST = ClientRequestSpec(
    "describe_state",
    "/state/describe",
    "POST",
    StateOperationResult.from_dict,
    channel="control",
    idempotent=True,
)
"""Look at the state of the agent."""

RESET_STATE_REQUEST = ClientRequestSpec(
    "reset_state",
    "/state/reset",
    "POST",
    StateOperationResult.from_dict,
    channel="control",
)
"""Make the agent forget state."""

COMPACT_STATE_REQUEST = ClientRequestSpec(
    "compact_state",
    "/state/compact",
    "POST",
    StateOperationResult.from_dict,
    channel="control",
)
"""Shorten the conversations that the agent keeps."""

AGENT_CARD_REQUEST = ClientRequestSpec(
    "get_agent_card",
    "/.well-known/agent.json",
    "GET",
    AgentCard.from_dict,
    "none",
    idempotent=True,
)
"""Get the card of the agent."""

REGISTRY_REGISTER_REQUEST = ClientRequestSpec("register", "/agents/", "POST")
"""Enter an agent's card in a registry."""

REGISTRY_UNREGISTER_REQUEST = ClientRequestSpec("unregister", "/agents/", "DELETE", idempotent=True)
"""Take an agent out of a registry, by its address."""

REGISTRY_HEARTBEAT_REQUEST = ClientRequestSpec(
    "heartbeat", "/agents/heartbeat", "POST", idempotent=True
)
"""Tell a registry that an agent is alive."""

REGISTRY_DISCOVER_REQUEST = ClientRequestSpec(
    "discover",
    "/agents/",
    "GET",
    AgentCard.from_list,
    "query_params",
    idempotent=True,
)
"""Get the cards of the agents that fit a filter."""
