"""protolink_sync as its users call it: models in, models out, default settings."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from benchmarks.payloads import stream_task, task

__all__ = ["DictRoundTrip", "Fast", "HandedOver", "Plain"]

_FAST = ("msgspec", "orjson", "websockets")


class _Ours:
    """The jobs, whatever reads and writes the JSON."""

    def __init__(self, url: str) -> None:
        import protolink_sync

        self._url = url
        self._library = protolink_sync
        self._client = protolink_sync.AgentClient("http")

    def unary(self, size: str) -> Callable[[], Any]:
        """One call."""
        url, send = f"{self._url}/{size}", self._client.send_task
        model = self._library.Task.from_dict(task(size))
        assert send(url, model).to_dict() == task(size)
        return lambda: send(url, model)

    def threads(self, size: str) -> Callable[[], Any]:
        """The same: all threads share the client."""
        return self.unary(size)

    def fresh(self, size: str) -> Callable[[], Callable[[], object]]:
        """A new client and one call."""
        url, client_class = f"{self._url}/{size}", self._library.AgentClient
        model = self._library.Task.from_dict(task(size))

        def make() -> Callable[[], object]:
            client = client_class("http")
            client.send_task(url, model)
            return client.transport.close

        return make

    def decode(self, size: str) -> Callable[[], Any]:
        """From a dictionary."""
        value, from_dict = task(size), self._library.Task.from_dict
        return lambda: from_dict(value)

    def encode(self, size: str) -> Callable[[], Any]:
        """To a dictionary."""
        model = self._library.Task.from_dict(task(size))
        assert model.to_dict() == task(size)
        return model.to_dict

    def statement(self) -> str:
        """The import."""
        return "import protolink_sync"

    def runtime(self) -> Callable[[], Any]:
        """One call to an agent in this process."""
        from protolink_sync.server import Agent

        class Echo(Agent):
            def handle_task(self, task: Any) -> Any:
                return task.complete("done")

        card = self._library.AgentCard(
            name="echo", description="completes each task", url="runtime://echo"
        )
        # Kept: it is served as long as this object lives.
        self._serving = Echo(card).serve("runtime://echo")
        client, create = self._library.AgentClient("runtime"), self._library.Task.create
        return lambda: client.send_task("runtime://echo", create("hi"))

    def agent(self, url: str) -> Callable[[], bool]:
        """One call to a real agent."""
        create = self._library.Task.create
        return lambda: self._client.send_task(url, create("echo done")).text == "done"

    def call(self, wire: str, size: str) -> Callable[[], Any]:
        """One call over another wire."""
        url, send = self._address(wire, size), self._library.AgentClient(wire).send_task
        model = self._library.Task.from_dict(task(size))
        assert send(url, model).to_dict() == task(size)
        return lambda: send(url, model)

    def stream(self, wire: str, kind: str) -> Callable[[], Iterator[Any]]:
        """The events of one stream."""
        url, send = self._address(wire, kind), self._library.AgentClient(wire).send_task_streaming
        model = self._library.Task.from_dict(stream_task(kind))
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


class Fast(_Ours):
    """With the extra ``fast``."""

    def __init__(self, url: str) -> None:
        for name in _FAST:
            __import__(name)
        super().__init__(url)


class Plain(_Ours):
    """Without it: in this process its libraries cannot be imported."""

    def __init__(self, url: str) -> None:
        sys.modules.update(dict.fromkeys(_FAST))  # type: ignore[arg-type]
        super().__init__(url)

    def statement(self) -> str:
        """The import."""
        return f"import sys; sys.modules.update(dict.fromkeys({_FAST})); {super().statement()}"


class DictRoundTrip:
    """The floor of the runtime transport: the task to its dictionary and back, there and back."""

    def __init__(self, url: str) -> None:
        from protolink_sync import Task

        self._task = Task

    def runtime(self) -> Callable[[], Any]:
        """What both sides do to the task, without anything between them."""
        create, from_dict = self._task.create, self._task.from_dict

        def call() -> Any:
            arrived = from_dict(create("hi").to_dict())
            return from_dict(arrived.complete("done").to_dict())

        return call


class HandedOver(DictRoundTrip):
    """The same with the handler in a thread of its own: what ending a call at any moment takes."""

    def runtime(self) -> Callable[[], Any]:
        """The floor, and one queue in each direction."""
        create, from_dict = self._task.create, self._task.from_dict
        arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
        handled: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def work() -> None:
            while True:
                handled.put(arrived.get().complete("done"))

        threading.Thread(target=work, name="handler", daemon=True).start()

        def call() -> Any:
            arrived.put(from_dict(create("hi").to_dict()))
            return from_dict(handled.get().to_dict())

        return call
