"""Which interpreter a contender runs in: this one, or that of the real peers."""

from __future__ import annotations

import os
import sys

from benchmarks.cases import CONTENDERS
from benchmarks.children import Child
from tests.peers import PeerEnvironmentError, peer_python
from tests.peers.environment import OVERRIDE

__all__ = ["choose_peer_python", "start_worker", "without_peers"]

_NO_PEERS = "none"


def choose_peer_python(python: str | None) -> None:
    """Run the peers by an interpreter of the user's; ``none`` leaves them out.

    Everything that starts a peer asks the environment, as the tests do.
    """
    if python is not None:
        os.environ[OVERRIDE] = python


def without_peers() -> str | None:
    """Return why there are no peers, or None if there are; makes their environment if need be."""
    if os.environ.get(OVERRIDE) == _NO_PEERS:
        return "left out as asked for"
    try:
        peer_python()
    except PeerEnvironmentError as error:
        return str(error)
    return None


def start_worker(name: str, url: str) -> Child | str:
    """Return the worker of a contender, or why it cannot be measured here.

    Raises:
        ChildError: It should have started and did not.
    """
    contender = CONTENDERS[name]
    if contender.needs_peers and (reason := without_peers()):
        return reason
    python = peer_python() if contender.needs_peers else sys.executable
    child = Child("benchmarks.worker", contender.path, url, python=python)
    if "missing" in child.hello:
        child.close()
        return str(child.hello["missing"])
    return child
