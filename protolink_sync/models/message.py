"""Message: what one side says in a task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from protolink_sync.models._converter import structure
from protolink_sync.models._ids import new_id
from protolink_sync.models._json import ODD, jsonable
from protolink_sync.models._members import LazyExtra, brief
from protolink_sync.models._readers import identifier, nullable_text
from protolink_sync.models._time import utc_now
from protolink_sync.models.part import Part, read_parts, text_of, write_parts
from protolink_sync.types import MessageRoleType

__all__ = ["Message"]


@attrs.define(repr=False, eq=False)
class Message(LazyExtra):
    """One message: who speaks, and the parts of what is said.

    Args:
        id: Identifier, made if not given. A peer's may be any JSON scalar; it is kept as it is.
        role: Who speaks. Words that are not in
            :data:`~protolink_sync.types.MessageRoleType` are kept.
        parts: The content, in order.
        timestamp: When it was made, as ISO 8601 text. A peer's text is kept as it is, null too.
        extra: Members this library does not know; written back as they are.

    Source:
        ProtoLink, Models reference, "Message"; wire/protolink.md 14.

    >>> Message.user("What's the weather?").parts
    [Part(type='text', content="What's the weather?")]
    """

    id: str = attrs.field(factory=new_id, metadata={"read": identifier})
    role: MessageRoleType | str = attrs.field(default="user", metadata={"read": nullable_text})
    parts: list[Part] = attrs.field(factory=list)
    timestamp: str = attrs.field(factory=utc_now, metadata={"read": nullable_text})

    # ---- JSON ----

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Message:
        """Read a message from its JSON form.

        Raises:
            ModelError: It has not the form of a message; ``path`` says where.
        """
        if cls is Message:
            try:
                return read_messages([data])[0]
            except ODD:
                pass
        return structure(cls, data)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form.

        Raises:
            TypeError: Some content has no JSON form, such as ``bytes``; the message says where.
            ModelError: It holds NaN, an infinity, or itself.
        """
        try:
            return write_messages([self])[0]
        except ODD:
            return super().to_dict()

    # ---- making ----

    @classmethod
    def user(cls, text: str) -> Message:
        """Make a message of a user from text."""
        return cls(role="user", parts=[Part.text(text)])

    @classmethod
    def agent(cls, text: str) -> Message:
        """Make a message of an agent from text."""
        return cls(role="agent", parts=[Part.text(text)])

    @classmethod
    def assistant(cls, text: str) -> Message:
        """Make a message of an assistant from text."""
        return cls(role="assistant", parts=[Part.text(text)])

    @classmethod
    def infer(
        cls,
        prompt: str | None = None,
        user: str | None = None,
        output_schema: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Message:
        """Make a user's message that asks the agent's language model; see :meth:`Part.infer`."""
        return cls(role="user", parts=[Part.infer(prompt, user, output_schema, metadata)])

    @classmethod
    def tool_call(
        cls,
        tool_name: str,
        args: dict[str, Any] | None = None,
        call_id: str | None = None,
    ) -> Message:
        """Make a user's message that asks for one tool call; see :meth:`Part.tool_call`."""
        return cls(role="user", parts=[Part.tool_call(tool_name, args, call_id)])

    @classmethod
    def route(
        cls,
        route_key: str,
        *,
        reason: str | None = None,
        confidence: float | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Message:
        """Make an agent's message that holds a decision; see :meth:`Part.route`."""
        part = Part.route(route_key, reason=reason, confidence=confidence, metadata=metadata)
        return cls(role="agent", parts=[part])

    # ---- content ----

    def add_text(self, text: str) -> Message:
        """Add a part of text and return the message."""
        self.parts.append(Part.text(text))
        return self

    def add_part(self, part: Part) -> Message:
        """Add a part and return the message."""
        self.parts.append(part)
        return self

    @property
    def text(self) -> str:
        """The text of the message: its text parts, joined with nothing between."""
        return text_of(self.parts)

    def __repr__(self) -> str:
        return f"Message(id={brief(self.id)}, role={self.role!r}, parts={brief(self.parts)})"


_new = object.__new__


def read_messages(values: Any) -> list[Message]:
    """Read a list of messages: the usual ones at once, others through the converter.

    Raises:
        TypeError, ValueError, ...: As :func:`~protolink_sync.models.part.read_parts`.
    """
    if type(values) is not list:
        if values is None:
            return []
        raise TypeError
    messages: list[Message] = []
    append = messages.append
    for value in values:
        if len(value) == 4:
            try:
                identity, role, moment = value["id"], value["role"], value["timestamp"]
                parts = value["parts"]
            except KeyError:
                pass
            else:
                if type(identity) is str and type(role) is str and type(moment) is str:
                    message = _new(Message)
                    message.id = identity
                    message.role = role
                    message.parts = read_parts(parts)
                    message.timestamp = moment
                    message._extra = None
                    append(message)
                    continue
        append(structure(Message, value))
    return messages


def write_messages(messages: list[Message]) -> list[dict[str, Any]]:
    """Return the JSON forms of messages.

    Raises:
        TypeError, ValueError, ...: As :func:`~protolink_sync.models.part.write_parts`.
    """
    values: list[dict[str, Any]] = []
    for message in messages:
        identity, role, moment = message.id, message.role, message.timestamp
        if (
            type(identity) is str
            and type(role) is str
            and type(moment) is str
            and not message._extra
        ):
            parts = write_parts(message.parts)
            values.append({"id": identity, "role": role, "parts": parts, "timestamp": moment})
        else:
            values.append(jsonable(message))
    return values
