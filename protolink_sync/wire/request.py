"""The bytes of one call, between codec and transport."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

__all__ = ["TransportRequestContext", "WireReply", "WireRequest", "one_line"]


@attrs.define
class TransportRequestContext:
    """Who a call is: the same for all attempts, but for :attr:`attempt`.

    Args:
        operation: Name of the operation, from its request spec.
        url: Address of the peer as the caller gave it.
        request_id: Sent with every attempt; 32 hexadecimal digits.
        idempotency_key: By it the peer recognises a call it has seen; None where none is sent.
        attempt: 1 for the first.
    """

    operation: str
    url: str
    request_id: str
    idempotency_key: str | None = None
    attempt: int = 1

    @property
    def where(self) -> str:
        """Begin of every message about this call."""
        return f"{self.operation} to {self.url}"


@attrs.define
class WireRequest:
    """An encoded call.

    Args:
        context: Who the call is.
        method: HTTP method, or the method inside an envelope.
        path: Path (and query) below the peer's address.
        headers: Headers of the operation; without credentials and connection headers.
        body: The encoded data; None sends no body.
        credentials: Headers that carry the caller's credentials, set for each attempt.
        channel: Lane on transports that carry one call at a time on a connection.
    """

    context: TransportRequestContext
    method: str
    path: str
    headers: dict[str, str]
    body: bytes | None
    credentials: Mapping[str, str] | None = attrs.field(default=None, repr=False)
    channel: str = "default"


@attrs.define
class WireReply:
    """An answer as it came.

    Args:
        status: HTTP status.
        reason: The words behind it.
        headers: Headers, names in lower case; several of one name joined by ``", "``.
        body: The whole body, inflated.
    """

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes


def one_line(text: str) -> str:
    """Return a peer's words as one printable line, so that they cannot forge lines of a log.

    >>> one_line("no\\r\\nERROR forged")
    'no ERROR forged'
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
