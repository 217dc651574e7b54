"""The body of a reply as it arrives: without chunks, inflated, nothing held back.

http.client gives out one chunk a call, which for a peer that sends an event in each chunk costs
as much as all the rest; this takes whatever bytes are there.
"""

from __future__ import annotations

import http.client
import zlib

from protolink_sync.transport._reply import Reply, chunk_size

__all__ = ["BodyReader"]

_READ_BYTES = 64 * 1024

# The longest line of a chunk's size with its extensions, and of the trailers behind the last one.
_MAX_SIZE_LINE = 8192

_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 47}


class BodyReader:
    """Read a body in the pieces in which it arrives.

    Args:
        reply: A reply whose head was read.

    Raises:
        http.client.HTTPException: The content encoding is unknown.

    Source:
        RFC 9112, 6.3 and 7.1.
    """

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._fp = reply.fp
        self._length = reply.length
        self._dechunk = _Dechunker() if reply.chunked else None
        encoding = reply.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", "", *_WINDOW_BITS):
            raise http.client.HTTPException(f"unknown content encoding {encoding!r}")
        self._inflater = _Inflater(_WINDOW_BITS[encoding]) if encoding in _WINDOW_BITS else None
        self.at_end = self._length == 0

    def read(self) -> bytes:
        """Wait for the next bytes; an empty result is the end of the body.

        Raises:
            http.client.IncompleteRead: The connection ended before the body did.
            http.client.HTTPException: It is not in chunks as announced.
            zlib.error: It is not compressed as announced.
            OSError: The connection failed.
        """
        inflater = self._inflater
        while True:
            if inflater is None:
                data = self._next()
            else:
                data = inflater.take(b"" if inflater.held else self._next())
            if data:
                return data
            if self.at_end and not (inflater is not None and inflater.held):
                if inflater is not None and not inflater.is_whole:
                    raise http.client.IncompleteRead(b"")
                return b""

    def skips_framing(self) -> bool:
        """Wait for the next bytes and return whether nothing of the body was in them.

        Raises:
            Exception: As :meth:`read`.
        """
        data = self._next()
        if data and self._inflater is not None:
            data = self._inflater.take(data)
        return not data and not (self._inflater and self._inflater.held)

    def _next(self) -> bytes:
        """Return the next bytes of the body, still compressed; empty where only framing came."""
        if self.at_end:
            return b""
        if self._dechunk is not None and self._dechunk.error is not None:
            raise self._dechunk.error
        wanted = _READ_BYTES if self._length is None else min(_READ_BYTES, self._length)
        data = self._fp.read1(wanted)
        if self._dechunk is not None:
            if not data:
                raise http.client.IncompleteRead(b"")
            data = self._dechunk.feed(data)
            self.at_end = self._dechunk.at_end
            self._reply.has_surplus = self._dechunk.has_surplus
        elif self._length is not None:
            if not data:
                raise http.client.IncompleteRead(b"", self._length)
            self._length -= len(data)
            self.at_end = self._length == 0
        else:
            self.at_end = not data
        return data


class _Inflater:
    """Inflate in bounded steps: a small body may inflate to gigabytes.

    A body may be several members one behind the other: a proxy may make one of each flush.

    Args:
        window_bits: What zlib calls the kind of compression.

    Source:
        RFC 1952, 2.2.
    """

    def __init__(self, window_bits: int) -> None:
        self._window_bits = window_bits
        self._member = zlib.decompressobj(window_bits)
        # What came and was not inflated yet: there may be more bytes in it than in one step.
        self.held = b""
        self._has_begun = False

    @property
    def is_whole(self) -> bool:
        """Whether a body that ends here was not cut: nothing has begun, or all has ended."""
        return self._member.eof or not self._has_begun

    def take(self, data: bytes) -> bytes:
        """Take the next bytes of the body and return the next inflated ones, if there are any."""
        data, self.held = self.held + data, b""
        if self._member.eof:
            data = data.lstrip(b"\0")  # which may stand behind a member
            if data:
                self._member = zlib.decompressobj(self._window_bits)
        if not data:
            return b""
        self._has_begun = True
        member = self._member
        found = member.decompress(data, _READ_BYTES)
        self.held = member.unused_data if member.eof else member.unconsumed_tail
        return found


class _Dechunker:
    """Take the chunk framing out of bytes that are cut anywhere."""

    def __init__(self) -> None:
        self._left = 0
        # The begin of a size line, or of the line end behind a chunk, that was cut.
        self._line = b""
        self._behind_chunk = False
        self._in_trailers = False
        self.at_end = False
        # Whether bytes came behind the end.
        self.has_surplus = False
        # What is wrong with the framing; the body before it was given out.
        self.error: http.client.HTTPException | None = None

    def feed(self, data: bytes) -> bytes:
        """Return what the bytes hold of the body.

        Raises:
            http.client.HTTPException: The framing is wrong, and nothing came before that.
        """
        found: list[bytes] = []
        try:
            self._split(data, found)
        except http.client.HTTPException as error:
            self.error = error
            if not found:
                raise
        return found[0] if len(found) == 1 else b"".join(found)

    def _split(self, data: bytes, found: list[bytes]) -> None:
        at = 0
        while at < len(data) and not self.at_end:
            if self._left:
                piece = data[at : at + self._left]
                found.append(piece)
                at += len(piece)
                self._left -= len(piece)
                self._behind_chunk = not self._left
                continue
            end = data.find(b"\n", at)
            self._line += data[at:] if end < 0 else data[at : end + 1]
            if len(self._line) > _MAX_SIZE_LINE:
                raise http.client.LineTooLong("chunk size")
            if end < 0:
                break
            at = end + 1
            line, self._line = self._line.strip(), b""
            self._take(line)
        self.has_surplus = self.at_end and at < len(data)

    def _take(self, line: bytes) -> None:
        """Take one whole line of the framing."""
        if self._behind_chunk:
            if line:
                raise http.client.HTTPException("a chunk is longer than its size says")
            self._behind_chunk = False
        elif self._in_trailers:
            self.at_end = not line
        else:
            self._left = chunk_size(line)
            self._in_trailers = self._left == 0
