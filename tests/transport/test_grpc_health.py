"""The standard health check of gRPC: real agents, and every answer there can be."""

from __future__ import annotations

import threading

import grpc
import pytest

from protolink_sync import CancelToken
from protolink_sync.errors import (
    CallCancelledError,
    ClientClosedError,
    TransportConnectionError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.security import APIKey
from protolink_sync.transport import GRPCTransport
from tests.transport.grpc_peer import SERVICE, GRPCPeer, until_cancelled
from tests.transport.scenes import LIMIT, Calling

SERVING = b"\x08\x01"


def answers(message: bytes):
    return GRPCPeer(health=lambda _request, _context: message)


# ---- a real agent ------------------------------------------------------------------------------


@pytest.mark.parametrize("service", ["", SERVICE])
def test_a_protolink_agent_serves(shared_peer, service):
    with GRPCTransport(shared_peer("grpc").url) as client:
        assert client.check_health(service=service) == "SERVING"
        assert client.check_health(service=service, cancel=CancelToken()) == "SERVING"


def test_a_protolink_agent_asks_nobody_for_credentials(shared_peer):
    with GRPCTransport() as client:
        assert client.check_health(shared_peer("grpc", "--api-key", "k1").url) == "SERVING"


def test_a_service_that_an_agent_does_not_have_is_an_error(shared_peer):
    with (
        GRPCTransport(shared_peer("grpc").url) as client,
        pytest.raises(TransportRemoteError) as caught,
    ):
        client.check_health(service="nobody's")

    assert caught.value.error_type == "NOT_FOUND"


# ---- what goes out, and what comes back --------------------------------------------------------


@pytest.mark.parametrize(
    ("service", "message"),
    [
        ("", b""),
        ("abc", b"\x0a\x03abc"),
        ("ä", b"\x0a\x02\xc3\xa4"),
        ("s" * 300, b"\x0a\xac\x02" + b"s" * 300),
    ],
)
def test_the_question_is_the_message_of_the_protocol(service, message):
    asked = []

    def health(request, context):
        asked.append((request, dict(context.invocation_metadata()).get("x-api-key")))
        return SERVING

    with GRPCPeer(health=health) as peer, GRPCTransport(credentials=APIKey("k1")) as client:
        assert client.check_health(peer.url, service) == "SERVING"

    assert asked == [(message, "k1")]


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (b"", "UNKNOWN"),
        (b"\x08\x00", "UNKNOWN"),
        (b"\x08\x01", "SERVING"),
        (b"\x08\x02", "NOT_SERVING"),
        (b"\x08\x03", "SERVICE_UNKNOWN"),
        (b"\x08\x02\x08\x01", "SERVING"),
        (b"\x08\x81\x00", "SERVING"),
        (b"\x12\x03\x08\x02x\x08\x01\x1a\x00", "SERVING"),
        (b"\x08\x01\x10\x02\x1d1234\x21\x31234567\x31", "SERVING"),
    ],
)
def test_every_status_has_its_name_and_unknown_fields_are_passed_over(message, status):
    with answers(message) as peer, GRPCTransport(peer.url) as client:
        assert client.check_health() == status


@pytest.mark.parametrize(
    "message",
    [
        b"\x08",
        b"\x08\x04",
        b"\x0c\x01",
        b"\x12\x05x",
        b"\x08" + b"\xff" * 11,
        b"SERVING",
        b"\x1d12",
    ],
)
def test_what_is_no_status_is_never_taken_for_one(message):
    with (
        answers(message) as peer,
        GRPCTransport(peer.url) as client,
        pytest.raises(TransportProtocolError, match="no health status"),
    ):
        client.check_health()


# ---- when it fails -----------------------------------------------------------------------------


def test_a_peer_without_the_check_is_told_from_one_that_does_not_serve():
    with GRPCPeer() as peer, GRPCTransport(peer.url) as client:
        with pytest.raises(TransportRemoteError, match="health check") as caught:
            client.check_health()

        assert caught.value.error_type == caught.value.status_code == "UNIMPLEMENTED"
        assert client.metrics.requests_failed == 1


def test_a_peer_that_is_not_there_is_a_connection_error():
    with GRPCTransport("grpc://127.0.0.1:9") as client, pytest.raises(TransportConnectionError):
        client.check_health(timeout=LIMIT)


@pytest.mark.parametrize("token", [None, CancelToken()], ids=["no token", "a token"])
def test_a_silent_peer_costs_the_budget_only(token):
    def health(_request, context):
        until_cancelled(context)
        return b""

    with (
        GRPCPeer(health=health) as peer,
        GRPCTransport(peer.url) as client,
        pytest.raises(TransportTimeoutError),
    ):
        client.check_health(timeout=0.3, cancel=token)


def test_it_can_be_cancelled():
    token, asked = CancelToken(), threading.Event()

    def health(_request, context):
        asked.set()
        until_cancelled(context)
        return b""

    with GRPCPeer(health=health) as peer, GRPCTransport(peer.url) as client:
        call = Calling(client.check_health, cancel=token)
        assert asked.wait(LIMIT)
        token.cancel("enough")
        with pytest.raises(CallCancelledError, match="enough"):
            call.result()


def test_what_cannot_be_asked_is_refused_before_anything_is_sent():
    client = GRPCTransport("grpc://127.0.0.1:9")

    with pytest.raises(TypeError, match="service"):
        client.check_health(service=b"x")
    with pytest.raises(ValueError, match="timeout"):
        client.check_health(timeout=0)
    client.close()
    with pytest.raises(ClientClosedError):
        client.check_health()


def test_an_error_of_the_check_is_an_error_of_the_peer():
    def health(_request, context):
        context.abort(grpc.StatusCode.INTERNAL, "no")

    with (
        GRPCPeer(health=health) as peer,
        GRPCTransport(peer.url) as client,
        pytest.raises(TransportRemoteError) as caught,
    ):
        client.check_health()

    assert caught.value.error_type == "INTERNAL"
