"""HTTP connections that a call can be parted from at any moment, and their pools.

requests cannot end a call from another thread: closing a response waits for the thread that
reads it. So the sockets are ours (:mod:`protolink_sync.transport._sockets`).
"""

from __future__ import annotations

import math
import socket
import ssl
from collections.abc import Callable
from typing import Any, Literal
from urllib.parse import SplitResult

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from protolink_sync.transport._call import Call
from protolink_sync.transport._idle import IdlePool
from protolink_sync.transport._reply import Reply
from protolink_sync.transport._sockets import NO_LIMIT, Cuttable, peer_stopped_reading

__all__ = ["MAX_POOLS", "Adapter", "Connection", "Pool"]

# How many origins' pools are kept. Whoever holds on to more of them gets a second one to the same
# origin, with connections of its own.
MAX_POOLS = 1024

_CALLER_ERROR = 400
_SERVER_ERROR = 500

# Head and body up to so many bytes leave in one packet; more would be copied for nothing.
_JOINED_BYTES = 64 * 1024


class Connection(Cuttable, HTTPConnection):
    """An HTTP connection that is lent to one call at a time."""

    encrypted = False

    call: Call | None = None
    reply: Reply | None = None
    idle_since = 0.0
    sent_much = False

    # --- what a call blocks on (Abortable) ---------------------------------------------------

    def cut(self) -> None:
        """End whatever the connection is doing, at once; any thread."""
        reply = self.reply
        if reply is not None:
            reply.stop()
        super().cut()

    def take_back(self) -> None:
        """Close everything; the call that used the connection is over. Any number of times."""
        self.call = None
        reply, self.reply = self.reply, None
        if reply is not None:
            reply.close()
        self.close()

    # --- connecting --------------------------------------------------------------------------

    def connect(self) -> None:
        """Connect, within the call's time for connecting; TLS and proxy included."""
        call = self._caller()
        call.limit("connect", self.connect_timeout)
        super().connect()
        call.limit("connect", math.inf)
        call.phase = "send"

    def _tunnel(self) -> None:
        super()._tunnel()
        self._caller().phase = "tls"

    @property
    def connect_timeout(self) -> float:
        """Seconds for resolving, connecting and TLS; the pool's setting, ``inf`` for none."""
        timeout = self.timeout
        return timeout if isinstance(timeout, (int, float)) else math.inf

    def _caller(self) -> Call:
        if self.call is None:
            raise RuntimeError("a connection is used by calls only")
        return self.call

    def _new_conn(self) -> socket.socket:
        call = self._caller()
        connected = self._dial(self._dns_host, self.port, call)
        # Through a proxy TLS begins when the tunnel stands.
        if self.encrypted and self._tunnel_host is None:
            call.phase = "tls"
        return connected

    # --- one exchange ------------------------------------------------------------------------

    def send_request(self, head: bytes, body: bytes | None) -> None:
        """Send one request; head and a small body leave together.

        A peer that has answered and closed before it read all is no error here: its answer is
        still to be read.

        Args:
            head: Request line and headers, the blank line included.
            body: The body, if there is one.
        """
        if self.sock is None:
            # Before the errors of sending are looked at, which are not those of connecting.
            self.connect()
        self.sent_much = body is not None and len(head) + len(body) > _JOINED_BYTES
        try:
            if body is None or not self.sent_much:
                self.sock.sendall(head + (body or b""))
            else:
                self.sock.settimeout(NO_LIMIT)
                self.sock.sendall(head)
                self.sock.sendall(body)
                self.sock.settimeout(None)
        except OSError as error:
            if self._caller().ended is not None or not peer_stopped_reading(error):
                raise

    def read_head(self, method: str) -> Reply:
        """Wait for the reply to a request and return it with its body unread."""
        self.reply = reply = Reply(self.sock, method=method)
        reply.begin()
        if reply.will_close:
            self.close()
        return reply

    # --- between calls -----------------------------------------------------------------------

    def is_alive(self) -> bool:
        """Return whether an idle connection is still open and silent, as it should be.

        Anything that arrives unasked, an end or data, makes it useless.
        """
        return self.sock is not None and self._is_silent(self.sock)

    def close(self) -> None:
        """Close the socket; the duplicate only when no call needs it.

        A reply that ends with its connection is read after this: such a call must still be
        possible to end.
        """
        super().close()
        if self.call is None:
            self._close_duplicate()


class TLSConnection(Connection, HTTPSConnection):
    """The same over TLS."""

    encrypted = True


