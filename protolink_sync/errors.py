"""Every error of the library, in one tree.

::

    ProtoLinkError
        ModelError                     + ValueError
        CallCancelledError
        ClientClosedError              + RuntimeError
        TransportError
            TransportConnectionError   + ConnectionError
                StreamInterruptedError
                TLSVerificationError
            TransportTimeoutError      + TimeoutError
            TransportProtocolError     + RuntimeError
            TransportRemoteError       + RuntimeError
                AuthenticationError
            TransportLimitError        + ValueError
            StreamingNotSupportedError + NotImplementedError
        A2AClientError                 + RuntimeError
            A2ARpcError
                A2AParseError
                A2AInvalidRequestError
                A2AMethodNotFoundError
                A2AInvalidParamsError
                A2AInternalError
                A2ATaskNotFoundError
                A2ATaskNotCancelableError
                A2APushNotificationNotSupportedError
                A2AUnsupportedOperationError
                A2AContentTypeNotSupportedError
                A2AInvalidAgentResponseError
                A2AExtendedCardNotConfiguredError
                A2AExtensionRequiredError
                A2AVersionNotSupportedError
        TaskExecutionError             + RuntimeError
            StructuredResponseError
        NoResponseMessageError         + RuntimeError

Each class takes one positional message; everything else is a keyword with a default, so that
every error survives ``pickle`` and ``copy`` whole. A caller's mistake (a bad argument, a bad
setting) is a plain ``ValueError`` or ``TypeError``, raised before any I/O.

``str(error)`` ends with the place in the documentation that says what to do about this kind of
error; ``error.message`` is what happened, without it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = [
    "A2AClientError",
    "A2AContentTypeNotSupportedError",
    "A2AExtendedCardNotConfiguredError",
    "A2AExtensionRequiredError",
    "A2AInternalError",
    "A2AInvalidAgentResponseError",
    "A2AInvalidParamsError",
    "A2AInvalidRequestError",
    "A2AMethodNotFoundError",
    "A2AParseError",
    "A2APushNotificationNotSupportedError",
    "A2ARpcError",
    "A2ATaskNotCancelableError",
    "A2ATaskNotFoundError",
    "A2AUnsupportedOperationError",
    "A2AVersionNotSupportedError",
    "AuthenticationError",
    "CallCancelledError",
    "ClientClosedError",
    "ModelError",
    "NoResponseMessageError",
    "ProtoLinkError",
    "StreamInterruptedError",
    "StreamingNotSupportedError",
    "StructuredResponseError",
    "TLSVerificationError",
    "TaskExecutionError",
    "TransportConnectionError",
    "TransportError",
    "TransportLimitError",
    "TransportProtocolError",
    "TransportRemoteError",
    "TransportTimeoutError",
]


# The page that has a section for each class, and how a message names it.
_PAGE = "errors.html"
_REFERENCE = re.compile(r" \(see errors\.html#[a-z0-9]+\)")


class ProtoLinkError(Exception):
    """Catch this to catch every error that the library itself raises.

    Args:
        message: What happened, where, and what to do.

    >>> print(ProtoLinkError("no agent listens there"))
    no agent listens there (see errors.html#protolinkerror)
    """

    def __init__(self, message: str = "") -> None:
        # The message of another error may be part of this one: the place is named once, at the end.
        super().__init__(_REFERENCE.sub("", str(message)))

    @property
    def message(self) -> str:
        """What happened, where, and what to do, without the place in the documentation."""
        return str(self.args[0]) if self.args else ""

    @property
    def help_anchor(self) -> str:
        """Page and anchor of the documentation that say what to do about this kind of error."""
        # A class of a user's own has no section: the one that it is made from has.
        known = next(cls for cls in type(self).__mro__ if cls.__module__ == __name__)
        return f"{_PAGE}#{known.__name__.lower()}"

    def __str__(self) -> str:
        return f"{self.message} (see {self.help_anchor})" if self.message else ""

    def __reduce__(self) -> tuple[Any, ...]:
        # OSError keeps errno outside __dict__, where its own __reduce__ forgets it.
        state = dict(self.__dict__)
        number = getattr(self, "errno", None)
        if number is not None:
            state["errno"] = number
        return type(self), self.args, state


def words(error: BaseException) -> str:
    """Return what an error says, for readers who do not have this documentation: peers, and files.

    >>> words(ProtoLinkError("no agent listens there")), words(ValueError("no"))
    ('no agent listens there', 'no')
    """
    return error.message if isinstance(error, ProtoLinkError) else str(error)


class ModelError(ProtoLinkError, ValueError):
    """A value does not have the shape of a ProtoLink object.

    Args:
        message: What was expected and what was found.
        path: JSON path of the offending value, for example ``$.messages[0].parts``.
    """

    def __init__(self, message: str = "", *, path: str | None = None) -> None:
        super().__init__(message)
        self.path = path


class CallCancelledError(ProtoLinkError):
    """The caller ended the call: through a token, or by closing the stream it read.

    It is no :class:`TransportError`: ``except TransportError`` does not swallow a cancel.

    Args:
        message: Which call was cancelled.
        reason: What was given to ``CancelToken.cancel(reason)``.
        url: Address of the peer that was called.
        phase: What the call was doing, one of the phases of ``TransportTimeoutError``.
    """

    def __init__(
        self,
        message: str = "",
        *,
        reason: str | None = None,
        url: str | None = None,
        phase: str | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.url = url
        self.phase = phase


class ClientClosedError(ProtoLinkError, RuntimeError):
    """The client or transport was closed, before or during the call."""


class TransportError(ProtoLinkError):
    """A call did not bring an answer, or brought one that says so.

    Args:
        message: What happened, where, and what to do.
        url: Address of the peer that was called.
        request_id: Id of the call, the same for all its attempts.
        retryable: True if the same call may succeed when it is sent once more. Whether it *may*
            be sent once more is decided by its request spec too.
        status_code: HTTP status (int) or gRPC status name (str), where there is one.
        attempts: The errors of earlier attempts, oldest first.
        attempt_count: How often the call was sent or tried, this error's attempt included.
        phase: What the call was doing: ``slot``, ``resolve``, ``connect``, ``tls``, ``send``,
            ``wait`` or ``read``.
        elapsed: Seconds from the begin of the call to the error.
    """

    def __init__(
        self,
        message: str = "",
        *,
        url: str | None = None,
        request_id: str | None = None,
        retryable: bool = False,
        status_code: int | str | None = None,
        attempts: Sequence[TransportError] = (),
        attempt_count: int = 1,
        phase: str | None = None,
        elapsed: float | None = None,
    ) -> None:
        super().__init__(message)
        self.url = url
        self.request_id = request_id
        self.retryable = retryable
        self.status_code = status_code
        self.attempts = tuple(attempts)
        self.attempt_count = attempt_count
        self.phase = phase
        self.elapsed = elapsed


class TransportConnectionError(TransportError, ConnectionError):
    """The peer could not be reached, or the connection ended before the answer was whole."""


class StreamInterruptedError(TransportConnectionError):
    """A stream ended without the mark that says it is finished.

    Args:
        message: What happened, where, and what to do.
        task_id: Id of the streamed task.
        last_state: The last state the stream reported.
        events: How many events were delivered.
        task: The task as far as it is known.
        url: See :class:`TransportError`, as for the other keywords.
        request_id: Id of the call.
        attempts: The errors of earlier attempts.
        attempt_count: How often the call was sent.
        phase: What the call was doing.
        elapsed: Seconds from the begin of the stream to the error.
    """

    def __init__(
        self,
        message: str = "",
        *,
        task_id: str | None = None,
        last_state: str | None = None,
        events: int = 0,
        task: Any = None,
        url: str | None = None,
        request_id: str | None = None,
        attempts: Sequence[TransportError] = (),
        attempt_count: int = 1,
        phase: str | None = None,
        elapsed: float | None = None,
    ) -> None:
        super().__init__(
            message,
            url=url,
            request_id=request_id,
            attempts=attempts,
            attempt_count=attempt_count,
            phase=phase,
            elapsed=elapsed,
        )
        self.task_id = task_id
        self.last_state = last_state
        self.events = events
        self.task = task


class TLSVerificationError(TransportConnectionError):
    """The peer's certificate is not trusted, or is not the one of the host that was called.

    It is never retryable: the same certificate would come again.
    """


class TransportTimeoutError(TransportError, TimeoutError):
    """A limit of time was reached: the budget of the call, or that of a part of it.

    The message says which limit, how long it was and in which :attr:`~TransportError.phase` the
    call stood. A spent budget is not retryable; a time-out of connecting or of one attempt is.
    """


class TransportProtocolError(TransportError, RuntimeError):
    """The peer answered, but not with what the protocol asks for."""


class TransportRemoteError(TransportError, RuntimeError):
    """The peer answered with an error.

    Args:
        message: What happened, where, and what to do.
        error_type: Class or name of the peer's error, where the peer tells.
        error_message: The peer's own words.
        body: Begin of the answer's body, at most a few KB.
        headers: Headers of the answer, names in lower case.
        retry_after: Seconds the peer asks to wait (header ``Retry-After``).
        url: See :class:`TransportError`, as for the other keywords.
        request_id: Id of the call.
        retryable: True for the statuses of ``RetryPolicy.retryable_statuses``.
        status_code: HTTP status (int) or gRPC status name (str).
        attempts: The errors of earlier attempts.
        attempt_count: How often the call was sent.
        phase: What the call was doing.
        elapsed: Seconds from the begin of the call to the error.
    """

    def __init__(
        self,
        message: str = "",
        *,
        error_type: str | None = None,
        error_message: str | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        retry_after: float | None = None,
        url: str | None = None,
        request_id: str | None = None,
        retryable: bool = False,
        status_code: int | str | None = None,
        attempts: Sequence[TransportError] = (),
        attempt_count: int = 1,
        phase: str | None = None,
        elapsed: float | None = None,
    ) -> None:
        super().__init__(
            message,
            url=url,
            request_id=request_id,
            retryable=retryable,
            status_code=status_code,
            attempts=attempts,
            attempt_count=attempt_count,
            phase=phase,
            elapsed=elapsed,
        )
        self.error_type = error_type
        self.error_message = error_message
        self.body = body
        self.headers = dict(headers or {})
        self.retry_after = retry_after


class AuthenticationError(TransportRemoteError):
    """The peer wants credentials, or does not accept those it got (401, 403)."""


class TransportLimitError(TransportError, ValueError):
    """A message is larger than its limit in ``TransportLimits``."""


class StreamingNotSupportedError(TransportError, NotImplementedError):
    """The transport answers calls but does not stream; raised before any I/O."""


class A2AClientError(ProtoLinkError, RuntimeError):
    """An A2A agent cannot be used: discovery, origin, an unknown task id, or A2A is off."""


class A2ARpcError(A2AClientError):
    """An A2A agent answered with a JSON-RPC error; one subclass for each code that A2A defines.

    Args:
        message: What happened, where, and what to do.
        code: The JSON-RPC error code; None where the agent gave no integer.
        data: The error's ``data`` as it came.
        reason: The ``reason`` of a ``google.rpc.ErrorInfo`` in the data.
        domain: The ``domain`` of the same.
        metadata: The ``metadata`` of the same.
        field_violations: What was wrong with the parameters, from a ``google.rpc.BadRequest`` in
            the data: objects with ``field`` and ``description``.
        error_message: The agent's own words.
    """

    def __init__(
        self,
        message: str = "",
        *,
        code: int | None = None,
        data: Any = None,
        reason: str | None = None,
        domain: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        field_violations: Sequence[Mapping[str, Any]] = (),
        error_message: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.data = data
        self.reason = reason
        self.domain = domain
        self.metadata = dict(metadata or {})
        self.field_violations = tuple(field_violations)
        self.error_message = error_message


class A2AParseError(A2ARpcError):
    """-32700: the agent could not read the request as JSON."""


class A2AInvalidRequestError(A2ARpcError):
    """-32600: the agent took the request for no JSON-RPC call."""


class A2AMethodNotFoundError(A2ARpcError):
    """-32601: the agent does not know the method; it may speak the other dialect."""


class A2AInvalidParamsError(A2ARpcError):
    """-32602: the agent does not accept the parameters; see ``field_violations``."""


class A2AInternalError(A2ARpcError):
    """-32603: the agent's own code failed. Its text may be that of an exception there."""


class A2ATaskNotFoundError(A2ARpcError):
    """-32001: the agent does not know the task, or does not show it to this caller."""


class A2ATaskNotCancelableError(A2ARpcError):
    """-32002: the task is over already, or cannot be stopped."""


class A2APushNotificationNotSupportedError(A2ARpcError):
    """-32003: the agent sends no push notifications."""


class A2AUnsupportedOperationError(A2ARpcError):
    """-32004: the agent does not do this, or not to a task in that state."""


class A2AContentTypeNotSupportedError(A2ARpcError):
    """-32005: the agent does not take this media type."""


class A2AInvalidAgentResponseError(A2ARpcError):
    """-32006: the agent's own answer broke the protocol; its host says so."""


class A2AExtendedCardNotConfiguredError(A2ARpcError):
    """-32007: the agent promises an extended card and has none."""


class A2AExtensionRequiredError(A2ARpcError):
    """-32008: the agent insists on an extension that the caller did not name."""


class A2AVersionNotSupportedError(A2ARpcError):
    """-32009: the agent does not speak this version of A2A."""


class TaskExecutionError(ProtoLinkError, RuntimeError):
    """A task ended as failed or canceled.

    Args:
        message: Which task, and the peer's reason.
        task: The task as it came back.
    """

    def __init__(self, message: str = "", *, task: Any = None) -> None:
        super().__init__(message)
        self.task = task


class StructuredResponseError(TaskExecutionError):
    """An answer did not have the asked shape, also after the allowed repairs.

    Args:
        message: What was wrong with the last answer.
        task: The last task.
        attempts: How many tasks were sent.
        validation_error: What the validation of the last answer said.
    """

    def __init__(
        self,
        message: str = "",
        *,
        task: Any = None,
        attempts: int = 1,
        validation_error: str | None = None,
    ) -> None:
        super().__init__(message, task=task)
        self.attempts = attempts
        self.validation_error = validation_error


class NoResponseMessageError(ProtoLinkError, RuntimeError):
    """A task came back without a message of the agent; ``send_task`` shows all of it.

    Args:
        message: What came instead.
        task: The task as it came back.
    """

    def __init__(self, message: str = "", *, task: Any = None) -> None:
        super().__init__(message)
        self.task = task
