"""What both dialects do when they write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from protolink_sync.a2a.wire.message import Message, new_id
from protolink_sync.a2a.wire.states import Role

__all__ = ["extension_list", "given", "outgoing"]


def given(**members: Any) -> dict[str, Any]:
    """Leave out the members that were not given: None and ``""``, but not 0 and False."""
    return {name: value for name, value in members.items() if value is not None and value != ""}


def outgoing(message: Message) -> Message:
    """Return a message as a client sends it: by the user, with an id, and with content.

    Raises:
        ValueError: It has no parts, or one of them has no content.

    Source:
        wire/a2a.md B33, B34.
    """
    if not message.parts:
        raise ValueError("a message needs at least one part")
    for index, part in enumerate(message.parts):
        if part.kind == "unknown" and not part.extra:
            raise ValueError(f"part {index} of the message has no content")
    if message.role is Role.USER and message.message_id:
        return message
    return attrs.evolve(message, role=Role.USER, message_id=message.message_id or new_id())


def extension_list(extensions: Sequence[str]) -> str:
    """Return extensions as the value of a header.

    Raises:
        ValueError: One is no URI that a header can carry.

    Source:
        wire/a2a.md B65.
    """
    for uri in extensions:
        if not uri or not uri.isascii() or not uri.isprintable() or " " in uri or "," in uri:
            raise ValueError(f"extension {uri!r} is no URI that a header can carry")
    return ",".join(extensions)
