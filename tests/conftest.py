"""What holds for every test: nothing is left behind, nothing leaves this machine.

Fixtures: ``agent_peer``, ``shared_peer``, ``start_peer``, ``counting_proxy``, ``unused_port``,
``tls_files``.
"""

from __future__ import annotations

import contextlib
import gc
import ipaddress
import itertools
import os
import pathlib
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import hypothesis
import pytest
import trustme

from tests.peers import (
    AgentProcess,
    CountingProxy,
    PeerEnvironmentError,
    held_port,
    peer_descriptors,
    peer_python,
)

_PEER_FIXTURES = {"agent_peer", "shared_peer", "start_peer"}

# No deadline: how long an example takes says something of the machine only. In CI the examples are
# the same in every run, so a change is never blamed for what another run happened to find.
hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile(
    "ci", deadline=None, derandomize=True, database=None, print_blob=True
)
# For further interpreters, once the tests have run whole on one.
hypothesis.settings.register_profile(
    "few", deadline=None, derandomize=True, database=None, max_examples=20
)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")


# ---- nothing leaves this machine ---------------------------------------------------------------

_strayed: list[str] = []


def _is_local(host: object) -> bool:
    if not isinstance(host, str):
        return host is None  # getaddrinfo(None, port): an address to listen on
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host == "localhost"
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def _watch_network(event: str, args: tuple[Any, ...]) -> None:
    """Stop each connection to another machine, and each look-up that would ask one.

    An audit hook sees what every Python library does, whatever it calls and in which thread. The
    test fails in any case, also if the library under test swallows the exception.
    """
    if event in {"socket.connect", "socket.sendto"}:
        sock, address = args
        if sock.family == getattr(socket, "AF_UNIX", None):
            return
        where = address[0] if isinstance(address, tuple) else address
    elif event == "socket.getaddrinfo":
        where = args[0].decode() if isinstance(args[0], bytes) else args[0]
        with contextlib.suppress(ValueError):
            ipaddress.ip_address(str(where).partition("%")[0])
            return  # an address is read, not looked up
    else:
        return
    if not _is_local(where):
        _strayed.append(f"{event} {where!r}")
        raise RuntimeError(
            f"{event} {where!r}: tests use 127.0.0.0/8, ::1 and unix sockets only; for a name "
            "patch socket.getaddrinfo, for a silent host fill the backlog of a loopback listener"
        )


sys.addaudithook(_watch_network)


# ---- nothing is left behind --------------------------------------------------------------------

_GO_LIMIT = 2.0  # seconds for threads and connections that are already on their way out

# What is alive after so many tests, as a rule what they imported, is left out of the collections
# that follow: with all of it in them they took two fifths of the time of all tests.
_FREEZE_EVERY = 50
_collections = itertools.count(1)


def _threads() -> set[threading.Thread]:
    return {
        thread
        for thread in threading.enumerate()
        # The process has one deadline thread, which may stay; a dummy stands for a foreign thread
        # that once ran Python code, and never goes.
        if thread.name != "protolink-deadline" and not isinstance(thread, threading._DummyThread)
    }


def _descriptors() -> set[tuple[int, str]]:
    """Return the open descriptors and what they are, where the system tells (Linux)."""
    found = set()
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir("/proc/self/fd"):
            # The descriptor of the listing itself is gone by now.
            with contextlib.suppress(OSError):
                found.add((int(name), os.readlink(f"/proc/self/fd/{name}")))
    if "grpc" in sys.modules:  # it keeps its pollers, and makes further ones when it likes
        found = {(fd, what) for fd, what in found if not what.startswith("anon_inode:[event")}
    return found


