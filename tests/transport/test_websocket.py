"""Calls over WebSocket: the upgrade, messages in every form, connections kept and replaced."""

from __future__ import annotations

import base64
import json
import pickle
import signal
import threading
from typing import Any

import pytest

from protolink_sync import CancelToken
from protolink_sync.client import connect
from protolink_sync.errors import (
    AuthenticationError,
    CallCancelledError,
    ClientClosedError,
    TLSVerificationError,
    TransportConnectionError,
    TransportLimitError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import ClientRequestSpec
from protolink_sync.security import BearerToken
from protolink_sync.specs import TASK_CANCEL_REQUEST
from protolink_sync.transport import (
    TransportConfig,
    TransportLimits,
    WebSocketTransport,
    get_transport,
)
from tests.cases.server import ScriptedServer
from tests.transport.scenes import (
    ASK,
    ASK_ONCE,
    CLOSE,
    HOLD,
    LIMIT,
    RECV,
    RST,
    Calling,
    failed,
    reply,
    retrying,
    send,
    serving,
    together,
    wait_until,
)
from tests.transport.tunnels import Tunnels
from tests.transport.ws_scenes import (
    BEGIN,
    BINARY,
    CLOSE_FRAME,
    PING,
    PONG,
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

CONTROL = ClientRequestSpec("look_in", "/look", "POST", channel="control", idempotent=True)


def limited(**limits: int) -> TransportConfig:
    return TransportConfig(limits=TransportLimits(**limits))


# ---- what goes out -----------------------------------------------------------------------------


def test_the_upgrade_says_who_we_are_and_offers_nothing():
    with (
        serving([*BEGIN, answer()]) as server,
        transport(server, headers={"X-Team": "blue"}, credentials="t0ken") as client,
    ):
        client.send(ASK, data={})

        (request,) = server.requests
    assert (request.method, request.target) == ("GET", "/")
    assert request.header("Host") == server.address
    assert request.header("Upgrade") == "websocket"
    assert request.header("Sec-WebSocket-Version") == "13"
    assert request.header("Authorization") == "Bearer t0ken"
    assert request.header("X-Team") == "blue"
    assert (request.header("User-Agent") or "").startswith("protolink-sync/")
    for absent in ("Origin", "Cookie", "Sec-WebSocket-Extensions", "Sec-WebSocket-Protocol"):
        assert request.header(absent) is None


def test_credentials_win_over_a_header_of_the_same_name():
    with (
        serving([*BEGIN, answer()]) as server,
        transport(server, headers={"authorization": "old"}, credentials="new") as client,
    ):
        client.send(ASK, data={})

    assert server.requests[0].all("Authorization") == ["Bearer new"]


def test_a_path_of_the_address_is_that_of_the_upgrade():
    with serving([*BEGIN, answer()]) as server, transport() as client:
        client.send(ASK, f"{server.ws_base}/agents/seven/", {})

    assert server.requests[0].target == "/agents/seven"


def test_a_call_is_one_masked_text_with_its_key_inside():
    with serving([*BEGIN, answer({"a": 1})]) as server, transport(server) as client:
        assert client.send(ASK, data={"q": "ä"}, idempotency_key="key-1") == {"a": 1}

        (sent,) = server.connections[0].frames
    assert (sent.opcode, sent.fin, sent.rsv1, sent.masked) == (TEXT, True, False, True)
    message = json.loads(sent.payload)
    assert len(message.pop("id")) == 32
    assert message == {
        "method": "POST",
        "path": "/ask",
        "idempotency_key": "key-1",
        "data": {"q": "ä"},
    }


def test_masks_differ_from_message_to_message():
    with serving([*BEGIN, answer(), TAKE, answer()]) as server, transport(server) as client:
        client.send(ASK_ONCE, data={})
        client.send(ASK_ONCE, data={})

        received = bytes(server.connections[0].received)
    begin = received.index(b"\r\n\r\n") + 4
    size = (len(received) - begin) // 2
    assert received[begin + 2 : begin + 6] != received[begin + size + 2 : begin + size + 6]


@pytest.mark.parametrize("name", ["Upgrade", "sec-websocket-key", "Sec-WebSocket-Extensions"])
def test_headers_of_the_protocol_itself_are_refused(name):
    with pytest.raises(ValueError, match=name):
        WebSocketTransport(headers={name: "x"})


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "ws://", "ws://u:p@h", "ws://h?q"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(ValueError, match="ws://|user"):
        WebSocketTransport(url)


def test_it_is_known_by_its_name_and_scheme():
    with get_transport("websocket") as by_name, connect("wss://h.test") as peer:
        assert type(by_name) is type(peer.client.transport) is WebSocketTransport
    assert by_name.transport_type == "websocket"
    assert all(by_name.capabilities.to_dict().values())


def test_a_pickle_takes_the_settings_along():
    with transport(proxy="http://proxy.test:8", trust_env=False) as client:
        copy = pickle.loads(pickle.dumps(client))
    with copy:
        assert copy._settings() == client._settings()


# ---- answers to the upgrade --------------------------------------------------------------------


def test_a_refusal_is_an_error_with_status_headers_and_body():
    refusal = {"op": "reply", "status": 403, "headers": {"X-Why": "no"}, "body": "go away"}
    with serving([RECV, refusal]) as server, transport(server) as client:
        error = failed(client)

    assert type(error) is AuthenticationError
    assert (error.status_code, error.body, error.headers["x-why"]) == (403, b"go away", "no")
    assert "go away" in str(error)
    assert error.retryable is False
    assert server.wait_for_end() is not None


def test_a_chunked_refusal_is_read_too():
    steps = [
        RECV,
        {"op": "head", "status": 404, "headers": {"Transfer-Encoding": "chunked"}},
        {"op": "chunk", "data": "no agent"},
        {"op": "end_chunks"},
    ]
    with serving(steps) as server, transport(server) as client:
        error = failed(client)

    assert (type(error), error.status_code, error.body) == (TransportRemoteError, 404, b"no agent")


def test_a_refusal_without_end_is_read_in_part():
    steps = [RECV, {"op": "head", "status": 404}, {"op": "fill", "byte": "x", "count": 10**6}]
    with serving(steps) as server, transport(server) as client:
        assert len(failed(client).body) == 4096


def test_a_refusal_of_a_moment_is_retried():
    with (
        serving([RECV, reply(status=503)], [*BEGIN, answer("later")]) as server,
        transport(server, config=retrying(2)) as client,
    ):
        assert client.send(ASK, data={}) == "later"
        assert client.metrics.retries == 1


def test_a_redirect_is_not_followed_and_takes_no_credentials_along():
    with serving([HOLD]) as stranger:
        redirect = reply(status=302, headers={"Location": f"{stranger.ws_base}/x"})
        with serving([RECV, redirect]) as server, transport(server, credentials="t0ken") as client:
            error = failed(client)

        assert type(error) is TransportRemoteError
        assert f"{stranger.ws_base}/x" in str(error)
        assert not stranger.connections


def test_an_answer_without_upgrade_is_a_protocol_error():
    with serving([RECV, reply({"hello": 1})]) as server, transport(server) as client:
        error = failed(client)

    assert type(error) is TransportProtocolError
    assert error.status_code == 200
    assert "not with 101" in str(error)


def test_a_peer_that_speaks_something_else_is_shown():
    with serving([RECV, send("SSH-2.0-x\r\n"), HOLD]) as server, transport(server) as client:
        error = failed(client)

    assert type(error) is TransportProtocolError
    assert "SSH-2.0" in str(error)


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        ("Upgrade: websocket\r\nConnection: Upgrade\r\n", "Invalid"),
        ("Connection: Upgrade\r\nSec-WebSocket-Accept: x\r\n", "Invalid"),
        ("Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n", "Invalid"),
        ("Sec-WebSocket-Extensions: permessage-deflate\r\n", "extensions"),
        ("Sec-WebSocket-Protocol: chat\r\n", "protocol"),
        ("no header\r\n", "header"),
    ],
)
def test_a_101_that_is_no_upgrade_is_a_protocol_error_and_nothing_is_sent(lines, word):
    head = f"HTTP/1.1 101 Switching Protocols\r\n{lines}\r\n"
    with serving([RECV, send(head), HOLD]) as server, transport(server) as client:
        error = failed(client)

        assert type(error) is TransportProtocolError
        assert word in str(error)
        assert error.retryable is False
        assert server.wait_for_end() == "client"
    assert b'"method"' not in server.connections[0].received


