"""The scripted server itself, tried with raw sockets: cases stand on what it does."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Iterator

import pytest
import trustme

from tests.cases.script import ScriptError
from tests.cases.server import ScriptedServer

LIMIT = 10.0


@contextlib.contextmanager
def dial(server: ScriptedServer) -> Iterator[socket.socket]:
    with socket.create_connection((server.host, server.port), LIMIT) as sock:
        yield sock


def ask(sock: socket.socket, path: str = "/", body: bytes = b"{}", headers: str = "") -> bytes:
    """Send one POST and return what comes first."""
    head = f"POST {path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    sock.sendall(head.encode() + body)
    return sock.recv(65536)


def read_all(sock: socket.socket) -> bytes:
    pieces = []
    while piece := sock.recv(65536):
        pieces.append(piece)
    return b"".join(pieces)


def send_steps(*steps: dict) -> dict:
    return {"connections": [[*steps, {"op": "close"}]]}


def played(*steps: dict) -> bytes:
    """Return everything a connection's steps send."""
    with ScriptedServer(send_steps(*steps)) as server, dial(server) as sock:
        return read_all(sock)


# -- scripts that are wrong -----------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        {},
        {"routes": {}, "connections": []},
        {"routes": {}, "speed": 3},
        {"routes": {"/tasks/": [[]]}},
        {"routes": {}, "repeat_last": True},
        {"listen": True},
        {"connections": [[{"op": "teleport"}]]},
        {"connections": [[{"op": "send"}]]},
        {"connections": [[{"op": "sleep", "s": 1, "seconds": 1}]]},
        {"routes": {"*": [[{"op": "reply", "body": "{{taks_id}}"}]]}},
        {"routes": {"*": [[{"op": "reply", "headers": {"X": "{{nope}}"}}]]}},
        {"connections": [[{"op": "send", "data": "\u2028"}]]},
    ],
)
def test_a_script_that_is_not_understood_never_starts(script):
    with pytest.raises(ScriptError):
        ScriptedServer(script)


@pytest.mark.parametrize(
    "step",
    [
        {"op": "reply", "body": "{{rpc_id}}"},
        {"op": "reply", "body": "{{req_id}}"},
        {"op": "reply", "body": "{{task_id}}"},
        {"op": "reply", "body": "{{base:0}}"},
        {"op": "ws_accept"},
        {"op": "gzip_end"},
        {"op": "wait", "event": "e", "s": 0.01},
        {"op": "barrier", "name": "b", "n": 2, "s": 0.01},
    ],
)
def test_a_step_that_cannot_be_played_is_a_problem(step):
    with ScriptedServer({"routes": {"*": [[step]]}}) as server:
        with dial(server) as sock:
            ask(sock, body=b"[]")
        assert server.wait_until(lambda s: bool(s.problems), LIMIT)
        with pytest.raises(AssertionError, match="connection 1"):
            server.check()
        server.problems.clear()


def test_a_request_that_cannot_be_read_is_a_problem():
    with ScriptedServer({"routes": {}}) as server:
        with dial(server) as sock:
            sock.sendall(b"\x16\x03\x01\r\n\r\n")
            assert read_all(sock) == b""
        assert "no request line" in server.problems[0]
        server.problems.clear()


def test_an_event_that_no_step_waits_for_cannot_be_fired():
    with ScriptedServer({"routes": {}}) as server, pytest.raises(ScriptError):
        server.fire("typo")


# -- routes and connections -----------------------------------------------------------------


def test_a_route_serves_its_lists_in_turn_and_the_last_again():
    lists = [[{"op": "reply", "body": text}] for text in ("one", "two")]
    with ScriptedServer({"routes": {"POST /": lists}}) as server:
        with dial(server) as sock:
            first, second = ask(sock), ask(sock)
        with dial(server) as sock:
            third = ask(sock)

    assert first == b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none"
    assert second.endswith(b"two")
    assert third.endswith(b"two")
    assert [request.connection for request in server.requests] == [1, 1, 2]


def test_the_most_exact_route_is_taken_and_the_rest_is_404():
    routes = {key: [[{"op": "reply", "body": key}]] for key in ("POST /a", "POST *", "*")}
    for missing, expected in (("", b"POST /a"), ("POST /a", b"POST *"), ("POST *", b"*")):
        routes.pop(missing, None)
        with ScriptedServer({"routes": routes}) as server, dial(server) as sock:
            assert ask(sock, "/a").endswith(expected)
    for other in ({}, {"POST /a": []}):
        with ScriptedServer({"routes": other}) as server, dial(server) as sock:
            assert ask(sock, "/a").startswith(b"HTTP/1.1 404 Not Found\r\n")