def _left_behind(
    threads: set[threading.Thread], descriptors: set[tuple[int, str]]
) -> tuple[list[str], list[str]]:
    gc.collect()
    if next(_collections) % _FREEZE_EVERY == 0:
        gc.freeze()
    kept = peer_descriptors()
    return (
        sorted(thread.name for thread in _threads() - threads),
        sorted(f"{fd}={what}" for fd, what in _descriptors() - descriptors if fd not in kept),
    )


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Fail a test that leaves a thread, a socket or another descriptor, or calls other machines."""
    _strayed.clear()
    threads, descriptors = _threads(), _descriptors()

    yield

    end = time.monotonic() + _GO_LIMIT
    left = _left_behind(threads, descriptors)
    while any(left) and time.monotonic() < end:
        time.sleep(0.01)
        left = _left_behind(threads, descriptors)
    strayed, _strayed[:] = list(_strayed), []
    assert not strayed, f"the test called other machines: {strayed}"
    assert not left[0], f"the test left threads: {left[0]}"
    assert not left[1], f"the test left descriptors: {left[1]}"


# ---- real peers --------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a real peer, before ``-m`` chooses."""
    for item in items:
        if _PEER_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("peer")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Make the peers' environment before the first test: its minutes are no test's own."""
    # What was imported and collected stays till the end: without it the collection that follows
    # each test takes a third of the time.
    gc.collect()
    gc.freeze()
    needs_peers = any(item.get_closest_marker("peer") for item in session.items)
    if needs_peers and not session.config.option.collectonly:
        with contextlib.suppress(PeerEnvironmentError):  # each test that needs a peer raises it
            peer_python()


@pytest.fixture(scope="session")
def shared_peer() -> Iterator[Callable[..., AgentProcess]]:
    """Return a running peer for ``(kind, *options)``: the same one to all tests that ask alike."""
    peers: dict[tuple[str, ...], AgentProcess] = {}

    def get(*asked: str) -> AgentProcess:
        if asked not in peers:
            peers[asked] = AgentProcess(*asked)
        return peers[asked]

    yield get

    for peer in peers.values():
        peer.stop()


@pytest.fixture(scope="session")
def agent_peer(shared_peer: Callable[..., AgentProcess]) -> AgentProcess:
    """A protolink agent over HTTP; ``agent_peer.url`` is its address."""
    return shared_peer("http")


@pytest.fixture
def start_peer() -> Iterator[Callable[..., AgentProcess]]:
    """Start a peer of the test's own: ``start_peer(kind, *options)``; it ends with the test."""
    with contextlib.ExitStack() as peers:
        yield lambda kind, *options: peers.enter_context(AgentProcess(kind, *options))


@pytest.fixture
def counting_proxy() -> Iterator[Callable[[str], CountingProxy]]:
    """Put a proxy before a peer: ``counting_proxy(url)``; it ends with the test."""
    with contextlib.ExitStack() as proxies:
        yield lambda url: proxies.enter_context(CountingProxy(url))


@pytest.fixture
def unused_port() -> Iterator[Callable[[], int]]:
    """Return a port at which nobody listens, ``unused_port()``; the test may start a server there.

    It is held till the test ends: see :func:`tests.peers.held_port`.
    """
    with contextlib.ExitStack() as ports:
        yield lambda: ports.enter_context(held_port())


@attrs.frozen
class TLSFiles:
    """PEM files: an authority, a server at 127.0.0.1 and localhost, and a client."""

    ca: str
    server_cert: str
    server_key: str
    client_cert: str
    client_key: str


@pytest.fixture(scope="session")
def tls_files(tmp_path_factory: pytest.TempPathFactory) -> TLSFiles:
    """Certificates of an authority that nobody else trusts."""
    folder: pathlib.Path = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()

    def written(blob: trustme.Blob, name: str) -> str:
        blob.write_to_path(folder / name)
        return str(folder / name)

    server = authority.issue_cert("127.0.0.1", "localhost")
    client = authority.issue_cert("client@tests.invalid")
    return TLSFiles(
        ca=written(authority.cert_pem, "ca.pem"),
        server_cert=written(server.cert_chain_pems[0], "server.pem"),
        server_key=written(server.private_key_pem, "server.key"),
        client_cert=written(client.cert_chain_pems[0], "client.pem"),
        client_key=written(client.private_key_pem, "client.key"),
    )
