"""From a transport's open stream to the events of an EventStream."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

from protolink_sync.errors import StreamInterruptedError
from protolink_sync.transport._call import Call
from protolink_sync.transport._failures import ended_error
from protolink_sync.transport._hooks import EventReceived, Hooks
from protolink_sync.wire import TransportRequestContext

__all__ = ["Feed", "OpenStream"]

# Ends after which nobody reads what has come already.
_NOBODY_WAITS = ("cancelled", "closed", "left")


class OpenStream(Protocol):
    """An open stream of one transport: bytes of envelopes, as they arrive (for transports)."""

    def receive(self) -> list[bytes] | None:
        """Wait for the next envelopes; None when the peer has ended the connection.

        Raises:
            ProtoLinkError: Whatever went wrong, typed.
        """

    def close(self, finished: bool) -> None:
        """Give the connection back if the stream came to its end, else close it."""


class Feed:
    """An event source over a transport's open stream.

    Args:
        opened: The stream.
        call: Its budget.
        context: Who the call is.
        idle_timeout: Seconds from one event to the next.
        finish: Called once at the end, with the error or None, and whether the mark of a good end
            has come.
        hooks: Are told of each event.
    """

    def __init__(
        self,
        opened: OpenStream,
        call: Call,
        context: TransportRequestContext,
        idle_timeout: float,
        finish: Callable[[BaseException | None, bool], None],
        hooks: Hooks | None = None,
    ) -> None:
        self._opened = opened
        self._call = call
        self._context = context
        self._idle_timeout = idle_timeout
        self._finish = finish
        self._hooks = hooks
        self._number = 0
        self._final = False
        self._error: Exception | None = None
        self._first: tuple[list[Any], int] | None = None

    def prime(self) -> None:
        """Wait for the first events, which the first :meth:`read` returns then."""
        self._first = self._read()

    def read(self) -> tuple[list[Any], int] | None:
        """Wait for the next events; None at the end of the stream."""
        first, self._first = self._first, None
        return self._read() if first is None else first

    def _read(self) -> tuple[list[Any], int] | None:
        while self._error is None and not self._final:
            payloads = self._opened.receive()
            if payloads is None:
                if self._call.ended is not None:
                    raise ended_error(self._call, self._context)
                if getattr(self._call.codec, "may_end", False):
                    return None  # by the rules of another protocol no mark has to follow
                raise StreamInterruptedError(
                    f"{self._context.where}: the connection ended before the stream did. "
                    "The task may go on at the agent; cancel_task ends it"
                )
            if self._hooks is not None and payloads:
                self.pause()  # they have come: a slow hook takes none of the peer's time
            events, size = self._decode(payloads)
            if events:
                self._call.received += size
                if not self._final:
                    self.resume()
                return events, size
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # it holds this frame
        return None

    def _decode(self, payloads: list[bytes]) -> tuple[list[Any], int]:
        events: list[Any] = []
        size = 0
        try:
            for payload in payloads:
                ended = self._call.ended
                if ended is not None and ended in _NOBODY_WAITS:
                    break
                event, self._final = self._call.codec.decode_event(payload, self._context)
                # The envelope that closes a stream may carry no event.
                if event is not None or not self._final:
                    events.append(event)
                    if self._hooks is not None:
                        self._tell(self._hooks, event)
                    size += len(payload)
                if self._final:
                    break
        except Exception as error:
            self._error = error  # after the events before it
        return events, size

    def _tell(self, hooks: Hooks, event: Any) -> None:
        self._number += 1
        context = self._context
        hooks.tell(
            "on_event",
            EventReceived(context.operation, context.url, context.request_id, self._number, event),
        )

    def pause(self) -> None:
        """Let the clock between two events stand."""
        self._call.limit("idle", math.inf)

    def resume(self) -> None:
        """Let it begin anew."""
        self._call.limit("idle", self._idle_timeout)

    def is_over(self) -> bool:
        """Return whether the call was ended."""
        return self._call.ended is not None

    def abort(self) -> None:
        """End a blocked read at once."""
        self._call.abort("left")

    def close(self, error: BaseException | None) -> None:
        """Give everything back."""
        try:
            self._opened.close(self._final and error is None)
        finally:
            self._finish(error, self._final)
