"""ProtoLink over gRPC, on grpcio: unary calls and streams, JSON in both directions."""

from __future__ import annotations

import importlib
import math
import os
import ssl
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from protolink_sync._deadline import CancelToken, Timer, forget, seconds, watch
from protolink_sync.config import TransportConfig
from protolink_sync.errors import ClientClosedError, ProtoLinkError, TransportError
from protolink_sync.security import Credentials, TLSConfig, credential_headers
from protolink_sync.transport import _grpc_health
from protolink_sync.transport._call import Call
from protolink_sync.transport._environment import authority_file
from protolink_sync.transport._grpc_metadata import metadata_of
from protolink_sync.transport._grpc_status import is_lost, stream_error, unary_error
from protolink_sync.transport._hooks import Hooks
from protolink_sync.transport._tls import client_context
from protolink_sync.transport.base import Codec, Transport, TransportCapabilities
from protolink_sync.wire import TransportRequestContext, WireReply, WireRequest, envelope

if TYPE_CHECKING:
    from protolink_sync.transport._grpc_channel import Channel, Channels, Rpc

__all__ = ["GRPCTransport"]

# How long the status may take that must follow a stream's last event.
_STATUS_TIME = 0.05

# How much earlier than our clock grpcio's may see the end of a budget.
_CLOCKS_DIFFER = 0.1


