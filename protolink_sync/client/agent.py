"""AgentClient: what an application asks of agents, whatever wire carries it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, get_args

from protolink_sync._deadline import CancelToken
from protolink_sync.errors import (
    A2AClientError,
    NoResponseMessageError,
)
from protolink_sync.models import (
    AgentCard,
    ClientRequestSpec,
    HistoryCompactionRequest,
    HistoryCompactionResult,
    Message,
    StateOperationRequest,
    StateOperationResult,
    Task,
    TaskCancellationRequest,
)
from protolink_sync.specs import (
    AGENT_CARD_REQUEST,
    COMPACT_HISTORY_REQUEST,
    COMPACT_STATE_REQUEST,
    DESCRIBE_STATE_REQUEST,
    RESET_STATE_REQUEST,
    TASK_CANCEL_REQUEST,
    TASK_REQUEST,
    TASK_STREAM_REQUEST,
)
from protolink_sync.streaming import EventStream
from protolink_sync.transport import Transport, get_transport
from protolink_sync.types import HistoryCompactionStrategy

__all__ = ["AgentClient", "SyncAgentClient"]

Protocol = Literal["auto", "protolink", "a2a"]

_PROTOCOLS = get_args(Protocol)
_ANSWERING_ROLES = frozenset(("agent", "assistant"))


class AgentClient:
    """Call agents and block until they answer. Any number of threads may share one client.

    Every call has one budget for all of it, and takes a token by which another thread can end
    it. Ending a call does not end the *task* at the agent; :meth:`cancel_task` does.

    Args:
        transport: A transport, which stays the caller's to close; or the name of one
            (``"http"``, ``"sse"``, ``"websocket"``, ``"grpc"``, ``"runtime"``), which the client
            makes and closes.
        url: Address for the named transport. With a transport object it is ignored.
        timeout: Budget in seconds of calls that give none, for the named transport. With a
            transport object it is ignored.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: There is no such transport, or an argument is out of range.

    Source:
        ProtoLink, Client reference, "AgentClient".

    >>> client = AgentClient("http")
    >>> client.transport.transport_type
    'http'
    """

    TASK_REQUEST: ClassVar[ClientRequestSpec] = TASK_REQUEST
    TASK_STREAM_REQUEST: ClassVar[ClientRequestSpec] = TASK_STREAM_REQUEST
    TASK_CANCEL_REQUEST: ClassVar[ClientRequestSpec] = TASK_CANCEL_REQUEST
    COMPACT_HISTORY_REQUEST: ClassVar[ClientRequestSpec] = COMPACT_HISTORY_REQUEST
    DESCRIBE_STATE_REQUEST: ClassVar[ClientRequestSpec] = DESCRIBE_STATE_REQUEST
    RESET_STATE_REQUEST: ClassVar[ClientRequestSpec] = RESET_STATE_REQUEST
    COMPACT_STATE_REQUEST: ClassVar[ClientRequestSpec] = COMPACT_STATE_REQUEST
    AGENT_CARD_REQUEST: ClassVar[ClientRequestSpec] = AGENT_CARD_REQUEST

    def __init__(
        self, transport: Transport | str, url: str | None = None, timeout: float | None = 300
    ) -> None:
        self._owns = not isinstance(transport, Transport)
        self._transport = (
            transport
            if isinstance(transport, Transport)
            else get_transport(transport, url=url, timeout=timeout)
        )

    @property
    def transport(self) -> Transport:
        """The transport, for its health, counters and settings."""
        return self._transport

    @property
    def a2a(self) -> bool:
        """Whether the client also calls agents that speak A2A only."""
        return False

    @property
    def sync(self) -> AgentClient:
        """The client itself: ``client.sync.send_task(...)`` runs as it does with protolink."""
        return self

    def __repr__(self) -> str:
        return f"<AgentClient {self._transport!r}>"

    # --- tasks -------------------------------------------------------------------------------

    def send_task(
        self,
        agent_url: str,
        task: Task,
        *,
        protocol: Protocol = "auto",
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        idempotency_key: str | None = None,
    ) -> Task:
        """Submit a task and return it as the agent gives it back.

        A task that failed or needs input comes back as a task; only what kept it from coming
        back is an error. The same task sent twice within the peer's memory (300 s) is run once.

        Args:
            agent_url: Address of the agent.
            task: The task; it is not changed.
            protocol: ``"protolink"`` or ``"auto"``.
            timeout: Budget in seconds for all of it, retries included; None for the
                transport's, ``math.inf`` for none. When it is spent the task may still run at
                the agent.
            cancel: Token that ends the waiting; the task may still run at the agent.
            idempotency_key: By it the agent recognises the submission; None for the task's id
                and a digest of its content.

        Raises:
            TypeError: An argument has the wrong type, or the task holds what is no JSON.
            ValueError: An argument is out of range.
            RuntimeError: ``protocol="a2a"`` without A2A.
            TransportError: No answer, or an error instead of a task.
            CallCancelledError: The token was cancelled.
        """
        self._check_protocol(protocol)
        if not isinstance(task, Task):
            raise TypeError(
                f"task is a {type(task).__name__}, must be a Task: Task.create(...) makes one"
            )
        sent: Task = self._transport.send(
            TASK_REQUEST,
            agent_url,
            task,
            timeout=timeout,
            cancel=cancel,
            idempotency_key=idempotency_key,
        )
        return sent

    def send_infer_task(
        self,
        query: str,
        agent_url: str,
        *,
        user: str | None = None,
        output_schema: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        protocol: Protocol = "auto",
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        idempotency_key: str | None = None,
    ) -> Task:
        """Submit a task that holds one question for the agent's model.

        Args:
            query: The question.
            agent_url: Address of the agent.
            user: Who asks, or context about them.
            output_schema: JSON schema the answer should have.
            metadata: Anything else for the question.
            protocol: As for :meth:`send_task`, like the further arguments, the result and the
                errors.
            timeout: Budget in seconds.
            cancel: Token that ends the waiting.
            idempotency_key: By it the agent recognises the submission.
        """
        task = Task.create_infer(
            prompt=query, user=user, output_schema=output_schema, metadata=metadata
        )
        return self.send_task(
            agent_url,
            task,
            protocol=protocol,
            timeout=timeout,
            cancel=cancel,
            idempotency_key=idempotency_key,
        )

    def send_message(
        self,
        agent_url: str,
        message: Message,
        *,
        protocol: Protocol = "auto",
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> Message:
        """Send one message in a new task and return the agent's newest message.

        Args:
            agent_url: Address of the agent.
            message: The message.
            protocol: As for :meth:`send_task`, like the further arguments and errors.
            timeout: Budget in seconds.
            cancel: Token that ends the waiting.

        Returns:
            The newest message with the role agent or assistant that was not sent.

        Raises:
            NoResponseMessageError: The task came back without one, for example with artifacts
                only; the error has the ``task``. :meth:`send_task` shows all of a task.
        """
        if not isinstance(message, Message):
            raise TypeError(
                f"message is a {type(message).__name__}, must be a Message: "
                "Message.user(text) makes one"
            )
        task = self.send_task(
            agent_url, Task.create(message), protocol=protocol, timeout=timeout, cancel=cancel
        )
        for candidate in reversed(task.messages):
            if candidate.role in _ANSWERING_ROLES and candidate.id != message.id:
                return candidate
        instead = (
            f"{len(task.artifacts)} artifact(s) and no message of the agent"
            if task.artifacts
            else "no message of the agent"
        )
        raise NoResponseMessageError(
            f"send_message to {agent_url}: the task came back as {task.state.value!r} with "
            f"{instead}. Use send_task, which returns the whole task",
            task=task,
        )

    def send_task_streaming(
        self,
        agent_url: str,
        task: Task,
        *,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> EventStream:
        """Submit a task and return the events of the work on it, as they come.

        The connection is opened before this returns; what goes wrong later is raised while
        iterating, after the events before it. Leaving the stream over SSE or gRPC makes a ProtoLink
        agent cancel the task.

        Args:
            agent_url: Address of the agent.
            task: The task; it is not changed.
            timeout: Seconds from the call to the end of the stream; None for no bound.
            idle_timeout: Seconds to the first event and between events; None for the
                transport's timeout.
            cancel: Token that ends the stream.

        Returns:
            An iterator over the events (decoded JSON), which also has ``result()``, ``text()``,
            ``task``, ``cancel()`` and ``close()``.

        Raises:
            StreamingNotSupportedError: The transport does not stream (a
                ``NotImplementedError``), before any I/O.
            TransportError: The stream could not be opened.
            CallCancelledError: The token was cancelled.
        """
        return self._transport.subscribe(
            agent_url, task, timeout=timeout, idle_timeout=idle_timeout, cancel=cancel
        )

    def cancel_task(
        self,
        agent_url: str,
        task_id: str,
        *,
        reason: str | None = None,
        metadata: dict[str, Any] | None = None,
        protocol: Protocol = "auto",
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> Task:
        """Ask the agent to stop a task that is running, and return it as canceled.

        Best effort: what the task has done stays done, and code that does not look whether it
        was cancelled runs on. A task that is unknown or finished is an error of the agent.

        Args:
            agent_url: Address of the agent.
            task_id: The task's id.
            reason: Why; it is kept in the task's metadata.
            metadata: Anything else for the request.
            protocol: As for :meth:`send_task`, like the further arguments and errors.
            timeout: Budget in seconds of this request.
            cancel: Token that ends this request, not the task.
        """
        self._check_protocol(protocol)
        request = TaskCancellationRequest(task_id, reason, metadata or {})
        canceled: Task = self._transport.send(
            TASK_CANCEL_REQUEST, agent_url, request, timeout=timeout, cancel=cancel
        )
        return canceled

    # --- history and state -------------------------------------------------------------------

    def compact_history(
        self,
        agent_url: str,
        *,
        strategy: HistoryCompactionStrategy = "recent",
        max_messages: int = 20,
        max_tokens: int = 4000,
        preserve_recent: int = 6,
        summary_max_tokens: int = 512,
        session_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> HistoryCompactionResult:
        """Have the agent shorten the history of its model, and return what that changed.

        Args:
            agent_url: Address of the agent.
            strategy: ``"recent"``, ``"tokens"`` or ``"summary"``.
            max_messages: Messages that ``recent`` keeps.
            max_tokens: Estimated tokens that ``tokens`` keeps.
            preserve_recent: Newest messages kept in any case.
            summary_max_tokens: Length of a summary.
            session_id: A stored conversation; None for the model's current one.
            metadata: Anything else for the request.
            timeout: Budget in seconds.
            cancel: Token that ends the waiting.
        """
        request = HistoryCompactionRequest(
            strategy=strategy,
            max_messages=max_messages,
            max_tokens=max_tokens,
            preserve_recent=preserve_recent,
            summary_max_tokens=summary_max_tokens,
            session_id=session_id,
            metadata=metadata,
        )
        result: HistoryCompactionResult = self._transport.send(
            COMPACT_HISTORY_REQUEST, agent_url, request, timeout=timeout, cancel=cancel
        )
        return result

    def describe_state(
        self,
        agent_url: str,
        *,
        session_id: str | None = None,
        stores: Sequence[str] | None = None,
        include_data: bool = False,
        metadata: dict[str, Any] | None = None,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> StateOperationResult:
        """Return what the agent keeps, without changing it.

        Args:
            agent_url: Address of the agent.
            session_id: One conversation; None for all.
            stores: Names of stores; None for the agent's default.
            include_data: Also return what is stored.
            metadata: Anything else for the request.
            timeout: Budget in seconds.
            cancel: Token that ends the waiting.
        """
        request = StateOperationRequest(
            session_id=session_id,
            stores=tuple(stores or ()) if not isinstance(stores, str) else (stores,),
            include_data=include_data,
            metadata=metadata or {},
        )
        return self._state(DESCRIBE_STATE_REQUEST, agent_url, request, timeout, cancel)

    def reset_state(
        self,
        agent_url: str,
        *,
        session_id: str | None = None,
        stores: Sequence[str] | None = None,
        metadata: dict[str, Any] | None = None,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> StateOperationResult:
        """Have the agent delete what it keeps. It is never retried, and nobody is asked first.

        Args:
            agent_url: Address of the agent.
            session_id: One conversation; without it the agent may delete all it keeps.
            stores: Names of stores; None for the agent's default.
            metadata: Anything else for the request.
            timeout: Budget in seconds.
            cancel: Token that ends the waiting.
        """
        request = StateOperationRequest(
            session_id=session_id,
            stores=tuple(stores or ()) if not isinstance(stores, str) else (stores,),
            metadata=metadata or {},
        )
        return self._state(RESET_STATE_REQUEST, agent_url, request, timeout, cancel)

    def compact_state(
        self,
        agent_url: str,
        *,
        session_id: str,
        strategy: HistoryCompactionStrategy = "tokens",
        max_messages: int = 20,
        max_tokens: int = 4000,
        preserve_recent: int = 6,
        summary_max_tokens: int = 512,
        metadata: dict[str, Any] | None = None,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> StateOperationResult:
        """Have the agent shorten one stored conversation.

        Args:
            agent_url: Address of the agent.
            session_id: The conversation.
            strategy: ``"recent"``, ``"tokens"`` or ``"summary"``.
            max_messages: Messages that ``recent`` keeps.
            max_tokens: Estimated tokens that ``tokens`` keeps.
            preserve_recent: Newest messages kept in any case.
            summary_max_tokens: Length of a summary.
            metadata: Anything else for the request.
            timeout: Budget in seconds.
            cancel: Token that ends the waiting.
        """
        request = StateOperationRequest(
            session_id=session_id,
            stores=("conversation",),
            strategy=strategy,
            max_messages=max_messages,
            max_tokens=max_tokens,
            preserve_recent=preserve_recent,
            summary_max_tokens=summary_max_tokens,
            metadata=metadata or {},
        )
        return self._state(COMPACT_STATE_REQUEST, agent_url, request, timeout, cancel)

    def _state(
        self,
        spec: ClientRequestSpec,
        agent_url: str,
        request: StateOperationRequest,
        timeout: float | None,
        cancel: CancelToken | None,
    ) -> StateOperationResult:
        result: StateOperationResult = self._transport.send(
            spec, agent_url, request, timeout=timeout, cancel=cancel
        )
        return result

    # --- cards -------------------------------------------------------------------------------

    def get_agent_card(
        self,
        agent_url: str,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> AgentCard:
        """Return the card by which the agent introduces itself.

        Args:
            agent_url: Address of the agent.
            timeout: Budget in seconds.
            cancel: Token that ends the waiting.
        """
        card: AgentCard = self._transport.send(
            AGENT_CARD_REQUEST, agent_url, timeout=timeout, cancel=cancel
        )
        return card

    # --- the client itself -------------------------------------------------------------------

    def close(self) -> None:
        """Close the transport, if the client made it; a given one stays open. Twice is silent."""
        if self._owns:
            self._transport.close()

    def __enter__(self) -> AgentClient:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __getstate__(self) -> Mapping[str, Any]:
        return {"_owns": self._owns, "_transport": self._transport}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)

    def _check_protocol(self, protocol: str) -> None:
        if protocol not in _PROTOCOLS:
            raise ValueError(f"unknown protocol {protocol!r}; known: {', '.join(_PROTOCOLS)}")
        if protocol == "a2a":
            raise A2AClientError("protocol='a2a' was asked for, but this client has no A2A side")


SyncAgentClient = AgentClient
