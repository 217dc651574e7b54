"""The part of an agent that works: its tools and model, the tasks it runs, what it remembers."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Generator, Hashable, Iterable
from typing import Any

from protolink_sync.config import TransportConfig
from protolink_sync.models import AgentCard, Artifact, Message, Part, Task, TaskState
from protolink_sync.server.conversations import Conversations
from protolink_sync.server.events import (
    artifact_update,
    as_event,
    events_of,
    is_last,
    says_working,
    status_update,
)
from protolink_sync.server.functions import completed, offered, stepwise
from protolink_sync.server.idempotency import Answers
from protolink_sync.server.lifecycle import Output, Steps, execute, steps
from protolink_sync.server.run_context import enter_run, session_of
from protolink_sync.server.runs import Run, Runs, current_run, outcome
from protolink_sync.server.tools import Tool

__all__ = ["Engine"]

_INFER_ARGUMENTS = ("prompt", "user", "output_schema", "metadata")


class Engine:
    """What all ways of serving one agent share.

    Args:
        card: The agent's card as its author wrote it.
        config: For how long and how many answers are remembered, and how large they may be.
        handle_task: Carries out a task and returns it; may be an ``async def``.
        is_custom: The agent has a ``handle_task`` of its own.
        handle_streaming: Carries out a task and yields what happens; may be ``async``.
    """

    def __init__(
        self,
        card: AgentCard,
        config: TransportConfig,
        handle_task: Callable[[Task], Any],
        is_custom: bool,
        handle_streaming: Callable[[Task], Any],
    ) -> None:
        self.card = card
        self.config = config
        self.tools: dict[str, Tool] = {}
        self.runs = Runs()
        self.answers = Answers(config.idempotency_ttl, config.idempotency_cache_size)
        self.conversations = Conversations()
        self._handle_task = handle_task
        self._is_custom = is_custom
        self._handle_streaming = handle_streaming
        self._infer: Callable[..., Any] | None = None
        self._infer_arguments: Callable[..., dict[str, Any]]

    # ---- what is registered ----

    @property
    def has_model(self) -> bool:
        """Whether there is a function that answers ``infer`` parts."""
        return self._infer is not None

    def add_tool(self, tool: Tool) -> None:
        """Add a tool.

        Raises:
            ValueError: There is one of this name.
        """
        if tool.name in self.tools:
            raise ValueError(f"there is a tool named {tool.name!r} already")
        self.tools[tool.name] = tool

    def set_infer(self, function: Callable[..., Any]) -> None:
        """Set the function that answers ``infer`` parts.

        Raises:
            ValueError: There is one already.
            TypeError: It asks for what it cannot have.
        """
        if self._infer is not None:
            raise ValueError("there is an infer function already; an agent has one")
        self._infer_arguments = offered(function, _INFER_ARGUMENTS)
        self._infer = function

    def served_card(self, url: str | None, transport: str, *, streaming: bool = False) -> AgentCard:
        """Return the card as it is served: a copy that says where, and what the agent can do.

        Args:
            url: Where it is served; None leaves the address of the card.
            transport: How it is spoken to there.
            streaming: Whether that can stream.
        """
        card = copy.deepcopy(self.card)
        card.url = url or card.url
        card.transport = transport
        can = card.capabilities
        can.streaming = streaming
        can.has_llm = can.has_llm or self.has_model
        can.tool_calling = can.tool_calling or bool(self.tools)
        if self.has_model:
            can.supports_inference = True
        elif can.supports_inference is None and not self._is_custom:
            can.supports_inference = False
        known = {skill.id for skill in card.skills}
        card.skills += [tool.skill for tool in self.tools.values() if tool.name not in known]
        return card

    # ---- tasks ----

    def run_task(self, task: Task, principal: Hashable) -> Task:
        """Have the agent carry out a task; one that has ended is returned unchanged.

        Raises:
            RefusedError: It is being executed already.
            Exception: Whatever the agent's code raises.
        """
        if task.is_terminal:
            return task
        enter_run(task, self.card.name)
        run = self.runs.begin(task, principal)
        try:
            result = self._handle_task(task)
            if type(result) is not Task:
                result = completed(result)
        except Exception:
            if not run.cancelled:
                raise
            result = task
        finally:
            self.runs.end(run)
        if not isinstance(result, Task):
            raise TypeError(f"handle_task returned {type(result).__name__}, must return the task")
        return result if run.canceled_task is None else outcome(run, result)

    def stream_task(
        self,
        task: Task,
        principal: Hashable,
        handle: Callable[[Task], Any] | None = None,
    ) -> Generator[Any, None, None]:
        """Have the agent carry out a task, and give what happens as JSON values.

        The first one comes before the agent's code is asked, the last one is a final status, unless
        a handler of the agent's own ends the stream otherwise. One thread, and one context, must
        take them all, and close the iterator.

        Args:
            task: The task.
            principal: Who asks.
            handle: Carries it out; the handler for streams if not given.

        Raises:
            RefusedError: The task is being executed already.
            Exception: Whatever the agent's code raises.
        """
        if task.is_terminal:
            yield status_update(task, None, final=True)
            return
        enter_run(task, self.card.name)
        run = self.runs.begin(task, principal)
        try:
            before = task.state_text
            task.begin()
            yield status_update(task, before)
            result = yield from self._told(task, run, handle or self._handle_streaming)
        finally:
            self.runs.end(run)
        # From here on nobody can cancel it, so what is told now is what holds.
        if run.canceled_task is not None:
            last = outcome(run, result if isinstance(result, Task) else task)
            yield status_update(last, TaskState.WORKING.value, final=True)
        elif run.cancelled:
            return  # the one who asked has left
        elif isinstance(result, Task):
            if result.state is TaskState.WORKING:
                result.update_state(TaskState.COMPLETED)
            yield status_update(result, TaskState.WORKING.value, final=True)
        else:
            yield result

    def _told(
        self, task: Task, run: Run, handle: Callable[[Task], Any]
    ) -> Generator[Any, None, Any]:
        """Give the events of a handler, and return the task or the event that ends the stream."""
        try:
            handled = completed(handle(task))
            events = stepwise(handled) or _each(handled)
            try:
                result = yield from self._passed_on(events, task, run)
            finally:
                events.close()
        except Exception:
            if not run.cancelled:
                raise
            return task
        return result

    def _passed_on(
        self, events: Generator[Any, None, Any], task: Task, run: Run
    ) -> Generator[Any, None, Any]:
        """Give a handler's events until its end, the last one, or the task is cancelled."""
        is_first = True
        while not run.cancelled:
            try:
                event = as_event(next(events), task)
            except StopIteration as end:
                return end.value if isinstance(end.value, Task) else task
            if is_last(event):
                return event
            # That the work has begun was told already.
            if not (is_first and says_working(event)):
                yield event
            is_first = False
        return task

    def stream(self, task: Task) -> Generator[Any, None, Task]:
        """Tell what the agent does with a task by default; a ``handle_task`` of its own counts."""
        if not self._is_custom:
            return (yield from events_of(task, self._steps(task), self.card.name))
        known = {id(artifact) for artifact in task.artifacts}
        result = self._handle_task(task)
        if type(result) is not Task:
            result = completed(result)
        if not isinstance(result, Task):
            raise TypeError(f"handle_task returned {type(result).__name__}, must return the task")
        for artifact in result.artifacts:
            if id(artifact) not in known:
                yield artifact_update(result, artifact)
        return result

    def execute(self, task: Task) -> Task:
        """Do with a task what agents do by default."""
        return execute(self._steps(task))

    def _steps(self, task: Task) -> Steps:
        return steps(task, self.tools, self._answer if self.has_model else None)

    def _answer(self, task: Task, part: Part) -> Generator[tuple[str, Any], None, Output]:
        assert self._infer is not None
        asked = part.content if isinstance(part.content, dict) else {}
        value = completed(self._infer(**self._infer_arguments(asked)))
        pieces = stepwise(value)
        if pieces is not None:
            value = yield from _joined(pieces)
        is_output = isinstance(value, (Part, Message, Artifact))
        output: Output = value if is_output else Part.infer_output(value)
        if not is_output:
            yield "llm_final", value
        question = asked.get("prompt") or asked.get("user")
        self.conversations.add(
            current_run().principal, session_of(task), _as_text(question), _as_text(output)
        )
        return output


def _joined(pieces: Generator[Any, None, Any]) -> Generator[tuple[str, Any], None, str]:
    """Tell each piece of an answer, and return the whole."""
    answer: list[str] = []
    try:
        for piece in pieces:
            if not isinstance(piece, str):
                kind = type(piece).__name__
                raise TypeError(f"a generator must yield pieces of text, not {kind}")
            answer.append(piece)
            yield "llm_chunk", piece
    finally:
        pieces.close()
    return "".join(answer)


def _each(events: Any) -> Generator[Any, None, Any]:
    """Give the events that a streaming handler returned, or the task alone."""
    if isinstance(events, Task):
        return events
    if isinstance(events, (str, bytes, dict)) or not isinstance(events, Iterable):
        raise TypeError(
            f"handle_task_streaming returned {type(events).__name__}, must yield events"
        )
    yield from events
    return None


def _as_text(value: Any) -> str:
    if isinstance(value, Part):
        value = value.content
    elif isinstance(value, (Message, Artifact)):
        value = value.text
    return value if isinstance(value, str) else json.dumps(value, default=str)
