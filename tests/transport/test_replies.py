"""What a peer answers: which error each fault becomes, and that the next call works."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import zlib
from typing import Any

import attrs
import pytest

from protolink_sync.errors import (
    AuthenticationError,
    TransportConnectionError,
    TransportLimitError,
    TransportProtocolError,
    TransportRemoteError,
)
from protolink_sync.models import ClientRequestSpec, Message, Task
from protolink_sync.specs import TASK_REQUEST
from protolink_sync.transport import HTTPTransport, TransportConfig, TransportLimits
from protolink_sync.transport._connections import Connection
from protolink_sync.transport._reply import Reply
from tests.transport.scenes import (
    ASK,
    ASK_ONCE,
    CLOSE,
    HOLD,
    JSON,
    LIMIT,
    LOOK,
    RECV,
    RECV_HEAD,
    RST,
    about,
    answering,
    check_whole,
    failed,
    raw_reply,
    reply,
    send,
    serving,
    transport,
)

HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
OK_BODY = 'Content-Length: 11\r\n\r\n{"ok":true}'

# ---- HTTP that is none -------------------------------------------------------------------------

NOT_HTTP = {
    "an SSH server": ("SSH-2.0-OpenSSH_9.6\r\n", "does not speak HTTP", "SSH-2.0-OpenSSH_9.6"),
    "an FTP server": ("220 ready\r\n", "does not speak HTTP", "220 ready"),
    "an empty line": ("\r\n\r\n", "does not speak HTTP"),
    "a status that is no number": ("HTTP/1.1 abc OK\r\n\r\n", "does not speak HTTP"),
    "a status beyond 999": ("HTTP/1.1 1000 OK\r\n\r\n", "does not speak HTTP"),
    "HTTP/2": ("HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", "not valid HTTP"),
    "too many headers": (HEAD + "X-A: b\r\n" * 101, "headers"),
    "a header line of 70 KB": (f"{HEAD}X-Long: {'x' * 70_000}\r\n\r\n", "header line"),
    "a status line of 70 KB": (f"HTTP/1.1 200 {'x' * 70_000}\r\n\r\n", "status line"),
    "a header without colon": (f"{HEAD}what is this\r\n\r\n", "what is this"),
    "a header without name": (f"{HEAD}: nothing\r\n\r\n", "header"),
    "a blank before the colon": (f"{HEAD}Content-Length : 2\r\n\r\n{{}}", "header"),
    "a length that is no number": (f"{HEAD}Content-Length: many\r\n\r\n{{}}", "content length"),
    "a negative length": (f"{HEAD}Content-Length: -1\r\n\r\n{{}}", "content length"),
    "two lengths": (f"{HEAD}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}", "content length"),
    "a length of 5,000 digits": (f"{HEAD}Content-Length: {'9' * 5000}\r\n\r\n", "5000 digits"),
}


@pytest.mark.parametrize("fault", NOT_HTTP)
def test_a_reply_that_is_not_http_is_a_protocol_error(fault):
    sent, *words = NOT_HTTP[fault]

    with (
        serving([RECV, send(sent), CLOSE], [RECV, reply()]) as server,
        transport(server) as client,
    ):
        error = failed(client)

        assert type(error) is TransportProtocolError
        assert not error.retryable
        assert error.phase == "wait"
        check_whole(error, server, *words)
        assert client.send(ASK, None, {}) == {"ok": True}
        assert len(server.connections) == 2


CHUNKED = f"{HEAD}Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("coding", ["xchunked", "gzip, chunked", "gzip"])
def test_an_unknown_transfer_encoding_is_a_protocol_error_and_no_wait(coding):
    bad = [RECV, send(f"{HEAD}Transfer-Encoding: {coding}\r\n\r\n2\r\n{{}}\r\n"), HOLD]

    with serving(bad) as server, transport(server) as client:
        error = failed(client)

    assert type(error) is TransportProtocolError
    assert coding in str(error)


BAD_CHUNKS = {
    "a size that is not hexadecimal": "zz\r\nhello\r\n0\r\n\r\n",
    "no size": "\r\nhello\r\n0\r\n\r\n",
    "a negative size": "-1\r\n" + "x" * 100_000,
    "a size with underscores": "1_0\r\n0123456789abcdef\r\n0\r\n\r\n",
    "a size with a prefix": "0x10\r\n0123456789abcdef\r\n0\r\n\r\n",
    "a size of more digits than any": "f" * 21 + "\r\nhello\r\n0\r\n\r\n",
    "a line of 70 KB": "x" * 70_000,
}


@pytest.mark.parametrize("fault", BAD_CHUNKS)
def test_a_bad_chunk_is_an_error_of_the_family(fault):
    """The peer has seen the whole call: what came is no answer in any case."""
    with (
        serving([RECV, send(CHUNKED + BAD_CHUNKS[fault]), CLOSE], [RECV, reply()]) as server,
        transport(server) as client,
    ):
        error = failed(client)

        assert type(error) is TransportProtocolError
        assert not error.retryable
        assert error.phase == "read"
        check_whole(error, server, "chunk")
        assert client.send(ASK, None, {}) == {"ok": True}
        assert len(server.connections) == 2


# ---- cut short ---------------------------------------------------------------------------------

GZIPPED = gzip.compress(json.dumps({"text": "x" * 500}).encode()).decode("latin-1")

CUT_SHORT = {
    "before the status line": ("", "wait"),
    "within the status line": ("HTTP/1.1 20", "wait"),
    "within the headers": (HEAD, "wait"),
    "within a header line": (HEAD + "Content-Le", "wait"),
    "before the body": (f"{HEAD}Content-Length: 11\r\n\r\n", "read"),
    "within the body": (f'{HEAD}Content-Length: 11\r\n\r\n{{"ok"', "read"),
    "within a gzip body": (
        f"{HEAD}Content-Encoding: gzip\r\nContent-Length: {len(GZIPPED)}\r\n\r\n{GZIPPED[:20]}",
        "read",
    ),
    "before the first chunk": (CHUNKED, "read"),
    "within a chunk": (CHUNKED + 'b\r\n{"ok"', "read"),
    "between two chunks": (CHUNKED + '5\r\n{"ok"\r\n', "read"),
    "before the last chunk": (CHUNKED + 'b\r\n{"ok":true}\r\n', "read"),
    "within a gzip chunk": (
        f"{HEAD}Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
        f"{len(GZIPPED):x}\r\n{GZIPPED[:20]}",
        "read",
    ),
}


@pytest.mark.parametrize("how", [CLOSE, RST], ids=["closed", "reset"])
@pytest.mark.parametrize("where", CUT_SHORT)
def test_a_reply_that_is_cut_short_is_a_connection_error_that_may_be_retried(where, how):
    sent, phase = CUT_SHORT[where]
    # A pause, because a reset overtakes what was sent just before.
    steps = [RECV, *([send(sent), {"op": "sleep", "s": 0.05}] if sent else []), how]

    with serving(steps, [RECV, reply()]) as server, transport(server) as client:
        error = failed(client, ASK_ONCE_AS_ASK)

        assert type(error) is TransportConnectionError
        assert isinstance(error, ConnectionError)
        assert error.retryable
        assert error.phase == phase
        check_whole(error, server)
        assert client.send(ASK, None, {}) == {"ok": True}
        assert len(server.connections) == 2


# Of the same name, so that messages begin alike; it is never repeated.
ASK_ONCE_AS_ASK = ClientRequestSpec("ask", "/ask", "POST")


@pytest.mark.parametrize("how", [CLOSE, RST], ids=["closed", "reset"])
@pytest.mark.parametrize("where", ["before the status line", "within the body"])
def test_a_reply_that_is_cut_short_over_tls_is_a_connection_error_too(
    where, how, tls_server, tls_client
):
    sent, phase = CUT_SHORT[where]
    steps = [RECV, *([send(sent), {"op": "sleep", "s": 0.05}] if sent else []), how]

    with (
        serving(steps, [RECV, reply()], tls=tls_server) as server,
        transport(server, tls=tls_client) as client,
    ):
        error = failed(client)

        assert type(error) is TransportConnectionError
        assert error.retryable
        assert error.phase == phase
        check_whole(error, server)
        assert client.send(ASK, None, {}) == {"ok": True}


def test_a_submission_that_was_cut_says_that_the_task_may_run():
    submit = ClientRequestSpec("ask", "/tasks/", "POST")

    with serving([RECV, CLOSE]) as server, transport(server) as client:
        error = failed(client, submit, data={"id": "t-1"})

    assert "The task may be running at the peer" in str(error)


def test_a_reply_that_the_peer_ends_by_closing_is_whole():
    """HTTP/1.0, and the only form without length and chunks."""
    with (
        serving([RECV, send('HTTP/1.0 200 OK\r\n\r\n{"ok":true}'), CLOSE]) as server,
        transport(server) as client,
    ):
        assert client.send(ASK, None, {}) == {"ok": True}
        assert client.send(ASK, None, {}) == {"ok": True}
        assert len(server.connections) == 2


def test_http_1_0_keeps_a_connection_if_both_want_it():
    answer = send(f"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n{OK_BODY}")

    with serving([RECV, answer, RECV, answer]) as server, transport(server) as client:
        assert client.send(ASK, None, {}) == {"ok": True}
        assert client.send(ASK, None, {}) == {"ok": True}
        assert len(server.connections) == 1


# ---- interim replies ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "interim",
    [
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 102 Processing\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nContent-Length: 7\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\n\r\n" * 3,
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 199 What\r\n\r\nHTTP/1.1 103 E\r\n\r\n",
    ],
    ids=["100", "102", "103", "three", "a mix"],
)
def test_interim_replies_are_no_answer(interim):
    with (
        answering([send(interim), reply({"answer": 1})]) as server,
        transport(server) as client,
    ):
        assert client.send(ASK, None, {}) == {"answer": 1}
        assert client.send(ASK, None, {}) == {"answer": 1}
        assert len(server.connections) == 1


def test_a_peer_that_sends_interim_replies_for_ever_ends_with_the_budget():
    drip = {"op": "repeat", "data": "HTTP/1.1 102 P\r\n\r\n", "times": 1000, "every_s": 0.02}

    with serving([RECV, drip]) as server, transport(server) as client:
        error = failed(client, timeout=0.3)

    assert isinstance(error, TimeoutError)
    assert error.elapsed == about(0.3)


@pytest.mark.parametrize("coding", ["chunked", "gzip, chunked"])
@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_a_reply_without_a_body_is_whole_whatever_its_headers_announce(status, coding):
    """A peer may tell of the body that it would have sent instead (RFC 9112, 6.1)."""
    headers = f"Transfer-Encoding: {coding}\r\nContent-Encoding: gzip\r\n"
    empty = send(f"HTTP/1.1 {status}\r\n{headers}\r\n")

    with answering([empty], reply({"answer": 1})) as server, transport(server) as client:
        error = failed(client)
        assert client.send(ASK, None, {}) == {"answer": 1}
        assert len(server.connections) == 1

    assert isinstance(error, (TransportProtocolError, TransportRemoteError))
    assert error.elapsed < 5


def test_a_last_chunk_behind_a_reply_without_a_body_is_not_the_next_answer():
    wrong = "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"

    with answering([send(wrong)], reply({"answer": 1})) as server, transport(server) as client:
        failed(client)
        assert client.send(ASK, None, {}) == {"answer": 1}
        assert len(server.connections) == 2


@pytest.mark.parametrize(
    "head",
    ["HTTP/1.1 200 OK\r\nContent-Length: 11\r\n", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n"],
    ids=["length and chunks", "chunks of HTTP/1.0"],
)
def test_a_reply_whose_end_somebody_may_take_to_be_elsewhere_is_the_last_on_its_connection(head):
    """What follows it there may be what another one made of its body (RFC 9112, 6.1)."""
    doubtful = send(f'{head}Transfer-Encoding: chunked\r\n\r\nb\r\n{{"ok":true}}\r\n0\r\n\r\n')

    with serving([RECV, doubtful, HOLD], [RECV, reply()]) as server, transport(server) as client:
        assert [client.send(ASK, None, {}) for _ in range(2)] == [{"ok": True}] * 2
        assert len(server.connections) == 2


def test_a_switch_of_protocols_that_nobody_asked_for_is_an_error():
    """What the connection speaks from then on is not HTTP: it is not used again."""
    switch = send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")

    with serving([RECV, switch, HOLD], [RECV, reply()]) as server, transport(server) as client:
        error = failed(client)

        assert isinstance(error, (TransportRemoteError, TransportProtocolError))
        assert error.status_code == 101
        assert client.send(ASK, None, {}) == {"ok": True}
        assert len(server.connections) == 2


# ---- whole replies that are no answer ----------------------------------------------------------

HTML = {"Content-Type": "text/html"}

UNREADABLE = {
    "204": ([send("HTTP/1.1 204 No Content\r\n\r\n")], ["204", "empty"]),
    "204 with a body": ([send("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n")], ["204"]),
    "an empty body": ([raw_reply("")], ["200", "empty"]),
    "205 without body": ([raw_reply("", status=205)], ["205", "empty"]),
    "HTML": ([raw_reply("<html><h1>Hello</h1>", HTML)], ["text/html", "<html><h1>Hello</h1>"]),
    "text": ([raw_reply("OK", {"Content-Type": "text/plain"})], ["text/plain", "OK"]),
    "invalid UTF-8": ([raw_reply('{"a": "\xff\xfe"}')], ["byte 7", "UTF-8"]),
    "UTF-16": ([raw_reply('{"a": 1}'.encode("utf-16").decode("latin-1"))], ["UTF-8"]),
    "a byte order mark": ([raw_reply('\xef\xbb\xbf{"a": 1}')], ["byte order mark"]),
    "NaN": ([raw_reply('{"a": NaN}')], ["NaN"]),
    "Infinity": ([raw_reply('{"a": -Infinity}')], ["Infinity"]),
    "a number beyond floats": ([raw_reply('{"a": 1e999}')], ["1e999"]),
    "deep nesting": ([raw_reply("[" * 100_000 + "]" * 100_000)], ["nested too deeply"]),
    "half a document": ([raw_reply('{"a": ')], ["not JSON"]),
    "two documents": ([raw_reply("{} {}")], ["not JSON"]),
    "a gzip of no JSON": (
        [raw_reply(gzip.compress(b"<p>").decode("latin-1"), {"Content-Encoding": "gzip"})],
        ["not JSON"],
    ),
}


@pytest.mark.parametrize("fault", UNREADABLE)
def test_a_body_that_is_no_json_is_a_protocol_error_and_the_connection_is_kept(fault):
    steps, words = UNREADABLE[fault]

    with answering(steps, reply()) as server, transport(server) as client:
        error = failed(client)

        assert type(error) is TransportProtocolError
        assert isinstance(error, RuntimeError)
        assert not error.retryable
        assert error.phase == "read"
        assert isinstance(error.status_code, int)
        check_whole(error, server, *words)
        assert client.send(ASK, None, {}) == {"ok": True}
        assert len(server.connections) == 1


@pytest.mark.parametrize("depth", [100, 400, 900, 3000, 50_000])
@pytest.mark.parametrize("parser", [None, Task.from_dict], ids=["JSON", "task"])
def test_nesting_of_any_depth_is_read_or_is_a_protocol_error(depth, parser):
    spec = ClientRequestSpec("ask", "/ask", "POST", parser)
    task = {"id": "t", "state": "completed", "metadata": "METADATA"}
    body = json.dumps(task).replace('"METADATA"', '{"a":' + "[" * depth + "]" * depth + "}")

    with answering(raw_reply(body)) as server, transport(server) as client:
        try:
            client.send(spec, None, {})
        except TransportProtocolError as error:
            check_whole(error, server)


def test_a_value_of_the_wrong_shape_is_named_with_its_path():
    spec = ClientRequestSpec("ask", "/ask", "POST", Task.from_dict)
    wrong = {"id": "t", "state": "completed", "messages": [{"role": "agent", "parts": [5]}]}

    with answering(reply(wrong)) as server, transport(server) as client:
        error = failed(client, spec)

    assert type(error) is TransportProtocolError
    assert not error.retryable
    check_whole(error, server, "wrong shape", "$.messages[0].parts[0]")


def test_a_json_value_of_another_kind_than_the_model_is_a_protocol_error():
    spec = ClientRequestSpec("ask", "/ask", "POST", Task.from_dict)

    for value in ([], "text", 5, None):
        with answering(raw_reply(json.dumps(value))) as server, transport(server) as client:
            assert type(failed(client, spec)) is TransportProtocolError


def test_the_error_of_a_parser_of_your_own_passes_through():
    def parse(value: Any) -> Any:
        raise KeyError("mine")

    with answering() as server, transport(server) as client:
        with pytest.raises(KeyError, match="mine"):
            client.send(ClientRequestSpec("ask", "/ask", "POST", parse), None, {})

        assert client.metrics.requests_failed == 1
        assert client.send(ASK, None, {}) == {"ok": True}


# ---- encodings ---------------------------------------------------------------------------------


def zipped(data: bytes, wbits: int) -> bytes:
    compressor = zlib.compressobj(wbits=wbits)
    return compressor.compress(data) + compressor.flush()


BODY = b'{"ok":true}'

ENCODED = {
    "gzip": gzip.compress(BODY),
    "x-gzip": gzip.compress(BODY),
    "GZIP": gzip.compress(BODY),
    "deflate": zlib.compress(BODY),
    "identity": BODY,
    "": BODY,
}


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
@pytest.mark.parametrize("encoding", ENCODED)
def test_an_encoded_body_is_read(encoding, chunked):
    body = ENCODED[encoding].decode("latin-1")
    headers = {"Content-Encoding": encoding}
    if chunked:
        head = {"op": "head", "headers": {**headers, "Transfer-Encoding": "chunked"}}
        steps = [head, {"op": "chunks", "data": body, "size": 3}, {"op": "end_chunks"}]
    else:
        steps = [raw_reply(body, headers)]

    with answering(steps) as server, transport(server) as client:
        assert client.send(ASK, None, {}) == {"ok": True}
        assert client.send(ASK, None, {}) == {"ok": True}
        assert len(server.connections) == 1


def test_deflate_without_its_wrapper_is_read():
    """What some servers mean by deflate."""
    body = zipped(BODY, -15).decode("latin-1")

    with (
        answering(raw_reply(body, {"Content-Encoding": "deflate"})) as server,
        transport(server) as client,
    ):
        assert client.send(ASK, None, {}) == {"ok": True}


@pytest.mark.parametrize("body", ["no gzip at all", GZIPPED[:4] + "\x00" * 40])
def test_a_body_that_cannot_be_inflated_is_a_protocol_error(body):
    bad = raw_reply(body, {"Content-Encoding": "gzip"})

    with answering(bad, reply()) as server, transport(server) as client:
        error = failed(client)

        assert type(error) is TransportProtocolError
        assert error.phase == "read"
        check_whole(error, server, "inflated")
        assert client.send(ASK, None, {}) == {"ok": True}


@pytest.mark.parametrize("encoding", ["br-of-tomorrow", "compress", "gzip, unknown"])
def test_an_encoding_that_was_not_asked_for_is_a_protocol_error(encoding):
    strange = raw_reply("\x8b\x02\x80ab\x03", {"Content-Encoding": encoding})

    with answering(strange, reply()) as server, transport(server) as client:
        error = failed(client)

        assert type(error) is TransportProtocolError
        assert not error.retryable
        check_whole(error, server)
        assert client.send(ASK, None, {}) == {"ok": True}


def test_only_encodings_that_can_be_read_are_asked_for():
    with answering() as server, transport(server) as client:
        client.send(ASK, None, {})

    assert server.requests[0].all("Accept-Encoding") == ["gzip, deflate"]


# ---- statuses ----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308])
def test_a_redirect_is_not_followed_and_its_target_is_named(status):
    with answering() as other:
        aside = reply(status=status, headers={"Location": f"{other.base}/ask"})
        with answering(aside, reply()) as server, transport(server, credentials="s3cr3t") as client:
            error = failed(client)

            assert type(error) is TransportRemoteError
            assert error.status_code == status
            assert not error.retryable
            assert error.headers["location"] == f"{other.base}/ask"
            check_whole(error, server, str(status), f"{other.base}/ask", "not followed")
            assert not other.connections
            assert len(server.requests) == 1


@pytest.mark.parametrize("status", [400, 404, 405, 409, 413, 422, 500, 501, 505, 599])
def test_an_error_status_is_a_remote_error_that_is_not_retried(status):
    told = {"error": {"type": "BadThing", "message": "went wrong"}}

    with answering(reply(told, status=status), reply()) as server, transport(server) as client:
        error = failed(client)

        assert type(error) is TransportRemoteError
        assert isinstance(error, RuntimeError)
        assert error.status_code == status
        assert not error.retryable
        assert error.phase == "read"
        assert error.error_type == "BadThing"
        assert error.error_message == "went wrong"
        assert json.loads(error.body) == told
        assert error.headers["content-type"] == "application/json"
        check_whole(error, server, str(status), "went wrong")
        assert client.send(ASK, None, {}) == {"ok": True}
        # uvicorn closes a connection soon after a server error, without saying so.
        assert len(server.connections) == (2 if status >= 500 else 1)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_status_of_overload_is_a_remote_error_that_may_be_retried(status):
    busy = raw_reply("busy", {"Retry-After": "7", "Content-Type": "text/plain"}, status=status)

    with answering(busy) as server, transport(server) as client:
        error = failed(client)

    assert type(error) is TransportRemoteError
    assert error.retryable
    assert error.retry_after == 7.0
    assert error.body == b"busy"


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_is_an_authentication_error_that_says_what_to_give(status):
    told = {"detail": "Missing or invalid authentication"}

    with answering(reply(told, status=status), reply()) as server, transport(server) as client:
        error = failed(client)

        assert type(error) is AuthenticationError
        assert error.status_code == status
        assert not error.retryable
        assert error.error_message == "Missing or invalid authentication"
        check_whole(error, server, str(status), "credentials=")
        assert client.send(ASK, None, {}) == {"ok": True}
        assert len(server.connections) == 1


def test_an_error_keeps_the_begin_of_a_long_body_only():
    with answering(raw_reply("x" * 1_000_000, status=500)) as server, transport(server) as client:
        error = failed(client)

    assert len(error.body) <= 8192
    assert len(str(error)) < 1000


def test_the_message_of_an_error_is_one_line_whatever_the_peer_says():
    nasty = raw_reply("a\r\nb\x1b[31m\x00c\xff", status=500)

    with answering(nasty) as server, transport(server) as client:
        assert str(failed(client)).isprintable()


@pytest.mark.parametrize(
    "value",
    ["soon", "-5", "1.5", "", "Mon, 01 Jan 0001 00:00:00 -0000", "99999999-01-01", "1" * 400],
)
def test_any_retry_after_is_read_or_ignored(value):
    busy = reply(status=503, headers={"Retry-After": value})

    with answering(busy) as server, transport(server) as client:
        error = failed(client)

    assert type(error) is TransportRemoteError
    assert error.retry_after is None or error.retry_after >= 0


def test_headers_of_a_reply_come_in_lower_case_and_joined():
    headers = [["X-Many", "a"], ["x-many", "b"], ["X-Folded", "c\r\n d"], ["X-Latin", "\xe9"]]

    with answering(reply(status=500, headers=headers)) as server, transport(server) as client:
        error = failed(client)

    assert error.headers["x-many"] == "a, b"
    assert error.headers["x-folded"] == "c d"
    assert error.headers["x-latin"] == "\xe9"


def test_nothing_more_is_read_of_an_answer_once_its_call_was_ended():
    """What has arrived can be so many tiny chunks that to read them takes seconds."""
    here, there = socket.socketpair()
    with here, there:
        there.sendall(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode() + b"1\r\nx\r\n" * 5000)
        there.shutdown(socket.SHUT_WR)
        connection = Connection("peer.test")
        connection.reply = answer = Reply(here, "GET")
        answer.begin()
        assert answer.read(10) == b"x" * 10

        connection.cut()

        with pytest.raises(http.client.IncompleteRead):
            b"".join(iter(lambda: answer.read(1000), b""))
        answer.close()
        assert len(here.recv(30_000)) > 20_000, "it has read on"


def test_an_answer_to_another_call_is_refused():
    """A proxy that mixes up connections must not hand one caller another's answer."""
    mixed = reply(headers={**JSON, "X-Protolink-Request-ID": "ab" * 16})

    with answering(mixed, reply()) as server, transport(server) as client:
        error = failed(client)

        assert type(error) is TransportProtocolError
        check_whole(error, server, "another call")


