"""The template of every transport: what a call goes through, each step once, in this order.

A transport adds a codec (pure functions) and the hooks :meth:`Transport._exchange` and
:meth:`Transport._close`. It knows nothing of budgets, slots, retries, credentials or counters.
"""

from __future__ import annotations

import logging
import math
import os
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, TypeVar

import attrs

from protolink_sync._deadline import CancelToken, seconds
from protolink_sync.config import TransportConfig
from protolink_sync.errors import (
    AuthenticationError,
    CallCancelledError,
    ClientClosedError,
    ProtoLinkError,
    StreamingNotSupportedError,
    TransportError,
    TransportLimitError,
)
from protolink_sync.models import ClientRequestSpec, Task, TaskCancellationRequest
from protolink_sync.security import (
    Credentials,
    TLSConfig,
    caller_headers,
    check_credentials,
    check_header,
    credential_headers,
    refuse_secret_headers,
)
from protolink_sync.specs import TASK_CANCEL_REQUEST, TASK_REQUEST, TASK_STREAM_REQUEST
from protolink_sync.streaming import EventSource, EventStream
from protolink_sync.transport._addresses import Addresses
from protolink_sync.transport._call import Call
from protolink_sync.transport._failures import describe, ended_error
from protolink_sync.transport._feed import Feed, OpenStream
from protolink_sync.transport._identity import key_of_task, task_id
from protolink_sync.transport._keywords import explaining
from protolink_sync.transport._metrics import Metrics, TransportMetricsSnapshot
from protolink_sync.transport._slots import Slots
from protolink_sync.wire import TransportRequestContext, WireReply, WireRequest
from protolink_sync.wire import http as http_codec

__all__ = ["Call", "Transport", "TransportCapabilities"]

_log = logging.getLogger("protolink_sync.transport")

# What a peer answers that wants other credentials: over HTTP, and over gRPC.
_MAY_BE_STALE = (401, "UNAUTHENTICATED")

_DEFAULT_TIMEOUT = 300.0

_DEFAULTS = TransportConfig()

_Stream = TypeVar("_Stream")


@attrs.frozen
class TransportCapabilities:
    """What a kind of transport can do.

    Args:
        networked: Its peers are other processes.
        streaming: It has :meth:`Transport.subscribe`.
        tls: It can encrypt.
        bidirectional: Both sides can send at any time.
        persistent_connections: Connections are kept between calls.

    Source:
        ProtoLink 0.8.3, ``TransportCapabilities``.
    """

    networked: bool = True
    streaming: bool = False
    tls: bool = False
    bidirectional: bool = False
    persistent_connections: bool = False

    def to_dict(self) -> dict[str, bool]:
        """Return the fields by name."""
        return attrs.asdict(self)


class Codec(Protocol):
    """What turns a call into bytes and an answer into a value: a module of the room wire.

    For streams over HTTP it also has ``decode_instead``, which takes an answer that is no stream
    as ``decode`` does, and returns the messages in it or raises what it says.
    """

    def encode_body(self, spec: ClientRequestSpec, data: Any) -> bytes | None:
        """Return the encoded data of a call."""

    def encode(
        self,
        spec: ClientRequestSpec,
        context: TransportRequestContext,
        body: bytes | None,
        data: Any = None,
        params: Mapping[str, Any] | None = None,
    ) -> WireRequest:
        """Return the whole call."""

    def decode(
        self,
        reply: WireReply,
        context: TransportRequestContext,
        *,
        retryable_statuses: frozenset[int] = frozenset(),
        now: Callable[[], float],
    ) -> Any:
        """Return the value of an answer, or raise what it says."""

    def decode_event(self, payload: bytes, context: TransportRequestContext) -> tuple[Any, bool]:
        """Return the event in one message of a stream, and whether it is the last."""


