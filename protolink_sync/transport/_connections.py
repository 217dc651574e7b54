"""Connections that a call can be parted from at any moment, and their pools.

requests cannot end a call from another thread: closing a response waits for the thread that
reads it, and shutting down a TLS socket hands ciphertext to the reader. What works, in every
phase and on TLS too, is to shut down a *duplicate* of the descriptor, taken before TLS wraps the
socket. Each connection here has one from its first moment and lends itself to the call that uses
it (:meth:`Deadline.lend`); whoever ends the call cuts the duplicate.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import math
import socket
import ssl
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any
from urllib.parse import SplitResult

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from protolink_sync._deadline import Timer, forget, watch
from protolink_sync.transport._call import Call
from protolink_sync.transport._resolve import Address, resolve

__all__ = ["Adapter", "ConnectFailed", "Connection", "Pool", "Reply"]

# Head and body up to so many bytes leave in one packet; more would be copied for nothing.
_JOINED_BYTES = 64 * 1024

# An idle connection beyond the allowed number is kept for so many seconds, so that threads that
# think a little between two calls find theirs again.
_SPARE_SECONDS = 1.0

# A connection is not used again after this part of the keep-alive interval: the peer's clock
# began earlier than ours.
_FRESH_PART = 0.75

_INTERIM = 199
_SWITCHING_PROTOCOLS = 101

# As http.client has them.
_MAX_HEADERS = 100
_MAX_LINE = 65536

_HEX_DIGITS = b"0123456789abcdefABCDEF"


class ConnectFailed(OSError):
    """No address of a host could be connected to.

    Args:
        failures: For each address tried, what it was and what happened.
    """

    def __init__(self, failures: list[tuple[str, OSError]]) -> None:
        super().__init__("; ".join(f"{address}: {_words(error)}" for address, error in failures))
        self.failures = failures
        self.errno = failures[-1][1].errno
        self.only_timeouts = all(isinstance(error, TimeoutError) for _, error in failures)


def _words(error: OSError) -> str:
    return (
        "no answer in its share of the time"
        if isinstance(error, TimeoutError)
        else str(error.strerror or error)
    )


class Reply(http.client.HTTPResponse):
    """A reply: http.client reads its body, the head is read here.

    Interim replies (103 and the like) are no answer and are read past. Header names come in
    lower case, several headers of one name joined; the e-mail parser of http.client would take
    as long as the whole of our part of a call.

    Source:
        RFC 9112, 5 and 6.3.
    """

    headers: dict[str, str]  # type: ignore[assignment]

    def begin(self) -> None:
        """Read status and headers of the final reply.

        Raises:
            http.client.HTTPException: It is not valid HTTP.
            OSError: The connection failed.
        """
        status = 0
        while status <= _INTERIM and status != _SWITCHING_PROTOCOLS:
            version, status, reason = self._status_line()
            self.headers = self._read_headers()
        self.code = self.status = status
        self.reason = reason.strip()
        self.version = 10 if version in ("HTTP/1.0", "HTTP/0.9") else 11
        self.chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        self.chunk_left = None
        self.length = None if self.chunked else self._announced_length(status)
        # Without length and chunks the body ends with the connection.
        self.will_close = (
            self._ends_connection()
            or (self.length is None and not self.chunked)
            or status == _SWITCHING_PROTOCOLS
        )

    def _status_line(self) -> tuple[str, int, str]:
        try:
            version, status, reason = self._read_status()  # type: ignore[attr-defined]
        except http.client.RemoteDisconnected:
            raise
        except http.client.BadStatusLine as error:
            # Without its end it may be the begin of a good one.
            line = error.args[0]
            if not line.endswith("\n") and line[:5] == "HTTP/"[: len(line)]:
                raise _cut("status line") from None
            raise
        if not version.startswith(("HTTP/1.", "HTTP/0.9")):
            raise http.client.UnknownProtocol(version)
        return version, status, reason

    def _read_headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        name = ""
        for _ in range(_MAX_HEADERS + 1):
            line = self.fp.readline(_MAX_LINE + 1)
            if len(line) > _MAX_LINE:
                raise http.client.LineTooLong("header line")
            if line in (b"\r\n", b"\n"):
                return headers
            if not line.endswith(b"\n"):
                raise _cut("headers")
            text = line.decode("latin-1").rstrip("\r\n")
            if text[0] in " \t" and name:  # an obsolete way to go on with the line before
                headers[name] += " " + text.strip()
                continue
            name, colon, value = text.partition(":")
            name = name.lower()
            if not colon or not name or name.strip() != name:
                raise http.client.HTTPException(f"a header line is no header: {text[:100]!r}")
            value = value.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        raise http.client.HTTPException(f"got more than {_MAX_HEADERS} headers")

    def _announced_length(self, status: int) -> int | None:
        if status in (_SWITCHING_PROTOCOLS, http.client.NO_CONTENT, http.client.NOT_MODIFIED):
            return 0
        # Equal values may be joined by a proxy; different ones are an attack.
        given = {text.strip() for text in self.headers.get("content-length", "").split(",")}
        if given == {""}:
            return None
        length = given.pop()
        if given or not (length.isascii() and length.isdigit()):
            raise http.client.HTTPException("the content length is no number")
        return int(length)

    def _ends_connection(self) -> bool:
        options = self.headers.get("connection", "").lower()
        return "close" in options or (self.version == 10 and "keep-alive" not in options)

    def _read_chunked(self, amt: int | None = None) -> bytes:
        """Read chunks (called by http.client, whose own makes a list of them, also of tiny ones)."""
        if amt is None:
            whole: bytes = super()._read_chunked()  # type: ignore[misc]
            return whole
        buffer = bytearray(amt)
        size = self._readinto_chunked(buffer)  # type: ignore[attr-defined]
        return bytes(memoryview(buffer)[:size])

    def _read_next_chunk_size(self) -> int:
        """Read a chunk's size (called by http.client, whose own takes -1: all there is)."""
        line = self.fp.readline(_MAX_LINE + 1)
        if len(line) > _MAX_LINE:
            raise http.client.LineTooLong("chunk size")
        if not line.endswith(b"\n"):
            raise ValueError("the connection ended")  # which http.client takes as cut short
        size = line.partition(b";")[0].strip()
        if not size or size.translate(None, _HEX_DIGITS):
            raise http.client.HTTPException(f"the size of a chunk is no number: {size[:100]!r}")
        return int(size, 16)


