"""How results are read, in both dialects alike."""

from __future__ import annotations

from typing import Any

from protolink_sync.a2a.wire._reading import (
    Place,
    list_at,
    members_of,
    path_of,
    text_at,
)
from protolink_sync.a2a.wire.events import StreamEvent, content_of
from protolink_sync.a2a.wire.message import Message
from protolink_sync.a2a.wire.params import PushNotificationConfig, TaskPage
from protolink_sync.a2a.wire.states import Role
from protolink_sync.a2a.wire.task import Task
from protolink_sync.errors import ModelError

__all__ = ["Parsing"]


class Parsing:
    """The reading half of a dialect: peers mix the forms, so each reads both.

    Source:
        wire/a2a.md B27.
    """

    __slots__ = ()

    def parse_send(self, value: Any) -> Task:
        """Read the result of a send.

        Raises:
            ModelError: It is null, or neither a task nor a message.
        """
        kind, content, place = content_of(members_of(value, "a task or a message", None), None)
        if kind == "message":
            return Task.of_message(_answer(Message.from_dict(content, place)))
        if kind == "task":
            return Task.from_dict(content, place)
        raise _neither(value, "neither a task nor a message")

    def parse_task(self, value: Any) -> Task:
        """Read a task, also one that is wrapped.

        Raises:
            ModelError: It is no task.
        """
        members = members_of(value, "a task", None)
        if "status" not in members and members.get("task") is not None:
            return Task.from_dict(members["task"], (None, "task"))
        return Task.from_dict(members)

    def parse_event(self, value: Any) -> StreamEvent:
        """Read one event of a stream; of an unknown kind, an event with nothing set.

        Raises:
            ModelError: It is no object, or one of a known kind that has not its form.
        """
        event = StreamEvent.from_dict(value)
        if event.message is not None:
            _answer(event.message)
        return event

    def parse_page(self, value: Any) -> TaskPage:
        """Read a page of tasks.

        Raises:
            ModelError: It is no page.
        """
        return TaskPage.from_dict(value)

    def parse_push(self, value: Any) -> PushNotificationConfig:
        """Read a push configuration, flat or nested.

        Raises:
            ModelError: It is none.
        """
        return PushNotificationConfig.from_dict(value)

    def parse_pushes(self, value: Any) -> tuple[list[PushNotificationConfig], str]:
        """Read a list of push configurations: bare as in 0.3, or a page as in 1.0.

        Raises:
            ModelError: It is none.
        """
        if type(value) is list:
            return [_push(item, (None, index)) for index, item in enumerate(value)], ""
        members = members_of(value, "push configurations", None)
        configs = list_at(members, "configs", None, _push)
        return configs, text_at(members, "nextPageToken", None)


def _answer(message: Message) -> Message:
    """Return a message that may stand for a finished task: it says something, and not the user."""
    if not message.parts:
        raise ModelError(f"a message without parts is no answer @ {path_of(None)}", path="$")
    if message.role is Role.USER:
        raise ModelError(f"a message of the user is no answer @ {path_of(None)}", path="$")
    return message


def _push(value: Any, place: Place) -> PushNotificationConfig:
    return PushNotificationConfig.from_dict(value, place)


def _neither(value: Any, what: str) -> ModelError:
    names = ", ".join(sorted(str(name) for name in value)[:5]) or "nothing"
    return ModelError(f"{what}: it has {names} @ {path_of(None)}", path="$")
