"""What a scripted server saw: connections, requests and WebSocket frames."""

from __future__ import annotations

import json
from typing import Any

import attrs

#: How many bytes of each connection are kept as they came.
KEPT_BYTES = 1 << 20


@attrs.define
class Request:
    """One request as it was read."""

    method: str
    target: str
    version: str
    headers: list[tuple[str, str]]
    body: bytes
    connection: int
    at: float
    """When its last byte was read, on the monotonic clock."""

    @property
    def path(self) -> str:
        """The target without its query, otherwise exactly as it was sent."""
        return self.target.partition("?")[0]

    @property
    def name(self) -> str:
        """Method and path in one text, as scripts and checks name requests."""
        return f"{self.method} {self.path}"

    def all(self, name: str) -> list[str]:
        """Return every value sent for a header."""
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def header(self, name: str) -> str | None:
        """Return a header's first value, None when it was not sent."""
        values = self.all(name)
        return values[0] if values else None

    def json(self) -> Any:
        """Return the decoded body."""
        return json.loads(self.body)


@attrs.define
class Frame:
    """One WebSocket frame the client sent."""

    opcode: int
    payload: bytes
    fin: bool
    rsv1: bool
    masked: bool
    at: float


@attrs.define
class Connection:
    """One accepted connection; numbers count from 1."""

    number: int
    opened_at: float
    received: bytearray = attrs.field(factory=bytearray, repr=False)
    """The first MiB that came, decrypted."""
    frames: list[Frame] = attrs.field(factory=list)
    tls_error: str | None = None
    closed_at: float | None = None
    """When its end was seen, on the monotonic clock."""
    closed_by: str | None = None
    """``client``, ``server`` (the script says so), or ``stop``."""

    def keep(self, data: bytes) -> None:
        """Keep received bytes, as far as there is room."""
        self.received += data[: KEPT_BYTES - len(self.received)]
