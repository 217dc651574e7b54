"""The template of every transport: what calls and streams go through, each step once, in order.

A transport adds a codec (pure functions) and the hooks :meth:`Transport._exchange`,
:meth:`Transport._open_stream` and :meth:`Transport._close`. It knows nothing of budgets, slots,
retries, credentials or counters. What it is between calls stands in ``_foundation.py``, unary
calls in ``_calls.py``, streams here.
"""

from __future__ import annotations

import logging
import math
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from protolink_sync._deadline import CancelToken, seconds
from protolink_sync.errors import StreamingNotSupportedError, StreamInterruptedError
from protolink_sync.models import ClientRequestSpec, Task, TaskCancellationRequest
from protolink_sync.security import Credentials
from protolink_sync.specs import TASK_CANCEL_REQUEST, TASK_STREAM_REQUEST
from protolink_sync.streaming import EventSource, EventStream
from protolink_sync.transport import _tracing as tracing
from protolink_sync.transport._call import Call
from protolink_sync.transport._calls import Calls
from protolink_sync.transport._codec import Codec, TransportCapabilities
from protolink_sync.transport._feed import Feed, OpenStream
from protolink_sync.transport._identity import task_id
from protolink_sync.transport._options import CallOptions
from protolink_sync.wire import TransportRequestContext, WireRequest

__all__ = ["Call", "CallOptions", "Codec", "OpenStream", "Transport", "TransportCapabilities"]

_log = logging.getLogger("protolink_sync.transport")

_Stream = TypeVar("_Stream")


