"""Measuring one case: every contender in its own process, round after round."""

from __future__ import annotations

import contextlib
from typing import Any

from benchmarks.cases import Case
from benchmarks.children import Child
from benchmarks.interpreters import start_worker

__all__ = ["measure"]

Results = dict[str, list[dict[str, Any]]]


def measure(case: Case, url: str, *, rounds: int, seconds: float) -> tuple[Results, dict[str, str]]:
    """Measure a case.

    The rounds go A B C, A B C: whatever else the machine does hits all contenders alike. One
    round before them warms up and does not count.

    Args:
        case: What is measured.
        url: Of the canned server.
        rounds: How many rounds count.
        seconds: How long a contender is measured in one round.

    Returns:
        The figures of each contender, round by round (one round that says why, of one that
        failed), and for those that cannot be measured here, the reason.
    """
    results: Results = {}
    missing: dict[str, str] = {}
    order = {
        "job": case.job,
        "of": case.of,
        "how": case.how,
        "with": [seconds * case.stretch, *case.extra],
    }
    with contextlib.ExitStack() as running:
        workers: dict[str, Child] = {}
        for name in (case.floor, *case.others):
            worker = start_worker(name, url)
            if isinstance(worker, str):
                missing[name] = worker
            else:
                workers[name] = running.enter_context(worker)
        for number in range(rounds + 1):
            for name, worker in list(workers.items()):
                answer = worker.ask(order)
                if "failed" in answer:
                    results[name] = [answer]
                    del workers[name]
                elif number:
                    results.setdefault(name, []).append(answer)
    return results, missing
