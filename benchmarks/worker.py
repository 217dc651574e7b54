"""One contender in a process of its own: ``python -m benchmarks.worker MODULE:CLASS URL``.

It prints a line when it is ready and answers each line of JSON on its standard input by one.
This module is read by the peers' interpreter too: standard library only.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import sys
import tempfile
from typing import Any

from benchmarks import timing


class _Worker:
    """A contender, with its jobs as they were made for the first order that named them."""

    def __init__(self, contender: Any) -> None:
        self._contender = contender
        self._jobs: dict[str, Any] = {}

    def answer(self, line: str) -> dict[str, Any]:
        """Carry out one order: a function of :mod:`benchmarks.timing` on a job."""
        order = json.loads(line)
        try:
            job = self._job(order["job"], order["of"])
            figures: dict[str, Any] = getattr(timing, order["how"])(job, *order["with"])
        except Exception as error:
            return {"failed": f"{type(error).__name__}: {error}"}
        return figures

    def _job(self, name: str, arguments: list[str]) -> Any:
        key = json.dumps([name, arguments])
        if key not in self._jobs:
            self._jobs[key] = getattr(self._contender, name)(*arguments)
        return self._jobs[key]


def _allow_descriptors() -> None:
    """Allow as many descriptors as the system does: protolink's client.sync leaves many open."""
    # macOS says "no limit" and then refuses it.
    with contextlib.suppress(OSError, ValueError):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _compile_into(folder: str) -> None:
    """Have the interpreters that are started from here keep what they compile.

    Without it an import would be measured with the compiling of whatever was edited last, where
    the environment forbids to write compiled files.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = folder


def main(name: str, url: str) -> None:
    """Serve one contender until standard input closes."""
    # Whatever a library prints goes to standard error; the answers have the output alone.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _allow_descriptors()
    module, _, cls = name.partition(":")
    try:
        contender = getattr(importlib.import_module(module), cls)(url)
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), file=answers, flush=True)
        return
    print(json.dumps({"ready": True}), file=answers, flush=True)
    worker = _Worker(contender)
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        _compile_into(folder)
        for line in sys.stdin:
            print(json.dumps(worker.answer(line)), file=answers, flush=True)
    # At once: what a contender leaves running must not keep the process.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
