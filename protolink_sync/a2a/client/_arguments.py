"""What callers give, checked before anything is sent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from protolink_sync._deadline import seconds
from protolink_sync.a2a.client._budget import Budget
from protolink_sync.a2a.wire import Message, MessageSendParams, SendConfiguration
from protolink_sync.security import check_header

__all__ = [
    "bound",
    "check_count",
    "check_id",
    "check_switch",
    "checked_extensions",
    "idle_seconds",
    "left",
    "send_params",
]

# What is left of a budget that is spent, as a timeout: the next request ends at once.
_SHORTEST = 1e-6


def bound(name: str, timeout: float) -> float:
    """Return a duration of which 0 means none.

    Raises:
        TypeError: It is no number.
        ValueError: It is negative or NaN.
    """
    is_none = timeout == 0 and not isinstance(timeout, bool)
    return math.inf if is_none else seconds(name, timeout)


def check_switch(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}, must be True or False")


def check_id(id: Any) -> None:
    if not isinstance(id, str) or not id:
        raise ValueError(f"the id is {id!r}, must be a text that is not empty")


def check_count(name: str, value: int | None, *, least: int) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is {value!r}, must be an int or None")
    if value < least:
        raise ValueError(f"{name} is {value}, must be {least} or more")


def checked_extensions(extensions: Sequence[str]) -> tuple[str, ...]:
    if isinstance(extensions, str) or not all(isinstance(uri, str) for uri in extensions):
        raise TypeError(f"extensions is {extensions!r}, must be a sequence of URIs")
    for uri in extensions:
        check_header("A2A-Extensions", uri, what="extensions")
        if not uri or "," in uri or " " in uri:
            raise ValueError(f"extensions has {uri!r}, which is no URI")
    return tuple(extensions)


def idle_seconds(idle_timeout: float | None) -> float:
    return math.inf if idle_timeout is None else seconds("idle_timeout", idle_timeout)


def left(budget: Budget) -> float:
    """Return what is left of a budget as a timeout, which cannot be 0."""
    return max(budget.remaining(), _SHORTEST)


def send_params(
    message: str | Message | MessageSendParams,
    task_id: str,
    context_id: str,
    configuration: SendConfiguration | None,
    metadata: Mapping[str, Any] | None,
) -> MessageSendParams:
    if isinstance(message, MessageSendParams):
        if task_id or context_id or configuration is not None or metadata is not None:
            raise TypeError(
                "MessageSendParams say all themselves: give task_id, context_id, configuration "
                "and metadata in them"
            )
        return message
    if isinstance(message, str):
        message = Message.user(message, task_id=task_id, context_id=context_id)
    elif not isinstance(message, Message):
        raise TypeError(
            f"message is a {type(message).__name__}, must be a str, or a Message or "
            "MessageSendParams of protolink_sync.a2a"
        )
    elif task_id or context_id:
        message = attrs.evolve(
            message,
            task_id=task_id or message.task_id,
            context_id=context_id or message.context_id,
        )
    return MessageSendParams(message, configuration, dict(metadata) if metadata else None)
