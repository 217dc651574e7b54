"""From a gRPC status to an error of ours. The only place where ``retryable`` is decided for gRPC.

What kept a connection from being made stands in the words of the status alone.

Source:
    grpcio 1.66 to 1.85, ``details()`` of calls to closed, silent, foreign and untrusted ports.
"""

from __future__ import annotations

import re
from typing import Any

from protolink_sync.errors import (
    AuthenticationError,
    StreamInterruptedError,
    TLSVerificationError,
    TransportConnectionError,
    TransportError,
    TransportLimitError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.wire import TransportRequestContext, one_line

__all__ = ["is_lost", "is_unreachable", "refusal", "stream_error", "unary_error"]

# How much of a peer's words a message shows; the error has all of them.
_SHOWN_WORDS = 1000

# No more digits than a size has: int() refuses thousands, which a peer may write.
_TOO_LARGE = re.compile(r"larger than max \((\d{1,20}) vs\.? (\d{1,20})\)")

_UNTRUSTED = re.compile(r"CERTIFICATE_VERIFY_FAILED|[Hh]ostname [Vv]erification|peer certificate")
_NO_TLS = re.compile(r"WRONG_VERSION_NUMBER|HTTP_REQUEST")
_NO_TLS_FILES = re.compile(r"[Ff]ailed to create (secure|security)")
_NO_GRPC = re.compile(r"HTTP/2|SETTINGS frame as the first|Trying to connect an http1")
_BAD_TLS = re.compile(r"TSI_PROTOCOL_FAILURE")
_SILENT = re.compile(r"timed out|Timeout|tcp handshaker shutdown|FD Shutdown", re.IGNORECASE)
_NO_HOST = re.compile(r"errors? resolving|DNS resolution failed|[Nn]ame resolution|lookup failed")
_NOT_CONNECTED = re.compile(r"failed to connect to all addresses|connections to all backends")

_HINTS = {
    "UNAUTHENTICATED": ". Give the transport credentials=, or others",
    "UNIMPLEMENTED": (
        ". The agent there does not have this service; a ProtoLink agent has the health check if "
        "grpcio-health-checking and grpcio-reflection are installed with it"
    ),
}

# What grpcio ends a call with that met no HTTP/2: its words for a cut stand there too.
_BAD_HTTP2 = re.compile(r"Failed parsing HTTP/2|received metadata size exceeds")

# How grpcio says that the connection has ended; a proxy in between may say the same.
_LOST = re.compile(
    r"Stream removed|Socket closed|Transport closed|Connection reset|Broken pipe|GOAWAY"
)

# How a stream ends that was cut, beside UNAVAILABLE.
_CUT = re.compile(r"RST_STREAM|Stream removed|Socket closed|Connection reset|GOAWAY|stream closed")


def is_unreachable(error: Any) -> bool:
    """Return whether a status says that there is no connection to the peer."""
    if error.code().name != "UNAVAILABLE":
        return False
    words = error.details() or ""
    return bool(_NOT_CONNECTED.search(words) or _NO_HOST.search(words))


def is_lost(error: Any) -> bool:
    """Return whether a status says that the connection to the peer is of no use any more."""
    return is_unreachable(error) or bool(_LOST.search(error.details() or ""))


def unary_error(
    error: Any, context: TransportRequestContext, *, limit: int, sent: int, submits: bool
) -> TransportError:
    """Return our error for the status of a call.

    Args:
        error: grpcio's error.
        context: Who the call is.
        limit: The largest reply the transport takes.
        sent: Bytes of the request.
        submits: The call gives the peer a task to work on.
    """
    status, words = error.code().name, error.details() or ""
    where = context.where
    if is_unreachable(error):
        return _not_connected(words, context)
    if status == "UNAVAILABLE":
        running = ". A task that was submitted may be running" if submits else ""
        return TransportConnectionError(
            f"{where}: {_told(status, words)}{running}", retryable=True, status_code=status
        )
    if _BAD_HTTP2.search(words):
        return _bad_http2(status, words, context)
    if status == "DEADLINE_EXCEEDED":
        return TransportTimeoutError(
            f"{where}: a time limit of the peer is over: {_told(status, words)}",
            status_code=status,
        )
    too_large = _TOO_LARGE.search(words) if status == "RESOURCE_EXHAUSTED" else None
    if too_large is not None and int(too_large[2]) == limit and int(too_large[1]) != sent:
        return TransportLimitError(
            f"{where}: the reply has {too_large[1]} bytes, limit is {limit}. Raise "
            "TransportLimits.max_response_bytes, or ask the agent for less",
            status_code=status,
        )
    return refusal(error, context, retryable=status == "RESOURCE_EXHAUSTED" and not too_large)


def stream_error(error: Any, context: TransportRequestContext, *, limit: int) -> TransportError:
    """Return our error for the status that ended a stream; see :func:`unary_error`."""
    status, words = error.code().name, error.details() or ""
    too_large = _TOO_LARGE.search(words) if status == "RESOURCE_EXHAUSTED" else None
    if too_large is not None and int(too_large[2]) == limit:
        return TransportLimitError(
            f"{context.where}: an event has {too_large[1]} bytes, limit is {limit}. Raise "
            "TransportLimits.max_event_bytes, or pass the data by reference (Artifact.uri)",
            status_code=status,
        )
    if is_unreachable(error):
        return _not_connected(words, context)
    # UNAVAILABLE is the call that only came too late, when another one had found that out.
    if status != "UNAVAILABLE" and _BAD_HTTP2.search(words):
        return _bad_http2(status, words, context)
    if status in ("UNAVAILABLE", "CANCELLED") or _CUT.search(words):
        cut = StreamInterruptedError(
            f"{context.where}: the stream was cut ({_told(status, words)}). "
            "The task may go on at the agent; cancel_task ends it"
        )
        cut.status_code = status
        return cut
    if status == "DEADLINE_EXCEEDED":
        return TransportTimeoutError(
            f"{context.where}: a time limit of the peer is over: {_told(status, words)}",
            status_code=status,
        )
    return refusal(error, context, retryable=False)


def refusal(
    error: Any, context: TransportRequestContext, *, retryable: bool
) -> TransportRemoteError:
    """Return the error of a status that is the peer's answer."""
    status, words = error.code().name, error.details() or ""
    is_auth = status in ("UNAUTHENTICATED", "PERMISSION_DENIED")
    kind = AuthenticationError if is_auth else TransportRemoteError
    hint = _HINTS.get(status, "")
    trailing = error.trailing_metadata() or ()
    return kind(
        f"{context.where}: the peer answered with an error: {_told(status, words)}{hint}",
        error_type=status,
        error_message=words,
        headers={key: value for key, value in trailing if isinstance(value, str)},
        retryable=retryable,
        status_code=status,
    )


def _bad_http2(status: str, words: str, context: TransportRequestContext) -> TransportError:
    return TransportProtocolError(
        f"{context.where}: the peer does not keep to HTTP/2: {_told(status, words)}",
        status_code=status,
    )


def _not_connected(words: str, context: TransportRequestContext) -> TransportError:
    where, shown = context.where, one_line(words[:_SHOWN_WORDS])
    host = context.url.partition("://")[2].rpartition(":")[0]
    if _UNTRUSTED.search(words):
        error: TransportError = TLSVerificationError(
            f"{where}: the certificate of {host} is not accepted ({shown}). Give its authority as "
            "TLSConfig(cafile=...), or call the host by a name that is in the certificate"
        )
    elif _NO_TLS.search(words):
        error = TransportConnectionError(
            f"{where}: the port does not speak TLS ({shown}). Did you mean grpc://?"
        )
    elif _BAD_TLS.search(words):
        error = TransportConnectionError(
            f"{where}: TLS failed ({shown}). If the peer asks for a client certificate, give "
            "TLSConfig(certfile=..., keyfile=...)"
        )
    elif _NO_TLS_FILES.search(words):
        error = TransportConnectionError(f"{where}: the files of TLSConfig cannot be used")
    elif _SILENT.search(words):
        error = TransportTimeoutError(
            f"{where}: connecting timed out ({shown}); the limit is "
            "TransportConfig.connect_timeout",
            retryable=True,
        )
    elif _NO_GRPC.search(words):
        error = TransportProtocolError(f"{where}: the port does not speak gRPC ({shown})")
    elif _NO_HOST.search(words):
        error = TransportConnectionError(
            f"{where}: the host {host!r} is not found ({shown})", retryable=True
        )
    else:
        tls = (
            ". If the peer asks for a client certificate, give TLSConfig(certfile=..., keyfile=...)"
            if context.url.startswith("grpcs:")
            else ""
        )
        error = TransportConnectionError(
            f"{where}: cannot connect ({shown}). Does an agent listen there?{tls}", retryable=True
        )
    error.status_code = "UNAVAILABLE"
    error.phase = "connect"
    return error


def _told(status: str, words: str) -> str:
    shown = one_line(words[:_SHOWN_WORDS])
    return f"{status}: {shown}" if shown else status
