"""The cells of the fault matrix: which exist, and what the caller must be told in each."""

from __future__ import annotations

import itertools

import attrs

from protolink_sync.errors import (
    ProtoLinkError,
    StreamInterruptedError,
    TLSVerificationError,
    TransportConnectionError,
    TransportLimitError,
    TransportProtocolError,
    TransportTimeoutError,
)

LANES = (
    "http",
    "sse",
    "sse-stream",
    "ws",
    "ws-stream",
    "grpc",
    "grpc-stream",
    "a2a",
    "a2a-stream",
    "runtime",
    "runtime-stream",
    "http+tls",
    "sse-stream+tls",
    "ws+tls",
    "grpc-stream+tls",
)
PHASES = (
    "resolve",
    "connect",
    "tls",
    "write",
    "wait",
    "headers",
    "first-byte",
    "mid-body",
    "mid-event",
    "after-end",
)
FAULTS = (
    "refused",
    "blackhole",
    "reset",
    "half-close",
    "stall",
    "drip",
    "garbage",
    "truncation",
    "oversize",
    "wrong-id",
)

# Faults that only the caller's budget ends.
ENDLESS = ("blackhole", "stall", "drip")


@attrs.frozen
class Cell:
    """One place of the matrix.

    Args:
        lane: The wire, whether a call or a stream goes over it, and ``+tls`` if all of it is
            encrypted.
        phase: What the client is doing when the peer fails.
        fault: How the peer fails.
    """

    lane: str
    phase: str
    fault: str

    @property
    def wire(self) -> str:
        """The lane without what goes over it."""
        return self.lane.partition("+")[0].partition("-")[0]

    @property
    def streams(self) -> bool:
        """Whether it is a stream."""
        return self.lane.partition("+")[0].endswith("stream")

    @property
    def is_encrypted(self) -> bool:
        """Whether it goes over TLS: of the plain lanes only the handshake's own faults do."""
        return self.phase == "tls" or self.lane.endswith("+tls")

    @property
    def is_endless(self) -> bool:
        """Whether the budget is what ends the call."""
        if (self.phase, self.fault) == ("write", "half-close"):
            return self.wire != "grpc"  # HTTP/2 reads while it writes
        return self.fault in ENDLESS and self.phase != "after-end"

    def __str__(self) -> str:
        return f"{self.lane}:{self.phase}:{self.fault}"


def all_cells() -> list[Cell]:
    """Return every cell, also those that cannot exist."""
    return [Cell(*place) for place in itertools.product(LANES, PHASES, FAULTS)]


def cells() -> list[Cell]:
    """Return the cells that can exist."""
    return [cell for cell in all_cells() if why_not(cell) is None]


@attrs.frozen
class Told:
    """What the caller must be told.

    Args:
        kind: Class of the error; None for a success.
        retryable: What the error says of it.
    """

    kind: type[ProtoLinkError] | None
    retryable: bool = False

    def __str__(self) -> str:
        if self.kind is None:
            return "success"
        return self.kind.__name__ + (" retryable" if self.retryable else "")


# ---- which cells exist -------------------------------------------------------------------------

# What may happen in a phase, and why everything else may not.
_POSSIBLE = {
    "resolve": ("refused stall", "a look-up is no exchange of ours: it fails or does not end"),
    "connect": ("refused blackhole", "before it stands, a connection has nothing but these"),
    "tls": (
        "refused reset half-close stall drip garbage truncation oversize wrong-id",
        "a connection that stands is silent: that is the stall",
    ),
    "write": (
        "reset half-close stall drip oversize",
        "what the peer says is read when the request is out: see the phases that follow",
    ),
    "wait": (
        "reset half-close stall garbage truncation",
        "any byte of the answer belongs to a later phase, and the connection stands",
    ),
    "headers": (
        "reset half-close stall drip garbage truncation oversize wrong-id",
        "the connection stands",
    ),
    "first-byte": (
        "reset half-close stall drip garbage truncation oversize",
        "an answer has its id in its body or in its headers, and the connection stands",
    ),
    "mid-body": (
        "reset half-close stall drip garbage truncation oversize wrong-id",
        "the connection stands",
    ),
    "mid-event": (
        "reset half-close stall drip garbage truncation oversize wrong-id",
        "the connection stands",
    ),
    "after-end": (
        "reset half-close garbage truncation wrong-id",
        "silence is no fault when nothing is asked, and further bytes are the garbage",
    ),
}

