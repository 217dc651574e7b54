"""Messages over WebSocket in every form, bounded; and how connections end under a call."""

from __future__ import annotations

import http.client
import json
import socket

import pytest
import websocket

from protolink_sync.errors import (
    TransportConnectionError,
    TransportLimitError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.transport import (
    TransportConfig,
    TransportLimits,
)
from protolink_sync.transport._ws_library import Library, Wire
from tests.transport.matrix_watch import until_asleep
from tests.transport.scenes import (
    ASK,
    CLOSE,
    HOLD,
    RST,
    Calling,
    about,
    failed,
    no_garbage_collected,
    retrying,
    serving,
)
from tests.transport.ws_scenes import (
    BEGIN,
    BINARY,
    CLOSE_FRAME,
    PING,
    TAKE,
    TEXT,
    UPGRADE,
    answer,
    closing,
    envelope,
    frame,
    frames,
    transport,
)

# How much longer an id is than the placeholder for it.
ID_GROWS = len('"' + "0" * 32 + '"') - len("{{rpc_id}}")


def limited(**limits: int) -> TransportConfig:
    return TransportConfig(limits=TransportLimits(**limits))


# ---- messages ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 100, 200, 70_000, 1_000_000])
@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_an_answer_of_any_size_comes_whole(size, opcode):
    steps = [*BEGIN, frame(opcode, envelope("x" * size)), TAKE, answer("next")]
    with serving(steps) as server, transport(server) as client:
        assert client.send(ASK, data={}) == "x" * size
        assert client.send(ASK, data={}) == "next"


@pytest.mark.parametrize("size", [100, 5000, 70_000, 3_000_000])
def test_a_request_of_any_size_goes_whole(size):
    with serving([*BEGIN, answer()]) as server, transport(server) as client:
        client.send(ASK, data={"q": "ä" * size})

        ((_, payload),) = frames(server)
    assert json.loads(payload)["data"] == {"q": "ä" * size}


@pytest.mark.parametrize("size", [10, 130, 66_000])
def test_an_answer_may_come_byte_by_byte(size):
    """Cut within the head of the frame, too."""
    body = envelope("x" * size)
    length = len(body) + ID_GROWS
    head = (
        bytes([0x81, length])
        if length < 126
        else bytes([0x81, 126, *length.to_bytes(2, "big")])
        if length < 65536
        else bytes([0x81, 127, *length.to_bytes(8, "big")])
    )
    data = head.decode("latin-1") + body
    cuts = [*range(1, 16), len(data) + ID_GROWS - 1]
    step = {"op": "split", "data": data, "at": cuts, "gap_s": 0.002}
    with serving([*BEGIN, step]) as server, transport(server) as client:
        assert client.send(ASK, data={}) == "x" * size


def test_many_small_fragments_are_joined_in_linear_time():
    begin = '{"id":{{rpc_id}},"ok":true,"result":"'
    steps = [
        *BEGIN,
        frame(TEXT, begin[:1], fin=False),
        frame(0, "", fin=False, times=1000),
        frame(0, begin[1:], fin=False),
        frame(0, "x", fin=False, times=200_000),
        frame(0, '"}'),
    ]
    with serving(steps) as server, transport(server) as client:
        assert client.send(ASK, data={}) == "x" * 200_000


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (frame(TEXT, "{}", rsv1=True), "rsv"),
        (frame(3, "x"), "opcode"),
        (frame(0, "x"), "frame"),
        (frame(PING, "x", fin=False), "control"),
        (frame(PING, "x" * 126), "control"),
        (frame(CLOSE_FRAME, "x"), "close"),
        (closing(1005), "1005"),
        (frame(TEXT, '{"ok":true}', mask=True), "masked"),
    ],
)
def test_a_peer_that_breaks_the_rules_is_left(wrong, word):
    with serving([*BEGIN, wrong, HOLD], [*BEGIN, answer()]) as server, transport(server) as client:
        error = failed(client)

        assert type(error) is TransportProtocolError
        assert word in str(error)
        assert server.wait_for_end() == "client"
        assert client.send(ASK, data={}) == "done"


