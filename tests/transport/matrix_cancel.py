"""End a call in every phase: ``python -m tests.transport.matrix_cancel`` prints a line a cell.

The call is the main thread's. It is ended by its token from another thread, with the argument
``signal`` by its token from a signal handler, with ``ctrl-c`` by SIGINT.

A cell is a phase, a route to the peer, and whether the pool held a live connection to the same
origin when the call began (``reused``) or none (``new``). A cell that cannot exist has its line
too, with the reason. The exit code is 1 if a cell missed the bound or left something behind.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import signal
import socket
import statistics
import sys
import tempfile
import threading
import time
from typing import Any

import attrs

from protolink_sync import CallCancelledError, CancelToken
from protolink_sync.config import RetryPolicy, TransportConfig, TransportLimits
from protolink_sync.security import TLSConfig
from protolink_sync.transport import HTTPTransport
from tests.transport import matrix_watch
from tests.transport.matrix_peer import ASK, PEER_NAME, PUSH, Addresses, running_peer

# How the call is ended, and the milliseconds it may take from there on.
BOUNDS_MS = {"token": 100.0, "signal": 100.0, "ctrl-c": 1000.0}

PHASES = ("slot", "resolve", "connect", "tls", "CONNECT", "send", "wait", "body", "backoff")
ROUTES = ("http", "https", "http+proxy", "https+proxy")
CONNECTIONS = ("new", "reused")

# The name of a phase in an error, where it is another one.
_REPORTED = {"CONNECT": "connect", "body": "read"}

# Seconds after the call came into its phase: at its begin, and when it surely blocks.
_MOMENTS = (0.0, 0.002, 0.01)

# Seconds after which a signal that did nothing is sent again.
_AGAIN = 0.5

_LARGE = b"x" * (64 * 1024 * 1024)

Cell = tuple[str, str, str]


def cells() -> list[Cell]:
    """Return every cell, those that cannot exist too."""
    return list(itertools.product(PHASES, ROUTES, CONNECTIONS))


def why_not(cell: Cell) -> str | None:
    """Return why a cell cannot exist; None if it can."""
    phase, route, connection = cell
    if phase == "CONNECT" and route != "https+proxy":
        return "only https through a proxy has a CONNECT"
    if phase == "tls" and not route.startswith("https"):
        return "http has no TLS"
    if phase in ("resolve", "connect", "tls", "CONNECT") and connection == "reused":
        return "a connection that stands is past this phase"
    return None


@attrs.frozen
class Sample:
    """One ended call.

    Args:
        ms: From the end to the exception in the caller.
        misses: What was not as it should be.
        before: Descriptors when the call began.
        after: Descriptors when it had ended.
    """

    ms: float
    misses: list[str]
    before: int
    after: int


class _StalledResolver:
    """A resolver that does not answer for one name until it is told to."""

    def __init__(self) -> None:
        self._real = socket.getaddrinfo
        self.answers = threading.Event()

    def __call__(self, host: Any, *args: Any, **options: Any) -> Any:
        if host != PEER_NAME:
            return self._real(host, *args, **options)
        if options.get("flags", 0) & socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "not an address")
        self.answers.wait()
        return self._real("127.0.0.1", *args, **options)


def _transport(cell: Cell, peer: Addresses) -> HTTPTransport:
    phase, route, _ = cell
    # The proxy stands where the phase is to block: on the way to it, or in it.
    host = PEER_NAME if phase == "resolve" else "127.0.0.1"
    port = peer.full if phase == "connect" else peer.http
    return HTTPTransport(
        tls=TLSConfig(cafile=peer.cafile),
        proxy=f"http://{host}:{port}" if route.endswith("+proxy") else None,
        trust_env=False,
        config=TransportConfig(
            limits=TransportLimits(
                max_request_bytes=len(_LARGE),
                max_concurrent_requests=1 if phase == "slot" else 100,
            ),
            retry=RetryPolicy(max_attempts=2, initial_backoff=60, max_backoff=60),
        ),
    )


def _address(cell: Cell, peer: Addresses) -> str:
    """Return where the call goes that is to be cancelled."""
    phase, route, _ = cell
    scheme, _, proxy = route.partition("+")
    mode = {"send": "unread", "wait": "silent", "body": "half", "backoff": "busy"}.get(phase)
    if mode is not None or phase == "slot":
        return peer.url(scheme, mode or "echo")
    if phase == "CONNECT":
        return "https://silent.test"
    if phase == "tls":
        return "https://mute.test" if proxy else f"https://127.0.0.1:{peer.mute}"
    if phase == "connect" and not proxy:
        return f"{scheme}://127.0.0.1:{peer.full}"
    return peer.url(scheme, "echo", host="127.0.0.1" if proxy else PEER_NAME)


class _Ender(threading.Thread):
    """End the call of the main thread when it is in its phase."""

    def __init__(self, how: str, transport: HTTPTransport, phase: str, moment: float) -> None:
        super().__init__(name="ender")
        self.token = CancelToken()
        self.began = 0.0
        self.how = how
        self._ready = lambda: matrix_watch.phase(transport, self.token) == phase
        self._moment = moment
        self.is_over = threading.Event()

    def run(self) -> None:
        matrix_watch.until(self._ready, "the phase")
        if self.how != "token":
            matrix_watch.until_asleep(threading.main_thread())
        time.sleep(self._moment)
        self.began = time.perf_counter()
        if self.how == "ctrl-c":
            os.kill(os.getpid(), signal.SIGINT)
            # CPython can lose the wake-up of a signal that comes just before its main thread falls
            # asleep. Then a person presses the keys again, well within the bound.
            while not self.is_over.wait(_AGAIN):
                os.kill(os.getpid(), signal.SIGINT)
        elif self.how == "signal":
            os.kill(os.getpid(), signal.SIGUSR1)
        else:
            self.token.cancel()

    def over(self) -> float:
        """Say that the call has ended, and return when."""
        self.is_over.set()
        return time.perf_counter()


class _Holder(threading.Thread):
    """Have the only slot, with a call that uses no connection of the cell's."""

    def __init__(self, transport: HTTPTransport, cell: Cell, peer: Addresses) -> None:
        super().__init__(name="holder")
        self._token = CancelToken()
        self._transport = transport
        through_proxy = cell[1].endswith("+proxy")
        self._url = "https://mute.test" if through_proxy else f"https://127.0.0.1:{peer.mute}"
        self.start()
        matrix_watch.until(
            lambda: matrix_watch.phase(transport, self._token) == "tls", "holding the slot"
        )

    def run(self) -> None:
        with contextlib.suppress(CallCancelledError):
            self._transport.send(ASK, self._url, {}, cancel=self._token)

    def end(self) -> None:
        self._token.cancel()
        self.join()


