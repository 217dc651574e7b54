"""What carries calls: transports, their settings and their errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protolink_sync.config import RetryPolicy, TransportConfig, TransportLimits
from protolink_sync.errors import (
    AuthenticationError,
    StreamingNotSupportedError,
    StreamInterruptedError,
    TLSVerificationError,
    TransportConnectionError,
    TransportError,
    TransportLimitError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.transport._metrics import TransportMetricsSnapshot
from protolink_sync.transport.base import Transport, TransportCapabilities
from protolink_sync.transport.factory import get_transport, register_transport
from protolink_sync.wire import TransportRequestContext

if TYPE_CHECKING:
    from protolink_sync.transport.http import HTTPTransport
    from protolink_sync.transport.runtime import RuntimeTransport

__all__ = [
    "AuthenticationError",
    "HTTPTransport",
    "RetryPolicy",
    "RuntimeTransport",
    "StreamInterruptedError",
    "StreamingNotSupportedError",
    "TLSVerificationError",
    "Transport",
    "TransportCapabilities",
    "TransportConfig",
    "TransportConnectionError",
    "TransportError",
    "TransportLimitError",
    "TransportLimits",
    "TransportMetricsSnapshot",
    "TransportProtocolError",
    "TransportRemoteError",
    "TransportRequestContext",
    "TransportTimeoutError",
    "get_transport",
    "register_transport",
]

# Imported when they are used: requests alone costs more than all the rest.
_LATER = {
    "HTTPTransport": "protolink_sync.transport.http",
    "RuntimeTransport": "protolink_sync.transport.runtime",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return __all__