def test_requests_are_recorded_as_they_came():
    start = time.monotonic()
    with ScriptedServer({"routes": {"*": [[{"op": "reply"}]]}}) as server, dial(server) as sock:
        ask(sock, "//a?b=c", b'{"x": 1}', "X-Two: 1\r\nx-two: 2\r\n")

    (request,) = server.requests
    assert request.name == "POST //a"
    assert request.target == "//a?b=c"
    assert request.all("X-TWO") == ["1", "2"]
    assert request.header("none") is None
    assert request.json() == {"x": 1}
    assert start <= request.at <= time.monotonic()


def test_a_chunked_request_is_read_whole():
    with ScriptedServer({"routes": {"*": [[{"op": "reply"}]]}}) as server, dial(server) as sock:
        sock.sendall(
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"2;x=y\r\n{}\r\n3\r\nabc\r\n0\r\nTrailer: t\r\n\r\n"
        )
        sock.recv(100)

    assert server.requests[0].body == b"{}abc"


def test_connections_play_their_lists_and_read_only_what_a_step_says():
    script = {"connections": [[{"op": "send", "data": "a"}], [{"op": "send", "data": "b"}]]}
    with ScriptedServer(script) as server:
        with dial(server) as sock:
            sock.sendall(b"never read")
            assert sock.recv(10) == b"a"
        with dial(server) as sock:
            assert sock.recv(10) == b"b"
        with dial(server) as sock:
            assert sock.recv(10) == b""
    assert not server.requests
    assert not server.connections[0].received


def test_the_last_connection_list_can_be_repeated():
    script = {"connections": [[{"op": "send", "data": "a"}]], "repeat_last": True}
    with ScriptedServer(script) as server:
        for _ in range(3):
            with dial(server) as sock:
                assert sock.recv(10) == b"a"


def test_a_head_and_some_bytes_can_be_read_alone():
    steps = [{"op": "recv_head"}, {"op": "recv_some"}, {"op": "send", "data": "x"}]
    with ScriptedServer({"connections": [steps]}) as server, dial(server) as sock:
        assert ask(sock, "/p", b"body") == b"x"
        assert server.requests[0].name == "POST /p"
        assert server.requests[0].body == b""
        assert server.connections[0].received.endswith(b"body")


def test_refused_and_silent_addresses():
    with ScriptedServer({"listen": False}) as server, pytest.raises(ConnectionRefusedError):
        socket.create_connection((server.host, server.port), LIMIT)
    with ScriptedServer({"listen": "blackhole"}) as server, pytest.raises(TimeoutError):
        socket.create_connection((server.host, server.port), 0.3)


def test_ipv6():
    with ScriptedServer({"routes": {"*": [[{"op": "reply"}]]}}, host="::1") as server:
        assert server.base == f"http://[::1]:{server.port}"
        with dial(server) as sock:
            assert ask(sock).startswith(b"HTTP/1.1 200")


# -- placeholders ---------------------------------------------------------------------------


def test_placeholders_are_filled_from_the_request():
    peer = ScriptedServer({"listen": False})
    text = "{{rpc_id}} {{req_id}} {{task_id}} {{base}} {{base:0}} {{hdr:X-A}}|{{hdr:X-B}}|\u00fc"
    steps = [{"op": "reply", "headers": {"X-Echo": "{{hdr:x-a}}"}, "body": text}]
    body = json.dumps({"id": 'q"\u00e9'}).encode()
    with (
        peer,
        ScriptedServer({"routes": {"*": [steps]}}, peers=[peer]) as server,
        dial(server) as sock,
    ):
        answer = ask(sock, "/", body, "X-Protolink-Request-ID: r1\r\nX-A: v\r\n")

    head, _, filled = answer.partition(b"\r\n\r\n")
    assert b"X-Echo: v\r\n" in head
    expected = f'"q\\"\\u00e9" r1 q\\"\u00e9 {server.base} {peer.base} v||'.encode() + b"\xfc"
    assert filled == expected
    assert b"Content-Length: %d" % len(expected) in head


def test_a_cancel_request_names_its_task_otherwise():
    script = {"routes": {"*": [[{"op": "reply", "body": "{{task_id}}"}]]}}
    with ScriptedServer(script) as server, dial(server) as sock:
        assert ask(sock, "/", b'{"task_id": "t-9"}').endswith(b"t-9")


