"""What many calls of one client leave behind, with a real agent at the other end."""

from __future__ import annotations

from typing import Any

from benchmarks.bounds import Bound
from benchmarks.cases import OURS, PROTOLINK
from benchmarks.interpreters import start_worker, without_peers
from tests.peers import AgentProcess, CountingProxy

__all__ = ["BOUNDS", "CONTENDERS", "TITLE", "measure"]

TITLE = "many calls of one client to a real default agent, one after the other"
CONTENDERS = (OURS, PROTOLINK)
BOUNDS = (
    Bound(OURS, "failures", "=", 0),
    Bound(OURS, "connections", "=", 1),
    Bound(OURS, "descriptors", "=", 0),
    Bound(OURS, "growth_bytes", "<", 1024),
)

# protolink's client keeps a connection for each call and a default agent admits 100 of them: more
# calls would only wait and fail.
_MOST_CALLS = {PROTOLINK: 100}


def measure(url: str, *, calls: int) -> tuple[dict[str, list[dict[str, Any]]], dict[str, str]]:
    """Measure what the calls leave behind.

    Args:
        url: Of the canned server, which is not called.
        calls: How many calls count; those that warm up come first.

    Returns:
        As :func:`benchmarks.rounds.measure`, one round for each contender.
    """
    reason = without_peers()
    if reason:
        return {}, dict.fromkeys(CONTENDERS, reason)
    results: dict[str, list[dict[str, Any]]] = {}
    missing: dict[str, str] = {}
    for name in CONTENDERS:
        worker = start_worker(name, url)
        if isinstance(worker, str):
            missing[name] = worker
            continue
        # An agent of its own: what one client leaves open there must not disturb the next.
        with worker, AgentProcess("http") as agent, CountingProxy(agent.url) as proxy:
            order = {
                "job": "agent",
                "of": [proxy.url],
                "how": "growth",
                "with": [min(calls, _MOST_CALLS.get(name, calls))],
            }
            results[name] = [{**worker.ask(order), "connections": proxy.total}]
    return results, missing