class Transport(Calls):
    """Carry calls to agents: the base of all transports, and of your own.

    A transport may be shared by any number of threads. It opens nothing until the first call,
    and is a context manager that closes it. A subclass sets the class attributes and writes
    :meth:`_exchange` and :meth:`_close`.

    Args:
        url: Address for calls that name none.
        timeout: Budget of a call that gives none, in seconds; None for 300.
        credentials: What the peer asks for, see ``protolink_sync.security``.
        headers: Headers for every call.
        tls: Certificates.
        config: Sizes, retries, connections.
        hooks: Functions that are told what happens.
        user_agent: What stands behind ``protolink-sync/<version>`` in ``User-Agent``.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range, an address is no URL of this transport, or a
            header is not allowed.
    """

    def subscribe(
        self,
        agent_url: str,
        task: Task,
        *,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        cancel: CancelToken | None = None,
        options: CallOptions | None = None,
    ) -> EventStream:
        """Submit a task and return the events of the work on it.

        The connection is opened here, in the caller's thread; then a worker thread reads.

        Args:
            agent_url: Address of the agent.
            task: The task.
            timeout: Seconds from now to the end of the stream; None or ``math.inf`` for no bound.
            idle_timeout: Seconds to the first event and from one event to the next, and for
                waiting for a slot; None for the transport's timeout.
            cancel: Token that ends the stream.
            options: What this call has instead of what the transport has.

        Raises:
            StreamingNotSupportedError: The transport does not stream; before any I/O.
            TypeError: An argument has the wrong type, or the task holds what is no JSON.
            ValueError: An argument is out of range.
            TransportError: The stream could not be opened.
            CallCancelledError: The token was cancelled.
            ClientClosedError: The transport was closed.
        """
        if not self.capabilities.streaming:
            raise StreamingNotSupportedError(
                f"the transport {self.transport_type!r} does not stream: use send_task, or a "
                "transport that streams",
                url=agent_url,
            )
        self._check_open()
        url = self._peer(agent_url)
        budget = math.inf if timeout is None else seconds("timeout", timeout)
        idle = self._timeout if idle_timeout is None else seconds("idle_timeout", idle_timeout)
        call = Call(budget, cancel, self._codec, self._credentials, options, self._config.retry)
        return self._subscribed(
            call,
            TASK_STREAM_REQUEST,
            url,
            task,
            idle,
            lambda source: EventStream(
                source,
                task_id=task_id(task),
                canceller=lambda reason, limit, token: self._cancel_streamed(
                    url, task, reason, limit, token, options
                ),
            ),
        )

    def subscribe_as(
        self,
        codec: Codec,
        request_spec: ClientRequestSpec,
        url: str,
        data: Any,
        make: Callable[[EventSource], _Stream],
        *,
        timeout: float = math.inf,
        idle_timeout: float = math.inf,
        cancel: CancelToken | None = None,
        credentials: Credentials | None = None,
        connect_timeout: float | None = None,
        started: float | None = None,
        primed: bool = False,
        options: CallOptions | None = None,
    ) -> _Stream:
        """Open a stream of another protocol; see :meth:`send_as`.

        Args:
            codec: Makes the bytes of the call and the events of the answer.
            request_spec: The operation.
            url: The whole address.
            data: What the operation sends.
            make: Makes the stream; what it is given is read by the stream's worker.
            timeout: Seconds to the end of the stream.
            idle_timeout: Seconds to the first event and from one event to the next.
            cancel: Token that ends the stream.
            credentials: What the peer is shown; never the transport's own.
            connect_timeout: Seconds for resolving, connecting and TLS; None for the transport's.
            started: When the timeout began, on the monotonic clock; None for now.
            primed: Wait for the first event here, so that what comes instead of it is raised here.
            options: What this call has instead of what the transport has.
        """
        self._check_open()
        call = Call(timeout, cancel, codec, credentials, options, self._config.retry)
        call.connect_timeout = connect_timeout
        if started is not None:
            call.count_from(started)
        return self._subscribed(call, request_spec, url, data, idle_timeout, make, primed)

    def _subscribed(
        self,
        call: Call,
        spec: ClientRequestSpec,
        url: str,
        data: Any,
        idle: float,
        make: Callable[[EventSource], _Stream],
        primed: bool = False,
    ) -> _Stream:
        call.streams = call.submits = True
        stream: _Stream | None = None
        # Twice, as in send(). Once the stream stands, its worker ends the call.
        try:
            try:
                stream = make(self._feed(call, spec, url, data, idle, primed))
            finally:
                if stream is None:
                    self._drop(call)
        finally:
            if stream is None:
                self._drop(call)
        return stream

    def _drop(self, call: Call) -> None:
        """Free what a stream holds that nobody has got, also when its worker reads already."""
        # It has to leave first: to close what another thread reads would wait for it.
        call.abort("left")
        self._end(call)

    def _feed(
        self, call: Call, spec: ClientRequestSpec, url: str, data: Any, idle: float, primed: bool
    ) -> Feed:
        options = call.options
        given = None if options is None else options.request_id
        context = TransportRequestContext(spec.name, url, given or os.urandom(16).hex())
        body = call.codec.encode_body(spec, data)
        request: WireRequest = call.codec.encode(spec, context, body, data)
        if options is not None and options.headers:
            self._add_headers(options.headers, request)
        if len(request.body or b"") > self._config.limits.max_request_bytes:
            raise self._oversized(request)
        try:
            call.outcome = "cancelled"
            if tracing.API in sys.modules:  # somebody traces
                self._trace(call, request)
            call.limit("idle", idle)
            call.begin()
            if not self._stream_slots.acquire(call, self._is_nested):
                raise self._ended(call, context)
            self._check_open()
            call.sent = len(request.body or b"")
            if call.credentials is None:
                opened = self._opened(call, request)
            else:
                opened = self._authorized(call, request, self._opened)
            call.limit("idle", idle)
            feed = Feed(
                opened,
                call,
                context,
                idle,
                lambda error, final: self._stream_over(call, context, error, final),
                self._hooks,
            )
            if primed:
                feed.prime()
        except BaseException as error:
            self._account(call, context, error)
            raise
        finally:
            if call.span is not None:
                call.span.leave()
        _log.debug(
            "%s: stream open after %.1f ms, request %s",
            context.where,
            call.elapsed() * 1000,
            context.request_id,
        )
        return feed

    def _opened(self, call: Call, request: WireRequest) -> OpenStream:
        self._check_goes_on(call, request.context)
        if self._hooks is None:
            return self._open_stream(request, call)
        opened: OpenStream = self._told(request, lambda: self._open_stream(request, call))
        return opened

    def _stream_over(
        self,
        call: Call,
        context: TransportRequestContext,
        error: BaseException | None,
        final: bool,
    ) -> None:
        """Count a stream and free what it held (the worker)."""
        if call.ended == "left":
            pass  # cancelled, whatever its last read came to: nobody is told
        elif error is not None:
            self._account(call, context, error)
            if isinstance(error, StreamInterruptedError):
                _log.info("%s: the stream was cut, request %s", context.where, context.request_id)
        elif final or call.ended is None:
            call.outcome = "succeeded"
        self._end(call)

    def _cancel_streamed(
        self,
        url: str,
        task: Task,
        reason: str | None,
        timeout: float | None,
        cancel: CancelToken | None,
        options: CallOptions | None,
    ) -> Task:
        request = TaskCancellationRequest(str(task_id(task)), reason)
        canceled: Task = self.send(
            TASK_CANCEL_REQUEST, url, request, timeout=timeout, cancel=cancel, options=options
        )
        return canceled

    def _open_stream(self, request: WireRequest, deadline: Call) -> OpenStream:
        """Open a stream and return it (hook of transports that stream); see :meth:`_exchange`."""
        raise NotImplementedError