def test_cookies_are_not_kept():
    baking = reply(headers={**JSON, "Set-Cookie": "who=you; Path=/"})

    with answering(baking) as server, transport(server) as client:
        client.send(ASK, None, {})
        client.send(ASK, None, {})

    assert [request.header("Cookie") for request in server.requests] == [None, None]


# ---- answers that come before the call was read ------------------------------------------------

BIG = {"text": "x" * 20_000_000}
BIG_CONFIG = TransportConfig(limits=TransportLimits(max_request_bytes=32_000_000))


@pytest.mark.parametrize("status", [401, 403, 404, 405, 413])
def test_a_refusal_that_comes_before_20_mb_were_read_is_the_answer(status):
    refusal = reply({"detail": "no"}, status=status, headers={"Connection": "close"})

    with (
        serving([RECV_HEAD, refusal, CLOSE], [RECV, reply()]) as server,
        transport(server, config=BIG_CONFIG) as client,
    ):
        error = failed(client, data=BIG)

        assert isinstance(error, TransportRemoteError)
        assert error.status_code == status
        assert not error.retryable
        check_whole(error, server, str(status))
        assert client.send(ASK, None, {}) == {"ok": True}


def test_a_refusal_before_20_mb_were_read_is_the_answer_over_tls_too(tls_server, tls_client):
    refusal = reply({"detail": "no"}, status=413, headers={"Connection": "close"})

    with (
        serving([RECV_HEAD, refusal, CLOSE], tls=tls_server) as server,
        transport(server, config=BIG_CONFIG, tls=tls_client) as client,
    ):
        error = failed(client, data=BIG)

    assert isinstance(error, TransportRemoteError)
    assert error.status_code == 413


