"""Server-sent events: bytes, cut anywhere, to the data of whole events.

sseclient-py alone loses the first event after a byte order mark, delivers a block that the
connection cut in half, takes quadratic time for large events and has no limit. So blocks are
found here, in linear time and within a limit; a block of plain ``data:`` lines is taken as it is,
and only any other is given to sseclient-py, whole.

Source:
    WHATWG HTML, 9.2.5 and 9.2.6.
"""

from __future__ import annotations

from protolink_sync.errors import TransportLimitError

__all__ = ["EventReader"]

_BOM = b"\xef\xbb\xbf"


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
        self._pieces.append(data[:end])
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
            lines = block.split(b"\n")
            if all(line.startswith(b"data:") for line in lines):
                return b"\n".join([line[6:] if line[5:6] == b" " else line[5:] for line in lines])
        if b"data" not in block:
            return None  # a comment (a heartbeat), or fields that make no event
        return _by_sseclient(block)

    def _too_large(self, size: int) -> TransportLimitError:
        return TransportLimitError(
            f"an event has {size} bytes or more, limit is {self._limit}. Raise "
            "TransportLimits.max_event_bytes, or have the agent send smaller events"
        )


def _by_sseclient(block: bytes) -> bytes | None:
    import sseclient

    # Bytes that are not UTF-8 become U+FFFD, as the standard has it; sseclient would raise.
    text = block.decode("utf-8", "replace").encode()
    for event in sseclient.SSEClient(iter([text + b"\n\n"])).events():
        data: str = event.data
        return data.encode()
    return None
