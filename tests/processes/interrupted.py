"""Ctrl-C in calls that block: ``python -m tests.processes.interrupted WHAT...``.

A thread sends SIGINT to this process as soon as its main thread is blocked. For each call the
program prints how long it took to end, and what it left behind.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from protolink_sync import CancelToken, Task
from protolink_sync.errors import CallCancelledError
from protolink_sync.models import Message
from protolink_sync.streaming import EventStream
from tests.processes.calls import Peer, ask, own_threads, wait_until
from tests.transport.matrix_watch import until_asleep

# So often in a row the main thread must be found at the same place to count as blocked.
_LOOKS = 40

peer = Peer.from_environment()
client = peer.client()


def _silent_url() -> str:
    """Return the address of a listener that takes connections and never says anything."""
    listener = socket.create_server(("127.0.0.1", 0))
    _kept.append(listener)
    return f"{peer.url.partition('://')[0]}://127.0.0.1:{listener.getsockname()[1]}"


def _full_url() -> str:
    """Return the address of a listener that takes no connection: its backlog is full."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    address = listener.getsockname()
    _kept.append(listener)
    for _ in range(2):
        waiting = socket.socket()
        waiting.setblocking(False)
        waiting.connect_ex(address)
        _kept.append(waiting)
    return f"{peer.url.partition('://')[0]}://127.0.0.1:{address[1]}"


_kept: list[socket.socket] = []
_streams: list[EventStream] = []


def _task(text: str) -> Task:
    return Task.create(Message.user(text))


def _stream(text: str) -> EventStream:
    # Kept, as a notebook keeps what its cells have made: nothing is left to the collector.
    _streams.append(client.send_task_streaming(peer.url, _task(text)))
    return _streams[-1]


def _next() -> None:
    for _ in _stream("slow 2 30"):
        pass


WHAT: dict[str, Callable[[], Any]] = {
    "send": lambda: ask(client, "wait 30"),
    "connect": lambda: client.send_task(_full_url(), _task("x")),
    "silence": lambda: client.send_task(_silent_url(), _task("x")),
    "open a stream": lambda: list(client.send_task_streaming(_silent_url(), _task("x"))),
    "next": _next,
    "result": lambda: _stream("slow 2 30").result(),
    "text": lambda: list(_stream("slow 2 30").text()),
    "run_events": lambda: list(_stream("slow 2 30").run_events()),
    "token": lambda: CancelToken().wait(30),
}


def _interrupt(began: list[float]) -> None:
    """Send the signal once the main thread is blocked."""
    main = threading.main_thread()
    last, same = None, 0
    while same < _LOOKS:
        time.sleep(0.005)
        frame = sys._current_frames()[main.ident or 0]
        place = (frame.f_code, frame.f_lasti)
        same = same + 1 if place == last else 0
        last = place
    until_asleep(main)
    began.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)


def interrupt(what: str) -> None:
    """Interrupt one call, look around, and call again."""
    began: list[float] = []
    threading.Thread(target=_interrupt, args=(began,), daemon=True).start()
    try:
        WHAT[what]()
    except KeyboardInterrupt:
        took = time.monotonic() - began[0]
    else:
        raise AssertionError(f"{what} came to its end")
    wait_until(lambda: not own_threads(), 1.0)
    while _streams:
        try:
            next(_streams.pop())
        except CallCancelledError:
            continue
        raise AssertionError("an interrupted stream goes on")
    metrics = client.transport.metrics
    active = metrics.active_requests + metrics.active_streams
    print(f"{took:.3f}", own_threads(), active, ask(client, "echo again"))


def main() -> None:
    """Interrupt each call that the arguments name."""
    # A process started in the background of a shell ignores the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ask(client, "echo warm")
    for what in sys.argv[1:]:
        interrupt(what)
    client.transport.close()
    for sock in _kept:
        sock.close()


if __name__ == "__main__":
    main()
