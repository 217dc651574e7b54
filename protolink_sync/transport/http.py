"""ProtoLink over HTTP, on requests."""

from __future__ import annotations

import http.client
import math
import threading
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.exceptions import DecodeError
from urllib3.exceptions import HTTPError as Urllib3Error

from protolink_sync.config import TransportConfig
from protolink_sync.errors import (
    ProtoLinkError,
    TransportConnectionError,
    TransportLimitError,
    TransportProtocolError,
)
from protolink_sync.security import Credentials, TLSConfig, origin
from protolink_sync.transport._call import Call
from protolink_sync.transport._connections import MAX_POOLS, Adapter, Connection, Pool
from protolink_sync.transport._environment import (
    authority_file,
    checked_proxy,
    proxy_for,
    proxy_tls,
)
from protolink_sync.transport._headers import merged
from protolink_sync.transport._hooks import Hooks
from protolink_sync.transport._raw import RawCalls
from protolink_sync.transport._reply import Reply
from protolink_sync.transport._sockets import TLS_ENDS, ConnectFailed, connect_error
from protolink_sync.transport._tls import client_context
from protolink_sync.transport.base import Codec, Transport, TransportCapabilities
from protolink_sync.wire import WireReply, WireRequest
from protolink_sync.wire import http as http_codec

__all__ = ["HTTPTransport"]

_HEADERS = {"Accept-Encoding": "gzip, deflate"}

_READ_BYTES = 64 * 1024

# What requests does itself; something else there is a test library that wants to see the calls.
_REQUESTS_SEND = HTTPAdapter.send

# A library's errors that can come out of one exchange; each is turned into one of ours.
FOREIGN_ERRORS = (OSError, http.client.HTTPException, Urllib3Error, requests.RequestException)


class _Route:
    """What is the same for all calls of one operation at one address.

    Args:
        pool: The connections.
        target: What stands in the request line.
        url: The whole address of the operation.
        headers: Headers of every call.
    """

    def __init__(self, pool: Pool, target: str, url: str, headers: dict[str, str]) -> None:
        self.pool = pool
        self.url = url
        # Not: whether the connection is encrypted, as that to the proxy itself may be.
        self.is_tunnelled = pool.proxy is not None and urlsplit(url).scheme == "https"
        self.headers = headers
        host = origin(url).partition("://")[2]
        self._target = f" {target or '/'} HTTP/1.1\r\nHost: {host}\r\n"
        self._lines = _lines(headers)
        self._names = {name.lower() for name in headers}

    def head(self, request: WireRequest) -> bytes:
        """Return request line and headers of one call, the blank line included.

        Every value was checked where it came from: none can end its line.
        """
        headers, lines = request.headers, self._lines
        if request.credentials:
            headers = {**headers, **request.credentials}
        names = {name.lower() for name in headers}
        if len(names) < len(headers) or not names.isdisjoint(self._names):
            headers, lines = merged(self.headers, headers), ""
        body = request.body
        if body is not None or request.method != "GET":
            lines += f"Content-Length: {len(body or b'')}\r\n"
        return f"{request.method}{self._target}{lines}{_lines(headers)}\r\n".encode("ascii")


class _Network:
    """What one process has open: the adapter of requests, its pools, and the routes."""

    def __init__(self, transport: HTTPTransport) -> None:
        self._config = transport.config
        # The network must not keep the transport alive, nor the pools either of them.
        tls, trust_env = transport._tls, transport._trust_env
        authority = authority_file() if trust_env else None
        self.adapter = Adapter(
            lambda: client_context(tls, authority, trust_env),
            lambda: client_context(proxy_tls(tls), authority, trust_env),
        )
        ours = {**_HEADERS, "User-Agent": transport.user_agent}
        self._headers = merged(ours, transport._headers)
        self._proxy, self._trust_env = transport._proxy, transport._trust_env
        self._proxies: dict[str, str | None] = {}
        self._routes: dict[str, _Route] = {}
        self._lock = threading.RLock()

    def route(self, url: str) -> _Route:
        """Return the prepared form of one operation's address."""
        route = self._routes.get(url)
        if route is None:
            # One line, as in Deadline.lend(): an interrupt must not leave the lock behind.
            with self._lock: route = self._make_route(url)  # fmt: skip  # noqa: E701
        return route

    def _make_route(self, url: str) -> _Route:
        route = self._routes.get(url) or self._prepare(url)
        # No more of them than the adapter keeps pools, so that it keeps those of all of them.
        if len(self._routes) >= MAX_POOLS:
            self._routes.clear()
        self._routes[url] = route
        return route

    def proxy(self, url: str) -> str | None:
        """Return the proxy for an address; the environment is asked once for each origin."""
        where = origin(url)
        if where not in self._proxies:
            proxy = self._proxy or (proxy_for(url) if self._trust_env else None)
            self._proxies[where] = None if proxy is None else checked_proxy(proxy)
        return self._proxies[where]

    def _prepare(self, url: str) -> _Route:
        proxy = self.proxy(url)
        parts = urlsplit(url)
        pool = self.adapter.pool(parts, proxy)
        pool.bound(self._config.keepalive_interval, self._config.max_idle_connections)
        pool.connect_timeout = self._config.connect_timeout
        if proxy is not None and parts.scheme == "http":
            # A proxy is asked for the whole address, and may want a password.
            return _Route(pool, url, url, {**self._headers, **pool.proxy_headers})
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        return _Route(pool, target, url, self._headers)

    def close(self) -> None:
        """Close every connection that is not in use, and those when they come back."""
        for pool in self.adapter.pools():
            pool.close()
        for route in list(self._routes.values()):
            route.pool.close()


