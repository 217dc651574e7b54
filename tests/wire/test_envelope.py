"""The envelope: what is written, what is accepted of a peer, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protolink_sync.errors import ProtoLinkError, TransportProtocolError, TransportRemoteError
from protolink_sync.models import ClientRequestSpec
from protolink_sync.specs import AGENT_CARD_REQUEST, REGISTRY_DISCOVER_REQUEST, TASK_REQUEST
from protolink_sync.wire import TransportRequestContext, WireReply, envelope
from tests.wire.values import json_values

WHO = TransportRequestContext("send_task", "ws://agent.test", "id-1", "key-1")


def reply(value: Any) -> bytes:
    return json.dumps(value).encode()


@given(json_values)
def test_a_result_is_read_as_it_was_sent(value):
    payload = reply({"id": "id-1", "ok": True, "result": value})

    assert envelope.decode_reply(payload, WHO) == value


@given(json_values)
def test_data_arrives_as_it_was_given(value):
    body = envelope.encode_body(TASK_REQUEST, value)
    request = envelope.encode(TASK_REQUEST, WHO, body)

    assert request.body is not None
    arrived = json.loads(request.body)
    expected = {"id": "id-1", "method": "POST", "path": "/tasks/", "idempotency_key": "key-1"}
    assert arrived == (expected if value is None else {**expected, "data": value})


def test_parameters_keep_their_lists():
    who = TransportRequestContext("discover", "ws://r", "id-2")
    body = envelope.encode_body(AGENT_CARD_REQUEST, None)

    request = envelope.encode(
        REGISTRY_DISCOVER_REQUEST, who, body, None, {"tags": ["a", "b"], "name": "n"}
    )

    assert json.loads(request.body or b"")["params"] == {"tags": ["a", "b"], "name": "n"}


def test_an_operation_without_data_sends_none():
    assert envelope.encode_body(AGENT_CARD_REQUEST, {"ignored": 1}) is None


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"nope",
        b"[]",
        b"null",
        b'"ok"',
        b"{}",
        b'{"ok": 1}',
        b'{"ok": "true", "result": 1}',
        b'{"ok": null}',
        b'{"id": "other", "ok": true, "result": 1}',
        b'{"id": ["id-1"], "ok": true, "result": 1}',
        b'{"id": 1, "ok": true}',
        b'\xff{"ok": true}',
        b'{"id": "id-1", "ok": true, "result": NaN}',
        b'{"id": "id-1", "ok": true, "result": 1} {}',
    ],
)
def test_what_is_no_envelope_of_this_call_is_a_protocol_error(payload):
    with pytest.raises(TransportProtocolError, match=r"send_task to ws://agent\.test"):
        envelope.decode_reply(payload, WHO)


def test_an_envelope_without_an_id_is_taken():
    """The peer answers null when it could not read the id."""
    assert envelope.decode_reply(reply({"id": None, "ok": True, "result": 1}), WHO) == 1
    assert envelope.decode_reply(reply({"ok": True, "result": 2}), WHO) == 2


def test_an_envelope_without_a_result_holds_none():
    assert envelope.decode_reply(reply({"id": "id-1", "ok": True}), WHO) is None


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        ({"type": "ValueError", "message": "no"}, "ValueError", "no"),
        ({"message": "no"}, None, "no"),
        ({"type": "ValueError"}, "ValueError", None),
        ("text", None, "text"),
        (None, None, None),
        ([1], None, "[1]"),
        ({"type": 5, "message": {"a": 1}}, None, "{'a': 1}"),
        ({}, None, None),
    ],
)
def test_an_error_of_any_form_is_a_remote_error(error, kind, words):
    with pytest.raises(TransportRemoteError) as caught:
        envelope.decode_reply(reply({"id": "id-1", "ok": False, "error": error}), WHO)

    assert (caught.value.error_type, caught.value.error_message) == (kind, words)
    assert caught.value.retryable is False


def test_the_peers_words_are_shown_on_one_line_and_not_without_end():
    words = "no\r\nERROR root: \x1b[31mforged" + "x" * 100_000

    with pytest.raises(TransportRemoteError) as caught:
        envelope.decode_reply(reply({"ok": False, "error": {"message": words}}), WHO)

    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 3000
    assert caught.value.error_message == words


@given(st.binary() | st.text().map(str.encode))
def test_bytes_of_any_kind_never_raise_anything_else(payload):
    try:
        envelope.decode(WireReply(200, "", {}, payload), WHO)
    except ProtoLinkError:
        pass


@given(st.dictionaries(st.sampled_from(["id", "ok", "result", "error", "final"]), json_values))
def test_envelopes_of_any_content_never_raise_anything_else(members):
    try:
        envelope.decode_reply(reply(members), WHO)
    except (TransportProtocolError, TransportRemoteError):
        pass


def test_a_head_cannot_be_broken_by_what_is_in_it():
    """The data is put into the bytes of the head: nothing in the head may end it early."""
    who = TransportRequestContext("x", "ws://a", 'i"d}', 'k"},"data":1')
    spec = ClientRequestSpec("x", '/p"},"data":{', "POST")

    request = envelope.encode(spec, who, envelope.encode_body(spec, {"a": 1}))

    arrived = json.loads(request.body or b"")
    assert arrived == {
        "id": 'i"d}',
        "method": "POST",
        "path": '/p"},"data":{',
        "idempotency_key": 'k"},"data":1',
        "data": {"a": 1},
    }
