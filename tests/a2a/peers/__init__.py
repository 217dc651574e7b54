"""Real A2A agents for tests: a2a-sdk 1.3.0 (both dialects) and a2a-sdk 0.3.26, as processes."""

from __future__ import annotations

import os
import pathlib
import subprocess
import tempfile

from tests.a2a.peers.environment import old_sdk_python
from tests.peers import AgentProcess, _running, peer_python

__all__ = ["A2AProcess", "old_sdk_agent", "sdk_agent"]

_HERE = pathlib.Path(__file__).parent


class A2AProcess(AgentProcess):
    """A running agent of a program of this folder; :attr:`url` is where it answers."""

    def __init__(self, python: str, program: str) -> None:
        self._name = program
        stderr, self._errors = tempfile.mkstemp(prefix="peer-", suffix=".err")
        # -P: this folder must not become importable for the peer.
        self._process = subprocess.Popen(
            [python, "-P", str(_HERE / program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
        os.close(stderr)
        _running.add(self)
        try:
            self.url = self._ready_url()
        except BaseException:
            self.kill()
            raise


def sdk_agent() -> A2AProcess:
    """Start a2a-sdk 1.3.0."""
    return A2AProcess(peer_python(), "sdk_agent.py")


def old_sdk_agent() -> A2AProcess:
    """Start a2a-sdk 0.3.26."""
    return A2AProcess(old_sdk_python(), "old_sdk_agent.py")
