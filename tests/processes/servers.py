"""WSGI servers that serve ``application.py`` in processes of their own."""

from __future__ import annotations

import contextlib
import http.client
import os
import pathlib
import signal
import subprocess
import sys
import time
from types import TracebackType
from urllib.parse import quote

from tests.peers import held_port
from tests.processes.calls import ROOT, Peer
from tests.processes.packages import program

APPLICATION = "tests.processes.application:application"

_START_LIMIT = 30.0


def gunicorn(*options: str) -> list[str]:
    """Return the command of gunicorn with some options."""
    return [sys.executable, "-m", "gunicorn", "--bind", "ADDRESS", *options, APPLICATION]


def uwsgi(*options: str) -> list[str]:
    """Return the command of uWSGI with some options; its processes fork after the import."""
    return [
        program("uwsgi"),
        *("--http-socket", "ADDRESS", "--master", "--need-app", "--die-on-term"),
        *("--virtualenv", sys.prefix, "--module", APPLICATION),
        *options,
    ]


class Server:
    """A running server.

    Args:
        command: How to start it; ``ADDRESS`` stands for where it shall listen.
        peer: What the application calls.
        folder: Where its log goes.
        warm: Whether the application calls the peer when it is imported.
    """

    def __init__(
        self, command: list[str], peer: Peer, folder: pathlib.Path, *, warm: bool = True
    ) -> None:
        self._held = contextlib.ExitStack()
        self._address = f"127.0.0.1:{self._held.enter_context(held_port())}"
        self._log = folder / "server.log"
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [part.replace("ADDRESS", self._address) for part in command],
                cwd=ROOT,
                env={**peer.environment(), "USED_AT_IMPORT": "1" if warm else ""},
                stdout=log,
                stderr=subprocess.STDOUT,
                # With its workers it is a group of its own, which kill() ends.
                start_new_session=True,
            )
        try:
            self._wait_until_it_answers()
        except BaseException:
            self.kill()
            raise

    def _wait_until_it_answers(self) -> None:
        end = time.monotonic() + _START_LIMIT
        while self.process.poll() is None and time.monotonic() < end:
            try:
                self.get("/pid")
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError(f"the server does not answer: {self.log()}")

    def get(self, path: str, text: str = "", limit: float = 30.0) -> str:
        """Return what the application answers.

        Raises:
            OSError: There is no answer.
            RuntimeError: It is an error.
        """
        with contextlib.closing(http.client.HTTPConnection(self._address, timeout=limit)) as wire:
            wire.request("GET", f"{path}?{quote(text)}")
            answer = wire.getresponse()
            body = answer.read().decode()
        if answer.status != http.client.OK:
            raise RuntimeError(f"{answer.status} {answer.reason}")
        return body

    def log(self) -> str:
        """Return the end of what the server has written."""
        return self._log.read_text(errors="replace")[-3000:]

    def stop(self, number: int = signal.SIGTERM, limit: float = 40.0) -> int:
        """Send a signal to the main process and return its exit code.

        gunicorn gives its workers 30 s. One that is told to end while it still starts does not hear
        it, and takes them; another one may have answered all that was asked by then.
        """
        self.process.send_signal(number)
        return self.process.wait(limit)

    def kill(self) -> None:
        """End every process of the server at once; any number of times."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # all have ended
        self.process.wait(10)
        self._held.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
