"""Try changes of what runs at import: in a fork that has not imported the package yet."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import signal
import sys
import types
from collections.abc import Sequence

import pytest

from tests.mutants.living import OPTIONS, load_profile
from tests.mutants.targets import Target

__all__ = ["survives"]

_SECONDS = 60.0


class _Loader(importlib.machinery.SourceFileLoader):
    """Load a module with one change."""

    def __init__(self, target: Target, number: int | None) -> None:
        super().__init__(target.name, target.file)
        self._target = target
        self._number = number

    def get_code(self, fullname: str) -> types.CodeType:
        return self._target.changed(self._number)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, target: Target, number: int | None) -> None:
        self._target = target
        self._number = number

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._target.name:
            return None
        loader = _Loader(self._target, self._number)
        return importlib.util.spec_from_file_location(name, loader.path, loader=loader)


class _Chosen:
    """A pytest plugin that runs the chosen tests, in the order in which they were chosen."""

    def __init__(self, finder: _Finder, tests: list[str]) -> None:
        self._finder = finder
        self._place = {name: place for place, name in enumerate(tests)}

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self) -> None:
        # Now, so that it comes before the finder of pytest.
        sys.meta_path.insert(0, self._finder)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        load_profile()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._place),
            key=lambda item: self._place[item.nodeid],
        )


def survives(target: Target, number: int | None, tests: list[str], files: list[str]) -> bool:
    """Return whether no test notices one change of a module.

    Args:
        target: The module.
        number: Of the change; None for none, to see that the tests pass then.
        tests: Ids of the tests that execute anything of the module, the best first.
        files: Where they are.
    """
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            signal.setitimer(signal.ITIMER_REAL, _SECONDS)
            chosen = _Chosen(_Finder(target, number), tests)
            # The package's own plugin would import it before the finder is there.
            status = int(
                pytest.main([*OPTIONS, "-x", "-p", "no:protolink_sync", *files], plugins=[chosen])
            )
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1] == 0
