"""What an encoded call says of itself before anything is sent."""

from __future__ import annotations

from protolink_sync.models import ClientRequestSpec
from protolink_sync.specs import AGENT_CARD_REQUEST
from protolink_sync.wire import TransportRequestContext, WireRequest, local

WHO = TransportRequestContext("x", "http://agent.test", "0" * 32)


def test_the_repr_of_a_call_shows_no_credentials():
    """Reprs end up in logs and tracebacks."""
    request = WireRequest(WHO, "POST", "/x", {}, None, {"Authorization": "Bearer s3cret"})

    assert "s3cret" not in repr(request)
    assert "/x" in repr(request)


def test_a_call_is_its_first_attempt_in_the_usual_lane_without_a_key():
    request = WireRequest(WHO, "POST", "/x", {}, None)

    assert (WHO.attempt, WHO.idempotency_key) == (1, None)
    assert (request.channel, request.credentials) == ("default", None)


def test_a_call_inside_the_process_without_data_has_no_body():
    spec = ClientRequestSpec("x", "/x", "POST")

    assert local.encode_body(spec, None) is None
    assert local.encode_body(spec, {}) is not None
    assert local.encode_body(AGENT_CARD_REQUEST, {"ignored": 1}) is None
