"""What went wrong, as an exit code and as one line."""

from __future__ import annotations

from protolink_sync import (
    A2AClientError,
    AuthenticationError,
    NoResponseMessageError,
    ProtoLinkError,
    StreamInterruptedError,
    TaskExecutionError,
    TaskState,
    TransportConnectionError,
    TransportLimitError,
    TransportProtocolError,
    TransportTimeoutError,
)
from protolink_sync.wire import one_line

__all__ = ["CODES", "INTERRUPTED", "exit_code", "state_code", "words_of"]

# As shells tell it: 128 and the number of the signal.
INTERRUPTED = 130

_FAILED, _USAGE, _CONNECT, _TIME, _AUTH, _PROTOCOL, _TASK, _INPUT = 1, 2, 3, 4, 5, 6, 7, 8

# What the codes mean, for the help.
CODES = """\
Exit codes: 0 success; 1 the agent answered with an error; 2 wrong arguments; 3 no connection, or
it broke; 4 out of time; 5 credentials are missing or not accepted; 6 the answer cannot be
understood; 7 the task failed, was canceled or rejected; 8 the task waits for input;
130 interrupted.
"""

# The first that fits counts.
_BY_KIND: tuple[tuple[type[Exception], int], ...] = (
    (AuthenticationError, _AUTH),
    (TransportTimeoutError, _TIME),
    (StreamInterruptedError, _CONNECT),
    (TransportConnectionError, _CONNECT),
    (TransportProtocolError, _PROTOCOL),
    (TransportLimitError, _PROTOCOL),
    (TaskExecutionError, _TASK),
    (NoResponseMessageError, _TASK),
    (A2AClientError, _FAILED),
    (ProtoLinkError, _FAILED),
    (OSError, _FAILED),
    (ImportError, _FAILED),
    # A caller's mistake, which the library finds before it sends anything.
    (ValueError, _USAGE),
    (TypeError, _USAGE),
)

_FINE = ("submitted", "working", "completed", "unknown", "unspecified")
_WAITING = ("input-required", "input_required", "auth-required", "auth_required")


def exit_code(error: Exception) -> int | None:
    """Return the exit code for an error; None for one that is a mistake of this program."""
    return next((code for kind, code in _BY_KIND if isinstance(error, kind)), None)


def state_code(state: TaskState | str) -> int:
    """Return the exit code for a task that came back in a state.

    >>> state_code("completed"), state_code("failed"), state_code("input-required")
    (0, 7, 8)
    """
    word = str(getattr(state, "value", state)).lower()
    if word in _WAITING:
        return _INPUT
    # A state of nobody is taken for a failure, as by Task.raise_for_status().
    return 0 if word in _FINE else _TASK


def words_of(error: Exception) -> str:
    """Return what an error says, on one line."""
    return one_line(str(error)) or type(error).__name__
