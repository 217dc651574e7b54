"""What the programs of this folder share: the peer they call, and what they ask it.

A test gives them the peer in the environment, so that a server's workers get it too.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import attrs

from protolink_sync import AgentClient, Task
from protolink_sync.models import Message
from protolink_sync.security import TLSConfig
from protolink_sync.transport import get_transport

ROOT = pathlib.Path(__file__).parents[2]

# Nothing comes near it: it ends a program that hangs.
LIMIT = 60.0

# Warnings are errors, but for the one that Python 3.12 and newer give of any fork beside threads,
# also of one that is prepared for.
STRICT = ("-W", "error", "-W", "ignore:This process:DeprecationWarning")


@attrs.frozen
class Peer:
    """A peer and the way to it.

    Args:
        alias: The transport.
        url: Where the peer answers.
        cafile: Who vouches for it, over TLS.
    """

    alias: str
    url: str
    cafile: str = ""

    @classmethod
    def from_environment(cls) -> Peer:
        """Return the peer that the test has given."""
        return cls(*os.environ["PROTOLINK_SYNC_TEST_PEER"].split(" "))

    def environment(self) -> dict[str, str]:
        """Return the environment of a program that calls this peer."""
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PROTOLINK_SYNC_TEST_PEER": f"{self.alias} {self.url} {self.cafile}",
        }

    def client(self) -> AgentClient:
        """Return a client for this peer."""
        tls = TLSConfig(cafile=self.cafile) if self.cafile else None
        return AgentClient(get_transport(self.alias, url=self.url, tls=tls, timeout=30))


def ask(client: AgentClient, text: str, **words: Any) -> str:
    """Return what the peer answers to a text."""
    return client.send_task(client.transport.url, Task.create(Message.user(text)), **words).text


def wrong_answers(client: AgentClient, who: object, count: int) -> int:
    """Ask so often and count the answers that are not this asker's own."""
    questions = [f"{who}-{number}" for number in range(count)]
    return sum(ask(client, f"echo {question}") != question for question in questions)


def own_threads() -> list[str]:
    """Return the names of the library's threads, but for the one that may stay."""
    names = (thread.name for thread in threading.enumerate())
    return [name for name in names if name.startswith("protolink") and "deadline" not in name]


def wait_until(condition: Callable[[], Any], limit: float = 5.0) -> bool:
    """Wait for what only asking can tell; say whether it came."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def start(program: str, peer: Peer, *arguments: str) -> subprocess.Popen[str]:
    """Start a program of this folder."""
    return subprocess.Popen(
        [sys.executable, *STRICT, "-m", f"tests.processes.{program}", *arguments],
        cwd=ROOT,
        env=peer.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output_of(program: str, peer: Peer, *arguments: str) -> list[str]:
    """Run a program of this folder to its end and return the lines it prints."""
    with start(program, peer, *arguments) as process:
        try:
            out, err = process.communicate(timeout=LIMIT)
        finally:
            process.kill()
    assert process.returncode == 0, out + err
    assert not err, err
    return out.splitlines()
