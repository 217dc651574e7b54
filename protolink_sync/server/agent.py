"""Agent: host an agent of your own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar, overload

from protolink_sync.config import TransportConfig
from protolink_sync.models import AgentCard, Task
from protolink_sync.security import TLSConfig
from protolink_sync.server.endpoints import Endpoints
from protolink_sync.server.engine import Engine
from protolink_sync.server.handle import AgentServer
from protolink_sync.server.runs import Run, current_run
from protolink_sync.server.runtime import RuntimeHost
from protolink_sync.server.tools import Tool

__all__ = ["Agent"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Agent:
    """An agent that others can call.

    Give it functions with :meth:`tool` and :meth:`infer`, or write a subclass with a
    :meth:`handle_task` of its own. Then :meth:`serve` it, or give its :meth:`wsgi_app` to a
    server. Nothing runs before that.

    Tasks in execution, remembered answers and conversations live in one process: behind a server
    with several, one cannot cancel what another executes. (gunicorn: one process, many threads.)

    Args:
        card: Who the agent is. It is not changed: what is served is a copy that says where the
            agent is and what it can do.
        tools: Functions that callers may call by name; see :meth:`tool`.
        authenticate: Called with the WSGI environment of each request, except health checks;
            returns who asks, as something hashable, or None to refuse. Without it anybody may
            call. Callers of a ``runtime://`` address are in this process and not asked.
        config: Sizes, time limits, how many answers are remembered for how long.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: Two tools have one name.

    Source:
        design.md 10; ProtoLink, Models reference, "Lifecycle".

    >>> agent = Agent(AgentCard("parrot", "says it again", "runtime://parrot"))
    >>> @agent.infer
    ... def answer(prompt):
    ...     return prompt
    >>> with agent.serve("runtime://parrot") as server:
    ...     server.url
    'runtime://parrot'
    """

    def __init__(
        self,
        card: AgentCard,
        *,
        tools: Iterable[Callable[..., Any]] = (),
        authenticate: Callable[[dict[str, Any]], Hashable | None] | None = None,
        config: TransportConfig | None = None,
    ) -> None:
        if not isinstance(card, AgentCard):
            raise TypeError(f"card is a {type(card).__name__}, must be an AgentCard")
        if authenticate is not None and not callable(authenticate):
            raise TypeError(f"authenticate is a {type(authenticate).__name__}, must be a function")
        if config is not None and not isinstance(config, TransportConfig):
            raise TypeError(f"config is a {type(config).__name__}, must be a TransportConfig")
        self._authenticate = authenticate
        is_custom = type(self).handle_task is not Agent.handle_task
        self._engine = Engine(card, config or TransportConfig(), self.handle_task, is_custom)
        for function in tools:
            self._engine.add_tool(Tool.of(function))

    @property
    def card(self) -> AgentCard:
        """The card that was given."""
        return self._engine.card

    # ---- what the agent can do ----

    @overload
    def tool(self, function: _Function, /) -> _Function: ...
    @overload
    def tool(
        self, *, name: str | None = None, description: str | None = None
    ) -> Callable[[_Function], _Function]: ...
    def tool(
        self,
        function: _Function | None = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
    ) -> _Function | Callable[[_Function], _Function]:
        """Let callers call a function by name; use it as a decorator, with or without arguments.

        The arguments are checked against the function's annotations before it is called. What it
        returns must be JSON; what it raises makes the task fail with the exception's message.

        Args:
            function: The function, plain or ``async``.
            name: Its name for callers; that of the function if not given.
            description: What it does; its docstring if not given.

        Raises:
            TypeError: It is no function, or has arguments that have no name.
            ValueError: There is a tool of this name.
        """

        def add(function: _Function) -> _Function:
            self._engine.add_tool(Tool.of(function, name, description))
            return function

        return add if function is None else add(function)

    def infer(self, function: _Function, /) -> _Function:
        """Let a function answer ``infer`` parts: it stands for the agent's model. A decorator.

        It is called with those of ``prompt``, ``user``, ``output_schema`` and ``metadata`` that
        it takes, by name. It returns the answer (text or JSON), a ``Part``, ``Message`` or
        ``Artifact``, or is a generator of pieces of text. What it raises ends the call with an
        error.

        Args:
            function: The function, plain or ``async``.

        Raises:
            TypeError: It asks for other arguments.
            ValueError: There is one already.
        """
        self._engine.set_infer(function)
        return function

    def handle_task(self, task: Task) -> Task:
        """Carry out a task and return it. Override it to do so in your own way.

        The default carries out the tool calls and inferences of the last message or artifact,
        adds the results as artifacts, and ends the task as completed, failed or input-required;
        text alone is inert. An override may be ``async def``. What it raises is logged and ends
        the call with an error; to end the *task* as failed, return ``task.fail(why)``.

        Args:
            task: The task, which is the handler's own.
        """
        return self._engine.execute(task)

    @staticmethod
    def current_run() -> Run:
        """Return the run that the calling handler, tool or model is part of.

        Its ``cancelled`` turns True when the task is cancelled, ``reason`` says why; ``task_id``
        and ``principal`` say which task, and whose. A handler that looks now and then can stop;
        whatever it returns then, the caller gets the task as canceled.

        Raises:
            RuntimeError: No task is being executed by the calling code.
        """
        return current_run()

    # ---- where it is reached ----

    def serve(self, url: str, *, tls: TLSConfig | None = None) -> AgentServer:
        """Serve the agent at an address, from now until the returned handle is closed.

        Args:
            url: ``http://host:port`` (port 0 takes a free one), ``https://host:port``, or
                ``runtime://name`` for callers in this process.
            tls: Certificate and key, for https.

        Returns:
            The handle; its ``url`` has the port that was chosen.

        Raises:
            ValueError: The address is none of these, or is served already in this process.
            OSError: The port cannot be had.
        """
        scheme, _, rest = url.partition("://")
        name, limits = rest.rstrip("/"), self._engine.config.limits
        if scheme != "runtime" or not name or tls is not None:
            raise ValueError(
                f"cannot serve at {url!r}: give http://host:port, https://host:port with tls=, "
                "or runtime://name"
            )
        endpoints = Endpoints(self._engine, url, "runtime", lambda: {"ready": True})
        return AgentServer(RuntimeHost(url, endpoints, limits.max_request_bytes))
