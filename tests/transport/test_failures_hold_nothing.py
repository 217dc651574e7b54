"""What a call had in hand is free once its error is: also where garbage is not collected.

An error holds the frames that it came through. One of them that holds the error in turn keeps both,
and the body that was sent and what was read, until the next garbage collection.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import grpc
import pytest

from protolink_sync import A2AClient, CancelToken
from protolink_sync.errors import CallCancelledError, ProtoLinkError, TransportConnectionError
from protolink_sync.models import Message, Task
from protolink_sync.transport import (
    GRPCTransport,
    Hooks,
    HTTPTransport,
    RuntimeTransport,
    SSEJSONRPCTransport,
    Transport,
    WebSocketTransport,
)
from protolink_sync.transport._call import Call
from tests.peers import held_port
from tests.transport import ws_scenes
from tests.transport.grpc_peer import GRPCPeer, wrapped
from tests.transport.scenes import (
    ASK,
    CLOSE,
    RECV,
    answering,
    no_garbage_collected,
    reply,
    retrying,
    serving,
    wait_until,
)

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
def cut_websocket() -> Iterator[str]:
    with serving([*ws_scenes.BEGIN, ws_scenes.event(1), CLOSE]) as server:
        yield server.ws_base


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


def calls_left() -> int:
    return sum(isinstance(found, Call) for found in gc.get_objects())


@pytest.mark.parametrize("failure", FAILURES)
def test_a_call_that_failed_leaves_nothing_behind(failure):
    peer, make = FAILURES[failure]

    with peer() as url, make() as client, no_garbage_collected():
        for _ in range(3):
            with contextlib.suppress(ProtoLinkError):
                client.send(ASK, url, {"much": "x" * 1000}, timeout=10)

        assert wait_until(lambda: calls_left() == 0)


def refuses_at_last(_origin: str, _refresh: bool, *, asked: Iterator[int]) -> dict[str, str]:
    """Give credentials for the first attempt of each call, and none for the second."""
    if next(asked) % 2:
        raise RuntimeError("the vault is closed")
    return {}


def test_a_call_whose_credentials_fail_in_a_later_attempt_leaves_nothing_behind():
    credentials = functools.partial(refuses_at_last, asked=itertools.count())
    with (
        answered(BUSY) as url,
        HTTPTransport(credentials=credentials, config=TWICE) as client,
        no_garbage_collected(),
    ):
        for _ in range(3):
            with pytest.raises(RuntimeError, match="vault"):
                client.send(ASK, url, {}, timeout=10)

        assert wait_until(lambda: calls_left() == 0)


@pytest.mark.parametrize("moment", ["on_retry", "on_request"])
def test_a_call_that_is_cancelled_between_its_attempts_leaves_nothing_behind(moment):
    tokens: list[CancelToken] = []

    def cancel(told: Any) -> None:
        if moment == "on_retry" or told.attempt == 2:
            tokens[-1].cancel()

    with (
        answered(BUSY) as url,
        HTTPTransport(config=TWICE, hooks=Hooks(**{moment: cancel})) as client,
        no_garbage_collected(),
    ):
        for _ in range(3):
            tokens.append(CancelToken())
            with contextlib.suppress(CallCancelledError):
                client.send(ASK, url, {}, timeout=10, cancel=tokens[-1])
                raise AssertionError("it was not cancelled")

        assert wait_until(lambda: calls_left() == 0)


def test_a_grpc_call_with_a_token_leaves_nothing_behind():
    """It is one that grpcio raises itself, with all that it has."""
    with nobody_there("grpc") as url, GRPCTransport() as client, no_garbage_collected():
        for _ in range(3):
            with pytest.raises(TransportConnectionError):
                client.send(ASK, url, {}, timeout=10, cancel=CancelToken())

        assert wait_until(lambda: calls_left() == 0)


def cut_after_one(envelope: Any, context: Any) -> Iterator[bytes]:
    yield wrapped(envelope, {"n": 0})
    context.abort(grpc.StatusCode.UNAVAILABLE, "no")


def bad_status_after_the_last(envelope: Any, context: Any) -> Iterator[bytes]:
    yield wrapped(envelope, {"n": 0}, final=True)
    context.abort(grpc.StatusCode.UNAVAILABLE, "no")


def refusing(_envelope: Any, context: Any) -> Iterator[bytes]:
    context.abort(grpc.StatusCode.UNAUTHENTICATED, "no")
    yield b""


@pytest.mark.parametrize("replies", [cut_after_one, bad_status_after_the_last, refusing])
def test_a_grpc_stream_leaves_nothing_behind_however_it_ends(replies):
    with (
        GRPCPeer(stream=replies) as peer,
        GRPCTransport(credentials=lambda _, again: {"X-API-Key": str(again)}) as client,
        no_garbage_collected(),
    ):
        for _ in range(3):
            with contextlib.suppress(ProtoLinkError):
                list(client.subscribe(peer.url, Task.create(Message.user("hi")), timeout=10))

        assert wait_until(lambda: calls_left() == 0)


PROGRESS = {"type": "task_progress", "message": "one"}
EVENT = "data: " + json.dumps({"id": None, "ok": True, "result": PROGRESS, "final": False})

# As above, of streams.
BROKEN: dict[str, tuple[Callable[[], Any], Callable[[], Transport]]] = {
    "refused": (nobody_there, SSEJSONRPCTransport),
    "refused, WebSocket": (lambda: nobody_there("ws"), WebSocketTransport),
    "refused, gRPC": (lambda: nobody_there("grpc"), GRPCTransport),
    "a status": (lambda: answered(MISSING), SSEJSONRPCTransport),
    "cut": (
        lambda: answered([{"op": "sse_head"}, {"op": "chunk", "data": EVENT + "\n\n"}, CLOSE]),
        SSEJSONRPCTransport,
    ),
    "no JSON": (
        lambda: answered([{"op": "sse_head"}, {"op": "chunk", "data": "data: x\n\n"}, CLOSE]),
        SSEJSONRPCTransport,
    ),
    "cut, WebSocket": (cut_websocket, WebSocketTransport),
}


@pytest.mark.parametrize("failure", BROKEN)
def test_a_stream_that_broke_leaves_nothing_behind(failure):
    peer, make = BROKEN[failure]

    with peer() as url, make() as client, no_garbage_collected():
        for _ in range(3):
            with contextlib.suppress(ProtoLinkError):
                list(client.subscribe(url, Task.create(Message.user("x" * 1000)), timeout=10))
                raise AssertionError("it did not break")

        assert wait_until(lambda: calls_left() == 0)


@pytest.mark.parametrize("answer", [MISSING, reply(status=500), reply("<p>"), reply("{}")])
def test_an_a2a_agent_without_a_card_leaves_nothing_behind(answer):
    """What is remembered of it is why, not all that was asked and answered before."""
    with answered(answer) as url:
        check_that_nothing_is_left(url)


def test_an_a2a_agent_that_does_not_run_leaves_nothing_behind():
    with nobody_there() as url:
        check_that_nothing_is_left(url)


def check_that_nothing_is_left(url: str) -> None:
    """Ask an A2A agent in vain, in all ways there are."""
    with A2AClient(url, timeout=10) as client, no_garbage_collected():
        for _ in range(3):
            with contextlib.suppress(ProtoLinkError):
                client.fetch_agent_card()
            with contextlib.suppress(ProtoLinkError):
                client.send_message("hi")
            with contextlib.suppress(ProtoLinkError):
                list(client.stream_message("hi"))

        assert wait_until(lambda: calls_left() == 0)