# -- steps that send ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({"op": "send", "data": "\u00c3\u00a9"}, b"\xc3\xa9"),
        ({"op": "split", "data": "abcdef", "at": [1, 4]}, b"abcdef"),
        ({"op": "drip", "data": "abcde", "bytes": 2, "every_s": 0.001}, b"abcde"),
        ({"op": "repeat", "data": "ab", "times": 3}, b"ababab"),
        ({"op": "fill", "byte": "x", "count": 100_000}, b"x" * 100_000),
        ({"op": "chunk", "data": "0123456789abcdef"}, b"10\r\n0123456789abcdef\r\n"),
        ({"op": "chunks", "data": "abc", "size": 2}, b"2\r\nab\r\n1\r\nc\r\n"),
        ({"op": "end_chunks"}, b"0\r\n\r\n"),
        (
            {"op": "head", "status": 418, "headers": {"A": "b"}},
            b"HTTP/1.1 418 I'm a Teapot\r\nA: b\r\n\r\n",
        ),
        (
            {"op": "sse_head"},
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n",
        ),
        (
            {"op": "sse_head", "headers": {"content-type": "x/y"}},
            b"HTTP/1.1 200 OK\r\ncontent-type: x/y\r\nTransfer-Encoding: chunked\r\n\r\n",
        ),
        (
            {"op": "reply", "status": 299, "reason": "Odd", "body": "x", "content_length": 9},
            b"HTTP/1.1 299 Odd\r\nContent-Length: 9\r\n\r\nx",
        ),
        (
            {"op": "reply", "headers": [["A", "1"], ["A", "2"]], "content_length": None},
            b"HTTP/1.1 200 OK\r\nA: 1\r\nA: 2\r\n\r\n",
        ),
    ],
)
def test_a_step_sends_exactly_these_bytes(step, expected):
    assert played(step) == expected


def test_split_pieces_come_one_by_one():
    step = {"op": "split", "data": "abc", "at": [1], "gap_s": 0.05}
    with ScriptedServer(send_steps(step)) as server, dial(server) as sock:
        assert sock.recv(10) == b"a"
        before = time.monotonic()
        assert sock.recv(10) == b"bc"
        assert time.monotonic() - before > 0.02


def test_gzip_chunks_form_one_stream_readable_after_each():
    cut = played({"op": "gzip_chunk", "data": "ab"}, {"op": "gzip_chunk", "data": "c"})
    whole = played(
        {"op": "gzip_chunk", "data": "ab"},
        {"op": "gzip_chunk", "data": "c", "sync": False},
        {"op": "gzip_end"},
    )

    def join(chunks: bytes) -> bytes:
        data = b""
        while chunks:
            size, _, rest = chunks.partition(b"\r\n")
            data, chunks = data + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
        return data

    assert gzip.decompress(join(whole)) == b"abc"
    with pytest.raises(EOFError):
        gzip.decompress(join(cut))
    assert zlib.decompressobj(wbits=31).decompress(join(cut)) == b"abc"


# -- time, events, ends ---------------------------------------------------------------------


def test_a_pause_is_kept_and_ends_with_the_client():
    script = {"connections": [[{"op": "sleep", "s": 30}]], "repeat_last": True}
    with ScriptedServer(script) as server:
        with dial(server) as sock:
            sock.sendall(b"unread")
        closed = time.monotonic()
        assert server.wait_for_end() == "client"
        assert server.connections[0].closed_at - closed < 5
    assert played({"op": "sleep", "s": 0.05}, {"op": "send", "data": "x"}) == b"x"


def test_an_event_lets_waiting_steps_go_on():
    steps = [{"op": "wait", "event": "go", "s": LIMIT}, {"op": "send", "data": "x"}]
    with ScriptedServer(send_steps(*steps)) as server, dial(server) as sock:
        sock.settimeout(0.05)
        with pytest.raises(TimeoutError):
            sock.recv(1)
        sock.settimeout(LIMIT)
        server.fire("go")
        assert sock.recv(1) == b"x"


def test_a_barrier_waits_for_all():
    steps = [{"op": "barrier", "name": "b", "n": 2, "s": LIMIT}, {"op": "send", "data": "x"}]
    script = {"connections": [steps], "repeat_last": True}
    with ScriptedServer(script) as server, dial(server) as first:
        first.settimeout(0.05)
        with pytest.raises(TimeoutError):
            first.recv(1)
        first.settimeout(LIMIT)
        with dial(server) as second:
            assert first.recv(1) == second.recv(1) == b"x"


def test_hold_ends_with_the_client_or_its_time():
    with ScriptedServer({"routes": {"*": [[{"op": "hold"}]]}}) as server:
        with dial(server) as sock:
            sock.sendall(b"POST / HTTP/1.1\r\n\r\n")
            server.wait_for_requests(1)
        assert server.wait_for_end() == "client"
    assert played({"op": "hold", "s": 0.01}, {"op": "send", "data": "x"}) == b"x"


def test_close_is_a_clean_end_even_with_unread_bytes():
    script = {"connections": [[{"op": "wait", "event": "e"}, {"op": "close"}]]}
    with ScriptedServer(script) as server, dial(server) as sock:
        sock.sendall(b"unread")
        server.fire("e")
        assert sock.recv(1) == b""
        assert server.wait_for_end() == "server"


