"""A program that ends with everything open: ``python -m tests.processes.exiting HOW``.

It has streams that nobody reads, one that a thread reads, and a thread in a call. It prints a line
just before its end, which is that of its last line, ``sys.exit``, an exception or Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from protolink_sync import Task
from protolink_sync.models import Message
from tests.processes.calls import Peer, ask, wait_until

peer = Peer.from_environment()
client = peer.client()


def _stream() -> object:
    task = Task.create(Message.user("slow 200 0.1"))
    stream = client.send_task_streaming(peer.url, task)
    next(stream)
    return stream


def main(how: str) -> None:
    """Open all that can be open, and end."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unread = [_stream() for _ in range(2)]
    read = _stream()
    threading.Thread(target=list, args=(read,), daemon=True).start()
    threading.Thread(target=ask, args=(client, "wait 20"), daemon=True).start()
    assert wait_until(lambda: client.transport.metrics.active_requests == 1)
    assert len(unread) == client.transport.metrics.active_streams - 1
    # Of modules and frames that live to the end; what is collected earlier is closed earlier.
    globals()["kept"] = unread
    print("END", flush=True)
    if how == "exit":
        sys.exit(3)
    if how == "exception":
        raise SystemExit("it went wrong")
    if how == "ctrl-c":
        os.kill(os.getpid(), signal.SIGINT)
        ask(client, "wait 20")


if __name__ == "__main__":
    main(sys.argv[1])
