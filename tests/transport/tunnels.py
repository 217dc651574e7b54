"""A proxy as tests need it: it passes requests and tunnels on, and remembers what it was asked."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
from collections.abc import Iterator

_READ_BYTES = 65536


class Tunnels:
    """A proxy on the loopback.

    Args:
        resolve: Host names it knows, and their addresses.
        tls: Serve TLS with this context.
    """

    def __init__(
        self, *, resolve: dict[str, str] | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self.heads: list[str] = []
        self.connections = 0
        # What each client that spoke TLS showed: its certificate, if it has one.
        self.certificates: list[object] = []
        self._resolve = resolve or {}
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._start(self._accept)

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}"

    def headers(self, name: str) -> list[str | None]:
        """Return what each head has for a header."""
        found: list[str | None] = []
        for head in self.heads:
            lines = [line.partition(": ") for line in head.split("\r\n")[1:]]
            found.append(next((v for key, _, v in lines if key.lower() == name.lower()), None))
        return found

    def close(self) -> None:
        self._closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for sock in [*self._sockets]:
            with contextlib.suppress(OSError):
                # Not TLS's own: after it, a reader is handed what is still encrypted.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        self._listener.close()

    def __enter__(self) -> Tunnels:
        return self

    def __exit__(self, *rest: object) -> None:
        self.close()

    def _start(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, name="tunnels", daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._sockets.append(client)
            self._start(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), self._talking(client) as sock:
            head = b""
            while b"\r\n\r\n" not in head:
                data = sock.recv(_READ_BYTES)
                if not data:
                    return
                head += data
            end = head.index(b"\r\n\r\n") + 4
            self.heads.append(head[:end].decode("latin-1"))
            method, target, _ = self.heads[-1].split(" ", 2)
            if method == "CONNECT":
                host, _, port = target.rpartition(":")
            else:
                host, _, port = target.split("/")[2].rpartition(":")
            host = host.strip("[]")
            with socket.create_connection((self._resolve.get(host, host), int(port)), 5) as peer:
                self._sockets.append(peer)
                if method == "CONNECT":
                    sock.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    peer.sendall(head[end:])
                else:
                    peer.sendall(head)
                self._pass_on(sock, peer)

    def _talking(self, client: socket.socket) -> socket.socket:
        if self._tls is None:
            return client
        wrapped = self._tls.wrap_socket(client, server_side=True)
        self._sockets.append(wrapped)
        self.certificates.append(wrapped.getpeercert())
        return wrapped

    def _pass_on(self, client: socket.socket, peer: socket.socket) -> None:
        for data, target in _pieces(client, peer):
            target.sendall(data)


def _pieces(one: socket.socket, other: socket.socket) -> Iterator[tuple[bytes, socket.socket]]:
    while True:
        ready = [s for s in (one, other) if isinstance(s, ssl.SSLSocket) and s.pending()]
        for sock in ready or select.select([one, other], [], [], 30)[0]:
            data = sock.recv(_READ_BYTES)
            if not data:
                return
            yield data, other if sock is one else one
