"""AgentPeer: one agent, bound to the client that calls it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from protolink_sync._deadline import CancelToken
from protolink_sync.client.agent import AgentClient
from protolink_sync.config import TransportConfig
from protolink_sync.errors import TaskExecutionError
from protolink_sync.models import AgentCard, Message, Task, ToolOutput
from protolink_sync.security import Credentials, TLSConfig
from protolink_sync.transport import get_transport

__all__ = ["AgentPeer", "connect"]

_TRANSPORTS = {
    "http": "sse",
    "https": "sse",
    "grpc": "grpc",
    "grpcs": "grpc",
    "runtime": "runtime",
    "ws": "websocket",
    "wss": "websocket",
}


class AgentPeer:
    """One agent, called without naming it again. Any number of threads may share it.

    Args:
        client: The client that carries the calls; closing the peer does not close it.
        agent_url: Address of the agent.

    Source:
        ProtoLink 0.8.3, ``AgentPeer``.
    """

    def __init__(self, client: AgentClient, agent_url: str) -> None:
        if not isinstance(client, AgentClient):
            raise TypeError(f"client is a {type(client).__name__}, must be an AgentClient")
        self._client = client
        self._url = agent_url
        self._card: AgentCard | None = None
        self._owns = False

    @classmethod
    def _owning(cls, client: AgentClient, agent_url: str) -> AgentPeer:
        peer = cls(client, agent_url)
        peer._owns = True
        return peer

    @property
    def client(self) -> AgentClient:
        """The client that carries the calls."""
        return self._client

    @property
    def url(self) -> str:
        """Address of the agent."""
        return self._url

    @property
    def card(self) -> AgentCard:
        """The agent's card; fetched once, when it is first asked for."""
        if self._card is None:
            self._card = self._client.get_agent_card(self._url)
        return self._card

    def __repr__(self) -> str:
        return f"<AgentPeer {self._url!r}>"

    def invoke(
        self,
        message: str | Message,
        *,
        session_id: str | None = None,
        budget: Any = None,
        context: Any = None,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> Any:
        """Ask the agent's model and return its answer.

        Args:
            message: The question; a :class:`Message` is sent as it is.
            session_id: Conversation to which it belongs.
            budget: Limits for the run (steps, tokens, seconds), as a mapping.
            context: Further members of the run's context.
            timeout: Budget in seconds of the call.
            cancel: Token that ends the waiting.

        Returns:
            The output: a text, or JSON values. ``None`` where the agent gave none.

        Raises:
            TaskExecutionError: The task failed or was canceled; the error has the ``task``.
        """
        if isinstance(message, Message):
            task = Task.create(message, session_id=session_id, budget=budget, context=context)
        elif isinstance(message, str):
            task = Task.create_infer(
                prompt=message, session_id=session_id, budget=budget, context=context
            )
        else:
            raise TypeError(f"message is a {type(message).__name__}, must be a str or a Message")
        done = self.run_task(task, timeout=timeout, cancel=cancel).raise_for_status()
        output = done.get_output()
        return (done.text or None) if output is None else output

    def call_tool(self, name: str, /, **args: Any) -> Any:
        """Have the agent call one of its tools and return the result.

        Args:
            name: Name of the tool.
            **args: The tool's arguments.

        Raises:
            TaskExecutionError: The tool, or the agent, failed; the error has the ``task``.
        """
        task = self.run_task(Task.create_tool_call(name, args)).raise_for_status()
        part = task.get_last_part()
        if part is None or not isinstance(part.content, ToolOutput):
            kind = "nothing" if part is None else f"a part of type {part.type!r}"
            raise TaskExecutionError(
                f"call_tool {name!r} at {self._url}: the agent answered with {kind}, "
                "not with the output of a tool",
                task=task,
            )
        if part.content.error is not None:
            raise TaskExecutionError(
                f"call_tool {name!r} at {self._url}: {part.content.error}", task=task
            )
        return part.content.result

    def run_task(
        self,
        task: Task,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> Task:
        """Submit a task and return it as it comes back, whatever its state.

        Args:
            task: The task.
            timeout: Budget in seconds.
            cancel: Token that ends the waiting.
        """
        return self._client.send_task(self._url, task, timeout=timeout, cancel=cancel)

    def close(self) -> None:
        """Close the client, if :func:`connect` made it for this peer. Twice is silent."""
        if self._owns:
            self._client.close()

    def __enter__(self) -> AgentPeer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def connect(
    url: str,
    *,
    credentials: Credentials | None = None,
    tls: TLSConfig | None = None,
    timeout: float | None = 300.0,
    config: TransportConfig | None = None,
) -> AgentPeer:
    """Return the agent at an address, ready to be called. Nothing is sent yet.

    Args:
        url: Address of the agent; its scheme chooses the transport: ``http``, ``https``,
            ``grpc``, ``grpcs``, ``ws``, ``wss`` or ``runtime``.
        credentials: What the agent asks for.
        tls: Certificates.
        timeout: Budget in seconds of calls that give none.
        config: Sizes, retries, connections.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: There is no transport for the scheme.

    >>> with connect("http://127.0.0.1:8010") as agent:
    ...     agent.url
    'http://127.0.0.1:8010'
    """
    if not isinstance(url, str):
        raise TypeError(f"url is a {type(url).__name__}, must be a str")
    scheme = urlsplit(url).scheme.lower()
    if scheme not in _TRANSPORTS:
        forms = ", ".join(f"{known}://" for known in sorted(_TRANSPORTS))
        raise ValueError(f"{url!r} has no scheme that a transport takes; known: {forms}")
    settings: Mapping[str, Any] = {"credentials": credentials, "tls": tls}
    if scheme == "runtime":
        unusable = sorted(name for name, value in settings.items() if value is not None)
        if unusable:
            raise ValueError(f"an agent in this process takes no {' and no '.join(unusable)}")
        settings = {}
    transport = get_transport(
        _TRANSPORTS[scheme], url=url, timeout=timeout, config=config, **settings
    )
    client = AgentClient(transport)
    client._owns = True
    return AgentPeer._owning(client, url)
