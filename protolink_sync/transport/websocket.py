"""ProtoLink over WebSocket, on websocket-client."""

from __future__ import annotations

import functools
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit

import attrs

from protolink_sync.config import TransportConfig
from protolink_sync.errors import (
    ProtoLinkError,
    StreamInterruptedError,
    TransportConnectionError,
    TransportLimitError,
    TransportProtocolError,
    TransportRemoteError,
)
from protolink_sync.security import Credentials, TLSConfig, origin
from protolink_sync.transport._call import Call
from protolink_sync.transport._environment import (
    authority_file,
    checked_proxy,
    proxy_for,
    proxy_tls,
)
from protolink_sync.transport._headers import merged
from protolink_sync.transport._hooks import Hooks
from protolink_sync.transport._sockets import ConnectFailed, connect_error
from protolink_sync.transport._tls import client_context
from protolink_sync.transport._ws_connection import Endpoint, Pool, WebSocketConnection
from protolink_sync.transport._ws_library import (
    FOREIGN_ERRORS,
    MessageTooLarge,
    UpgradeRefused,
    WebSocketClosed,
    protocol_error,
)
from protolink_sync.transport.base import Codec, Transport, TransportCapabilities
from protolink_sync.wire import TransportRequestContext, WireReply, WireRequest, envelope
from protolink_sync.wire import http as http_codec

__all__ = ["WebSocketTransport"]

_DEFAULT_PORTS = {"ws": 80, "wss": 443}

# How the variables of the environment name the two schemes.
_AS_HTTP = {"ws": "http", "wss": "https"}

# How many pools are kept; each address, channel and value of the credentials has one.
_KNOWN_POOLS = 256

# Close codes that the same message would bring again.
_HOPELESS_CODES = (1002, 1003, 1007, 1008, 1009, 1010)
_TOO_BIG = 1009
_UNEXPECTED_CONDITION = 1011

# Seconds after which a reader's pause is told when its connection breaks: a peer may have ended
# it because pings stayed unanswered, and could not say so, the connection being full.
_LONG_UNREAD = 1.0


class _Network:
    """What one process has open: endpoints and pools."""

    def __init__(self, transport: WebSocketTransport) -> None:
        self._config = transport.config
        # Neither the network nor a pool must keep the transport alive.
        tls, trust_env = transport._tls, transport._trust_env
        authority = authority_file() if trust_env else None
        self._tls_context: Callable[[], ssl.SSLContext] = functools.partial(
            client_context, tls, authority, trust_env
        )
        self._proxy_tls_context: Callable[[], ssl.SSLContext] = functools.partial(
            client_context, proxy_tls(tls), authority, trust_env
        )
        self._headers = merged({"User-Agent": transport.user_agent}, transport._headers)
        self._proxy, self._trust_env = transport._proxy, trust_env
        self._endpoints: dict[str, Endpoint] = {}
        self._pools: dict[tuple[str, str, frozenset[tuple[str, str]]], Pool] = {}
        self._lock = threading.RLock()
        self._closed = False

    def pool(self, request: WireRequest) -> Pool:
        """Return the connections that a call may use: those with its channel and credentials."""
        credentials = request.credentials
        key = (
            request.context.url,
            request.channel,
            frozenset(credentials.items()) if credentials else frozenset(),
        )
        pool = self._pools.get(key)
        if pool is None:
            # One line, as in Deadline.lend(): an interrupt must not leave the lock behind.
            with self._lock: pool = self._make_pool(key)  # fmt: skip  # noqa: E701
        return pool

    def _make_pool(self, key: tuple[str, str, frozenset[tuple[str, str]]]) -> Pool:
        pool = self._pools.get(key)
        if pool is None:
            if len(self._pools) >= _KNOWN_POOLS:
                self._forget_pools()
            config = self._config
            pool = Pool(
                self.endpoint(key[0]), config.keepalive_interval, config.max_idle_connections
            )
            self._pools[key] = pool
        return pool

    def _forget_pools(self) -> None:
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            pool.close()

    def endpoint(self, url: str) -> Endpoint:
        """Return the prepared form of an address; the environment is asked once for each."""
        endpoint = self._endpoints.get(url)
        if endpoint is None:
            if len(self._endpoints) >= _KNOWN_POOLS:
                self._endpoints.clear()
            self._endpoints[url] = endpoint = self._make_endpoint(url)
        return endpoint

    def _make_endpoint(self, url: str) -> Endpoint:
        parts = urlsplit(url)
        proxy = self._proxy
        if proxy is None and self._trust_env:
            proxy = proxy_for(url.replace(parts.scheme, _AS_HTTP[parts.scheme], 1))
        if proxy is not None:
            proxy = checked_proxy(proxy)
            if parts.scheme == "wss" and urlsplit(proxy).scheme == "https":
                raise ValueError(
                    f"the proxy of {url} is an https:// one, through which wss:// cannot go: "
                    "name one that is reached without TLS"
                )
        return Endpoint(
            url=url,
            host=parts.hostname or "",
            port=parts.port or _DEFAULT_PORTS[parts.scheme],
            host_header=origin(url).partition("://")[2],
            headers=self._headers,
            connect_timeout=self._config.connect_timeout,
            tls_context=self._tls_context,
            encrypted=parts.scheme == "wss",
            proxy=proxy,
            proxy_tls_context=self._proxy_tls_context,
        )

    def close(self) -> None:
        """Close every connection that is not in use, and those when they come back."""
        for pool in list(self._pools.values()):
            pool.close()