def test_an_interim_reply_is_no_answer():
    early = send("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
    with serving([RECV, early, {"op": "ws_accept"}, TAKE, answer()]) as server:
        with transport(server) as client:
            assert client.send(ASK, data={}) == "done"


def test_a_head_without_end_is_refused_before_it_fills_the_memory():
    endless = {"op": "fill", "byte": "x", "count": 200_000}
    steps = [RECV, send("HTTP/1.1 101 S\r\nX: "), endless, HOLD]
    with serving(steps) as server, transport(server) as client:
        assert type(failed(client)) is TransportProtocolError


def test_a_cookie_is_not_kept():
    """Not even one whose domain is said to be everybody's."""
    cookie = {"Set-Cookie": "spy=1; Domain=127.0.0.1; Path=/"}
    with serving([RECV, reply(status=404, headers=cookie)]) as server, transport(server) as client:
        failed(client)
        failed(client)

    assert [request.header("Cookie") for request in server.requests] == [None, None]


def test_a_trickled_answer_to_the_upgrade_ends_with_the_time_to_connect():
    drip = {"op": "drip", "data": "HTTP/1.1 101 Switching Protocols\r\n" * 9, "every_s": 0.02}
    with (
        serving([RECV, drip]) as server,
        transport(server, config=TransportConfig(connect_timeout=0.3)) as client,
    ):
        error = failed(client)

    assert type(error) is TransportTimeoutError
    assert (error.phase, error.retryable) == ("connect", True)
    assert error.elapsed == pytest.approx(0.3, abs=0.2)


@pytest.mark.parametrize("end", [CLOSE, RST])
def test_a_peer_that_leaves_during_the_upgrade_may_be_asked_again(end):
    with (
        serving([RECV, send("HTTP/1.1 101 Swi"), end], [*BEGIN, answer()]) as server,
        transport(server, config=retrying(2)) as client,
    ):
        assert client.send(ASK, data={}) == "done"


def test_messages_that_come_with_the_upgrade_are_not_lost():
    """Here a ping, which some servers send at once."""
    steps = [RECV, {"op": "ws_accept"}, frame(PING, "early"), TAKE, TAKE, answer()]
    with serving(steps) as server, transport(server) as client:
        assert client.send(ASK, data={}) == "done"
        assert (PONG, b"early") in frames(server)


# ---- credentials -------------------------------------------------------------------------------


def test_credentials_that_were_refused_are_asked_for_once_more():
    asked: list[bool] = []

    def credentials(origin: str, refresh: bool) -> dict[str, str]:
        asked.append(refresh)
        return {"Authorization": "Bearer new" if refresh or len(asked) > 2 else "Bearer old"}

    with (
        serving([RECV, reply(status=401)], [*BEGIN, answer(), TAKE, answer("two")]) as server,
        transport(server, credentials=credentials) as client,
    ):
        assert client.send(ASK, data={}) == "done"
        assert client.send(ASK, data={}) == "two"

    sent = [request.header("Authorization") for request in server.requests]
    assert sent == ["Bearer old", "Bearer new"]
    assert asked == [False, True, False]


def test_a_connection_is_not_shared_by_callers_with_other_credentials():
    who = iter("aba")
    with (
        serving([*BEGIN, answer(1), TAKE, answer(2)]) as server,
        transport(server, credentials=lambda *_: {"X-API-Key": next(who)}) as client,
    ):
        assert [client.send(ASK, data={}) for _ in "aba"] == [1, 1, 2]

    assert [request.header("X-API-Key") for request in server.requests] == ["a", "b"]


# ---- messages ----------------------------------------------------------------------------------


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
    body = json.dumps({"ok": True, "result": "x" * size})
    head = (
        bytes([0x81, len(body)])
        if len(body) < 126
        else bytes([0x81, 126, *len(body).to_bytes(2, "big")])
        if len(body) < 65536
        else bytes([0x81, 127, *len(body).to_bytes(8, "big")])
    )
    data = head.decode("latin-1") + body
    cuts = [*range(1, 16), len(data) - 1]
    step = {"op": "split", "data": data, "at": cuts, "gap_s": 0.002}
    with serving([*BEGIN, step]) as server, transport(server) as client:
        assert client.send(ASK, data={}) == "x" * size


def test_many_small_fragments_are_joined_in_linear_time():
    text = '{"ok":true,"result":"'
    steps = [
        *BEGIN,
        frame(TEXT, text[:1], fin=False),
        frame(0, "", fin=False, times=1000),
        frame(0, text[1:21], fin=False),
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


def test_a_new_message_within_fragments_breaks_the_rules():
    steps = [*BEGIN, frame(TEXT, "{", fin=False), frame(TEXT, "{}"), HOLD]
    with serving(steps) as server, transport(server) as client:
        assert type(failed(client)) is TransportProtocolError


@pytest.mark.parametrize(
    "message",
    ["hello", "[1]", "{}", '{"ok":1}', '{"ok":true,"id":"other"}', "\xff", '{"ok":true,"result":NaN}'],
)
def test_after_an_answer_that_cannot_be_understood_the_connection_is_not_used_again(message):
    with (
        serving([*BEGIN, frame(TEXT, message), TAKE, answer("wrong")], [*BEGIN, answer()]) as server,
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
    text = '{"ok":true,"result":"' + "x" * 77 + '"}'
    with (
        serving([*BEGIN, frame(TEXT, text)]) as server,
        transport(server, config=limited(max_response_bytes=len(text))) as client,
    ):
        assert client.send(ASK, data={}) == "x" * 77


# ---- how a connection ends ---------------------------------------------------------------------


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
    assert error.elapsed == pytest.approx(0.4, abs=0.2)


def test_a_late_answer_never_reaches_the_next_call():
    late = [*BEGIN, {"op": "wait", "event": "late"}, answer("late")]
    with serving(late, [*BEGIN, answer("own")]) as server, transport(server) as client:
        assert type(failed(client, timeout=0.2)) is TransportTimeoutError
        server.fire("late")

        assert client.send(ASK, data={}) == "own"


# ---- connections are kept ----------------------------------------------------------------------


def test_calls_one_after_the_other_use_one_connection():
    with (
        serving([*UPGRADE, *[TAKE, answer()] * 50]) as server,
        transport(server) as client,
    ):
        for _ in range(50):
            client.send(ASK, data={})

        assert len(server.connections) == 1


def test_threads_have_a_connection_each():
    gate = {"op": "barrier", "name": "all", "n": 8, "s": LIMIT}
    more = [TAKE, answer()] * 8
    with serving([*BEGIN, gate, answer(), *more]) as server, transport(server) as client:
        together(8, lambda _: [client.send(ASK, data={}) for _ in range(2)])

        assert len(server.connections) == 8


def test_a_control_request_does_not_wait_behind_a_call():
    held = [*BEGIN, {"op": "wait", "event": "go"}, answer("slow"), TAKE, answer("again")]
    with (
        serving(held, [*BEGIN, answer("control"), TAKE, answer("control")]) as server,
        transport(server) as client,
    ):
        slow = Calling(client.send, ASK, None, {})
        server.wait_for_requests(1)
        assert client.send(CONTROL, data={}) == "control"
        assert slow.running
        server.fire("go")
        assert slow.result() == "slow"
        assert client.send(CONTROL, data={}) == "control"
        assert client.send(ASK, data={}) == "again"

        assert len(server.connections) == 2


def test_cancelling_a_task_is_a_control_request():
    assert TASK_CANCEL_REQUEST.channel == "control"


@pytest.mark.parametrize("count", [1, 3])
def test_pings_to_an_idle_connection_are_answered_before_it_is_used_again(count):
    steps = [*BEGIN, answer(), frame(PING, "idle", times=count), *[TAKE] * (count + 1), answer(2)]
    with serving(steps) as server, transport(server) as client:
        client.send(ASK, data={})
        # The pings may come a moment after the answer, and be answered during the next call.
        assert client.send(ASK, data={}) == 2

        opcodes = [opcode for opcode, _ in frames(server)]
    assert opcodes in ([TEXT, *[PONG] * count, TEXT], [TEXT, TEXT, *[PONG] * count])
    assert len(server.connections) == 1


@pytest.mark.parametrize(
    "unasked",
    [answer("late"), closing(1001), frame(PING, "x", declared_len=5), frame(BINARY, "x"), CLOSE],
)
def test_a_connection_on_which_anything_else_came_is_replaced(unasked):
    rest = [] if unasked is CLOSE else [HOLD]
    with (
        serving([*BEGIN, answer(1), unasked, *rest], [*BEGIN, answer(2)]) as server,
        transport(server) as client,
    ):
        assert client.send(ASK, data={}) == 1
        # The peer's second frame may come a moment after the first; it is sent at once.
        assert wait_until(lambda: not any(c.is_alive() for c in idle_connections(client)))
        assert client.send(ASK, data={}) == 2
        assert client.metrics.retries == 0


def idle_connections(client: WebSocketTransport) -> list[Any]:
    assert client._network is not None
    return [connection for pool in client._network._pools.values() for connection in pool._idle]


def test_an_idle_connection_is_closed_with_a_close_frame_when_it_is_old():
    with (
        serving([*BEGIN, answer(), TAKE, HOLD]) as server,
        transport(server, config=TransportConfig(keepalive_interval=0.2)) as client,
    ):
        client.send(ASK, data={})

        assert server.wait_for_end() == "client"
        assert frames(server)[-1] == (CLOSE_FRAME, b"\x03\xe8")


def test_closing_says_goodbye_and_ends_what_runs():
    with (
        serving([*BEGIN, answer(), TAKE, TAKE], [*BEGIN, HOLD]) as server,
        transport(server) as client,
    ):
        client.send(ASK, data={})
        idle = Calling(client.send, CONTROL, None, {})
        assert server.wait_until(lambda s: len(s.connections) == 2 and s.connections[1].frames, 5)
        client.close()
        client.close()

        with pytest.raises(ClientClosedError):
            idle.result()
        assert server.wait_for_end(1) == "client"
        assert server.wait_for_end(2) == "client"
        assert frames(server)[-1][0] == CLOSE_FRAME
        with pytest.raises(ClientClosedError):
            client.send(ASK, data={})


# ---- TLS and proxies ---------------------------------------------------------------------------


def test_a_call_over_tls(tls_server, tls_client):
    steps = [*BEGIN, answer("a" * 100_000), TAKE, answer(2)]
    with serving(steps, tls=tls_server) as server, transport(server, tls=tls_client) as client:
        assert client.send(ASK, data={"q": "x" * 200_000}) == "a" * 100_000
        assert client.send(ASK, data={}) == 2
        assert len(server.connections) == 1


def test_pings_to_an_idle_tls_connection_are_answered(tls_server, tls_client):
    steps = [*BEGIN, answer(), frame(PING, "idle"), TAKE, TAKE, answer(2)]
    with serving(steps, tls=tls_server) as server, transport(server, tls=tls_client) as client:
        client.send(ASK, data={})
        assert client.send(ASK, data={}) == 2
        assert len(server.connections) == 1


def test_a_certificate_of_a_stranger_is_refused(tls_server):
    with serving([RECV], tls=tls_server) as server, transport(server) as client:
        error = failed(client)

    assert type(error) is TLSVerificationError
    assert error.retryable is False
    assert error.phase == "tls"


def test_tls_to_a_port_without_it_says_what_to_call():
    with ScriptedServer({"connections": [[{"op": "recv_some"}, send("HTTP/1.1 400 x\r\n\r\n")]]}) as server:
        with transport() as client:
            error = failed(client, url=f"wss://{server.address}")

    assert type(error) is TransportConnectionError
    assert "ws://" in str(error)


def test_a_call_through_a_proxy_gives_the_proxy_its_password_and_nothing_else():
    with Tunnels() as tunnels, serving([*BEGIN, answer()]) as server:
        proxy = tunnels.url.replace("://", "://us%40er:pass%3Aword@")
        with transport(server, proxy=proxy, credentials=BearerToken("t0ken")) as client:
            assert client.send(ASK, data={}) == "done"

    (head,) = tunnels.heads
    assert head.startswith(f"CONNECT {server.address} HTTP/1.1\r\n")
    expected = "Basic " + base64.b64encode(b"us@er:pass:word").decode()
    assert tunnels.headers("Proxy-Authorization") == [expected]
    assert "t0ken" not in head
    assert server.requests[0].header("Proxy-Authorization") is None


def test_a_call_over_tls_through_a_proxy(tls_server, tls_client):
    with Tunnels() as tunnels, serving([*BEGIN, answer()], tls=tls_server) as server:
        with transport(server, proxy=tunnels.url, tls=tls_client) as client:
            assert client.send(ASK, data={}) == "done"
    assert tunnels.connections == 1


def test_a_call_through_a_proxy_that_speaks_tls(tls_server, tls_client):
    with Tunnels(tls=tls_server) as tunnels, serving([*BEGIN, answer()]) as server:
        with transport(server, proxy=tunnels.url, tls=tls_client) as client:
            assert client.send(ASK, data={}) == "done"


def test_tls_within_the_tls_of_a_proxy_is_refused_before_anything_is_sent():
    with Tunnels() as tunnels, transport(proxy=tunnels.url.replace("http", "https")) as client:
        with pytest.raises(ValueError, match="https"):
            client.send(ASK, "wss://127.0.0.1:9", {})
    assert not tunnels.connections


@pytest.mark.parametrize("variable", ["http_proxy", "ALL_PROXY"])
def test_the_environment_names_the_proxy(variable, monkeypatch):
    with Tunnels() as tunnels, serving([*BEGIN, answer()]) as server:
        monkeypatch.setenv(variable, tunnels.url)
        with transport(server) as client, transport(server, trust_env=False) as direct:
            assert client.send(ASK, data={}) == direct.send(ASK, data={}) == "done"
    assert tunnels.connections == 1


def test_a_proxy_that_refuses_is_named(monkeypatch):
    with serving([{"op": "recv_head"}, reply(status=407)]) as proxy:
        with transport(proxy=proxy.base) as client:
            error = failed(client, url="ws://agent.test:80")

    assert type(error) is TransportConnectionError
    assert "proxy refused" in str(error)
    assert "407" in str(error)


# ---- a call can be ended at any moment ---------------------------------------------------------

PARTIAL = frame(TEXT, "x", declared_len=5000)
# What the peer does, and the phase in which the call is when it is ended.
ENDS: dict[str, tuple[list[Any], str, Any]] = {
    "tls": ([HOLD], "tls", {}),
    "upgrade": ([RECV, HOLD], "connect", {}),
    "send": ([*UPGRADE, HOLD], "send", {"q": "x" * 12_000_000}),
    "wait": ([*BEGIN, HOLD], "wait", {}),
    "read": ([*BEGIN, PARTIAL, HOLD], "read", {}),
    "large": ([*BEGIN, frame(TEXT, "x", declared_len=500_000), HOLD], "read", {}),
    "fragments": ([*BEGIN, frame(TEXT, "{", fin=False), HOLD], "read", {}),
}


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("moment", ENDS)
@pytest.mark.parametrize("how", ["token", "close", "budget"])
def test_a_call_ends_at_once(moment, encrypted, how, tls_server, tls_client):
    steps, phase, data = ENDS[moment]
    if moment == "tls" and not encrypted:
        pytest.skip("without TLS there is no such phase")
    # A peer that is to be silent in the handshake serves no TLS at all.
    words = {"tls": tls_server} if encrypted and moment != "tls" else {}
    token = CancelToken()
    with serving(steps, **words) as server, transport(tls=tls_client) as client:
        url = f"ws{'s' if encrypted else ''}://{server.address}"
        timeout = 0.4 if how == "budget" else LIMIT
        call = Calling(client.send, ASK_ONCE, url, data, timeout=timeout, cancel=token)
        assert wait_until(lambda: any(c.phase == phase for c in client._slots.calls()))
        if how == "token":
            token.cancel("enough")
        elif how == "close":
            client.close()

        expected = {
            "token": CallCancelledError,
            "close": ClientClosedError,
            "budget": TransportTimeoutError,
        }
        with pytest.raises(expected[how]) as caught:
            call.result(2.0)
        if how == "budget":
            assert caught.value.phase == phase
        # Behind what a peer has no room for it does not see the end.
        assert moment == "send" or server.wait_for_end(within=2.0) == "client"


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("moment", ["upgrade", "send", "wait", "large"])
def test_an_interrupt_ends_a_call(moment, encrypted, tls_server, tls_client):
    steps, phase, data = ENDS[moment]
    words = {"tls": tls_server} if encrypted else {}
    with serving(steps, **words) as server, transport(server, tls=tls_client) as client:

        def interrupt() -> None:
            wait_until(lambda: any(c.phase == phase for c in client._slots.calls()))
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        helper = threading.Thread(target=interrupt, daemon=True)
        helper.start()
        with pytest.raises(KeyboardInterrupt):
            client.send(ASK_ONCE, data=data)
        helper.join(LIMIT)
        assert moment == "send" or server.wait_for_end(within=2.0) == "client"
        assert not client._slots.calls()


def test_an_ended_call_leaves_the_next_ones_alone():
    token = CancelToken()
    with serving([*BEGIN, HOLD], [*BEGIN, answer()]) as server, transport(server) as client:
        call = Calling(client.send, ASK, None, {}, cancel=token)
        server.wait_for_requests(1)
        token.cancel()
        with pytest.raises(CallCancelledError):
            call.result()

        assert client.send(ASK, data={}) == "done"
