"""FakeAgent: an agent of this process that says what a test needs."""

from __future__ import annotations

import copy
import itertools
import threading
from collections.abc import Callable, Iterable
from typing import Any

from protolink_sync.client import AgentClient, AgentPeer
from protolink_sync.models import AgentCard, Artifact, Part, Task
from protolink_sync.server import Agent

__all__ = ["FakeAgent"]

_numbers = itertools.count(1)


class FakeAgent:
    """An agent that gives its answers in turn, the last one again and again, and keeps the tasks.

    It is served from its construction on, in this process: at a ``runtime://`` address, or, for
    tests of time-outs, status codes and connections, at a real one.

    Args:
        *answers: For each task a text, JSON values, an exception that its handler raises, or a
            function of the task that returns one of these, or the task itself.
        name: On its card.
        tools: Functions that may be called by name.
        url: Where it is served; ``"http://127.0.0.1:0"`` takes a free port.

    Attributes:
        tasks: The tasks it was given, as they came.

    >>> with FakeAgent("Faust", {"title": "Faust"}) as agent:
    ...     agent.peer.invoke("A book?"), agent.peer.invoke("As JSON?")
    ('Faust', {'title': 'Faust'})
    >>> agent.tasks[0].messages[0].parts[0].content["prompt"]
    'A book?'
    """

    def __init__(
        self,
        *answers: Any,
        name: str = "fake",
        tools: Iterable[Callable[..., Any]] = (),
        url: str | None = None,
    ) -> None:
        self.tasks: list[Task] = []
        self._answers = answers
        self._lock = threading.Lock()
        address = f"runtime://{name}-{next(_numbers)}" if url is None else url
        self._agent = _Fake(AgentCard(name, "answers as a test says", address), tools, self._next)
        self._server = self._agent.serve(address)
        self._client: AgentClient | None = None

    @property
    def url(self) -> str:
        """Where it is served."""
        return self._server.url

    @property
    def client(self) -> AgentClient:
        """A client that can call it; it is closed with the agent."""
        if self._client is None:
            is_local = self.url.startswith("runtime:")
            self._client = AgentClient("runtime" if is_local else "sse", timeout=30)
        return self._client

    @property
    def peer(self) -> AgentPeer:
        """The agent, as a caller has it."""
        return self.client.peer(self.url)

    def _next(self, task: Task) -> Any:
        with self._lock:
            number = len(self.tasks)
            self.tasks.append(copy.deepcopy(task))
        if not self._answers:
            raise AssertionError("this FakeAgent was given no answers")
        answer = self._answers[min(number, len(self._answers) - 1)]
        is_function = callable(answer) and not isinstance(answer, type)
        return answer(task) if is_function else answer

    def close(self) -> None:
        """Stop serving. Twice is silent."""
        if self._client is not None:
            self._client.close()
        self._server.close()

    def __enter__(self) -> FakeAgent:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<FakeAgent {self.url!r}, {len(self.tasks)} tasks>"


class _Fake(Agent):
    def __init__(
        self,
        card: AgentCard,
        tools: Iterable[Callable[..., Any]],
        answer: Callable[[Task], Any],
    ) -> None:
        super().__init__(card, tools=tools)
        self._answer = answer

    def handle_task(self, task: Task) -> Any:
        part = task.get_last_part()
        if part is not None and part.type == "tool_call":
            return super().handle_task(task)
        answer = self._answer(task)
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, Task):
            return answer
        if isinstance(answer, str):
            return task.complete(answer)
        task.begin()
        task.add_artifact(Artifact(parts=[Part("infer_output", answer)]))
        return task.update_state("completed")
