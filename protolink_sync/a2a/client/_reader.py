"""The results on a stream as events, and where the stream may end."""

from __future__ import annotations

from typing import Any

from protolink_sync.a2a.wire import Dialect, StreamEvent, ends_stream
from protolink_sync.errors import ModelError

__all__ = ["Reader"]


class Reader:
    """Read the results of one stream (the worker).

    Args:
        dialect: What the stream speaks.
        task_id: The task, if it is known; empty if not.
        stop_on_interrupted: Whether a task that waits for the caller ends the stream.
        is_subscription: Whether the first event only tells where the task stands.

    Attributes:
        may_end: Whether the connection may end now without being cut (B43).
    """

    def __init__(
        self,
        dialect: Dialect,
        *,
        task_id: str = "",
        stop_on_interrupted: bool = True,
        is_subscription: bool = False,
    ) -> None:
        self._dialect = dialect
        self._task_id = task_id
        self._stop_on_interrupted = stop_on_interrupted
        self._opens = is_subscription
        self.may_end = False

    def read(self, value: Any) -> tuple[StreamEvent, bool]:
        """Return an event, and whether it is the last.

        Raises:
            ModelError: It has not the form of an event, or is about another task.
        """
        event = self._dialect.parse_event(value)
        if self._task_id and event.task_id and event.task_id != self._task_id:
            raise ModelError(
                f"an event of task {event.task_id!r} in the stream of task {self._task_id!r}"
            )
        self._task_id = self._task_id or event.task_id
        is_last = ends_stream(
            event,
            dialect=self._dialect.wire,
            stop_on_interrupted=self._stop_on_interrupted,
            is_opening_of_subscription=self._opens,
        )
        self._opens = False
        if event.state is not None:
            self.may_end = event.is_final or event.state.is_interrupted
        return event, is_last
