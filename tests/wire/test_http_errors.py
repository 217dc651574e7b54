"""What the error of an HTTP reply tells: in words what came and what to do, in fields the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from protolink_sync.errors import TransportProtocolError, TransportRemoteError
from protolink_sync.wire import TransportRequestContext, WireReply, http

WHO = TransportRequestContext("send_task", "http://agent.test", "0" * 32, "key-1")
BEGIN = "send_task to http://agent.test: the peer answered "
HINTS = {
    "redirect": "; Location: /there. Redirects are not followed: call that address itself",
    "credentials": ". Give the transport credentials= that this peer accepts",
    "address": ". Is this the agent's base URL, and does the agent have this operation?",
    "log": ". A ProtoLink agent answers so to everything it cannot do; its log says why",
    "none": "",
}


def error(status: int, reason: str = "", body: bytes = b"", **headers: str) -> TransportRemoteError:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    with pytest.raises(TransportRemoteError) as caught:
        http.decode(WireReply(status, reason, names, body), WHO, now=lambda: 1000.0)
    return caught.value


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (199, "none"),
        (300, "redirect"),
        (307, "redirect"),
        (399, "redirect"),
        (400, "none"),
        (401, "credentials"),
        (402, "none"),
        (403, "credentials"),
        (404, "address"),
        (405, "none"),
        (499, "none"),
        (500, "log"),
        (501, "none"),
        (503, "none"),
    ],
)
def test_a_status_that_one_can_do_something_about_says_what(status, hint):
    assert error(status, location="/there").args[0] == f"{BEGIN}{status}{HINTS[hint]}"


@pytest.mark.parametrize(
    ("reason", "body", "words"),
    [
        ("", b"", "418"),
        ("Teapot", b"", "418 Teapot"),
        ("Teapot", b"short\n and stout", "418 Teapot (body 'short and stout')"),
        ("", b"x" * 200, f"418 (body '{'x' * 200}')"),
        ("", b"x" * 201, f"418 (it begins with '{'x' * 200}')"),
        ("", b'{"error":"no tea"}', "418: no tea"),
        ("Teapot", b'{"error":{"type":"TeaError","message":"no"}}', "418 Teapot: no"),
        ("", json.dumps({"error": "y" * 500}).encode(), f"418: {'y' * 200}"),
    ],
)
def test_the_words_are_those_of_the_peer_as_far_as_it_has_any(reason, body, words):
    assert error(418, reason, body).args[0] == BEGIN + words


def test_how_long_the_peer_asks_to_wait_is_in_the_error():
    assert error(503, retry_after="7").retry_after == 7.0
    assert error(503, retry_after="Thu, 01 Jan 1970 01:00:00 GMT").retry_after == 2600.0
    assert error(503).retry_after is None


def test_a_date_in_another_zone_is_that_instant():
    assert error(503, retry_after="Thu, 01 Jan 1970 02:00:00 +0100").retry_after == 2600.0


@pytest.mark.parametrize(
    ("body", "headers", "said"),
    [
        (b"1", {"x-protolink-request-id": "f" * 32}, "another call"),
        (b"", {}, "the reply is empty (status 201 Made)"),
        (b"nope", {}, "content type not given, body 'nope'"),
        (b"nope", {"content-type": "text/plain"}, "content type text/plain, body 'nope'"),
    ],
)
def test_a_reply_of_the_right_status_that_is_none_has_its_status_too(body, headers, said):
    with pytest.raises(TransportProtocolError) as caught:
        http.decode(WireReply(201, "Made", headers, body), WHO, now=lambda: 0.0)

    assert said in str(caught.value)
    assert caught.value.status_code == 201


# --- replies where a stream was asked for -------------------------------------------------------


def instead(status: int, value: Any, **headers: str) -> Any:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return http.decode_instead(
        WireReply(status, "", names, body),
        WHO,
        retryable_statuses=frozenset({503}),
        now=lambda: 0.0,
    )


def test_a_value_in_place_of_a_stream_is_no_stream():
    """The caller would wait for events that never come, or take the value for none of them."""
    value = {"ok": True, "result": {"id": "t"}}

    with pytest.raises(TransportProtocolError, match="no stream of events") as caught:
        instead(200, value, content_type="application/json")

    assert "application/json" in str(caught.value)
    assert caught.value.status_code == 200


def test_an_error_in_place_of_a_stream_is_that_error():
    with pytest.raises(TransportRemoteError, match="ValueError: no such task"):
        instead(200, {"ok": False, "error": {"type": "ValueError", "message": "no such task"}})
    with pytest.raises(TransportRemoteError) as caught:
        instead(503, b"")

    assert caught.value.retryable is True
