"""Message: what a user or an agent says."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import attrs

from protolink_sync.a2a.wire._object import A2AObject
from protolink_sync.a2a.wire._reading import (
    Place,
    list_at,
    members_of,
    object_at,
    others,
    text_at,
    texts_at,
)
from protolink_sync.a2a.wire.part import Part, text_of
from protolink_sync.a2a.wire.states import ROLE_IN_1_0, Role, read_role
from protolink_sync.models import jsonable

__all__ = ["Message", "new_id"]

_KNOWN = frozenset(
    {
        "kind",
        "messageId",
        "role",
        "parts",
        "contextId",
        "taskId",
        "metadata",
        "extensions",
        "referenceTaskIds",
    }
)

_NO_ROLE = (None, ROLE_IN_1_0[Role.UNSPECIFIED])


def new_id() -> str:
    """Make an identifier: a random version-4 UUID.

    Source:
        wire/a2a.md B33.
    """
    return str(uuid.uuid4())


@attrs.define(repr=False, eq=False)
class Message(A2AObject):
    """What a user or an agent says.

    Args:
        parts: The content, in order.
        role: Who says it.
        message_id: Identifier, made if not given.
        context_id: The conversation it belongs to; empty if it names none.
        task_id: The task it belongs to; empty if it names none.
        metadata: Anything about it.
        extensions: URIs of the extensions that have data in ``metadata``.
        reference_task_ids: Tasks it refers to.
        extra: Members this library does not know; written back as they are.

    Source:
        wire/a2a.md 4, "Message", B33-B35.

    >>> Message.user("Hello!").text
    'Hello!'
    """

    parts: list[Part] = attrs.field(factory=list)
    role: Role = Role.USER
    message_id: str = attrs.field(factory=new_id)
    context_id: str = ""
    task_id: str = ""
    metadata: dict[str, Any] = attrs.field(factory=dict)
    extensions: list[str] = attrs.field(factory=list)
    reference_task_ids: list[str] = attrs.field(factory=list)
    extra: dict[str, Any] = attrs.field(factory=dict, kw_only=True)

    @classmethod
    def user(
        cls,
        content: str | Part | Sequence[Part],
        *,
        task_id: str = "",
        context_id: str = "",
        metadata: dict[str, Any] | None = None,
        extensions: Sequence[str] = (),
        reference_task_ids: Sequence[str] = (),
    ) -> Message:
        """Make a message of the user.

        Args:
            content: Text, a part, or parts.
            task_id: The task to continue.
            context_id: The conversation to continue.
            metadata: Anything about it.
            extensions: URIs of the extensions that have data in ``metadata``.
            reference_task_ids: Tasks it refers to.

        Raises:
            TypeError: ``content`` is something else.
        """
        return cls(
            _parts(content),
            context_id=context_id,
            task_id=task_id,
            metadata=dict(metadata or {}),
            extensions=list(extensions),
            reference_task_ids=list(reference_task_ids),
        )

    @classmethod
    def agent(
        cls, content: str | Part | Sequence[Part], *, task_id: str = "", context_id: str = ""
    ) -> Message:
        """Make a message of the agent, as an agent's host answers.

        Raises:
            TypeError: ``content`` is neither text nor parts.
        """
        return cls(_parts(content), Role.AGENT, context_id=context_id, task_id=task_id)

    @property
    def text(self) -> str:
        """Its text parts, joined with nothing between."""
        return text_of(self.parts)

    @classmethod
    def from_dict(cls, data: Any, place: Place = None) -> Message:
        """Read a message in the form of either dialect.

        Args:
            data: The decoded JSON object.
            place: Where it stands in what was received.

        Raises:
            ModelError: It has not the form of a message; ``path`` says where.
        """
        members = members_of(data, "a message", place)
        message = cls(
            list_at(members, "parts", place, Part.from_dict),
            read_role(members.get("role"), (place, "role")),
            text_at(members, "messageId", place),
            text_at(members, "contextId", place),
            text_at(members, "taskId", place),
            object_at(members, "metadata", place),
            texts_at(members, "extensions", place),
            texts_at(members, "referenceTaskIds", place),
            extra=others(members, _KNOWN),
        )
        if message.role is Role.UNSPECIFIED and members.get("role") not in _NO_ROLE:
            message.extra["role"] = members["role"]
        return message

    def to_dict(self) -> dict[str, Any]:
        """Return the form of 1.0.

        Raises:
            TypeError: Some content has no JSON form; the message says where.
            ModelError: Some number is NaN or infinite, or a structure contains itself.
        """
        written: dict[str, Any] = jsonable(self.extra)
        written["messageId"] = self.message_id
        if self.role is not Role.UNSPECIFIED or "role" not in written:
            written["role"] = ROLE_IN_1_0[self.role]
        written["parts"] = [part.to_dict() for part in self.parts]
        if self.context_id:
            written["contextId"] = self.context_id
        if self.task_id:
            written["taskId"] = self.task_id
        if self.metadata:
            written["metadata"] = jsonable(self.metadata)
        if self.extensions:
            written["extensions"] = list(self.extensions)
        if self.reference_task_ids:
            written["referenceTaskIds"] = list(self.reference_task_ids)
        return written

    def copy(self) -> Message:
        """Return a message that shares nothing with this one; the id is the same."""
        return Message(
            [part.copy() for part in self.parts],
            self.role,
            self.message_id,
            self.context_id,
            self.task_id,
            jsonable(self.metadata),
            list(self.extensions),
            list(self.reference_task_ids),
            extra=jsonable(self.extra),
        )


def _parts(content: str | Part | Sequence[Part]) -> list[Part]:
    if isinstance(content, str):
        return [Part(content)]
    if isinstance(content, Part):
        return [content]
    parts = list(content)
    for part in parts:
        if not isinstance(part, Part):
            raise TypeError(f"the content of a message is text or parts, not {type(part).__name__}")
    return parts
