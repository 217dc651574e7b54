"""What is the same in the errors of all transports."""

from __future__ import annotations

import errno

from protolink_sync.errors import (
    CallCancelledError,
    ClientClosedError,
    ProtoLinkError,
    TransportError,
    TransportTimeoutError,
)
from protolink_sync.transport._call import Call
from protolink_sync.wire import TransportRequestContext

__all__ = ["describe", "ended_error"]

# The bounds that can end a call, as the caller knows them.
_LIMITS = {
    "connect": "connect_timeout",
    "attempt": "RetryPolicy.attempt_timeout",
    "idle": "idle_timeout",
}


def ended_error(call: Call, context: TransportRequestContext, details: str = "") -> ProtoLinkError:
    """Return the error of a call that was ended from outside.

    Args:
        call: The call; its ``ended`` says how.
        context: Who the call is.
        details: What a time-out has to say beyond the limit and the phase.
    """
    phase, where = call.phase, context.where
    if call.ended == "closed":
        return ClientClosedError(f"{where}: the client was closed during the call")
    if call.ended == "cancelled":
        because = f": {call.reason}" if call.reason else ""
        return CallCancelledError(
            f"{where}: cancelled by its token while in phase {phase!r}{because}",
            reason=call.reason,
            url=context.url,
            phase=phase,
        )
    how = call.ended or ""
    running = (
        ". The task may be running at the peer: cancel_task ends it"
        if call.submits and phase in ("send", "wait", "read")
        else ""
    )
    return TransportTimeoutError(
        f"{where}: {_LIMITS.get(how, 'timeout')} of {call.limit_seconds(how):g} s is over, "
        f"in phase {phase!r}{details}{running}",
        url=context.url,
        request_id=context.request_id,
        retryable=how in ("connect", "attempt"),
        phase=phase,
        elapsed=call.elapsed(),
    )


def describe(error: TransportError, call: Call, context: TransportRequestContext) -> None:
    """Write on an error which call it is about."""
    error.url = error.url or context.url
    error.request_id = error.request_id or context.request_id
    error.phase = error.phase or call.phase
    error.elapsed = call.elapsed()
    if isinstance(error, OSError) and error.errno is None:
        error.errno = _errno(error)


def _errno(error: TransportError) -> int | None:
    """Return the system's number for an error: ETIMEDOUT, or that of its cause."""
    if isinstance(error, TransportTimeoutError):
        return errno.ETIMEDOUT
    cause = error.__cause__
    return cause.errno if isinstance(cause, OSError) else None
