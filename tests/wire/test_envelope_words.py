"""Envelopes: texts that need care in JSON, ids, lanes, and the words of errors."""

from __future__ import annotations

import json

import pytest

from protolink_sync.errors import TransportProtocolError, TransportRemoteError
from protolink_sync.models import ClientRequestSpec
from protolink_sync.specs import TASK_REQUEST
from protolink_sync.wire import TransportRequestContext, envelope

WHO = TransportRequestContext("send_task", "ws://agent.test", "id-1")


@pytest.mark.parametrize("text", ["plain", "a\\b", 'a"b', "a\nb", "\x7f", "ä", "\u2028", "😀", ""])
def test_ids_and_keys_of_any_text_arrive(text):
    """They are put into the bytes by hand."""
    for names in ((text, "key"), ("id", text), (text, text)):
        who = TransportRequestContext("x", "ws://a", *names)

        arrived = json.loads(envelope.encode(TASK_REQUEST, who, b"{}").body or b"")

        assert (arrived["id"], arrived["idempotency_key"]) == names


def test_a_call_without_a_key_has_none():
    arrived = json.loads(envelope.encode(TASK_REQUEST, WHO, b"{}").body or b"")

    assert set(arrived) == {"id", "method", "path", "data"}


def test_a_call_goes_in_the_lane_of_its_operation():
    """A cancel must not wait behind the task it cancels."""
    spec = ClientRequestSpec("x", "/x", "POST", channel="control")

    assert envelope.encode(spec, WHO, None).channel == "control"
    assert envelope.encode(TASK_REQUEST, WHO, None).channel == "default"


def test_where_only_the_id_tells_whose_a_result_is_one_without_it_is_nobodys():
    without = b'{"ok": true, "result": 1}'
    ours = b'{"id": "id-1", "ok": true, "result": 1}'

    with pytest.raises(TransportProtocolError, match="no id"):
        envelope.decode_reply(without, WHO, needs_id=True)
    assert envelope.decode_reply(ours, WHO, needs_id=True) == 1
    assert envelope.decode_reply(without, WHO) == 1


def test_an_error_needs_no_id():
    """The peer answers so where it could not read the call."""
    with pytest.raises(TransportRemoteError):
        envelope.decode_reply(b'{"ok": false, "error": "no"}', WHO, needs_id=True)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ({"type": "ValueError", "message": "no"}, "ValueError: no"),
        ({"message": "no"}, "no"),
        ({"type": "ValueError"}, "ValueError"),
        ({"type": "E", "message": ""}, "E: "),
        ("text", "text"),
        (None, ""),
    ],
)
def test_the_message_has_the_words_of_the_peer_and_no_others(error, words):
    with pytest.raises(TransportRemoteError) as caught:
        envelope.decode_reply(json.dumps({"ok": False, "error": error}).encode(), WHO)

    begin = "send_task to ws://agent.test: the peer answered with an error: "
    assert caught.value.args[0] == begin + words


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"result": 1, "final": True}, (1, True)),
        ({"result": 1, "final": False}, (1, False)),
        ({"result": 1}, (1, False)),
        ({"result": 1, "final": 1}, (1, False)),
        ({"final": True}, (None, True)),
    ],
)
def test_an_event_is_the_last_where_it_says_so(members, expected):
    payload = json.dumps({"id": "id-1", "ok": True, **members}).encode()

    assert envelope.decode_event(payload, WHO) == expected
