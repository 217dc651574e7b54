"""``protolink-sync demo``: an agent on this machine, and calls to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from protolink_sync import AgentCard, AgentClient, Task
from protolink_sync.server import Agent, AgentServer

__all__ = ["run"]

_THREADS = 8


def run(tasks: int) -> None:
    """Host an agent, call it, and print what came and how long it took.

    Args:
        tasks: How many tasks in a row.
    """
    with _demo_agent().serve("http://127.0.0.1:0") as server, AgentClient("sse") as client:
        card = client.get_agent_card(server.url)
        print(f"{card.name}: {card.description}, at {server.url}\n")
        _show("ask", "What is 6 x 7?", lambda: client.send_infer_task("What is 6 x 7?", server.url))
        call = Task.create_tool_call("multiply", {"a": 6, "b": 7})
        _show("tool", "multiply(a=6, b=7)", lambda: client.send_task(server.url, call))
        _show_stream(client, server)
        print()
        _row_of_tasks(client, server, tasks)
    # A server of its own: so its connections are those of the threads.
    with _demo_agent().serve("http://127.0.0.1:0") as server, AgentClient("http") as client:
        _threads_of_tasks(client, server, max(1, tasks // _THREADS))


def _demo_agent() -> Agent:
    card = AgentCard("demo agent", "knows one multiplication", "http://127.0.0.1")
    agent = Agent(card)

    @agent.tool
    def multiply(a: int, b: int) -> int:
        """Multiply two integers."""
        return a * b

    @agent.infer
    def answer(prompt: str) -> Iterator[str]:
        for word in f"You asked: {prompt} It is 42, as always.".split(" "):
            yield word if word == "You" else f" {word}"

    return agent


def _show(what: str, question: str, call: Callable[[], Task]) -> None:
    begin = time.perf_counter()
    task = call().raise_for_status()
    took = time.perf_counter() - begin
    print(f"  {what:6} {question:20} -> {task.text:45} {_duration(took):>9}")


def _show_stream(client: AgentClient, server: AgentServer) -> None:
    """Print an answer piece by piece, as it comes."""
    print(f"  {'stream':6} {'What is 6 x 7?':20} -> ", end="", flush=True)
    begin = time.perf_counter()
    first = 0.0
    with client.send_task_streaming(server.url, Task.create_infer("What is 6 x 7?")) as stream:
        for piece in stream.text():
            first = first or time.perf_counter() - begin
            print(piece, end="", flush=True)
        stream.result().raise_for_status()
    print(f"   first piece after {_duration(first)}")


def _row_of_tasks(client: AgentClient, server: AgentServer, count: int) -> None:
    begin = time.perf_counter()
    for number in range(count):
        client.send_infer_task(f"Task {number}?", server.url).raise_for_status()
    _report(f"{count} tasks in a row", count, time.perf_counter() - begin, server)


def _threads_of_tasks(client: AgentClient, server: AgentServer, count: int) -> None:
    failures: list[Any] = []

    def work() -> None:
        try:
            for number in range(count):
                client.send_infer_task(f"Task {number}?", server.url).raise_for_status()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(_THREADS)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begin
    if failures:
        raise failures[0]
    _report(f"{_THREADS} threads x {count} tasks", _THREADS * count, took, server)


def _report(what: str, count: int, took: float, server: AgentServer) -> None:
    used = server.connections
    connections = "1 connection" if used == 1 else f"{used} connections"
    print(f"  {what:26} {_duration(took):>9}, {_duration(took / count):>9} each, {connections}")


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.2f} ms"
