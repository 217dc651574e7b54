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
from protolink_sync.security import TLSConfig
from protolink_sync.transport._hooks import (
    EventReceived,
    Hooks,
    RequestSent,
    ResponseReceived,
    RetryPlanned,
)
from protolink_sync.transport._metrics import TransportMetricsSnapshot
from protolink_sync.transport._options import CallOptions
from protolink_sync.transport._raw import RawResponse
from protolink_sync.transport.base import Transport, TransportCapabilities
from protolink_sync.transport.factory import get_transport, register_transport
from protolink_sync.wire import TransportRequestContext

if TYPE_CHECKING:
    from protolink_sync.transport.grpc import GRPCTransport
    from protolink_sync.transport.http import HTTPTransport
    from protolink_sync.transport.runtime import RuntimeTransport
    from protolink_sync.transport.sse import SSEJSONRPCTransport
    from protolink_sync.transport.websocket import WebSocketTransport

__all__ = [
    "AuthenticationError",
    "CallOptions",
    "EventReceived",
    "GRPCTransport",
    "HTTPTransport",
    "Hooks",
    "RawResponse",
    "RequestSent",
    "ResponseReceived",
    "RetryPlanned",
    "RetryPolicy",
    "RuntimeTransport",
    "SSEJSONRPCTransport",
    "StreamInterruptedError",
    "StreamingNotSupportedError",
    "TLSConfig",
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
    "WebSocketTransport",
    "get_transport",
    "register_transport",
]

# Imported when they are used: requests alone costs more than all the rest.
_LATER = {
    "GRPCTransport": "protolink_sync.transport.grpc",
    "HTTPTransport": "protolink_sync.transport.http",
    "RuntimeTransport": "protolink_sync.transport.runtime",
    "SSEJSONRPCTransport": "protolink_sync.transport.sse",
    "WebSocketTransport": "protolink_sync.transport.websocket",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return __all__
