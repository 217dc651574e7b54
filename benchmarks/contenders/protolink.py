"""protolink's own blocking client, ``client.sync``; runs in the peers' interpreter."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from benchmarks.payloads import stream_task, task

__all__ = ["ClientSync"]


class ClientSync:
    """``AgentClient(...).sync`` as documented: an event loop and a connection for each call."""

    def __init__(self, url: str) -> None:
        from protolink.client import AgentClient
        from protolink.models import Task

        logging.disable(logging.CRITICAL)
        self._url, self._client_class, self._task = url, AgentClient, Task

    def _new(self, wire: str = "http") -> Any:
        # It wants an address of its own, which is never used.
        scheme = {"websocket": "ws", "grpc": "grpc"}.get(wire, "http")
        return self._client_class(wire, url=f"{scheme}://127.0.0.1:1").sync

    def unary(self, size: str) -> Callable[[], Any]:
        """One call."""
        url, model, client = f"{self._url}/{size}", self._task.from_dict(task(size)), self._new()
        return lambda: client.send_task(url, model)

    def threads(self, size: str) -> Callable[[], Any]:
        """The same: all threads share the client."""
        return self.unary(size)

    def fresh(self, size: str) -> Callable[[], Callable[[], object]]:
        """A new client and one call."""
        url, model = f"{self._url}/{size}", self._task.from_dict(task(size))

        def make() -> Callable[[], object]:
            self._new().send_task(url, model)
            return lambda: None

        return make

    def decode(self, size: str) -> Callable[[], Any]:
        """From a dictionary."""
        value, from_dict = task(size), self._task.from_dict
        return lambda: from_dict(value)

    def encode(self, size: str) -> Callable[[], Any]:
        """To a dictionary."""
        return self._task.from_dict(task(size)).to_dict

    def statement(self) -> str:
        """The import."""
        return "import protolink.client"

    def runtime(self) -> Callable[[], Any]:
        """One call to an agent in this process."""
        from protolink.agents import Agent

        class Echo(Agent):
            async def handle_task(self, task: Any) -> Any:
                return task.complete("done")

        Echo(name="echo", url="runtime://echo", transport="runtime", verbosity=0).start(
            background=True, register=False
        )
        client = self._client_class("runtime", url="runtime://client").sync
        return lambda: client.send_task("runtime://echo", self._task.create("hi"))

    def agent(self, url: str) -> Callable[[], bool]:
        """One call to a real agent."""
        client = self._new()

        def call() -> bool:
            answer = client.send_task(url, self._task.create("echo done"))
            return answer.messages[-1].parts[0].content == "done"

        return call

    def call(self, wire: str, size: str) -> Callable[[], Any]:
        """One call over another wire."""
        url, send = self._address(wire, size), self._new(wire).send_task
        model = self._task.from_dict(task(size))
        return lambda: send(url, model)

    def stream(self, wire: str, kind: str) -> Callable[[], Iterator[Any]]:
        """The events of one stream."""
        url, send = self._address(wire, kind), self._new(wire).send_task_streaming
        model = self._task.from_dict(stream_task(kind))
        return lambda: send(url, model)

    def larger(
        self, wire: str, small: str, large: str
    ) -> tuple[Callable[[], Iterator[Any]], Callable[[], Iterator[Any]]]:
        """The events of two streams."""
        return self.stream(wire, small), self.stream(wire, large)

    def _address(self, wire: str, path: str) -> str:
        netloc = urlsplit(self._url).netloc
        if wire == "grpc":
            return f"grpc://{netloc}"
        return f"{'ws' if wire == 'websocket' else 'http'}://{netloc}/{path}"
