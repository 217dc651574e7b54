"""websocket-client as this package uses it: bounded, and on sockets of ours.

It builds the upgrade and checks the answer, and reads what is no whole text message: control
frames, fragments, binary messages. It never sees the network: what it takes for its socket is a
:class:`Wire`. The answer to the upgrade is read by the reader of all HTTP heads (:class:`Reply`),
and the library gets the three headers that it checks: its own reader takes any length, one byte
at a time, follows redirects with the credentials, and keeps cookies for the whole process.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import os
import socket
from typing import Any

import websocket

from protolink_sync.errors import TransportError, TransportProtocolError
from protolink_sync.transport._reply import Reply
from protolink_sync.transport._ws_frames import CLOSE, PING, PONG, TEXT, masked_frame
from protolink_sync.wire import TransportRequestContext

__all__ = [
    "FOREIGN_ERRORS",
    "Library",
    "MessageTooLarge",
    "UpgradeRefused",
    "WebSocketClosed",
    "Wire",
    "protocol_error",
    "read_head",
]

_READ_BYTES = 64 * 1024

# How much of the body of a refused upgrade is read.
_KEPT_BODY = 64 * 1024

_SWITCHING_PROTOCOLS = 101

_NORMAL_CLOSE = (1000).to_bytes(2, "big")

# What a close frame without a code means.
_NO_CODE = 1005

# RFC 6455, 5.5: what a control frame may carry.
_MAX_CONTROL_BYTES = 125

# So many pings may have come to an idle connection: to answer more takes longer than a new one.
_MOST_PINGS = 256

# What websocket-client looks at in the answer to an upgrade.
_CHECKED_HEADERS = ("upgrade", "connection", "sec-websocket-accept")

# The errors that can come out of a connection; each is turned into one of ours.
FOREIGN_ERRORS = (OSError, http.client.HTTPException, websocket.WebSocketException)


class WebSocketClosed(ConnectionError):
    """The peer ended the connection.

    Args:
        code: Code of its close frame; None if it sent none.
        reason: The words in it.
    """

    def __init__(self, code: int | None, reason: str = "") -> None:
        super().__init__(
            "without a close frame" if code is None else f"with close code {code} {reason!r}"
        )
        self.code = code
        self.reason = reason


class MessageTooLarge(websocket.WebSocketException):
    """A message is larger than its limit; nothing beyond the limit was read."""


class UpgradeRefused(websocket.WebSocketException):
    """The peer answered the upgrade with another status than 101.

    Args:
        reply: The answer.
        body: The begin of its body.
    """

    def __init__(self, reply: Reply, body: bytes) -> None:
        super().__init__(f"status {reply.status}")
        self.reply = reply
        self.body = body


def read_head(sock: socket.socket, method: str) -> Reply:
    """Wait for the head of an answer to an HTTP request."""
    reply = Reply(sock, method=method)
    try:
        reply.begin()
    except BaseException:
        reply.close()  # the socket stays open as long as its reader
        raise
    return reply


class Wire:
    """A socket with what was read from it ahead; it never closes the socket.

    Args:
        sock: The socket, TLS included.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.buffer = b""
        # Where in the buffer the next frame begins.
        self.at = 0
        # The answer to the upgrade, and what the library is given of it.
        self._reply: Reply | None = None
        self._head: io.BytesIO | None = None
        self._is_upgraded = self._is_stopped = False

    # --- what websocket-client calls ---------------------------------------------------------

    def recv(self, size: int) -> bytes:
        """Return at most so many bytes, waiting for the first."""
        if not self._is_upgraded:
            if self._head is None:
                self._head = io.BytesIO(self._answer_to_upgrade())
            return self._head.read(size)
        if self._is_stopped or (self.at >= len(self.buffer) and not self.fill()):
            return b""
        piece = self.buffer[self.at : self.at + size]
        self.at += len(piece)
        return piece

    def recv_some(self, size: int) -> bytes:
        """Return the same, but never nothing.

        Raises:
            websocket.WebSocketConnectionClosedException: The connection is at its end.
        """
        data = self.recv(size)
        if not data:
            raise websocket.WebSocketConnectionClosedException("the connection has ended")
        return data

    def send(self, data: bytes) -> int:
        """Send all of it."""
        self.sock.sendall(data)
        return len(data)

    def gettimeout(self) -> None:
        """Return None: what bounds a read is its call."""

    def settimeout(self, timeout: Any) -> None:
        """Ignore it: what bounds a read is its call."""

    def close(self) -> None:
        """Do nothing: the connection closes its socket where no abort can be under way."""

    # --- reading and writing past it ---------------------------------------------------------

    def upgraded(self) -> None:
        """Say that from here on frames are read."""
        self._is_upgraded, self._reply, self._head = True, None, None

    def stop(self) -> None:
        """Have no more be read; any thread.

        What has arrived can be a great many messages, pings or fragments, which nobody wants any
        more.
        """
        self._is_stopped = True
        reply = self._reply
        if reply is not None:
            reply.stop()

    def _answer_to_upgrade(self) -> bytes:
        self._reply = reply = Reply(self.sock, method="GET")
        # Closed here, for its finalizer is Python code that would swallow a KeyboardInterrupt.
        with contextlib.closing(reply):
            reply.begin()
            if reply.status != _SWITCHING_PROTOCOLS:
                raise UpgradeRefused(reply, reply.read(_KEPT_BODY))
            for unasked in ("extensions", "protocol"):
                if f"sec-websocket-{unasked}" in reply.headers:
                    raise websocket.WebSocketProtocolException(
                        f"it chose sec-websocket-{unasked} that nobody offered"
                    )
            self.buffer = reply.read_ahead()
            lines = [f"{n}: {reply.headers[n]}" for n in _CHECKED_HEADERS if n in reply.headers]
            return "\r\n".join(["HTTP/1.1 101 Switching Protocols", *lines, "", ""]).encode()

    def fill(self) -> bool:
        """Wait for more bytes; False at the end of the connection."""
        if self._is_stopped:
            return False
        data = self.sock.recv(_READ_BYTES)
        rest = self.buffer[self.at :]
        self.buffer, self.at = rest + data if rest else data, 0
        return bool(data)

    def take(self, size: int, header: int) -> bytes:
        """Wait until so many bytes are there; return all of them but a header."""
        begin = self.buffer[self.at :]
        self.buffer, self.at = b"", 0
        whole = bytearray(size)
        position = len(begin)
        whole[:position] = begin
        with memoryview(whole) as view:
            while position < size:
                read = self.sock.recv_into(view[position:])
                if not read:
                    raise WebSocketClosed(None)
                position += read
            return bytes(view[header:])

    def send_at_once(self, opcode: int, payload: bytes) -> bool:
        """Send a small frame if that takes no waiting; False if only a part of it went out."""
        frame = masked_frame(opcode, payload, os.urandom(4))
        self.sock.setblocking(False)
        try:
            return self.sock.send(frame) == len(frame)
        finally:
            self.sock.setblocking(True)

    def say_goodbye(self) -> None:
        """Send a close frame if that takes no waiting."""
        try:
            self.send_at_once(CLOSE, _NORMAL_CLOSE)
        except (OSError, ValueError):  # the peer is gone
            pass

    def pass_over_pings(self) -> bool:
        """Answer the pings in the buffer; False if anything else stands there too, or too many."""
        for _ in range(_MOST_PINGS):
            if self.at >= len(self.buffer):
                break
            frame = self.buffer[self.at : self.at + 2 + _MAX_CONTROL_BYTES]
            if frame[0] not in (0x80 | PING, 0x80 | PONG) or len(frame) < 2:
                return False
            size = frame[1]
            if size > _MAX_CONTROL_BYTES or len(frame) < 2 + size:
                return False
            if frame[0] == 0x80 | PING and not self.send_at_once(PONG, frame[2 : 2 + size]):
                return False
            self.at += 2 + size
        return self.at >= len(self.buffer)


