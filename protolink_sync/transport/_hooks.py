"""Functions of the caller's that are told what a transport does."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from typing import Any

import attrs

from protolink_sync.errors import TransportError

__all__ = ["EventReceived", "Hooks", "RequestSent", "ResponseReceived", "RetryPlanned"]

_log = logging.getLogger("protolink_sync.transport.hooks")


@attrs.frozen
class RequestSent:
    """An attempt that is about to go out.

    Args:
        operation: Name of the operation: ``send_task`` and so on.
        url: Address of the peer.
        request_id: The same for all attempts of a call.
        attempt: 1 for the first.
        idempotency_key: By it the peer recognises the call; None where none is sent.
        size: Bytes of the body.
    """

    operation: str
    url: str
    request_id: str
    attempt: int
    idempotency_key: str | None
    size: int


@attrs.frozen
class ResponseReceived:
    """What an attempt brought.

    Args:
        operation: Name of the operation.
        url: Address of the peer.
        request_id: The same for all attempts of a call.
        attempt: 1 for the first.
        status: The HTTP status, whatever it is; of a transport without one 200 stands for an
            answer. None for a stream that is open now, and where there was no answer.
        size: Bytes of the body, inflated.
        seconds: From the sending to the last byte; of a stream, to its opening.
        error: Why there was no answer; None if there was one.
    """

    operation: str
    url: str
    request_id: str
    attempt: int
    status: int | None
    size: int
    seconds: float
    error: Exception | None


@attrs.frozen
class RetryPlanned:
    """A pause that begins, after which a call is sent once more.

    Args:
        operation: Name of the operation.
        url: Address of the peer.
        request_id: The same for all attempts of a call.
        attempt: The one that has failed; 1 for the first.
        error: Why.
        pause: Seconds until the next one.
    """

    operation: str
    url: str
    request_id: str
    attempt: int
    error: TransportError
    pause: float


@attrs.frozen
class EventReceived:
    """An event of a stream.

    Args:
        operation: Name of the operation.
        url: Address of the peer.
        request_id: That of the stream.
        number: 1 for the first.
        event: The event, which the reader of the stream gets too: do not change it.
    """

    operation: str
    url: str
    request_id: str
    number: int
    event: Any


@attrs.frozen
class Hooks:
    """Functions that are told what a transport does, for figures and logs of your own.

    They are called in the thread that does the work: the caller's; for events of a stream, its
    worker, which waits for them. What they return is ignored. They see no header and no
    credential. An exception out of one does not touch the call: it is logged as an error, with
    its traceback, and warned of with a ``RuntimeWarning``.

    Args:
        on_request: Called with a :class:`RequestSent` before each attempt.
        on_response: Called with a :class:`ResponseReceived` after it.
        on_retry: Called with a :class:`RetryPlanned` before the pause of a retry.
        on_event: Called with an :class:`EventReceived` when an event has come.

    Raises:
        TypeError: One is no function.
    """

    on_request: Callable[[RequestSent], object] | None = attrs.field(default=None, kw_only=True)
    on_response: Callable[[ResponseReceived], object] | None = attrs.field(
        default=None, kw_only=True
    )
    on_retry: Callable[[RetryPlanned], object] | None = attrs.field(default=None, kw_only=True)
    on_event: Callable[[EventReceived], object] | None = attrs.field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        for field in attrs.fields(Hooks):
            value = getattr(self, field.name)
            if value is not None and not callable(value):
                raise TypeError(f"{field.name} is a {type(value).__name__}, must be a function")

    def tell(self, name: str, told: Any) -> None:
        """Call one of them, if it is there (for transports).

        Args:
            name: Its name.
            told: What it is given.
        """
        hook = getattr(self, name)
        if hook is None:
            return
        try:
            hook(told)
        except Exception as error:
            _log.exception("the hook %s failed; the call goes on", name)
            try:
                warnings.warn(
                    f"the hook {name} failed and the call goes on: {type(error).__name__}: {error}",
                    RuntimeWarning,
                    stacklevel=2,
                )
            except RuntimeWarning:
                pass  # warnings are errors here: then the log has to do
