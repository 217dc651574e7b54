"""ReplayTransport: recorded exchanges, played to tests."""

from __future__ import annotations

import json
import math
import os
import pathlib
import threading
from collections.abc import Callable
from typing import Any, ClassVar

from protolink_sync import errors
from protolink_sync.errors import TransportError
from protolink_sync.testing._masking import MASK
from protolink_sync.testing.recorder import VERSION
from protolink_sync.transport import Transport, TransportCapabilities
from protolink_sync.wire import WireReply, WireRequest, envelope, http

__all__ = ["ReplayTransport"]

# Members that are another text in every run. Ids are renewed in the answer; moments are not,
# because it is their order that tells which item of a task is the latest.
_IDS = ("id", "idempotency_key", "run_id", "task_id")
_MOMENTS = ("created_at", "timestamp")


class ReplayTransport(Transport):
    """Answer calls with what a :class:`Recorder` has written; nothing is sent.

    A call gets the answer of the first exchange, not played yet, of the same operation with the
    same content. Ids and timestamps, which are new in every run, may differ; the new ids stand
    in the answer. A call that was not recorded raises an ``AssertionError``.

    Args:
        path: The file.
        url: Address for calls that name none; any address is answered.
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
        self._unplayed: list[dict[str, Any]] = recording["exchanges"]
        self._playing = threading.Lock()

    @property
    def unused(self) -> int:
        """How many exchanges were not played."""
        return len(self._unplayed)

    def _settings(self) -> dict[str, Any]:
        return {"path": self._file, "url": self._url, "timeout": self._timeout}

    # --- hooks -------------------------------------------------------------------------------

    def _exchange(self, request: WireRequest, deadline: Any) -> WireReply:
        entry, fresh = self._find(request, "reply")
        if "error" in entry:
            raise _raised(entry["error"])
        told = entry["reply"]
        headers = _renewed(told["headers"], fresh)
        return WireReply(told["status"], "", headers, _bytes(told["body"], fresh))

    def _open_stream(self, request: WireRequest, deadline: Any) -> Any:
        entry, fresh = self._find(request, "events")
        if "error" in entry and "events" not in entry:
            raise _raised(entry["error"])
        return _Played(self, entry, fresh, request, deadline)

    def _find(self, request: WireRequest, what: str) -> tuple[dict[str, Any], dict[str, str]]:
        body = None if request.body is None else _values(request.body)
        reasons = []
        with self._playing:
            for entry in self._unplayed:
                if (what not in entry and "error" not in entry) or (
                    entry["operation"] != request.context.operation
                ):
                    continue
                fresh = {entry["request_id"]: request.context.request_id}
                reason = (
                    f"the path is {request.path!r}, recorded is {entry['path']!r}"
                    if entry["path"] != request.path and MASK not in entry["path"]
                    else _difference(entry["body"], body, "$", fresh)
                )
                if reason is None:
                    self._unplayed.remove(entry)
                    return entry, fresh
                reasons.append(reason)
        raise AssertionError(
            f"{request.context.where} is not in {self._file.name}: "
            f"{reasons[0] if reasons else 'no such call is left in it'}. Record it again"
        )

    def _close(self) -> None:
        """Nothing is held."""


class _Played:
    """A recorded stream."""

    def __init__(
        self,
        transport: ReplayTransport,
        entry: dict[str, Any],
        fresh: dict[str, str],
        request: WireRequest,
        deadline: Any,
    ) -> None:
        self._payloads = [_bytes(event, fresh) for event in entry["events"]]
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


def _difference(then: Any, now: Any, path: str, fresh: dict[str, str]) -> str | None:
    """Return where a call differs from the recorded one, or None; note which ids are which."""
    if then == MASK:
        return None
    if isinstance(then, dict) and isinstance(now, dict):
        if then.keys() != now.keys():
            return f"{path} has the members {sorted(now)}, recorded are {sorted(then)}"
        found = (_member(then, now, name, path, fresh) for name in then)
        return next((reason for reason in found if reason is not None), None)
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        pairs = enumerate(zip(then, now, strict=True))
        found = (_difference(a, b, f"{path}[{n}]", fresh) for n, (a, b) in pairs)
        return next((reason for reason in found if reason is not None), None)
    if type(then) is type(now) and then == now:
        return None
    if isinstance(then, str) and isinstance(now, str) and MASK in then:
        return None
    return f"{path} is {now!r}, recorded is {then!r}"


def _member(
    then: dict[str, Any], now: dict[str, Any], name: str, path: str, fresh: dict[str, str]
) -> str | None:
    old, new = then[name], now[name]
    if isinstance(old, str) and isinstance(new, str):
        if name in _MOMENTS:
            return None
        if name in _IDS:
            fresh[old] = new
            return None
    return _difference(old, new, f"{path}.{name}", fresh)


def _values(body: bytes) -> Any:
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except ValueError:
        return {"text": text}


def _renewed(value: Any, fresh: dict[str, str], name: str = "") -> Any:
    """Return recorded values with this run's ids in the place of the recorded ones."""
    if isinstance(value, str):
        is_id = name == "id" or name.endswith(("_id", "-id", "Id"))
        return fresh.get(value, value) if is_id else value
    if isinstance(value, list):
        return [_renewed(item, fresh, name) for item in value]
    if isinstance(value, dict):
        return {name: _renewed(item, fresh, name) for name, item in value.items()}
    return value


def _bytes(content: Any, fresh: dict[str, str]) -> bytes:
    if isinstance(content, dict) and content.keys() == {"text"}:
        return str(content["text"]).encode()
    return json.dumps(_renewed(content, fresh), ensure_ascii=False).encode()


def _raised(told: dict[str, Any]) -> TransportError:
    kind = getattr(errors, told["type"], TransportError)
    error: TransportError = kind(told["message"])
    error.retryable = told["retryable"]
    return error
