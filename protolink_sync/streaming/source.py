"""What a transport gives to a stream."""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["EventSource"]


class EventSource(Protocol):
    """An open stream of a transport, read by one worker thread.

    It knows nothing of the :class:`~protolink_sync.streaming.EventStream` that it feeds, so that
    a stream nobody holds any more can be collected and ends its worker.
    """

    def read(self) -> tuple[list[Any], int] | None:
        """Wait for the next events (the worker).

        Returns:
            The events that are there, in order, and their bytes as they came; None at the end
            of the stream.

        Raises:
            ProtoLinkError: The stream broke, the peer sent an error, or the call was ended.
        """

    def pause(self) -> None:
        """Let the clock between two events stand: the consumer has too much already."""

    def resume(self) -> None:
        """Let it go on."""

    def is_over(self) -> bool:
        """Return whether the call was ended: the next :meth:`read` raises (the worker)."""

    def abort(self) -> None:
        """End a blocked :meth:`read` at once; any thread, a finalizer too, any number of times."""

    def close(self, error: BaseException | None) -> None:
        """Give everything back (the worker, once, when it ends).

        Args:
            error: Why the stream broke; None if it came to its end.
        """
