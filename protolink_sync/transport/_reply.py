"""The head of an HTTP reply, read strictly and once for all transports that get one."""

from __future__ import annotations

import http.client
import io
import socket
from typing import Any

__all__ = ["Reply", "chunk_size"]

_INTERIM = 199
_SWITCHING_PROTOCOLS = 101

# As http.client has them.
_MAX_HEADERS = 100
_MAX_LINE = 65536

_HEX_DIGITS = b"0123456789abcdefABCDEF"

# More digits than any length or size has that can be meant.
_MAX_DIGITS = 20

# Replies without a body, whatever their headers announce: those are of what another method, or
# another copy, would have been answered.
_BODILESS = (_SWITCHING_PROTOCOLS, http.client.NO_CONTENT, http.client.NOT_MODIFIED)


class _Source(io.RawIOBase):
    """A socket as a reply reads it; once ended it gives what was read ahead, no more."""

    def __init__(self, sock: socket.socket) -> None:
        self._raw: Any = sock.makefile("rb", buffering=0)
        self.ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        read: int = 0 if self.ended else self._raw.readinto(buffer)
        return read

    def close(self) -> None:
        self._raw.close()
        super().close()

    def makefile(self, *_: Any) -> io.BufferedReader:
        return io.BufferedReader(self)


class Reply(http.client.HTTPResponse):
    """A reply: http.client reads its body, the head is read here.

    Interim replies (103 and the like) are no answer and are read past. Header names come in
    lower case, several headers of one name joined; the e-mail parser of http.client would take
    as long as the whole of our part of a call.

    Source:
        RFC 9112, 5 and 6.3.
    """

    headers: dict[str, str]  # type: ignore[assignment]

    # Whether bytes that nobody has asked for came behind it, which the reader took in too.
    has_surplus = False

    def __init__(self, sock: socket.socket, method: str) -> None:
        self._source = _Source(sock)
        super().__init__(self._source, method=method)  # type: ignore[arg-type]

    def read_ahead(self) -> bytes:
        """Return what was read behind the head, without waiting for more."""
        self._source.ended = True
        return self.fp.read()

    def stop(self) -> None:
        """Read no more from the socket; any thread.

        What has arrived there can be a great many tiny chunks, and nobody wants them any more.
        """
        self._source.ended = True

    def _close_conn(self) -> None:
        """Close the reader (called by http.client at the end of the body)."""
        self._source.ended = True
        if not self.fp.closed and self.fp.peek(1):
            self.has_surplus = True
        super()._close_conn()  # type: ignore[misc]

    def flush(self) -> None:
        """Do nothing: it is only read. http.client asks a file that may be closed already."""

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
        is_empty = status in _BODILESS
        self.chunked = not is_empty and self._is_chunked()
        self.chunk_left = None
        self.length = 0 if is_empty else None if self.chunked else self._announced_length()
        # Without length and chunks the body ends with the connection.
        self.will_close = (
            self._ends_connection()
            or (self.length is None and not self.chunked)
            or self._is_framed_doubtfully()
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
            if text.startswith((" ", "\t")) and name:  # the line before goes on
                headers[name] += " " + text.strip()
                continue
            name, colon, value = text.partition(":")
            name = name.lower()
            if not colon or not name or name.strip() != name:
                raise http.client.HTTPException(f"a header line is no header: {text[:100]!r}")
            value = value.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        raise http.client.HTTPException(f"got more than {_MAX_HEADERS} headers")

    def _is_chunked(self) -> bool:
        coding = self.headers.get("transfer-encoding", "").strip().lower()
        if coding not in ("", "chunked", "identity"):
            raise http.client.HTTPException(f"unknown transfer encoding {coding!r}")
        return coding == "chunked"

    def _is_framed_doubtfully(self) -> bool:
        """Return whether somebody on the way may take another end for that of the body.

        Source:
            RFC 9112, 6.1.
        """
        return self.chunked and (self.version == 10 or "content-length" in self.headers)

    def _announced_length(self) -> int | None:
        # Equal values may be joined by a proxy; different ones are an attack.
        given = {text.strip() for text in self.headers.get("content-length", "").split(",")}
        if given == {""}:
            return None
        length = given.pop()
        if given or not (length.isascii() and length.isdigit()):
            raise http.client.HTTPException("the content length is no number")
        if len(length) > _MAX_DIGITS:
            raise http.client.HTTPException(f"the content length has {len(length)} digits")
        return int(length)

    def _ends_connection(self) -> bool:
        options = self.headers.get("connection", "").lower()
        return "close" in options or (self.version == 10 and "keep-alive" not in options)

    def _read_chunked(self, amt: int | None = None) -> bytes:
        """Read chunks (called by http.client, whose own makes a list of them, even tiny ones)."""
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
        return chunk_size(line)


def chunk_size(line: bytes) -> int:
    """Return the size of a chunk.

    Args:
        line: The line before the chunk; its extensions mean nothing to us.

    Raises:
        http.client.HTTPException: There is no size in it.

    Source:
        RFC 9112, 7.1.

    >>> chunk_size(b"1F;name=value\\r\\n")
    31
    """
    size = line.partition(b";")[0].strip()
    if not size or len(size) > _MAX_DIGITS or size.translate(None, _HEX_DIGITS):
        raise http.client.HTTPException(f"the size of a chunk is no number: {size[:100]!r}")
    return int(size, 16)


def _cut(where: str) -> http.client.RemoteDisconnected:
    return http.client.RemoteDisconnected(f"the connection ended within the {where}")
