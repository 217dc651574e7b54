"""ReplayTransport: recorded exchanges, played to tests."""

from __future__ import annotations

import json
import math
import os
import pathlib
import threading
from collections import ChainMap
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from protolink_sync import errors
from protolink_sync.errors import A2AClientError, TransportError
from protolink_sync.testing._matching import (
    Fresh,
    bytes_of,
    ids_of,
    origin_of,
    other_body,
    other_text,
    renewed,
    values_of,
)
from protolink_sync.testing.recorder import VERSION, is_credential, is_taken
from protolink_sync.transport import Transport, TransportCapabilities
from protolink_sync.wire import WireReply, WireRequest, envelope, http

__all__ = ["ReplayTransport"]

_Transport = TypeVar("_Transport", bound=Transport)


class ReplayTransport(Transport):
    """Answer calls with what a :class:`Recorder` has written; nothing is sent.

    A call gets the answer of the first exchange, not played yet, of the same operation with the
    same content; where none is the same, that of one with masked texts, which may stand for
    anything. Ids and timestamps, which are new in every run, may differ; the new ids stand in the
    answer, and each of them stands for the same recorded id in all calls. An id that is in the
    recording stands for itself. A call that was not recorded raises an ``AssertionError``.

    Calls to an address that was recorded get what was answered there. Any other address is taken
    for one of the recorded agents at a new place, always the same one.

    Args:
        path: The file.
        url: Address for calls that name none.
        timeout: As for every transport.

    Raises:
        ValueError: The file is no recording.
    """

    transport_type: ClassVar[str] = "replay"
    schemes: ClassVar[tuple[str, ...]] = ("http", "https", "ws", "wss", "grpc", "grpcs")
    capabilities: ClassVar[TransportCapabilities] = TransportCapabilities(streaming=True)

    def __init__(
        self,
        path: str | os.PathLike[str],
        url: str | None = None,
        timeout: float | None = None,
    ) -> None:
        super().__init__(url, timeout)
        self._file = pathlib.Path(path)
        recording = json.loads(self._file.read_text(encoding="utf-8"))
        if not isinstance(recording, dict) or recording.get("version") != VERSION:
            raise ValueError(f"{self._file} is no recording of version {VERSION}")
        # Each form of the wire has its codec; a transport's class has one, this one either.
        self._codec = http if recording["form"] == "http" else envelope  # type: ignore[misc]
        # And which protocols a client speaks depends on what carries them.
        self.transport_type = recording.get("transport") or "replay"  # type: ignore[misc]
        self._unplayed: list[dict[str, Any]] = recording["exchanges"]
        self._known = {entry.get("url") for entry in self._unplayed}
        self._moved: dict[str, str] = {}
        # This run's ids by the recorded ones, and the recorded ones by these.
        self._ids: dict[str, str] = {}
        self._recorded = {one: one for one in ids_of(self._unplayed)}
        self._stood_in_for: list[Any] = []
        self._playing = threading.Lock()

    @property
    def unused(self) -> int:
        """How many exchanges were not played."""
        return len(self._unplayed)

    def stand_in_for(self, transport: _Transport) -> _Transport:
        """Answer the calls of a transport from now on, until this one is closed, and return it.

        Args:
            transport: One that your code has made, such as ``client.transport`` of an
                ``A2AClient``.

        Raises:
            ValueError: It has another form of calls than those that were recorded, or it is
                stood in for already or watched.
        """
        one: Any = transport
        if one._codec is not self._codec:
            raise ValueError(f"{self._file.name} has no calls of {transport.transport_type!r}")
        if is_taken(one):
            raise ValueError("this transport is stood in for already, or watched")
        one._exchange, one._open_stream = self._exchange, self._open_stream
        self._stood_in_for.append(one)
        return transport

    def _settings(self) -> dict[str, Any]:
        return {"path": self._file, "url": self._url, "timeout": self._timeout}

    # --- hooks -------------------------------------------------------------------------------

    def _exchange(self, request: WireRequest, deadline: Any) -> WireReply:
        entry, fresh = self._find(request, "reply")
        if "error" in entry:
            raise _raised(entry["error"])
        told = entry["reply"]
        headers = renewed(told["headers"], fresh)
        body = (
            b"".join(b"data: %b\n\n" % bytes_of(event, fresh) for event in told["events"])
            if "events" in told
            else bytes_of(told["body"], fresh)
        )
        return WireReply(told["status"], "", headers, body)

    def _open_stream(self, request: WireRequest, deadline: Any) -> Any:
        entry, fresh = self._find(request, "events")
        if "error" in entry and "events" not in entry:
            raise _raised(entry["error"])
        return _Played(self, entry, fresh, request, deadline)

    def _find(self, request: WireRequest, what: str) -> tuple[dict[str, Any], Fresh]:
        body = None if request.body is None else values_of(request.body)
        path = "" if is_credential(request.path) else request.path
        found, reasons = [], []
        with self._playing:
            for entry in self._unplayed:
                if (what not in entry and "error" not in entry) or (
                    entry["operation"] != request.context.operation
                ):
                    continue
                fresh = Fresh(
                    ChainMap({entry["request_id"]: request.context.request_id}, self._ids),
                    ChainMap({}, self._recorded),
                )
                reason = (
                    self._elsewhere(entry, request.context.url, fresh)
                    or other_text(entry["path"], path, "the path", fresh)
                    or other_body(entry["body"], body, fresh)
                )
                if reason is not None:
                    reasons.append(reason)
                    continue
                found.append((entry, fresh))
                if not fresh.masked:
                    break
            if found:
                return self._chosen(*min(found, key=lambda one: one[1].masked))
        raise AssertionError(
            f"{request.context.where} is not in {self._file.name}: "
            f"{reasons[0] if reasons else 'no such call is left in it'}. Record it again"
        )

    def _chosen(self, entry: dict[str, Any], fresh: Fresh) -> tuple[dict[str, Any], Fresh]:
        """Note what an exchange tells about those that come, and return it."""
        self._unplayed.remove(entry)
        self._ids.update(fresh.ids.maps[0])
        self._recorded.update(fresh.recorded.maps[0])
        if fresh.origins is not None:
            self._moved[fresh.origins[1]] = fresh.origins[0]
        return entry, fresh

    def _elsewhere(self, entry: dict[str, Any], url: str, fresh: Fresh) -> str | None:
        """Return why an exchange was one with another agent, or None; note if the agent moved."""
        then = entry.get("url")
        if then is None or then == url:
            return None
        was, now = origin_of(then), origin_of(url)
        there = was + url.removeprefix(now)
        if url in self._known or self._moved.get(now, was) != was or there in self._known - {then}:
            return f"the address is {url!r}, recorded is {then!r}"
        if was in self._moved.values() and now not in self._moved:
            return f"{then!r}, which is recorded, is another agent by now"
        fresh.origins = was, now
        return None

    def _close(self) -> None:
        stood_in_for, self._stood_in_for = self._stood_in_for, []
        for one in stood_in_for:
            del one._exchange, one._open_stream


