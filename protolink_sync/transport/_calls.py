"""What a unary call goes through, each step once, in this order."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from protolink_sync._deadline import CancelToken, seconds
from protolink_sync.errors import (
    AuthenticationError,
    CallCancelledError,
    ClientClosedError,
    ProtoLinkError,
    TransportError,
    TransportLimitError,
)
from protolink_sync.models import ClientRequestSpec
from protolink_sync.security import Credentials, check_header, credential_headers
from protolink_sync.specs import TASK_REQUEST
from protolink_sync.transport import _tracing as tracing
from protolink_sync.transport._call import Call
from protolink_sync.transport._codec import Codec
from protolink_sync.transport._failures import describe, ended_error
from protolink_sync.transport._foundation import Foundation
from protolink_sync.transport._headers import merged
from protolink_sync.transport._hooks import RequestSent, ResponseReceived, RetryPlanned
from protolink_sync.transport._identity import key_of_task
from protolink_sync.transport._options import CallOptions
from protolink_sync.transport._retry import Retries, may_retry
from protolink_sync.wire import TransportRequestContext, WireReply, WireRequest
from protolink_sync.wire import http as http_codec

__all__ = ["Calls"]

_log = logging.getLogger("protolink_sync.transport")

# What a peer answers that wants other credentials: over HTTP, and over gRPC.
_MAY_BE_STALE = (401, "UNAUTHENTICATED")


class Calls(Foundation):
    """The calls of :class:`~protolink_sync.transport.Transport`; see there."""

    def send(
        self,
        request_spec: ClientRequestSpec,
        base_url: str | None = None,
        data: Any = None,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        idempotency_key: str | None = None,
        options: CallOptions | None = None,
    ) -> Any:
        """Carry out one operation and return what its parser makes of the answer.

        Ending the call (by budget, token, Ctrl-C or ``close()``) ends the waiting here. A task
        that was submitted goes on at the peer; ``AgentClient.cancel_task`` ends it.

        Args:
            request_spec: The operation.
            base_url: Address of the peer; None for the transport's own.
            data: What the operation sends: a model, or JSON values.
            params: Query parameters.
            timeout: Budget in seconds for all of it, retries included; None for the
                transport's, ``math.inf`` for none.
            cancel: Token that ends the call.
            idempotency_key: By it the peer recognises the call; None for the default (a task's
                id and a digest of its content, else an id of the call).
            options: What this call has instead of what the transport has.

        Returns:
            The parsed answer.

        Raises:
            TypeError: An argument has the wrong type, or the data is no JSON.
            ValueError: An argument is out of range.
            TransportError: The call brought no answer, or an error.
            CallCancelledError: The token was cancelled.
            ClientClosedError: The transport was closed.
        """
        return self._carry(
            self._codec,
            request_spec,
            base_url,
            data,
            params,
            timeout,
            cancel,
            idempotency_key,
            options,
        )

    def _carry(
        self,
        codec: Codec,
        request_spec: ClientRequestSpec,
        base_url: str | None,
        data: Any,
        params: Mapping[str, Any] | None,
        timeout: float | None,
        cancel: CancelToken | None,
        idempotency_key: str | None,
        options: CallOptions | None,
    ) -> Any:
        if not isinstance(request_spec, ClientRequestSpec):
            kind = type(request_spec).__name__
            raise TypeError(f"request_spec is a {kind}, not a ClientRequestSpec")
        if self._closed or self._pid != os.getpid():  # else one step less on each call's way
            self._check_open()
        url = self._peer(base_url)
        budget = self._timeout if timeout is None else seconds("timeout", timeout)
        call = Call(budget, cancel, codec, self._credentials, options, self._config.retry)
        # Twice, because Ctrl-C may come at any line, also between the end of the call and the
        # first _end(), or inside it. A second time finds nothing left to do.
        try:
            try:
                call.submits = request_spec.path == TASK_REQUEST.path
                return self._send(call, request_spec, url, data, params, idempotency_key)
            finally:
                self._end(call)
        finally:
            if not call.over:
                self._end(call)

    def send_as(
        self,
        codec: Codec,
        request_spec: ClientRequestSpec,
        url: str,
        data: Any = None,
        *,
        timeout: float,
        cancel: CancelToken | None = None,
        credentials: Credentials | None = None,
        connect_timeout: float | None = None,
        started: float | None = None,
        submits: bool = False,
        options: CallOptions | None = None,
    ) -> Any:
        """Carry out one operation of another protocol, as :meth:`send` does of ProtoLink's.

        For clients of that protocol, which share connections, limits and counters with this
        transport.

        Args:
            codec: Makes the bytes of the call and the value of the answer.
            request_spec: The operation: its name, whether it may be repeated, its parser.
            url: The whole address; the codec gives the path that is put behind it.
            data: What the operation sends.
            timeout: Budget in seconds for all of it; ``math.inf`` for none.
            cancel: Token that ends the call.
            credentials: What the peer is shown, as ``check_credentials`` returns it; never the
                transport's own.
            connect_timeout: Seconds for resolving, connecting and TLS; None for the transport's.
            started: When the budget began, on the monotonic clock; None for now.
            submits: Whether the peer is given a task to work on, which errors then say.
            options: What this call has instead of what the transport has.
        """
        self._check_open()
        call = Call(timeout, cancel, codec, credentials, options, self._config.retry)
        call.connect_timeout = connect_timeout
        if started is not None:
            call.count_from(started)
        call.submits = submits
        try:
            try:
                return self._send(call, request_spec, url, data, None, None)
            finally:
                self._end(call)
        finally:
            if not call.over:
                self._end(call)

    def _send(
        self,
        call: Call,
        spec: ClientRequestSpec,
        url: str,
        data: Any,
        params: Mapping[str, Any] | None,
        key: str | None,
    ) -> Any:
        body = call.codec.encode_body(spec, data)
        context = self._context(call, spec, url, data, body, key)
        request: WireRequest = call.codec.encode(spec, context, body, data, params)
        if call.options is not None and call.options.headers:
            self._add_headers(call.options.headers, request)
        if len(request.body or b"") > self._config.limits.max_request_bytes:
            raise self._oversized(request)
        try:
            if tracing.API in sys.modules:  # somebody traces
                self._trace(call, request)
            # From here the call is counted, bounded and can be ended. Unless it turns out
            # otherwise, what ends it is an interrupt.
            call.outcome = "cancelled"
            call.begin()
            if not self._slots.acquire(call, self._is_nested):
                raise self._ended(call, context)
            # close() sets the flag first and then ends what it finds among the slots.
            if self._closed:
                self._check_open()
            try:
                value = self._attempt(call, request, 1)
            except TransportError as first:
                if not may_retry(spec, call.retry, first):
                    raise
                value = self._retry(first, call, spec, request)
            result = http_codec.parse(spec.response_parser, value, context)
        except BaseException as error:
            self._account(call, context, error)
            raise
        finally:
            if call.span is not None:
                call.span.leave()
        call.outcome = "succeeded"
        return result

    def _trace(self, call: Call, request: WireRequest) -> None:
        """Begin the span of a call and tell the peer of it."""
        call.span = span = tracing.CallSpan(request.context, self.transport_type)
        if self._headers_per_call:
            request.headers = merged(span.headers(), request.headers)

    def _context(
        self,
        call: Call,
        spec: ClientRequestSpec,
        url: str,
        data: Any,
        body: bytes | None,
        given: str | None,
    ) -> TransportRequestContext:
        """Say who a call is, with the key that was given or the one it has by itself."""
        own = None if call.options is None else call.options.request_id
        request_id = own or os.urandom(16).hex()
        if given is not None:
            if not given:
                raise ValueError("idempotency_key is empty; leave it out for the default")
            check_header("Idempotency-Key", given, what="idempotency_key")
            key: str | None = given
        elif not spec.idempotent:
            key = None
        elif call.submits and body is not None:
            key = self._task_key(data, body)
        else:
            # Not the caller's own id: it may be the same in several calls, which are not one.
            key = request_id if own is None else os.urandom(16).hex()
        return TransportRequestContext(spec.name, url, request_id, key)

    def _add_headers(self, headers: Mapping[str, str], request: WireRequest) -> None:
        """Put a call's own headers beside those of its operation, which win."""
        if not self._headers_per_call:
            names = ", ".join(sorted(headers))
            raise ValueError(
                f"the transport {self.transport_type!r} sends no headers with a single call "
                f"({names}): give headers= to the transport, or use another one"
            )
        request.headers = merged(headers, request.headers)

    def _oversized(self, request: WireRequest) -> TransportLimitError:
        """Return the error of a request that is above the limit."""
        limit, context = self._config.limits.max_request_bytes, request.context
        return TransportLimitError(
            f"{context.where}: request has {len(request.body or b'')} bytes, limit is {limit}. "
            "Raise TransportLimits.max_request_bytes, or pass the data by reference "
            "(Artifact.uri)",
            url=context.url,
            request_id=context.request_id,
        )

    def _retry(
        self, first: TransportError, call: Call, spec: ClientRequestSpec, request: WireRequest
    ) -> Any:
        """Return what further attempts bring after the first has failed."""
        retries = Retries(
            first,
            lambda number: self._attempt(call, request, number),
            call,
            spec,
            call.retry,
            ttl=self._config.idempotency_ttl,
            retried=self._count_retry,
            planned=lambda error, number, pause: self._tell_retry(
                request.context, error, number, pause
            ),
        )
        del first  # it may be what is raised, and hold this frame
        return retries.run()

    def _tell_retry(
        self, context: TransportRequestContext, error: TransportError, number: int, pause: float
    ) -> None:
        if self._hooks is not None:
            told = RetryPlanned(
                context.operation, context.url, context.request_id, number, error, pause
            )
            self._hooks.tell("on_retry", told)

    def _count_retry(self) -> None:
        if self._config.collect_metrics:
            self._metrics.retried()

    def _attempt(self, call: Call, request: WireRequest, number: int) -> Any:
        request.context.attempt = number
        longest = call.retry.attempt_timeout
        if longest is not None:
            call.limit("attempt", longest)
        try:
            if call.credentials is None:
                return self._answer(call, request)
            return self._authorized(call, request, self._answer)
        except TransportError as error:
            # Not later: it may become one of the earlier errors of another.
            describe(error, call, request.context)
            context = request.context
            _log.debug(
                "%s: attempt %d, %s in phase %s, request %s",
                context.where,
                number,
                type(error).__name__,
                error.phase,
                context.request_id,
            )
            raise

    def _authorized(
        self, call: Call, request: WireRequest, act: Callable[[Call, WireRequest], Any]
    ) -> Any:
        """Give a request its credentials and act; once more where the peer wants other ones."""
        context = request.context
        self._check_goes_on(call, context)
        request.credentials = credential_headers(call.credentials, context.url)
        try:
            return act(call, request)
        except AuthenticationError as error:
            if error.status_code not in _MAY_BE_STALE or not callable(call.credentials):
                raise
            # The peer has not processed what it refused, so the call may go out again.
            fresh = credential_headers(call.credentials, context.url, refresh=True)
            if fresh == request.credentials:
                raise
            request.credentials = fresh
            return act(call, request)

    def _check_goes_on(self, call: Call, context: TransportRequestContext) -> None:
        if not call.may_go_on():
            raise self._ended(call, context)

    def _answer(self, call: Call, request: WireRequest) -> Any:
        context = request.context
        if call.ended is not None or time.monotonic() >= call.due:
            self._check_goes_on(call, context)
        call.sent += len(request.body or b"")
        reply: WireReply = (
            self._exchange(request, call)
            if self._hooks is None
            else self._told(request, lambda: self._exchange(request, call))
        )
        call.received += len(reply.body)
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug(
                "%s: attempt %d, status %d, %d bytes, %.1f ms, request %s",
                context.where,
                context.attempt,
                reply.status,
                len(reply.body),
                call.elapsed() * 1000,
                context.request_id,
            )
        return self._decode(reply, context, call)

    def _told(self, request: WireRequest, act: Callable[[], Any]) -> Any:
        """Make an attempt of which the hooks are told before and after."""
        hooks, context = self._hooks, request.context
        assert hooks is not None
        size = len(request.body or b"")
        who = (context.operation, context.url, context.request_id, context.attempt)
        hooks.tell("on_request", RequestSent(*who, context.idempotency_key, size))
        begin = time.monotonic()
        try:
            got = act()
        except Exception as error:
            took = time.monotonic() - begin
            status = error.status_code if isinstance(error, TransportError) else None
            status = status if isinstance(status, int) else None
            hooks.tell("on_response", ResponseReceived(*who, status, 0, took, error))
            raise
        status, size = (got.status, len(got.body)) if isinstance(got, WireReply) else (None, 0)
        took = time.monotonic() - begin
        hooks.tell("on_response", ResponseReceived(*who, status, size, took, None))
        return got

    def _decode(self, reply: WireReply, context: TransportRequestContext, call: Call) -> Any:
        return call.codec.decode(
            reply,
            context,
            retryable_statuses=call.retry.retryable_statuses,
            now=time.time,
        )

    # --- its end ----------------------------------------------------------------------------------

    def _account(self, call: Call, context: TransportRequestContext, error: BaseException) -> None:
        """Write on an error which call it is about, and on the call how it ended."""
        if call.span is not None:
            call.span.fail(error)
        if isinstance(error, TransportError):
            describe(error, call, context)
            call.outcome = "failed"
            _log.debug("%s: %s", context.where, type(error).__name__)
        elif isinstance(error, Exception) and not isinstance(
            error, (CallCancelledError, ClientClosedError)
        ):
            call.outcome = "failed"

    def _end(self, call: Call) -> None:
        """Free everything the call holds and count it; any number of times."""
        if call.over:
            return
        call.finish()
        if call.span is not None:
            call.span.end()
        if self._config.collect_metrics:
            self._metrics.count(call)
        (self._stream_slots if call.streams else self._slots).release(call)
        call.over = True

    def _ended(
        self, call: Call, context: TransportRequestContext, details: str = ""
    ) -> ProtoLinkError:
        """Return the error of a call that was ended from outside (for transports)."""
        return ended_error(call, context, details)

    # --- hooks ------------------------------------------------------------------------------------

    # By what the peer recognises a submission (hook): a function of the task and its bytes.
    _task_key = staticmethod(key_of_task)

    def _exchange(self, request: WireRequest, deadline: Call) -> WireReply:
        """Send the bytes of one attempt and return the answer's (hook).

        Block on nothing that ``deadline.abort()`` cannot end: ``deadline.lend(...)`` what can
        be cut. When I/O fails, ask ``deadline.ended`` first and raise ``self._ended(...)``.

        Raises:
            TransportError: Whatever went wrong, typed, with the library's error as cause.
        """
        raise NotImplementedError

    def _is_nested(self) -> bool:
        """Return whether this call is made inside another one of this transport (hook).

        Such a call takes no slot of its own: the outer one would wait for itself.
        """
        return False
