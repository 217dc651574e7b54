"""The embedded HTTP host: one thread that accepts, and one for each connection.

Keep-alive, a bounded number of connections and of requests at a time, TLS with the handshake in
the connection's own thread, and an end that comes when it is asked for.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import os
import selectors
import socket
import threading
import time
import weakref
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from protolink_sync.config import TransportConfig
from protolink_sync.security import TLSConfig
from protolink_sync.server.connection import Application, Connection
from protolink_sync.server.refusal import RefusedError

if TYPE_CHECKING:
    import ssl

__all__ = ["HTTPHost"]

_log = logging.getLogger("protolink_sync.server")

_BACKLOG = 128
# Each connection has a thread, also while it is idle: more than so many for each request that may
# be handled at a time are refused. Those that stream are bounded elsewhere.
_CONNECTIONS_PER_REQUEST = 4
# After accept() failed for want of descriptors: some come back when connections end.
_NO_DESCRIPTORS_PAUSE = 0.05
# For threads that have nothing left to wait for.
_JOIN_SECONDS = 0.2


class HTTPHost:
    """Serve a WSGI application at one address.

    Args:
        host: Name or address to listen at.
        port: Port; 0 takes a free one.
        tls: Certificate and key; None serves plain HTTP.
        config: Limits, time an idle connection is kept, time to wait for handlers at the end.
        abandon: Told the threads whose answers nobody will get.

    Raises:
        OSError: The address cannot be had, or the certificate cannot be read.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        tls: TLSConfig | None,
        config: TransportConfig,
        abandon: Callable[[Collection[int], str], None],
    ) -> None:
        self._context = None if tls is None else _server_context(tls)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        # accept() must not wait for a client that has gone since it was announced.
        self._listener.setblocking(False)
        scheme = "http" if tls is None else "https"
        name = f"[{host}]" if ":" in host else host
        self.url = f"{scheme}://{name}:{self._listener.getsockname()[1]}"
        self._scheme = scheme
        self._config = config
        self._abandon = abandon
        self._wake, self._woken = socket.socketpair()
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._numbers = itertools.count(1)
        self._accepted = 0
        self._is_closing = False
        # The connections, with the thread of each; those whose request is being handled.
        self._threads: dict[Connection, threading.Thread] = {}
        self._busy: set[Connection] = set()
        # Those on which events are sent.
        self._streaming: set[Connection] = set()
        self._accepting = threading.Thread(
            target=self._accept, name="protolink-host-0", daemon=True
        )
        self._application: Application
        self._close_streams: Callable[[], None]

    @property
    def connections(self) -> int:
        """How many connections were accepted so far."""
        return self._accepted

    def serve(self, application: Application, close_streams: Callable[[], None]) -> None:
        """Say what is served; before :meth:`start`.

        Args:
            application: What answers requests.
            close_streams: Ends the streams it gives, in a moment, and lets it begin none.
        """
        self._application = application
        self._close_streams = close_streams

    def start(self) -> None:
        """Begin to accept connections."""
        _hosts.add(self)
        self._accepting.start()

    def close(self) -> None:
        """Stop: idle connections at once, streams in a moment.

        Other handlers at most ``shutdown_timeout`` later.
        """
        end = time.monotonic() + self._config.shutdown_timeout
        with self._lock:
            if self._is_closing:
                return
            self._is_closing = True
            # A handler may close its own host; it does not wait for itself.
            me = threading.current_thread()
            others = {c: thread for c, thread in self._threads.items() if thread is not me}
            for connection in others.keys() - self._busy - self._streaming:
                connection.cut()
        self._wake.send(b"\0")
        self._close_streams()
        self._wait_for(others, end)
        self._cut(others)
        end = time.monotonic() + _JOIN_SECONDS
        for thread in (self._accepting, *others.values()):
            thread.join(max(0.0, end - time.monotonic()))
            if thread.is_alive():
                _log.warning("%s: %s does not end", self.url, thread.name)
        self._wake.close()
        self._woken.close()
        _hosts.discard(self)

    def _wait_for(self, connections: Collection[Connection], end: float) -> None:
        with self._lock:
            while not self._threads.keys().isdisjoint(connections):
                left = end - time.monotonic()
                if left <= 0:
                    return
                self._changed.wait(left)

    def _cut(self, connections: Collection[Connection]) -> None:
        with self._lock:
            left = {c: t for c, t in self._threads.items() if c in connections}
            if left:
                threads = {thread.ident for thread in left.values() if thread.ident is not None}
                self._abandon(threads, "the host was closed")
            for connection in left:
                connection.cut()

    # ---- the thread that accepts ----

    def _accept(self) -> None:
        limits = self._config.limits
        most = limits.max_concurrent_requests * _CONNECTIONS_PER_REQUEST
        with self._listener, selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                selector.select()
                if self._is_closing:
                    return
                try:
                    sock, address = self._listener.accept()
                except BlockingIOError:  # the client has gone again
                    continue
                except OSError as error:
                    _log.warning("%s: cannot accept a connection: %s", self.url, error)
                    # Without the listener, which stays ready: so that close() is heard meanwhile.
                    selector.unregister(self._listener)
                    selector.select(_NO_DESCRIPTORS_PAUSE)
                    selector.register(self._listener, selectors.EVENT_READ)
                    continue
                self._accepted += 1
                if len(self._threads) - len(self._streaming) >= most:
                    _log.warning("%s: more than %d connections", self.url, most)
                    sock.close()
                    continue
                self._begin(sock, str(address[0]))

    def _begin(self, sock: socket.socket, client: str) -> None:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(sock, client, self._scheme, self._config.keepalive_timeout)
        except OSError as error:  # the client has gone again: macOS says so here
            _log.debug("%s: a connection ended: %s", self.url, error)
            sock.close()
            return
        thread = threading.Thread(
            target=self._run,
            args=(connection,),
            name=f"protolink-host-{next(self._numbers)}",
            daemon=True,
        )
        with self._lock:
            if self._is_closing:
                sock.close()
                return
            self._threads[connection] = thread
        try:
            thread.start()
        except RuntimeError as error:
            _log.warning("%s: cannot start a thread: %s", self.url, error)
            self._end(connection)

    # ---- the thread of a connection ----

    def _run(self, connection: Connection) -> None:
        try:
            self._encrypt(connection)
            while self._answer_one(connection):
                pass
        except OSError as error:
            _log.debug("%s: a connection ended: %s", self.url, error)
        except Exception:
            _log.exception("%s: a connection failed", self.url)
        finally:
            self._end(connection)

    def _encrypt(self, connection: Connection) -> None:
        if self._context is None:
            return
        plain = connection.sock
        plain.settimeout(self._config.connect_timeout)
        with self._lock:  # so that close() cuts the one or the other
            connection.sock = self._context.wrap_socket(
                plain, server_side=True, do_handshake_on_connect=False
            )
            if self._is_closing:
                return
        connection.sock.do_handshake()

    def _answer_one(self, connection: Connection) -> bool:
        """Answer the next request; False when the connection is done."""
        if self._is_closing:  # whatever becomes idle from now on is not cut any more
            return False
        try:
            head = connection.next_head()
            if head is None:
                return False
            with self._lock:
                if self._is_closing:
                    return False
                if len(self._busy) >= self._config.limits.max_concurrent_requests:
                    raise RefusedError(503, "too many requests at a time", "OverloadError")
                self._busy.add(connection)
            try:
                goes_on = connection.answer(
                    head,
                    self._application,
                    self._goes_on,
                    functools.partial(self._streams, connection),
                )
            finally:
                with self._lock:
                    self._busy.discard(connection)
                    self._streaming.discard(connection)
        except RefusedError as error:
            connection.refuse(error)
            goes_on = False
        if not goes_on:
            connection.linger()
        return goes_on

    def _streams(self, connection: Connection) -> None:
        """Count a connection among the streams, which have a limit of their own."""
        with self._lock:
            self._busy.discard(connection)
            self._streaming.add(connection)

    def _goes_on(self) -> bool:
        return not self._is_closing

    def _end(self, connection: Connection) -> None:
        with self._lock:
            # Under the lock: nobody cuts a descriptor that is closed and belongs to another.
            connection.sock.close()
            del self._threads[connection]
            self._changed.notify_all()

    def forget(self) -> None:
        """Close what a forked child has inherited: its parent goes on with it."""
        for sock in (self._listener, self._wake, self._woken, *(c.sock for c in self._threads)):
            with contextlib.suppress(OSError):
                sock.close()


def _server_context(tls: TLSConfig) -> ssl.SSLContext:
    import ssl

    if tls.certfile is None:
        raise ValueError("to serve https, TLSConfig needs certfile and keyfile")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(tls.certfile, tls.keyfile)
    if tls.require_client_cert:
        context.load_verify_locations(tls.cafile)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


_hosts: weakref.WeakSet[HTTPHost] = weakref.WeakSet()


def _forget_all() -> None:
    for host in _hosts:
        host.forget()
    _hosts.clear()


# A child that kept the listener would keep the port, and connections that nobody answers.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
