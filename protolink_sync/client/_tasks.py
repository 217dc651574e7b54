"""The part of AgentClient about tasks: submitted, followed, cancelled."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from protolink_sync._deadline import CancelToken
from protolink_sync.client._foundation import Foundation, Protocol
from protolink_sync.errors import NoResponseMessageError
from protolink_sync.models import (
    ClientRequestSpec,
    Message,
    Task,
    TaskCancellationRequest,
    instant,
)
from protolink_sync.specs import TASK_CANCEL_REQUEST, TASK_REQUEST, TASK_STREAM_REQUEST
from protolink_sync.streaming import EventStream

__all__ = ["Tasks"]

_ANSWERING_ROLES = frozenset(("agent", "assistant"))


class Tasks(Foundation):
    """Submit tasks, follow them, cancel them."""

    TASK_REQUEST: ClassVar[ClientRequestSpec] = TASK_REQUEST
    TASK_STREAM_REQUEST: ClassVar[ClientRequestSpec] = TASK_STREAM_REQUEST
    TASK_CANCEL_REQUEST: ClassVar[ClientRequestSpec] = TASK_CANCEL_REQUEST

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
        if protocol != "auto":
            self._check_protocol(protocol)
        if not isinstance(task, Task):
            raise TypeError(
                f"task is a {type(task).__name__}, must be a Task: Task.create(...) makes one"
            )

        if self._selection is None or protocol == "protolink":
            sent: Task = self._calls.send(
                TASK_REQUEST,
                agent_url,
                task,
                timeout=timeout,
                cancel=cancel,
                idempotency_key=idempotency_key,
            )
            return sent
        return self._selection.send_task(
            agent_url,
            task,
            is_a2a=protocol == "a2a",
            timeout=timeout,
            cancel=cancel,
            idempotency_key=idempotency_key,
            native=lambda left: self._calls.send(
                TASK_REQUEST,
                agent_url,
                task,
                timeout=left,
                cancel=cancel,
                idempotency_key=idempotency_key,
            ),
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
                ``NotImplementedError``), before any I/O; or a client of both protocols found
                that the agent speaks A2A, before the task is sent.
            TransportError: The stream could not be opened.
            CallCancelledError: The token was cancelled.
        """
        if self._selection is not None and self._transport.supports_streaming:
            bound = self._options.timeout if timeout is None else timeout
            timeout = self._selection.before_stream(agent_url, bound, cancel)
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


def _moment(message: Message) -> float:
    at = instant(message.timestamp)
    return -math.inf if at is None else at
