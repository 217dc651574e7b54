"""Call agents that speak A2A, 1.0 or 0.3."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from protolink_sync.a2a.client import (
        A2AClient,
        A2AEventStream,
        A2AMemory,
        PushReceiver,
        SchemeCredentials,
    )
    from protolink_sync.a2a.wire import (
        A2AClientError,
        A2AContentTypeNotSupportedError,
        A2AExtendedCardNotConfiguredError,
        A2AExtensionRequiredError,
        A2AInternalError,
        A2AInvalidAgentResponseError,
        A2AInvalidParamsError,
        A2AInvalidRequestError,
        A2AMethodNotFoundError,
        A2AParseError,
        A2APushNotificationNotSupportedError,
        A2ARpcError,
        A2ATaskNotCancelableError,
        A2ATaskNotFoundError,
        A2AUnsupportedOperationError,
        A2AVersionNotSupportedError,
        AgentCapabilities,
        AgentCard,
        AgentExtension,
        AgentInterface,
        AgentProvider,
        AgentSkill,
        Artifact,
        Message,
        MessageSendParams,
        Part,
        PushNotificationConfig,
        Role,
        SecurityScheme,
        SendConfiguration,
        StreamEvent,
        Task,
        TaskArtifactUpdate,
        TaskAssembly,
        TaskPage,
        TaskState,
        TaskStatus,
        TaskStatusUpdate,
        WireDialect,
        read_notification,
    )

__all__ = [
    "A2AClient",
    "A2AClientError",
    "A2AContentTypeNotSupportedError",
    "A2AEventStream",
    "A2AExtendedCardNotConfiguredError",
    "A2AExtensionRequiredError",
    "A2AInternalError",
    "A2AInvalidAgentResponseError",
    "A2AInvalidParamsError",
    "A2AInvalidRequestError",
    "A2AMemory",
    "A2AMethodNotFoundError",
    "A2AParseError",
    "A2APushNotificationNotSupportedError",
    "A2ARpcError",
    "A2ATaskNotCancelableError",
    "A2ATaskNotFoundError",
    "A2AUnsupportedOperationError",
    "A2AVersionNotSupportedError",
    "AgentCapabilities",
    "AgentCard",
    "AgentExtension",
    "AgentInterface",
    "AgentProvider",
    "AgentSkill",
    "Artifact",
    "Message",
    "MessageSendParams",
    "Part",
    "PushNotificationConfig",
    "PushReceiver",
    "Role",
    "SchemeCredentials",
    "SecurityScheme",
    "SendConfiguration",
    "StreamEvent",
    "Task",
    "TaskArtifactUpdate",
    "TaskAssembly",
    "TaskPage",
    "TaskState",
    "TaskStatus",
    "TaskStatusUpdate",
    "WireDialect",
    "read_notification",
]

# Where the names are looked for when they are first used, the cheapest room first.
_ROOMS = ("wire", "client")


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
