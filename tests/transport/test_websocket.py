"""Calls over WebSocket: what goes out, what the agent answers to the upgrade, credentials."""

from __future__ import annotations

import json
import pickle

import pytest

from protolink_sync.client import connect
from protolink_sync.errors import (
    AuthenticationError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.transport import (
    TransportConfig,
    WebSocketTransport,
    get_transport,
)
from tests.transport.scenes import (
    ASK,
    ASK_ONCE,
    CLOSE,
    HOLD,
    RECV,
    RST,
    about,
    failed,
    reply,
    retrying,
    send,
    serving,
)
from tests.transport.ws_scenes import (
    BEGIN,
    PING,
    PONG,
    TAKE,
    TEXT,
    answer,
    frame,
    frames,
    transport,
)

# ---- what goes out -------------------------------------------------------------------------------


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
    with pytest.raises(ValueError, match=r"ws://|user"):
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


# ---- answers to the upgrade ----------------------------------------------------------------------


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
    with (
        serving([RECV, early, {"op": "ws_accept"}, TAKE, answer()]) as server,
        transport(server) as client,
    ):
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
    assert error.elapsed == about(0.3)


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


# ---- credentials ---------------------------------------------------------------------------------


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
