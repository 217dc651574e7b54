"""The methods of A2A 1.0 that a hosted agent answers, by their JSON-RPC names.

What is refused raises an :class:`~protolink_sync.errors.A2ARpcError` with its code, or a
:class:`~protolink_sync.errors.ModelError` for parameters that have not their form.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeAlias

from protolink_sync.a2a.wire import (
    A2AContentTypeNotSupportedError,
    A2AInvalidAgentResponseError,
    A2AInvalidParamsError,
    A2AMethodNotFoundError,
    A2APushNotificationNotSupportedError,
    A2ATaskNotCancelableError,
    A2AUnsupportedOperationError,
    ListRequest,
    Message,
    SendRequest,
    TaskRequest,
    TaskState,
    message_from_a2a,
    message_to_a2a,
)
from protolink_sync.models import Task
from protolink_sync.server.a2a_followers import Follower, Followers
from protolink_sync.server.a2a_runs import Runner
from protolink_sync.server.a2a_store import HostedTasks
from protolink_sync.server.a2a_task import HostedTask, Owner
from protolink_sync.server.engine import Engine

__all__ = ["Methods"]

Params: TypeAlias = Mapping[str, Any]
Answer: TypeAlias = dict[str, Any] | Follower

_PUSH = "TaskPushNotificationConfig"
_DEFAULT_TYPES = {"text": "text/plain", "data": "application/json"}
_REASON = "Canceled through A2A"


class Methods:
    """What callers can ask one agent for over A2A.

    Args:
        engine: The agent.

    Source:
        wire/a2a.md 3 and 19, "Server side".
    """

    def __init__(self, engine: Engine) -> None:
        limits = engine.config.limits
        self.followers = Followers(limits.max_concurrent_streams, limits.max_event_bytes)
        self._engine = engine
        self._tasks = HostedTasks()
        self._runner = Runner(engine)
        self._by_name: dict[str, Callable[[Params, Hashable, int], Answer]] = {
            "SendMessage": self._send,
            "SendStreamingMessage": self._stream,
            "GetTask": self._get,
            "ListTasks": self._list,
            "CancelTask": self._cancel,
            "SubscribeToTask": self._subscribe,
        }

    def answer(self, method: str, params: Params, principal: Hashable, size: int) -> Answer:
        """Return the result of a call, or a stream of results.

        Args:
            method: Its name.
            params: Its parameters.
            principal: Who asks.
            size: Bytes of the request.

        Raises:
            A2ARpcError: It is refused.
            ModelError: The parameters have not their form.
        """
        found = self._by_name.get(method)
        if found is not None:
            return found(params, principal, size)
        if method.removesuffix("s").endswith(_PUSH):
            raise A2APushNotificationNotSupportedError(
                "push notifications are not supported", code=-32003
            )
        if method == "GetExtendedAgentCard":
            raise A2AUnsupportedOperationError("there is no extended card", code=-32004)
        raise A2AMethodNotFoundError(f"there is no method {method[:80]!r}", code=-32601)

    def close(self, reason: str) -> None:
        """Cancel the tasks that nobody waits for, and end all streams."""
        for hosted in self._tasks.all():
            if hosted.is_worked_on:
                self._runner.cancel(hosted, reason, {})
            hosted.dismiss(reason)

    # ---- the methods ----

    def _send(self, params: Params, principal: Hashable, size: int) -> Answer:
        asked = SendRequest.from_dict(params)
        configuration = asked.params.configuration
        if configuration is not None and configuration.return_immediately:
            hosted = self._runner.start(lambda: self._begun(asked, principal, size))
        else:
            hosted = self._begun(asked, principal, size)
            self._runner.run(hosted)
            if _answers_with_message(hosted):
                return {"message": _spoken(hosted).to_dict()}
        length = None if configuration is None else configuration.history_length
        return {"task": hosted.seen(length).to_dict()}

    def _stream(self, params: Params, principal: Hashable, size: int) -> Answer:
        asked = SendRequest.from_dict(params)

        def begin(follower: Follower) -> HostedTask:
            hosted = self._begun(asked, principal, size)
            hosted.follow(follower)
            return hosted

        return self._followed(
            lambda follower: self._runner.start(lambda: begin(follower), streaming=True)
        )

    def _subscribe(self, params: Params, principal: Hashable, _size: int) -> Answer:
        asked = TaskRequest.from_dict(params)
        hosted = self._tasks.find(asked.id, (principal, asked.tenant))
        return self._followed(hosted.follow)

    def _followed(self, begin: Callable[[Follower], object]) -> Follower:
        """Return a stream, unless what it begins with is refused."""
        follower = self.followers.new()
        try:
            begin(follower)
        except BaseException:
            follower.leave("refused")
            raise
        return follower

    def _get(self, params: Params, principal: Hashable, _size: int) -> Answer:
        asked = TaskRequest.from_dict(params)
        hosted = self._tasks.find(asked.id, (principal, asked.tenant))
        return hosted.seen(asked.history_length).to_dict()

    def _cancel(self, params: Params, principal: Hashable, _size: int) -> Answer:
        asked = TaskRequest.from_dict(params)
        hosted = self._tasks.find(asked.id, (principal, asked.tenant))
        reason = asked.metadata.get("reason")
        told = reason if isinstance(reason, str) and reason else _REASON
        if not self._runner.cancel(hosted, told, asked.metadata):
            raise A2ATaskNotCancelableError(
                f"task {hosted.id} cannot be canceled: it is at its end", code=-32002
            )
        return hosted.seen().to_dict()

    def _list(self, params: Params, principal: Hashable, _size: int) -> Answer:
        asked = ListRequest.from_dict(params)
        found = {
            _place(hosted): hosted
            for hosted in self._tasks.of((principal, asked.tenant))
            if asked.context_id in ("", hosted.context_id)
            and asked.state in (None, hosted.state)
            and (asked.changed_since is None or hosted.changed_ns >= asked.changed_since)
        }
        places = sorted(found, reverse=True)
        if asked.page_token:
            before = _place_of(asked.page_token)
            places = [place for place in places if place < before]
        page = places[: asked.page_size]
        is_last = len(page) == len(places)
        return {
            "tasks": [
                found[place]
                .seen(asked.history_length, with_artifacts=asked.with_artifacts)
                .to_dict()
                for place in page
            ],
            "nextPageToken": "" if is_last else "{}-{}".format(*page[-1]),
            "pageSize": asked.page_size,
            "totalSize": len(found),
        }

    # ---- what a send begins with ----

    def _begun(self, asked: SendRequest, principal: Hashable, size: int) -> HostedTask:
        """Return the task that a message begins or goes on with; it counts as running."""
        configuration = asked.params.configuration
        if configuration is not None and configuration.push_config is not None:
            raise A2APushNotificationNotSupportedError(
                "push notifications are not supported", code=-32003
            )
        self._check_types(asked.params.message)
        message = message_from_a2a(asked.params.message)
        # Whoever sends is the user, whatever the message says of itself: what another role says
        # would count as the agent's answer.
        message.role = "user"
        owner = (principal, asked.tenant)
        sent = asked.params.message
        if sent.task_id:
            hosted = self._tasks.find(sent.task_id, owner)
            hosted.go_on(message, sent.context_id)
            self._tasks.grow(hosted, size)
            return hosted
        task = Task.create(message)
        context_id = sent.context_id or f"ctx-{uuid.uuid4()}"
        task.metadata.update(_metadata(context_id, sent, owner))
        hosted = HostedTask(task, context_id, owner, size)
        self._tasks.add(hosted)
        return hosted

    def _check_types(self, message: Message) -> None:
        """Refuse content of a media type that the agent's card does not name.

        Source:
            wire/a2a.md 19, "Server side".
        """
        taken = {str(kind).lower() for kind in self._engine.card.input_formats}
        for part in message.parts:
            kind = part.media_type or _DEFAULT_TYPES.get(part.kind, "")
            plain = kind.partition(";")[0].strip().lower()
            if plain and taken.isdisjoint((plain, f"{plain.partition('/')[0]}/*", "*/*")):
                raise A2AContentTypeNotSupportedError(
                    f"the agent takes no {plain[:80]!r}, only {', '.join(sorted(taken))}",
                    code=-32005,
                )


def _metadata(context_id: str, sent: Message, owner: Owner) -> dict[str, Any]:
    """Return what a handler finds in the metadata of a task that came over A2A."""
    principal, tenant = owner
    return {
        "session_id": context_id,
        "a2a_context_id": context_id,
        "a2a_message_id": sent.message_id,
        "a2a_inbound": True,
        "a2a_principal_id": principal if isinstance(principal, str) else None,
        "a2a_tenant": tenant or None,
    }


def _answers_with_message(hosted: HostedTask) -> bool:
    """Tell whether the handler wants its last message to be the answer, and no task.

    Source:
        wire/a2a.md 19, "Server side".
    """
    wants = hosted.task.metadata.get("a2a_response_kind") == "message"
    return wants and hosted.state is TaskState.COMPLETED


def _spoken(hosted: HostedTask) -> Message:
    """Return what the agent says in place of a task."""
    said = next((item for item in reversed(hosted.task.messages) if item.role != "user"), None)
    if said is None:
        raise A2AInvalidAgentResponseError(
            "the agent wants to answer with a message and has none", code=-32006
        )
    return message_to_a2a(said, context_id=hosted.context_id)


def _place(hosted: HostedTask) -> tuple[int, str]:
    return hosted.changed_ns, hosted.id


def _place_of(token: str) -> tuple[int, str]:
    moment, dash, id = token.partition("-")
    if not (dash and moment.isascii() and moment.isdigit() and len(moment) < 25):
        raise A2AInvalidParamsError("the pageToken is none of mine", code=-32602)
    return int(moment), id
