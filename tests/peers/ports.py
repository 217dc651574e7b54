"""Ports of the loopback that are kept for a server that is still to start, or for nobody."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def held_port() -> Iterator[int]:
    """Hold a port until the block ends: meanwhile the system gives it to no other socket.

    Connections to it are refused until a server listens there. It is told the number, and must
    allow addresses to be reused (``SO_REUSEADDR``), as servers do.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