def test_a_connection_on_which_a_large_call_was_refused_is_not_used_again():
    """The peer may not have read it all and close soon, whatever its answer says of that."""
    with (
        serving([RECV, reply(status=404), HOLD], [RECV, reply()]) as server,
        transport(server) as client,
    ):
        failed(client, data={"text": "x" * 200_000})

        assert server.wait_for_end(1) == "client"
        assert client.send(ASK, None, {"text": "x" * 200_000}) == {"ok": True}


def test_a_peer_that_resets_during_a_20_mb_upload_is_a_connection_error():
    with (
        serving([RECV_HEAD, RST], [RECV, reply()]) as server,
        transport(server, config=BIG_CONFIG) as client,
    ):
        error = failed(client, data=BIG)

        assert type(error) is TransportConnectionError
        assert error.retryable
        check_whole(error, server)
        assert client.send(ASK, None, {}) == {"ok": True}


# ---- sizes -------------------------------------------------------------------------------------

SMALL = TransportConfig(limits=TransportLimits(max_request_bytes=1000, max_response_bytes=1000))


def test_a_request_beyond_its_limit_is_not_sent():
    with answering() as server, transport(server, config=SMALL) as client:
        error = failed(client, data={"text": "x" * 2000})

        assert type(error) is TransportLimitError
        assert isinstance(error, ValueError)
        assert not error.retryable
        assert "max_request_bytes" in str(error)
        assert not server.connections


