"""The embedded HTTP host: connections, limits, malformed requests, its end."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import socket
import ssl
import threading
import time
from urllib.parse import urlsplit

import pytest

from protolink_sync.config import TransportConfig, TransportLimits
from protolink_sync.security import TLSConfig
from protolink_sync.server import Agent
from tests.server.hosting import (
    LIMIT,
    Caller,
    Kitchen,
    calling,
    card,
    in_background,
    raw,
    text_task,
    wait_until,
)

GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
AT_ONCE = 1.0  # seconds; far below every time-out of the host


def host_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("protolink-host")]


def connected(server):
    parts = urlsplit(server.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=LIMIT)


# ---- connections ----


def test_many_calls_use_one_connection():
    with calling(Kitchen()) as (caller, server):
        for number in range(50):
            assert caller.send(text_task(f"echo {number}")).status == 200

        assert server.connections == 1


def test_pipelined_requests_are_answered_in_order():
    with calling(Kitchen()) as (_, server):
        head = b"HEAD /status HTTP/1.1\r\nHost: x\r\n\r\n"
        answers = raw(server.url, head + GET + b"Connection: close\r\n\r\n")

    assert answers.count(b"HTTP/1.1 200 OK") == 2
    assert answers.endswith(b"}")


def test_a_connection_is_closed_when_the_client_asks():
    with calling(Kitchen()) as (_, server):
        answer = raw(server.url, GET + b"Connection: close\r\n\r\n", closes=False)

    assert b"Connection: close\r\n" in answer


@pytest.mark.parametrize(("header", "stays"), [(b"", False), (b"Connection: keep-alive\r\n", True)])
def test_http_1_0_keeps_a_connection_only_if_asked(header, stays):
    with calling(Kitchen()) as (_, server), connected(server) as sock:
        sock.sendall(b"HEAD /healthz HTTP/1.0\r\n" + header + b"\r\n")
        answer = sock.recv(65536)

    assert (b"Connection: keep-alive" in answer) is stays
    assert (b"Connection: close" in answer) is not stays


def test_an_idle_connection_is_closed_after_its_time():
    agent = Kitchen(config=TransportConfig(keepalive_timeout=0.05))
    with calling(agent) as (_, server):
        assert raw(server.url, b"", closes=False) == b""


def test_a_client_that_leaves_in_the_middle_leaves_nothing():
    with calling(Kitchen()) as (_, server):
        for data in (
            b"",
            b"GET",
            GET,
            b"POST /tasks/ HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{",
        ):
            with connected(server) as sock:
                sock.sendall(data)
        wait_until(lambda: len(host_threads()) == 1)


# ---- limits ----


def test_beyond_the_limit_requests_get_a_503_at_once():
    limits = TransportLimits(max_concurrent_requests=1)
    agent = Kitchen(config=TransportConfig(limits=limits))
    with calling(agent) as (caller, server), Caller(server.url) as other:
        answer = in_background(caller.send, text_task("wait"))
        agent.started.acquire()

        refused = other.request("GET", "/healthz")

        agent.gate.set()
        assert answer().status == 200
        assert caller.request("GET", "/healthz").status == 200
    assert refused.status == 503
    assert "too many requests" in refused.error


def test_a_client_that_has_gone_when_it_is_accepted_ends_nothing_else(monkeypatch):
    """Some systems then refuse to change the socket; the thread that accepts must go on."""
    set_option, refused = socket.socket.setsockopt, []

    def refuse_once(sock, *option):
        if option[:2] == (socket.IPPROTO_TCP, socket.TCP_NODELAY) and not refused:
            refused.append(sock)
            raise OSError(22, "Invalid argument")
        return set_option(sock, *option)

    with Kitchen().serve("http://127.0.0.1:0") as server:
        monkeypatch.setattr(socket.socket, "setsockopt", refuse_once)
        gone = raw(server.url, b"", closes=False)

        assert raw(server.url, GET + b"Connection: close\r\n\r\n").startswith(b"HTTP/1.1 200 OK")
    assert gone == b""
    assert refused[0].fileno() == -1


def test_a_host_without_descriptors_goes_on_when_there_are_some_again(monkeypatch):
    accept, refused = socket.socket.accept, []

    def refuse_thrice(sock):
        if len(refused) < 3:
            refused.append(sock)
            raise OSError(errno.EMFILE, "Too many open files")
        return accept(sock)

    with Kitchen().serve("http://127.0.0.1:0") as server:
        monkeypatch.setattr(socket.socket, "accept", refuse_thrice)

        assert raw(server.url, GET + b"Connection: close\r\n\r\n").startswith(b"HTTP/1.1 200 OK")
    assert len(refused) == 3


def test_a_host_without_descriptors_can_be_closed(monkeypatch):
    asked = threading.Event()

    def refuse(sock):
        asked.set()
        raise OSError(errno.EMFILE, "Too many open files")

    server = Kitchen().serve("http://127.0.0.1:0")
    monkeypatch.setattr(socket.socket, "accept", refuse)
    with connected(server):
        assert asked.wait(LIMIT)
        server.close()

    assert host_threads() == []


def test_beyond_the_limit_connections_are_closed():
    limits = TransportLimits(max_concurrent_requests=1)
    agent = Kitchen(config=TransportConfig(limits=limits))
    with calling(agent) as (_, server):
        idle = [connected(server) for _ in range(4)]
        wait_until(lambda: len(host_threads()) == 5)

        refused = raw(server.url, b"", closes=False)

        for sock in idle:
            sock.close()
    assert refused == b""


# ---- malformed and unusual requests ----


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
        (b"GET /healthz\r\n\r\n", 400),
        (b"GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n", 400),
        (b"GET  /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
        (b"GET healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (GET + b"Bad Name: x\r\n\r\n", 400),
        (GET + b"X: a\r\n folded\r\n\r\n", 400),
        (GET + b"X: a\x00b\r\n\r\n", 400),
        (GET + b"X: a\nY: b\r\n\r\n", 400),
        (GET + b"Content-Length: -1\r\n\r\n", 400),
        (GET + b"Content-Length: 1, 1\r\n\r\n", 400),
        (GET + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400),
        (GET + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", 400),
        (GET + b"X\r\n\r\n", 400),
        (GET + b": a\r\n\r\n", 400),
        (GET + b"X : a\r\n\r\n", 400),
        (GET + b"X: \t\x7f \r\n\r\n", 400),
        (GET + b"X: \x0ba\x0c\r\n\r\n", 400),
        (GET + b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (GET + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        (GET + b"X: y\r\n" * 300 + b"\r\n", 431),
        (GET + b"X: " + b"y" * 70_000, 431),
    ],
)
def test_a_malformed_request_is_refused_and_ends_the_connection(request_, status):
    with calling(Kitchen()) as (_, server):
        answer = raw(server.url, request_, closes=False)

    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b"Connection: close\r\n" in answer
    assert b'{"error":' in answer


@pytest.mark.parametrize(
    "request_",
    [
        b"\r\n\r\n" + GET + b"\r\n",
        b"GET http://x/healthz?a=b HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /%68ealthz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHOST:x\r\nX:\r\n\r\n",
    ],
)
def test_an_unusual_request_is_understood(request_):
    with calling(Kitchen()) as (_, server):
        assert raw(server.url, request_).startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_body_that_ends_early_is_refused():
    with calling(Kitchen()) as (_, server):
        answer = raw(server.url, b"POST /tasks/ HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{}")

    assert b"the body ended after 2 of 9 bytes" in answer


def test_a_client_that_asks_whether_to_send_its_body_is_told():
    body = b'{"id": "t"}'
    head = b"POST /tasks/ HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nConnection: close\r\n"
    with calling(Kitchen()) as (_, server), connected(server) as sock:
        sock.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body))
        assert sock.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        assert sock.recv(65536).startswith(b"HTTP/1.1 200 OK")


def test_a_client_that_asks_whether_to_send_too_much_is_told_not_to():
    head = b"POST /tasks/ HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
    with calling(Kitchen()) as (_, server):
        answer = raw(server.url, head + b"Content-Length: 99999999\r\n\r\n", closes=False)

    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_stranger_that_asks_whether_to_send_its_body_is_told_not_to():
    """Nothing of a body is waited for or kept before it is known whose it is."""
    head = b"POST /tasks/ HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
    with calling(Kitchen(authenticate=lambda environ: None)) as (_, server):
        answer = raw(server.url, head + b"Content-Length: 1000\r\n\r\n", closes=False)

    assert answer.startswith(b"HTTP/1.1 401 ")


def test_the_header_of_one_name_is_not_taken_for_that_of_another():
    """``X_Api_Key`` would arrive as the same WSGI variable as ``X-Api-Key``."""
    seen = []
    agent = Kitchen(authenticate=lambda environ: seen.append(environ) or "me")
    with calling(agent) as (_, server):
        raw(server.url, b"GET /status HTTP/1.1\r\nHost: x\r\nX_Api_Key: a\r\nX-Other: b\r\n\r\n")

    (environ,) = seen
    assert "HTTP_X_API_KEY" not in environ
    assert environ["HTTP_X_OTHER"] == "b"


def test_blanks_around_a_value_are_not_part_of_it_and_those_inside_are():
    seen = []
    agent = Kitchen(authenticate=lambda environ: seen.append(environ) or "me")
    with calling(agent) as (_, server):
        raw(server.url, b"GET /status HTTP/1.1\r\nHost: x\r\nX: \t a \t b:c \t\r\nY: \t \r\n\r\n")

    (environ,) = seen
    assert (environ["HTTP_X"], environ["HTTP_Y"]) == ("a \t b:c", "")


@pytest.mark.parametrize(
    ("line", "status"),
    [(b" " * 1_200 + b"\x01", 400), (b"a" + b" " * 30_000 + b"a", 200)],
    ids=["refused", "taken"],
)
def test_a_run_of_blanks_in_a_header_costs_nothing(line, status):
    """A head is read before anybody is asked who they are, and holds all threads meanwhile."""
    with calling(Kitchen()) as (_, server):
        begin = time.process_time()
        answer = raw(server.url, GET + b"X:" + line + b"\r\n\r\n")
        took = time.process_time() - begin

    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert took < AT_ONCE


# ---- TLS ----


def test_https(tls_files):
    tls = TLSConfig(tls_files.server_cert, tls_files.server_key)
    context = ssl.create_default_context(cafile=tls_files.ca)
    with Kitchen().serve("https://127.0.0.1:0", tls=tls) as server:
        with Caller(server.url, context=context) as caller:
            assert caller.send(text_task("echo hi")).task().messages[-1].text == "hi"
            assert caller.request("POST", "/tasks/", b"x" * 2_000_000).status == 400

        assert server.url.startswith("https://127.0.0.1:")


def test_https_with_a_certificate_of_the_caller(tls_files):
    tls = TLSConfig(
        tls_files.server_cert, tls_files.server_key, tls_files.ca, require_client_cert=True
    )
    context = ssl.create_default_context(cafile=tls_files.ca)
    with Kitchen().serve("https://127.0.0.1:0", tls=tls) as server:
        with (
            pytest.raises((ssl.SSLError, ConnectionError)),
            Caller(server.url, context=context) as caller,
        ):
            caller.request("GET", "/healthz")
        context.load_cert_chain(tls_files.client_cert, tls_files.client_key)
        with Caller(server.url, context=context) as caller:
            assert caller.request("GET", "/healthz").status == 200


def test_a_handshake_that_does_not_come_holds_up_nobody(tls_files):
    tls = TLSConfig(tls_files.server_cert, tls_files.server_key)
    context = ssl.create_default_context(cafile=tls_files.ca)
    with Kitchen().serve("https://127.0.0.1:0", tls=tls) as server:
        silent = connected(server)
        with Caller(server.url, context=context) as caller:
            assert caller.request("GET", "/healthz").status == 200
        begin = time.monotonic()
    assert time.monotonic() - begin < AT_ONCE
    silent.close()


@pytest.mark.parametrize("url", ["https://127.0.0.1:0", "runtime://x"])
def test_tls_and_address_must_fit(url, tls_files):
    tls = TLSConfig(tls_files.server_cert, tls_files.server_key)
    wrong = None if url.startswith("https") else tls

    with pytest.raises(ValueError, match="only https takes it"):
        Kitchen().serve(url, tls=wrong)


def test_a_certificate_is_needed(tls_files):
    with pytest.raises(ValueError, match="certfile"):
        Kitchen().serve("https://127.0.0.1:0", tls=TLSConfig(cafile=tls_files.ca))


# ---- the end ----


def test_close_ends_idle_connections_at_once():
    with calling(Kitchen()) as (caller, server):
        caller.request("GET", "/healthz")
        half = connected(server)
        half.sendall(GET)
        wait_until(lambda: server.connections == 2)

        begin = time.monotonic()
        server.close()

        assert time.monotonic() - begin < AT_ONCE
        assert host_threads() == []
        half.close()


def test_close_waits_for_a_handler_and_its_answer():
    agent = Kitchen()
    with calling(agent) as (caller, server):
        answer = in_background(caller.send, text_task("wait"))
        agent.started.acquire()
        closed = in_background(server.close)
        agent.gate.set()

        reply = answer()
        closed()

    assert reply.task().messages[-1].text == "waited"
    assert reply.headers["connection"] == "close"


def test_close_cuts_a_handler_that_does_not_end():
    agent = Kitchen(config=TransportConfig(shutdown_timeout=0.05))
    with calling(agent) as (caller, server):
        answer = in_background(caller.send, text_task("stubborn"))
        agent.started.acquire()

        begin = time.monotonic()
        server.close()
        took = time.monotonic() - begin

        with pytest.raises((ConnectionError, OSError)):
            answer()
        agent.gate.set()
    assert took < 0.05 + AT_ONCE


def test_a_cut_handler_can_see_it():
    agent = Kitchen(config=TransportConfig(shutdown_timeout=0.05))
    with calling(agent) as (caller, server):
        answer = in_background(caller.send, text_task("wait"))
        agent.started.acquire()

        server.close()

        agent.ended.acquire()
        with pytest.raises(ConnectionError):
            answer()
    assert host_threads() == []


def test_a_closed_address_refuses_and_is_free_again():
    server = Kitchen().serve("http://127.0.0.1:0")
    server.close()
    server.close()

    with pytest.raises(ConnectionRefusedError):
        connected(server)
    with Kitchen().serve(server.url) as again:
        assert again.url == server.url


def test_a_taken_port_is_an_error_that_leaves_nothing():
    with calling(Kitchen()) as (_, server), pytest.raises(OSError, match="in use"):
        Kitchen().serve(server.url)


def test_a_handler_may_close_its_own_server():
    class Ending(Agent):
        def handle_task(self, task):
            self.server.close()
            return task.complete("closed")

    agent = Ending(card())
    with calling(agent) as (caller, server):
        agent.server = server

        assert caller.send(text_task("x")).task().messages[-1].text == "closed"
    wait_until(lambda: not host_threads())


def test_wait_ends_with_close():
    with calling(Kitchen()) as (_, server):
        assert server.wait(0.01) is False
        waiting = in_background(server.wait)
        server.close()

        assert waiting() is True


def test_a_signal_handler_may_close_while_wait_waits():
    server = Kitchen().serve("http://127.0.0.1:0")
    before = signal.signal(signal.SIGUSR1, lambda *_: server.close())
    try:
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        assert server.wait(LIMIT) is True
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)


def _stay(pipe):
    pipe.send("here")
    pipe.recv()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_keep_the_port():
    forking = multiprocessing.get_context("fork")
    ours, theirs = forking.Pipe()
    with ours, theirs, calling(Kitchen()) as (_, server):
        child = forking.Process(target=_stay, args=(theirs,))
        child.start()
        try:
            assert ours.recv() == "here"
            server.close()

            with pytest.raises(ConnectionRefusedError):
                connected(server)
        finally:
            ours.send("go")
            child.join(LIMIT)
            child.close()
