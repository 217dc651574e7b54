"""Spend a budget of one second in every way: ``python -m tests.transport.matrix_budget``.

Each scene is played by 5 threads at the same time, by each 10 times in a row, first alone and then
beside a process that spins; a line each. What a process that only sleeps is late at the same time
is not held against a call. ``--in-a-row`` plays each scene 50
times in a row in one thread instead, which takes two minutes. The exit code is 1 if a call took
longer than 1.1 s, ended before its time, or did not say that its budget is over.
"""

from __future__ import annotations

import contextlib
import gc
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from protolink_sync import CancelToken, TransportTimeoutError
from protolink_sync.config import RetryPolicy, TransportConfig, TransportLimits
from protolink_sync.security import TLSConfig
from protolink_sync.transport import HTTPTransport
from tests.transport import matrix_watch
from tests.transport.matrix_peer import ASK, PEER_NAME, PUSH, Addresses, running_peer

BUDGET = 1.0
LIMIT = 1.1

THREADS = 5
TIMES = 10
IN_A_ROW = 50

SCENES = (
    "silence",
    "dripping headers",
    "dripping body",
    "full backlog",
    "TLS stall",
    "no slot",
    "stalled resolver",
    "silent CONNECT",
    "unread request",
    "retries",
)

_UNREAD = b"x" * (8 * 1024 * 1024)


@attrs.frozen
class Scene:
    """How the budget is spent.

    Args:
        phase: What the error must say the call was doing; None if that depends, and the call may
            end before its budget, because a pause that does not fit is not begun.
        transport: Shared by the threads.
        call: Makes the call.
    """

    phase: str | None
    transport: HTTPTransport
    call: Callable[[], Any]


class _StalledResolver:
    """Answers for all names but one."""

    def __init__(self) -> None:
        self._real = socket.getaddrinfo
        self.answers = threading.Event()

    def __call__(self, host: Any, *args: Any, **options: Any) -> Any:
        if host != PEER_NAME:
            return self._real(host, *args, **options)
        if not options.get("flags", 0) & socket.AI_NUMERICHOST:
            self.answers.wait()
        raise socket.gaierror(socket.EAI_NONAME, "not known")


def _scenes(peer: Addresses) -> dict[str, Scene]:
    one_slot = TransportConfig(limits=TransportLimits(max_concurrent_requests=1))
    often = TransportConfig(
        retry=RetryPolicy(
            max_attempts=1000, initial_backoff=0.05, max_backoff=0.05, attempt_timeout=0.1
        )
    )

    def scene(
        phase: str | None,
        url: str,
        *,
        config: TransportConfig | None = None,
        proxy: str | None = None,
        body: bytes | None = None,
    ) -> Scene:
        transport = HTTPTransport(
            tls=TLSConfig(cafile=peer.cafile), proxy=proxy, trust_env=False, config=config
        )
        spec, data = (ASK, {}) if body is None else (PUSH, body)
        return Scene(phase, transport, lambda: transport.send(spec, url, data, timeout=BUDGET))

    proxy = f"http://127.0.0.1:{peer.http}"
    return {
        "silence": scene("wait", peer.url("http", "silent")),
        "dripping headers": scene("wait", peer.url("https", "drip-head")),
        "dripping body": scene("read", peer.url("http", "drip-body")),
        "full backlog": scene("connect", f"http://127.0.0.1:{peer.full}"),
        "TLS stall": scene("tls", f"https://127.0.0.1:{peer.mute}"),
        "no slot": scene("slot", peer.url("http", "echo"), config=one_slot),
        "stalled resolver": scene("resolve", peer.url("http", "echo", host=PEER_NAME)),
        "silent CONNECT": scene("connect", "https://silent.test", proxy=proxy),
        "unread request": scene("send", peer.url("http", "unread"), body=_UNREAD),
        "retries": scene(None, peer.url("http", "silent"), config=often),
    }


