"""From a URL to a connection: look-ups, several addresses, what happens when nobody is there."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from protolink_sync import CancelToken
from protolink_sync.errors import (
    CallCancelledError,
    TransportConnectionError,
    TransportTimeoutError,
)
from protolink_sync.transport import TransportConfig
from tests.cases.server import ScriptedServer
from tests.transport.scenes import (
    ASK,
    LIMIT,
    Calling,
    about,
    answering,
    check_whole,
    failed,
    reply,
    transport,
    wait_until,
)

REAL_LOOKUP = socket.getaddrinfo


@contextlib.contextmanager
def silent(host: str, port: int) -> Iterator[None]:
    """Make connects to an address hang: its queue is full and nobody takes from it."""
    with contextlib.ExitStack() as sockets:
        listener = sockets.enter_context(socket.socket())
        listener.bind((host, port))
        listener.listen(0)
        for _ in range(16):
            filler = sockets.enter_context(socket.socket())
            filler.settimeout(0.2)
            try:
                filler.connect((host, port))
            except TimeoutError:
                break
        yield


class Names:
    """A name server: ``agent.test`` has the given addresses; remembers who asked for what."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
        self.addresses = addresses
        self.asked: list[tuple[str, threading.Thread]] = []
        self.wait = threading.Event()
        self.wait.set()
        self.error: Exception | None = None
        monkeypatch.setattr(socket, "getaddrinfo", self.lookup)

    def lookup(self, host: str, port: Any, *args: Any, **words: Any) -> Any:
        if host != "agent.test":
            return REAL_LOOKUP(host, port, *args, **words)
        if words.get("flags", 0) & socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "a name")
        self.asked.append((host, threading.current_thread()))
        self.wait.wait(LIMIT)
        if self.error is not None:
            raise self.error
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in self.addresses
        ]


# ---- nobody there ------------------------------------------------------------------------------


def test_a_refused_connection_is_an_error_that_may_be_retried(unused_port):
    port = unused_port()
    with transport() as client:
        error = failed(client, url=f"http://127.0.0.1:{port}")

    assert type(error) is TransportConnectionError
    assert isinstance(error, OSError)
    assert error.errno == errno.ECONNREFUSED
    assert error.retryable
    assert error.phase == "connect"
    for word in ("cannot connect", f"127.0.0.1 port {port}", "refused", "Does an agent listen"):
        assert word in str(error)


def test_a_peer_that_comes_later_is_reached(unused_port):
    """Nothing of a failed connect is remembered."""
    port = unused_port()
    with transport() as client:
        failed(client, url=f"http://127.0.0.1:{port}")

        with socket.create_server(("127.0.0.1", port)) as listener:
            call = Calling(client.send, ASK, f"http://127.0.0.1:{port}", {})
            peer, _ = listener.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n5")
                assert call.result() == 5


def test_a_connect_that_stays_unanswered_is_a_time_out_that_may_be_retried():
    with (
        ScriptedServer({"listen": "blackhole"}) as server,
        transport(server, config=TransportConfig(connect_timeout=0.3)) as client,
    ):
        error = failed(client)

    assert type(error) is TransportTimeoutError
    assert isinstance(error, TimeoutError)
    assert error.errno == errno.ETIMEDOUT
    assert error.retryable
    assert error.phase == "connect"
    assert error.elapsed == about(0.3)
    check_whole(error, server, "connect")


@pytest.mark.parametrize("attempt", range(3))
def test_a_budget_that_is_spent_while_connecting_is_not_retryable(attempt):
    """More than once: the socket's own time-out and the budget end at the same moment."""
    with ScriptedServer({"listen": "blackhole"}) as server, transport(server) as client:
        error = failed(client, timeout=0.2)

    assert type(error) is TransportTimeoutError
    assert not error.retryable
    assert error.phase == "connect"
    assert error.elapsed == about(0.2)
    check_whole(error, server, "0.2 s")


# ---- several addresses -------------------------------------------------------------------------


def test_the_second_address_is_tried_when_the_first_refuses(monkeypatch):
    with answering(host="127.0.0.2") as server, transport() as client:
        Names(monkeypatch, "127.0.0.3", "127.0.0.2")

        assert client.send(ASK, f"http://agent.test:{server.port}", {}) == {"ok": True}


def test_the_second_address_is_tried_when_the_first_is_silent_for_its_share(monkeypatch):
    config = TransportConfig(connect_timeout=0.6)
    with answering(host="127.0.0.2") as server, transport(config=config) as client:
        Names(monkeypatch, "127.0.0.3", "127.0.0.2")
        with silent("127.0.0.3", server.port):
            assert client.send(ASK, f"http://agent.test:{server.port}", {}) == {"ok": True}


