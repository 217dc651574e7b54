"""Code as users write it: checked by ``mypy --strict``, never run."""

from __future__ import annotations

import math
from typing import Any

from typing_extensions import assert_type

from protolink_sync import (
    AgentClient,
    AgentPeer,
    APIKey,
    BasicAuth,
    BearerToken,
    CancelToken,
    RetryPolicy,
    SyncAgentClient,
    TransportConfig,
    TransportLimits,
    connect,
)
from protolink_sync.a2a import A2AMemory
from protolink_sync.errors import (
    CallCancelledError,
    ProtoLinkError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import (
    AgentCard,
    Artifact,
    HistoryCompactionResult,
    Message,
    Part,
    StateOperationResult,
    Task,
    TaskState,
)
from protolink_sync.security import TLSConfig
from protolink_sync.server import Agent
from protolink_sync.transport import HTTPTransport, Transport, TransportMetricsSnapshot

URL = "http://127.0.0.1:8010"


def quick_start() -> None:
    client = AgentClient(transport="http", url="http://localhost:8000")
    task = Task.create_infer(prompt="Book me a vacation to Santorini")
    result = client.send_task(agent_url=URL, task=task)
    assert_type(result, Task)
    assert_type(result.state, TaskState)
    result.get_last_part_content()
    assert_type(client.sync, AgentClient)
    assert_type(client.sync.send_infer_task("Hello, agent!", URL), Task)
    same: type[AgentClient] = SyncAgentClient
    same("http").close()


def every_operation(client: AgentClient) -> None:
    assert_type(client.send_message(URL, Message.user("hello")), Message)
    assert_type(client.cancel_task(URL, "t-1", reason="stopped", metadata={"by": "me"}), Task)
    assert_type(client.get_agent_card(URL), AgentCard)
    compacted = client.compact_history(URL, strategy="recent", max_messages=2)
    assert_type(compacted, HistoryCompactionResult)
    described = client.describe_state(URL, session_id="s", stores=("conversation",))
    assert_type(described, StateOperationResult)
    assert_type(client.reset_state(URL), StateOperationResult)
    shortened = client.compact_state(URL, session_id="s", strategy="tokens", max_tokens=8_000)
    assert_type(shortened, StateOperationResult)
    schema: dict[str, Any] = {"type": "object"}
    client.send_infer_task("q", URL, user="u", output_schema=schema, protocol="protolink")


def a2a_agents() -> None:
    client = AgentClient("http", a2a=True, a2a_allow_cross_origin=True)
    client.a2a_memory = A2AMemory(clock=lambda: 0.0, tasks={})
    assert_type(client.a2a_memory, A2AMemory)
    assert_type(client.get_a2a_agent_card(URL, timeout=5.0), dict[str, Any])
    client.send_task(URL, Task.create("hi"), protocol="a2a")
    assert_type(connect(URL, a2a=True), AgentPeer)


def time_and_cancelling(client: AgentClient) -> None:
    token = CancelToken()
    token.cancel("no longer needed")
    assert_type(token.cancelled, bool)
    try:
        client.send_task(URL, Task.create(Message.user("hi")), timeout=math.inf, cancel=token)
        client.send_task(URL, Task.create(Message.user("hi")), timeout=2.5, idempotency_key="k")
    except CallCancelledError as error:
        print(error.reason)
    except TransportTimeoutError as error:
        assert_type(error.retryable, bool)
        print(error.phase, error.elapsed)
    except TransportRemoteError as error:
        print(error.status_code, error.headers, error.retry_after)
    except ProtoLinkError as error:
        print(error)


def settings() -> None:
    config = TransportConfig(
        limits=TransportLimits(max_response_bytes=50_000),
        retry=RetryPolicy(max_attempts=3, initial_backoff=0.01),
        connect_timeout=5.0,
    )
    transport = HTTPTransport(
        "http://localhost:8000",
        30.0,
        credentials=BearerToken("secret"),
        headers={"X-Team": "blue"},
        tls=TLSConfig(cafile="ca.pem"),
        config=config,
    )
    as_base: Transport = transport
    with AgentClient(as_base) as client:
        assert_type(client.transport, Transport)
        assert_type(client.transport.metrics, TransportMetricsSnapshot)
    HTTPTransport(credentials=APIKey("k"))
    HTTPTransport(credentials={URL: BasicAuth("user", "password")})
    HTTPTransport(credentials="bearer-token")


def values() -> None:
    message = Message.user("hello").add_part(Part.json({"a": 1}))
    assert_type(message, Message)
    assert_type(Artifact(name="a").add_text("first"), Artifact)
    task = Task.from_dict(Task.create(message).to_dict())
    assert_type(task.is_terminal, bool)
    assert_type(task.text, str)


def bound_peer() -> None:
    with connect(URL, timeout=5.0) as agent:
        assert_type(agent, AgentPeer)
        assert_type(agent.card, AgentCard)
        agent.invoke("hi")
        agent.call_tool("add", a=2, b=3)


def hosting() -> None:
    agent = Agent(AgentCard(name="local", description="in this process", url="runtime://local"))

    @agent.infer
    def answer(prompt: str) -> str:
        return f"you said {prompt}"

    with agent.serve("runtime://local") as host, AgentClient("runtime") as client:
        assert_type(host.url, str)
        client.send_infer_task("hello", host.url)