@pytest.mark.parametrize("between", [[], [frame(PING, "x")]])
def test_a_new_message_within_fragments_breaks_the_rules(between):
    """Also one that would be the answer."""
    steps = [*BEGIN, frame(TEXT, "{", fin=False), *between, answer(), HOLD]
    with serving(steps) as server, transport(server) as client:
        assert type(failed(client)) is TransportProtocolError


@pytest.mark.parametrize("flood", [b"\x89\0" * 10_000, b"\x01\0" + b"\0\0" * 10_000])
def test_nothing_more_is_read_by_the_library_once_a_call_was_ended(flood):
    """What has arrived can be so many pings or empty fragments that to read them takes seconds."""
    here, there = socket.socketpair()
    with here, there:
        there.sendall(flood)
        there.shutdown(socket.SHUT_WR)
        wire = Wire(here)
        library = Library(wire)
        library.sock, library.connected = wire, True  # as after an upgrade
        wire.upgraded()
        wire.fill()

        wire.stop()

        with pytest.raises(websocket.WebSocketConnectionClosedException):
            library.read(1000)
        assert len(wire.buffer) - wire.at > len(flood) - 10


def test_nothing_more_is_read_of_a_refusal_once_its_call_was_ended():
    """Its body can be a great many tiny chunks."""
    head = b"HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n"
    here, there = socket.socketpair()
    with here, there:
        wire = Wire(here)
        upgrading = Calling(Library(wire).upgrade, "ws://peer.test/", "peer.test", [])
        assert there.recv(65536).startswith(b"GET / HTTP/1.1")
        there.sendall(head + b"1\r\nx\r\n" * 10)
        until_asleep(upgrading._thread)

        wire.stop()
        there.sendall(b"1\r\nx\r\n" * 5000)

        with pytest.raises(http.client.IncompleteRead):
            upgrading.result()
        assert len(here.recv(30_000)) > 20_000, "it has read on"


def test_a_connection_that_is_dropped_is_closed_at_once():
    """Not when the garbage collector comes: an interrupt may drop one between two lines."""
    with (
        no_garbage_collected(),
        serving([*BEGIN, answer(), HOLD]) as server,
        transport(server) as client,
    ):
        client.send(ASK, data={})
        (pool,) = client._network._pools.values()
        with pytest.warns(ResourceWarning, match="unclosed"):
            pool._idle.pop()

        assert server.wait_for_end() == "client"


@pytest.mark.parametrize(
    "message",
    [
        "hello",
        "[1]",
        "{}",
        '{"ok":1}',
        '{"ok":true,"id":"other"}',
        '{"ok":true,"result":1}',
        '{"ok":true,"id":null,"result":1}',
        "\xff",
        '{"ok":true,"result":NaN}',
    ],
)
def test_after_an_answer_that_cannot_be_understood_the_connection_is_not_used_again(message):
    with (
        serving(
            [*BEGIN, frame(TEXT, message), TAKE, answer("wrong")], [*BEGIN, answer()]
        ) as server,
        transport(server) as client,
    ):
        assert type(failed(client)) is TransportProtocolError
        assert client.send(ASK, data={}) == "done"

    assert len(server.connections) == 2


def test_an_error_of_the_agent_leaves_the_connection_as_good_as_it_was():
    problem = answer(ok=False, error={"type": "RuntimeError", "message": "boom"})
    with serving([*BEGIN, problem, TAKE, answer()]) as server, transport(server) as client:
        error = failed(client)

        assert type(error) is TransportRemoteError
        assert (error.error_type, error.error_message) == ("RuntimeError", "boom")
        assert client.send(ASK, data={}) == "done"
    assert len(server.connections) == 1


