"""Real peers behind a proxy that counts their connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.peers import AgentProcess, CountingProxy
from tests.processes.calls import Peer

# name -> (transport, kind of peer, whether over TLS)
WIRES = {
    "http": ("http", "http", False),
    "https": ("http", "http", True),
    "sse": ("sse", "sse", False),
    "sse+tls": ("sse", "sse", True),
    "ws": ("websocket", "websocket", False),
    "wss": ("websocket", "websocket", True),
    "grpc": ("grpc", "grpc", False),
    "grpcs": ("grpc", "grpc", True),
}


class Counted(NamedTuple):
    """A peer, and the proxy through which it is reached."""

    peer: Peer
    proxy: CountingProxy


@pytest.fixture
def counted_peer(
    shared_peer: Callable[..., AgentProcess],
    counting_proxy: Callable[[str], CountingProxy],
    tls_files,
) -> Callable[[str], Counted]:
    """Return a real peer for a name of ``WIRES``, with a count of its connections."""

    def get(wire: str) -> Counted:
        alias, kind, secure = WIRES[wire]
        tls = ["--cert", tls_files.server_cert, "--key", tls_files.server_key] if secure else []
        proxy = counting_proxy(shared_peer(kind, *tls).url)
        return Counted(Peer(alias, proxy.url, tls_files.ca if secure else ""), proxy)

    return get
