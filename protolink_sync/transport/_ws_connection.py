"""One WebSocket to a peer, from connecting to its end, and the pools of idle ones.

One thread at a time is inside a connection: whether two may be inside one TLS connection is
unsettled. To end what it does, any thread may cut it.
"""

from __future__ import annotations

import base64
import contextlib
import math
import os
import socket
import ssl
import struct
from collections.abc import Callable, Mapping
from urllib.parse import unquote, urlsplit

import attrs

from protolink_sync.transport._call import Call
from protolink_sync.transport._headers import merged
from protolink_sync.transport._idle import IdlePool
from protolink_sync.transport._sockets import NO_LIMIT, Cuttable, peer_stopped_reading
from protolink_sync.transport._ws_frames import TEXT, header_size, masked_frame, take_texts
from protolink_sync.transport._ws_library import Library, WebSocketClosed, Wire, read_head

__all__ = ["Endpoint", "Pool", "WebSocketConnection"]

# A text message of which more is missing is read into its place, without copies; a frame that is
# larger is sent so that an interrupt comes through.
_LARGE = 64 * 1024

# How often an idle connection is looked at before it counts as one that never rests.
_LOOKS = 8

# An idle one is replaced after so many seconds at the latest: what stands between it and the peer
# may forget it without a word.
_FRESH_SECONDS = 15.0

_CONNECTION_ESTABLISHED = 200

# SO_LINGER: to close does not wait until all is sent, but resets.
_AT_ONCE = struct.pack("ii", 1, 0)


@attrs.frozen
class Endpoint:
    """Where an agent listens, and all that is the same for each connection to it.

    Args:
        url: Its address.
        host: Host name or IP address.
        port: Port.
        host_header: Both as they stand in the header ``Host``.
        headers: Headers of every upgrade.
        connect_timeout: Seconds to resolve, connect, negotiate TLS and upgrade.
        tls_context: Gives the TLS context.
        encrypted: Whether the agent speaks TLS.
        proxy: URL of the proxy to go through.
        proxy_tls_context: Gives the TLS context for a proxy.
    """

    url: str
    host: str
    port: int
    host_header: str
    headers: Mapping[str, str] = attrs.field(repr=False)
    connect_timeout: float
    tls_context: Callable[[], ssl.SSLContext]
    encrypted: bool
    proxy: str | None = attrs.field(repr=False)
    proxy_tls_context: Callable[[], ssl.SSLContext]