class _Frames(websocket.frame_buffer):
    """The library's reader of single frames; it looks at a frame's head before it reads on."""

    limit = 0

    def recv_length(self) -> None:
        super().recv_length()
        assert self.header is not None
        assert self.length is not None
        final, _, _, _, opcode, masked, _ = self.header
        if masked:
            raise websocket.WebSocketProtocolException("it sent a masked frame")
        if opcode >= CLOSE and (not final or self.length > _MAX_CONTROL_BYTES):
            raise websocket.WebSocketProtocolException("a control frame is too long or in pieces")
        if self.length > self.limit:
            raise MessageTooLarge(f"announces {self.length} bytes")


class _Fragments(websocket.continuous_frame):
    """The library's joiner of fragments, bounded, and linear also for tiny ones."""

    limit = 0

    def __init__(self) -> None:
        super().__init__(False, True)
        self._pieces: list[Any] = []
        self._size = 0

    def add(self, frame: websocket.ABNF) -> None:
        self._size += len(frame.data)
        if self._size > self.limit:
            raise MessageTooLarge(f"has more than {self.limit} bytes")
        if not self.recving_frames:
            self.recving_frames = frame.opcode
        if frame.data:
            self._pieces.append(frame.data)
        if frame.fin:
            self.recving_frames = None

    def extract(self, frame: websocket.ABNF) -> tuple[int, websocket.ABNF]:
        frame.data = b"".join(self._pieces)
        self._pieces, self._size = [], 0
        return TEXT, frame


