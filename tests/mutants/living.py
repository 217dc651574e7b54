"""Try changes of functions: in a fork of a process that has imported and collected everything.

Each test is run once to see which lines it executes. A change is then tried by the tests that
execute its lines, the shortest first, in a fork in which the functions that live have got the code
of the changed module.
"""

from __future__ import annotations

import bisect
import collections
import functools
import gc
import inspect
import itertools
import json
import os
import resource
import signal
import sys
import time
import types
from collections.abc import Callable, Iterator
from typing import Any, TextIO

import attrs
import coverage
import hypothesis
import pytest
from _pytest.runner import runtestprotocol

from tests.mutants.targets import Target

__all__ = ["OPTIONS", "Living", "load_profile"]

# The suite's own guards are left out: the limit here is shorter, and of the processor's choosing.
OPTIONS = (
    *("-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-o", "timeout=0"),
    # This very package is one that pytest would like to rewrite.
    *("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"),
)

# A test that takes so many times as long as it did, and so many seconds, has noticed a change.
_SLOWER, _SECONDS = 10, 3.0
_MOST_SECONDS = 120.0
# Bytes by which a process may grow before a change counts as noticed.
_MOST_GROWTH = 1 << 30


def load_profile() -> None:
    """Let hypothesis look at few examples, the same in each run, and search for no smaller one."""
    hypothesis.settings.register_profile(
        "mutants",
        deadline=None,
        derandomize=True,
        database=None,
        max_examples=15,
        phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
    )
    hypothesis.settings.load_profile("mutants")


@attrs.define
class _Known:
    """What the run without any change has shown.

    Args:
        items: The tests that passed, by their ids.
        seconds: How long they took.
        lines: Which of them executed a line of a file.
    """

    items: dict[str, pytest.Item] = attrs.Factory(dict)
    seconds: dict[str, float] = attrs.Factory(dict)
    lines: dict[str, dict[int, list[str]]] = attrs.Factory(dict)

    def tests_of(self, file: str, lines: range) -> list[pytest.Item]:
        """Return the tests that execute any of the lines, the shortest first."""
        executed = self.lines.get(file, {})
        names = {name for line in executed if line in lines for name in executed[line]}
        return [item for item in self.by_length() if item.nodeid in names]

    def by_length(self) -> list[pytest.Item]:
        """Return all tests, the shortest first."""
        return [self.items[name] for name in sorted(self.seconds, key=self.seconds.__getitem__)]


class Living:
    """A pytest plugin that tries changes in place of the run of the tests.

    Args:
        chosen: The modules, and the numbers of the changes to try.
        seconds: Tests of a change that together take longer are left out, the longest first.
        out: Gets a line of JSON for each change and for what the others need to know.
    """

    def __init__(self, chosen: list[tuple[Target, list[int]]], seconds: float, out: TextIO) -> None:
        self._chosen = chosen
        self._seconds = seconds
        self._out = out

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        load_profile()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        known = self._run_unchanged(session.items)
        gc.unfreeze()
        gc.collect()
        live = _live_by_file()
        gc.freeze()
        for target, numbers in self._chosen:
            # What runs at import may show in any test, if only in a default of a field.
            nearest = known.tests_of(target.file, range(sys.maxsize))
            others = [item for item in known.by_length() if item not in nearest]
            # Each their own time: the near ones may be long.
            every = [*self._in_time(nearest, known), *self._in_time(others, known)]
            self._say(
                module=target.module,
                tests=[item.nodeid for item in every],
                files=sorted({str(item.path) for item in every}),
            )
            for number in numbers:
                verdict = self._try(target, number, known, live[target.file])
                self._say(module=target.module, number=number, verdict=verdict)
        return True

    def _try(self, target: Target, number: int, known: _Known, live: _Live) -> str:
        change = target.changes[number]
        tests = known.tests_of(target.file, range(change.line, change.last_line + 1))
        if change.at_import or not tests:
            return "import"
        if live.caches:
            # What is kept was computed in the first test that needed it; others show it too.
            tests = known.tests_of(target.file, range(sys.maxsize))
        tests = self._in_time(tests, known)
        limits = [max(_SECONDS, _SLOWER * known.seconds[item.nodeid]) for item in tests]
        return _in_a_fork(lambda: _run_changed(target, number, live, tests, limits))

    def _in_time(self, tests: list[pytest.Item], known: _Known) -> list[pytest.Item]:
        ends = list(itertools.accumulate(known.seconds[item.nodeid] for item in tests))
        return tests[: max(1, bisect.bisect(ends, self._seconds))]

    def _say(self, **what: Any) -> None:
        self._out.write(json.dumps(what) + "\n")
        self._out.flush()

    def _run_unchanged(self, items: list[pytest.Item]) -> _Known:
        """Run each test, see what it executes; leave out those that fail as they are."""
        known = _Known()
        files = [target.file for target, _ in self._chosen]
        watch = coverage.Coverage(data_file=None, config_file=False, include=files)
        watch.start()
        for index, item in enumerate(items):
            watch.switch_context(item.nodeid)
            began = time.perf_counter()
            after = items[index + 1] if index + 1 < len(items) else None
            reports = runtestprotocol(item, log=False, nextitem=after)
            if all(not report.failed for report in reports):
                known.items[item.nodeid] = item
                known.seconds[item.nodeid] = time.perf_counter() - began
            else:
                self._say(failed=item.nodeid)
        watch.stop()
        data = watch.get_data()
        known.lines = {file: data.contexts_by_lineno(file) for file in data.measured_files()}
        return known