class _Played:
    """A recorded stream."""

    def __init__(
        self,
        transport: ReplayTransport,
        entry: dict[str, Any],
        fresh: Fresh,
        request: WireRequest,
        deadline: Any,
    ) -> None:
        self._payloads = [bytes_of(event, fresh) for event in entry["events"]]
        self._entry = entry
        self._ended: Callable[[], Exception] = lambda: transport._ended(deadline, request.context)
        self._deadline = deadline

    def receive(self) -> list[bytes] | None:
        """Return the next payload; what ended the recorded stream ends this one."""
        if self._payloads:
            return [self._payloads.pop(0)]
        if "error" in self._entry:
            raise _raised(self._entry["error"])
        if self._entry.get("cut"):
            return None
        # It was left while it was recorded: nothing is known of what would have come.
        while self._deadline.wait(math.inf):
            pass
        raise self._ended()

    def close(self, finished: bool) -> None:
        """Nothing is held."""


def _raised(told: dict[str, Any]) -> TransportError | A2AClientError:
    kind = getattr(errors, told["type"], TransportError)
    error: TransportError | A2AClientError = kind(told["message"])
    for name in told.keys() - {"type", "message", "cause"}:
        setattr(error, name, told[name])
    if "cause" in told:
        error.__cause__ = _raised(told["cause"])
    return error