@attrs.define
class _Answer(WireReply):
    """An answer whose connection is kept once it was understood.

    Args:
        pool: Where it is kept.
        connection: What is kept; None for nothing.
    """

    pool: Pool
    connection: WebSocketConnection | None

    def keep(self, call: Call) -> None:
        """Keep the connection for the next call."""
        if self.connection is not None:
            self.pool.give_back(self.connection, call)


class WebSocketTransport(Transport):
    """Carry calls and streams to ProtoLink agents over WebSocket.

    A connection carries one call at a time; idle ones are kept, those for control requests
    apart, so that a cancel never waits behind the task. Each stream has a connection of its own.
    Leaving a stream or a call does *not* end the task at the agent, which does not notice before
    it sends the next time: ``EventStream.cancel`` and ``AgentClient.cancel_task`` end it.

    Pings are answered while a call or a stream reads. A reader that stalls for longer than the
    agent's ping time-out (20 s unless set otherwise) loses its stream.

    Args:
        url: Address for calls that name none, ``ws://`` or ``wss://``.
        timeout: Budget of a call that gives none, in seconds; ``math.inf`` for none.
        credentials: What the peers ask for, sent with the upgrade: a ``str`` (bearer token),
            ``BearerToken``, ``APIKey``, ``BasicAuth``, a mapping from origin to one of these, or
            a callable ``(origin, refresh) -> headers``.
        headers: Headers for every upgrade.
        tls: Certificates; None for the system's authorities.
        proxy: URL of a proxy for all connections; None for what the environment says
            (``HTTP_PROXY`` for ``ws``, ``HTTPS_PROXY`` for ``wss``).
        trust_env: False ignores the environment's proxies and CA bundles.
        config: Sizes, retries, connections. ``connect_timeout`` covers the upgrade too.
        hooks: Functions that are told what happens.
        user_agent: What stands behind ``protolink-sync/<version>`` in ``User-Agent``.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range, an address is no URL of this transport, or a
            header is not allowed.
    """

    transport_type: ClassVar[str] = "websocket"
    schemes: ClassVar[tuple[str, ...]] = ("ws", "wss")
    capabilities: ClassVar[TransportCapabilities] = TransportCapabilities(
        networked=True, streaming=True, tls=True, bidirectional=True, persistent_connections=True
    )
    _codec: ClassVar[Codec] = envelope
    _headers_per_call: ClassVar[bool] = False

    def __init__(
        self,
        url: str | None = None,
        timeout: float | None = 300.0,
        *,
        credentials: Credentials | None = None,
        headers: Mapping[str, str] | None = None,
        tls: TLSConfig | None = None,
        proxy: str | None = None,
        trust_env: bool = True,
        config: TransportConfig | None = None,
        hooks: Hooks | None = None,
        user_agent: str | None = None,
    ) -> None:
        if not isinstance(trust_env, bool):
            raise TypeError(f"trust_env is {trust_env!r}, must be True or False")
        self._proxy = None if proxy is None else checked_proxy(proxy)
        self._trust_env = trust_env
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
        for name in self._headers:
            if name.lower() == "upgrade" or name.lower().startswith("sec-websocket-"):
                raise ValueError(f"headers= has {name}, which WebSocket sets itself: leave it out")

    def _begin_process(self) -> None:
        super()._begin_process()
        self._network: _Network | None = None
        self._network_lock = threading.RLock()

    def _settings(self) -> dict[str, Any]:
        if self._proxy is not None and urlsplit(self._proxy).password is not None:
            raise TypeError(
                "proxy= of this WebSocketTransport holds a password and cannot be pickled: "
                "name the proxy in the environment (HTTPS_PROXY)"
            )
        return {**super()._settings(), "proxy": self._proxy, "trust_env": self._trust_env}

    def _net(self) -> _Network:
        network = self._network
        if network is None:
            with self._network_lock: network = self._make_network()  # fmt: skip  # noqa: E701
        return network

    def _make_network(self) -> _Network:
        self._network = network = self._network or _Network(self)
        return network

    # --- hooks -------------------------------------------------------------------------------

    def _exchange(self, request: WireRequest, deadline: Call) -> WireReply:
        context = request.context
        limit = self._config.limits.max_response_bytes
        pool = self._net().pool(request)
        try:
            connection = pool.lend_to(deadline)
            if not connection.is_open:
                self._open(connection, request, deadline)
            connection.send(request.body or b"", deadline)
            messages = connection.receive(limit, deadline)
        except FOREIGN_ERRORS as error:
            raise self._typed(error, request, deadline, "reply") from error
        if deadline.ended is not None:
            raise self._ended(deadline, context)
        # More than one message: what the others answer nobody has asked. Nor is a connection kept
        # after an id of the caller's own, which may come again: a late answer would have it too.
        options = deadline.options
        is_ours = options is None or options.request_id is None
        kept = connection if len(messages) == 1 and is_ours else None
        return _Answer(200, "", {}, messages[0], pool, kept)

    def _decode(self, reply: WireReply, context: TransportRequestContext, call: Call) -> Any:
        assert isinstance(reply, _Answer)
        try:
            # By its id, because an answer to an earlier call must not be taken for this one's.
            value = envelope.decode_reply(reply.body, context, needs_id=True)
        except TransportRemoteError:
            # An error without it leaves open whether an answer to the call follows.
            if context.request_id.encode() in reply.body:
                reply.keep(call)
            raise
        # After an answer that cannot be understood nobody knows what comes next.
        reply.keep(call)
        return value

    def _open_stream(self, request: WireRequest, deadline: Call) -> _WebSocketStream:
        connection = WebSocketConnection(self._net().endpoint(request.context.url))
        try:
            if not deadline.lend(connection):
                raise InterruptedError("the call was ended")
            self._open(connection, request, deadline)
            connection.send(request.body or b"", deadline)
        except FOREIGN_ERRORS as error:
            raise self._typed(error, request, deadline, "event") from error
        if deadline.ended is not None:
            raise self._ended(deadline, request.context)
        return _WebSocketStream(self, request, connection, deadline)

    def _close(self) -> None:
        network = self._network
        if network is not None:
            network.close()

    # --- one exchange ------------------------------------------------------------------------

    def _open(self, connection: WebSocketConnection, request: WireRequest, call: Call) -> None:
        try:
            connection.open(call, request.credentials)
        except UpgradeRefused as refused:
            # The call may go on, with other credentials on another connection.
            call.release()
            connection.close()
            raise self._refused(refused, request.context) from refused

    def _refused(self, refused: UpgradeRefused, context: TransportRequestContext) -> ProtoLinkError:
        """Return the error for another answer to the upgrade than 101."""
        reply = refused.reply
        if 200 <= reply.status <= 299:
            return TransportProtocolError(
                f"{context.where}: the peer answered the upgrade to WebSocket with "
                f"{reply.status} {reply.reason}, not with 101. Does the agent speak another "
                "transport there, such as http?",
                status_code=reply.status,
            )
        try:
            http_codec.decode(
                WireReply(reply.status, reply.reason, reply.headers, refused.body),
                context,
                retryable_statuses=self._config.retry.retryable_statuses,
                now=time.time,
            )
        except ProtoLinkError as error:
            return error
        raise AssertionError("a refusal was decoded as a success")

    # --- errors ------------------------------------------------------------------------------

    def _typed(
        self, error: BaseException, request: WireRequest, call: Call, what: str
    ) -> ProtoLinkError:
        """Return our error for a library's. The only place where ``retryable`` is decided."""
        context, tried = request.context, ""
        if isinstance(error, ConnectFailed):
            # The share of the last address ends with the bound of all, which counts.
            call.may_go_on()
            tried = f" ({error})"
        if call.ended is not None:
            return self._ended(call, context, tried)
        if isinstance(error, MessageTooLarge):
            return self._too_large(error, context, what)
        typed = connect_error(error, context) or protocol_error(error, context)
        if typed is not None:
            return typed
        code = error.code if isinstance(error, WebSocketClosed) else None
        running = (
            ". The task may be running at the peer"
            if call.submits and call.phase in ("wait", "read")
            else ""
        )
        return TransportConnectionError(
            f"{context.where}: the connection ended before the {what} was whole "
            f"({error}){_why_closed(code)}{running}",
            retryable=code not in _HOPELESS_CODES,
        )

    def _too_large(
        self, error: MessageTooLarge, context: TransportRequestContext, what: str
    ) -> TransportLimitError:
        limits = self._config.limits
        name, limit = (
            ("max_event_bytes", limits.max_event_bytes)
            if what == "event"
            else ("max_response_bytes", limits.max_response_bytes)
        )
        return TransportLimitError(
            f"{context.where}: the {what} {error}, limit is {limit}. Raise "
            f"TransportLimits.{name}, or ask the agent for less"
        )

    def _broken(
        self, error: Exception, request: WireRequest, call: Call, unread: float
    ) -> ProtoLinkError:
        """Return the error of a stream that broke.

        Args:
            error: What happened.
            request: The request of the stream.
            call: Its budget.
            unread: For how many seconds at most nothing was read from the connection.
        """
        typed = self._typed(error, request, call, "event")
        if type(typed) is not TransportConnectionError:
            return typed
        slow = ""
        if unread >= _LONG_UNREAD or _is_unanswered_ping(error):
            slow = (
                ". The reader of this stream was too slow: it had so much unread that for "
                f"{unread:.1f} s nothing was read from the connection, and no ping answered"
            )
        return StreamInterruptedError(
            f"{request.context.where}: the stream was cut, the connection ended ({error}){slow}. "
            "The task may go on at the agent; cancel_task ends it"
        )