class WebSocketConnection(Cuttable):
    """A WebSocket to one endpoint, used by one call or stream at a time.

    Args:
        endpoint: Where to connect to.

    Attributes:
        is_open: Whether the upgrade was made, and the connection not closed since.
        is_quiet: Whether it is between two messages and used by no call: then a close frame is due
            before the end.
    """

    idle_since = 0.0

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._pid = os.getpid()
        self._sock: socket.socket | None = None
        self._wire: Wire | None = None
        self._library: Library | None = None
        self.is_open = self.is_quiet = False
        self._was_cut = False

    # --- opening -----------------------------------------------------------------------------

    def open(self, call: Call, credentials: Mapping[str, str] | None) -> None:
        """Connect and upgrade, within the call's time for connecting.

        Args:
            call: The call that uses the connection.
            credentials: Headers that carry the caller's credentials.

        Raises:
            UpgradeRefused: The peer did not accept.
            OSError: The connection failed, or the call was ended.
            http.client.HTTPException: The answer is no HTTP.
            websocket.WebSocketException: The answer is no upgrade to WebSocket.
        """
        endpoint = self._endpoint
        call.limit("connect", endpoint.connect_timeout)
        if endpoint.proxy is None:
            sock = self._dialled(endpoint.host, endpoint.port, call)
        else:
            sock = self._through_proxy(endpoint.proxy, call)
        if endpoint.encrypted:
            sock = self._encrypted(sock, endpoint.host, endpoint.tls_context(), call)
        headers = merged(endpoint.headers, credentials or {})
        self._wire = wire = Wire(sock)
        library = Library(wire)
        library.upgrade(
            endpoint.url,
            endpoint.host_header,
            [f"{name}: {value}" for name, value in headers.items()],
        )
        self._library, self.is_open = library, True
        call.limit("connect", math.inf)

    def _dialled(self, host: str, port: int, call: Call) -> socket.socket:
        self._sock = sock = self._dial(host, port, call)
        return sock

    def _encrypted(
        self, sock: socket.socket, host: str, context: ssl.SSLContext, call: Call
    ) -> socket.socket:
        call.phase = "tls"
        # In two steps, so that an interrupt in the second one leaves nothing behind.
        self._sock = encrypted = context.wrap_socket(
            sock, server_hostname=host, do_handshake_on_connect=False
        )
        encrypted.do_handshake()
        call.phase = "connect"
        return encrypted

    def _through_proxy(self, proxy: str, call: Call) -> socket.socket:
        """Return a socket that a proxy has connected to the endpoint."""
        endpoint, parts = self._endpoint, urlsplit(proxy)
        encrypted = parts.scheme == "https"
        sock = self._dialled(parts.hostname or "", parts.port or (443 if encrypted else 80), call)
        if encrypted:
            context = endpoint.proxy_tls_context()
            sock = self._encrypted(sock, parts.hostname or "", context, call)
        name = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        target = f"{name}:{endpoint.port}"
        head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            head += f"Proxy-Authorization: Basic {base64.b64encode(pair).decode()}\r\n"
        sock.sendall(f"{head}\r\n".encode("ascii"))
        reply = read_head(sock, "CONNECT")
        reply.close()
        if reply.status != _CONNECTION_ESTABLISHED:
            raise OSError(f"Tunnel connection failed: {reply.status} {reply.reason}")
        return sock

    # --- messages ----------------------------------------------------------------------------

    def send(self, payload: bytes, call: Call) -> None:
        """Send one text message.

        A peer that closes before it read all is no error here: why it does is still to be read.
        """
        sock = self._sock
        assert sock is not None
        call.phase = "send"
        frame = masked_frame(TEXT, payload, os.urandom(4))
        try:
            if len(frame) <= _LARGE:
                sock.sendall(frame)
            else:
                sock.settimeout(NO_LIMIT)
                sock.sendall(frame)
                sock.settimeout(None)
        except OSError as error:
            if call.ended is not None or not peer_stopped_reading(error):
                raise
        call.phase = "wait"

    def receive(self, limit: int, call: Call) -> list[bytes]:
        """Wait for the next messages and return all that are there; pings are answered.

        Args:
            limit: Size of the largest message allowed.
            call: The call that waits.

        Raises:
            WebSocketClosed: The peer ended the connection.
            MessageTooLarge: A message is larger than the limit.
            OSError: The connection failed, or the call was ended.
            websocket.WebSocketException: The peer broke the rules of WebSocket.
        """
        wire, library = self._wire, self._library
        assert wire is not None
        assert library is not None
        while True:
            if wire.at == len(wire.buffer):
                if not wire.fill():
                    raise WebSocketClosed(None)
                continue
            missing = 0
            if not library.is_inside_message:
                texts, wire.at, missing = take_texts(wire.buffer, wire.at, limit)
                if texts:
                    return texts
            there = len(wire.buffer) - wire.at
            call.phase = "read"
            if missing > _LARGE:
                return [wire.take(there + missing, header_size(wire.buffer[wire.at + 1]))]
            if missing:
                if not wire.fill():
                    raise WebSocketClosed(None)
                continue
            message = library.read(limit)
            if message is not None:
                return [message]

    # --- between calls -----------------------------------------------------------------------

    def is_alive(self) -> bool:
        """Return whether an idle connection can carry a call; pings that wait are answered.

        Anything else that arrived unasked, an end or a late answer, makes it useless.
        """
        wire = self._wire
        if wire is None or self._sock is None:
            return False
        try:
            for _ in range(_LOOKS):
                if wire.at < len(wire.buffer) and not wire.pass_over_pings():
                    return False
                if self._is_silent(self._sock):
                    return True
                if not self._read_what_waits(self._sock, wire):
                    return False
        except OSError:
            pass
        return False

    @staticmethod
    def _read_what_waits(sock: socket.socket, wire: Wire) -> bool:
        """Read without waiting; False at the end of the connection."""
        sock.setblocking(False)
        try:
            return wire.fill()
        except (BlockingIOError, ssl.SSLWantReadError):
            return True  # it was something of TLS
        finally:
            sock.setblocking(True)

    # --- the end -----------------------------------------------------------------------------

    def cut(self) -> None:
        """End whatever it is doing, at once; any thread (Abortable)."""
        self._was_cut = True
        wire = self._wire
        if wire is not None:
            wire.stop()
        super().cut()

    def take_back(self) -> None:
        """Close it; the call that used it is over (Abortable)."""
        self.is_quiet = False
        self.close()

    def close(self) -> None:
        """Close it, with a close frame if it is between two calls. Never waits."""
        wire, self._wire, self._library, self.is_open = self._wire, None, None, False
        # A forked child has the same connection, but no right to end it.
        if self.is_quiet and wire is not None and os.getpid() == self._pid:
            wire.say_goodbye()
        sock, self._sock = self._sock, None
        if sock is not None:
            if self._was_cut:
                # A peer with a full connection would see the end only when it tries again.
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            sock.close()
        self._close_duplicate()


class Pool(IdlePool[WebSocketConnection]):
    """The connections of one channel to one endpoint.

    Args:
        endpoint: Where to connect to.
        keepalive_interval: Seconds after three quarters of which an idle one is not used again,
            if that is before the fifteen that count in any case.
        max_idle: How many stay idle.
    """

    def __init__(self, endpoint: Endpoint, keepalive_interval: float | None, max_idle: int) -> None:
        self.endpoint = endpoint
        self._begin()
        self.bound(keepalive_interval, max_idle, _FRESH_SECONDS)

    def lend_to(self, call: Call) -> WebSocketConnection:
        """Return a connection for one call: an idle one, or one that is still to be opened."""
        connection = self._take()
        if connection is None:
            connection = WebSocketConnection(self.endpoint)
        connection.is_quiet = False
        if not call.lend(connection):
            # Ended between its last look and now: nothing was cut, so nothing may be sent.
            raise InterruptedError("the call was ended")
        return connection

    def give_back(self, connection: WebSocketConnection, call: Call) -> None:
        """Keep a connection whose answer was read, unless the call was ended."""
        if not call.release() or not connection.is_open or self._shut:
            connection.close()
            return
        connection.is_quiet = True
        self._keep(connection)
