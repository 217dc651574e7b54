"""Agents in this process: the table behind ``runtime://`` addresses."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Generator

from protolink_sync.models import EndpointSpec
from protolink_sync.server.endpoints import Endpoints
from protolink_sync.server.execution import Execution
from protolink_sync.server.refusal import RefusedError
from protolink_sync.wire import local

__all__ = ["RuntimeHost", "runtime_agent"]

_lock = threading.RLock()
_served: dict[str, RuntimeHost] = {}


class RuntimeHost:
    """An agent that is served to this process.

    Nobody asks for credentials here: who can call it runs in the same process.

    Args:
        url: The address, ``runtime://name``.
        endpoints: What it serves.
        largest: Most bytes of a request.
        abandon: Called with threads and a reason, to tell what runs in them that nobody waits.
    """

    connections = 0

    def __init__(
        self,
        url: str,
        endpoints: Endpoints,
        largest: int,
        abandon: Callable[[Collection[int], str], None],
    ) -> None:
        self.url = url
        self.abandon = abandon
        self._endpoints = endpoints
        self._largest = largest

    def start(self) -> None:
        """Enter the address in the table.

        Raises:
            ValueError: It is taken.
        """
        with _lock:
            if _served.setdefault(_name(self.url), self) is not self:
                raise ValueError(f"{self.url} is served already in this process")

    def close(self) -> None:
        """Take the address out of the table; what runs, ends as it would."""
        with _lock:
            if _served.get(_name(self.url)) is self:
                del _served[_name(self.url)]

    def begin(self, method: str, path: str, body: bytes | None, key: str | None) -> Execution:
        """Return what carries out a call.

        Args:
            method: Its method.
            path: Its path.
            body: Its data, from ``wire.local``.
            key: Its idempotency key.

        Raises:
            RefusedError: The agent does not take it; it says why.
        """
        spec = self._find(method, path, body)
        if spec.streaming:
            raise RefusedError(400, f"{path} answers with a stream", "ValueError")
        data = None if body is None else local.take(body)
        return self._endpoints.begin(
            spec, data, key=key, content=body or b"", encode=local.dump_data
        )

    def stream(self, method: str, path: str, body: bytes | None) -> Generator[bytes, None, None]:
        """Give the events of a stream, each from ``wire.local``, in the calling thread.

        One context must take them all, and close the iterator.

        Raises:
            RefusedError: The agent does not take the call, or the stream breaks off.
        """
        spec = self._find(method, path, body)
        if not spec.streaming:
            raise RefusedError(400, f"{path} does not answer with a stream", "ValueError")
        data = None if body is None else local.take(body)
        events = self._endpoints.stream(spec, data, encode=local.dump_data)
        with contextlib.closing(events):
            for event, last in events:
                yield local.encode_event(event, final=last)

    def _find(self, method: str, path: str, body: bytes | None) -> EndpointSpec:
        size = len(body or b"")
        if size > self._largest:
            message = f"the request has {size} bytes, limit is {self._largest}"
            raise RefusedError(413, message, "TransportLimitError")
        return self._endpoints.find(method, path)


def runtime_agent(url: str) -> RuntimeHost | None:
    """Return the agent that is served at a ``runtime://`` address of this process, if any.

    Args:
        url: The address; a slash at its end makes no difference.
    """
    return _served.get(url) or _served.get(_name(url))


def _name(url: str) -> str:
    return url.rstrip("/")
