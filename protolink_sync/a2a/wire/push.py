"""Push notifications: what an agent posts to the address of a push configuration."""

from __future__ import annotations

from typing import Any

from protolink_sync.a2a.wire.events import StreamEvent

__all__ = ["read_notification"]


def read_notification(value: Any) -> StreamEvent:
    """Read the body of a notification, of either dialect.

    Who receives it checks the token and the ``Authorization`` first.

    Args:
        value: The decoded body: an event as on a stream of 1.0, or a bare object of 0.3.

    Returns:
        The event; of an unknown kind, an event with nothing set.

    Raises:
        ModelError: It is no object, or one of a known kind that has not its form.

    Source:
        wire/a2a.md B74, B75.
    """
    return StreamEvent.from_dict(value)