def test_a_request_of_exactly_the_limit_is_sent():
    body = {"text": "x" * (1000 - len('{"text":""}'))}

    with answering() as server, transport(server, config=SMALL) as client:
        assert client.send(ASK, None, body) == {"ok": True}
        assert type(failed(client, data={"text": body["text"] + "x"})) is TransportLimitError


@pytest.mark.parametrize("over", [0, 1])
@pytest.mark.parametrize("form", ["length", "chunked", "closed", "gzip"])
def test_a_reply_may_have_exactly_the_size_of_the_limit(form, over):
    body = '"' + "x" * (998 + over) + '"'
    steps: list[Any] = {
        "length": [RECV, raw_reply(body)],
        "chunked": [RECV, send(CHUNKED), {"op": "chunk", "data": body}, {"op": "end_chunks"}],
        "closed": [RECV, send(f"{HEAD}\r\n{body}"), CLOSE],
        "gzip": [
            RECV,
            raw_reply(gzip.compress(body.encode()).decode("latin-1"), {"Content-Encoding": "gzip"}),
        ],
    }[form]

    with serving(steps, [RECV, reply()]) as server, transport(server, config=SMALL) as client:
        if over:
            error = failed(client)
            assert type(error) is TransportLimitError
            assert not error.retryable
            assert error.phase == "read"
            check_whole(error, server, "max_response_bytes", "1000")
            assert client.send(ASK, None, {}) == {"ok": True}
            assert len(server.connections) == 2
        else:
            assert client.send(ASK, None, {}) == "x" * 998


