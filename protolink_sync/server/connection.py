"""One connection of the embedded host: read a request, have it answered, send the response.

A response whose length the application does not tell is a stream: it is sent piece by piece.
"""

from __future__ import annotations

import io
import socket
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

from protolink_sync.server.http1 import (
    MAX_HEAD_BYTES,
    RequestHead,
    environ_of,
    parse_head,
    response_head,
)
from protolink_sync.server.refusal import RefusedError
from protolink_sync.wire import json

__all__ = ["Connection"]

_READ_BYTES = 64 * 1024
# A client that sends or reads at a trickle must not hold a thread for ever.
_HEAD_SECONDS = 20.0
_BODY_SECONDS = 60.0
_SLOWEST_BYTES_PER_SECOND = 16 * 1024
# What an answered request has left unread is read, so that the client reads the answer: closing
# with unread bytes makes the system reset the connection.
_LINGER_SECONDS = 2.0
# A client may be slow with what is streamed to it: it may work on each event.
_STALL_SECONDS = 300.0

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Connection:
    """One connection, used by one thread; :meth:`cut` may be called by any.

    Args:
        sock: The socket.
        client: Address of the other side.
        scheme: ``http`` or ``https``.
        idle_timeout: Seconds to wait for a request.
    """

    def __init__(self, sock: socket.socket, client: str, scheme: str, idle_timeout: float) -> None:
        self.sock = sock
        self._server = sock.getsockname()[:2]
        self._client = client
        self._scheme = scheme
        self._idle_timeout = idle_timeout
        self._read = b""

    def cut(self) -> None:
        """End what the connection is waiting for."""
        try:
            # The method of the plain socket: that of a TLS socket drops the encryption first.
            socket.socket.shutdown(self.sock, socket.SHUT_RDWR)
        except OSError:
            pass

    def next_head(self) -> RequestHead | None:
        """Wait for a request and return its head; None when the client is done.

        Raises:
            RefusedError: It is malformed or too large.
            OSError: The connection broke, or the head takes too long.
        """
        self.sock.settimeout(self._idle_timeout)
        if not self._read and not self._receive():
            return None
        end = time.monotonic() + _HEAD_SECONDS
        while True:
            # Empty lines before a request are to be skipped (RFC 9112, 2.2).
            self._read = self._read.lstrip(b"\r\n")
            head, found, rest = self._read.partition(b"\r\n\r\n")
            if found:
                self._read = rest
                return parse_head(head)
            if len(self._read) > MAX_HEAD_BYTES:
                raise RefusedError(431, f"the head exceeds {MAX_HEAD_BYTES} bytes", "ValueError")
            self._wait_until(end)
            if not self._receive():
                return None

    def answer(
        self,
        head: RequestHead,
        application: Application,
        may_go_on: Callable[[], bool],
        streams: Callable[[], None],
    ) -> bool:
        """Have a request answered, and send the response.

        Args:
            head: The request.
            application: What answers it.
            may_go_on: Asked afterwards whether the connection may be used again.
            streams: Called before the first piece, if the response is a stream.

        Returns:
            Whether the connection can be used again.

        Raises:
            RefusedError: The head does not say where the body ends.
            OSError: The connection broke, or the client is too slow.
        """
        body = _Body(self, head)
        environ = environ_of(
            head, io.BufferedReader(body), self._server, self._client, self._scheme
        )
        environ["protolink_sync.has_left"] = self._has_left
        started: list[Any] = []

        def start_response(
            status: str, headers: list[tuple[str, str]], exc_info: Any = None
        ) -> None:
            started[:] = [status, headers]

        result = application(environ, start_response)
        try:
            status, headers = started
            # 304 has no body, and need not tell a length.
            is_whole = status.startswith("304") or any(
                name.lower() == "content-length" for name, _ in headers
            )
            if is_whole:
                content = b"".join(result)
            keeps_alive = head.keeps_alive and body.can_be_skipped and may_go_on()
            if is_whole:
                self._send(status, headers, content, head.minor, keeps_alive)
            else:
                streams()
                keeps_alive = self._send_stream(status, headers, result, head.minor, keeps_alive)
        finally:
            close = getattr(result, "close", None)
            if close is not None:
                close()
        return keeps_alive and body.skip()

    def refuse(self, error: RefusedError) -> None:
        """Answer with an error; the connection cannot be used after it."""
        status = f"{error.status} {HTTPStatus(error.status).phrase}"
        content = json.dumps({"error": error.message})
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(content))),
        ]
        self._send(status, headers, content, 1, False)

    def linger(self) -> None:
        """Let the client read the last response before the connection is closed."""
        try:
            socket.socket.shutdown(self.sock, socket.SHUT_WR)
            end = time.monotonic() + _LINGER_SECONDS
            while True:
                self._wait_until(end)
                if not self.sock.recv(_READ_BYTES):
                    return
        except OSError:
            pass

    # ---- bytes ----

    def take(self, most: int, end: float) -> bytes:
        """Return some bytes of a body; none when the client is gone."""
        if not self._read:
            self._wait_until(end)
            self._receive()
        piece, self._read = self._read[:most], self._read[most:]
        return piece

    def send_continue(self) -> None:
        """Tell the client to send its body."""
        self.sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _receive(self) -> bool:
        piece = self.sock.recv(_READ_BYTES)
        self._read += piece
        return bool(piece)

    def _wait_until(self, end: float) -> None:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the client is too slow")
        self.sock.settimeout(left)

    def _send(
        self,
        status: str,
        headers: list[tuple[str, str]],
        content: bytes,
        minor: int,
        keeps_alive: bool,
    ) -> None:
        head = response_head(status, headers, minor=minor, keeps_alive=keeps_alive)
        self._wait_until(time.monotonic() + _allowed(len(content)))
        # In one piece: two would wait for each other (Nagle, delayed acknowledgement).
        self.sock.sendall(head + content)

    def _send_stream(
        self,
        status: str,
        headers: list[tuple[str, str]],
        pieces: Iterable[bytes],
        minor: int,
        keeps_alive: bool,
    ) -> bool:
        """Send each piece as it comes; return whether the client knows where the last one ends."""
        is_chunked = minor == 1
        if is_chunked:
            headers = [*headers, ("Transfer-Encoding", "chunked")]
        keeps_alive = keeps_alive and is_chunked
        before = response_head(status, headers, minor=minor, keeps_alive=keeps_alive)
        for piece in pieces:
            if piece:
                self._send_piece(before, piece, is_chunked)
                before = b""
        self._send_piece(before, b"", is_chunked)
        return keeps_alive

    def _send_piece(self, before: bytes, piece: bytes, is_chunked: bool) -> None:
        data = b"%b%x\r\n%b\r\n" % (before, len(piece), piece) if is_chunked else before + piece
        self._wait_until(time.monotonic() + _STALL_SECONDS)
        self.sock.sendall(data)

    def _has_left(self) -> bool:
        """Return whether the client has gone, as far as that can be seen without waiting."""
        try:
            self.sock.setblocking(False)
            # The method of the plain socket: a TLS socket cannot peek. Under TLS a client that
            # says goodbye first looks like one that sends; the next heartbeat finds it.
            return not socket.socket.recv(self.sock, 1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True


class _Body(io.RawIOBase):
    """The body of one request; it ends where the head says."""

    def __init__(self, connection: Connection, head: RequestHead) -> None:
        self._unread = head.length
        self._connection = connection
        self._is_awaited = not head.expects_continue
        self._end = time.monotonic() + _allowed(self._unread)

    @property
    def can_be_skipped(self) -> bool:
        """Whether what nobody has read is little, and on its way."""
        return self._unread == 0 or (self._is_awaited and self._unread <= _READ_BYTES)

    def skip(self) -> bool:
        """Read what nobody has read; False if the client is gone."""
        self._end = time.monotonic() + _LINGER_SECONDS
        while self._unread:
            if not self.read(_READ_BYTES):
                return False
        return True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._unread:
            return 0
        if not self._is_awaited:
            self._is_awaited = True
            self._connection.send_continue()
        piece = self._connection.take(min(len(buffer), self._unread), self._end)
        buffer[: len(piece)] = piece
        self._unread -= len(piece)
        return len(piece)


def _allowed(size: int) -> float:
    """Return how many seconds so many bytes may take."""
    return _BODY_SECONDS + size / _SLOWEST_BYTES_PER_SECOND
