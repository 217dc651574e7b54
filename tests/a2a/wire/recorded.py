"""Recorded exchanges of A2A clients and servers, taken apart."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

import attrs

__all__ = ["Exchange", "exchanges", "named", "normal", "plain"]

FOLDER = pathlib.Path(__file__).parent.parent / "captures"

_REQUEST = b">>> REQUEST (bytes as sent)\n"
_RESPONSE = b"<<< RESPONSE (bytes as received)\n"
_ENDS = (b"\n=== end", b"\n=== client closed the connection here")

# Made anew by every client.
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@attrs.frozen
class Exchange:
    """One recorded request and its response.

    Args:
        name: Of the capture.
        headers: Of the request, names in lower case.
        sent: The body of the request, decoded; None if there was none, or it was no JSON.
        status: Of the response.
        received: The JSON values in the response: one of a body, or one for each event.
        media_type: Of the response.
    """

    name: str
    headers: dict[str, str]
    sent: Any
    status: int
    received: list[Any]
    media_type: str

    @property
    def result(self) -> Any:
        """The result of the only reply."""
        (reply,) = self.received
        return reply["result"]

    @property
    def results(self) -> list[Any]:
        """The results of all replies that have one."""
        return [reply["result"] for reply in self.received if "result" in reply]


def exchanges(*prefixes: str) -> list[Exchange]:
    """Return the exchanges of all captures whose names begin so."""
    found = [
        named(file.stem)
        for file in sorted(FOLDER.glob("*.http"))
        if file.name.startswith(prefixes) and _REQUEST in file.read_bytes()
    ]
    assert found, f"no captures {prefixes}"
    return found


def named(name: str) -> Exchange:
    """Return the exchange of one capture."""
    content = (FOLDER / f"{name}.http").read_bytes()
    for end in _ENDS:
        content = content.rpartition(end)[0] or content
    sent, _, received = content.partition(_REQUEST)[2].partition(_RESPONSE)
    _, headers, body = _taken_apart(sent)
    first, reply_headers, reply_body = _taken_apart(received)
    media_type = reply_headers.get("content-type", "").partition(";")[0]
    return Exchange(
        name,
        headers,
        _json(body),
        int(first.split()[1]),
        _values(media_type, reply_headers, reply_body),
        media_type,
    )


def notifications(name: str) -> list[tuple[dict[str, str], Any]]:
    """Return headers and bodies of what a webhook received."""
    content = (FOLDER / f"{name}.http").read_bytes()
    requests = [part for part in content.split(b"# webhook POST") if b"POST /" in part]
    found = []
    for request in requests:
        _, headers, body = _taken_apart(request.partition(b"\n")[2])
        found.append((headers, json.loads(body)))
    return found


def normal(value: Any) -> Any:
    """Return a decoded value with every id replaced by a mark."""
    if isinstance(value, dict):
        return {name: normal(item) for name, item in value.items()}
    if isinstance(value, list):
        return [normal(item) for item in value]
    return _ID.sub("<id>", value) if isinstance(value, str) else value


def plain(value: Any) -> Any:
    """Return a value without what means unset: null, and empty text, lists and objects.

    Only members are left out, never items; data and metadata stay as they are.
    """
    if isinstance(value, list):
        return [plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: item if name in ("data", "metadata") else plain(item)
        for name, item in value.items()
        if name in ("data", "text") or item not in (None, "", [], {})
    }


def _taken_apart(message: bytes) -> tuple[str, dict[str, str], bytes]:
    head, _, body = message.partition(b"\r\n\r\n")
    if not _:
        head, _, body = message.partition(b"\n\n")
    first, *lines = head.decode().splitlines()
    pairs = (line.partition(":") for line in lines)
    return first, {name.strip().lower(): value.strip() for name, _, value in pairs}, body


def _values(media_type: str, headers: dict[str, str], body: bytes) -> list[Any]:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = b"".join(_chunks(body))
    if media_type == "text/event-stream":
        lines = body.decode().splitlines()
        return [json.loads(line[5:]) for line in lines if line.startswith("data:")]
    value = _json(body)
    return [] if value is None else [value]


def _chunks(body: bytes) -> list[bytes]:
    chunks = []
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size or b"0", 16)
        if length == 0:
            break
        chunks.append(body[:length])
        body = body[length:].removeprefix(b"\r\n")
    return chunks


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None
