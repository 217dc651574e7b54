"""Sending a failed call once more: when, how often, after which pause."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from protolink_sync._deadline import Deadline
from protolink_sync.config import RetryPolicy
from protolink_sync.errors import TransportError, TransportRemoteError
from protolink_sync.models import ClientRequestSpec

__all__ = ["may_retry", "retry"]

_log = logging.getLogger("protolink_sync.transport.retry")


def may_retry(spec: ClientRequestSpec, policy: RetryPolicy, error: TransportError) -> bool:
    """Return whether spec, policy and error together allow that a call is sent once more."""
    return (
        policy.max_attempts > 1
        and spec.idempotent
        and spec.allow_retries
        and spec.method in policy.retryable_methods
        and error.retryable
    )


def _pause(policy: RetryPolicy, error: BaseException | None, retries: int) -> float:
    """Return the seconds to wait before one retry: the longer of backoff and ``Retry-After``."""
    backoff = policy.delay_before(retries)
    asked = error.retry_after if isinstance(error, TransportRemoteError) else None
    return backoff if asked is None else max(backoff, asked)


def retry(
    first: TransportError,
    attempt: Callable[[int], Any],
    call: Deadline,
    spec: ClientRequestSpec,
    policy: RetryPolicy,
    *,
    ttl: float,
    retried: Callable[[], None],
    planned: Callable[[TransportError, int, float], None],
) -> Any:
    """Repeat a call whose first attempt failed, and return what it brings in the end.

    Args:
        first: Error of the first attempt, which may be retried.
        attempt: Sends the call; gets the number of the attempt, from 2.
        call: Budget of the call; ending it ends a pause too.
        spec: The operation.
        policy: How often and after which pauses.
        ttl: Seconds after the first attempt in which the peer knows the idempotency key; no
            attempt begins later.
        retried: Called before each further attempt.
        planned: Called before each pause, with the error, the number of the attempt that has
            failed, and the seconds of the pause.

    Raises:
        TransportError: The last attempt's, with the earlier ones in ``attempts``.
    """
    # Not at import: most calls succeed at once, and it costs 20 ms.
    import tenacity

    earlier: list[TransportError] = []

    def once_more() -> Any:
        if not earlier:
            earlier.append(first)
            raise first
        try:
            return attempt(len(earlier) + 1)
        except TransportError as error:
            error.attempts = tuple(earlier)
            error.attempt_count = len(earlier) + 1
            earlier.append(error)
            raise

    def wait(state: tenacity.RetryCallState) -> float:
        outcome = state.outcome
        error = outcome.exception() if outcome is not None else None
        return _pause(policy, error, state.attempt_number)

    def stop(state: tenacity.RetryCallState) -> bool:
        pause = state.upcoming_sleep
        asked = earlier[-1].retry_after if isinstance(earlier[-1], TransportRemoteError) else None
        return (
            state.attempt_number >= policy.max_attempts
            or (asked is not None and asked > policy.max_retry_after)
            or pause >= call.remaining()
            or time.monotonic() + pause - call.started > ttl
        )

    def sleep(pause: float) -> None:
        error = earlier[-1]
        _log.info(
            "%s: attempt %d failed (%s), next one in %.2f s",
            spec.name,
            len(earlier),
            type(error).__name__,
            pause,
        )
        planned(error, len(earlier), pause)
        # What ended the attempt, and bounds that were its own, do not end the pause.
        call.renew()
        call.phase = "backoff"
        # An ended call makes the next attempt raise at once, before it sends anything.
        call.wait(pause)
        if call.may_go_on():
            retried()

    return tenacity.Retrying(
        stop=stop,
        wait=wait,
        sleep=sleep,
        retry=tenacity.retry_if_exception(
            lambda error: isinstance(error, TransportError) and may_retry(spec, policy, error)
        ),
        reraise=True,
    )(once_more)
