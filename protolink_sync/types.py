"""The words of the protocol as types: roles, media types, methods, states of a channel.

They serve type checkers and documentation. A *peer* may use words that are not listed here; the
models keep those as they are (see :mod:`protolink_sync.models`). What a *caller* declares, such
as the method of a request spec, is checked against these lists.

Source:
    ProtoLink, Models reference, "Type Aliases in AgentCard" and "EndpointSpec"; Client and
    transport reference, "ClientRequestSpec"; the words themselves as in ProtoLink 0.8.3.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal, TypeAlias

__all__ = [
    "AgentRoleType",
    "ContentType",
    "EndpointContentType",
    "EndpointMode",
    "HistoryCompactionStrategy",
    "HttpMethod",
    "LLMMessageRole",
    "MessageRoleType",
    "MimeType",
    "PartType",
    "RequestSourceType",
    "SecuritySchemeType",
    "StateOperation",
    "StateStoreName",
    "TransportType",
]

AgentRoleType: TypeAlias = Literal["gateway", "interface", "observer", "orchestrator", "worker"]
"""What an agent is responsible for in a system of agents."""

ContentType: TypeAlias = Literal[
    "application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "text/plain",
]
"""Media types of a request body."""

EndpointContentType: TypeAlias = Literal["json", "html"]
"""What a served endpoint answers."""

EndpointMode: TypeAlias = Literal["request_response", "stream"]
"""Whether a served endpoint answers once or with events."""

HistoryCompactionStrategy: TypeAlias = Literal["recent", "tokens", "summary"]
"""How a conversation history is shortened."""

HttpMethod: TypeAlias = Literal["GET", "POST", "DELETE", "PUT", "PATCH"]
"""Logical method of an operation, on every transport."""

MessageRoleType: TypeAlias = Literal["agent", "assistant", "system", "user"]
"""Who speaks in a message between agents."""

MimeType: TypeAlias = Literal[
    "text/plain",
    "text/markdown",
    "text/html",
    "application/json",
    "image/png",
    "image/jpeg",
    "image/webp",
    "audio/wav",
    "audio/mpeg",
    "audio/ogg",
    "video/mp4",
    "video/webm",
    "application/pdf",
]
"""Formats an agent can take and give."""

PartType: TypeAlias = Literal[
    "text",
    "json",
    "file",
    "bytes",
    "uri",
    "image",
    "audio",
    "video",
    "status",
    "error",
    "warning",
    "route",
    "decision",
    "infer",
    "infer_output",
    "tool_call",
    "tool_output",
    "trace",
    "summary",
    "confidence",
    "schema",
]
"""What a part of a message or an artifact holds."""

RequestSourceType: TypeAlias = Literal[
    "none",
    "body",
    "query_params",
    "form",
    "headers",
    "path_params",
    "request",
]
"""Where the data of a request travels."""

SecuritySchemeType: TypeAlias = Literal["apiKey", "http", "oauth2", "mutualTLS", "openIdConnect"]
"""How an agent asks its callers to identify themselves."""

StateOperation: TypeAlias = Literal["describe", "reset", "compact"]
"""What can be done to the state of an agent."""

StateStoreName: TypeAlias = Literal["conversation", "tools", "task", "flow"]
"""The stores an agent can keep state in."""

TransportType: TypeAlias = Literal[
    "http", "websocket", "sse", "json-rpc", "sse-json-rpc", "grpc", "runtime"
]
"""The aliases under which a transport is asked for."""


class LLMMessageRole(str, Enum):
    """Who speaks in the conversation of one language model."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"

    # enum.StrEnum is of Python 3.11; without this, str() of a member is 'LLMMessageRole.USER'.
    def __str__(self) -> str:
        return str.__str__(self)
