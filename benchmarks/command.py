"""The command: chooses cases, measures, prints, and says whether what must hold does."""

from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks import growth, report, rounds
from benchmarks.bounds import Bound
from benchmarks.cases import CASES, HTTP_SERVER
from benchmarks.children import Child
from benchmarks.interpreters import choose_peer_python

__all__ = ["main"]

_GROWTH = "growth"
_NAMES = (*CASES, _GROWTH)


def _above_zero(kind: Callable[[str], float]) -> Callable[[str], float]:
    def read(text: str) -> float:
        value = kind(text)
        if not value > 0:
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return value

    return read


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure protolink_sync beside its floors."
    )
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help=f"{', '.join(_NAMES)}; all when none is named"
    )
    parser.add_argument("--rounds", type=_above_zero(int), default=15, help="rounds that count")
    parser.add_argument(
        "--seconds", type=_above_zero(float), default=0.15, help="for one contender in one round"
    )
    parser.add_argument(
        "--calls", type=_above_zero(int), default=10_000, help="calls of the case growth"
    )
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write every figure")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a bound is missed")
    parser.add_argument(
        "--peer-python",
        metavar="PYTHON",
        help="interpreter that has the peers, or 'none'; by default the one the tests use",
    )
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.cases) - set(_NAMES))
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}; there are {', '.join(_NAMES)}")
    return options


class _Servers:
    """The canned servers, each started for the first case that needs it."""

    def __init__(self, running: contextlib.ExitStack) -> None:
        self._running = running
        self._hellos: dict[str, dict[str, Any]] = {}

    def url(self, module: str) -> tuple[str, str | None]:
        """Return the address of a server, and why there is none."""
        if module not in self._hellos:
            self._hellos[module] = self._running.enter_context(Child(module)).hello
        hello = self._hellos[module]
        return f"http://127.0.0.1:{hello.get('port')}", hello.get("missing")


def _measure(name: str, servers: _Servers, options: argparse.Namespace) -> dict[str, Any]:
    """Measure one case and print it."""
    bounds: Sequence[Bound]
    floor: str | None
    if name == _GROWTH:
        title, floor, bounds = growth.TITLE, None, growth.BOUNDS
        results, missing = growth.measure(servers.url(HTTP_SERVER)[0], calls=options.calls)
    else:
        case = CASES[name]
        title, floor, bounds = case.title, case.floor, case.bounds
        url, no_server = servers.url(case.server)
        if no_server:
            results, missing = {}, dict.fromkeys((case.floor, *case.others), no_server)
        else:
            results, missing = rounds.measure(
                case, url, rounds=options.rounds, seconds=options.seconds
            )
    verdicts = [bound.judge(results) for bound in bounds]
    print(f"\n{name}: {title}\n")
    for left_out, reason in missing.items():
        print(f"  left out: {left_out}: {reason}")
    if results:
        print(report.table(results, floor), end="\n\n")
    print(report.bounds_table(verdicts), flush=True)
    return report.as_json(title, results, missing, verdicts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _options(arguments)
    choose_peer_python(options.peer_python)
    outcome: dict[str, Any] = {"machine": report.machine(), "cases": {}}
    print(", ".join(f"{name} {value}" for name, value in outcome["machine"].items()))
    with contextlib.ExitStack() as running:
        servers = _Servers(running)
        for name in options.cases or _NAMES:
            outcome["cases"][name] = _measure(name, servers, options)
    if options.json:
        options.json.write_text(json.dumps(outcome, indent=1) + "\n")
    states = [bound["state"] for case in outcome["cases"].values() for bound in case["bounds"]]
    counts = ", ".join(f"{states.count(state)} {state}" for state in ("ok", "MISS", "not measured"))
    print(f"\nbounds: {counts}")
    return 1 if options.check and "MISS" in states else 0
