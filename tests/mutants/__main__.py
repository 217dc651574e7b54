"""Change the package in small ways and see which changes no test notices.

``python -m tests.mutants [MODULE ...]``. Modules are paths in the package or begins of them
(``wire``, ``models/task.py``); without any, all that :mod:`tests.mutants.targets` names. A line
for each change that survived and was not examined, a table at the end. The exit code is 1 if there
is such a change: kill it with a test, or note in ``survivors.json`` why not.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib
import json
import os
import pathlib
import random
import sys
import traceback
import warnings
from typing import Any

import pytest

from tests.mutants.importing import survives
from tests.mutants.living import OPTIONS, Living
from tests.mutants.survivors import outdated, why_it_may_survive
from tests.mutants.targets import TESTS, Target, modules, room_of

_NOT_BEFORE_A_FORK = ("protolink_sync", "tests", "grpc", "gevent", "conftest", "__main__")


def main(arguments: list[str]) -> int:
    """Try the chosen changes, print, return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("modules", nargs="*")
    parser.add_argument("--sample", type=int, help="changes of each module; all without it")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--tests", nargs="+", default=list(TESTS))
    parser.add_argument("--seconds", type=float, default=5.0, help="of tests for one change")
    parser.add_argument("--log", type=pathlib.Path, help="gets a line of JSON a change")
    parser.add_argument("--again", type=pathlib.Path, help="only what survived in that log")
    asked = parser.parse_args(arguments)
    # Options of a run that this one is a part of: it is to have one process, which forks.
    os.environ.pop("PYTEST_ADDOPTS", None)
    named = [m for m in modules() if not asked.modules or m.startswith(tuple(asked.modules))]
    targets = [Target.read(module) for module in named]
    wanted = _survivors_in(asked.again) if asked.again else None
    chosen = [(target, _chosen(target, wanted, asked)) for target in targets]
    trial = _Trial(targets, asked.log)
    trial.try_living(chosen, asked.tests, asked.seconds)
    trial.try_importing()
    trial.print_table()
    for one in outdated(targets):
        print("no change any more, take it out of survivors.json:", *one)
    return 1 if trial.unexamined else 0


def _survivors_in(log: pathlib.Path) -> set[tuple[str, str, str]]:
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    return {(module, inside, text) for module, _, inside, text, end in lines if end == "survived"}


def _chosen(
    target: Target, wanted: set[tuple[str, str, str]] | None, asked: argparse.Namespace
) -> list[int]:
    numbers = [
        number
        for number, change in enumerate(target.changes)
        if wanted is None or (target.module, change.inside, change.text) in wanted
    ]
    if asked.sample is None or asked.sample >= len(numbers):
        return numbers
    return sorted(random.Random(f"{asked.seed} {target.module}").sample(numbers, asked.sample))


class _Trial:
    """What has come of the changes so far.

    Args:
        targets: The modules.
        log: File that gets a line of JSON for each change that was tried; None for none.
    """

    def __init__(self, targets: list[Target], log: pathlib.Path | None) -> None:
        self.unexamined = 0
        self._targets = {target.module: target for target in targets}
        self._log = log
        self._counts: dict[str, collections.Counter[str]] = {}
        self._later: list[tuple[str, int]] = []
        self._tests: dict[str, tuple[list[str], list[str]]] = {}

    def try_living(
        self, chosen: list[tuple[Target, list[int]]], tests: list[str], seconds: float
    ) -> None:
        """Try the changes in a process of their own: this one must not import the package."""
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.close(reading)
                with os.fdopen(writing, "w", encoding="utf-8") as out:
                    status = int(
                        pytest.main([*OPTIONS, *tests], plugins=[Living(chosen, seconds, out)])
                    )
                    out.write(json.dumps({"imports": sorted(sys.modules)}) + "\n")
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(status)
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as lines:
            for line in lines:
                self._hear(json.loads(line))
        if os.waitpid(pid, 0)[1] != 0:
            sys.exit("the tests could not be collected and run")

    def try_importing(self) -> None:
        """Try the changes that no function shows once it lives."""
        for module in {module: None for module, _ in self._later}:
            if not survives(self._targets[module], None, *self._tests[module]):
                sys.exit(f"the tests of {module} fail in a new process without any change")
        for module, number in self._later:
            lives = survives(self._targets[module], number, *self._tests[module])
            self._count(module, number, "survived" if lives else "import")

    def _hear(self, said: dict[str, Any]) -> None:
        if "failed" in said:
            print(f"left out, for it fails without any change: {said['failed']}", flush=True)
        elif "imports" in said:
            _import_others(said["imports"])
        elif "tests" in said:
            self._tests[said["module"]] = said["tests"], said["files"]
        elif said["verdict"] == "import":
            self._later.append((said["module"], said["number"]))
        else:
            self._count(said["module"], said["number"], said["verdict"])

    def _count(self, module: str, number: int, verdict: str) -> None:
        mutation = self._targets[module].changes[number]
        counts = self._counts.setdefault(module, collections.Counter())
        counts["tried"] += 1
        if verdict == "survived":
            reason = why_it_may_survive(module, mutation.inside, mutation.text)
            counts["examined" if reason else "unexamined"] += 1
            if reason is None:
                self.unexamined += 1
                place = f"{module}:{mutation.line} {mutation.inside}"
                print(f"survived  {place}  {mutation.text}", flush=True)
        if self._log is not None:
            with self._log.open("a", encoding="utf-8") as log:
                shown = [module, mutation.line, mutation.inside, mutation.text, verdict]
                log.write(json.dumps(shown) + "\n")

    def print_table(self) -> None:
        """Print a line a module, one a room, and the sum."""
        sums: dict[str, collections.Counter[str]] = {}
        print(f"\n{'':28} changes   noticed  examined  unexamined")
        for module, counts in sorted(self._counts.items()):
            _print_counts(module, counts)
            for name in (f"room {room_of(module)}", "all"):
                sums.setdefault(name, collections.Counter()).update(counts)
        for name in sorted(sums, key=lambda name: name == "all"):
            _print_counts(name, sums[name])


def _print_counts(name: str, counts: collections.Counter[str]) -> None:
    left = counts["examined"], counts["unexamined"]
    noticed = counts["tried"] - sum(left)
    print(
        f"{name:28} {counts['tried']:7} {noticed:9} {left[0]:9} {left[1]:11}"
        f"  {100 * noticed / counts['tried']:5.1f} %",
        flush=True,
    )


def _import_others(names: list[str]) -> None:
    """Import what the tests import of others, once for all forks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            if not name.startswith(_NOT_BEFORE_A_FORK):
                with contextlib.suppress(Exception):
                    importlib.import_module(name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