class HTTPTransport(Transport):
    """Carry calls to ProtoLink agents over HTTP/1.1, each thread on a kept connection.

    Redirects are not followed, cookies not kept, ``.netrc`` is not read. Calls do not stream.

    Args:
        url: Address for calls that name none.
        timeout: Budget of a call that gives none, in seconds; ``math.inf`` for none.
        credentials: What the peers ask for: a ``str`` (bearer token), ``BearerToken``,
            ``APIKey``, ``BasicAuth``, a mapping from origin to one of these, or a callable
            ``(origin, refresh) -> headers``.
        headers: Headers for every call.
        tls: Certificates; None for the system's authorities.
        proxy: URL of a proxy for all calls; None for what the environment says.
        trust_env: False ignores the environment's proxies and CA bundles.
        config: Sizes, retries, connections.
        hooks: Functions that are told what happens.
        user_agent: What stands behind ``protolink-sync/<version>`` in ``User-Agent``.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range, an address is no URL of this transport, or a
            header is not allowed.
    """

    transport_type: ClassVar[str] = "http"
    schemes: ClassVar[tuple[str, ...]] = ("http", "https")
    capabilities: ClassVar[TransportCapabilities] = TransportCapabilities(
        networked=True, streaming=False, tls=True, bidirectional=False, persistent_connections=True
    )
    _codec: ClassVar[Codec] = http_codec

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

    @property
    def with_raw_response(self) -> RawCalls:
        """The same calls, whose ``send`` returns a :class:`RawResponse`: status, headers, body."""
        return RawCalls(self)

    def _begin_process(self) -> None:
        super()._begin_process()
        self._network: _Network | None = None
        self._network_lock = threading.RLock()

    def _settings(self) -> dict[str, Any]:
        if self._proxy is not None and urlsplit(self._proxy).password is not None:
            raise TypeError(
                "proxy= of this HTTPTransport holds a password and cannot be pickled: "
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
        route = self._net().route(context.url + request.path)
        try:
            if HTTPAdapter.send is _REQUESTS_SEND:
                reply = self._direct(route, request, deadline)
            else:
                reply = self._through_requests(route, request, deadline)
        except FOREIGN_ERRORS as error:
            raise self._typed(error, request, deadline) from error
        # A cut connection looks like the end of a body that ends with its connection.
        if deadline.ended is not None:
            raise self._ended(deadline, context)
        return reply

    def _close(self) -> None:
        network = self._network
        if network is not None:
            network.close()

    # --- one exchange ------------------------------------------------------------------------

    def _direct(self, route: _Route, request: WireRequest, call: Call) -> WireReply:
        connection, raw = self._head(route, request, call)
        body = self._read(raw, request)
        route.pool.give_back(connection, call)
        return WireReply(raw.status, raw.reason, raw.headers, body)

    def _head(self, route: _Route, request: WireRequest, call: Call) -> tuple[Connection, Reply]:
        """Send a request and return the reply with its body unread, and its connection."""
        connection = route.pool.lend_to(call)
        call.phase = "send"
        if connection.is_closed and route.is_tunnelled:
            route.pool._prepare_proxy(connection)
        connection.send_request(route.head(request), request.body)
        call.phase = "wait"
        reply = connection.read_head(request.method)
        call.phase = "read"
        return connection, reply

    def _through_requests(self, route: _Route, request: WireRequest, call: Call) -> WireReply:
        """Send as requests does: for libraries that replace its adapter in tests."""
        headers = merged(route.headers, request.headers, request.credentials or {})
        prepared = requests.Request(
            request.method, route.url, headers=headers, data=request.body
        ).prepare()
        call.phase = "send"
        left = call.remaining()
        response = self._net().adapter.send(
            prepared, stream=True, timeout=None if left == math.inf else left
        )
        call.phase = "read"
        try:
            body = self._read_stream(response.raw, request)
        finally:
            response.close()
        names = {name.lower(): value for name, value in response.headers.items()}
        return WireReply(response.status_code, response.reason or "", names, body)

    def _read(self, raw: Reply, request: WireRequest) -> bytes:
        """Return the whole body, within the limit."""
        limit = self._config.limits.max_response_bytes
        length = raw.length
        if length is not None and length > limit:
            raise self._too_large(request, f"announces {length} bytes")
        if raw.headers.get("content-encoding", "identity").lower() != "identity":
            return self._read_stream(_inflated(raw), request)
        if length is not None:
            return raw.read()
        return self._read_stream(raw, request)

    def _read_stream(self, raw: Any, request: WireRequest) -> bytes:
        """Return a body of unknown length, counted as it comes."""
        limit = self._config.limits.max_response_bytes
        pieces: list[bytes] = []
        size = 0
        while True:
            piece = raw.read(_READ_BYTES)
            if not piece:
                return b"".join(pieces)
            size += len(piece)
            if size > limit:
                raise self._too_large(request, f"has more than {limit} bytes")
            pieces.append(piece)

    def _too_large(self, request: WireRequest, what: str) -> TransportLimitError:
        limit = self._config.limits.max_response_bytes
        return TransportLimitError(
            f"{request.context.where}: the reply {what}, limit is {limit}. Raise "
            "TransportLimits.max_response_bytes, or ask the agent for less"
        )

    # --- errors ------------------------------------------------------------------------------

    def _typed(self, error: BaseException, request: WireRequest, call: Call) -> ProtoLinkError:
        """Return our error for a library's. The only place where ``retryable`` is decided."""
        tried = ""
        if isinstance(error, ConnectFailed):
            # The share of the last address ends with the bound of all, which counts.
            call.may_go_on()
            tried = f" ({error})"
        if call.ended is not None:
            return self._ended(call, request.context, tried)
        # urllib3, which inflates, wraps what reading met.
        while isinstance(error, Urllib3Error) and isinstance(error.__cause__, FOREIGN_ERRORS):
            error = error.__cause__
        where = request.context.where
        running = (
            ". The task may be running at the peer"
            if call.submits and call.phase in ("wait", "read")
            else ""
        )
        typed = connect_error(error, request.context)
        if typed is not None:
            return typed
        if isinstance(error, DecodeError):
            return TransportProtocolError(f"{where}: the reply's body cannot be inflated ({error})")
        if isinstance(error, http.client.BadStatusLine) and not isinstance(
            error, http.client.RemoteDisconnected
        ):
            return TransportProtocolError(
                f"{where}: the peer does not speak HTTP; its answer begins {error.args[0][:100]!r}"
            )
        if isinstance(error, http.client.IncompleteRead) or "IncompleteRead" in str(error):
            return TransportConnectionError(
                f"{where}: the reply was cut short; the connection ended in its body{running}",
                retryable=True,
            )
        if isinstance(error, (ConnectionError, *TLS_ENDS)):
            return TransportConnectionError(
                f"{where}: the connection ended before the reply was whole ({error}){running}",
                retryable=True,
            )
        if isinstance(error, (OSError, requests.ConnectionError)):
            return TransportConnectionError(f"{where}: {error}{running}", retryable=True)
        return TransportProtocolError(
            f"{where}: the reply is not valid HTTP ({type(error).__name__}: {error})"
        )


def _lines(headers: Mapping[str, str]) -> str:
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()])


def _inflated(raw: Reply) -> urllib3.HTTPResponse:
    """Return a reader that inflates; urllib3 does it in bounded steps."""
    return urllib3.HTTPResponse(
        body=raw,
        headers=raw.headers,
        status=raw.status,
        preload_content=False,
        decode_content=True,
        original_response=raw,
        enforce_content_length=True,
        request_method="POST",
    )
