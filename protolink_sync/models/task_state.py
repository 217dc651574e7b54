"""TaskState: where a task stands, and where that may lead."""

from __future__ import annotations

from enum import Enum
from typing import Any

from protolink_sync.models._readers import text

__all__ = ["NEXT_STATES", "STATE_BY_TEXT", "TERMINAL_STATES", "TaskState", "as_state", "read_state"]


class TaskState(Enum):
    """Where a task stands. ``COMPLETED``, ``CANCELED`` and ``FAILED`` are final.

    Source:
        ProtoLink, Models reference, "TaskState".
    """

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input-required"
    COMPLETED = "completed"
    CANCELED = "canceled"
    FAILED = "failed"
    UNKNOWN = "unknown"


STATE_BY_TEXT = {state.value: state for state in TaskState}
TERMINAL_STATES = frozenset({TaskState.COMPLETED, TaskState.CANCELED, TaskState.FAILED})
# Where a state may lead; wire/protolink.md 14, "Measured transitions".
NEXT_STATES: dict[TaskState, frozenset[TaskState]] = {
    TaskState.SUBMITTED: frozenset({TaskState.WORKING, TaskState.CANCELED, TaskState.FAILED}),
    TaskState.WORKING: frozenset({TaskState.INPUT_REQUIRED, *TERMINAL_STATES}),
    TaskState.INPUT_REQUIRED: frozenset({TaskState.WORKING, TaskState.CANCELED, TaskState.FAILED}),
    TaskState.UNKNOWN: frozenset(TaskState),
    **dict.fromkeys(TERMINAL_STATES, frozenset()),
}


def as_state(value: TaskState | str) -> TaskState:
    """Return the state that is given, or whose text is given.

    Raises:
        ValueError: There is no such state.
        TypeError: It is neither state nor text.
    """
    if isinstance(value, TaskState):
        return value
    if not isinstance(value, str):
        raise TypeError(f"a task state is a TaskState or its text, not {type(value).__name__}")
    if value not in STATE_BY_TEXT:
        raise ValueError(f"unknown task state {value!r}; known: {', '.join(STATE_BY_TEXT)}")
    return STATE_BY_TEXT[value]


def read_state(value: Any, _: Any) -> TaskState:
    """Read a state from the wire; the text of an unknown one is kept beside it."""
    return STATE_BY_TEXT.get(text(value), TaskState.UNKNOWN)
