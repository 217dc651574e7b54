"""The part of A2AClient that sends messages and follows what comes of them."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from protolink_sync._deadline import CancelToken
from protolink_sync.a2a.client import _operations as ops
from protolink_sync.a2a.client._arguments import (
    check_id,
    check_switch,
    idle_seconds,
    left,
    send_params,
)
from protolink_sync.a2a.client._budget import Budget
from protolink_sync.a2a.client._reader import Reader
from protolink_sync.a2a.client._tasks import Tasks
from protolink_sync.a2a.client.stream import A2AEventStream, OneEvent
from protolink_sync.a2a.wire import (
    Message,
    MessageSendParams,
    SendConfiguration,
    StreamEvent,
    Task,
)
from protolink_sync.errors import (
    A2ATaskNotCancelableError,
    A2AUnsupportedOperationError,
    TransportProtocolError,
)
from protolink_sync.streaming import EventSource

__all__ = ["Messages"]


class Messages(Tasks):
    """Send messages, wait for the answer or read it as it comes."""

    def send_message(
        self,
        message: str | Message | MessageSendParams,
        *,
        task_id: str = "",
        context_id: str = "",
        configuration: SendConfiguration | None = None,
        metadata: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> Task:
        """Send a message and return the task once the agent answers.

        Args:
            message: A text, a message, or the whole parameters.
            task_id: The task that the message goes on with.
            context_id: The conversation it belongs to.
            configuration: How to answer; not with parameters, which have their own.
            metadata: Anything for the agent; not with parameters.
            timeout: Budget in seconds, the card included; None for the client's. When it is
                spent, the task may still run at the agent.
            cancel: Token that ends the waiting, not the task.

        Returns:
            The task. A bare message becomes a completed one, with ``from_message`` True.

        Raises:
            A2ARpcError: The agent answered with an error; a class for each code.
            A2AClientError: The card offers nothing this client speaks.
            TransportError: No answer, or none that can be read.
            CallCancelledError: The token was cancelled.
        """
        params = send_params(message, task_id, context_id, configuration, metadata)
        budget = self._budget(timeout, cancel)
        self._check_sendable(params, budget)
        task: Task = self._peer.run(
            ops.SEND, lambda dialect, tenant: dialect.send_params(params, tenant), budget
        )
        return task

    def stream_message(
        self,
        message: str | Message | MessageSendParams,
        *,
        task_id: str = "",
        context_id: str = "",
        configuration: SendConfiguration | None = None,
        metadata: Mapping[str, Any] | None = None,
        stop_on_interrupted: bool = True,
        resume: int = 0,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> A2AEventStream:
        """Send a message and return the events of the work on it, as they come.

        Args:
            message: As for :meth:`send_message`, like the four arguments that follow.
            task_id: The task that the message goes on with.
            context_id: The conversation it belongs to.
            configuration: How to answer.
            metadata: Anything for the agent.
            stop_on_interrupted: End the stream when the task waits for the caller. Some agents
                keep it open then and go on once they got what they need.
            resume: How often to subscribe to the task again when the connection is cut.
            timeout: Seconds from the call to the end of the stream; None for the client's.
            idle_timeout: Seconds to the first event and between events; None for no bound.
            cancel: Token that ends the stream, not the task.

        Raises:
            A2AClientError: The agent's card says that it does not stream (``strict=True``).
            A2ARpcError: The agent refused; errors after that are raised while iterating.
            TransportError: The stream could not be opened.
        """
        params = send_params(message, task_id, context_id, configuration, metadata)
        check_switch("stop_on_interrupted", stop_on_interrupted)
        if isinstance(resume, bool) or not isinstance(resume, int) or resume < 0:
            raise ValueError(f"resume is {resume!r}, must be an int of 0 or more")
        budget = self._budget(timeout, cancel)
        idle = idle_seconds(idle_timeout)
        early = budget.within(idle)
        self._check_sendable(params, early)
        self._check_offered("streams", lambda card: card.capabilities.streaming, early)
        return self._peer.open(
            ops.STREAM,
            lambda dialect, tenant: dialect.send_params(params, tenant),
            # Not bound to the task that is gone on with: an agent may begin another one.
            lambda dialect: Reader(dialect, stop_on_interrupted=stop_on_interrupted),
            lambda source: A2AEventStream(
                source,
                task_id=params.message.task_id or None,
                cancel_task=self._cancel_streamed,
                resume=_Resume(self, budget, idle, stop_on_interrupted),
                resumes=resume,
            ),
            budget,
            idle,
        )

    def send_message_streaming(
        self,
        message: str | Message | MessageSendParams,
        on_event: Callable[[StreamEvent], object],
        *,
        task_id: str = "",
        context_id: str = "",
        configuration: SendConfiguration | None = None,
        metadata: Mapping[str, Any] | None = None,
        stop_on_interrupted: bool = True,
        resume: int = 0,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> Task:
        """Send a message, have a function called with each event, and return the task.

        Args:
            message: As for :meth:`stream_message`, like the keywords.
            on_event: Called in this thread. If it returns False, the connection is closed at
                once and the task returned as far as it came; anything else goes on.
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
        with self.stream_message(
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
            for event in stream:
                if on_event(event) is False:
                    break
            task = stream.task
        if task is None:
            raise TransportProtocolError(
                f"send_message_streaming to {self.endpoint_url}: no event has told of a task",
                url=self.endpoint_url,
            )
        return task

    def subscribe(
        self,
        id: str,
        *,
        stop_on_interrupted: bool = True,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> A2AEventStream:
        """Return the further events of a task that was sent before.

        Args:
            id: The task's id.
            stop_on_interrupted: End the stream when the task comes to wait for the caller; that
                it waits already, as the first event may say, does not end it.
            timeout: Seconds from the call to the end of the stream; None for the client's.
            idle_timeout: Seconds to the first event and between events; None for no bound.
            cancel: Token that ends the stream, not the task.

        Raises:
            A2ATaskNotFoundError: The agent does not know it.
            A2AUnsupportedOperationError: It has ended.
            ProtoLinkError: As for :meth:`stream_message`.
        """
        check_id(id)
        check_switch("stop_on_interrupted", stop_on_interrupted)
        budget, idle = self._budget(timeout, cancel), idle_seconds(idle_timeout)
        self._check_offered(
            "streams", lambda card: card.capabilities.streaming, budget.within(idle)
        )
        stream: A2AEventStream = self._subscribed(
            id,
            budget,
            idle,
            stop_on_interrupted,
            lambda source: A2AEventStream(source, task_id=id, cancel_task=self._cancel_streamed),
        )
        return stream

    def _check_sendable(self, params: MessageSendParams, budget: Budget) -> None:
        """Refuse what cannot be sent; a mistake of the caller's before the card is asked for."""
        self._peer.check(lambda dialect, tenant: dialect.send_params(params, tenant))
        if params.configuration is not None and params.configuration.push_config is not None:
            self._check_offered(
                "push notifications", lambda card: card.capabilities.push_notifications, budget
            )

    def _cancel_streamed(
        self, id: str, reason: str | None, timeout: float | None, cancel: CancelToken | None
    ) -> Task:
        metadata = None if reason is None else {"reason": reason}
        try:
            return self.cancel_task(id, metadata, timeout=timeout, cancel=cancel)
        except A2ATaskNotCancelableError:
            task = self.get_task(id, timeout=timeout, cancel=cancel)
            if not task.is_terminal:
                raise
            return task

    def _subscribed(
        self,
        id: str,
        budget: Budget,
        idle: float,
        stop_on_interrupted: bool,
        make: Callable[[EventSource], Any],
    ) -> Any:
        return self._peer.open(
            ops.SUBSCRIBE,
            lambda dialect, tenant: dialect.subscribe_params(id, tenant),
            lambda dialect: Reader(
                dialect,
                task_id=id,
                stop_on_interrupted=stop_on_interrupted,
                is_subscription=True,
            ),
            make,
            budget,
            idle,
        )


class _Resume:
    """How a stream of one client that was cut is taken up, within the budget of the stream."""

    def __init__(
        self, client: Messages, budget: Budget, idle: float, stop_on_interrupted: bool
    ) -> None:
        self._client = client
        self._budget = budget
        self._idle = idle
        self._stop_on_interrupted = stop_on_interrupted
        self._joined_by: Callable[[], object] = _nothing

    def leave(self) -> None:
        """Take the stream off the caller's token, which may outlive it; any number of times."""
        self._joined_by()

    def subscribe(self, id: str, ending: CancelToken) -> EventSource:
        """Return the further events of a task."""
        budget = self._joined(ending)
        try:
            source: EventSource = self._client._subscribed(
                id, budget, self._idle, self._stop_on_interrupted, lambda source: source
            )
            return source
        except A2AUnsupportedOperationError:
            # So an agent says that the task has ended meanwhile.
            task = self._task(id, budget)
            if not (task.is_terminal or task.status.state.is_interrupted):
                raise
            return OneEvent(StreamEvent(task=task))

    def get_task(self, id: str, ending: CancelToken) -> Task:
        """Return the task as it stands."""
        return self._task(id, self._joined(ending))

    def _task(self, id: str, budget: Budget) -> Task:
        return self._client.get_task(id, timeout=left(budget), cancel=budget.cancel)

    def _joined(self, ending: CancelToken) -> Budget:
        """Return the budget with a token that the caller's and the stream's end both cancel."""
        given = self._budget.cancel
        if given is not None:
            self.leave()
            self._joined_by = given.on_cancel(
                functools.partial(_pass_on, weakref.ref(ending), given)
            )
        return attrs.evolve(self._budget, cancel=ending)


def _nothing() -> None:
    """Do what there is to do where no token was given."""


def _pass_on(ending: weakref.ref[CancelToken], given: CancelToken) -> None:
    token = ending()
    if token is not None:
        token.cancel(given.reason)
