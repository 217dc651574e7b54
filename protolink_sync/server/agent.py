"""Agent: host an agent of your own."""

from __future__ import annotations

import ipaddress
import warnings
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar, overload
from urllib.parse import SplitResult, urlsplit

from protolink_sync.config import TransportConfig
from protolink_sync.models import AgentCard, Task
from protolink_sync.security import TLSConfig
from protolink_sync.server.endpoints import Endpoints
from protolink_sync.server.engine import Engine
from protolink_sync.server.handle import AgentServer
from protolink_sync.server.host import HTTPHost
from protolink_sync.server.runs import Run, current_run
from protolink_sync.server.runtime import RuntimeHost
from protolink_sync.server.tools import Tool
from protolink_sync.server.wsgi import Application

__all__ = ["Agent"]

_SCHEMES = ("http", "https", "runtime")
_EVERYWHERE = ("0.0.0.0", "::")

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Agent:
    """An agent that others can call.

    Give it functions with :meth:`tool` and :meth:`infer`, or write a subclass with a
    :meth:`handle_task` or :meth:`handle_task_streaming` of its own. Then :meth:`serve` it, or
    give its :meth:`wsgi_app` to a server. Nothing runs before that.

    Tasks in execution, remembered answers and conversations live in one process: behind a server
    with several, one cannot cancel what another executes. (gunicorn: one process, many threads.)

    Args:
        card: Who the agent is. It is not changed: what is served is a copy that says where the
            agent is and what it can do.
        tools: Functions that callers may call by name; see :meth:`tool`.
        authenticate: Called with the WSGI environment of each request, except health checks;
            returns who asks, as something hashable that is equal for the calls of one caller only,
            such as a name. None, and all else that is false (``""``, ``0``), refuses. ``True`` is
            nobody's name: it fails, as does what equals only itself. The function is plain or
            ``async``. Without one anybody may call. Callers of a ``runtime://`` address are in
            this process and not asked.
        config: Sizes, time limits, how many answers are remembered for how long.

    Attributes:
        heartbeat: Seconds of silence after which a stream over HTTP sends a comment, which readers
            skip. Only so a server that is not the embedded one learns that a client has left, at
            the second comment at the latest. Set it in the subclass, or before serving.

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

    heartbeat: float = 5.0

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
        self._engine = Engine(
            card,
            config or TransportConfig(),
            self.handle_task,
            is_custom,
            self.handle_task_streaming,
        )
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
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
    ) -> Callable[..., Any]:
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

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
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

    def handle_task(self, task: Task) -> Any:
        """Carry out a task and return it. Override it to do so in your own way.

        The default carries out the tool calls and inferences of the last message or artifact,
        adds the results as artifacts, and ends the task as completed, failed or input-required;
        text alone is inert. An override may be ``async def``. What it raises is logged and ends
        the call with an error; to end the *task* as failed, return ``task.fail(why)``.

        Args:
            task: The task, which is the handler's own.

        Returns:
            The task; of an override that is ``async def``, what is awaited for it.
        """
        return self._engine.execute(task)

    def handle_task_streaming(self, task: Task) -> Any:
        """Carry out a task and yield what happens. Override it to do so in your own way.

        The default does what :meth:`handle_task` does, an overridden one too, and tells it: tool
        calls, pieces of text of the model, artifacts. The agent tells first that the task is
        working, and last its state with the whole task, so an override yields what is between:
        events as JSON values (``{"type": "task_progress", "progress": 40}``) or objects with
        ``to_dict``. It may ``return`` the task; a task left working is completed. A status with
        ``final`` of its own ends the stream. It may be an ``async`` generator. When the caller
        leaves the stream, the generator is closed where it stands, and ``current_run()`` is
        cancelled.

        Args:
            task: The task, which is the handler's own.
        """
        return self._engine.stream(task)

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

    def serve(self, url: str, *, tls: TLSConfig | None = None, a2a: bool = False) -> AgentServer:
        """Serve the agent at an address, from now until the returned handle is closed.

        Args:
            url: ``http://host:port`` (port 0 takes a free one), ``https://host:port``, or
                ``runtime://name`` for callers in this process.
            tls: Certificate and key, for https.
            a2a: Answer over A2A 1.0 too, at the same address; see :meth:`wsgi_app`. Over HTTP
                only.

        Returns:
            The handle; its ``url`` has the port that was chosen.

        Raises:
            ValueError: The address is none of these, or is served already in this process, or is
                not for A2A.
            OSError: The port cannot be had.
        """
        address = urlsplit(url) if isinstance(url, str) else None
        if address is None or not address.hostname or address.scheme not in _SCHEMES:
            raise ValueError(
                f"cannot serve at {url!r}: give http://host:port, https://host:port with tls=, "
                "or runtime://name"
            )
        if (address.scheme == "https") != (tls is not None):
            raise ValueError(f"cannot serve at {url!r}: https needs tls=, and only https takes it")
        if address.scheme == "runtime":
            if a2a:
                raise ValueError(f"cannot serve at {url!r} over A2A: that is for http and https")
            return self._serve_runtime(url)
        if address.path.strip("/") or address.query or address.fragment or address.username:
            raise ValueError(f"cannot serve at {url!r}: give host and port only")
        return self._serve_http(address, tls, a2a)

    def wsgi_app(
        self, *, a2a: bool = False
    ) -> Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]:
        """Return a WSGI application, for any server with threads; a stream keeps one of them busy.

        The card keeps its address: give it the one at which others reach the server.

        Args:
            a2a: Answer over A2A 1.0 too: the A2A card, which anybody may read, and JSON-RPC at
                the root. A message of text asks the infer function.

        Source:
            wire/a2a.md 19, "Server side".
        """
        return Application(self._engine, self._authenticate, heartbeat=self.heartbeat, a2a=a2a)

    def _serve_runtime(self, url: str) -> AgentServer:
        engine = self._engine
        endpoints = Endpoints(engine, url, "runtime", lambda: {"ready": True}, streaming=True)
        largest = engine.config.limits.max_request_bytes
        return AgentServer(RuntimeHost(url, endpoints, largest, engine.runs.abandon))

    def _serve_http(self, address: SplitResult, tls: TLSConfig | None, a2a: bool) -> AgentServer:
        name = address.hostname or ""
        default = 443 if tls is not None else 80
        port = default if address.port is None else address.port
        if self._authenticate is None and not _is_loopback(name):
            warnings.warn(
                f"anybody who reaches {name} can call this agent: give it authenticate=, or serve "
                "it at 127.0.0.1",
                UserWarning,
                stacklevel=3,
            )
        engine = self._engine
        host = HTTPHost(name, port, tls=tls, config=engine.config, abandon=engine.runs.abandon)
        # "Every address of this machine" is no address for others; the card may have one.
        url = None if name in _EVERYWHERE and self.card.url.startswith(address.scheme) else host.url
        application = Application(
            engine, self._authenticate, url, heartbeat=self.heartbeat, a2a=a2a
        )
        host.serve(application, application.close_streams)
        return AgentServer(host)


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
