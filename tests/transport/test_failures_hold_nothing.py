"""What a call had in hand is free once its error is: also where garbage is not collected.

An error holds the frames that it came through. One of them that holds the error in turn keeps both,
and the body that was sent and what was read, until the next garbage collection.
"""

from __future__ import annotations

import contextlib
import gc
import socket
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest

from protolink_sync import A2AClient
from protolink_sync.errors import ProtoLinkError
from protolink_sync.transport import (
    GRPCTransport,
    HTTPTransport,
    RuntimeTransport,
    SSEJSONRPCTransport,
    Transport,
    WebSocketTransport,
)
from protolink_sync.transport._call import Call
from tests.peers import held_port
from tests.transport.scenes import ASK, CLOSE, RECV, answering, reply, retrying, serving

TWICE = retrying(2)


@contextlib.contextmanager
def nobody_there(scheme: str = "http") -> Iterator[str]:
    with held_port() as port:
        yield f"{scheme}://127.0.0.1:{port}"


@contextlib.contextmanager
def answered(*replies: Any) -> Iterator[str]:
    with answering(*replies) as server:
        yield server.base


@contextlib.contextmanager
def cut() -> Iterator[str]:
    with serving([RECV, CLOSE]) as server:
        yield server.base


@contextlib.contextmanager
def unknown(url: str) -> Iterator[str]:
    def not_found(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "no such host")

    with mock.patch.object(socket, "getaddrinfo", not_found):
        yield url


BUSY, MISSING = reply(status=503), reply(status=404)

# The peer, and what calls it.
FAILURES: dict[str, tuple[Callable[[], Any], Callable[[], Transport]]] = {
    "refused": (nobody_there, HTTPTransport),
    "refused, WebSocket": (lambda: nobody_there("ws"), WebSocketTransport),
    "refused, gRPC": (lambda: nobody_there("grpc"), GRPCTransport),
    "refused twice": (nobody_there, lambda: HTTPTransport(config=TWICE)),
    "an unknown host": (lambda: unknown("http://peer.test"), HTTPTransport),
    "an unknown agent": (lambda: unknown("runtime://nobody"), RuntimeTransport),
    "a status": (lambda: answered(MISSING), HTTPTransport),
    "a status, no stream": (lambda: answered(MISSING), SSEJSONRPCTransport),
    "a status twice": (lambda: answered(BUSY), lambda: HTTPTransport(config=TWICE)),
    "a status with a long pause": (
        lambda: answered(reply(status=503, headers={"Retry-After": "60"})),
        lambda: HTTPTransport(config=TWICE),
    ),
    "a status, then another": (
        lambda: answered(BUSY, MISSING),
        lambda: HTTPTransport(config=TWICE),
    ),
    "an answer after a failure": (
        lambda: answered(BUSY, reply()),
        lambda: HTTPTransport(config=TWICE),
    ),
    "no JSON": (lambda: answered(reply("<p>")), HTTPTransport),
    "cut": (cut, HTTPTransport),
    "cut twice": (cut, lambda: HTTPTransport(config=TWICE)),
}


@contextlib.contextmanager
def no_garbage_collected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def calls_left() -> int:
    return sum(isinstance(found, Call) for found in gc.get_objects())


@pytest.mark.parametrize("failure", FAILURES)
def test_a_call_that_failed_leaves_nothing_behind(failure):
    peer, make = FAILURES[failure]

    with peer() as url, make() as client, no_garbage_collected():
        for _ in range(3):
            with contextlib.suppress(ProtoLinkError):
                client.send(ASK, url, {"much": "x" * 1000}, timeout=10)

        assert calls_left() == 0


@pytest.mark.parametrize("answer", [MISSING, reply(status=500), reply("<p>"), reply("{}")])
def test_an_a2a_agent_without_a_card_leaves_nothing_behind(answer):
    """What is remembered of it is why, not all that was asked and answered before."""
    with answered(answer) as url, A2AClient(url) as client, no_garbage_collected():
        for _ in range(3):
            with contextlib.suppress(ProtoLinkError):
                client.fetch_agent_card()
            with contextlib.suppress(ProtoLinkError):
                client.send_message("hi")

        assert calls_left() == 0
