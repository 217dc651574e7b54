"""Sending a failed call once more: when, how often, after which pause."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from protolink_sync._deadline import Deadline
from protolink_sync.config import RetryPolicy
from protolink_sync.errors import TransportError, TransportRemoteError
from protolink_sync.models import ClientRequestSpec

if TYPE_CHECKING:
    import tenacity

__all__ = ["Retries", "may_retry"]

_log = logging.getLogger("protolink_sync.transport.retry")

# What an attempt returns that brought no answer.
_FAILED = object()


def may_retry(spec: ClientRequestSpec, policy: RetryPolicy, error: TransportError) -> bool:
    """Return whether spec, policy and error together allow that a call is sent once more."""
    return (
        policy.max_attempts > 1
        and spec.idempotent
        and spec.allow_retries
        and spec.method in policy.retryable_methods
        and error.retryable
    )


def _pause(policy: RetryPolicy, error: TransportError, retries: int) -> float:
    """Return the seconds to wait before one retry: the longer of backoff and ``Retry-After``."""
    backoff = policy.delay_before(retries)
    asked = error.retry_after if isinstance(error, TransportRemoteError) else None
    return backoff if asked is None else max(backoff, asked)


class Retries:
    """The further attempts of one call whose first one failed, as tenacity asks for them.

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
    """

    def __init__(
        self,
        first: TransportError,
        attempt: Callable[[int], Any],
        call: Deadline,
        spec: ClientRequestSpec,
        policy: RetryPolicy,
        *,
        ttl: float,
        retried: Callable[[], None],
        planned: Callable[[TransportError, int, float], None],
    ) -> None:
        # The first attempt was made; tenacity begins with it.
        self._errors = [first]
        self._other: BaseException | None = None
        self._is_first = True
        self._attempt = attempt
        self._call = call
        self._spec = spec
        self._policy = policy
        self._ttl = ttl
        self._retried = retried
        self._planned = planned

    def run(self) -> Any:
        """Return what the attempts bring in the end; once.

        Raises:
            TransportError: The last attempt's, with the earlier ones in ``attempts``.
            BaseException: What else ended an attempt.
        """
        # Not at import: most calls succeed at once, and it costs 20 ms.
        import tenacity

        retrying = tenacity.Retrying(
            stop=self._stops,
            wait=self._pause,
            sleep=self._sleep,
            retry=tenacity.retry_if_result(self._goes_on),
            retry_error_callback=lambda _: _FAILED,
        )
        try:
            result = retrying(self._once_more)
            if result is _FAILED:
                raise self._errors[-1] if self._other is None else self._other
            return result
        finally:
            # The errors hold this frame, and tenacity, in a ring of its own, the rest.
            vars(self).clear()

    def _once_more(self) -> Any:
        if self._is_first:
            self._is_first = False
            return _FAILED
        number = len(self._errors) + 1
        try:
            return self._attempt(number)
        except TransportError as error:
            error.attempts = tuple(self._errors)
            error.attempt_count = number
            self._errors.append(error)
        except BaseException as error:
            self._other = error
        # Not raised: tenacity would keep it in frames of its own, which the error holds.
        return _FAILED

    def _goes_on(self, result: Any) -> bool:
        return (
            result is _FAILED
            and self._other is None
            and may_retry(self._spec, self._policy, self._errors[-1])
        )

    def _pause(self, state: tenacity.RetryCallState) -> float:
        return _pause(self._policy, self._errors[-1], state.attempt_number)

    def _stops(self, state: tenacity.RetryCallState) -> bool:
        error, pause, call = self._errors[-1], state.upcoming_sleep, self._call
        asked = error.retry_after if isinstance(error, TransportRemoteError) else None
        return (
            state.attempt_number >= self._policy.max_attempts
            or (asked is not None and asked > self._policy.max_retry_after)
            or pause >= call.remaining()
            or time.monotonic() + pause - call.started > self._ttl
        )

    def _sleep(self, pause: float) -> None:
        error, call = self._errors[-1], self._call
        _log.info(
            "%s: attempt %d failed (%s), next one in %.2f s",
            self._spec.name,
            len(self._errors),
            type(error).__name__,
            pause,
        )
        self._planned(error, len(self._errors), pause)
        # What ended the attempt, and bounds that were its own, do not end the pause.
        call.renew()
        call.phase = "backoff"
        # An ended call makes the next attempt raise at once, before it sends anything.
        call.wait(pause)
        if call.may_go_on():
            self._retried()
