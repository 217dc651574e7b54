"""A server that answers from prebuilt bytes, so that it is never what is measured.

``POST /<size>/tasks/`` brings the task of that size. One thread serves all connections on plain
sockets. It prints ``{"port": N}`` and serves until its standard input closes.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import sys
import threading

from benchmarks.payloads import SIZES, task

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_UNKNOWN = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_READ_BYTES = 1 << 20


def _reply(size: str) -> bytes:
    body = json.dumps(task(size)).encode()
    return _HEAD % len(body) + body


_REPLIES = {b"POST /%b/tasks/ HTTP/1.1" % size.encode(): _reply(size) for size in SIZES}


class _Connection:
    """A client's socket, what came from it, and how much a whole request has."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self._received = bytearray()
        self._needed = 0

    def serve(self) -> bool:
        """Take what has come and answer a request that is whole; False at the end."""
        try:
            data = self.sock.recv(_READ_BYTES)
            self._received += data
            if len(self._received) >= self._needed:
                self._answer()
        except OSError:
            return False
        return bool(data)

    def _answer(self) -> None:
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._received[:end])
        length = _LENGTH.search(head)
        self._needed = end + 4 + (int(length[1]) if length else 0)
        if len(self._received) < self._needed:
            return
        del self._received[: self._needed]
        self._needed = 0
        self.sock.sendall(_REPLIES.get(head.partition(b"\r\n")[0], _UNKNOWN))


def _serve(listener: socket.socket) -> None:
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                sock, _ = listener.accept()
                selector.register(sock, selectors.EVENT_READ, _Connection(sock))
            elif not key.data.serve():
                selector.unregister(key.data.sock)
                key.data.sock.close()


def main() -> None:
    """Serve until standard input closes."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    threading.Thread(target=_serve, args=(listener,), name="server", daemon=True).start()
    print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
