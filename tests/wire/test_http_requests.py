"""HTTP requests: what goes where, and what does not go there."""

from __future__ import annotations

from typing import Any

import pytest

from protolink_sync.models import ClientRequestSpec
from protolink_sync.wire import TransportRequestContext, WireRequest, http

WHO = TransportRequestContext("x", "http://agent.test", "0" * 32)


def encoded(source: str, data: Any = None, path: str = "/x", **fields: Any) -> WireRequest:
    spec = ClientRequestSpec("x", path, "POST", None, source, **fields)  # type: ignore[arg-type]
    return http.encode(spec, WHO, http.encode_body(spec, data), data)


def test_json_is_asked_for_unless_the_operation_says_otherwise():
    assert encoded("body", {}).headers["Accept"] == "application/json"
    assert encoded("body", {}, accept="text/plain").headers["Accept"] == "text/plain"


@pytest.mark.parametrize("data", [b"\x00{", bytearray(b"\x00{")])
def test_bytes_are_sent_as_they_are_and_not_as_json(data):
    request = encoded("body", data)

    assert request.body == b"\x00{"
    assert type(request.body) is bytes


def test_data_of_a_body_never_becomes_headers():
    """Headers are seen by proxies and logs that never look into a body."""
    request = encoded("body", {"X-Data": "secret"}, headers={"X-Own": "1"})

    assert request.headers["X-Own"] == "1"
    assert "X-Data" not in request.headers


def test_headers_of_the_data_come_beside_those_of_the_operation():
    request = encoded("headers", {"X-Data": "2"}, headers={"X-Own": "1"})

    assert (request.headers["X-Own"], request.headers["X-Data"]) == ("1", "2")


@pytest.mark.parametrize("source", ["headers", "path_params", "query_params", "form", "none"])
def test_a_call_without_data_needs_none(source):
    request = encoded(source, None, "/a/{b}", headers={"X-Own": "1"})

    assert request.path == "/a/{b}"
    assert request.headers["X-Own"] == "1"
    assert request.body is None


def test_braces_in_a_path_are_filled_from_path_parameters_only():
    assert encoded("body", {"b": 1}, "/a/{b}").path == "/a/{b}"
    assert encoded("path_params", {"b": 1}, "/a/{b}").path == "/a/1"


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "Connection",
        "Content-Length",
        "Host",
        "Idempotency-Key",
        "Transfer-Encoding",
        "X-API-Key",
        "X-Protolink-Request-ID",
    ],
)
def test_what_the_transport_answers_for_cannot_come_from_the_operation_or_the_data(name):
    sent = encoded("headers", {name: "data"}, headers={name.upper(): "spec"}).headers

    assert not {"data", "spec"} & set(sent.values())