class GRPCTransport(Transport):
    """Carry calls and streams over gRPC, all to one peer on one connection.

    The peer is told the budget of a call and cancels the task when it is over; it does so too
    when the call is cancelled or a stream left. A port where nobody listens fails at once; with
    ``RetryPolicy`` the call waits for a peer that is about to start.

    Proxies of the environment are not used. After a fork the child makes its own connections.
    It cannot, and gets an error that says so, if a call was under way at the fork, or if
    ``GRPC_ENABLE_FORK_SUPPORT`` is 0. A Ctrl-C takes up to 0.5 s.

    Args:
        url: Address for calls that name none, ``grpc://host:port`` or ``grpcs://host:port``.
        timeout: Budget of a call that gives none, in seconds; ``math.inf`` for none.
        credentials: What the peers ask for, sent as metadata: a ``str`` (bearer token),
            ``BearerToken``, ``APIKey``, ``BasicAuth``, a mapping from origin to one of these, or
            a callable ``(origin, refresh) -> headers``.
        headers: Metadata for every call; names are sent in lower case.
        tls: Certificates, for ``grpcs``; None for the system's authorities.
        trust_env: False ignores the environment's CA bundles.
        config: Sizes, retries, connections.
        hooks: Functions that are told what happens.
        user_agent: What stands behind ``protolink-sync/<version>`` in ``User-Agent``.

    Raises:
        ImportError: grpcio is not installed.
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range, an address is no URL of this transport, or a
            header is not allowed.
    """

    transport_type: ClassVar[str] = "grpc"
    schemes: ClassVar[tuple[str, ...]] = ("grpc", "grpcs")
    capabilities: ClassVar[TransportCapabilities] = TransportCapabilities(
        networked=True, streaming=True, tls=True, bidirectional=False, persistent_connections=True
    )
    _codec: ClassVar[Codec] = envelope
    _host_and_port: ClassVar[bool] = True

    def __init__(
        self,
        url: str | None = None,
        timeout: float | None = 300.0,
        *,
        credentials: Credentials | None = None,
        headers: Mapping[str, str] | None = None,
        tls: TLSConfig | None = None,
        trust_env: bool = True,
        config: TransportConfig | None = None,
        hooks: Hooks | None = None,
        user_agent: str | None = None,
    ) -> None:
        if not isinstance(trust_env, bool):
            raise TypeError(f"trust_env is {trust_env!r}, must be True or False")
        if isinstance(tls, TLSConfig) and not tls.check_hostname:
            raise ValueError(
                "TLSConfig.check_hostname is False, which grpcio cannot do: call the peer by a "
                "name that is in its certificate"
            )
        self._trust_env = trust_env
        self._grpc = _library()
        super().__init__(
            url,
            timeout,
            credentials=credentials,
            headers=headers,
            tls=tls,
            config=config,
            hooks=hooks,
            user_agent=user_agent,
        )
        sent = dict(self._headers)
        names = [name for name in sent if name.lower() == "user-agent"]
        self._user_agent = [self.user_agent, *map(sent.pop, names)][-1]
        self._metadata = metadata_of(sent, what="headers=")

    def _begin_process(self) -> None:
        super()._begin_process()
        self._channels: Channels | None = None
        self._channels_lock = threading.RLock()

    def _settings(self) -> dict[str, Any]:
        return {**super()._settings(), "trust_env": self._trust_env}

    def check_health(
        self,
        url: str | None = None,
        service: str = "",
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> str:
        """Ask an agent by the standard health check of gRPC whether it serves.

        A ProtoLink agent answers without credentials, if ``grpcio-health-checking`` and
        ``grpcio-reflection`` are installed there. (:meth:`health` is about this transport.)

        Args:
            url: Address of the agent; None for the transport's own.
            service: Name of one service; empty for the agent as a whole. ProtoLink's is
                ``protolink.transport.v1.ProtolinkTransport``.
            timeout: Budget in seconds; None for the transport's, ``math.inf`` for none.
            cancel: Token that ends the call.

        Returns:
            ``SERVING``, ``NOT_SERVING``, ``UNKNOWN`` or ``SERVICE_UNKNOWN``.

        Raises:
            TypeError: An argument has the wrong type.
            TransportRemoteError: The agent has no health check (``error_type`` is
                ``UNIMPLEMENTED``), or not of this service (``NOT_FOUND``).
            TransportError: The agent gave no answer, or none that can be understood.
            CallCancelledError: The token was cancelled.

        Source:
            gRPC, "GRPC Health Checking Protocol"; wire/protolink.md 6.
        """
        if not isinstance(service, str):
            raise TypeError(f"service is a {type(service).__name__}, must be a str")
        codec: Any = _grpc_health  # without decode_event: it is no stream
        status: str = self.send_as(
            codec,
            _grpc_health.CHECK,
            self._peer(url),
            service,
            timeout=self._timeout if timeout is None else seconds("timeout", timeout),
            cancel=cancel,
            credentials=self._credentials,
        )
        return status

    # --- hooks -------------------------------------------------------------------------------

    def _exchange(self, request: WireRequest, deadline: Call) -> WireReply:
        metadata = self._metadata_of(request)
        channel = self._connected(request, deadline)
        try:
            deadline.phase = "wait"
            left = deadline.due - time.monotonic()
            timeout = None if left == math.inf else max(left, 0.0)
            if deadline.has_token:
                body = self._invoke_with_handle(channel, request, deadline, metadata, timeout)
            else:
                # A call without a token is ended by its budget, which grpcio watches too, or by
                # the end of the channel: it needs no handle.
                is_check = request.path == _grpc_health.CHECK.path
                unary = channel.check if is_check else channel.invoke
                body = unary(request.body, timeout=timeout, metadata=metadata)
        except self._grpc.RpcError as error:
            # grpcio may raise the call itself, which its frames lead back to.
            raise self._typed(error, request, deadline, channel) from error.with_traceback(None)
        except ValueError as error:
            if not self._closed:
                raise
            raise self._closed_error(request.context) from error
        except ProtoLinkError:  # it was ended before it began
            raise
        except BaseException:
            # Ctrl-C, or an alarm, may leave a call without a handle running: its channel is not
            # used again, and closed, which ends the call, when the others have left it.
            self._retire(request.context.url, channel)
            raise
        finally:
            channel.leave(deadline)
        if deadline.ended is not None:
            raise self._ended(deadline, request.context)
        return WireReply(200, "", {}, body)

    def _open_stream(self, request: WireRequest, deadline: Call) -> _GRPCStream:
        return _GRPCStream(self, request, self._begin_stream(request, deadline), deadline)

    def _begin_stream(self, request: WireRequest, call: Call) -> Rpc:
        metadata = self._metadata_of(request)
        channel = self._connected(request, call)
        try:
            call.phase = "wait"
            replies = channel.stream(request.body, metadata=metadata)
        except ValueError as error:
            channel.leave(call)
            if not self._closed:
                raise
            raise self._closed_error(request.context) from error
        rpc: Rpc = self._grpc.Rpc(channel, call, replies)
        if not call.lend(rpc):
            rpc.finish()
            raise self._ended(call, request.context)
        return rpc

    def _renew_stream(self, error: Any, request: WireRequest, rpc: Rpc, call: Call) -> Rpc | None:
        """Begin a stream anew that a peer has refused before any event; None if that is vain.

        The peer has not processed what it refused, so the call may go out again. That it refuses
        is told only where the first event would come, and may come late: to wait for it while
        the stream is opened would keep its caller from everything else.
        """
        if error.code().name != "UNAUTHENTICATED" or not callable(call.credentials):
            return None
        fresh = credential_headers(call.credentials, request.context.url, refresh=True)
        if fresh == request.credentials or not call.may_go_on():
            return None
        request.credentials = fresh
        rpc.finish()
        rpc.channel.leave(call)
        return self._begin_stream(request, call)

    def _close(self) -> None:
        channels = self._channels
        if channels is not None:
            channels.close()

    # --- channels ----------------------------------------------------------------------------

    def _connected(self, request: WireRequest, call: Call) -> Channel:
        """Return a channel of which the call is a user, connected if that was possible."""
        context = request.context
        channels = self._channels
        if channels is None:
            with self._channels_lock: channels = self._make_channels()  # fmt: skip  # noqa: E701
        call.phase = "connect"
        channel = channels.enter(context.url, call, context)
        try:
            # close() sets the flag first and then closes the channels it finds.
            if self._closed:
                channel.close()
                raise self._closed_error(context)
            if channel.is_ready():
                return channel
            if channel.has_failed():
                # Its next attempt may be seconds away; a new channel tries at once.
                channel.leave(call)
                channels.retire(context.url, channel)
                channel = channels.enter(context.url, call, context)
            call.limit("connect", self._config.connect_timeout)
            channel.connect(call, context.where)
            if call.ended is not None:
                channels.retire(context.url, channel)
                raise self._ended(call, context)
            call.limit("connect", math.inf)
        except BaseException:
            channel.leave(call)
            raise
        return channel

    def _make_channels(self) -> Channels:
        if self._channels is None:
            tls, trust_env = self._tls, self._trust_env
            library = self._grpc
            self._channels = library.Channels(
                self._config,
                self._user_agent,
                # The channels must not keep the transport alive.
                lambda: library.ssl_credentials(*_pem_of(tls, trust_env)),
            )
        return self._channels

    def _metadata_of(self, request: WireRequest) -> list[tuple[str, str]]:
        context = request.context
        metadata = [*self._metadata]
        if request.headers:
            own = metadata_of(request.headers, what="headers=")
            names = {name for name, _ in own}
            metadata = [pair for pair in metadata if pair[0] not in names] + own
        metadata.append(("x-protolink-request-id", context.request_id))
        if context.idempotency_key is not None:
            metadata.append(("idempotency-key", context.idempotency_key))
        if request.credentials:
            metadata += metadata_of(request.credentials, what="credentials=")
        return metadata

    def _invoke_with_handle(
        self,
        channel: Channel,
        request: WireRequest,
        call: Call,
        metadata: list[tuple[str, str]],
        timeout: float | None,
    ) -> bytes:
        is_check = request.path == _grpc_health.CHECK.path
        unary = channel.check_with_handle if is_check else channel.invoke_with_handle
        replies = unary(request.body, timeout=timeout, metadata=metadata)
        rpc = self._grpc.Rpc(channel, call, replies)
        try:
            if not call.lend(rpc):
                raise self._ended(call, request.context)
            body: bytes = next(replies, b"")
            call.phase = "read"
            next(replies, None)  # raises the status, unless it is OK
            call.release()
        except (self._grpc.RpcError, ProtoLinkError):
            rpc.finish()
            raise
        except BaseException:
            rpc.finish_later()
            raise
        rpc.finish()
        return body

    # --- errors ------------------------------------------------------------------------------

    def _typed(
        self, error: Any, request: WireRequest, call: Call, channel: Channel
    ) -> ProtoLinkError:
        self._notice(error, request, call, channel)
        if call.ended is not None:
            return self._ended(call, request.context)
        return unary_error(
            error,
            request.context,
            limit=self._config.limits.max_response_bytes,
            sent=len(request.body or b""),
            submits=call.submits,
        )

    def _broken(
        self, error: Any, request: WireRequest, call: Call, channel: Channel
    ) -> ProtoLinkError:
        """Return the error of a stream that a status ended."""
        self._notice(error, request, call, channel)
        if call.ended is not None:
            return self._ended(call, request.context)
        return stream_error(error, request.context, limit=self._config.limits.max_event_bytes)

    def _notice(self, error: Any, request: WireRequest, call: Call, channel: Channel) -> None:
        """Draw the conclusions from a status."""
        left = call.due - time.monotonic()
        if error.code().name == "DEADLINE_EXCEEDED" and left < _CLOCKS_DIFFER:
            call.wait(left)
        # grpcio notices the end of a connection in threads of its own, and would have the next call
        # meet it too.
        if is_lost(error):
            self._retire(request.context.url, channel)

    def _retire(self, url: str, channel: Channel) -> None:
        if self._channels is not None:
            self._channels.retire(url, channel)

    def _ended(
        self, call: Call, context: TransportRequestContext, details: str = ""
    ) -> ProtoLinkError:
        error = super()._ended(call, context, details)
        if call.ended == "attempt" and call.submits and call.phase != "connect":
            # The peer has cancelled the task with the attempt, and would run it again.
            assert isinstance(error, TransportError)
            error.retryable = False
        return error

    def _closed_error(self, context: TransportRequestContext) -> ClientClosedError:
        return ClientClosedError(f"{context.where}: the client was closed during the call")


class _GRPCStream:
    """One open stream."""

    def __init__(
        self, transport: GRPCTransport, request: WireRequest, rpc: Rpc, call: Call
    ) -> None:
        self._transport = transport
        self._request = request
        self._rpc = rpc
        self._replies = rpc.replies
        self._call = call
        self._foreign: type[Exception] = transport._grpc.RpcError
        # Whether the credentials may be renewed: once, and before the first event.
        self._may_renew = True

    def receive(self) -> list[bytes] | None:
        """Wait for the next envelope; None when the peer has ended the stream."""
        reply: bytes | None = None
        is_renewed = False
        try:
            reply = next(self._replies, None)
        except self._foreign as error:
            error.with_traceback(None)  # it is the call itself, which its frames lead back to
            is_renewed = self._renewed(error)
            if not is_renewed:
                raise self._transport._broken(
                    error, self._request, self._call, self._rpc.channel
                ) from error
        if is_renewed:
            return self.receive()
        self._may_renew = False
        self._call.phase = "read"
        return None if reply is None else [reply]

    def _renewed(self, error: Exception) -> bool:
        may, self._may_renew = self._may_renew, False
        rpc = (
            self._transport._renew_stream(error, self._request, self._rpc, self._call)
            if may
            else None
        )
        if rpc is not None:
            self._rpc, self._replies = rpc, rpc.replies
        return rpc is not None

    def close(self, finished: bool) -> None:
        """Wait for the status of a finished stream: to cancel it would cancel the task."""
        if finished:
            timer = Timer(_STATUS_TIME, self._rpc.cut)
            watch(timer)
            try:
                next(self._replies, None)
            except self._foreign as error:
                error.with_traceback(None)  # as above
            finally:
                forget(timer)
        self._rpc.finish()


def _library() -> Any:
    """Return the module that stands on grpcio, imported when the first transport is made."""
    try:
        return importlib.import_module("protolink_sync.transport._grpc_channel")
    except ImportError as error:
        raise ImportError("GRPCTransport needs grpcio: install protolink-sync[grpc]") from error


def _pem_of(
    tls: TLSConfig | None, trust_env: bool
) -> tuple[bytes | None, bytes | None, bytes | None]:
    """Return the authorities, the key and the certificate for ``grpcs``.

    Raises:
        ValueError: A file cannot be read, is no PEM file, or certificate and key do not belong
            together.
    """
    authority = authority_file() if trust_env else None
    # Reads the files too, and says which one is wrong; grpcio would only fail to connect.
    context = client_context(tls, authority, trust_env)
    named = tls.cafile if tls is not None and tls.cafile is not None else authority
    roots: bytes | None
    if named is not None:
        roots = _contents(named)
    else:
        system = context.get_ca_certs(binary_form=True)
        roots = "".join(map(ssl.DER_cert_to_PEM_cert, system)).encode() or None
    if tls is None or tls.certfile is None or tls.keyfile is None:
        return roots, None, None
    return roots, _contents(tls.keyfile), _contents(tls.certfile)


def _contents(path: str | os.PathLike[str]) -> bytes:
    """Return a file, or all files of a folder one behind the other."""
    if not os.path.isdir(path):
        with open(path, "rb") as file:
            return file.read()
    found = (os.path.join(path, name) for name in sorted(os.listdir(path)))
    return b"\n".join(_contents(name) for name in found if os.path.isfile(name))
