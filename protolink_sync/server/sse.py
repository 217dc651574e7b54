"""Server-sent events as a hosted agent sends them: the body of the response to a stream.

Source:
    wire/protolink.md 4; PEP 3333.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Protocol

from protolink_sync.server.backlog import Event
from protolink_sync.server.refusal import RefusedError
from protolink_sync.wire import json

__all__ = ["EventBody", "Source", "comment", "error_frame", "frame", "in_one_line"]

comment = b": \n\n"
"""What is sent to a client that has nothing to read: it is skipped there."""

# Where the server can tell that the client has left, it is asked so often.
_LOOK_SECONDS = 0.25

# Characters that JSON lets pass and that end a line for Python's str.splitlines(), which readers
# of events use, the peer's among them: as UTF-8, and as JSON escapes them.
_LINE_ENDS = (
    (b"\xc2\x85", b"\\u0085"),
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
)


def in_one_line(value: bytes) -> bytes:
    """Return JSON so that no reader of events finds a line end in it."""
    for character, escaped in _LINE_ENDS:
        value = value.replace(character, escaped)
    return value


def frame(request_id: bytes, event: bytes, *, final: bool) -> bytes:
    """Return an event in its envelope, as one server-sent event.

    Args:
        request_id: Id of the call, as JSON.
        event: The event, as JSON.
        final: The stream ends with it.

    >>> frame(b"null", b'{"n":1}', final=False)
    b'data: {"jsonrpc":"2.0","id":null,"ok":true,"result":{"n":1},"final":false}\\n\\n'
    """
    end = b"true" if final else b"false"
    event = in_one_line(event)
    return b'data: {"jsonrpc":"2.0","id":%b,"ok":true,"result":%b,"final":%b}\n\n' % (
        request_id,
        event,
        end,
    )


def error_frame(request_id: bytes, error: RefusedError) -> bytes:
    """Return the error that a stream ends with, as one server-sent event."""
    told = in_one_line(json.dumps({"message": error.message, "type": error.kind}))
    return b'data: {"jsonrpc":"2.0","id":%b,"ok":false,"error":%b,"final":true}\n\n' % (
        request_id,
        told,
    )


class Source(Protocol):
    """Where the events of a body come from."""

    def take(self, timeout: float) -> list[Event] | None:
        """Wait for events; none when the time is over, None at the end."""

    def leave(self, reason: str) -> None:
        """Say that nobody takes any more; any number of times."""


class EventBody:
    """The body of a stream's response, as WSGI has it: an iterable with ``close()``.

    Args:
        stream: The stream.
        first: What was taken from it already.
        request_id: Id of the call, as JSON.
        heartbeat: Seconds of silence after which a comment is sent: only who writes to a
            connection learns that the other side has gone.
        has_left: Tells whether the client has gone; None where the server cannot.
    """

    def __init__(
        self,
        stream: Source,
        first: list[Event],
        request_id: bytes,
        heartbeat: float,
        has_left: Callable[[], bool] | None,
    ) -> None:
        self._stream = stream
        self._first: list[Event] | None = first
        self._request_id = request_id
        self._heartbeat = heartbeat
        self._has_left = has_left

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        events, self._first = self._first, None
        try:
            if events is None:
                events = self._wait()
        except RefusedError as error:
            return self._error_frame(error)
        if events is None:
            raise StopIteration
        return b"".join([self._frame(event, last) for event, last in events]) or comment

    def _frame(self, event: bytes, last: bool) -> bytes:
        return frame(self._request_id, event, final=last)

    def _error_frame(self, error: RefusedError) -> bytes:
        return error_frame(self._request_id, error)

    def _wait(self) -> list[Event] | None:
        """Return the next events; none after some silence, None at the end."""
        end = time.monotonic() + self._heartbeat
        while True:
            left = max(0.0, end - time.monotonic())
            events = self._stream.take(min(left, _LOOK_SECONDS) if self._has_left else left)
            if events is None or events or time.monotonic() >= end:
                return events
            if self._has_left is not None and self._has_left():
                self.close()

    def close(self) -> None:
        """End the stream; a handler that is still at work learns that the client left."""
        self._stream.leave("the client left")

    def __del__(self) -> None:
        # For whatever stands between and drops the body without closing it.
        self.close()
