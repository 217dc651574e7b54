"""The HTTP codec: every way to send data, every kind of reply, ``Retry-After``."""

from __future__ import annotations

import json
import os
import time
from datetime import datetime, timezone
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from protolink_sync.errors import (
    AuthenticationError,
    ModelError,
    ProtoLinkError,
    TransportProtocolError,
    TransportRemoteError,
)
from protolink_sync.models import AgentCard, ClientRequestSpec, Task
from protolink_sync.specs import AGENT_CARD_REQUEST, TASK_REQUEST
from protolink_sync.wire import TransportRequestContext, WireReply, http
from tests.wire.values import json_values

WHO = TransportRequestContext("send_task", "http://agent.test", "0" * 32, "key-1")


def spec(source: str, path: str = "/x", **fields: Any) -> ClientRequestSpec:
    return ClientRequestSpec("x", path, "POST", None, source, **fields)  # type: ignore[arg-type]


def encoded(spec: ClientRequestSpec, data: Any = None, params: Any = None) -> Any:
    return http.encode(spec, WHO, http.encode_body(spec, data), data, params)


def decoded(status: int = 200, body: bytes = b"", **headers: str) -> Any:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    reply = WireReply(status, "Reason", names, body)
    return http.decode(reply, WHO, retryable_statuses=frozenset({503}), now=lambda: 1000.0)


# --- requests -----------------------------------------------------------------------------------


@given(json_values.filter(lambda value: value is not None))
def test_a_body_is_the_data_as_json(value):
    request = encoded(TASK_REQUEST, value)

    assert json.loads(request.body) == value
    assert request.headers["Content-Type"] == "application/json"
    assert (request.method, request.path) == ("POST", "/tasks/")


def test_a_call_without_data_sends_no_body_and_no_content_type():
    for request in (encoded(AGENT_CARD_REQUEST, {"ignored": 1}), encoded(TASK_REQUEST)):
        assert request.body is None
        assert "Content-Type" not in request.headers


def test_ids_travel_as_headers():
    headers = encoded(TASK_REQUEST, {}).headers

    assert headers["X-Protolink-Request-ID"] == "0" * 32
    assert headers["Idempotency-Key"] == "key-1"


def test_a_call_without_a_key_sends_none():
    who = TransportRequestContext("x", "http://agent.test", "1")

    assert "Idempotency-Key" not in http.encode(TASK_REQUEST, who, b"{}").headers


def test_query_parameters_keep_lists_and_leave_out_none():
    request = encoded(spec("query_params"), {"a": "x y&z", "tags": ["p", "ä"], "none": None})

    assert request.body is None
    assert request.path == "/x?a=x+y%26z&tags=p&tags=%C3%A4"


def test_params_go_beside_any_kind_of_data():
    assert encoded(spec("body"), {"a": 1}, {"q": 1}).path == "/x?q=1"
    assert encoded(spec("query_params"), {"a": 1, "q": 2}, {"q": 3}).path == "/x?a=1&q=3"


def test_path_parameters_are_quoted_whole():
    """A value must not be able to name another path."""
    request = encoded(spec("path_params", "/a/{one}/b/{two}"), {"one": "../x?y#z", "two": 5})

    assert request.path == "/a/..%2Fx%3Fy%23z/b/5"
    assert request.body is None


def test_a_missing_path_parameter_is_the_callers_mistake():
    with pytest.raises((LookupError, ValueError)):
        encoded(spec("path_params", "/a/{one}"), {"other": 1})


def test_a_form_is_sent_as_a_form():
    request = encoded(spec("form"), {"a": ["1", "2"], "b": "ü"})

    assert request.body == b"a=1&a=2&b=%C3%BC"
    assert request.headers["Content-Type"] == "application/x-www-form-urlencoded"


def test_raw_bytes_are_sent_as_they_are():
    request = encoded(spec("request", content_type="application/octet-stream"), b"\x00\xff")

    assert request.body == b"\x00\xff"
    assert request.headers["Content-Type"] == "application/octet-stream"


@pytest.mark.parametrize("source", ["form", "query_params", "headers", "path_params"])
def test_data_that_is_no_mapping_is_a_type_error(source):
    with pytest.raises(TypeError, match="must be a mapping"):
        encoded(spec(source), [1])


def test_a_raw_request_that_is_no_bytes_is_a_type_error():
    with pytest.raises(TypeError, match="raw bytes"):
        encoded(spec("request"), {"a": 1})