_IN_PROCESS = {
    ("connect", "refused"),
    ("write", "oversize"),
    ("wait", "stall"),
    ("mid-body", "oversize"),
    ("mid-event", "stall"),
    ("mid-event", "oversize"),
}


def why_not(cell: Cell) -> str | None:
    """Return why a cell cannot exist; None if it can."""
    possible, reason = _POSSIBLE[cell.phase]
    if cell.fault not in possible.split():
        return reason
    if cell.lane.endswith("+tls") and cell.phase in ("resolve", "connect", "tls"):
        return "nothing is encrypted yet: see the lane without TLS"
    if cell.phase == "mid-event" and not cell.streams:
        return "only streams have events"
    if cell.wire == "runtime":
        return _why_not_in_process(cell)
    if cell.wire == "grpc" and cell.phase == "resolve":
        return "grpcio resolves by itself: a name would be asked of other machines"
    return _why_not_here(cell)


def _why_not_in_process(cell: Cell) -> str | None:
    if (cell.phase, cell.fault) not in _IN_PROCESS:
        return "within a process there are neither connections nor bytes"
    if cell.streams and cell.phase == "mid-body":
        return "the parts of a stream are its events"
    return None


def _why_not_here(cell: Cell) -> str | None:
    phase, fault = cell.phase, cell.fault
    if cell.wire == "grpc" and (phase, fault) == ("write", "drip"):
        return "how fast an HTTP/2 peer takes bytes is its leave to send: see the stall"
    carries_id_in_head = cell.wire in ("http", "sse") and not cell.streams
    if fault == "wrong-id":
        if phase == "headers" and not carries_id_in_head:
            return "this answer has its id in its body"
        if phase == "mid-body" and carries_id_in_head:
            return "this answer has its id in its headers"
        if phase == "mid-body" and cell.streams:
            return "the parts of a stream are its events"
        if phase == "after-end" and cell.streams:
            return "the connection of a stream serves no further call"
    if fault == "oversize":
        if phase == "first-byte" and cell.wire in ("sse", "a2a"):
            return "an answer in chunks announces no size"
        if phase == "mid-body" and cell.streams:
            return "the parts of a stream are its events"
        if phase == "mid-body" and cell.wire in ("http", "grpc"):
            return "an announced size is refused at the first byte"
    if fault == "garbage" and phase == "after-end" and cell.streams:
        return "the connection of a stream serves no further call"
    return None


# ---- what the caller is told -------------------------------------------------------------------

_CUTS = ("reset", "half-close", "truncation")


def told(cell: Cell) -> Told:
    """Return what the caller must be told."""
    phase, fault = cell.phase, cell.fault
    if phase == "after-end":
        return Told(None)
    if cell.is_endless:
        return Told(TransportTimeoutError)
    if fault == "oversize" and phase not in ("tls", "headers"):
        return Told(TransportLimitError)
    if phase == "tls":
        if fault == "wrong-id":
            return Told(TLSVerificationError)
        # What is no handshake, or refuses it, would come again.
        return Told(TransportConnectionError, retryable=fault in _CUTS)
    if fault == "refused":
        return Told(TransportConnectionError, retryable=True)
    if fault in _CUTS:
        if cell.streams and _is_open(cell):
            return Told(StreamInterruptedError)
        return Told(TransportConnectionError, retryable=True)
    return Told(TransportProtocolError)


def _is_open(cell: Cell) -> bool:
    """Return whether a stream counts as open when the fault comes."""
    if cell.wire in ("sse", "a2a"):
        return cell.phase in ("first-byte", "mid-body", "mid-event")
    # What a WebSocket peer says before it cuts a request is read, as the begin of the stream.
    return cell.phase != "headers" or cell.wire == "grpc"


__all__ = ["Cell", "Told", "all_cells", "cells", "told", "why_not"]
