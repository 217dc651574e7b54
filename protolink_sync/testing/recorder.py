"""Recorder: what a transport exchanges with real agents, written into a file."""

from __future__ import annotations

import json
import os
import pathlib
import threading
from collections.abc import Iterable
from typing import Any, TypeVar

from protolink_sync.errors import A2AClientError, TransportError, words
from protolink_sync.testing._masking import Masks
from protolink_sync.transport import Transport
from protolink_sync.wire import EventReader, WireReply, WireRequest, http

__all__ = ["NOT_JSON", "VERSION", "Recorder", "is_credential", "is_taken"]

VERSION = 1

# The one member of what stands for a body that is no JSON.
NOT_JSON = "not JSON"

_EVENTS = "text/event-stream"

_Transport = TypeVar("_Transport", bound=Transport)

# What can come in the place of an answer; how a caller ended a call is not played.
_ERRORS = (TransportError, A2AClientError)

# What of an error is written beside its words.
_TOLD = (
    *("status_code", "phase", "error_type", "error_message", "retry_after"),
    *("code", "data", "reason", "domain", "metadata", "field_violations"),
)


class Recorder:
    """Write what a transport exchanges with agents into a file, for a :class:`ReplayTransport`.

    The transport is used as always. Credentials are never written; members with names like
    ``token`` or ``password``, what was shown as credentials or in ``headers=`` of the caller, and
    every text of ``mask`` become ``***``, also in answers. (Of headers whose names do not tell,
    values of fewer than 8 letters stay, and those that are a member's name or a word of the
    protocol.) Look at the file all the same before it goes into a repository.

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
        self._form: str | None = None
        self._kind = ""

    def watch(self, transport: _Transport) -> _Transport:
        """Record what a transport exchanges from now on, and return it.

        Args:
            transport: One that sends bytes: over HTTP, SSE, WebSocket or gRPC. That of an
                ``A2AClient`` is ``client.transport``.

        Raises:
            ValueError: It sends no bytes, or in another form than one that is recorded already,
                or it is watched already or stood in for.
        """
        if transport.transport_type == "runtime":
            raise ValueError("an agent of this process is not recorded: use it as it is")
        one: Any = transport
        if is_taken(one):
            raise ValueError("this transport is watched already, or stood in for")
        exchange, open_stream = one._exchange, one._open_stream
        form = "http" if one._codec is http else "envelope"
        if self._form not in (None, form):
            raise ValueError("HTTP and envelopes are two forms: give each a Recorder of its own")
        self._form, self._kind = form, self._kind or transport.transport_type
        self._masks.learn_headers(transport.headers)

        def exchanged(request: WireRequest, deadline: Any) -> WireReply:
            entry = self._begun(request)
            try:
                reply: WireReply = exchange(request, deadline)
            except _ERRORS as error:
                entry["error"] = self._told(error)
                raise
            entry["reply"] = {
                "status": reply.status,
                "headers": self._masks.headers(reply.headers),
                **self._body(reply),
            }
            return reply

        def opened(request: WireRequest, deadline: Any) -> Any:
            entry = self._begun(request)
            try:
                stream = open_stream(request, deadline)
            except _ERRORS as error:
                entry["error"] = self._told(error)
                raise
            entry["events"] = []
            return _Heard(stream, entry, self)

        one._exchange, one._open_stream = exchanged, opened
        self._watched.append(one)
        return transport

    def _begun(self, request: WireRequest) -> dict[str, Any]:
        self._masks.learn(request.credentials)
        self._masks.learn_headers(request.headers)
        if is_credential(request.path):
            self._masks.learn_query(request.path)
        entry: dict[str, Any] = {
            "operation": request.context.operation,
            "request_id": request.context.request_id,
            "url": self._masks.path(request.context.url),
            "method": request.method,
            "path": "" if is_credential(request.path) else self._masks.path(request.path),
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
        except (ValueError, RecursionError):
            return {NOT_JSON: self._masks.text(text)}

    def _body(self, reply: WireReply) -> dict[str, Any]:
        # Some agents frame the one answer to a call over A2A as an event.
        if reply.headers.get("content-type", "").lower().startswith(_EVENTS):
            found = EventReader(len(reply.body) + 1).feed(reply.body + b"\n\n")
            return {"events": [self._content(event) for event in found]}
        return {"body": self._content(reply.body)}

    def _told(self, error: TransportError | A2AClientError) -> dict[str, Any]:
        told = {name: getattr(error, name, None) for name in _TOLD}
        cause = error.__cause__
        return {
            "type": type(error).__name__,
            "message": self._masks.text(words(error)),
            "retryable": getattr(error, "retryable", False),
            **{name: self._masks.value(value) for name, value in told.items() if value},
            # By it an agent without a card is asked in another dialect.
            **({"cause": self._told(cause)} if isinstance(cause, A2AClientError) else {}),
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
            "transport": self._kind,
            # Once more: what a later call has shown may stand in an earlier answer.
            "exchanges": [self._masked(entry) for entry in self._exchanges],
        }
        text = json.dumps(recording, ensure_ascii=False, indent=1) + "\n"
        self._file.parent.mkdir(parents=True, exist_ok=True)
        # Half an emoji, which has no UTF-8, becomes an escape of JSON.
        self._file.write_bytes(text.encode("utf-8", "backslashreplace"))

    def _masked(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Return an exchange without secrets; its form stays, whatever a secret looks like."""
        masked = {name: self._masks.value(value) for name, value in entry.items()}
        for name in ("reply", "error"):
            if name in entry:
                masked[name] = {key: self._masks.value(item) for key, item in entry[name].items()}
        return {**masked, "operation": entry["operation"], "request_id": entry["request_id"]}

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def is_credential(path: str) -> bool:
    """Tell whether the path of a call is a credential of A2A, whose addresses are whole."""
    return path[:1] in ("?", "&")


def is_taken(transport: Any) -> bool:
    """Tell whether a transport is watched or stood in for; each of these can be undone once."""
    return "_exchange" in vars(transport)


class _Heard:
    """An open stream whose payloads are noted on their way."""

    def __init__(self, stream: Any, entry: dict[str, Any], recorder: Recorder) -> None:
        self._stream = stream
        self._entry = entry
        self._recorder = recorder

    def receive(self) -> list[bytes] | None:
        try:
            payloads: list[bytes] | None = self._stream.receive()
        except _ERRORS as error:
            self._entry["error"] = self._recorder._told(error)
            raise
        self._entry["events"] += [self._recorder._content(p) for p in payloads or ()]
        if payloads is None:
            self._entry["cut"] = True
        return payloads

    def close(self, finished: bool) -> None:
        self._stream.close(finished)