def _ended_call(
    cell: Cell, peer: Addresses, transport: HTTPTransport, ender: _Ender
) -> tuple[float, list[str]]:
    """Make the call that is to be ended; return milliseconds from there on, and what is wrong."""
    phase, _, _ = cell
    spec, data = (PUSH, _LARGE) if phase == "send" else (ASK, {})
    signal.signal(signal.SIGUSR1, lambda *_: ender.token.cancel())
    ender.start()
    misses = []
    try:
        brought = transport.send(spec, _address(cell, peer), data, cancel=ender.token)
        ended = ender.over()
        misses.append(f"brought {brought!r}")
    except KeyboardInterrupt:
        ended = ender.over()
        if ender.how != "ctrl-c":
            raise
    except CallCancelledError as error:
        ended = ender.over()
        if ender.how == "ctrl-c" or error.phase != _REPORTED.get(phase, phase):
            misses.append(f"{type(error).__name__} in phase {error.phase!r}")
    except Exception as error:
        ended = ender.over()
        misses.append(f"brought {error!r}")
    ender.join()
    return (ended - ender.began) * 1000, misses


def sample(
    cell: Cell, peer: Addresses, resolver: _StalledResolver, how: str, moment: float
) -> Sample:
    """End one call and look at what is left."""
    phase, route, connection = cell
    healthy = peer.url(route.partition("+")[0], "echo")
    idle = matrix_watch.descriptors()
    resolver.answers.clear()
    with _transport(cell, peer) as transport:
        warm = transport.send(ASK, healthy, {})["connection"] if connection == "reused" else None
        holder = _Holder(transport, cell, peer) if phase == "slot" else None
        before = matrix_watch.descriptors()

        ender = _Ender(how, transport, _REPORTED.get(phase, phase), moment)
        ms, misses = _ended_call(cell, peer, transport, ender)
        if ms > BOUNDS_MS[how]:
            misses.append(f"took {ms:.1f} ms")
        after = matrix_watch.descriptors()
        # A first attempt that was answered leaves its connection in the pool.
        allowed = before + (2 if phase == "backoff" and connection == "new" else 0)
        if after > allowed:
            misses.append(f"{after} descriptors, not {allowed}")

        if holder is not None:
            holder.end()
        resolver.answers.set()
        if transport.metrics.active_requests:
            misses.append("a slot is still in use")
        if not (phase == "connect" and "proxy" in route):  # its proxy is out of reach
            misses += _health(transport, healthy, cell, warm)
    matrix_watch.until(lambda: not matrix_watch.threads(), f"threads of {cell} end")
    if matrix_watch.descriptors() != idle:
        misses.append(f"{matrix_watch.descriptors()} descriptors after close(), not {idle}")
    return Sample(ms, misses, before, after)