def test_rst_is_a_reset():
    # A reset at once can come while the client still connects, and end the connect.
    script = {"connections": [[{"op": "wait", "event": "connected"}, {"op": "rst"}]]}
    with ScriptedServer(script) as server, dial(server) as sock:
        server.fire("connected")
        with pytest.raises(ConnectionResetError):
            sock.recv(1)


def test_a_client_that_goes_while_bytes_are_sent_is_no_problem():
    script = {"connections": [[{"op": "fill", "byte": "x", "count": 50_000_000}]]}
    with ScriptedServer(script) as server:
        with dial(server) as sock:
            sock.recv(1)
        assert server.wait_for_end() == "client"


def test_missing_requests_are_told():
    with (
        ScriptedServer({"routes": {}}) as server,
        pytest.raises(AssertionError, match="0 requests"),
    ):
        server.wait_for_requests(1, within=0.01)


@pytest.mark.parametrize(
    "step",
    [
        {"op": "hold"},
        {"op": "sleep", "s": 60},
        {"op": "recv"},
        {"op": "wait", "event": "never"},
        {"op": "barrier", "name": "b", "n": 9},
        {"op": "fill", "byte": "x", "count": 50_000_000},
        {"op": "drip", "data": "abc", "every_s": 60},
        {"op": "send", "data": "lingers"},
    ],
)
def test_stop_is_at_once_and_leaves_nothing(step):
    descriptors = open_descriptors()
    threads = set(threading.enumerate())
    server = ScriptedServer({"connections": [[step]]})
    with dial(server):
        assert server.wait_until(lambda s: bool(s.connections), LIMIT)
        before = time.monotonic()

        server.stop()
        server.stop()

        assert time.monotonic() - before < 5
        assert server.connections[0].closed_by == "stop"
    assert set(threading.enumerate()) == threads
    assert open_descriptors() == descriptors
    server.check()


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


# -- TLS ------------------------------------------------------------------------------------


def test_tls_serves_the_same_scripts():
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    script = {"routes": {"*": [[{"op": "reply", "body": "x"}], [{"op": "close"}]]}}
    with ScriptedServer(script, tls=context) as server:
        assert server.base.startswith("https://")
        with (
            dial(server) as plain,
            trusting.wrap_socket(plain, server_hostname="127.0.0.1") as sock,
        ):
            assert ask(sock).endswith(b"\r\n\r\nx")
            assert ask(sock) == b""
        with dial(server) as plain, pytest.raises(ssl.SSLCertVerificationError):
            ssl.create_default_context().wrap_socket(plain, server_hostname="127.0.0.1")
        assert server.wait_for_end(2) == "client"
        assert server.connections[1].tls_error
    assert len(server.requests) == 2


# -- WebSocket ------------------------------------------------------------------------------


def masked_frame(first: int, payload: bytes) -> bytes:
    size = (
        bytes([0x80 | len(payload)])
        if len(payload) < 126
        else b"\xfe" + len(payload).to_bytes(2, "big")
    )
    key = b"\x05\x06\x07\x08"
    return bytes([first]) + size + key + bytes(b ^ key[i % 4] for i, b in enumerate(payload))


def test_websocket_steps():
    steps = [
        {"op": "recv"},
        {"op": "ws_recv", "s": 0.01},
        {"op": "ws_accept"},
        {"op": "ws_recv"},
        {"op": "ws_recv"},
        {"op": "ws_recv"},
        {"op": "ws_frame", "opcode": 1, "data": "{{rpc_id}}"},
        {"op": "ws_frame", "opcode": 0, "data": "a", "fin": False, "rsv1": True, "mask": True},
        {"op": "ws_frame", "opcode": 2, "data": "b", "declared_len": 1 << 40},
        {"op": "ws_frame", "opcode": 2, "fill": 200, "times": 2},
        {"op": "close"},
    ]
    with ScriptedServer({"connections": [steps]}) as server, dial(server) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += sock.recv(1)
        sock.sendall(masked_frame(0x01, b'{"id":') + masked_frame(0x80, b' "f1"}'))
        sock.sendall(masked_frame(0x8A, b"p" * 200))
        frames = read_all(sock)

    assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in head
    assert frames == (
        b'\x81\x04"f1"'
        b"\x40\x81\x01\x02\x03\x04" + bytes([ord("a") ^ 1]) + b"\x82\x7f"
        b"\0\0\1\0\0\0\0\0b" + 2 * (b"\x82\x7e\0\xc8" + b"x" * 200)
    )
    first, second, pong = server.connections[0].frames
    assert (first.opcode, first.fin, first.masked, first.payload) == (1, False, True, b'{"id":')
    assert (second.opcode, second.fin) == (0, True)
    assert (pong.opcode, pong.payload) == (10, b"p" * 200)