def test_an_ipv6_address_is_tried_beside_an_ipv4_one(monkeypatch):
    with answering(host="::1") as server, transport() as client:

        def both(host, port, *args, **words):
            if words.get("flags"):
                raise socket.gaierror(socket.EAI_NONAME, "a name")
            return [
                (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
                (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", port, 0, 0)),
            ]

        monkeypatch.setattr(socket, "getaddrinfo", both)

        assert client.send(ASK, f"http://agent.test:{server.port}", {}) == {"ok": True}


def test_the_error_lists_every_address(monkeypatch, unused_port):
    Names(monkeypatch, "127.0.0.3", "127.0.0.4", "127.0.0.5")

    with transport() as client:
        error = failed(client, url=f"http://agent.test:{unused_port()}")

    assert type(error) is TransportConnectionError
    for address in ("127.0.0.3", "127.0.0.4", "127.0.0.5"):
        assert address in str(error)


def test_the_error_lists_every_address_when_all_are_silent(monkeypatch, unused_port):
    port = unused_port()
    Names(monkeypatch, "127.0.0.3", "127.0.0.4")

    with (
        silent("127.0.0.3", port),
        silent("127.0.0.4", port),
        transport(config=TransportConfig(connect_timeout=0.4)) as client,
    ):
        error = failed(client, url=f"http://agent.test:{port}")

    assert type(error) is TransportTimeoutError
    assert error.retryable
    assert "127.0.0.3" in str(error)
    assert "127.0.0.4" in str(error)


def test_a_silent_and_a_refusing_address_together_are_no_time_out(monkeypatch, unused_port):
    port = unused_port()
    Names(monkeypatch, "127.0.0.3", "127.0.0.4")

    with (
        silent("127.0.0.3", port),
        transport(config=TransportConfig(connect_timeout=0.4)) as client,
    ):
        error = failed(client, url=f"http://agent.test:{port}")

    assert type(error) is TransportConnectionError
    assert error.retryable


def test_the_name_is_what_the_peer_is_asked_for(monkeypatch):
    Names(monkeypatch, "127.0.0.1")

    with answering() as server, transport() as client:
        client.send(ASK, f"http://agent.test:{server.port}", {})

    assert server.requests[0].all("Host") == [f"agent.test:{server.port}"]


def test_an_ipv6_literal_stands_in_brackets():
    with answering(host="::1") as server, transport(server) as client:
        assert client.send(ASK, None, {}) == {"ok": True}

    assert server.requests[0].all("Host") == [f"[::1]:{server.port}"]


# ---- look-ups ----------------------------------------------------------------------------------


def test_an_unknown_host_is_an_error_that_names_it(monkeypatch):
    names = Names(monkeypatch)
    names.error = socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with transport() as client:
        error = failed(client, url="http://agent.test:8010")

    assert type(error) is TransportConnectionError
    assert error.phase == "resolve"
    assert "'agent.test' is not found" in str(error)


@pytest.mark.parametrize("host", ["x" * 64 + ".test", "agent..test", ".test"])
def test_a_name_that_cannot_be_looked_up_is_an_error_of_the_library_or_a_value_error(host):
    with transport() as client, pytest.raises((TransportConnectionError, ValueError)) as caught:
        client.send(ASK, f"http://{host}:8010", {})

    assert not isinstance(caught.value, UnicodeError)


def test_a_look_up_that_hangs_ends_with_the_budget(monkeypatch):
    names = Names(monkeypatch, "127.0.0.1")
    names.wait.clear()
    try:
        with transport() as client:
            error = failed(client, url="http://agent.test:8010", timeout=0.2)
    finally:
        names.wait.set()

    assert type(error) is TransportTimeoutError
    assert error.phase == "resolve"
    assert error.elapsed == about(0.2)


def test_a_look_up_that_hangs_ends_with_the_connect_time_out(monkeypatch):
    names = Names(monkeypatch, "127.0.0.1")
    names.wait.clear()
    try:
        with transport(config=TransportConfig(connect_timeout=0.2)) as client:
            error = failed(client, url="http://agent.test:8010")
    finally:
        names.wait.set()

    assert type(error) is TransportTimeoutError
    assert error.retryable
    assert error.phase == "resolve"
    assert "connect_timeout" in str(error)


def test_at_most_eight_look_ups_run_at_a_time_those_left_behind_included(monkeypatch):
    names = Names(monkeypatch, "127.0.0.1")
    names.wait.clear()
    token = CancelToken()
    try:
        with answering() as server, transport() as client:
            url = f"http://agent.test:{server.port}"
            calls = [Calling(client.send, ASK, url, {}, cancel=token) for _ in range(8)]
            assert wait_until(lambda: len(names.asked) == 8)
            late = Calling(client.send, ASK, url, {})

            token.cancel()
            for call in calls:
                with pytest.raises(CallCancelledError):
                    call.result()
            error = failed(client, url=url, timeout=0.2)

            assert error.phase == "resolve"
            assert len(names.asked) == 8
            assert late.running
            # An address needs no look-up, so it is reached all the same.
            assert client.send(ASK, server.base, {}) == {"ok": True}

            names.wait.set()
            assert late.result() == {"ok": True}
    finally:
        names.wait.set()


def test_a_name_is_looked_up_where_no_thread_can_start(monkeypatch):
    """Python 3.12 starts none at its exit, when a last call is made; and there may be too many."""
    names = Names(monkeypatch, "127.0.0.1")
    start = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        if thread.name == "protolink-resolve":
            raise RuntimeError("can't start new thread")
        start(thread)

    parting = reply(headers={"Connection": "close"})
    with answering(parting) as server, transport() as client:
        monkeypatch.setattr(threading.Thread, "start", refused)
        url = f"http://agent.test:{server.port}"
        answers = [client.send(ASK, url, {}) for _ in range(10)]
        names.error = socket.gaierror(socket.EAI_NONAME, "no such name")
        error = failed(client, url=url)

    assert answers == [{"ok": True}] * 10
    assert {thread for _, thread in names.asked} == {threading.current_thread()}
    assert type(error) is TransportConnectionError


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_an_address_is_looked_up_by_nobody(monkeypatch, host):
    started: list[str] = []
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        started.append(thread.name)
        start(thread)

    with answering(reply(), host=host) as server, transport(server) as client:
        monkeypatch.setattr(threading.Thread, "start", noted)
        client.send(ASK, None, {})
        monkeypatch.undo()

    assert "protolink-resolve" not in started


def test_an_open_connection_needs_no_further_look_up(monkeypatch):
    names = Names(monkeypatch, "127.0.0.1")

    with answering() as server, transport() as client:
        for _ in range(3):
            client.send(ASK, f"http://agent.test:{server.port}", {})

    assert len(names.asked) == 1
