"""AsyncAgentClient: the client for code that runs inside an event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from protolink_sync._deadline import CancelToken
from protolink_sync.aio._awaited import awaited
from protolink_sync.aio._threads import in_thread
from protolink_sync.aio.peer import AsyncAgentPeer
from protolink_sync.aio.stream import AsyncEventStream, Steps
from protolink_sync.client import AgentClient, RegistryClient
from protolink_sync.models import AgentCard, Task

__all__ = ["AsyncAgentClient"]


class AsyncAgentClient:
    """The awaitable twin of an :class:`~protolink_sync.AgentClient`.

    Every method has the parameters, the results and the errors of the blocking client's, and is
    awaited; each call runs in a thread of its own, so that calls overlap. Cancelling the asyncio
    task that awaits a call ends the call and its connection at once; what that means for the
    *task* at the agent is the same as for a token. One client may be used in several loops at
    the same time. No thread outlives the loop that waits for it by more than 100 ms.

    ``client.aio`` returns the twin of a client that is there.

    Args:
        transport: A transport, which stays the caller's to close; or the name of one.
        url: Address for the named transport. With a transport object it is ignored.
        timeout: Budget in seconds of calls that give none, for the named transport.
        a2a: Also call agents that speak A2A only.
        a2a_allow_cross_origin: Follow an A2A card to another origin.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: There is no such transport, or an argument is out of range.

    >>> AsyncAgentClient("http").transport.transport_type
    'http'
    """

    def __init__(
        self,
        transport: Any,
        url: str | None = None,
        timeout: float | None = 300,
        *,
        a2a: bool = False,
        a2a_allow_cross_origin: bool = False,
    ) -> None:
        self._blocking = AgentClient(
            transport, url, timeout, a2a=a2a, a2a_allow_cross_origin=a2a_allow_cross_origin
        )

    @classmethod
    def of(cls, client: AgentClient) -> AsyncAgentClient:
        """Return the twin of a blocking client; closing one closes the other.

        Args:
            client: The client.
        """
        if not isinstance(client, AgentClient):
            raise TypeError(f"client is a {type(client).__name__}, must be an AgentClient")
        twin = cls.__new__(cls)
        twin._blocking = client
        return twin

    @property
    def transport(self) -> Any:
        """The transport, for its health, counters and settings."""
        return self._blocking.transport

    @property
    def a2a(self) -> bool:
        """Whether the client also calls agents that speak A2A only."""
        return self._blocking.a2a

    @property
    def sync(self) -> AgentClient:
        """The blocking client, for what else it has."""
        return self._blocking

    # --- tasks -------------------------------------------------------------------------------

    send_task = awaited(AgentClient.send_task)
    send_infer_task = awaited(AgentClient.send_infer_task)
    send_message = awaited(AgentClient.send_message)
    cancel_task = awaited(AgentClient.cancel_task)

    def send_task_streaming(
        self,
        agent_url: str,
        task: Task,
        *,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> AsyncEventStream:
        """Submit a task and return the events of the work on it, for ``async for``.

        It is submitted when the first event is awaited; ``await`` the stream to submit it before.

        Args:
            agent_url: Address of the agent.
            task: The task; it is not changed.
            timeout: Seconds from the opening to the end of the stream; None for no bound.
            idle_timeout: Seconds to the first event and between events; None for the
                transport's timeout.
            cancel: Token that ends the stream.

        Raises:
            StreamingNotSupportedError: (when awaited) The transport does not stream.
            TransportError: (when awaited) The stream could not be opened, or broke.
        """
        return AsyncEventStream(
            lambda token: self._blocking.send_task_streaming(
                agent_url, task, timeout=timeout, idle_timeout=idle_timeout, cancel=token
            ),
            cancel,
        )

    def map(
        self,
        tasks: Iterable[Task],
        agent_url: str | Sequence[str],
        *,
        executor: Executor | None = None,
        ordered: bool = True,
        max_in_flight: int | None = None,
        protocol: Any = "auto",
        timeout: float | None = None,
        progress: bool | Callable[[int, int | None], object] | None = None,
        cancel: CancelToken | None = None,
    ) -> Steps[Task | Exception]:
        """Submit many tasks and return their results, for ``async for``.

        Args:
            tasks: As for the client's ``map``, like the further arguments.
            agent_url: One address, or several that take turns.
            executor: Runs the calls; None for threads of its own.
            ordered: Give the results in the order of the tasks.
            max_in_flight: Calls at the same time.
            protocol: As for :meth:`send_task`.
            timeout: Budget in seconds of each task.
            progress: True for a bar; or called with how many have come and how many there are,
                in a thread.
            cancel: Token that ends all of it.
        """
        return Steps(
            lambda token: self._blocking.map(
                tasks,
                agent_url,
                executor=executor,
                ordered=ordered,
                max_in_flight=max_in_flight,
                protocol=protocol,
                timeout=timeout,
                progress=progress,
                cancel=token,
            ),
            cancel,
        )

    # --- cards, history and state ------------------------------------------------------------

    get_agent_card = awaited(AgentClient.get_agent_card)
    get_a2a_agent_card = awaited(AgentClient.get_a2a_agent_card)
    compact_history = awaited(AgentClient.compact_history)
    describe_state = awaited(AgentClient.describe_state)
    reset_state = awaited(AgentClient.reset_state)
    compact_state = awaited(AgentClient.compact_state)

    # --- the client itself -------------------------------------------------------------------

    check = awaited(AgentClient.check)

    def peer(
        self,
        target: str | AgentCard,
        *,
        registry: RegistryClient | None = None,
        protocol: Any = "auto",
    ) -> AsyncAgentPeer:
        """Bind one agent; see the client's ``peer``.

        Args:
            target: Address, card, or name of the agent in the registry.
            registry: Where names are looked up.
            protocol: As for :meth:`send_task`.
        """
        return AsyncAgentPeer(self._blocking.peer(target, registry=registry, protocol=protocol))

    def with_options(
        self,
        *,
        timeout: float | None = None,
        headers: Mapping[str, str] | None = None,
        retry: Any = None,
        cancel: CancelToken | None = None,
        request_id: str | None = None,
    ) -> AsyncAgentClient:
        """Return a view whose calls have these options; see the client's ``with_options``.

        Args:
            timeout: Budget in seconds of each call that is given none.
            headers: Go with each call.
            retry: A retry policy, in the place of the transport's.
            cancel: Token that ends each call.
            request_id: By this the calls are known in the agent's log.
        """
        return AsyncAgentClient.of(
            self._blocking.with_options(
                timeout=timeout, headers=headers, retry=retry, cancel=cancel, request_id=request_id
            )
        )

    async def close(self) -> None:
        """Close the transport, if the client made it; a given one stays open. Twice is silent."""
        await in_thread(self._blocking.close, CancelToken())

    async def __aenter__(self) -> AsyncAgentClient:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncAgentClient {self._blocking!r}>"
