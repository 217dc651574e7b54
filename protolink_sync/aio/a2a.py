"""AsyncA2AClient: one agent that speaks A2A, awaited."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Concatenate, ParamSpec

from protolink_sync._deadline import CancelToken
from protolink_sync.a2a.client import A2AClient
from protolink_sync.aio._awaited import awaited
from protolink_sync.aio._threads import in_thread
from protolink_sync.aio.stream import AsyncEventStream, Steps
from protolink_sync.errors import TransportProtocolError

__all__ = ["AsyncA2AClient"]

_P = ParamSpec("_P")


def _streamed(
    method: Callable[Concatenate[Any, _P], Any],
) -> Callable[Concatenate[Any, _P], AsyncEventStream]:
    """Return the twin of a method that opens a stream."""

    @functools.wraps(method)
    def stream(self: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> AsyncEventStream:
        given: Any = kwargs.pop("cancel", None)
        bound = functools.partial(getattr(self._blocking, method.__name__), *args, **kwargs)
        return AsyncEventStream(lambda token: bound(cancel=token), given)

    return stream


def _listed(
    method: Callable[Concatenate[Any, _P], Any],
) -> Callable[Concatenate[Any, _P], Steps[Any]]:
    """Return the twin of a method that returns an iterator."""

    @functools.wraps(method)
    def values(self: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> Steps[Any]:
        given: Any = kwargs.pop("cancel", None)
        bound = functools.partial(getattr(self._blocking, method.__name__), *args, **kwargs)
        return Steps(lambda token: bound(cancel=token), given)

    return values


class AsyncA2AClient:
    """The awaitable twin of an :class:`~protolink_sync.a2a.A2AClient`: ``A2AClient.aio``.

    Every method has the parameters, the results and the errors of the client's, and is awaited;
    streams and lists are read with ``async for``. Cancelling the asyncio task that awaits ends
    the call at once. What is set, is set on the client itself.

    Args:
        client: The client; closing one closes the other.
    """

    def __init__(self, client: A2AClient) -> None:
        if not isinstance(client, A2AClient):
            raise TypeError(f"client is a {type(client).__name__}, must be an A2AClient")
        self._blocking = client

    @property
    def sync(self) -> A2AClient:
        """The blocking client."""
        return self._blocking

    @property
    def base_url(self) -> str:
        """Address of the agent."""
        return self._blocking.base_url

    @property
    def endpoint_url(self) -> str:
        """Where calls go, as far as that is known."""
        return self._blocking.endpoint_url

    @property
    def wire_dialect(self) -> Any:
        """The dialect in use; None before the first call."""
        return self._blocking.wire_dialect

    # They set, and wait for nothing.

    def set_timeout(self, timeout: float) -> None:
        """Bound later calls, also the client's own; see the client's ``set_timeout``.

        Args:
            timeout: Seconds; 0 or ``math.inf`` for no bound.
        """
        self._blocking.set_timeout(timeout)

    def set_connect_timeout(self, timeout: float) -> None:
        """Bound resolving, connecting and TLS of later requests.

        Args:
            timeout: Seconds; 0 or ``math.inf`` for no bound.
        """
        self._blocking.set_connect_timeout(timeout)

    def set_authorization_header(self, authorization: str) -> None:
        """Set the ``Authorization`` of later calls.

        Args:
            authorization: The header's value; empty for none.
        """
        self._blocking.set_authorization_header(authorization)

    def set_allow_cross_origin_interfaces(self, allow: bool) -> None:
        """Follow a card to another origin, or no more.

        Args:
            allow: As ``allow_cross_origin`` of the client.
        """
        self._blocking.set_allow_cross_origin_interfaces(allow)

    fetch_agent_card = awaited(A2AClient.fetch_agent_card)
    get_extended_card = awaited(A2AClient.get_extended_card)

    send_message = awaited(A2AClient.send_message)
    stream_message = _streamed(A2AClient.stream_message)
    subscribe = _streamed(A2AClient.subscribe)

    async def send_message_streaming(
        self,
        message: Any,
        on_event: Callable[[Any], object | Awaitable[object]],
        *,
        task_id: str = "",
        context_id: str = "",
        configuration: Any = None,
        metadata: Mapping[str, Any] | None = None,
        stop_on_interrupted: bool = True,
        resume: int = 0,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> Any:
        """Send a message, have a function called with each event, and return the task.

        Args:
            message: As for :meth:`stream_message`, like the keywords.
            on_event: Called in the loop, and awaited if it is a coroutine function. If it returns
                False, the connection is closed at once and the task returned as far as it came.
            task_id: The task that the message goes on with.
            context_id: The conversation it belongs to.
            configuration: How to answer.
            metadata: Anything for the agent.
            stop_on_interrupted: End the stream when the task waits for the caller.
            resume: How often to subscribe again when the connection is cut.
            timeout: Seconds from the call to the end of the stream.
            idle_timeout: Seconds to the first event and between events.
            cancel: Token that ends the stream.

        Raises:
            Exception: What ``on_event`` raises ends the stream and is raised here.
            ProtoLinkError: As for :meth:`stream_message`, and what breaks the stream.
        """
        if not callable(on_event):
            raise TypeError(f"on_event is a {type(on_event).__name__}, must be a function")
        async with self.stream_message(
            message,
            task_id=task_id,
            context_id=context_id,
            configuration=configuration,
            metadata=metadata,
            stop_on_interrupted=stop_on_interrupted,
            resume=resume,
            timeout=timeout,
            idle_timeout=idle_timeout,
            cancel=cancel,
        ) as stream:
            async for event in stream:
                said = on_event(event)
                if inspect.isawaitable(said):
                    said = await said
                if said is False:
                    break
            task = stream.task
        if task is None:
            url = self._blocking.endpoint_url
            raise TransportProtocolError(
                f"send_message_streaming to {url}: no event has told of a task", url=url
            )
        return task

    get_task = awaited(A2AClient.get_task)
    cancel_task = awaited(A2AClient.cancel_task)
    list_tasks = _listed(A2AClient.list_tasks)
    wait = awaited(A2AClient.wait)

    create_push_config = awaited(A2AClient.create_push_config)
    get_push_config = awaited(A2AClient.get_push_config)
    list_push_configs = awaited(A2AClient.list_push_configs)
    delete_push_config = awaited(A2AClient.delete_push_config)

    rpc_call = awaited(A2AClient.rpc_call)

    async def close(self) -> None:
        """End what is in flight and close every connection; later calls raise."""
        await in_thread(self._blocking.close, CancelToken())

    async def __aenter__(self) -> AsyncA2AClient:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncA2AClient {self._blocking!r}>"
