"""End streams and calls of every wire: ``python -m tests.transport.matrix_streams`` prints a line
a cell.

The first part leaves a stream (``close``, ``break``, ``del``, by its token, by Ctrl-C) while its
worker is blocked: in ``put`` (nobody reads the events), in ``recv`` (the peer is silent), in
``tls`` (within a record of TLS), in ``pong`` (the peer reads none). Worker and connection must be
gone within the bound; over gRPC, whose connection belongs to the channel, the call at the peer.

The second part cancels a call, or the opening of a stream, in each of its phases. The next call
must work in both parts. A cell that cannot exist has its line too, with the reason. The exit code
is 1 if a cell missed the bound, or left something behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import itertools
import os
import signal
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from protolink_sync import CallCancelledError, CancelToken, Message, Task
from protolink_sync.security import TLSConfig
from protolink_sync.transport import (
    GRPCTransport,
    SSEJSONRPCTransport,
    Transport,
    WebSocketTransport,
)
from tests.transport import matrix_watch
from tests.transport.grpc_peer import GRPCPeer, until_cancelled
from tests.transport.matrix_peer import ASK, Addresses, running_peer
from tests.transport.scenes import connections_to

BOUND_MS = 100.0

WIRES = ("sse", "sse+tls", "ws", "ws+tls", "grpc")
HOWS = ("close", "break", "del", "cancel", "ctrl-c")
PLACES = ("put", "recv", "tls", "pong")
KINDS = ("call", "stream")
PHASES = ("connect", "tls", "upgrade", "send", "wait", "read")

# How often a cell is tried whose only fault is its time: other programs may have the processor.
_TRIES = 3

_LARGE = 12_000_000

Cell = tuple[str, str, str]


def leaving_cells() -> list[Cell]:
    """Return the cells of the first part: how, place of the worker, wire."""
    return list(itertools.product(HOWS, PLACES, WIRES))


def phase_cells() -> list[Cell]:
    """Return the cells of the second part: what is made, phase, wire."""
    return list(itertools.product(KINDS, PHASES, WIRES))


def why_not(cell: Cell) -> str | None:
    """Return why a cell cannot exist; None if it can."""
    what, where, wire = cell
    if where == "tls" and wire == "grpc":
        return "grpcio has TLS to itself"
    if where == "tls" and not wire.endswith("tls"):
        return "there is no TLS"
    if where in ("pong", "upgrade") and not wire.startswith("ws"):
        return "that is WebSocket's"
    if what == "call" and wire.startswith("sse"):
        return "those are the calls of HTTP, which have a matrix"
    if what in KINDS and wire == "grpc" and where in ("send", "read"):
        return "grpcio does that while the call waits"
    if what == "stream" and where == "read":
        return "an open stream is for the first part"
    if what == "stream" and where == "wait" and not wire.startswith("sse"):
        return "the stream is open before the peer answers"
    return None


# ---- peers and transports ----------------------------------------------------------------------


def _words(envelope: Any) -> str:
    data = envelope.get("data") or {}
    return str(data["messages"][0]["parts"][0]["content"] if "messages" in data else "")


def _grpc_events(envelope: Any, context: Any) -> Iterator[Any]:
    yield {"type": "task_progress", "message": "begun"}
    while _words(envelope) == "put":
        yield {"type": "task_progress", "message": "x" * 65_000}
    until_cancelled(context)


def _grpc_answer(envelope: Any, context: Any) -> Any:
    if envelope["data"].get("wait"):
        until_cancelled(context)
    return {"question": envelope["data"]}


class _Stage:
    """The peers, and what is called there.

    Args:
        peer: Of HTTP and WebSocket.
        grpc: Of gRPC.
    """

    def __init__(self, peer: Addresses, grpc: GRPCPeer) -> None:
        self.peer = peer
        self.grpc = grpc

    def transport(self, wire: str) -> Transport:
        tls = TLSConfig(cafile=self.peer.cafile)
        if wire == "grpc":
            return GRPCTransport(trust_env=False)
        kind = SSEJSONRPCTransport if wire.startswith("sse") else WebSocketTransport
        return kind(tls=tls, trust_env=False)

    def url(self, wire: str, mode: str) -> str:
        """Return the address of a mode; of the one for healthy calls if it is empty."""
        if wire == "grpc":
            return self.grpc.url
        name, _, tls = wire.partition("+")
        scheme = {"sse": "http", "ws": "ws"}[name] + ("s" if tls else "")
        return self.peer.url(scheme, f"{name}-{mode}" if mode else _ECHO[name])

    def address_in(self, cell: Cell) -> str:
        """Return where a call goes that is to stay in a phase."""
        _, phase, wire = cell
        port = {"connect": self.peer.full, "tls": self.peer.mute}.get(phase)
        if wire == "grpc":
            return f"grpc://127.0.0.1:{self.peer.mute}" if phase == "connect" else self.grpc.url
        url = self.url(wire, _MODE_OF[phase])
        if wire.startswith("sse") and phase in ("send", "wait"):
            url = url.replace("sse-", "")  # what the peer does with every request
        if port is not None:
            url = f"{urlsplit(url).scheme}://127.0.0.1:{port}"
        return url


_ECHO = {"sse": "echo", "ws": "ws-echo"}
_MODE_OF = {
    "connect": "one",
    "tls": "one",
    "upgrade": "unanswered",
    "send": "unread",
    "wait": "silent",
    "read": "half",
}
_PLACE_MODE = {"put": "flood", "recv": "one", "tls": "part", "pong": "pings"}


# ---- the first part ----------------------------------------------------------------------------


def _worker() -> threading.Thread | None:
    return next((t for t in threading.enumerate() if t.name.startswith("protolink-stream")), None)


def _innermost(thread: threading.Thread) -> str:
    frame = sys._current_frames().get(thread.ident or 0)
    return "" if frame is None else frame.f_code.co_name


def _until_blocked(place: str, worker: threading.Thread, port: int) -> None:
    """Wait until the worker of the only stream stays where it is to be."""
    inside = {"put": ("wait",), "pong": ("send", "sendall")}.get(place)
    looks, unread = 0, 0
    while looks < 10:
        time.sleep(0.002)
        here = inside is None or _innermost(worker) in inside
        if place == "pong":  # until as many pings as there is room for wait to be read
            before, unread = unread, _unread_bytes(port)
            here = here and unread == before
        looks = looks + 1 if here else 0
    matrix_watch.until_asleep(worker)


def _unread_bytes(port: int) -> int:
    with connections_to(port) as found:
        number = fcntl.ioctl(found[0].fileno(), termios.FIONREAD, bytes(4))
    return int.from_bytes(number, sys.byteorder)


class _Interrupter(threading.Thread):
    """Send SIGINT to the main thread when it sleeps."""

    def __init__(self) -> None:
        super().__init__(name="interrupter")
        self.began = 0.0

    def run(self) -> None:
        matrix_watch.until_asleep(threading.main_thread())
        self.began = time.perf_counter()
        os.kill(os.getpid(), signal.SIGINT)


def _leave(how: str, open_: Callable[..., Any], blocked: Callable[[], None], place: str) -> float:
    """Open a stream, and leave it when its worker is blocked; return when."""
    token = CancelToken()
    if how == "break":
        for _ in open_(token):
            blocked()
            began = time.perf_counter()
            break
        return began
    stream = open_(token)
    next(stream)
    blocked()
    if how == "ctrl-c":
        return _interrupt(stream, place)
    began = time.perf_counter()
    if how == "close":
        stream.close()
    elif how == "cancel":
        token.cancel()
    del stream
    return began


def _interrupt(stream: Any, place: str) -> float:
    interrupter = _Interrupter()
    interrupter.start()
    with contextlib.suppress(KeyboardInterrupt), stream:
        if place == "put":  # its reader does something else
            threading.Event().wait(matrix_watch._LIMIT)
        next(stream)
    interrupter.join()
    return interrupter.began


def leave(stage: _Stage, cell: Cell) -> tuple[float, list[str]]:
    """Leave a stream; return the milliseconds until nothing of it is left, and what is wrong."""
    how, place, wire = cell
    url = stage.url(wire, _PLACE_MODE[place])
    port = urlsplit(url).port or 0
    task = Task.create(Message.user(place))
    found: list[threading.Thread] = []

    def blocked() -> None:
        worker = _worker()
        assert worker is not None
        found.append(worker)
        stage.grpc.ended.clear()
        _until_blocked(place, worker, port)

    def is_gone() -> bool:
        if found[0].is_alive():
            return False
        if wire == "grpc":
            return stage.grpc.ended.is_set()
        with connections_to(port) as left:
            return not left

    before = matrix_watch.descriptors()
    with stage.transport(wire) as transport:
        began = _leave(
            how, lambda token: transport.subscribe(url, task, cancel=token), blocked, place
        )
        matrix_watch.until(is_gone, f"the end of {cell}")
        ms = (time.perf_counter() - began) * 1000
        misses = _left_over(transport, stage.url(wire, ""))
    return ms, misses + _not_as_before(before, wire)


def _left_over(transport: Transport, healthy: str) -> list[str]:
    misses = []
    if transport.metrics.active_streams or transport.metrics.active_requests:
        misses.append("a slot is still in use")
    if transport.send(ASK, healthy, {"n": 1}, timeout=10)["question"] != {"n": 1}:
        misses.append("the next call has another answer")
    return misses


def _not_as_before(before: int, wire: str) -> list[str]:
    matrix_watch.until(lambda: _worker() is None, "the end of the workers")
    if wire == "grpc":  # grpcio keeps its pollers
        return []
    try:
        matrix_watch.until(lambda: matrix_watch.descriptors() <= before, "descriptors")
    except AssertionError:
        return [f"{matrix_watch.descriptors()} descriptors, {before} before"]
    return []


# ---- the second part ---------------------------------------------------------------------------


class _Canceller(threading.Thread):
    """Cancel a call when it is in its phase."""

    def __init__(self, transport: Transport, phase: str) -> None:
        super().__init__(name="canceller")
        self.token = CancelToken()
        self.began = 0.0
        self._transport = transport
        self._phase = phase

    def _is_there(self) -> bool:
        calls = self._transport._slots.calls() | self._transport._stream_slots.calls()
        return any(call.phase == self._phase for call in calls)

    def run(self) -> None:
        matrix_watch.until(self._is_there, f"the phase {self._phase}")
        time.sleep(0.01)
        self.began = time.perf_counter()
        self.token.cancel()


def cancel(stage: _Stage, cell: Cell) -> tuple[float, list[str]]:
    """Cancel in a phase; return the milliseconds until the caller knows, and what is wrong."""
    kind, phase, wire = cell
    url = stage.address_in(cell)
    before = matrix_watch.descriptors()
    misses: list[str] = []
    with stage.transport(wire) as transport:
        canceller = _Canceller(transport, "connect" if phase == "upgrade" else phase)
        text = "x" * _LARGE if phase == "send" else "hi"
        canceller.start()
        try:
            if kind == "call":
                data = {"q": text, "wait": True}
                transport.send(ASK, url, data, cancel=canceller.token)
            else:
                transport.subscribe(url, Task.create(Message.user(text)), cancel=canceller.token)
            misses.append("was not ended")
        except CallCancelledError:
            pass
        except Exception as error:
            misses.append(f"brought {error!r}")
        ended = time.perf_counter()
        canceller.join()
        misses += _left_over(transport, stage.url(wire, ""))
    return (ended - canceller.began) * 1000, misses + _not_as_before(before, wire)


# ---- the program -------------------------------------------------------------------------------


def _tried(
    run: Callable[[_Stage, Cell], tuple[float, list[str]]], stage: _Stage, cell: Cell
) -> str:
    misses: list[str] = []
    times: list[float] = []
    for _ in range(_TRIES):
        ms, misses = run(stage, cell)
        times.append(ms)
        if misses or ms <= BOUND_MS:
            break
    else:
        misses = [f"took {min(times):.1f} ms"]
    return f"{times[-1]:6.1f} ms  {'MISS: ' + '; '.join(misses) if misses else 'gone'}"


def main(part: str) -> int:
    """Run one part, print its lines, and return the exit code."""
    run, cells = (leave, leaving_cells()) if part == "leave" else (cancel, phase_cells())
    missed = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        running_peer(folder) as peer,
        GRPCPeer(_grpc_answer, _grpc_events) as grpc,
    ):
        stage = _Stage(peer, grpc)
        for wire in WIRES:  # what is made once a process
            with stage.transport(wire) as first:
                first.send(ASK, stage.url(wire, ""), {}, timeout=20)
        gc.freeze()
        for cell in cells:
            reason = why_not(cell)
            verdict = f"cannot exist: {reason}" if reason else _tried(run, stage, cell)
            missed += "MISS" in verdict
            print(f"{cell[0]:8} {cell[1]:8} {cell[2]:8} {verdict}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
