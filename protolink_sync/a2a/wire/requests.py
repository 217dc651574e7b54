"""The parameters of 1.0 as an agent's host receives them, stricter than what a client reads.

Whatever is missing or wrong raises :class:`~protolink_sync.errors.ModelError` with its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

import attrs

from protolink_sync.a2a.wire._reading import (
    Place,
    flag_at,
    number_at,
    object_at,
    required_text_at,
    text_at,
    unexpected,
)
from protolink_sync.a2a.wire.params import MessageSendParams
from protolink_sync.a2a.wire.states import TaskState

__all__ = ["ListRequest", "SendRequest", "TaskRequest"]

_CONTENTS = ("text", "raw", "url", "data")
_PAGE_SIZE = 50
_LARGEST_PAGE = 100
_STATE_PREFIX = "TASK_STATE_"
_NO_STATE = "TASK_STATE_UNSPECIFIED"
_LONGEST_MOMENT = 64  # characters; what callers write is looked at twice


@attrs.frozen
class SendRequest:
    """What is asked for by ``SendMessage`` and ``SendStreamingMessage``.

    Args:
        params: The message, and how to answer it.
        tenant: On whose behalf; empty if nobody is named.
    """

    params: MessageSendParams
    tenant: str = ""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SendRequest:
        """Read the parameters.

        Raises:
            ModelError: They are not whole, or a part has no content or several.
        """
        from protolink_sync.a2a.wire.v1_0 import V1_0

        params = V1_0.read_send_params(data)
        for index, part in enumerate(data["message"]["parts"]):
            found = [name for name in _CONTENTS if _is_set(part, name)]
            if len(found) != 1:
                place = (((None, "message"), "parts"), index)
                raise unexpected(f"one of {', '.join(_CONTENTS)}", part, place)
        return cls(params, text_at(data, "tenant", None))


@attrs.frozen
class TaskRequest:
    """What is asked for by ``GetTask``, ``CancelTask`` and ``SubscribeToTask``.

    Args:
        id: The task.
        tenant: On whose behalf; empty if nobody is named.
        history_length: How many of its messages to tell; None leaves it to the host.
        metadata: Anything about the call.
    """

    id: str
    tenant: str = ""
    history_length: int | None = None
    metadata: dict[str, Any] = attrs.field(factory=dict)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TaskRequest:
        """Read the parameters.

        Raises:
            ModelError: The id is missing, or a member has the wrong type.
        """
        return cls(
            required_text_at(data, "id", None),
            text_at(data, "tenant", None),
            _number_between(data, "historyLength", 0, None),
            object_at(data, "metadata", None),
        )


@attrs.frozen
class ListRequest:
    """What is asked for by ``ListTasks``.

    Args:
        tenant: On whose behalf; empty if nobody is named.
        context_id: Only the tasks of one conversation; empty for all.
        state: Only the tasks in one state; None for all.
        page_size: How many at most.
        page_token: Where to go on; empty at the beginning.
        history_length: How many messages of each to tell; None leaves it to the host.
        changed_since: Only the tasks whose status changed then or later, in nanoseconds since
            1970; None for all.
        with_artifacts: Whether to tell what they brought forth.
    """

    tenant: str = ""
    context_id: str = ""
    state: TaskState | None = None
    page_size: int = _PAGE_SIZE
    page_token: str = ""
    history_length: int | None = None
    changed_since: int | None = None
    with_artifacts: bool = False

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ListRequest:
        """Read the parameters.

        Raises:
            ModelError: A member has the wrong type or is out of its range.

        Source:
            wire/a2a.md 3, B23.
        """
        size = _number_between(data, "pageSize", 1, _LARGEST_PAGE)
        return cls(
            text_at(data, "tenant", None),
            text_at(data, "contextId", None),
            _state_at(data, "status"),
            _PAGE_SIZE if size is None else size,
            text_at(data, "pageToken", None),
            _number_between(data, "historyLength", 0, None),
            _moment_at(data, "statusTimestampAfter"),
            flag_at(data, "includeArtifacts", None) or False,
        )


def _is_set(part: Mapping[str, Any], name: str) -> bool:
    """Tell whether a part has some content; null is content only as data."""
    return name in part if name == "data" else part.get(name) is not None


def _number_between(
    members: Mapping[str, Any], name: str, least: int, most: int | None
) -> int | None:
    number = number_at(members, name, None)
    if number is None or (number >= least and (most is None or number <= most)):
        return number
    bounds = f"{least} or more" if most is None else f"a number from {least} to {most}"
    raise unexpected(bounds, number, (None, name))


def _state_at(members: Mapping[str, Any], name: str) -> TaskState | None:
    word = text_at(members, name, None)
    if word in ("", _NO_STATE):
        return None
    state = TaskState.__members__.get(word.removeprefix(_STATE_PREFIX))
    if state is None or not word.startswith(_STATE_PREFIX):
        raise unexpected("a state of A2A", word, (None, name))
    return state


def _moment_at(members: Mapping[str, Any], name: str) -> int | None:
    text = text_at(members, name, None)
    if not text:
        return None
    place: Place = (None, name)
    if len(text) > _LONGEST_MOMENT:
        raise unexpected("a timestamp as in ISO 8601", text, place)
    # datetime takes neither Z (Python 3.10) nor more than six digits of a second.
    plain = re.sub(r"(\.\d{1,6})\d*", lambda found: found[1].ljust(7, "0"), text)
    try:
        moment = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", plain))
    except ValueError as exc:
        raise unexpected("a timestamp as in ISO 8601", text, place) from exc
    if moment.tzinfo is None:
        raise unexpected("a timestamp with a time zone", text, place)
    since = moment - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1_000
