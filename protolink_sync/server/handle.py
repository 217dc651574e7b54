"""AgentServer: what ``agent.serve()`` returns."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Protocol

__all__ = ["AgentServer", "Host"]

# The longest single wait: a wait without end would keep Ctrl-C from getting through.
_LONGEST_WAIT = 60.0


class Host(Protocol):
    """What serves an agent at one address."""

    @property
    def url(self) -> str:
        """The address."""

    @property
    def connections(self) -> int:
        """How many connections were accepted so far."""

    def start(self) -> None:
        """Begin to serve."""

    def close(self) -> None:
        """Stop serving."""


class AgentServer:
    """An agent that is being served, from ``agent.serve()`` until :meth:`close`.

    It is a context manager that closes itself. It serves on when this object is forgotten.

    Source:
        design.md 10.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._changed = threading.Condition()
        self._closed = False
        host.start()

    @property
    def url(self) -> str:
        """Where the agent is reached, with the port that was chosen."""
        return self._host.url

    @property
    def connections(self) -> int:
        """How many connections were accepted so far; none are needed in the same process."""
        return self._host.connections

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the server is closed, by another thread or a signal handler.

        Args:
            timeout: Seconds to wait at most; None for no bound.

        Returns:
            True if it is closed, False if the time is over.
        """
        end = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not self._closed:
                left = _LONGEST_WAIT if end is None else end - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(min(left, _LONGEST_WAIT))
        return self._closed

    def close(self) -> None:
        """Stop serving; any number of times.

        Idle connections are closed at once. Handlers that are at work are given
        ``TransportConfig.shutdown_timeout`` to answer; then their connections are cut, and
        ``agent.current_run().cancelled`` tells them that nobody waits for the result.
        """
        try:
            self._host.close()
        finally:
            with self._changed:
                self._closed = True
                self._changed.notify_all()

    def __enter__(self) -> AgentServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<AgentServer {self.url} {'closed' if self._closed else 'serving'}>"
