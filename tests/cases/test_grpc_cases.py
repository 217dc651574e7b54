"""The cases about gRPC: no byte script can set them up. See test_set_ups.py."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import grpc
import pytest

from protolink_sync import AgentClient
from protolink_sync.config import RetryPolicy, TransportConfig
from protolink_sync.errors import (
    TransportConnectionError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import TaskState
from protolink_sync.transport import GRPCTransport
from tests.cases.play import new_task
from tests.cases.test_set_ups import the_case
from tests.transport.grpc_peer import GRPCPeer, done, until_cancelled, wrapped
from tests.transport.scenes import Calling, in_fresh_process, wait_until


def answer(envelope: dict[str, Any], _context: Any) -> Any:
    """Answer a task as completed."""
    return {**envelope["data"], "state": "completed"}


def test_C242_nobody_listens(unused_port):
    case = the_case("C242", outcome="raises", error=["connection"], max_s=5)
    begin = time.monotonic()
    with AgentClient("grpc") as client, pytest.raises(TransportConnectionError) as caught:
        client.send_task(f"grpc://127.0.0.1:{unused_port()}", new_task())

    assert time.monotonic() - begin < case.checks["max_s"]
    assert caught.value.retryable


def test_C243_an_answer_of_6_mib():
    the_case("C243", outcome="returns")

    def large(envelope, context):
        return {**answer(envelope, context), "metadata": {"large": "x" * (6 << 20)}}

    with GRPCPeer(large) as peer, AgentClient("grpc") as client:
        assert len(client.send_task(peer.url, new_task()).metadata["large"]) == 6 << 20


def test_C245_a_deadline_on_a_call_and_none_on_a_stream():
    case = the_case("C245", outcome="raises", error=["timeout"], max_s=2)
    pause = threading.Event()

    def events(envelope, _context):
        for number in range(6):
            yield wrapped(envelope, {"type": "task_progress", "progress": number})
            pause.wait(0.5)
        yield done(envelope)

    with (
        GRPCPeer(lambda _envelope, context: until_cancelled(context), events) as peer,
        AgentClient("grpc", timeout=1) as client,
    ):
        begin = time.monotonic()
        with pytest.raises(TransportTimeoutError):
            client.send_task(peer.url, new_task())
        assert 0.9 < time.monotonic() - begin < case.checks["max_s"]

        assert len(list(client.send_task_streaming(peer.url, new_task()))) == 6


def test_C246_names_with_capitals_and_values_beyond_ascii():
    the_case("C246", outcome="any")
    with GRPCPeer(answer) as peer, AgentClient(GRPCTransport(headers={"X-Tenant": "a"})) as client:
        client.send_task(peer.url, new_task())
    assert peer.metadata[0]["x-tenant"] == "a"

    with pytest.raises(ValueError, match="X-Name"):
        GRPCTransport(headers={"X-Name": "é"})


FORKED = """
import os, sys, warnings
from protolink_sync import AgentClient
from protolink_sync.models import Message, Task

warnings.simplefilter("ignore", DeprecationWarning)
client = AgentClient("grpc")
def call():
    return client.send_task(sys.argv[1], Task.create(Message.user("hi"))).state.value
call()
pid = os.fork()
if pid == 0:
    code = 1
    try:
        code = 0 if call() == "completed" else 1
    finally:
        os._exit(code)
print(call(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_C247_fork_after_use():
    case = the_case("C247", max_s=10)
    with GRPCPeer(answer) as peer:
        begin = time.monotonic()
        assert in_fresh_process(FORKED, peer.url).split() == ["completed", "0"]
        assert time.monotonic() - begin < case.checks["max_s"]


def test_C249_early_break_of_a_stream():
    case = the_case("C249", outcome="yields", max_s=3)

    def events(envelope, context):
        yield wrapped(envelope, {"type": "task_progress"})
        until_cancelled(context)

    with GRPCPeer(stream=events) as peer, AgentClient("grpc") as client:
        begin = time.monotonic()
        for _ in client.send_task_streaming(peer.url, new_task()):
            break

        assert peer.ended.wait(1)
        assert time.monotonic() - begin < case.checks["max_s"]


@pytest.mark.parametrize(
    ("status", "kind", "calls"),
    [
        ("UNAUTHENTICATED", TransportRemoteError, 1),
        ("NOT_FOUND", TransportRemoteError, 1),
        ("INVALID_ARGUMENT", TransportRemoteError, 1),
        ("INTERNAL", TransportRemoteError, 1),
        ("UNAVAILABLE", TransportConnectionError, 2),
        ("RESOURCE_EXHAUSTED", TransportRemoteError, 2),
    ],
)
def test_C252_status_codes_to_errors(status, kind, calls):
    the_case("C252", outcome="raises", error=["remote", "connection"])
    retry = RetryPolicy(max_attempts=2, initial_backoff=0.01, jitter=0)
    with (
        GRPCPeer(lambda _, context: context.abort(grpc.StatusCode[status], "so it is")) as peer,
        AgentClient(GRPCTransport(config=TransportConfig(retry=retry))) as client,
    ):
        with pytest.raises(kind) as caught:
            client.send_task(peer.url, new_task())
        assert len(peer.requests) == calls

        # Not idempotent: sent once in any case.
        with pytest.raises(kind):
            client.compact_history(peer.url)
        assert len(peer.requests) == calls + 1

    assert caught.value.status_code == status
    assert f"{status}: so it is" in str(caught.value)


def test_C255_a_peer_that_is_slow_to_start(unused_port):
    """By default the refused port fails at once; with retries the call waits for the peer."""
    case = the_case("C255", outcome="any", max_s=6)
    port = unused_port()
    url = f"grpc://127.0.0.1:{port}"
    begin = time.monotonic()
    with (
        AgentClient(GRPCTransport(config=TransportConfig(connect_timeout=3))) as client,
        pytest.raises(TransportConnectionError),
    ):
        client.send_task(url, new_task())
    assert time.monotonic() - begin < 1

    retry = RetryPolicy(max_attempts=30, initial_backoff=0.1, max_backoff=0.1)
    transport = GRPCTransport(config=TransportConfig(connect_timeout=3, retry=retry))
    with AgentClient(transport) as client:
        call = Calling(client.send_task, url, new_task())
        assert wait_until(lambda: transport.metrics.retries >= 3)
        with GRPCPeer(answer, port=port):
            assert call.result().state is TaskState.COMPLETED
    assert time.monotonic() - begin < case.checks["max_s"]


def test_C212_credentials_go_as_metadata():
    credentials = {"headers": {"X-API-Key": "key-123"}, "credentials": "tok-123"}
    with GRPCPeer(answer) as peer, AgentClient(GRPCTransport(**credentials)) as client:
        client.send_task(peer.url, new_task())
        with pytest.raises(TransportRemoteError):  # this peer has no card
            client.get_agent_card(peer.url)

    assert len(peer.metadata) == 2
    for metadata in peer.metadata:
        assert metadata["authorization"] == "Bearer tok-123"
        assert metadata["x-api-key"] == "key-123"