def test_headers_of_a_spec_replace_ours_but_for_those_of_the_transport():
    given = {"accept": "text/plain", "X-Own": "1", "Authorization": "no", "host": "no"}

    headers = encoded(spec("body", headers=given), {}).headers

    assert headers["accept"] == "text/plain"
    assert "Accept" not in headers
    assert headers["X-Own"] == "1"
    assert not {"authorization", "host"} & {name.lower() for name in headers}


def test_data_can_be_headers():
    request = encoded(spec("headers"), {"X-Data": "1"})

    assert request.headers["X-Data"] == "1"
    assert request.body is None


@pytest.mark.parametrize(
    "headers", [{"X-A": "a\r\nX-B: b"}, {"X-A\r\nX-B": "b"}, {"X-A": 5}, {"X-A": "\u20ac"}]
)
def test_data_cannot_end_a_header(headers):
    """What the caller passes on may come from somebody else."""
    with pytest.raises((TypeError, ValueError)):
        encoded(spec("headers"), headers)


# --- replies ------------------------------------------------------------------------------------


@given(json_values)
def test_any_json_is_read(value):
    assert decoded(body=json.dumps(value).encode()) == value


@given(st.integers(100, 999), st.binary(max_size=50), st.text(max_size=20))
def test_a_reply_of_any_kind_never_raises_anything_but_our_errors(status, body, text):
    try:
        decoded(status, body, content_type=text, retry_after=text, location=text)
    except ProtoLinkError:
        pass


def test_every_2xx_with_json_is_a_value():
    assert [decoded(status, b"1") for status in (200, 201, 202, 206, 299)] == [1] * 5


@pytest.mark.parametrize("status", [200, 202, 204])
def test_an_empty_reply_is_a_protocol_error(status):
    with pytest.raises(TransportProtocolError, match=f"empty.*{status}") as caught:
        decoded(status)

    assert (caught.value.status_code, caught.value.retryable) == (status, False)


@pytest.mark.parametrize(
    "body", [b"<html>", b"NaN", b"\xff\xfe", b"{} {}", b"1e400", b"[" * 100_000, b"\xef\xbb\xbf1"]
)
def test_a_reply_that_is_no_json_says_what_came(body):
    with pytest.raises(TransportProtocolError, match="not JSON") as caught:
        decoded(200, body, content_type="text/html")

    assert "text/html" in str(caught.value)
    assert len(str(caught.value)) < 600
    assert caught.value.retryable is False


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_are_an_authentication_error(status):
    with pytest.raises(AuthenticationError, match="credentials=") as caught:
        decoded(status, b'{"error":"Missing credentials"}')

    assert caught.value.error_message == "Missing credentials"
    assert caught.value.status_code == status


@pytest.mark.parametrize("status", [199, 300, 307, 400, 404, 429, 500, 502, 503, 504, 999])
def test_only_the_policys_statuses_are_retryable(status):
    with pytest.raises(TransportRemoteError) as caught:
        decoded(status, b"x")

    assert caught.value.retryable is (status == 503)


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (b'{"error":"no"}', None, "no"),
        (b'{"detail":"no"}', None, "no"),
        (b'{"message":"no","type":"ValueError"}', "ValueError", "no"),
        (b'{"error":{"type":"ValueError","message":"no"}}', "ValueError", "no"),
        (b'{"error":null}', None, None),
        (b'{"error":[1]}', None, None),
        (b'{"error":{"type":1,"message":2}}', None, None),
        (b'{"detail":[{"loc":["x"]}]}', None, None),
        (b'"no"', None, "no"),
        (b"[1]", None, None),
        (b"Internal Server Error", None, None),
        (b"", None, None),
    ],
)
def test_the_peers_words_are_found_where_it_puts_them(body, kind, words):
    with pytest.raises(TransportRemoteError) as caught:
        decoded(418, body)

    assert (caught.value.error_type, caught.value.error_message) == (kind, words)
    assert caught.value.body == body


def test_an_error_keeps_a_few_kilobytes_of_the_body_and_shows_one_line():
    body = b"line\r\n\x1b[31m" * 10_000

    with pytest.raises(TransportRemoteError) as caught:
        decoded(500, body)

    assert body.startswith(caught.value.body)
    assert len(caught.value.body) <= 4096
    assert len(str(caught.value)) < 600
    assert str(caught.value).isprintable()


def test_the_peers_words_cannot_forge_lines_of_a_log():
    with pytest.raises(TransportRemoteError) as caught:
        decoded(500, json.dumps({"error": "no\r\nERROR root: \x1b[31mforged"}).encode())

    assert str(caught.value).isprintable()
    assert caught.value.error_message == "no\r\nERROR root: \x1b[31mforged"


