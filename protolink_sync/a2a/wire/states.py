"""The words of A2A: states of tasks, roles of messages, and the two dialects."""

from __future__ import annotations

from enum import Enum
from typing import Any

from protolink_sync.a2a.wire._reading import Place, unexpected

__all__ = [
    "ROLE_IN_0_3",
    "ROLE_IN_1_0",
    "STATE_IN_1_0",
    "Role",
    "TaskState",
    "WireDialect",
    "read_role",
    "read_state",
]


class WireDialect(Enum):
    """The two forms of A2A on the wire."""

    V1_0 = "1.0"
    V0_3 = "0.3"


class TaskState(Enum):
    """Where an A2A task stands; the value is the word of 0.3.

    Source:
        wire/a2a.md 4, "states", "terminal", "interrupted".
    """

    SUBMITTED = "submitted"
    WORKING = "working"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    INPUT_REQUIRED = "input-required"
    REJECTED = "rejected"
    AUTH_REQUIRED = "auth-required"
    UNKNOWN = "unknown"

    @property
    def is_terminal(self) -> bool:
        """True for completed, failed, canceled and rejected: nothing more will happen."""
        return self in _TERMINAL

    @property
    def is_interrupted(self) -> bool:
        """True for input-required and auth-required: the task waits for the caller."""
        return self in _INTERRUPTED


class Role(Enum):
    """Who wrote a message; the value is the word of 0.3."""

    USER = "user"
    AGENT = "agent"
    UNSPECIFIED = "unspecified"


_TERMINAL = frozenset(
    {TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED}
)
_INTERRUPTED = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})

STATE_IN_1_0 = {
    state: "TASK_STATE_" + state.name for state in TaskState if state is not TaskState.UNKNOWN
} | {TaskState.UNKNOWN: "TASK_STATE_UNSPECIFIED"}
ROLE_IN_1_0 = {role: "ROLE_" + role.name for role in Role}
# 0.3 has no word for a role that is not given; what a client sends is the user's.
ROLE_IN_0_3 = {Role.USER: "user", Role.AGENT: "agent", Role.UNSPECIFIED: "user"}

_STATE_BY_TEXT = {
    **{state.value: state for state in TaskState},
    **{text: state for state, text in STATE_IN_1_0.items()},
    # The spelling of the 0.3 protobuf definition.
    "TASK_STATE_CANCELLED": TaskState.CANCELED,
    "cancelled": TaskState.CANCELED,
}
_ROLE_BY_TEXT = {
    "user": Role.USER,
    "agent": Role.AGENT,
    **{text: role for role, text in ROLE_IN_1_0.items()},
}


def read_state(value: Any, place: Place) -> tuple[TaskState, str | None]:
    """Read a state in either spelling; of one that nobody knows, its text too.

    A number is what a protobuf peer prints for a state that its own definition does not name.
    """
    if type(value) is int:
        return TaskState.UNKNOWN, str(value)
    if type(value) is not str:
        raise unexpected("a string", value, place)
    state = _STATE_BY_TEXT.get(value, TaskState.UNKNOWN)
    return state, value if state is TaskState.UNKNOWN else None


def read_role(value: Any, place: Place) -> Role:
    """Read a role in either spelling; one that nobody knows is unspecified."""
    if value is None or type(value) is int:
        return Role.UNSPECIFIED
    if type(value) is not str:
        raise unexpected("a string", value, place)
    return _ROLE_BY_TEXT.get(value, Role.UNSPECIFIED)
