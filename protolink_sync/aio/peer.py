"""AsyncAgentPeer: one agent, called without naming it again, and awaited."""

from __future__ import annotations

import functools
from typing import Any

from protolink_sync._deadline import CancelToken
from protolink_sync.aio._awaited import awaited
from protolink_sync.aio._threads import in_thread
from protolink_sync.aio.stream import AsyncEventStream
from protolink_sync.client import AgentPeer
from protolink_sync.models import AgentCard, Message

__all__ = ["AsyncAgentPeer"]


class AsyncAgentPeer:
    """The awaitable twin of an :class:`~protolink_sync.AgentPeer`, for code inside an event loop.

    Every method has the parameters and the errors of the peer's. Cancelling the asyncio task
    that awaits ends the call at once.

    Args:
        peer: The peer, which stays the caller's to close.
    """

    def __init__(self, peer: AgentPeer) -> None:
        if not isinstance(peer, AgentPeer):
            raise TypeError(f"peer is a {type(peer).__name__}, must be an AgentPeer")
        self._blocking = peer

    @property
    def target(self) -> str:
        """Address of the agent, or its name in the registry."""
        return self._blocking.target

    async def url(self) -> str:
        """Return the agent's address; that of a name is looked up now."""
        token = CancelToken()
        return await in_thread(lambda: self._blocking._found(None, token)[0], token)

    invoke = awaited(AgentPeer.invoke)
    invoke_typed = awaited(AgentPeer.invoke_typed)
    run_task = awaited(AgentPeer.run_task)

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
    ) -> AsyncEventStream:
        """Ask the agent's model and return the events of its work, for ``async for``.

        Args:
            message: As for the peer's ``stream``, like the further arguments.
            session_id: Conversation to which it belongs.
            budget: Limits for the run.
            context: Further members of the run's context.
            timeout: Seconds from the opening to the end of the stream.
            idle_timeout: Seconds to the first event and between events.
            cancel: Token that ends the stream.
        """
        return AsyncEventStream(
            lambda token: self._blocking.stream(
                message,
                session_id=session_id,
                budget=budget,
                context=context,
                timeout=timeout,
                idle_timeout=idle_timeout,
                cancel=token,
            ),
            cancel,
        )

    async def call_tool(self, name: str, /, **args: Any) -> Any:
        """Have the agent call one of its tools and return the result.

        Args:
            name: Name of the tool.
            **args: The tool's arguments.

        Raises:
            TaskExecutionError: The tool, or the agent, failed; the error has the ``task``.
        """
        token = CancelToken()
        # Not call_tool(): all its keywords are the tool's.
        call = functools.partial(self._blocking._call_tool, name, args, token)
        return await in_thread(call, token)

    async def card(self) -> AgentCard:
        """Return the agent's card; it is fetched once."""
        token = CancelToken()
        return await in_thread(lambda: self._blocking._fetched_card(token), token)

    async def close(self) -> None:
        """Close the client, if :func:`~protolink_sync.connect` made it for this peer."""
        await in_thread(self._blocking.close, CancelToken())

    async def __aenter__(self) -> AsyncAgentPeer:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncAgentPeer {self._blocking!r}>"