class Transport:
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

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range, an address is no URL of this transport, or a
            header is not allowed.
    """

    transport_type: ClassVar[str] = ""
    schemes: ClassVar[tuple[str, ...]] = ()
    capabilities: ClassVar[TransportCapabilities] = TransportCapabilities()
    _codec: ClassVar[Codec] = http_codec
    _host_and_port: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = explaining(cls.__init__)  # type: ignore[method-assign]

    def __init__(
        self,
        url: str | None = None,
        timeout: float | None = None,
        *,
        credentials: Credentials | None = None,
        headers: Mapping[str, str] | None = None,
        tls: TLSConfig | None = None,
        config: TransportConfig | None = None,
    ) -> None:
        if tls is not None and not isinstance(tls, TLSConfig):
            raise TypeError(f"tls is a {type(tls).__name__}, must be a TLSConfig")
        if config is not None and not isinstance(config, TransportConfig):
            raise TypeError(f"config is a {type(config).__name__}, must be a TransportConfig")
        self._timeout = _DEFAULT_TIMEOUT if timeout is None else seconds("timeout", timeout)
        self._config = config or _DEFAULTS
        self._tls = tls
        self._credentials = check_credentials(credentials)
        self._headers = caller_headers(headers)
        self._addresses = Addresses(
            self.transport_type, self.schemes, host_and_port=self._host_and_port
        )
        self._url = None if url is None else self._addresses.checked(url)
        self._closed = False
        self._begin_process()
        _transports.add(self)

    def _begin_process(self) -> None:
        """Set up what belongs to one process; a forked child begins anew."""
        self._pid = os.getpid()
        self._metrics = Metrics()
        self._slots = Slots(self._config.limits.max_concurrent_requests)
        self._stream_slots = Slots(self._config.limits.max_concurrent_streams)

    # --- what a user reads -------------------------------------------------------------------

    @property
    def url(self) -> str | None:
        """Address for calls that name none."""
        return self._url

    @property
    def timeout(self) -> float:
        """Budget in seconds of a call that gives none."""
        return self._timeout

    @property
    def config(self) -> TransportConfig:
        """The settings."""
        return self._config

    @property
    def supports_streaming(self) -> bool:
        """Whether :meth:`subscribe` works."""
        return self.capabilities.streaming

    @property
    def metrics(self) -> TransportMetricsSnapshot:
        """The counters at this moment, of this process."""
        return self._metrics.snapshot(lambda: self._slots.calls() | self._stream_slots.calls())

    def health(self) -> dict[str, Any]:
        """Return a report as plain values.

        Returns:
            ``status`` (``ready`` or ``stopped``), ``ready``, ``transport``, ``url``,
            ``capabilities`` and ``metrics``.
        """
        return {
            "status": "stopped" if self._closed else "ready",
            "ready": not self._closed,
            "transport": self.transport_type,
            "url": self._url,
            "capabilities": self.capabilities.to_dict(),
            "metrics": self.metrics.to_dict(),
        }

    def __repr__(self) -> str:
        return f"<{type(self).__name__} url={self._url!r} timeout={self._timeout:g}>"

    # --- the call ----------------------------------------------------------------------------

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

        Returns:
            The parsed answer.

        Raises:
            TypeError: An argument has the wrong type, or the data is no JSON.
            ValueError: An argument is out of range.
            TransportError: The call brought no answer, or an error.
            CallCancelledError: The token was cancelled.
            ClientClosedError: The transport was closed.
        """
        if not isinstance(request_spec, ClientRequestSpec):
            kind = type(request_spec).__name__
            raise TypeError(f"request_spec is a {kind}, not a ClientRequestSpec")
        self._check_open()
        url = self._peer(base_url)
        budget = self._timeout if timeout is None else seconds("timeout", timeout)
        call = Call(budget, cancel, self._codec, self._credentials)
        # Twice, because Ctrl-C may come at any line, also between the end of the call and the
        # first _end(), or inside it. A second time finds nothing left to do.
        try:
            try:
                call.submits = request_spec.path == TASK_REQUEST.path
                return self._send(call, request_spec, url, data, params, idempotency_key)
            finally:
                self._end(call)
        finally:
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
        submits: bool = False,
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
            submits: Whether the peer is given a task to work on, which errors then say.
        """
        self._check_open()
        call = Call(timeout, cancel, codec, credentials)
        call.connect_timeout = connect_timeout
        call.submits = submits
        try:
            try:
                return self._send(call, request_spec, url, data, None, None)
            finally:
                self._end(call)
        finally:
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
        context = TransportRequestContext(spec.name, url, os.urandom(16).hex())
        context.idempotency_key = self._key(call, spec, context, data, body, key)
        request: WireRequest = call.codec.encode(spec, context, body, data, params)
        self._check_size(request)
        try:
            self._enter(call, context)
            value = self._attempts(call, spec, request)
            result = http_codec.parse(spec.response_parser, value, context)
        except BaseException as error:
            self._account(call, context, error)
            raise
        call.outcome = "succeeded"
        return result

    def _key(
        self,
        call: Call,
        spec: ClientRequestSpec,
        context: TransportRequestContext,
        data: Any,
        body: bytes | None,
        given: str | None,
    ) -> str | None:
        if given is not None:
            if not given:
                raise ValueError("idempotency_key is empty; leave it out for the default")
            check_header("Idempotency-Key", given, what="idempotency_key")
            return given
        if not spec.idempotent:
            return None
        if call.submits and body is not None:
            return key_of_task(task_id(data), body)
        return context.request_id

    def _check_size(self, request: WireRequest) -> None:
        limit = self._config.limits.max_request_bytes
        size = len(request.body or b"")
        if size > limit:
            context = request.context
            raise TransportLimitError(
                f"{context.where}: request has {size} bytes, limit is {limit}. Raise "
                "TransportLimits.max_request_bytes, or pass the data by reference (Artifact.uri)",
                url=context.url,
                request_id=context.request_id,
            )

    def _enter(self, call: Call, context: TransportRequestContext) -> None:
        """Let the call begin: from here it is counted, bounded and can be ended."""
        # Unless it turns out otherwise, what ends the call is an interrupt.
        call.outcome = "cancelled"
        call.begin()
        if not self._slots.acquire(call, nested=self._is_nested()):
            raise self._ended(call, context)
        # close() sets the flag first and then ends what it finds among the slots.
        self._check_open()

    def _attempts(self, call: Call, spec: ClientRequestSpec, request: WireRequest) -> Any:
        policy = self._config.retry
        try:
            return self._attempt(call, request, 1)
        except TransportError as first:
            # Not for a retry: a plain failure, the usual end, must not pay for tenacity.
            from protolink_sync.transport._retry import may_retry, retry

            if not may_retry(spec, policy, first):
                raise
            return retry(
                first,
                lambda number: self._attempt(call, request, number),
                call,
                spec,
                policy,
                ttl=self._config.idempotency_ttl,
                retried=self._count_retry,
            )

    def _count_retry(self) -> None:
        if self._config.collect_metrics:
            self._metrics.retried()

    def _attempt(self, call: Call, request: WireRequest, number: int) -> Any:
        request.context.attempt = number
        if self._config.retry.attempt_timeout is not None:
            call.limit("attempt", self._config.retry.attempt_timeout)
        try:
            return self._authorized(call, request, lambda: self._answer(call, request))
        except TransportError as error:
            # Not later: it may become one of the earlier errors of another.
            describe(error, call, request.context)
            raise

    def _authorized(self, call: Call, request: WireRequest, act: Callable[[], Any]) -> Any:
        """Give a request its credentials and act; once more where the peer wants other ones."""
        context = request.context
        if not call.may_go_on():
            raise self._ended(call, context)
        request.credentials = credential_headers(call.credentials, context.url)
        try:
            return act()
        except AuthenticationError as error:
            if error.status_code not in _MAY_BE_STALE or not callable(call.credentials):
                raise
            # The peer has not processed what it refused, so the call may go out again.
            fresh = credential_headers(call.credentials, context.url, refresh=True)
            if fresh == request.credentials:
                raise
            request.credentials = fresh
            return act()

    def _answer(self, call: Call, request: WireRequest) -> Any:
        context = request.context
        if not call.may_go_on():
            raise self._ended(call, context)
        call.sent += len(request.body or b"")
        reply = self._exchange(request, call)
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

    def _decode(self, reply: WireReply, context: TransportRequestContext, call: Call) -> Any:
        return call.codec.decode(
            reply,
            context,
            retryable_statuses=self._config.retry.retryable_statuses,
            now=time.time,
        )

    def subscribe(
        self,
        agent_url: str,
        task: Task,
        *,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        cancel: CancelToken | None = None,
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
        call = Call(budget, cancel, self._codec, self._credentials)
        return self._subscribed(
            call,
            TASK_STREAM_REQUEST,
            url,
            task,
            idle,
            lambda source: EventStream(
                source,
                task_id=task_id(task),
                canceller=lambda reason, limit: self._cancel_streamed(url, task, reason, limit),
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
        primed: bool = False,
    ) -> _Stream:
        """Open a stream of another protocol; see :meth:`send_as`.

        Args:
            codec: Makes the bytes of the call and the events of the answer.
            request_spec: The operation.
            url: The whole address.
            data: What the operation sends.
            make: Makes the stream; what it is given is read by the stream's worker.
            timeout: Seconds from now to the end of the stream.
            idle_timeout: Seconds to the first event and from one event to the next.
            cancel: Token that ends the stream.
            credentials: What the peer is shown; never the transport's own.
            connect_timeout: Seconds for resolving, connecting and TLS; None for the transport's.
            primed: Wait for the first event here, so that what comes instead of it is raised here.
        """
        self._check_open()
        call = Call(timeout, cancel, codec, credentials)
        call.connect_timeout = connect_timeout
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
                    self._end(call)
        finally:
            if stream is None:
                self._end(call)
        return stream

    def _feed(
        self, call: Call, spec: ClientRequestSpec, url: str, data: Any, idle: float, primed: bool
    ) -> Feed:
        context = TransportRequestContext(spec.name, url, os.urandom(16).hex())
        body = call.codec.encode_body(spec, data)
        request: WireRequest = call.codec.encode(spec, context, body, data)
        self._check_size(request)
        try:
            call.outcome = "cancelled"
            call.limit("idle", idle)
            call.begin()
            if not self._stream_slots.acquire(call, nested=self._is_nested()):
                raise self._ended(call, context)
            self._check_open()
            call.sent = len(request.body or b"")
            opened = self._authorized(call, request, lambda: self._open_stream(request, call))
            call.limit("idle", idle)
            feed = Feed(
                opened, call, context, idle, lambda error: self._stream_over(call, context, error)
            )
            if primed:
                feed.prime()
        except BaseException as error:
            self._account(call, context, error)
            raise
        return feed

    def _stream_over(
        self, call: Call, context: TransportRequestContext, error: BaseException | None
    ) -> None:
        """Count a stream and free what it held (the worker)."""
        if error is not None:
            self._account(call, context, error)
        elif call.ended is None:
            call.outcome = "succeeded"
        self._end(call)

    def _cancel_streamed(
        self, url: str, task: Task, reason: str | None, timeout: float | None
    ) -> Task:
        request = TaskCancellationRequest(str(task_id(task)), reason)
        canceled: Task = self.send(TASK_CANCEL_REQUEST, url, request, timeout=timeout)
        return canceled

    # --- its end -----------------------------------------------------------------------------

    def _account(self, call: Call, context: TransportRequestContext, error: BaseException) -> None:
        """Write on an error which call it is about, and on the call how it ended."""
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
        if self._config.collect_metrics:
            self._metrics.count(call)
        (self._stream_slots if call.streams else self._slots).release(call)
        call.over = True

    def _ended(
        self, call: Call, context: TransportRequestContext, details: str = ""
    ) -> ProtoLinkError:
        """Return the error of a call that was ended from outside (for transports)."""
        return ended_error(call, context, details)

    def close(self) -> None:
        """End what is in flight, close every connection; later calls raise.

        A call that runs raises ``ClientClosedError``. Closing again is silent.
        """
        self._closed = True
        self._check_process()
        for call in self._slots.calls() | self._stream_slots.calls():
            call.abort("closed")
        # The workers of streams end by themselves now; no event tells when the last one has.
        end = time.monotonic() + self._config.shutdown_timeout
        while self._stream_slots.active and time.monotonic() < end:
            time.sleep(0.002)
        self._close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # --- addresses, processes, pickles -------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosedError(f"this {type(self).__name__} is closed: make a new one")
        self._check_process()

    def _check_process(self) -> None:
        # Some servers (uWSGI) fork without running the hooks of os.register_at_fork.
        if self._pid != os.getpid():
            self._after_fork()

    def _after_fork(self) -> None:
        """Forget, in a forked child, what belongs to the parent."""
        self._begin_process()

    def _peer(self, base_url: str | None) -> str:
        if base_url is not None:
            return self._addresses.checked(base_url)
        if self._url is None:
            raise ValueError(
                f"this {type(self).__name__} has no url: give one to it or to the call"
            )
        return self._url

    def __reduce__(self) -> Any:
        refuse_secret_headers(self._headers, what=f"headers= of this {type(self).__name__}")
        return _rebuild, (type(self), self._settings())

    def _settings(self) -> dict[str, Any]:
        """Return the constructor's arguments, for a copy in another process."""
        return {
            "url": self._url,
            "timeout": self._timeout,
            "credentials": self._credentials,
            "headers": dict(self._headers),
            "tls": self._tls,
            "config": self._config,
        }

    # --- hooks -------------------------------------------------------------------------------

    def _exchange(self, request: WireRequest, deadline: Call) -> WireReply:
        """Send the bytes of one attempt and return the answer's (hook).

        Block on nothing that ``deadline.abort()`` cannot end: ``deadline.lend(...)`` what can
        be cut. When I/O fails, ask ``deadline.ended`` first and raise ``self._ended(...)``.

        Raises:
            TransportError: Whatever went wrong, typed, with the library's error as cause.
        """
        raise NotImplementedError

    def _open_stream(self, request: WireRequest, deadline: Call) -> OpenStream:
        """Open a stream and return it (hook of transports that stream); see :meth:`_exchange`."""
        raise NotImplementedError

    def _is_nested(self) -> bool:
        """Return whether this call is made inside another one of this transport (hook).

        Such a call takes no slot of its own: the outer one would wait for itself.
        """
        return False

    def _close(self) -> None:
        """Give back connections; may be called again (hook)."""
        raise NotImplementedError


def _rebuild(cls: type[Transport], settings: dict[str, Any]) -> Transport:
    return cls(**settings)


_transports: weakref.WeakSet[Transport] = weakref.WeakSet()


def _forget_parents() -> None:
    for transport in list(_transports):
        transport._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parents)