class Pool(IdlePool[Connection], HTTPConnectionPool):
    """Idle connections to one origin; the last one used is the first to be used again."""

    ConnectionCls = Connection

    # Of the transport: whoever asks for the pool sets it, as bound() does for the idle ones.
    connect_timeout = math.inf

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._begin()

    def lend_to(self, call: Call) -> Connection:
        """Return a connection for one call, the freshest idle one that is alive or a new one."""
        connection = self._take()
        if connection is None:
            connection = self._new_conn()  # type: ignore[assignment]
            assert connection is not None
            own = call.connect_timeout
            connection.timeout = self.connect_timeout if own is None else own
        connection.call = call
        if not call.lend(connection):
            # Ended between its last look and now: nothing was cut, so nothing may be sent.
            raise InterruptedError("the call was ended")
        return connection

    def give_back(self, connection: Connection, call: Call) -> None:
        """Keep a connection whose reply was read to its end, unless the call was ended.

        One with a server error is not kept either: uvicorn, which ProtoLink agents stand on,
        closes it a moment later without saying so, and the next call would run into that. Any
        peer may do so that refuses what is large before it has read it to its end.
        """
        bad = _CALLER_ERROR if connection.sent_much else _SERVER_ERROR
        reply = connection.reply
        failed = reply is not None and reply.status >= bad
        if reply is not None:
            # Not by its finalizer, which is Python code that would swallow a KeyboardInterrupt.
            reply.close()
            # Bytes behind the reply were read ahead: what follows them would be taken for the
            # next one's.
            failed = failed or reply.has_surplus
        reusable = call.release()
        connection.call = connection.reply = None
        if not reusable or failed or connection.sock is None or self._shut:
            connection.close()
            return
        self._keep(connection)


class TLSPool(Pool, HTTPSConnectionPool):
    """The same over TLS."""

    ConnectionCls = TLSConnection


_POOLS: dict[str, type] = {"http": Pool, "https": TLSPool}


class Adapter(HTTPAdapter):
    """The adapter of requests, with our pools; redirects, retries and cookies are not its job.

    Args:
        tls_context: Gives the TLS context for an origin's first connection.
        proxy_tls_context: Gives that for connections to a proxy, which must not be shown the
            certificate for the peers.
    """

    def __init__(
        self,
        tls_context: Callable[[], ssl.SSLContext],
        proxy_tls_context: Callable[[], ssl.SSLContext],
    ) -> None:
        self._tls_context = tls_context
        self._proxy_tls_context = proxy_tls_context
        # One: our pools keep their connections themselves.
        super().__init__(pool_connections=MAX_POOLS, pool_maxsize=1, max_retries=0)

    def init_poolmanager(self, *args: Any, **settings: Any) -> None:
        """Make the manager of direct connections."""
        super().init_poolmanager(*args, **settings)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **settings: Any) -> Any:
        """Return the manager of connections through one proxy."""
        if proxy not in self.proxy_manager and proxy.lower().startswith("https:"):
            context = self._proxy_tls_context()
            settings.setdefault("proxy_ssl_context", context)
            settings.setdefault("proxy_assert_hostname", _asserted(context))
        manager = super().proxy_manager_for(proxy, **settings)
        manager.pool_classes_by_scheme = _POOLS
        return manager

    def pool(self, url: SplitResult, proxy: str | None) -> Pool:
        """Return the connections to one origin; TLS comes from our own context alone.

        Args:
            url: An address at the origin.
            proxy: URL of the proxy to go through.
        """
        settings: dict[str, Any] = {}
        if url.scheme == "https":
            settings["ssl_context"] = context = self._tls_context()
            settings["assert_hostname"] = _asserted(context)
        elif proxy is not None and proxy.lower().startswith("https:"):
            # What goes to an http:// address through it is sent on the connection to the proxy.
            settings["ssl_context"] = context = self._proxy_tls_context()
            settings["assert_hostname"] = _asserted(context)
        manager = self.poolmanager if proxy is None else self.proxy_manager_for(proxy)
        pool: Any = manager.connection_from_host(
            url.hostname, url.port, url.scheme, pool_kwargs=settings
        )
        assert isinstance(pool, Pool)
        return pool

    def pools(self) -> list[Pool]:
        """Return every pool, those behind proxies too."""
        managers = [self.poolmanager, *self.proxy_manager.values()]
        return [
            manager.pools[key]
            for manager in managers
            for key in list(manager.pools.keys())
            if key in manager.pools
        ]


def _asserted(context: ssl.SSLContext) -> Literal[False] | None:
    """Return what urllib3 takes for: check the host name as the context says."""
    return None if context.check_hostname else False