def test_an_announced_size_beyond_the_limit_is_refused_before_the_body_comes():
    head = send(f"{HEAD}Content-Length: 5000\r\n\r\n")

    with serving([RECV, head, HOLD]) as server, transport(server, config=SMALL) as client:
        error = failed(client)

        assert type(error) is TransportLimitError
        check_whole(error, server, "announces 5000 bytes")
        assert server.wait_for_end() == "client"


def test_a_get_has_no_body():
    with answering() as server, transport(server) as client:
        client.send(LOOK)

    assert server.requests[0].header("Content-Length") is None
    assert server.requests[0].body == b""


def test_a_call_that_may_not_be_repeated_carries_no_key():
    with answering() as server, transport(server) as client:
        client.send(ASK_ONCE, None, {})

    assert server.requests[0].header("Idempotency-Key") is None


# ---- real peers --------------------------------------------------------------------------------


def test_a_real_peer_refuses_20_mb_before_it_has_read_them(shared_peer):
    peer = shared_peer("http", "--limit", "max_request_bytes=1000000")

    with HTTPTransport(peer.url, config=BIG_CONFIG, timeout=LIMIT) as client:
        for _ in range(3):
            error = failed(client, TASK_REQUEST, data={"id": "t", **BIG})

            # 0.8.3 answers 500 here, and closes.
            assert isinstance(error, TransportRemoteError)
            assert error.status_code in (413, 500)
        assert client.send(TASK_REQUEST, None, Task.create(Message.user("echo hi"))).text == "hi"


def test_a_real_peers_failure_is_a_remote_error_with_its_words(agent_peer):
    with HTTPTransport(agent_peer.url, timeout=LIMIT) as client:
        error = failed(client, TASK_REQUEST, data=Task.create(Message.user("raise on purpose")))

    assert type(error) is TransportRemoteError
    assert error.status_code == 500
    assert not error.retryable


def test_a_real_peer_has_no_such_operation(agent_peer):
    with HTTPTransport(agent_peer.url, timeout=LIMIT) as client:
        assert failed(client, ASK).status_code == 404
        assert failed(client, attrs.evolve(TASK_REQUEST, method="PUT"), data={}).status_code == 405


def test_an_answer_of_a_real_peer_may_be_large(agent_peer):
    with HTTPTransport(agent_peer.url, timeout=LIMIT) as client:
        task = Task.create(Message.user("big 5000000"))

        assert client.send(TASK_REQUEST, None, task).text == "x" * 5_000_000
