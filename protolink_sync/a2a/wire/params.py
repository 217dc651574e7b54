"""What goes with calls: how to send a message, where to push, and pages of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from protolink_sync.a2a.wire._object import A2AObject
from protolink_sync.a2a.wire._reading import (
    Place,
    flag_at,
    list_at,
    members_of,
    number_at,
    object_at,
    others,
    required_text_at,
    text_at,
    texts_at,
    unexpected,
)
from protolink_sync.a2a.wire.message import Message
from protolink_sync.a2a.wire.task import Task

__all__ = ["MessageSendParams", "PushNotificationConfig", "SendConfiguration", "TaskPage"]

_PUSH = frozenset({"id", "taskId", "url", "token", "authentication"})
_CONFIGURATION = frozenset(
    {"acceptedOutputModes", "taskPushNotificationConfig", "historyLength", "returnImmediately"}
)
_SEND = frozenset({"message", "configuration", "metadata"})
_PAGE = frozenset({"tasks", "nextPageToken", "pageSize", "totalSize"})


def _check_length(_: Any, field: attrs.Attribute[Any], value: Any) -> None:
    if value is None:
        return
    if type(value) is not int:
        raise TypeError(f"{field.name} is {type(value).__name__}, must be an int or None")
    if value < 0:
        raise ValueError(f"{field.name} is {value}, must be 0 or more")


def _texts(values: Sequence[str]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise TypeError(f"expected a list of texts, got the text {values!r}")
    return tuple(values)


@attrs.define(repr=False, eq=False)
class PushNotificationConfig(A2AObject):
    """Where and how an agent reports the events of a task.

    Args:
        url: The address it posts to.
        id: Identifier; the agent makes one if not given.
        task_id: The task it belongs to.
        token: What the agent sends back with each report, so that the receiver knows it.
        schemes: Names of the authentication the receiver asks for, such as ``Bearer``. 1.0 has
            room for one.
        credentials: What the agent presents to the receiver.
        extra: Members this library does not know; written back as they are.

    Source:
        wire/a2a.md 3, 11.
    """

    url: str
    id: str = ""
    task_id: str = ""
    token: str = attrs.field(default="", repr=False)
    schemes: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    credentials: str = attrs.field(default="", repr=False)
    extra: dict[str, Any] = attrs.field(factory=dict, kw_only=True)

    @classmethod
    def from_dict(cls, data: Any, place: Place = None) -> PushNotificationConfig:
        """Read a configuration: flat as in 1.0, or nested as in 0.3.

        Raises:
            ModelError: It has not that form; ``path`` says where.
        """
        members = members_of(data, "a push configuration", place)
        task_id = text_at(members, "taskId", place)
        if members.get("pushNotificationConfig") is not None:
            place = (place, "pushNotificationConfig")
            members = members_of(members["pushNotificationConfig"], "an object", place)
        given = object_at(members, "authentication", place)
        inside = (place, "authentication")
        scheme = text_at(given, "scheme", inside)
        return cls(
            required_text_at(members, "url", place),
            text_at(members, "id", place),
            task_id or text_at(members, "taskId", place),
            text_at(members, "token", place),
            (scheme,) if scheme else texts_at(given, "schemes", inside),
            text_at(given, "credentials", inside),
            extra=others(members, _PUSH),
        )


@attrs.define(repr=False, eq=False)
class SendConfiguration(A2AObject):
    """How the agent should answer a message.

    Args:
        accepted_output_modes: Media types the caller takes.
        history_length: At most so many of the latest messages come back; None leaves it to the
            agent, 0 asks for none (0.3 agents may read 0 as no limit).
        return_immediately: True: the task comes back before it is done. None is the default of
            the protocol, which is to wait.
        push_config: Where the agent reports the events of the task.
        extra: Members this library does not know; written back as they are.

    Raises:
        ValueError: ``history_length`` is negative.

    Source:
        wire/a2a.md 3, B20-B22.
    """

    accepted_output_modes: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    history_length: int | None = attrs.field(default=None, validator=_check_length)
    return_immediately: bool | None = None
    push_config: PushNotificationConfig | None = None
    extra: dict[str, Any] = attrs.field(factory=dict, kw_only=True)

    @classmethod
    def from_dict(cls, data: Any, place: Place = None) -> SendConfiguration:
        """Read a configuration in the form of 1.0.

        Raises:
            ModelError: It has not that form; ``path`` says where.
        """
        members = members_of(data, "a configuration", place)
        length = number_at(members, "historyLength", place)
        if length is not None and length < 0:
            raise unexpected("0 or more", length, (place, "historyLength"))
        push = members.get("taskPushNotificationConfig")
        inside = (place, "taskPushNotificationConfig")
        return cls(
            texts_at(members, "acceptedOutputModes", place),
            length,
            flag_at(members, "returnImmediately", place),
            None if push is None else PushNotificationConfig.from_dict(push, inside),
            extra=others(members, _CONFIGURATION),
        )


@attrs.define(repr=False, eq=False)
class MessageSendParams(A2AObject):
    """A message and how to send it.

    Args:
        message: What to send; a client sends as the user, whatever its role says.
        configuration: How the agent should answer.
        metadata: Anything about the call.
        extra: Members this library does not know; written back as they are. Of a request
            that was read, the ``tenant`` stands here.
    """

    message: Message
    configuration: SendConfiguration | None = None
    metadata: dict[str, Any] | None = None
    extra: dict[str, Any] = attrs.field(factory=dict, kw_only=True)

    @classmethod
    def from_dict(cls, data: Any, place: Place = None) -> MessageSendParams:
        """Read the parameters in the form of 1.0.

        Raises:
            ModelError: They have not that form; ``path`` says where.
        """
        members = members_of(data, "parameters", place)
        configuration = members.get("configuration")
        inside = (place, "configuration")
        return cls(
            Message.from_dict(members.get("message"), (place, "message")),
            None if configuration is None else SendConfiguration.from_dict(configuration, inside),
            object_at(members, "metadata", place) or None,
            extra=others(members, _SEND),
        )


@attrs.define(repr=False, eq=False)
class TaskPage(A2AObject):
    """One page of a list of tasks.

    Args:
        tasks: The tasks, those whose status changed last first.
        next_page_token: What to ask the next page with; empty on the last.
        page_size: How many tasks a page may have; None if the agent does not say.
        total_size: How many tasks there are on all pages; None if the agent does not say.
        extra: Members this library does not know.

    Source:
        wire/a2a.md 3, B23.
    """

    tasks: list[Task] = attrs.field(factory=list)
    next_page_token: str = ""
    page_size: int | None = None
    total_size: int | None = None
    extra: dict[str, Any] = attrs.field(factory=dict, kw_only=True)

    @classmethod
    def from_dict(cls, data: Any, place: Place = None) -> TaskPage:
        """Read a page.

        Raises:
            ModelError: It has not the form of a page; ``path`` says where.
        """
        members = members_of(data, "a page of tasks", place)
        return cls(
            list_at(members, "tasks", place, Task.from_dict),
            text_at(members, "nextPageToken", place),
            number_at(members, "pageSize", place),
            number_at(members, "totalSize", place),
            extra=others(members, _PAGE),
        )