def _is_unanswered_ping(error: Exception) -> bool:
    return (
        isinstance(error, WebSocketClosed)
        and error.code == _UNEXPECTED_CONDITION
        and "ping" in error.reason
    )


def _why_closed(code: int | None) -> str:
    if code == _TOO_BIG:
        return ". The request is larger than the agent accepts: its max_request_bytes says how much"
    return ""


class _WebSocketStream:
    """One open stream."""

    def __init__(
        self,
        transport: WebSocketTransport,
        request: WireRequest,
        connection: WebSocketConnection,
        call: Call,
    ) -> None:
        self._transport = transport
        self._request = request
        self._connection = connection
        self._call = call
        self._limit = transport.config.limits.max_event_bytes
        # When the connection was read last, and the longest time in which it was not.
        self._read_at = time.monotonic()
        self._unread = 0.0

    def receive(self) -> list[bytes] | None:
        """Wait for the next events' envelopes."""
        self._unread = max(self._unread, time.monotonic() - self._read_at)
        try:
            return self._connection.receive(self._limit, self._call)
        except FOREIGN_ERRORS as error:
            raise self._transport._broken(error, self._request, self._call, self._unread) from error
        finally:
            self._read_at = time.monotonic()

    def close(self, finished: bool) -> None:
        """Close the connection; after the last event with a close frame."""
        if finished:
            # Not the call's any more, also where it was ended meanwhile: nobody else closes it.
            if self._call.release():
                self._connection.is_quiet = True
            self._connection.close()
