"""Child processes that answer one line of JSON by one."""

from __future__ import annotations

import json
import pathlib
import select
import subprocess
import sys
from types import TracebackType
from typing import Any

__all__ = ["Child", "ChildError"]

_CHECKOUT = pathlib.Path(__file__).resolve().parents[1]
_ANSWER_LIMIT = 600.0  # seconds; a guard against hangs, not a measure
_STOP_LIMIT = 5.0


class ChildError(RuntimeError):
    """A child did not start, or did not answer."""


class Child:
    """A running ``python -m MODULE``; its first line is :attr:`hello`.

    Args:
        module: What it runs.
        arguments: Its arguments.
        python: Its interpreter.

    Raises:
        ChildError: It did not start.
    """

    def __init__(self, module: str, *arguments: str, python: str = sys.executable) -> None:
        self._name = " ".join([module, *arguments[:1]])
        self._process = subprocess.Popen(
            [python, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=_CHECKOUT,
        )
        try:
            self.hello = self._read()
        except BaseException:
            self.close()
            raise

    def ask(self, order: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to one order.

        Raises:
            ChildError: There was none.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise ChildError(f"{self._name} ended") from None
        return self._read()

    def close(self) -> None:
        """End the child: at the end of its input, else at once."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(_STOP_LIMIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _read(self) -> dict[str, Any]:
        stdout = self._process.stdout
        assert stdout is not None
        # One line answers one order, so nothing is ever left in the buffer that select() misses.
        if not select.select([stdout], [], [], _ANSWER_LIMIT)[0]:
            raise ChildError(f"{self._name} did not answer in {_ANSWER_LIMIT:g} s")
        line = stdout.readline()
        if not line:
            raise ChildError(f"{self._name} ended without an answer")
        answer: dict[str, Any] = json.loads(line)
        return answer
