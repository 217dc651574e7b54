"""AgentClient: what an application asks of agents, whatever wire carries it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from protolink_sync._deadline import CancelToken
from protolink_sync.client._foundation import Protocol
from protolink_sync.client._keeping import Keeping
from protolink_sync.client._tasks import Tasks
from protolink_sync.config import RetryPolicy
from protolink_sync.models import AgentCard, ClientRequestSpec, Task
from protolink_sync.specs import AGENT_CARD_REQUEST

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from protolink_sync.aio import AsyncAgentClient
    from protolink_sync.client._check import CheckReport
    from protolink_sync.client._map import MapResults
    from protolink_sync.client.peer import AgentPeer
    from protolink_sync.client.registry import RegistryClient

__all__ = ["AgentClient", "Protocol", "SyncAgentClient"]


class AgentClient(Tasks, Keeping):
    """Call agents and block until they answer. Any number of threads may share one client.

    Every call has one budget for all of it, and takes a token by which another thread can end
    it. Ending a call does not end the *task* at the agent; :meth:`cancel_task` does.

    A pickled copy calls as the client does, over connections of its own. What the client
    remembers of A2A agents (:attr:`a2a_memory`) does not go with it: the copy asks again how an
    agent is spoken to, and cannot cancel a task that the client sent to one.

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

    AGENT_CARD_REQUEST: ClassVar[ClientRequestSpec] = AGENT_CARD_REQUEST

    # --- many tasks --------------------------------------------------------------------------

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
        progress: bool | Callable[[int, int | None], object] | None = None,
        cancel: CancelToken | None = None,
    ) -> MapResults:
        """Submit many tasks, a few at a time, and return their results as an iterator.

        A result is the task as it came back, or the exception that it brought instead: one that
        fails does not end the others. An agent that answers that it is busy (429, 503, gRPC
        RESOURCE_EXHAUSTED) gets fewer tasks at a time, and that one again a little later, under
        the same key and within the budget. (Not where the task may go out as A2A.) If every agent
        asks for a pause that is longer than the budget and than ``RetryPolicy.max_retry_after``,
        tasks bring the refusal at once, unsent.

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
            progress: True shows a bar: in the notebook's cell, or in the terminal, which needs the
                extra ``cli``. A function is called with how many results have come and how many
                tasks there are (None while that is not known), in the thread that reads the
                results.
            cancel: Token that ends everything. Tasks in flight bring a ``CallCancelledError``;
                then, if there are further ones, reading raises it.

        Raises:
            TypeError: An argument has the wrong type, or one of the tasks is none.
            ValueError: An argument is out of range.
            ImportError: A bar in a terminal was asked for, and rich is not installed.
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

    # --- other forms of the client -----------------------------------------------------------

    @property
    def sync(self) -> AgentClient:
        """The client itself: ``client.sync.send_task(...)`` runs as it does with protolink."""
        return self

    @property
    def aio(self) -> AsyncAgentClient:
        """The client for code inside an event loop: ``await client.aio.send_task(...)``."""
        from protolink_sync.aio import AsyncAgentClient

        return AsyncAgentClient.of(self)

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
            registry: Where a name is looked up, for every call anew. What it names gets no
                secrets that are not meant for it; see :class:`AgentPeer`.
            protocol: As for :meth:`send_task`.

        Raises:
            ValueError: ``target`` is a name and there is no registry. The peer's methods raise
                it when not exactly one agent has the name, or when credentials or headers are
                not meant for its address.
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


SyncAgentClient = AgentClient