@attrs.define
class _Live:
    """The functions of a file that live, and what keeps results of some of them."""

    functions: list[types.FunctionType] = attrs.Factory(list)
    caches: list[Any] = attrs.Factory(list)


def _live_by_file() -> collections.defaultdict[str, _Live]:
    found: collections.defaultdict[str, _Live] = collections.defaultdict(_Live)
    for thing in gc.get_objects():
        if isinstance(thing, types.FunctionType):
            found[thing.__code__.co_filename].functions.append(thing)
        elif isinstance(thing, functools._lru_cache_wrapper):
            function = inspect.unwrap(thing)
            if isinstance(function, types.FunctionType):
                found[function.__code__.co_filename].caches.append(thing)
    return found


# ---- in the fork -------------------------------------------------------------------------------


def _change(target: Target, number: int, live: _Live) -> None:
    """Give the functions of a module the code they would have had with the change."""
    code = target.changed(number)
    new: dict[tuple[str, int], list[types.CodeType]] = {}
    for one in _codes(code):
        new.setdefault((one.co_name, one.co_firstlineno), []).append(one)
    for function in live.functions:
        old = function.__code__
        others = new.get((old.co_name, old.co_firstlineno), [])
        if old not in others and len(others) == 1:
            function.__code__ = others[0]
    # What was kept of earlier calls was computed without the change.
    for cache in live.caches:
        cache.cache_clear()


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _in_a_fork(act: Callable[[], str]) -> str:
    """Return what the act returns in a fork; ``out of time`` if it never does."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        said = "error"
        try:
            said = act()
        except BaseException as error:
            said = f"error: {error!r}"[:200]
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        heard = pipe.read().decode()
    os.waitpid(pid, 0)
    return heard or "out of time"


def _run_changed(
    target: Target,
    number: int,
    live: _Live,
    tests: list[pytest.Item],
    limits: list[float],
) -> str:
    _change(target, number, live)
    return _run(tests, limits)


def _run(tests: list[pytest.Item], limits: list[float]) -> str:
    """Return the first test that fails, or ``survived``."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (4 * used + _MOST_GROWTH, most))
    end = time.monotonic() + _MOST_SECONDS
    for index, item in enumerate(tests):
        signal.setitimer(signal.ITIMER_REAL, min(limits[index], max(0.1, end - time.monotonic())))
        after = tests[index + 1] if index + 1 < len(tests) else None
        reports = runtestprotocol(item, log=False, nextitem=after)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if any(report.failed for report in reports):
            return item.nodeid
    return "survived"
