"""The part of an agent that works: its tools and model, the tasks it runs, what it remembers."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Hashable
from typing import Any

from protolink_sync.config import TransportConfig
from protolink_sync.models import AgentCard, Artifact, Message, Part, Task
from protolink_sync.server.conversations import Conversations
from protolink_sync.server.functions import completed, joined, offered
from protolink_sync.server.idempotency import Answers
from protolink_sync.server.lifecycle import Output, execute
from protolink_sync.server.run_context import enter_run, session_of
from protolink_sync.server.runs import Runs, current_run, outcome
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
    """

    def __init__(
        self,
        card: AgentCard,
        config: TransportConfig,
        handle_task: Callable[[Task], Any],
        is_custom: bool,
    ) -> None:
        self.card = card
        self.config = config
        self.tools: dict[str, Tool] = {}
        self.runs = Runs()
        self.answers = Answers(config.idempotency_ttl, config.idempotency_cache_size)
        self.conversations = Conversations()
        self._handle_task = handle_task
        self._is_custom = is_custom
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

    def served_card(self, url: str | None, transport: str) -> AgentCard:
        """Return the card as it is served: a copy that says where, and what the agent can do.

        Args:
            url: Where it is served; None leaves the address of the card.
            transport: How it is spoken to there.
        """
        card = copy.deepcopy(self.card)
        card.url = url or card.url
        card.transport = transport
        can = card.capabilities
        can.streaming = False
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
        return outcome(run, result)

    def execute(self, task: Task) -> Task:
        """Do with a task what agents do by default."""
        return execute(task, self.tools, self._answer if self.has_model else None)

    def _answer(self, task: Task, part: Part) -> Output:
        assert self._infer is not None
        asked = part.content if isinstance(part.content, dict) else {}
        value = joined(self._infer(**self._infer_arguments(asked)))
        is_output = isinstance(value, (Part, Message, Artifact))
        output: Output = value if is_output else Part.infer_output(value)
        question = asked.get("prompt") or asked.get("user")
        self.conversations.add(
            current_run().principal, session_of(task), _as_text(question), _as_text(output)
        )
        return output


def _as_text(value: Any) -> str:
    if isinstance(value, Part):
        value = value.content
    elif isinstance(value, (Message, Artifact)):
        value = value.text
    return value if isinstance(value, str) else json.dumps(value, default=str)
