"""A TCP proxy that knows how many connections were made through it, and can cut them."""

from __future__ import annotations

import collections
import contextlib
import selectors
import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from urllib.parse import urlsplit

_READ_BYTES = 65536
_DISCARD_UNSENT = struct.pack("ii", 1, 0)  # linger for zero seconds: close() sends RST


class _End:
    """One end of a proxied connection: its socket, and what must still be written to it."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        # Without it Nagle and delayed ACK cost 40 ms for a message written in two pieces.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self.other: _End = self
        self.unsent = bytearray()
        self.ended = False  # nothing more comes from this end
        self.dropped = False

    @property
    def events(self) -> int:
        """Read only while the other end has taken all: back-pressure goes through the proxy."""
        read = selectors.EVENT_READ if not (self.ended or self.other.unsent) else 0
        return read | (selectors.EVENT_WRITE if self.unsent else 0)


class CountingProxy:
    """Forward every connection to the peer at ``target_url``, byte by byte.

    :attr:`url` is the address to call instead. One thread serves all connections; :meth:`close`
    leaves nothing behind. The end of one direction ends the connection: half-closed ones are not
    for a proxy that counts what a client still holds.
    """

    def __init__(self, target_url: str) -> None:
        target = urlsplit(target_url)
        assert target.hostname, target_url
        assert target.port, target_url
        self._target = (target.hostname, target.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.url = target._replace(netloc=f"127.0.0.1:{self._listener.getsockname()[1]}").geturl()
        self._total = 0
        self._clients: set[_End] = set()
        self._orders: collections.deque[Callable[[], None]] = collections.deque()
        self._waker, self._wakened = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wakened, selectors.EVENT_READ)
        self._running = True
        self._thread = threading.Thread(target=self._serve, name="counting-proxy", daemon=True)
        self._thread.start()

    @property
    def total(self) -> int:
        """How many connections were ever made."""
        return self._total

    @property
    def open(self) -> int:
        """How many connections are open now."""
        return len(self._clients)

    def cut(self, *, reset: bool = False) -> None:
        """End every open connection: with FIN as a dying peer does, or with RST.

        The proxy goes on: a new connection is forwarded again. Returns when all are cut.
        """
        done = threading.Event()

        def order() -> None:
            for client in list(self._clients):
                self._drop(client, reset=reset)
            done.set()

        self._do(order)
        assert done.wait(5), "the proxy's thread does not answer"

    def close(self) -> None:
        """End every connection and the proxy's thread; may be called twice."""
        if not self._thread.is_alive():
            return
        self._do(self._stop)
        self._thread.join(5)
        assert not self._thread.is_alive(), "the proxy's thread did not end"

    def __enter__(self) -> CountingProxy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # What follows runs in the proxy's thread, which alone touches sockets and sets.

    def _do(self, order: Callable[[], None]) -> None:
        self._orders.append(order)
        self._waker.send(b"!")

    def _stop(self) -> None:
        self._running = False

    def _serve(self) -> None:
        while self._running:
            for key, events in self._selector.select():
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._wakened:
                    self._wakened.recv(_READ_BYTES)
                    while self._orders:
                        self._orders.popleft()()
                elif not key.data.dropped:  # by an earlier event of the same round
                    self._forward(key.data, events)
        for client in list(self._clients):
            self._drop(client)
        self._selector.close()
        for sock in (self._listener, self._waker, self._wakened):
            sock.close()

    def _accept(self) -> None:
        client = _End(self._listener.accept()[0])
        self._total += 1
        try:
            upstream = _End(socket.create_connection(self._target, timeout=5))
        except OSError:  # the peer is gone: its client sees the connection end, the proxy goes on
            client.sock.close()
            return
        client.other, upstream.other = upstream, client
        self._clients.add(client)
        for end in (client, upstream):
            self._selector.register(end.sock, selectors.EVENT_READ, end)

    def _forward(self, end: _End, events: int) -> None:
        pair = (end, end.other)
        try:
            if events & selectors.EVENT_READ:
                data = end.sock.recv(_READ_BYTES)
                end.ended = not data
                end.other.unsent += data
            for one in pair:
                if one.unsent:
                    with contextlib.suppress(BlockingIOError):
                        del one.unsent[: one.sock.send(one.unsent)]
        except OSError:
            self._drop(end)
            return
        if any(one.ended and not one.other.unsent for one in pair):
            self._drop(end)
            return
        for one in pair:
            self._watch(one)

    def _watch(self, end: _End) -> None:
        """Tell the selector what is wanted of one end; it takes no empty wish."""
        registered = end.sock in self._selector.get_map()
        if not end.events:
            if registered:
                self._selector.unregister(end.sock)
        elif registered:
            self._selector.modify(end.sock, end.events, end)
        else:
            self._selector.register(end.sock, end.events, end)

    def _drop(self, end: _End, *, reset: bool = False) -> None:
        self._clients -= {end, end.other}
        for one in (end, end.other):
            one.dropped = True
            if one.sock in self._selector.get_map():
                self._selector.unregister(one.sock)
            if reset:
                with contextlib.suppress(OSError):
                    one.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DISCARD_UNSENT)
            one.sock.close()