def test_an_error_without_an_id_is_told_but_its_connection_not_used_again():
    """A peer has no id to give where it could not read the call; the answer may still follow."""
    problem = frame(TEXT, '{"id":null,"ok":false,"error":{"type":"E","message":"unreadable"}}')
    with (
        serving([*BEGIN, problem, TAKE, answer("wrong")], [*BEGIN, answer()]) as server,
        transport(server) as client,
    ):
        error = failed(client)

        assert type(error) is TransportRemoteError
        assert error.error_message == "unreadable"
        assert client.send(ASK, data={}) == "done"
    assert len(server.connections) == 2


@pytest.mark.parametrize(
    "steps",
    [
        [frame(TEXT, "", declared_len=101)],
        [frame(BINARY, "", declared_len=101)],
        [frame(TEXT, "x" * 60, fin=False), frame(0, "x" * 60, fin=False)],
    ],
)
def test_a_message_beyond_the_limit_is_refused_before_it_is_read(steps):
    with (
        serving([*BEGIN, *steps, HOLD]) as server,
        transport(server, config=limited(max_response_bytes=100)) as client,
    ):
        error = failed(client)

        assert type(error) is TransportLimitError
        assert "max_response_bytes" in str(error)
        assert "100" in str(error)
        assert server.wait_for_end() == "client"


def test_a_message_of_exactly_the_limit_is_taken():
    text = envelope("x" * 77)
    with (
        serving([*BEGIN, frame(TEXT, text)]) as server,
        transport(server, config=limited(max_response_bytes=len(text) + ID_GROWS)) as client,
    ):
        assert client.send(ASK, data={}) == "x" * 77


# ---- how a connection ends -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "retryable"), [(1000, True), (1001, True), (1011, True), (1012, True), (1008, False)]
)
def test_a_close_frame_is_told_with_code_and_reason(code, retryable):
    with serving([*BEGIN, closing(code, "so it is"), TAKE]) as server, transport(server) as client:
        error = failed(client)

    assert type(error) is TransportConnectionError
    assert str(code) in str(error)
    assert "so it is" in str(error)
    assert error.retryable is retryable


def test_a_request_that_is_too_large_for_the_agent_is_not_tried_again():
    with (
        serving([*UPGRADE, closing(1009), TAKE, TAKE]) as server,
        transport(server, config=retrying(3)) as client,
    ):
        error = failed(client, data={"q": "x" * 3_000_000})

    assert "1009" in str(error)
    assert "max_request_bytes" in str(error)
    assert len(server.connections) == 1


@pytest.mark.parametrize("end", [CLOSE, RST, closing(1001), frame(CLOSE_FRAME)])
def test_a_connection_that_ends_before_the_answer_may_be_retried(end):
    with (
        serving([*BEGIN, end], [*BEGIN, answer("again")]) as server,
        transport(server, config=retrying(2)) as client,
    ):
        assert client.send(ASK, data={}) == "again"

        ids = [json.loads(frames(server, number)[0][1])["id"] for number in (1, 2)]
    assert ids[0] == ids[1]


def test_a_connection_that_ends_within_a_message_is_an_error():
    cut = frame(TEXT, '{"ok":', declared_len=500)
    with serving([*BEGIN, cut, CLOSE]) as server, transport(server) as client:
        error = failed(client)

    assert type(error) is TransportConnectionError
    assert error.phase == "read"
    assert "close frame" in str(error)


def test_a_trickled_answer_ends_with_the_budget():
    drip = {"op": "drip", "data": "\x81\x7e\x40\x00" + "x" * 100, "every_s": 0.05}
    with serving([*BEGIN, drip, HOLD]) as server, transport(server) as client:
        error = failed(client, timeout=0.4)

    assert type(error) is TransportTimeoutError
    assert error.phase == "read"
    assert error.elapsed == about(0.4)


def test_a_late_answer_never_reaches_the_next_call():
    late = [*BEGIN, {"op": "wait", "event": "late"}, answer("late")]
    with serving(late, [*BEGIN, answer("own")]) as server, transport(server) as client:
        assert type(failed(client, timeout=0.2)) is TransportTimeoutError
        server.fire("late")

        assert client.send(ASK, data={}) == "own"