def _health(transport: HTTPTransport, url: str, cell: Cell, warm: int | None) -> list[str]:
    """Call twice more: both answered, over one connection, the old one if it was not in use."""
    numbers = [transport.send(ASK, url, {"n": n})["connection"] for n in range(2)]
    if numbers[0] != numbers[1]:
        return [f"the next calls used connections {numbers}"]
    if cell[0] in ("slot", "backoff") and warm is not None and numbers[0] != warm:
        return [f"the idle connection {warm} was not used again, but {numbers[0]}"]
    return []


def _line(cell: Cell, text: str) -> str:
    phase, route, connection = cell
    return f"{phase:8} {route:12} {connection:7} {text}"


def main(how: str) -> int:
    """Measure every cell and print its line; return the exit code."""
    resolver = _StalledResolver()
    socket.getaddrinfo = resolver
    gc.freeze()  # what is there is there to stay: looking at descriptors collects the rest
    missed = 0
    every: list[float] = []
    with tempfile.TemporaryDirectory() as folder, running_peer(folder) as peer:
        with _transport(("wait", "https", "new"), peer) as first:  # what is made once a process
            first.send(ASK, peer.url("https", "echo"), {}, timeout=20)
        for cell in cells():
            reason = why_not(cell)
            if reason is not None:
                print(_line(cell, f"cannot exist: {reason}"), flush=True)
                continue
            samples = [sample(cell, peer, resolver, how, moment) for moment in _MOMENTS]
            misses = [miss for one in samples for miss in one.misses]
            missed += bool(misses)
            every += [one.ms for one in samples]
            figures = " ".join(f"{one.ms:6.2f}" for one in samples)
            last = samples[-1]
            verdict = "healthy" if not misses else "MISS: " + "; ".join(misses)
            text = f"{figures} ms  descriptors {last.before} -> {last.after}  {verdict}"
            print(_line(cell, text), flush=True)
    print(f"median {statistics.median(every):.2f} ms, max {max(every):.2f} ms, misses {missed}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main((sys.argv[1:] or ["token"])[0]))
