"""A stream that is open when its process forks: ``python -m tests.processes.inheriting``.

It prints how the children ended, and how many events the parent read before and after. With
``waiting`` some events were taken from the worker, and wait for their reader.
"""

from __future__ import annotations

import gc
import sys

from protolink_sync import Task
from protolink_sync.errors import TransportConnectionError
from protolink_sync.models import Message
from tests.processes.calls import Peer, ask, own_threads
from tests.processes.forking import code_of, fork

_EVENTS = 20


def waiting() -> None:
    """Fork while events that came together wait for their reader."""
    peer = Peer.from_environment()
    client = peer.client()
    stream = client.send_task_streaming(peer.url, Task.create(Message.user("hi")))
    # The first comes alone, the second with the others.
    seen = [next(stream), next(stream)]

    def looks() -> int:
        try:
            next(stream)
        except RuntimeError as error:
            return 0 if "parent process" in str(error) else 3
        return 4

    code = code_of(fork(looks))
    before = len(seen)
    seen += list(stream)
    client.transport.close()
    print(code, before, len(seen))


def under_way() -> None:
    """Fork twice beside an open stream: one child looks and ends, the other closes everything."""
    peer = Peer.from_environment()
    client = peer.client()
    task = Task.create(Message.user(f"slow {_EVENTS} 0.05"))
    stream = client.send_task_streaming(peer.url, task)
    seen = [next(stream), next(stream)]

    def looks() -> int:
        nonlocal stream
        try:
            next(stream)
        except RuntimeError as error:
            if "parent process" not in str(error):
                raise
        else:
            return 3
        try:
            assert ask(client, "echo child", timeout=10) == "child"
        except TransportConnectionError as error:
            # grpcio cannot begin anew in a process that was forked beside a running call.
            if "grpcio cannot be used in this forked process" not in str(error):
                raise
        del stream
        gc.collect()
        return len(own_threads())

    def closes() -> int:
        stream.close()
        client.close()
        client.transport.close()
        return len(own_threads())

    codes = [code_of(fork(child)) for child in (looks, closes)]
    before = len(seen)
    seen += list(stream)
    steps = sum(event.get("type") == "task_progress" for event in seen)
    result = stream.task
    assert result is not None
    assert ask(client, "echo parent") == "parent"
    client.transport.close()
    print(codes, before, steps, result.state.value)


if __name__ == "__main__":
    waiting() if sys.argv[1:] else under_way()