class Library(websocket.WebSocket):
    """A WebSocket of websocket-client on a wire.

    Args:
        wire: What it takes for its socket.

    Attributes:
        is_inside_message: Whether fragments of a message came, and not all.
    """

    is_inside_message = False

    def __init__(self, wire: Wire) -> None:
        super().__init__(enable_multithread=False, skip_utf8_validation=True)
        self._wire = wire
        # The wire's own reader: with the library's each would hold the other, and a connection
        # that is dropped would stay open until the next garbage collection.
        self._frames = self.frame_buffer = _Frames(wire.recv_some, True)
        self._fragments = self.cont_frame = _Fragments()

    def upgrade(self, url: str, host: str, headers: list[str]) -> None:
        """Ask for the upgrade and check the answer.

        Args:
            url: The address that is called.
            host: Value of the header ``Host``.
            headers: Further header lines.
        """
        self.connect(  # type: ignore[no-untyped-call]
            url,
            socket=self._wire,
            host=host,
            header=headers,
            suppress_origin=True,
            redirect_limit=0,
        )
        self._wire.upgraded()

    def read(self, limit: int) -> bytes | None:
        """Read a message, or a control frame, for which None is returned; pings are answered.

        Args:
            limit: Size of the largest message allowed.

        Raises:
            WebSocketClosed: It was a close frame; it is answered.
            MessageTooLarge: The message is larger.
        """
        self._frames.limit = self._fragments.limit = limit
        opcode, frame = self.recv_data_frame(control_frame=True)
        self.is_inside_message = self._fragments.recving_frames is not None
        if opcode == CLOSE:
            code = int.from_bytes(frame.data[:2], "big") if frame.data else _NO_CODE
            raise WebSocketClosed(code, frame.data[2:].decode("utf-8", "replace"))
        return None if opcode in (PING, PONG) else frame.data

    def pong(self, payload: str | bytes = b"") -> None:
        """Answer a ping (called by the library).

        A peer that has gone is no error here: what it said before it went is still to be read.
        """
        try:
            super().pong(payload)
        except (OSError, websocket.WebSocketConnectionClosedException):
            pass

    def send_close(self, *args: Any, **words: Any) -> None:
        """Answer a close frame without waiting: the connection is over (called by the library)."""
        self.connected = False
        self._wire.say_goodbye()


def protocol_error(error: BaseException, context: TransportRequestContext) -> TransportError | None:
    """Return our error for a peer that breaks the rules of HTTP or WebSocket, None for others."""
    where = context.where
    if isinstance(error, OSError):  # some errors of http.client are ended connections
        return None
    if isinstance(error, http.client.BadStatusLine):
        return TransportProtocolError(
            f"{where}: the peer does not speak HTTP; its answer begins {error.args[0][:100]!r}"
        )
    if isinstance(error, http.client.IncompleteRead):
        return None
    if isinstance(error, http.client.HTTPException):
        return TransportProtocolError(
            f"{where}: the answer to the upgrade is not valid HTTP "
            f"({type(error).__name__}: {error})"
        )
    if isinstance(error, websocket.WebSocketConnectionClosedException):
        return None
    return TransportProtocolError(f"{where}: the peer does not keep to WebSocket: {error}")
