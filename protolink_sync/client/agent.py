"""AgentClient: what an application asks of agents, whatever wire carries it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from protolink_sync._deadline import CancelToken
from protolink_sync.client._options import Options, ViewedTransport
from protolink_sync.config import RetryPolicy
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
    instant,
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

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from protolink_sync.a2a.client import A2AMemory
    from protolink_sync.aio import AsyncAgentClient
    from protolink_sync.client._check import CheckReport
    from protolink_sync.client._map import MapResults
    from protolink_sync.client._selection import Selection
    from protolink_sync.client.peer import AgentPeer
    from protolink_sync.client.registry import RegistryClient

__all__ = ["AgentClient", "SyncAgentClient"]

Protocol = Literal["auto", "protolink", "a2a"]

_PROTOCOLS = get_args(Protocol)
_ANSWERING_ROLES = frozenset(("agent", "assistant"))


def _moment(message: Message) -> float:
    at = instant(message.timestamp)
    return -math.inf if at is None else at


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
        a2a: Also call agents that speak A2A (1.0 or 0.3) and not ProtoLink's own protocol. The
            transport must be ``"http"``.
        a2a_allow_cross_origin: Follow an A2A card that names an address of another origin than
            the agent's. The transport's credentials are not shown there.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: There is no such transport, or an argument is out of range, or the transport
            does not carry A2A.

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
        self,
        transport: Transport | str,
        url: str | None = None,
        timeout: float | None = 300,
        *,
        a2a: bool = False,
        a2a_allow_cross_origin: bool = False,
    ) -> None:
        self._owns = not isinstance(transport, Transport)
        self._transport = (
            transport
            if isinstance(transport, Transport)
            else get_transport(transport, url=url, timeout=timeout)
        )
        self._options = Options()
        self._calls: Transport | ViewedTransport = self._transport
        self._selection = _selection(self._transport, a2a, a2a_allow_cross_origin)

    @property
    def transport(self) -> Transport:
        """The transport, for its health, counters and settings."""
        return self._transport

    @property
    def a2a(self) -> bool:
        """Whether the client also calls agents that speak A2A only."""
        return self._selection is not None

    @property
    def a2a_memory(self) -> A2AMemory:
        """What the client remembers of A2A agents. Set another one, to share it or to keep it.

        Raises:
            A2AClientError: The client was made without ``a2a=True``.
        """
        return self._needed_a2a("a2a_memory").bridge.memory

    @a2a_memory.setter
    def a2a_memory(self, memory: A2AMemory) -> None:
        self._needed_a2a("a2a_memory").bridge.remember_in(memory)

    @property
    def sync(self) -> AgentClient:
        """The client itself: ``client.sync.send_task(...)`` runs as it does with protolink."""
        return self

    @property
    def aio(self) -> AsyncAgentClient:
        """The client for code inside an event loop: ``await client.aio.send_task(...)``."""
        from protolink_sync.aio import AsyncAgentClient

        return AsyncAgentClient.of(self)

    def __repr__(self) -> str:
        more = str(self._options)
        return f"<AgentClient {self._transport!r}{f' with {more}' if more else ''}>"

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
            protocol: ``"protolink"`` speaks ProtoLink's own protocol, ``"a2a"`` reads the agent's
                A2A card and speaks that. ``"auto"`` is the first, unless the client was made with
                ``a2a=True`` and the agent, asked for its ProtoLink card, answers 404 or 405 or
                with an A2A card: then it is A2A; the choice is kept for 5 minutes. To an A2A
                agent the last message of the user is sent, once: such a call is never retried.
            timeout: Budget in seconds for all of it, retries included; None for the
                transport's, ``math.inf`` for none. When it is spent the task may still run at
                the agent.
            cancel: Token that ends the waiting; the task may still run at the agent.
            idempotency_key: By it the agent recognises the submission; None for the task's id
                and a digest of its content. A2A has no such thing.

        Returns:
            The task. One that an A2A agent answered has the id that was sent, and in its metadata
            what the agent calls it (``a2a_remote_task_id`` and more): send it again with another
            message to go on.

        Raises:
            TypeError: An argument has the wrong type, or the task holds what is no JSON.
            ValueError: An argument is out of range.
            A2AClientError: ``protocol="a2a"`` without ``a2a=True``, or the A2A agent cannot be
                called: it has no card, or one that names another origin.
            A2ARpcError: An A2A agent answered with an error.
            TransportError: No answer, or an error instead of a task.
            CallCancelledError: The token was cancelled.
        """
        self._check_protocol(protocol)
        if not isinstance(task, Task):
            raise TypeError(
                f"task is a {type(task).__name__}, must be a Task: Task.create(...) makes one"
            )

        def native(left: float | None) -> Task:
            sent: Task = self._calls.send(
                TASK_REQUEST,
                agent_url,
                task,
                timeout=left,
                cancel=cancel,
                idempotency_key=idempotency_key,
            )
            return sent

        if self._selection is None or protocol == "protolink":
            return native(timeout)
        return self._selection.send_task(
            agent_url,
            task,
            is_a2a=protocol == "a2a",
            timeout=timeout,
            cancel=cancel,
            idempotency_key=idempotency_key,
            native=native,
        )

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
            The newest message with the role agent or assistant that was not sent: by its
            timestamp, a missing or unreadable one counts as the oldest; of several at the same
            moment the last in the list.

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
        answers = [
            candidate
            for candidate in reversed(task.messages)
            if candidate.role in _ANSWERING_ROLES and candidate.id != message.id
        ]
        if answers:
            return max(answers, key=_moment)
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
        return self._calls.subscribe(
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

        An A2A agent gives its own ids to tasks. So one that was sent to it can be cancelled once
        it has come back, by this client, for an hour.

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

        def native(left: float | None) -> Task:
            canceled: Task = self._calls.send(
                TASK_CANCEL_REQUEST, agent_url, request, timeout=left, cancel=cancel
            )
            return canceled

        if self._selection is None or protocol == "protolink":
            return native(timeout)
        return self._selection.cancel_task(
            agent_url,
            task_id,
            reason=reason,
            metadata=metadata,
            is_a2a=protocol == "a2a",
            timeout=timeout,
            cancel=cancel,
            native=native,
        )

    def map(
        self,
        tasks: Iterable[Task],
        agent_url: str | Sequence[str],
        *,
        executor: Executor | None = None,
        ordered: bool = True,
        max_in_flight: int | None = None,
        protocol: Protocol = "auto",
        timeout: float | None = None,
        progress: Callable[[int, int | None], object] | None = None,
        cancel: CancelToken | None = None,
    ) -> MapResults:
        """Submit many tasks, a few at a time, and return their results as an iterator.

        A result is the task as it came back, or the exception that it brought instead: one that
        fails does not end the others. An agent that answers that it is busy (429, 503, gRPC
        RESOURCE_EXHAUSTED) gets fewer tasks at a time, and that one again a little later, under
        the same key and within the budget. (Not where the task may go out as A2A.)

        Args:
            tasks: The tasks; they are taken one after the other, so a generator may make them.
                Their ids are fixed before anything is sent.
            agent_url: Address of the agent, or of several: each task goes to one with room.
            executor: Runs the calls; None for threads that begin and end with their call. With a
                ``ThreadPoolExecutor`` calls share the client. Any other executor gets a copy,
                pickled, which each process unpacks once; a cancel does not end its calls.
            ordered: Give the results in the order of the tasks; False gives them as they come,
                and ``index`` of the iterator says which task each belongs to.
            max_in_flight: How many tasks are submitted at the same time; None for 32, or the
                transport's ``max_concurrent_requests`` if that is less.
            protocol: As for :meth:`send_task`.
            timeout: Budget in seconds of each task.
            progress: Called with how many results have come and how many tasks there are (None
                while that is not known), in the thread that reads the results.
            cancel: Token that ends everything. Tasks in flight bring a ``CallCancelledError``;
                then, if there are further ones, reading raises it.

        Raises:
            TypeError: An argument has the wrong type, or one of the tasks is none.
            ValueError: An argument is out of range.
        """
        from protolink_sync.client._map import submitted

        return submitted(
            self,
            tasks,
            agent_url,
            executor=executor,
            ordered=ordered,
            max_in_flight=max_in_flight,
            protocol=protocol,
            timeout=timeout,
            progress=progress,
            cancel=cancel,
        )

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
        result: HistoryCompactionResult = self._calls.send(
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
        result: StateOperationResult = self._calls.send(
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
        card: AgentCard = self._calls.send(
            AGENT_CARD_REQUEST, agent_url, timeout=timeout, cancel=cancel
        )
        return card

    def get_a2a_agent_card(
        self,
        agent_url: str,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> dict[str, Any]:
        """Return the A2A card of an agent, 1.0 or 0.3, once it is found fit to be used.

        Args:
            agent_url: Address of the agent.
            timeout: Budget in seconds.
            cancel: Token that ends the waiting.

        Returns:
            The card as it was read, the caller's own.

        Raises:
            A2AClientError: The client was made without ``a2a=True``; or there is no card, it
                offers nothing that can be spoken, or it names another origin.
            TransportError: There is no answer, or another error than that.
        """
        return self._needed_a2a("get_a2a_agent_card").card(agent_url, timeout, cancel)

    def check(
        self,
        agent_url: str,
        *,
        text: str | None = None,
        timeout: float = 30.0,
        cancel: CancelToken | None = None,
    ) -> CheckReport:
        """Look at everything between here and an agent, and say what to do about what is wrong.

        The steps are name look-up, connection, TLS, card, protocol, credentials, a call, a stream
        and how long a call takes. What goes wrong is in the report; it is not raised. The agent
        is only read, unless a text is given.

        Args:
            agent_url: Address of the agent.
            text: Is sent to the agent's model as a task, and again as a stream if agent and
                transport stream; None submits nothing.
            timeout: Budget in seconds of all of it.
            cancel: Token that ends it.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: An argument is out of range, or the address is none of this transport.
            CallCancelledError: The token was cancelled.
            ClientClosedError: The client was closed.
        """
        from protolink_sync.client._check import check

        return check(self, agent_url, text=text, timeout=timeout, cancel=cancel)

    # --- the client itself -------------------------------------------------------------------

    def peer(
        self,
        target: str | AgentCard,
        *,
        registry: RegistryClient | None = None,
        protocol: Protocol = "auto",
    ) -> AgentPeer:
        """Return one agent, to be called without naming it again. Nothing is sent yet.

        Args:
            target: Address of the agent, its card, or its name in the registry.
            registry: Where a name is looked up, for every call anew.
            protocol: As for :meth:`send_task`.

        Raises:
            ValueError: ``target`` is a name and there is no registry. The peer's methods raise
                it when not exactly one agent has the name.
        """
        from protolink_sync.client.peer import AgentPeer

        return AgentPeer(self, target, registry=registry, protocol=protocol)

    def with_options(
        self,
        *,
        timeout: float | None = None,
        headers: Mapping[str, str] | None = None,
        retry: RetryPolicy | None = None,
        cancel: CancelToken | None = None,
        request_id: str | None = None,
    ) -> AgentClient:
        """Return a view: a client whose calls have these options, on the same connections.

        A view has the client's transport with its limits and counters, and what the client knows
        of A2A agents. Closing it closes nothing. A view of a view has the options of both; of one
        option the newer wins.

        Args:
            timeout: Budget in seconds of each call that is given none; of a stream, from the call
                to its end.
            headers: Go with each call, beside the transport's and in the place of those of the
                same name. Transports that send headers only when they connect, or none, do not
                take them: then each call raises ``ValueError``.
            retry: When a call is sent again, in the place of the transport's policy.
            cancel: Token that ends each call, beside one that the call is given.
            request_id: By this the calls are known in the agent's log. The agent still tells
                them apart.

        Raises:
            TypeError: An option has the wrong type.
            ValueError: An option is out of range, or a header is not allowed.

        >>> hurried = AgentClient("http").with_options(timeout=2)
        >>> hurried.with_options(headers={"X-Trace": "7"})
        <AgentClient <HTTPTransport url=None timeout=300> with timeout=2, headers X-Trace>
        """
        options = self._options.with_more(timeout, headers, retry, cancel, request_id)
        view = AgentClient.__new__(AgentClient)
        view._owns, view._transport = False, self._transport
        view._see_with(options, self._selection)
        return view

    def _see_with(self, options: Options, of: Selection | None) -> None:
        """Become a view of a client."""
        self._options = options
        self._calls = ViewedTransport(self._transport, options)
        self._selection = None if of is None else of.viewed(self._calls)

    @property
    def _timeout(self) -> float:
        """Budget of calls that give none."""
        return self._calls.timeout

    def close(self) -> None:
        """Close the transport, if the client made it; a given one stays open. Twice is silent."""
        if self._owns:
            self._transport.close()

    def __enter__(self) -> AgentClient:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __getstate__(self) -> Mapping[str, Any]:
        allow = self.a2a and self._needed_a2a("pickle").allow_cross_origin
        return {
            "_owns": self._owns,
            "_transport": self._transport,
            "a2a": (self.a2a, allow),
            "options": self._options,
        }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self._owns, self._transport = state["_owns"], state["_transport"]
        self._options, self._calls = state["options"], self._transport
        self._selection = _selection(self._transport, *state["a2a"])
        if self._options != Options():
            self._see_with(self._options, self._selection)

    def _check_protocol(self, protocol: str) -> None:
        if protocol not in _PROTOCOLS:
            raise ValueError(f"unknown protocol {protocol!r}; known: {', '.join(_PROTOCOLS)}")
        if protocol == "a2a":
            self._needed_a2a("protocol='a2a'")

    def _needed_a2a(self, what: str) -> Selection:
        if self._selection is None:
            raise A2AClientError(f"{what} needs AgentClient(..., a2a=True)")
        return self._selection


def _selection(transport: Transport, a2a: bool, allow_cross_origin: bool) -> Selection | None:
    """Return the A2A side of a client; None if it has none.

    Raises:
        TypeError: A switch is neither True nor False.
        ValueError: The transport does not carry A2A, or there is nothing to allow.
    """
    for name, switch in (("a2a", a2a), ("a2a_allow_cross_origin", allow_cross_origin)):
        if not isinstance(switch, bool):
            raise TypeError(f"{name} is {switch!r}, must be True or False")
    if not a2a:
        if allow_cross_origin:
            raise ValueError("a2a_allow_cross_origin=True says something of A2A: give a2a=True too")
        return None
    if transport.transport_type != "http":
        raise ValueError(
            f"a2a=True needs the transport 'http', not {transport.transport_type!r}: "
            "AgentClient('http', a2a=True)"
        )
    # Not before it is needed: a client without A2A is not to pay for its import.
    from protolink_sync.client._selection import Selection

    return Selection(transport, allow_cross_origin=allow_cross_origin)


SyncAgentClient = AgentClient
