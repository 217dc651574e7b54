"""Call AI agents that speak ProtoLink from programs that do not use asyncio.

>>> from protolink_sync import AgentClient, Task
>>> client = AgentClient("http")
>>> client.transport.health()["status"]
'ready'
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from protolink_sync._version import __version__

if TYPE_CHECKING:
    from protolink_sync._deadline import CancelToken
    from protolink_sync.a2a import A2AClient
    from protolink_sync.aio import AsyncAgentClient
    from protolink_sync.client import (
        AgentClient,
        AgentPeer,
        RegistryClient,
        SyncAgentClient,
        connect,
    )
    from protolink_sync.config import RetryPolicy, TransportConfig, TransportLimits
    from protolink_sync.errors import (
        A2AClientError,
        A2ARpcError,
        AuthenticationError,
        CallCancelledError,
        ClientClosedError,
        ModelError,
        NoResponseMessageError,
        ProtoLinkError,
        StreamingNotSupportedError,
        StreamInterruptedError,
        StructuredResponseError,
        TaskExecutionError,
        TLSVerificationError,
        TransportConnectionError,
        TransportError,
        TransportLimitError,
        TransportProtocolError,
        TransportRemoteError,
        TransportTimeoutError,
    )
    from protolink_sync.models import (
        AgentCapabilities,
        AgentCard,
        AgentInterface,
        AgentSkill,
        Artifact,
        ClientRequestSpec,
        ConversationHistory,
        EndpointSpec,
        HistoryCompactionRequest,
        HistoryCompactionResult,
        InMemoryEventSink,
        LLMMessage,
        Message,
        Part,
        RouteDecision,
        RunEvent,
        StateOperationRequest,
        StateOperationResult,
        StateStoreReport,
        Task,
        TaskCancellationRequest,
        TaskState,
        ToolCall,
        ToolOutput,
    )
    from protolink_sync.security import APIKey, BasicAuth, BearerToken, TLSConfig
    from protolink_sync.streaming import EventStream

__all__ = [
    "A2AClient",
    "A2AClientError",
    "A2ARpcError",
    "APIKey",
    "AgentCapabilities",
    "AgentCard",
    "AgentClient",
    "AgentInterface",
    "AgentPeer",
    "AgentSkill",
    "Artifact",
    "AsyncAgentClient",
    "AuthenticationError",
    "BasicAuth",
    "BearerToken",
    "CallCancelledError",
    "CancelToken",
    "ClientClosedError",
    "ClientRequestSpec",
    "ConversationHistory",
    "EndpointSpec",
    "EventStream",
    "HistoryCompactionRequest",
    "HistoryCompactionResult",
    "InMemoryEventSink",
    "LLMMessage",
    "Message",
    "ModelError",
    "NoResponseMessageError",
    "Part",
    "ProtoLinkError",
    "RegistryClient",
    "RetryPolicy",
    "RouteDecision",
    "RunEvent",
    "StateOperationRequest",
    "StateOperationResult",
    "StateStoreReport",
    "StreamInterruptedError",
    "StreamingNotSupportedError",
    "StructuredResponseError",
    "SyncAgentClient",
    "TLSConfig",
    "TLSVerificationError",
    "Task",
    "TaskCancellationRequest",
    "TaskExecutionError",
    "TaskState",
    "ToolCall",
    "ToolOutput",
    "TransportConfig",
    "TransportConnectionError",
    "TransportError",
    "TransportLimitError",
    "TransportLimits",
    "TransportProtocolError",
    "TransportRemoteError",
    "TransportTimeoutError",
    "__version__",
    "connect",
]

# Else Python prints warnings of libraries whose programs have not set up logging.
logging.getLogger(__name__).addHandler(logging.NullHandler())

# Where the names are looked for when they are first used, the cheapest rooms first: who needs the
# models or the hosting side only does not wait for the client and its transports.
_ROOMS = (
    "errors",
    "_deadline",
    "config",
    "security",
    "models",
    "streaming",
    "client",
    "a2a",
    "aio",
)


def __getattr__(name: str) -> Any:
    if name in __all__:
        for room in _ROOMS:
            module = importlib.import_module(f"{__name__}.{room}")
            if hasattr(module, name):
                value = globals()[name] = getattr(module, name)
                return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