def _cut(where: str) -> http.client.RemoteDisconnected:
    return http.client.RemoteDisconnected(f"the connection ended within the {where}")


class Connection(HTTPConnection):
    """An HTTP connection with a duplicate of its descriptor, lent to one call at a time."""

    encrypted = False

    call: Call | None = None
    reply: Reply | None = None
    idle_since = 0.0
    _duplicate: socket.socket | None = None

    # --- what a call blocks on (Abortable) ---------------------------------------------------

    def cut(self) -> None:
        """End whatever the connection is doing, at once; any thread."""
        duplicate = self._duplicate
        if duplicate is not None:
            # Not connected any more, or never: then nobody waits either.
            with contextlib.suppress(OSError):
                duplicate.shutdown(socket.SHUT_RDWR)

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
        call.phase = "resolve"
        addresses = resolve(self._dns_host, self.port, call)
        call.phase = "connect"
        failures: list[tuple[str, OSError]] = []
        for number, address in enumerate(addresses):
            share = (call.due - time.monotonic()) / (len(addresses) - number)
            try:
                connected = self._open(address, share, call)
            except OSError as error:
                if call.ended is not None:
                    raise
                failures.append((f"{address[3][0]} port {address[3][1]}", error))
            else:
                # Through a proxy TLS begins when the tunnel stands.
                if self.encrypted and self._tunnel_host is None:
                    call.phase = "tls"
                return connected
        raise ConnectFailed(failures)

    def _open(self, address: Address, share: float, call: Call) -> socket.socket:
        family, kind, proto, target = address
        opened = socket.socket(family, kind, proto)
        try:
            for option in self.socket_options or ():
                opened.setsockopt(*option)
            self._duplicate = opened.dup()
            if call.ended is not None:
                raise OSError(errno.ECANCELED, "the call was ended")
            opened.settimeout(None if share == math.inf else max(share, 0.001))
            opened.connect(target)
            # From here the deadline thread bounds the call, not a time-out for each read.
            opened.settimeout(None)
        except BaseException:
            opened.close()
            self._close_duplicate()
            raise
        return opened

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
        try:
            if body is None or len(head) + len(body) <= _JOINED_BYTES:
                self.sock.sendall(head + (body or b""))
            else:
                self.sock.sendall(head)
                self.sock.sendall(body)
        except (BrokenPipeError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
            pass
        except OSError as error:
            if error.errno not in (errno.EPROTOTYPE, errno.ECONNRESET):
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
        """Return whether an idle connection is still open and silent, as it should be."""
        duplicate = self._duplicate
        if duplicate is None or self.sock is None:
            return False
        silent = False
        try:
            # On the duplicate also for TLS, whose sockets refuse these flags. Anything that
            # arrives unasked, an end or data, makes the connection useless.
            duplicate.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            silent = True
        except OSError:
            pass
        return silent

    def close(self) -> None:
        """Close the socket; the duplicate only when no call needs it.

        A reply that ends with its connection is read after this: such a call must still be
        possible to end.
        """
        super().close()
        if self.call is None:
            self._close_duplicate()

    def _close_duplicate(self) -> None:
        duplicate, self._duplicate = self._duplicate, None
        if duplicate is not None:
            duplicate.close()


class TLSConnection(Connection, HTTPSConnection):
    """The same over TLS."""

    encrypted = True


class Pool(HTTPConnectionPool):
    """Idle connections to one origin; the last one used is the first to be used again."""

    ConnectionCls = Connection

    # The transport's settings; whoever asks for the pool sets them.
    keepalive_interval: float | None = 20.0
    max_idle = 10
    connect_timeout = math.inf

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._idle: deque[Connection] = deque()
        # A pool that nobody closed must not leave its connections to the garbage collector.
        weakref.finalize(self, _close_all, self._idle)
        self._timer: Timer | None = None
        self._shut = False

    def lend_to(self, call: Call) -> Connection:
        """Return a connection for one call, the freshest idle one that is alive or a new one."""
        oldest = time.monotonic() - self._fresh_seconds()
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._new_conn()  # type: ignore[assignment]
                connection.timeout = self.connect_timeout
                break
            if connection.idle_since >= oldest and connection.is_alive():
                break
            connection.close()
        connection.call = call
        if not call.lend(connection):
            # Ended between its last look and now: nothing was cut, so nothing may be sent.
            raise InterruptedError("the call was ended")
        return connection

    def give_back(self, connection: Connection, call: Call) -> None:
        """Keep a connection whose reply was read to its end, unless the call was ended."""
        reusable = call.release()
        connection.call = connection.reply = None
        if not reusable or connection.sock is None or self._shut:
            connection.close()
            return
        connection.idle_since = time.monotonic()
        self._idle.append(connection)
        if self._shut:
            self.close()
        elif self._timer is None or len(self._idle) > self.max_idle:
            self._look_again()

    def close(self) -> None:
        """Close the idle connections; those that are in use when they come back."""
        self._shut = True
        _close_all(self._idle)

    def idle(self) -> int:
        """Return the number of idle connections."""
        return len(self._idle)

    def _fresh_seconds(self) -> float:
        interval = self.keepalive_interval
        return math.inf if interval is None else interval * _FRESH_PART

    def _look_again(self) -> None:
        """Have the deadline thread close spare and old connections in a while."""
        wait = _SPARE_SECONDS if len(self._idle) > self.max_idle else self._fresh_seconds()
        if wait == math.inf:
            return
        timer = self._timer
        if timer is not None:
            if timer.due <= time.monotonic() + wait:
                return
            forget(timer)
        pool = weakref.ref(self)
        self._timer = Timer(wait, lambda: _tidy(pool))
        watch(self._timer)

    def _tidy(self) -> None:
        now = time.monotonic()
        keep, oldest, spare = self.max_idle, now - self._fresh_seconds(), now - _SPARE_SECONDS
        while self._idle:
            # The longest idle stands at the left; one that a call takes meanwhile is gone.
            try:
                first = self._idle[0].idle_since
                if first > oldest and not (len(self._idle) > keep and first <= spare):
                    break
                self._idle.popleft().close()
            except IndexError:
                break
        self._timer = None
        if self._idle and not self._shut:
            self._look_again()


def _close_all(idle: deque[Connection]) -> None:
    while True:
        try:
            connection = idle.pop()
        except IndexError:
            return
        connection.close()


def _tidy(pool: weakref.ref[Pool]) -> None:
    alive = pool()
    if alive is not None:
        alive._tidy()


class TLSPool(Pool, HTTPSConnectionPool):
    """The same over TLS."""

    ConnectionCls = TLSConnection


_POOLS: dict[str, type] = {"http": Pool, "https": TLSPool}


class Adapter(HTTPAdapter):
    """The adapter of requests, with our pools; redirects, retries and cookies are not its job.

    Args:
        tls_context: Gives the TLS context for an origin's first connection.
    """

    def __init__(self, tls_context: Callable[[], ssl.SSLContext]) -> None:
        self._tls_context = tls_context
        # One: our pools keep their connections themselves.
        super().__init__(pool_connections=256, pool_maxsize=1, max_retries=0)

    def init_poolmanager(self, *args: Any, **settings: Any) -> None:
        """Make the manager of direct connections."""
        super().init_poolmanager(*args, **settings)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **settings: Any) -> Any:
        """Return the manager of connections through one proxy."""
        if proxy not in self.proxy_manager and proxy.lower().startswith("https:"):
            settings.setdefault("proxy_ssl_context", self._tls_context())
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
            context = self._tls_context()
            settings["ssl_context"] = context
            settings["assert_hostname"] = None if context.check_hostname else False
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
