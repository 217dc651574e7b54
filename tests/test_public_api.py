"""The names that users may rely on: present, listed in order, documented.

``PUBLIC`` grows with the product. What design.md 2 names and is not here yet is added by the
change that brings it.
"""

from __future__ import annotations

import importlib
import inspect
import pickle
import subprocess
import sys
from collections.abc import Iterator

import pytest

SETTINGS = "RetryPolicy TLSConfig TransportConfig TransportLimits"

CREDENTIALS = "APIKey BasicAuth BearerToken"

TRANSPORT_ERRORS = """
    AuthenticationError TLSVerificationError TransportConnectionError TransportError
    TransportLimitError TransportProtocolError TransportRemoteError TransportTimeoutError
"""

ERRORS = f"""
    {TRANSPORT_ERRORS}
    CallCancelledError ClientClosedError ModelError NoResponseMessageError ProtoLinkError
    StructuredResponseError TaskExecutionError
"""

MODELS = """
    AgentCapabilities AgentCard AgentInterface AgentSkill Artifact ClientRequestSpec
    ConversationHistory EndpointSpec HistoryCompactionRequest HistoryCompactionResult
    InMemoryEventSink LLMMessage Message Part RouteDecision RunEvent StateOperationRequest
    StateOperationResult StateStoreReport Task TaskCancellationRequest TaskExecutionError TaskState
    ToolCall ToolOutput
"""

PUBLIC = {
    "protolink_sync": f"""
        AgentClient AgentPeer AsyncAgentClient CancelToken EventStream RegistryClient
        SyncAgentClient connect {MODELS} {SETTINGS} {CREDENTIALS} {ERRORS}
    """,
    "protolink_sync.client": """
        AgentClient AgentPeer CheckReport CheckStep MapResults Registration RegistryClient
        SyncAgentClient connect
    """,
    "protolink_sync.aio": "AsyncA2AClient AsyncAgentClient AsyncAgentPeer AsyncEventStream",
    "protolink_sync.testing": """
        FakeAgent Recorder ReplayTransport ScriptedTransport SentCall events refused reply silence
    """,
    "protolink_sync.models": MODELS,
    "protolink_sync.types": """
        HttpMethod MessageRoleType MimeType PartType SecuritySchemeType TransportType
    """,
    "protolink_sync.transport": f"""
        CallOptions EventReceived HTTPTransport Hooks RawResponse RequestSent ResponseReceived
        RetryPlanned RuntimeTransport SSEJSONRPCTransport Transport TransportCapabilities
        TransportMetricsSnapshot
        TransportRequestContext get_transport register_transport
        {SETTINGS} {TRANSPORT_ERRORS}
    """,
    "protolink_sync.security": f"{CREDENTIALS} TLSConfig",
    "protolink_sync.errors": ERRORS,
    "protolink_sync.server": "Agent AgentServer EndpointSpec",
    "protolink_sync.a2a": """
        A2AClient A2AClientError A2AContentTypeNotSupportedError A2AEventStream
        A2AExtendedCardNotConfiguredError A2AExtensionRequiredError A2AInternalError
        A2AInvalidAgentResponseError A2AInvalidParamsError A2AInvalidRequestError A2AMemory
        A2AMethodNotFoundError A2AParseError A2APushNotificationNotSupportedError A2ARpcError
        A2ATaskNotCancelableError A2ATaskNotFoundError A2AUnsupportedOperationError
        A2AVersionNotSupportedError AgentCapabilities AgentCard AgentExtension AgentInterface
        AgentProvider AgentSkill Artifact Message MessageSendParams Part PushNotificationConfig
        PushReceiver Role SchemeCredentials SecurityScheme SendConfiguration StreamEvent Task
        TaskArtifactUpdate TaskAssembly TaskPage TaskState TaskStatus TaskStatusUpdate WireDialect
        read_notification
    """,
}

# Found by their absence in a process that only imports: each costs time that a first call may
# never need. (requests is needed by every HTTP call, and is no exception.)
NOT_ON_IMPORT = {"grpc", "websocket", "sseclient", "tenacity", "asyncio", "click", "rich"}


def documented_parts(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield what users read in ``help(value)``: the thing itself and, of a class, its members."""
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return  # an alias of a type, a constant: its module's page tells of it
    yield name, value
    if inspect.isclass(value):
        for member, raw in vars(value).items():
            function = getattr(raw, "__func__", raw)  # of a static or class method
            ours = isinstance(raw, property) or inspect.isfunction(function)
            if ours and not member.startswith("_"):
                yield f"{name}.{member}", raw if isinstance(raw, property) else function


@pytest.mark.parametrize("module", PUBLIC)
def test_every_promised_name_is_there_and_listed(module):
    room = importlib.import_module(module)

    assert set(PUBLIC[module].split()) <= set(room.__all__)
    assert [name for name in room.__all__ if not hasattr(room, name)] == []


@pytest.mark.parametrize("module", PUBLIC)
def test_all_is_sorted_and_names_nothing_twice(module):
    names = importlib.import_module(module).__all__

    assert list(names) == sorted(set(names))


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_has_a_docstring(module):
    room = importlib.import_module(module)
    undocumented = [
        name
        for public in room.__all__
        for name, value in documented_parts(public, getattr(room, public))
        if not inspect.getdoc(value)
    ]

    assert undocumented == []


def test_both_names_of_the_client_are_one_class():
    client = importlib.import_module("protolink_sync.client")

    assert client.SyncAgentClient is client.AgentClient


@pytest.mark.parametrize("module", PUBLIC)
def test_a_public_class_is_pickled_under_a_name_that_can_be_imported(module):
    room = importlib.import_module(module)

    for name in room.__all__:
        value = getattr(room, name)
        if inspect.isclass(value):
            assert pickle.loads(pickle.dumps(value)) is value


def test_importing_starts_nothing_and_loads_nothing_that_a_call_may_not_need():
    program = """
import sys, threading
import protolink_sync, protolink_sync.client, protolink_sync.transport, protolink_sync.models
print(threading.active_count(), *sorted(sys.modules))
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    threads, *modules = run.stdout.split()

    assert threads == "1"
    assert NOT_ON_IMPORT.isdisjoint(modules)