def test_a_redirect_without_a_place_does_not_name_one():
    with pytest.raises(TransportRemoteError) as caught:
        decoded(304)

    assert "None" not in str(caught.value)


def test_a_reply_to_another_call_is_refused():
    """A proxy that mixes up connections must not give somebody another one's answer."""
    with pytest.raises(TransportProtocolError, match="another call"):
        decoded(200, b"1", x_protolink_request_id="f" * 32)


def test_a_reply_without_the_id_or_with_ours_is_taken():
    assert decoded(200, b"1", x_protolink_request_id="") == 1
    assert decoded(200, b"1", x_protolink_request_id="0" * 32) == 1


# --- parsing ------------------------------------------------------------------------------------


def test_a_value_of_the_wrong_shape_is_a_protocol_error_with_the_path():
    value = {"messages": [{"role": "user", "parts": [{"content": "x"}]}]}

    with pytest.raises(TransportProtocolError, match=r"messages\[0\].parts\[0\]") as caught:
        http.parse(Task.from_dict, value, WHO)

    assert isinstance(caught.value.__cause__, ModelError)


@given(json_values)
def test_any_json_is_a_model_or_a_protocol_error(value):
    for parser in (Task.from_dict, AgentCard.from_dict, AgentCard.from_list):
        try:
            http.parse(parser, value, WHO)
        except TransportProtocolError:
            pass


@pytest.mark.parametrize("depth", [150, 400, 700, 900, 980])
def test_deep_nesting_is_read_or_a_protocol_error(depth):
    """The peer chooses the depth; a RecursionError would be nobody's error."""
    nested = b'{"metadata": {"x": ' + b"[" * depth + b"]" * depth + b"}}"

    try:
        task = http.parse(Task.from_dict, decoded(200, nested), WHO)
        task.to_dict()
    except (TransportProtocolError, ModelError):
        pass


def test_errors_of_a_parser_of_ones_own_pass_through():
    def parser(_value):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        http.parse(parser, {}, WHO)


def test_without_a_parser_the_value_is_the_result():
    value = {"a": 1}

    assert http.parse(None, value, WHO) is value


# --- Retry-After --------------------------------------------------------------------------------


def seconds(value: str | None, now: float = 0.0) -> float | None:
    return http.retry_after(value, now=lambda: now)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", 0.0),
        ("3", 3.0),
        (" 120 ", 120.0),
        ("Thu, 01 Jan 1970 00:01:00 GMT", 60.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Thursday, 01-Jan-70 00:01:00 GMT", 60.0),
        ("Thu Jan  1 00:01:00 1970", 60.0),
    ],
)
def test_seconds_and_every_date_of_http_are_read(value, expected):
    assert seconds(value) == expected


@pytest.mark.parametrize(
    "value",
    [None, "", "-1", "1.5", "+3", "soon", "1e3", "٣", "Thu, 99 Jan 1970 00:00:00 GMT", "None"],
)
def test_what_says_nothing_usable_is_none(value):
    assert seconds(value) is None


@given(st.integers(0, 10**6), st.integers(0, 4 * 10**9))
def test_a_date_counts_from_now_and_never_below_zero(ahead, now):
    date = format_datetime(datetime.fromtimestamp(now + ahead, timezone.utc), usegmt=True)

    assert seconds(date, now) == ahead
    assert seconds(date, now + ahead + 5) == 0.0


@given(st.text(max_size=40))
@example("Thu, 01 Jan 99999999999999999999 00:00:00 GMT")
@example("Mon, 01 Jan 0001 00:00:00 -0000")
@example("Mon, 01 Jan 0001 00:00:00 +2359")
@example("Fri, 31 Dec 9999 23:59:59 -2359")
@example("Mon, 01 Jan 2024 00:00:00 +999999999999")
@example("9" * 400)
@example("9" * 5000)
@example("Thu, 01 Jan 1970 00:00:00 " + "9" * 5000)
def test_no_header_raises_anything(value):
    found = seconds(value)

    assert found is None or found >= 0


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the zone of a process is Unix")
def test_a_date_without_a_zone_is_gmt_wherever_we_are():
    """asctime, the oldest form, has none; RFC 9110, 5.6.7 says that it is GMT."""
    before = os.environ.get("TZ")
    try:
        os.environ["TZ"] = "Asia/Tokyo"
        time.tzset()
        assert seconds("Thu Jan  1 00:01:00 1970") == 60.0
    finally:
        os.environ.pop("TZ", None)
        if before is not None:
            os.environ["TZ"] = before
        time.tzset()
