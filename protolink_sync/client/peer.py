"""AgentPeer: one agent, bound to the client that calls it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from protolink_sync._deadline import CancelToken, seconds
from protolink_sync.client._foundation import check_switch
from protolink_sync.client.agent import AgentClient, Protocol
from protolink_sync.client.registry import RegistryClient
from protolink_sync.config import TransportConfig
from protolink_sync.errors import TaskExecutionError, TransportTimeoutError
from protolink_sync.models import AgentCard, Message, Task, ToolOutput
from protolink_sync.security import Credentials, TLSConfig, origin
from protolink_sync.streaming import EventStream
from protolink_sync.transport import get_transport

__all__ = ["AgentPeer", "connect"]

_Answer = TypeVar("_Answer")

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

    Binding sends nothing. A name is looked up in the registry for every call, so the agent may
    move; the look-up is part of the call's budget. An address that only the registry names is
    shown no secrets: credentials go there from a mapping that has its origin, or from a callable,
    which is told the origin. A single value, and ``headers=``, go to the registry's own origin
    only, and only if the registry is called with the client's transport; any other call raises
    ``ValueError``, and nothing is sent.

    Args:
        client: The client that carries the calls; closing the peer does not close it.
        target: Address of the agent, its card, or its name in the registry.
        registry: Where a name is looked up; it stays the caller's to close.
        protocol: ``"auto"``, ``"protolink"`` or ``"a2a"``, as for ``AgentClient.send_task``.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: ``target`` is a name and there is no registry.

    Source:
        ProtoLink 0.8.3, ``AgentPeer``.
    """

    def __init__(
        self,
        client: AgentClient,
        target: str | AgentCard,
        *,
        registry: RegistryClient | None = None,
        protocol: Protocol = "auto",
    ) -> None:
        if not isinstance(client, AgentClient):
            raise TypeError(f"client is a {type(client).__name__}, must be an AgentClient")
        if registry is not None and not isinstance(registry, RegistryClient):
            raise TypeError(f"registry is a {type(registry).__name__}, must be a RegistryClient")
        name = target.url if isinstance(target, AgentCard) else target
        if not isinstance(name, str):
            raise TypeError(f"target is a {type(target).__name__}, must be a str or an AgentCard")
        is_name = "://" not in name and not isinstance(target, AgentCard)
        if is_name and registry is None:
            raise ValueError(
                f"{name!r} is no address (http://...): to find an agent by name give registry="
            )
        client._check_protocol(protocol)
        self._client = client
        self._target = name
        self._registry = registry if is_name else None
        self._protocol: Protocol = protocol
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
    def target(self) -> str:
        """Address of the agent, or its name in the registry."""
        return self._target

    @property
    def url(self) -> str:
        """Address of the agent; that of a name is looked up now."""
        return self._found(None, None)[0]

    @property
    def card(self) -> AgentCard:
        """The agent's card; fetched once, when it is first asked for."""
        return self._fetched_card(None)

    def _fetched_card(self, cancel: CancelToken | None) -> AgentCard:
        if self._card is None:
            url, left = self._trusted(None, cancel)
            self._card = self._client.get_agent_card(url, timeout=left, cancel=cancel)
        return self._card

    def __repr__(self) -> str:
        return f"<AgentPeer {self._target!r}>"

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
            message: The question; a :class:`~protolink_sync.models.Message` is sent as it is.
            session_id: Conversation to which it belongs.
            budget: Limits for the run (steps, tokens, seconds), as a mapping.
            context: Further members of the run's context.
            timeout: Budget in seconds of the call.
            cancel: Token that ends the waiting.

        Returns:
            The output: a text, or JSON values. ``None`` where the agent gave none.

        Raises:
            TaskExecutionError: The task failed or was canceled, or came back in a state that
                ProtoLink does not have; the error has the ``task``.
        """
        task = _task_of(message, session_id, budget, context)
        done = self.run_task(task, timeout=timeout, cancel=cancel).raise_for_status()
        output = done.get_output()
        return (done.text or None) if output is None else output

    def invoke_typed(
        self,
        message: str,
        answer: type[_Answer],
        *,
        max_attempts: int = 1,
        session_id: str | None = None,
        budget: Any = None,
        context: Any = None,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> _Answer:
        """Ask the agent's model for an answer of one type, and return it as that.

        The type's JSON schema is sent with the question. An answer that does not fit is sent
        back with what is wrong, as a new task, at most ``max_attempts - 1`` times; the agent may
        call its tools again then.

        Args:
            message: The question.
            answer: An attrs class, a dataclass, a ``TypedDict``, a pydantic model, an enum, or a
                type of the builtins: ``int``, ``list[str]``, ``dict[str, float]``,
                ``int | None``, ``Literal["a", "b"]``.
            max_attempts: How many tasks may be sent.
            session_id: Conversation to which they belong.
            budget: Limits for each run.
            context: Further members of each run's context.
            timeout: Budget in seconds of all of it.
            cancel: Token that ends it.

        Raises:
            StructuredResponseError: No answer fitted, or a task ended without one; the error has
                ``attempts``, ``validation_error`` and the last ``task``.
            TypeError: The type is none of these.
        """
        from protolink_sync.client._typed import AnswerType, ask

        kind: AnswerType[_Answer] = AnswerType(answer)
        if isinstance(max_attempts, bool) or not isinstance(max_attempts, int) or max_attempts < 1:
            raise ValueError(f"max_attempts is {max_attempts!r}, must be an int of 1 or more")
        if not isinstance(message, str):
            raise TypeError(f"message is a {type(message).__name__}, must be a str")
        end = time.monotonic() + self._budget(timeout)

        def run(prompt: str) -> Task:
            task = Task.create_infer(
                prompt=prompt,
                output_schema=kind.schema,
                session_id=session_id,
                budget=budget,
                context=context,
            )
            left = self._left(end, "invoke_typed")
            return self.run_task(task, timeout=left, cancel=cancel)

        return ask(run, message, kind, max_attempts, self._target)

    def stream(
        self,
        message: str | Message,
        *,
        session_id: str | None = None,
        budget: Any = None,
        context: Any = None,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> EventStream:
        """Ask the agent's model and return the events of its work, as they come.

        ``for piece in agent.stream("...").text()`` prints an answer while it is made.

        Args:
            message: The question; a :class:`~protolink_sync.models.Message` is sent as it is.
            session_id: Conversation to which it belongs.
            budget: Limits for the run.
            context: Further members of the run's context.
            timeout: Seconds from the call to the end of the stream; None for no bound.
            idle_timeout: Seconds to the first event and between events; None for the
                transport's timeout.
            cancel: Token that ends the stream.

        Raises:
            StreamingNotSupportedError: The transport does not stream, before any I/O.
            TransportError: The stream could not be opened.
        """
        task = _task_of(message, session_id, budget, context)
        url, left = self._trusted(timeout, cancel)
        return self._client.send_task_streaming(
            url,
            task,
            timeout=None if timeout is None else left,
            idle_timeout=idle_timeout,
            cancel=cancel,
        )

    def call_tool(self, name: str, /, **args: Any) -> Any:
        """Have the agent call one of its tools and return the result.

        Args:
            name: Name of the tool.
            **args: The tool's arguments.

        Raises:
            TaskExecutionError: The tool, or the agent, failed; the error has the ``task``.
        """
        return self._call_tool(name, args, None)

    def _call_tool(self, name: str, args: dict[str, Any], cancel: CancelToken | None) -> Any:
        sent = Task.create_tool_call(name, args)
        task = self.run_task(sent, cancel=cancel).raise_for_status()
        part = task.get_last_part()
        if part is None or not isinstance(part.content, ToolOutput):
            kind = "nothing" if part is None else f"a part of type {part.type!r}"
            raise TaskExecutionError(
                f"call_tool {name!r} at {self._target}: the agent answered with {kind}, "
                "not with the output of a tool",
                task=task,
            )
        if part.content.error is not None:
            raise TaskExecutionError(
                f"call_tool {name!r} at {self._target}: {part.content.error}", task=task
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
        url, left = self._trusted(timeout, cancel)
        return self._client.send_task(
            url, task, protocol=self._protocol, timeout=left, cancel=cancel
        )

    def _found(self, timeout: float | None, cancel: CancelToken | None) -> tuple[str, float | None]:
        """Return the agent's address, and what is left of a budget after looking for it."""
        if self._registry is None:
            return self._target, timeout
        budget = self._budget(timeout)
        end = time.monotonic() + budget
        cards = self._registry.discover({"name": self._target}, timeout=budget, cancel=cancel)
        urls = [card.url for card in cards]
        if len(urls) != 1:
            what = f"{len(urls)} agents have the name" if urls else "no agent has the name"
            raise ValueError(
                f"{what} {self._target!r} in the registry {self._registry.url}: "
                f"{', '.join(urls) or 'is it registered?'}"
            )
        return urls[0], self._left(end, "look-up")

    def _trusted(
        self, timeout: float | None, cancel: CancelToken | None
    ) -> tuple[str, float | None]:
        """Return what :meth:`_found` does, if what the client shows there is meant for it."""
        url, left = self._found(timeout, cancel)
        if self._registry is not None:
            self._check_shown(url, self._registry)
        return url, left

    def _check_shown(self, url: str, registry: RegistryClient) -> None:
        """Refuse to show an address that only a registry names what is not meant for it."""
        calls = self._client._calls
        credentials = calls.credentials
        meant_for = credentials if isinstance(credentials, Mapping) else {}
        is_for_all = not (credentials is None or credentials is meant_for or callable(credentials))
        shown = ["credentials="] if is_for_all else []
        if calls.headers:
            shown.append(f"headers= ({', '.join(sorted(calls.headers))})")
        if not shown:
            return
        named = origin(calls.address(url))
        # The client's own transport shows the registry all that with each look-up.
        is_called = registry.transport is self._client.transport
        if named not in meant_for and not (is_called and named == origin(registry.url)):
            raise ValueError(
                f"the registry {registry.url} names an address at {named} for {self._target!r}, "
                f"where {' and '.join(shown)} of the client would go: nothing was sent. If they "
                f"are meant for it, give credentials={{{named!r}: ...}}, or call the agent by its "
                "address"
            )

    def _budget(self, timeout: float | None) -> float:
        if timeout is None:
            return self._client._timeout
        return seconds("timeout", timeout)

    def _left(self, end: float, what: str) -> float:
        left = end - time.monotonic()
        if left <= 0:
            raise TransportTimeoutError(
                f"{what} of {self._target!r}: the budget is spent and nothing more is sent",
                phase="resolve",
            )
        return left

    def close(self) -> None:
        """Close the client, if :func:`connect` made it for this peer. Twice is silent."""
        if self._owns:
            self._client.close()

    def __enter__(self) -> AgentPeer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def _task_of(message: Any, session_id: str | None, budget: Any, context: Any) -> Task:
    if isinstance(message, Message):
        return Task.create(message, session_id=session_id, budget=budget, context=context)
    if isinstance(message, str):
        return Task.create_infer(
            prompt=message, session_id=session_id, budget=budget, context=context
        )
    raise TypeError(f"message is a {type(message).__name__}, must be a str or a Message")


def connect(
    url: str,
    *,
    credentials: Credentials | None = None,
    tls: TLSConfig | None = None,
    timeout: float | None = 300.0,
    config: TransportConfig | None = None,
    a2a: bool = False,
) -> AgentPeer:
    """Return the agent at an address, ready to be called. Nothing is sent yet.

    Args:
        url: Address of the agent; its scheme chooses the transport: ``http``, ``https``,
            ``grpc``, ``grpcs``, ``ws``, ``wss`` or ``runtime``.
        credentials: What the agent asks for.
        tls: Certificates.
        timeout: Budget in seconds of calls that give none.
        config: Sizes, retries, connections.
        a2a: Also call an agent that speaks A2A and not ProtoLink's own protocol; only ``http``
            and ``https``. Such an agent answers, and does not stream.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: There is no transport for the scheme, or it does not carry A2A.

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
    check_switch("a2a", a2a)
    if a2a and scheme not in ("http", "https"):
        raise ValueError(f"a2a=True needs an address with 'http' or 'https', not {scheme!r}")
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
    if a2a:
        client._speak_a2a()
    return AgentPeer._owning(client, url)
