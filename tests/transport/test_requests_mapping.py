"""Through the adapter of requests, when a test library has replaced it (``responses``)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator

import pytest
import requests
import responses
from responses.registries import OrderedRegistry

from protolink_sync.errors import (
    AuthenticationError,
    TransportConnectionError,
    TransportError,
    TransportLimitError,
    TransportProtocolError,
    TransportRemoteError,
)
from protolink_sync.transport import HTTPTransport, TransportConfig, TransportLimits
from tests.transport.scenes import ASK, LOOK, failed, retrying

BASE = "http://agent.test:8010"


@pytest.fixture
def peer() -> Iterator[responses.RequestsMock]:
    with responses.RequestsMock(registry=OrderedRegistry) as mock:
        yield mock


def client(**settings: object) -> HTTPTransport:
    return HTTPTransport(BASE, timeout=10, **settings)  # type: ignore[arg-type]


def test_a_mocked_answer_is_the_answer(peer):
    peer.post(f"{BASE}/ask", json={"n": 1})

    with client() as transport:
        assert transport.send(ASK, None, {"a": "ä"}) == {"n": 1}

    request = peer.calls[0].request
    assert request.body == '{"a":"ä"}'.encode()
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["Accept"] == "application/json"


def test_every_header_of_a_call_is_there(peer):
    peer.post(f"{BASE}/ask", json={})

    with client(credentials="s3cr3t", headers={"X-Tenant": "t"}) as transport:
        transport.send(ASK, None, {}, idempotency_key="k")

    headers = peer.calls[0].request.headers
    assert headers["Authorization"] == "Bearer s3cr3t"
    assert headers["X-Tenant"] == "t"
    assert headers["Idempotency-Key"] == "k"
    assert len(headers["X-Protolink-Request-ID"]) == 32
    assert headers["User-Agent"].startswith("protolink-sync/")


def test_query_parameters_stand_in_the_url(peer):
    peer.get(f"{BASE}/look?a=1&b=x+y&b=z", json={})

    with client() as transport:
        transport.send(LOOK, None, None, {"a": 1, "b": ["x y", "z"], "none": None})

    assert peer.calls[0].request.body is None


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, TransportRemoteError, False),
        (401, AuthenticationError, False),
        (403, AuthenticationError, False),
        (404, TransportRemoteError, False),
        (429, TransportRemoteError, True),
        (500, TransportRemoteError, False),
        (502, TransportRemoteError, True),
        (503, TransportRemoteError, True),
        (504, TransportRemoteError, True),
    ],
)
def test_statuses_are_mapped(peer, status, kind, retryable):
    peer.post(
        f"{BASE}/ask",
        status=status,
        json={"error": {"type": "T", "message": "m"}},
        headers={"Retry-After": "3", "X-Any": "y"},
    )

    with client() as transport:
        error = failed(transport)

    assert type(error) is kind
    assert error.status_code == status
    assert error.retryable is retryable
    assert (error.error_type, error.error_message) == ("T", "m")
    assert error.retry_after == 3.0
    assert error.headers["x-any"] == "y"


def test_a_redirect_is_not_followed(peer):
    peer.post(f"{BASE}/ask", status=302, headers={"Location": "http://other.test/"})

    with client() as transport:
        error = failed(transport)

    assert error.status_code == 302
    assert len(peer.calls) == 1


def test_attempts_get_one_answer_after_the_other(peer):
    peer.post(f"{BASE}/ask", status=503)
    peer.post(f"{BASE}/ask", body=requests.ConnectionError("gone"))
    peer.post(f"{BASE}/ask", json={"n": 3})

    with client(config=retrying(3)) as transport:
        assert transport.send(ASK, None, {}) == {"n": 3}

    first, *others = (call.request for call in peer.calls)
    for other in others:
        assert (other.body, dict(other.headers)) == (first.body, dict(first.headers))


@pytest.mark.parametrize(
    "raised",
    [
        requests.ConnectionError("gone"),
        requests.Timeout("late"),
        requests.exceptions.ChunkedEncodingError("odd"),
        requests.exceptions.SSLError("odd"),
        ConnectionResetError("reset"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_of_requests_do_not_reach_the_caller(peer, raised):
    peer.post(f"{BASE}/ask", body=raised)

    with client() as transport:
        error = failed(transport)

    assert isinstance(error, TransportError)
    assert error.url == BASE


def test_a_call_to_what_is_not_mocked_is_a_connection_error(peer):
    with client() as transport:
        assert type(failed(transport)) is TransportConnectionError


def test_an_encoded_body_is_read(peer):
    body = gzip.compress(json.dumps({"n": 1}).encode())
    peer.post(f"{BASE}/ask", body=body, headers={"Content-Encoding": "gzip"})

    with client() as transport:
        assert transport.send(ASK, None, {}) == {"n": 1}


def test_limits_hold(peer):
    peer.post(f"{BASE}/ask", body='"' + "x" * 2000 + '"')
    config = TransportConfig(limits=TransportLimits(max_response_bytes=1000))

    with client(config=config) as transport:
        assert type(failed(transport)) is TransportLimitError


@pytest.mark.parametrize("body", ["", "<p>", '{"a": NaN}'])
def test_bodies_that_are_no_json_are_protocol_errors(peer, body):
    peer.post(f"{BASE}/ask", body=body)

    with client() as transport:
        assert type(failed(transport)) is TransportProtocolError


def test_after_the_mock_calls_go_out_again(peer):
    from tests.transport.scenes import answering

    peer.post(f"{BASE}/ask", json={"mocked": True})
    with client() as transport:
        assert transport.send(ASK, None, {}) == {"mocked": True}
        peer.stop(allow_assert=False)
        try:
            with answering() as server:
                assert transport.send(ASK, server.base, {}) == {"ok": True}
        finally:
            peer.start()
