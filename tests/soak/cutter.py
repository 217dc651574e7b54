"""A proxy that cuts connections after a number of bytes that nobody can foresee."""

from __future__ import annotations

import contextlib
import random
import selectors
import socket
import struct
import threading
from urllib.parse import urlsplit

_READ_BYTES = 16384


class CuttingProxy:
    """Lead connections to a peer and reset some of them.

    One thread serves all: how many connections there are is part of what is soaked.

    Args:
        url: The peer.
        chance: Where its cuts come from.
        share: How many of the connections are cut, from 0 to 1.
        most_bytes: After how many bytes at most.

    Attributes:
        cuts: How many were cut.
        connections: How many there were.
    """

    def __init__(self, url: str, chance: random.Random, *, share: float, most_bytes: int) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname, parts.port)
        self._chance, self._share, self._most = chance, share, most_bytes
        self.cuts = self.connections = 0
        self._selector = selectors.DefaultSelector()
        self._left: dict[socket.socket, list[float]] = {}
        self._other: dict[socket.socket, socket.socket] = {}
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._wake, self._waker = socket.socketpair()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        for sock in (self._listener, self._wake):
            self._selector.register(sock, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="cutting-proxy", daemon=True)
        self._thread.start()

    def __enter__(self) -> CuttingProxy:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._waker.send(b"!")
        self._thread.join(10)
        for sock in [*self._other, self._listener, self._wake, self._waker]:
            sock.close()
        self._selector.close()

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select():
                sock = key.fileobj
                assert isinstance(sock, socket.socket)
                if sock is self._wake:
                    return
                if sock is self._listener:
                    self._take(self._listener.accept()[0])
                elif sock in self._other:
                    self._pass_on(sock)

    def _take(self, near: socket.socket) -> None:
        self.connections += 1
        try:
            far = socket.create_connection(self._target)
        except OSError:
            near.close()
            return
        is_cut = self._chance.random() < self._share
        left = [self._chance.uniform(1, self._most) if is_cut else float("inf")]
        for one, other in ((near, far), (far, near)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._other[one], self._left[one] = other, left
            self._selector.register(one, selectors.EVENT_READ)

    def _pass_on(self, sock: socket.socket) -> None:
        other, left = self._other[sock], self._left[sock]
        try:
            data = sock.recv(_READ_BYTES)
            if left[0] < len(data):
                with contextlib.suppress(OSError):
                    other.sendall(data[: int(left[0])])
                self.cuts += 1
                return self._end(sock, other, reset=True)
            if not data:
                return self._end(sock, other, reset=False)
            other.sendall(data)
            left[0] -= len(data)
        except OSError:
            self._end(sock, other, reset=False)
        return None

    def _end(self, *both: socket.socket, reset: bool) -> None:
        for sock in both:
            if reset:
                linger = struct.pack("ii", 1, 0)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self._selector.unregister(sock)
            del self._other[sock], self._left[sock]
            sock.close()
