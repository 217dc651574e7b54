"""Recorder: what a transport exchanges with real agents, written into a file."""

from __future__ import annotations

import json
import os
import pathlib
import threading
from collections.abc import Iterable
from typing import Any, TypeVar

from protolink_sync.errors import TransportError, words
from protolink_sync.testing._masking import Masks
from protolink_sync.transport import Transport
from protolink_sync.wire import WireReply, WireRequest, http

__all__ = ["VERSION", "Recorder"]

VERSION = 1

_Transport = TypeVar("_Transport", bound=Transport)


class Recorder:
    """Write what a transport exchanges with agents into a file, for a :class:`ReplayTransport`.

    The transport is used as always. Credentials are never written; members with names like
    ``token`` or ``password``, what was shown as credentials, and every text of ``mask`` become
    ``***``, also in answers. Look at the file all the same before it goes into a repository.

    Args:
        path: The file; it is written when the recorder is closed.
        mask: Further texts that must not be in it.

    Raises:
        ValueError: A text to be masked is shorter than 4 letters.
    """

    def __init__(self, path: str | os.PathLike[str], *, mask: Iterable[str] = ()) -> None:
        self._file = pathlib.Path(path)
        self._masks = Masks(mask)
        self._exchanges: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._watched: list[Any] = []
        self._form = "http"

    def watch(self, transport: _Transport) -> _Transport:
        """Record what a transport exchanges from now on, and return it.

        Args:
            transport: One that sends bytes: over HTTP, SSE, WebSocket or gRPC.
        """
        if transport.transport_type == "runtime":
            raise ValueError("an agent of this process is not recorded: use it as it is")
        one: Any = transport
        exchange, open_stream = one._exchange, one._open_stream
        self._form = "http" if one._codec is http else "envelope"

        def exchanged(request: WireRequest, deadline: Any) -> WireReply:
            entry = self._begun(request)
            try:
                reply: WireReply = exchange(request, deadline)
            except TransportError as error:
                entry["error"] = self._told(error)
                raise
            entry["reply"] = {
                "status": reply.status,
                "headers": self._masks.headers(reply.headers),
                "body": self._content(reply.body),
            }
            return reply

        def opened(request: WireRequest, deadline: Any) -> Any:
            entry = self._begun(request)
            try:
                stream = open_stream(request, deadline)
            except TransportError as error:
                entry["error"] = self._told(error)
                raise
            entry["events"] = []
            return _Heard(stream, entry, self)

        one._exchange, one._open_stream = exchanged, opened
        self._watched.append(one)
        return transport

    def _begun(self, request: WireRequest) -> dict[str, Any]:
        self._masks.learn(request.credentials)
        entry: dict[str, Any] = {
            "operation": request.context.operation,
            "request_id": request.context.request_id,
            "method": request.method,
            "path": self._masks.text(request.path),
            "body": self._content(request.body),
        }
        with self._lock:
            self._exchanges.append(entry)
        return entry

    def _content(self, body: bytes | None) -> Any:
        """Return a body as JSON values, or as text where it is none."""
        if body is None:
            return None
        text = body.decode("utf-8", "replace")
        try:
            return self._masks.value(json.loads(text))
        except ValueError:
            return {"text": self._masks.text(text)}

    def _told(self, error: TransportError) -> dict[str, Any]:
        return {
            "type": type(error).__name__,
            "message": self._masks.text(words(error)),
            "retryable": error.retryable,
        }

    def close(self) -> None:
        """Write the file, and record no more. Twice is silent."""
        watched, self._watched = self._watched, []
        for one in watched:
            del one._exchange, one._open_stream
        if not watched:
            return
        recording = {
            "version": VERSION,
            "form": self._form,
            "exchanges": self._exchanges,
        }
        # Once more, whole: what a later call has shown may stand in an earlier answer.
        text = json.dumps(self._masks.value(recording), ensure_ascii=False, indent=1)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(text + "\n", encoding="utf-8")

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class _Heard:
    """An open stream whose payloads are noted on their way."""

    def __init__(self, stream: Any, entry: dict[str, Any], recorder: Recorder) -> None:
        self._stream = stream
        self._entry = entry
        self._recorder = recorder

    def receive(self) -> list[bytes] | None:
        try:
            payloads: list[bytes] | None = self._stream.receive()
        except TransportError as error:
            self._entry["error"] = self._recorder._told(error)
            raise
        self._entry["events"] += [self._recorder._content(p) for p in payloads or ()]
        if payloads is None:
            self._entry["cut"] = True
        return payloads

    def close(self, finished: bool) -> None:
        self._stream.close(finished)