@contextlib.contextmanager
def _slot_taken(scene: Scene, peer: Addresses) -> Iterator[None]:
    """Let another call have the only slot."""
    token = CancelToken()

    def hold() -> None:
        with contextlib.suppress(Exception):
            scene.transport.send(ASK, peer.url("http", "silent"), {}, cancel=token)

    holder = threading.Thread(target=hold)
    holder.start()
    matrix_watch.until(lambda: matrix_watch.phase(scene.transport) == "wait", "holding the slot")
    try:
        yield
    finally:
        token.cancel()
        holder.join()


@contextlib.contextmanager
def _busy_process() -> Iterator[None]:
    """Have another process spin."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as spinning:
        try:
            yield
        finally:
            spinning.kill()


class _Sleeper:
    """A process that does nothing but sleep: how late it wakes is the machine's own doing."""

    _PROGRAM = """
import select, sys, time
latest = 0.0
while True:
    began = time.monotonic()
    ended, _, _ = select.select([sys.stdin], [], [], 0.02)
    if ended:
        break
    latest = max(latest, time.monotonic() - began - 0.02)
print(latest)
"""

    def __enter__(self) -> _Sleeper:
        self.late = 0.0
        self._process = subprocess.Popen(
            [sys.executable, "-c", self._PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.late = float(self._process.communicate()[0])


def _play(scene: Scene, offset: float, times: int, taken: list[float], misses: list[str]) -> None:
    # Spread, so that they do not all end at the same moment and wait for each other.
    time.sleep(offset)
    for _ in range(times):
        began = time.perf_counter()
        try:
            outcome: Any = scene.call()
        except BaseException as error:
            outcome = error
        took = time.perf_counter() - began
        taken.append(took)
        if not isinstance(outcome, TransportTimeoutError):
            misses.append(f"brought {outcome!r}")
        elif scene.phase not in (outcome.phase, None):
            misses.append(f"the error tells of phase {outcome.phase!r}")
        if took < BUDGET and scene.phase is not None:
            misses.append(f"took {took:.3f} s only")


def _round(scenes: dict[str, Scene], threads: int, times: int, title: str) -> int:
    """Play all scenes at the same time and print a line each; return the number of misses."""
    taken: dict[str, list[float]] = {name: [] for name in scenes}
    misses: dict[str, list[str]] = {name: [] for name in scenes}
    count = len(scenes) * threads
    players = [
        threading.Thread(
            target=_play, args=(scenes[name], n * BUDGET / count, times, taken[name], misses[name])
        )
        for n, name in enumerate([*scenes] * threads)
    ]
    with _Sleeper() as sleeper:
        for player in players:
            player.start()
        for player in players:
            player.join()
    print(f"{title:6} a process that only sleeps was late by up to {sleeper.late:.3f} s")
    for name, times_taken in taken.items():
        bad = misses[name]
        bad += [f"took {took:.3f} s" for took in times_taken if took > LIMIT + sleeper.late]
        print(
            f"{title:6} {name:17} {len(times_taken):3} calls  "
            f"median {statistics.median(times_taken):.3f} s  max {max(times_taken):.3f} s  "
            f"{'ok' if not bad else 'MISS: ' + '; '.join(sorted(set(bad)))}",
            flush=True,
        )
    return sum(map(len, misses.values()))


def main(arguments: list[str]) -> int:
    """Play everything; return the exit code."""
    threads, times = (1, IN_A_ROW) if "--in-a-row" in arguments else (THREADS, TIMES)
    resolver = _StalledResolver()
    socket.getaddrinfo = resolver
    gc.freeze()
    missed = 0
    with tempfile.TemporaryDirectory() as folder, running_peer(folder) as peer:
        before = matrix_watch.descriptors()
        scenes = _scenes(peer)
        with _slot_taken(scenes["no slot"], peer):
            for title, beside in (("alone", contextlib.nullcontext), ("busy", _busy_process)):
                with beside():
                    missed += _round(scenes, threads, times, title)
        resolver.answers.set()
        for scene in scenes.values():
            scene.transport.close()
        matrix_watch.until(lambda: not matrix_watch.threads(), "threads end")
        left = matrix_watch.descriptors() - before
        if left:
            missed += 1
            print(f"MISS: {left} descriptors are left")
    print(f"misses {missed}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
