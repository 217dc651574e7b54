"""The cases: who does what, and what must hold. README.rst explains them in the same order."""

from __future__ import annotations

from typing import Any

import attrs

from benchmarks.bounds import Bound
from benchmarks.payloads import A2A_EVENTS, PACED, STREAMS

__all__ = ["CASES", "CONTENDERS", "HTTP_SERVER", "OURS", "PROTOLINK", "Case", "Contender"]

HTTP_CLIENT = "http.client + json"
HAND_WRITTEN = "dataclasses by hand"
DICT_ROUND_TRIP = "dict round trip alone"
HANDED_OVER = "dict round trip, handed over"
RAW_SOCKET = "raw socket + json"
GRPCIO = "grpcio + json"
OURS = "protolink_sync"
OURS_FAST = "protolink_sync[fast]"
PROTOLINK = "protolink client.sync"
BOTH = (OURS, OURS_FAST)
A2A_BY_HAND = "JSON-RPC by hand"
A2A_CLIENT = "A2AClient"
A2A_SDK = "a2a-sdk"
NEOGRAPH = "neograph-engine (C++)"

HTTP_SERVER = "benchmarks.server"
GRPC_SERVER = "benchmarks.grpc_server"
A2A_SERVER = "benchmarks.a2a_server"
_WIRES = {"sse": "SSE", "websocket": "WebSocket", "grpc": "gRPC"}


@attrs.frozen
class Contender:
    """Who is measured.

    Args:
        path: Module and class.
        needs_peers: It runs in the peers' interpreter.
    """

    path: str
    needs_peers: bool = False


CONTENDERS = {
    HTTP_CLIENT: Contender("benchmarks.contenders.floor:HttpClient"),
    HAND_WRITTEN: Contender("benchmarks.contenders.floor:HandWritten"),
    DICT_ROUND_TRIP: Contender("benchmarks.contenders.ours:DictRoundTrip"),
    HANDED_OVER: Contender("benchmarks.contenders.ours:HandedOver"),
    RAW_SOCKET: Contender("benchmarks.contenders.raw:RawSocket"),
    GRPCIO: Contender("benchmarks.contenders.raw:Grpcio"),
    OURS: Contender("benchmarks.contenders.ours:Plain"),
    OURS_FAST: Contender("benchmarks.contenders.ours:Fast"),
    PROTOLINK: Contender("benchmarks.contenders.protolink:ClientSync", needs_peers=True),
    A2A_BY_HAND: Contender("benchmarks.contenders.a2a:ByHand"),
    A2A_CLIENT: Contender("benchmarks.contenders.a2a:Ours"),
    A2A_SDK: Contender("benchmarks.contenders.a2a_others:Sdk", needs_peers=True),
    NEOGRAPH: Contender("benchmarks.contenders.a2a_others:Neograph", needs_peers=True),
}


@attrs.frozen
class Case:
    """One thing that several contenders do, measured in interleaved rounds.

    Args:
        title: What is done.
        job: Method of the contenders that returns the job.
        of: Its arguments.
        how: Function of :mod:`benchmarks.timing` that measures the job.
        floor: The contender that the table sets the others against.
        others: The other contenders.
        bounds: What must hold.
        extra: Arguments of ``how`` after the seconds.
        stretch: How many times the usual seconds one round takes.
        server: Module of the canned server.
    """

    title: str
    job: str
    of: tuple[str, ...]
    how: str
    floor: str
    others: tuple[str, ...]
    bounds: tuple[Bound, ...]
    extra: tuple[int, ...] = ()
    stretch: float = 1.0
    server: str = HTTP_SERVER


def _at_most(figure: str, limit: float, base: str, whom: tuple[str, ...] = BOTH) -> list[Bound]:
    return [Bound(contender, figure, "<=", limit, base) for contender in whom]


def _threads(count: int) -> Case:
    return Case(
        title=f"calls of 1 KB by {count} threads that share one client",
        job="threads",
        of=("small",),
        how="threads",
        extra=(count,),
        stretch=2.0,
        floor=HTTP_CLIENT,
        others=(*BOTH, PROTOLINK),
        bounds=(
            *_at_most("wall_us", 2.4, HTTP_CLIENT),
            *_at_most("p99_us", 3.0, HTTP_CLIENT),
        ),
    )


def _models(job: str, title: str) -> Case:
    return Case(
        title=title,
        job=job,
        of=("nested",),
        how="repeated",
        floor=HAND_WRITTEN,
        others=(OURS, PROTOLINK),
        bounds=tuple(_at_most("cpu_us", 1.3, HAND_WRITTEN, (OURS,))),
    )


def _on(wire: str, title: str, job: str, of: str, how: str, *bounds: Bound, **more: Any) -> Case:
    """Return a case of a wire, with the floor and the server of that wire."""
    return Case(
        title=f"{title} over {_WIRES[wire]}",
        job=job,
        of=(wire, of),
        how=how,
        floor=_floor(wire),
        others=(*BOTH, PROTOLINK),
        bounds=bounds,
        server=GRPC_SERVER if wire == "grpc" else HTTP_SERVER,
        **more,
    )


def _floor(wire: str) -> str:
    return GRPCIO if wire == "grpc" else RAW_SOCKET


