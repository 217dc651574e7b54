"""A server that answers from prebuilt bytes, so that it is never what is measured.

``POST /<size>/tasks/`` brings the task of that size, ``POST /<kind>/tasks/stream`` a stream of
events, and ``GET /<size or kind>`` opens a WebSocket for both. One thread serves all connections on
plain sockets; one that streams is moved to a thread of its own. It prints ``{"port": N}`` and
serves until its standard input closes.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
import selectors
import socket
import sys
import threading
from collections.abc import Callable

from benchmarks import streams
from benchmarks.payloads import SIZES, task

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_UNKNOWN = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_STREAM = re.compile(rb"POST /(\w+)/tasks/stream ")
_WEBSOCKET = re.compile(rb"GET /(\w+)/? .*\r\nsec-websocket-key: *(\S+)", re.IGNORECASE | re.DOTALL)
_REQUEST_ID = re.compile(rb"\r\nx-protolink-request-id: *(\w{32})", re.IGNORECASE)
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
        # What takes so long that it needs a thread.
        self.slow: Callable[[], None] | None = None
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

    def serve_alone(self) -> None:
        """Serve this connection to its end, what takes long first."""
        with self.sock, contextlib.suppress(OSError):
            while True:
                if self.slow:
                    self.slow()
                    self.slow = None
                if not self.serve():
                    break

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
        self.slow = self._slow(head)
        if self.slow:
            return
        self.sock.sendall(_REPLIES.get(head.partition(b"\r\n")[0], _UNKNOWN))

    def _slow(self, head: bytes) -> Callable[[], None] | None:
        """Return what answers a request that needs a thread, or None."""
        if stream := _STREAM.match(head):
            request_id = _REQUEST_ID.search(head)
            return functools.partial(
                streams.send_sse,
                self.sock,
                stream[1].decode(),
                request_id[1] if request_id else streams.PLACEHOLDER,
            )
        if websocket := _WEBSOCKET.match(head):
            return functools.partial(
                streams.serve_websocket, self.sock, websocket[1].decode(), websocket[2]
            )
        return None


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
            elif key.data.slow:
                selector.unregister(key.data.sock)
                threading.Thread(target=key.data.serve_alone, daemon=True).start()


def main() -> None:
    """Serve until standard input closes."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    threading.Thread(target=_serve, args=(listener,), name="server", daemon=True).start()
    print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
