"""How the tasks of ``AgentClient.map`` are sent: by which executor, for how long, how often."""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import attrs

from protolink_sync._deadline import CancelToken, seconds
from protolink_sync.client._executors import Threads, call_elsewhere, packed
from protolink_sync.models import Task

if TYPE_CHECKING:
    from protolink_sync.client.agent import AgentClient, Protocol

__all__ = ["Sender", "sender_for"]


@attrs.frozen
class Sender:
    """How tasks are sent.

    Args:
        submit: Begins a call: gets address, task and budget; the token is in it.
        timeout: Budget of a task, its pauses included.
        again_for: Seconds in which a task that was refused may be sent again; 0 for never.
        patience: Seconds for which a task that was not sent waits for an agent that wants to be
            left alone.
        ends_at_once: Whether the token ends calls that run.
    """

    submit: Callable[[str, Task, float], Future[Any]]
    timeout: float
    again_for: float
    patience: float
    ends_at_once: bool


def sender_for(
    client: AgentClient,
    executor: Executor | None,
    protocol: Protocol,
    timeout: float | None,
    token: CancelToken,
) -> Sender:
    """Return how a client sends tasks with an executor; see ``AgentClient.map``."""
    client._check_protocol(protocol)
    budget = client._timeout if timeout is None else seconds("timeout", timeout)
    # A2A has no key by which an agent recognises what it gets a second time.
    may_repeat = not client.a2a or protocol == "protolink"
    ttl = client.transport.config.idempotency_ttl
    again_for = ttl if may_repeat else 0.0
    # As long as one that was refused and may be sent again, be the agent's pause ever so long.
    patience = max(client._retry.max_retry_after, min(budget, ttl))
    pool = Threads() if executor is None else executor
    if _is_here(pool):
        return Sender(
            lambda url, task, left: pool.submit(
                client.send_task, url, task, protocol=protocol, timeout=left, cancel=token
            ),
            budget,
            again_for,
            patience,
            ends_at_once=True,
        )
    run, packet = os.urandom(16).hex(), packed(client)
    return Sender(
        lambda url, task, left: pool.submit(
            call_elsewhere, run, packet, url, task, protocol=protocol, timeout=left
        ),
        budget,
        again_for,
        patience,
        ends_at_once=False,
    )


def _is_here(pool: Executor) -> bool:
    """Return whether an executor's calls share our memory, and so can have client and token."""
    if not isinstance(pool, Executor):
        raise TypeError(f"executor is a {type(pool).__name__}, must be a concurrent.futures one")
    elsewhere = getattr(concurrent.futures, "InterpreterPoolExecutor", ())
    return isinstance(pool, (Threads, ThreadPoolExecutor)) and not isinstance(pool, elsewhere)
