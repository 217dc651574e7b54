"""What clients, connections and streams cost: ``python -m benchmarks.costs``.

Threads, descriptors and memory of one process, for each transport: before and after it has made
some of a thing, divided by how many. Each transport has a process of its own, the agent is a real
one in another process (over ``runtime`` in the same one: its own costs are in the figures).
Memory is what the system says that the process has (resident set), so figures below a few KB are
within its noise. Needs Linux, and the interpreter of the tests' peers.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from protolink_sync import AgentCard, AgentClient, EventStream, Task, TransportConfig
from protolink_sync.server import Agent
from protolink_sync.transport import get_transport

__all__ = ["main", "measured"]

TRANSPORTS = ("http", "sse", "websocket", "grpc", "runtime")
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_CLIENTS = 200
_CONNECTIONS = 20
_STREAMS = 20
_WHAT = ("first call", "client", "connection", "stream")


class Slow(Agent):
    """What the peers of the tests do, in this process."""

    def handle_task(self, task: Task) -> Task:
        time.sleep(0.5)
        return task.complete("done")

    def handle_task_streaming(self, task: Task) -> Iterator[Any]:
        for number in range(1000):
            yield {"type": "task_progress", "progress": number / 10, "message": "on it"}
            if self.current_run().cancelled:
                break
            time.sleep(0.1)
        task.complete("done")


def _state() -> dict[str, float]:
    gc.collect()
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * _PAGE
    return {
        "threads": len(os.listdir("/proc/self/task")),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "kilobytes": resident / 1024,
    }


@contextmanager
def _difference(count: int) -> Iterator[dict[str, float]]:
    """Yield what will hold the costs of one, once the block has made them all."""
    cost: dict[str, float] = {}
    before = _state()
    yield cost
    after = _state()
    cost.update({name: (after[name] - before[name]) / count for name in after})


def _at_once(count: int, act: Callable[[], object]) -> None:
    threads = [threading.Thread(target=act) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measured(name: str, url: str) -> dict[str, dict[str, float]]:
    """Return the costs of the first call, and of one client, connection and stream more.

    Where all calls share a connection, or need none, a connection stands for a call at a time.

    Args:
        name: The transport.
        url: An agent's address.
    """
    config = TransportConfig(max_idle_connections=_CONNECTIONS)
    costs: dict[str, dict[str, float]] = {}

    def make() -> AgentClient:
        return AgentClient(get_transport(name, config=config))

    with ExitStack() as stack:

        def opened() -> AgentClient:
            client = make()
            stack.callback(client.transport.close)
            return client

        with _difference(1) as costs["first call"]:
            opened().send_task(url, Task.create("wait 0"))
        with _difference(_CLIENTS) as costs["client"]:
            clients = [opened() for _ in range(_CLIENTS)]
        with _difference(_CONNECTIONS) as costs["connection"]:
            _at_once(
                _CONNECTIONS,
                lambda: clients[0].send_task(url, Task.create("wait 0.5"), timeout=30),
            )
        if not clients[1].transport.supports_streaming:
            return costs
        _read_one(clients[1], url).close()
        with _difference(_STREAMS) as costs["stream"]:
            streams = [_read_one(clients[2], url) for _ in range(_STREAMS)]
        for stream in streams:
            stream.close()
    return costs


def _read_one(client: AgentClient, url: str) -> EventStream:
    """Return a stream that goes on, of which one event was read."""
    stream = client.send_task_streaming(url, Task.create("slow 1000 0.1"))
    next(stream)
    return stream


def _measured_elsewhere(name: str) -> dict[str, dict[str, float]]:
    from tests.peers import AgentProcess

    with ExitStack() as stack:
        url = "runtime://slow"
        if name != "runtime":
            url = stack.enter_context(AgentProcess(name)).url
        run = subprocess.run(
            [sys.executable, "-m", "benchmarks.costs", name, url],
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        )
    costs: dict[str, dict[str, float]] = json.loads(run.stdout)
    return costs


def _serving(stack: ExitStack, name: str) -> None:
    if name == "runtime":
        agent = Slow(AgentCard("slow", "takes its time", "runtime://slow"))
        stack.enter_context(agent.serve("runtime://slow"))


def main(arguments: list[str]) -> None:
    """Measure one transport at an address, or all and print a table."""
    if arguments:
        name, url = arguments
        with ExitStack() as stack:
            _serving(stack, name)
            print(json.dumps(measured(name, url)))
        return
    print(f"Python {platform.python_version()}, {platform.system()}")
    print(f"{'':24}{'threads':>9}{'descriptors':>13}{'KB':>8}")
    for name in TRANSPORTS:
        costs = _measured_elsewhere(name)
        for what in _WHAT:
            if cost := costs.get(what):
                print(
                    f"{name:11}{what:13}{cost['threads']:9.2f}{cost['descriptors']:13.2f}"
                    f"{cost['kilobytes']:8.1f}"
                )


if __name__ == "__main__":
    main(sys.argv[1:])
