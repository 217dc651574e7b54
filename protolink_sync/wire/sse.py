"""Server-sent events: bytes, cut anywhere, to the data of whole events.

sseclient-py alone loses the first event after a byte order mark, delivers a block that the
connection cut in half, takes quadratic time for large events and has no limit. So blocks are
found here, in linear time and within a limit; a block of plain ``data:`` lines is taken as it is,
and only any other is given to sseclient-py, in parts, unless it has a great many lines.

Source:
    WHATWG HTML, 9.2.5 and 9.2.6.
"""

from __future__ import annotations

import re

from protolink_sync.errors import TransportLimitError

__all__ = ["EventReader"]

_BOM = b"\xef\xbb\xbf"

# How many lines of a block sseclient-py is given at once.
_LINES_AT_ONCE = 64

# A block of more lines is parted here.
_MANY_LINES = 4096
_DATA_FIELD = re.compile(rb"(?m)^data(?::.*)?$")


class EventReader:
    """Collect bytes and give out the data of each event once its blank line has come.

    Args:
        max_event_bytes: Size of one event.
    """

    def __init__(self, max_event_bytes: int) -> None:
        self._limit = max_event_bytes
        # What has come of the unfinished event, in pieces: joined once, when it is whole.
        self._pieces: list[bytes] = []
        self._size = 0
        self._ends_line = True
        self._begun = False
        self._head = b""
        self._carriage_return = False
        # Why the stream cannot be read on; raised after the events before it.
        self._error: TransportLimitError | None = None

    @property
    def failed(self) -> bool:
        """Whether :meth:`feed` will raise, whatever comes."""
        return self._error is not None

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes and return the data of the events that are whole now.

        Raises:
            TransportLimitError: An event is larger than the limit; the events before it were
                returned.
        """
        found: list[bytes] = []
        if self._error is None:
            try:
                self._take(data, found)
            except TransportLimitError as error:
                self._error = error
        if self._error is not None and not found:
            raise self._error
        return found

    def _take(self, data: bytes, found: list[bytes]) -> None:
        data = self._normalised(data)
        if not data:
            return
        end = data.rfind(b"\n\n") + 2
        if end < 2:
            if not (self._ends_line and data[:1] == b"\n"):
                self._keep(data)
                return
            end = 1  # the blank line lies across the cut
        # Without the blank line: a single event is then not copied to be parted from it.
        self._pieces.append(data[:end].rstrip(b"\n"))
        whole = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        self._ends_line = True
        for block in whole.split(b"\n\n"):
            if block:
                payload = self._data(block)
                # Blank data is no JSON value: some servers send it as a heartbeat.
                if payload and not payload.isspace():
                    found.append(payload)
        if end < len(data):
            self._keep(data[end:])

    def _keep(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        self._ends_line = data[-1:] == b"\n"
        # The line end may be the begin of the blank line, which is no part of the event.
        size = self._size - self._ends_line
        if size > self._limit:
            raise self._too_large(size)

    def _normalised(self, data: bytes) -> bytes:
        """Return the bytes with LF as the only line end and without a byte order mark."""
        if not self._begun:
            data = self._head + data
            if len(data) < len(_BOM) and _BOM.startswith(data):
                self._head = data
                return b""
            self._begun, self._head = True, b""
            data = data.removeprefix(_BOM)
        if self._carriage_return and data:
            self._carriage_return = False
            data = data.removeprefix(b"\n")
        if b"\r" in data:
            # A CR at the end is a line end already; a LF that follows belongs to it.
            self._carriage_return = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return data

    def _data(self, block: bytes) -> bytes | None:
        """Return the data of one block, or None if it has none."""
        block = block.strip(b"\n")
        if len(block) > self._limit:
            raise self._too_large(len(block))
        if block.startswith(b"data:"):
            if b"\n" not in block:
                return block[6:] if block[5:6] == b" " else block[5:]
            joined = _joined(block)
            if joined is not None:
                return joined
        if b"data" not in block:
            return None  # a comment (a heartbeat), or fields that make no event
        return _by_sseclient(block)

    def _too_large(self, size: int) -> TransportLimitError:
        return TransportLimitError(
            f"an event has {size} bytes or more, limit is {self._limit}. Raise "
            "TransportLimits.max_event_bytes, or have the agent send smaller events"
        )


def _joined(block: bytes) -> bytes | None:
    """Return the data of a block if all its lines begin with ``data:``, else None."""
    breaks = block.count(b"\n")
    # All lines at once where they are alike, as those of an event of very many lines are.
    begin = b"data: " if block.startswith(b"data: ") else b"data:"
    joined = block[len(begin) :].replace(b"\n" + begin, b"\n")
    are_alike = len(block) - len(joined) == len(begin) * (breaks + 1)
    if are_alike and (len(begin) > 5 or b"\ndata: " not in block):
        return joined
    if block.count(b"\ndata:") < breaks:
        return None
    lines = block.split(b"\n")
    return b"\n".join([line[6:] if line[5:6] == b" " else line[5:] for line in lines])


def _by_sseclient(block: bytes) -> bytes | None:
    import sseclient

    lines = block.split(b"\n")
    if len(lines) > _MANY_LINES:
        # The others are no part of the data, and would take sseclient seconds.
        fields = _DATA_FIELD.findall(block)
        return _joined(b"\n".join([b"data:" if field == b"data" else field for field in fields]))
    found: list[str] = []
    # In parts, because sseclient takes quadratic time for many lines. Each byte is one character
    # to it: what is no UTF-8 must reach the reader of the JSON as it is, in every form of a block.
    for begin in range(0, len(lines), _LINES_AT_ONCE):
        part = b"\n".join(lines[begin : begin + _LINES_AT_ONCE])
        events = sseclient.SSEClient(iter([part + b"\n\n"]), char_enc="latin-1").events()
        found += [event.data for event in events]
    return "\n".join(found).encode("latin-1") if found else None