def _streams(wire: str, *bounds: Bound, small: float) -> dict[str, Case]:
    floor = _floor(wire)
    return {
        f"{wire}-10k": _on(
            wire,
            "10,000 small events",
            "stream",
            "10k",
            "stream",
            *_at_most("cpu_us", small, floor),
            *bounds,
            extra=(STREAMS["10k"][0],),
        ),
        f"{wire}-1mb": _on(
            wire,
            "100 events of 1 MB",
            "stream",
            "1mb",
            "stream",
            *_at_most("cpu_us", 1.7, floor, (OURS,)),
            *_at_most("cpu_us", 1.2, floor, (OURS_FAST,)),
            extra=(STREAMS["1mb"][0],),
        ),
        f"{wire}-paced": _on(
            wire,
            "events 10 ms apart",
            "stream",
            "paced",
            "paced",
            *_at_most("p50_us", 1.7, floor),
            *_at_most("first_us", 3.0, floor),
            extra=(PACED[0],),
            stretch=2.0,
        ),
    }


def _larger(title: str, small: str, large: str) -> Case:
    return Case(
        title=title,
        job="larger",
        of=("sse", small, large),
        how="larger",
        stretch=2.0,
        floor=RAW_SOCKET,
        others=(*BOTH, PROTOLINK),
        bounds=tuple(Bound(ours, "factor", "<=", 5.0) for ours in BOTH),
    )


def _small_call(wire: str, limit: float) -> Case:
    bounds = _at_most("wall_us", limit, _floor(wire))
    return _on(wire, "one call of 1 KB", "call", "small", "repeated", *bounds)


def _a2a(title: str, job: str, how: str, **more: Any) -> Case:
    return Case(
        title=title,
        job=job,
        of=(),
        how=how,
        floor=A2A_BY_HAND,
        others=(A2A_CLIENT, A2A_SDK, NEOGRAPH),
        bounds=(Bound(A2A_SDK, "wall_us", ">=", 2.0, A2A_CLIENT),),
        server=A2A_SERVER,
        **more,
    )


CASES: dict[str, Case] = {
    "small": Case(
        title="one call of 1 KB on a kept connection",
        job="unary",
        of=("small",),
        how="repeated",
        floor=HTTP_CLIENT,
        others=(*BOTH, PROTOLINK),
        bounds=(
            *_at_most("wall_us", 2.0, HTTP_CLIENT),
            *_at_most("cpu_us", 2.4, HTTP_CLIENT),
            *(Bound(PROTOLINK, "wall_us", ">=", 50.0, ours) for ours in BOTH),
        ),
    ),
    "big": Case(
        title="one call of 1 MB on a kept connection",
        job="unary",
        of=("big",),
        how="repeated",
        floor=HTTP_CLIENT,
        others=(*BOTH, PROTOLINK),
        bounds=(
            *_at_most("wall_us", 1.15, HTTP_CLIENT, (OURS,)),
            *_at_most("wall_us", 0.6, HTTP_CLIENT, (OURS_FAST,)),
        ),
    ),
    "threads8": _threads(8),
    "threads32": _threads(32),
    "cold": Case(
        title="a new client and its first call, 1 KB",
        job="fresh",
        of=("small",),
        how="fresh",
        floor=HTTP_CLIENT,
        others=(*BOTH, PROTOLINK),
        bounds=tuple(_at_most("wall_us", 2.6, HTTP_CLIENT)),
    ),
    "imports": Case(
        title="the import in a new process, beyond a bare interpreter",
        job="statement",
        of=(),
        how="imports",
        stretch=5.0,
        floor=PROTOLINK,
        others=(HTTP_CLIENT, *BOTH),
        bounds=tuple(_at_most("wall_us", 0.25, PROTOLINK)),
    ),
    "decode": _models("decode", "a task of 100 messages with 3 parts: dictionary to model"),
    "encode": _models("encode", "a task of 100 messages with 3 parts: model to dictionary"),
    "runtime": Case(
        title="one call to an agent in the same process",
        job="runtime",
        of=(),
        how="repeated",
        floor=DICT_ROUND_TRIP,
        others=(HANDED_OVER, *BOTH, PROTOLINK),
        bounds=(
            *_at_most("wall_us", 2.0, DICT_ROUND_TRIP),
            *_at_most("cpu_us", 2.0, DICT_ROUND_TRIP),
        ),
    ),
    **_streams(
        "sse",
        *(Bound(PROTOLINK, "cpu_us", ">=", 3.5, ours) for ours in BOTH),
        small=1.8,
    ),
    "sse-closed": _on(
        "sse",
        "events 10 ms apart, in a body that ends with its connection,",
        "stream",
        "closed",
        "paced",
        *_at_most("p50_us", 1.7, RAW_SOCKET),
        *_at_most("first_us", 3.0, RAW_SOCKET),
        extra=(PACED[0],),
        stretch=2.0,
    ),
    "sse-larger": _larger(
        "an event of 1 MB, and one of 256 KB, in chunks of 1 KB over SSE", "event256k", "event1m"
    ),
    "sse-lines": _larger(
        "an event of 1 MB, and one of 256 KB, in short data lines over SSE", "lines256k", "lines1m"
    ),
    **_streams("websocket", small=2.0),
    "websocket-small": _small_call("websocket", 1.6),
    **_streams("grpc", small=1.0),
    "grpc-small": _small_call("grpc", 1.15),
    "a2a-small": _a2a("one message of 1 KB to an A2A agent", "message", "repeated"),
    "a2a-10k": _a2a(
        "10,000 events of an A2A stream", "events", "stream", extra=(A2A_EVENTS,), stretch=2.0
    ),
}
