"""Agents in this process: the table behind ``runtime://`` addresses."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Generator

from protolink_sync.server.endpoints import Endpoints
from protolink_sync.server.refusal import RefusedError
from protolink_sync.wire import envelope, json

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

    def handle(
        self, payload: bytes, *, failed: Callable[[BaseException], None] | None = None
    ) -> bytes:
        """Answer one envelope with another, in the calling thread.

        Args:
            payload: The envelope.
            failed: Called with the exception of a handler, which the answer only names.
        """
        if len(payload) > self._largest:
            message = f"the request has {len(payload)} bytes, limit is {self._largest}"
            return envelope.encode_error(None, "TransportLimitError", message)
        try:
            call = envelope.decode_request(payload)
        except ValueError as error:
            return envelope.encode_error(None, "ValueError", str(error))
        request_id = call.get("id")
        key = call.get("idempotency_key")
        identity = json.dumps(request_id)
        try:
            spec = self._endpoints.find(call["method"], call["path"])
            if spec.streaming:
                raise RefusedError(400, f"{spec.path} answers with a stream", "ValueError")
            answer = self._endpoints.answer(
                spec,
                call.get("data"),
                key=key if isinstance(key, str) and key else None,
                # All of the envelope that a repeated call has in common with the first.
                content=payload.replace(identity, b"", 1),
            )
        except RefusedError as error:
            if failed is not None and error.__cause__ is not None:
                failed(error.__cause__)
            return envelope.encode_error(request_id, error.kind, error.message)
        if spec.content_type == "html":
            answer = json.dumps(answer.decode())
        # The answer is JSON already: it is put into its envelope, not decoded for that.
        return b'{"id":%b,"ok":true,"result":%b}' % (identity, answer)

    def stream(self, payload: bytes) -> Generator[bytes, None, None]:
        """Answer one envelope with those of a stream, in the calling thread.

        The last one has ``final``. One context must take them all, and close the iterator.
        """
        request_id = None
        try:
            if len(payload) > self._largest:
                message = f"the request has {len(payload)} bytes, limit is {self._largest}"
                raise RefusedError(413, message, "TransportLimitError")
            try:
                call = envelope.decode_request(payload)
            except ValueError as error:
                raise RefusedError(400, str(error), "ValueError") from error
            request_id = call.get("id")
            spec = self._endpoints.find(call["method"], call["path"])
            if not spec.streaming:
                raise RefusedError(400, f"{spec.path} does not answer with a stream", "ValueError")
            identity = json.dumps(request_id)
            events = self._endpoints.stream(spec, call.get("data"))
            with contextlib.closing(events):
                for event, last in events:
                    yield envelope.wrap_event(identity, event, final=last)
        except RefusedError as error:
            yield envelope.encode_error(request_id, error.kind, error.message, final=True)


def runtime_agent(url: str) -> RuntimeHost | None:
    """Return the agent that is served at a ``runtime://`` address of this process, if any.

    Args:
        url: The address; a slash at its end makes no difference.
    """
    return _served.get(_name(url))


def _name(url: str) -> str:
    return url.rstrip("/")
