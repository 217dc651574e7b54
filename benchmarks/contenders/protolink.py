"""protolink's own blocking client, ``client.sync``; runs in the peers' interpreter."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from benchmarks.payloads import task

__all__ = ["ClientSync"]


class ClientSync:
    """``AgentClient(...).sync`` as documented: an event loop and a connection for each call."""

    def __init__(self, url: str) -> None:
        from protolink.client import AgentClient
        from protolink.models import Task

        logging.disable(logging.CRITICAL)
        self._url, self._client_class, self._task = url, AgentClient, Task

    def _new(self) -> Any:
        # It wants an address of its own, which is never used.
        return self._client_class("http", url="http://127.0.0.1:1").sync

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
