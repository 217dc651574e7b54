"""Unary calls over gRPC: what goes out, what comes back, and what each status becomes."""

from __future__ import annotations

import json
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time

import grpc
import pytest

from protolink_sync import AgentClient, CancelToken, connect
from protolink_sync.config import RetryPolicy, TransportConfig, TransportLimits
from protolink_sync.errors import (
    AuthenticationError,
    CallCancelledError,
    ClientClosedError,
    TLSVerificationError,
    TransportConnectionError,
    TransportError,
    TransportLimitError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import Message, Task, TaskState
from protolink_sync.security import APIKey, BearerToken, TLSConfig
from protolink_sync.specs import TASK_CANCEL_REQUEST, TASK_REQUEST
from protolink_sync.transport import GRPCTransport, get_transport
from tests.peers import bearer_jwt
from tests.transport.grpc_peer import GRPCPeer, until_cancelled
from tests.transport.scenes import (
    ASK,
    ASK_ONCE,
    LIMIT,
    Calling,
    at_once,
    failed,
    in_fresh_process,
    retrying,
    together,
    wait_until,
)


def text_task(text: str) -> Task:
    return Task.create(Message.user(text))


def answering_with(status: str, words: str = "no"):
    """Return a handler that ends each call with a status."""
    return lambda _envelope, context: context.abort(grpc.StatusCode[status], words)


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_connection_that_no_thread_can_wait_for_is_a_transport_error(monkeypatch, is_stream):
    start = threading.Thread.start

    def refused(thread):
        if thread.name == "protolink-grpc-connect":
            raise RuntimeError("can't start new thread")
        start(thread)

    with AgentClient("grpc") as client, monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        call = client.send_task_streaming if is_stream else client.send_task
        with pytest.raises(TransportError, match="can't start new thread"):
            call("grpc://127.0.0.1:1", text_task("hi"))

        metrics = client.transport.metrics
        assert (metrics.active_requests, metrics.active_streams) == (0, 0)


# ---- a real agent ------------------------------------------------------------------------------


def test_the_operations_of_the_document(shared_peer):
    url = shared_peer("grpc").url
    with AgentClient("grpc", url) as client:
        task = client.send_task(url, text_task("echo hi"))

        assert task.get_last_part_content() == "hi"
        assert client.get_agent_card(url).name == "grpc_agent"
        assert client.send_infer_task("hello", url).state is TaskState.COMPLETED
        assert client.describe_state(url).operation == "describe"


def test_an_error_of_the_handler_is_told(shared_peer):
    url = shared_peer("grpc").url
    with AgentClient("grpc") as client, pytest.raises(TransportRemoteError) as caught:
        client.send_task(url, text_task("raise kaput"))

    assert caught.value.error_type == "RuntimeError"
    assert caught.value.error_message == "kaput"
    assert not caught.value.retryable


def test_a_task_is_cancelled_while_it_runs(shared_peer):
    url = shared_peer("grpc").url
    task = text_task("wait 20")
    with AgentClient("grpc") as client:
        running = Calling(client.send_task, url, task)

        def cancelled():
            try:
                return client.cancel_task(url, task.id, reason="enough")
            except TransportRemoteError:  # it has not begun yet
                return None

        assert wait_until(cancelled)
        assert running.result().state is TaskState.CANCELED


@pytest.mark.parametrize(
    ("options", "credentials"),
    [
        (("--bearer", "secret"), BearerToken(bearer_jwt("secret"))),
        (("--api-key", "k1"), APIKey("k1")),
    ],
)
def test_credentials_go_as_metadata(shared_peer, options, credentials):
    url = shared_peer("grpc", *options).url
    with AgentClient(GRPCTransport(credentials=credentials)) as client:
        assert client.get_agent_card(url).name == "grpc_agent"
    with AgentClient("grpc") as client, pytest.raises(AuthenticationError) as caught:
        client.get_agent_card(url)
    assert caught.value.status_code == "UNAUTHENTICATED"


def test_connect_chooses_it(shared_peer):
    with connect(shared_peer("grpc").url) as agent:
        assert agent.run_task(text_task("echo hi")).state is TaskState.COMPLETED
        assert agent.client.transport.transport_type == "grpc"


# ---- what goes out -----------------------------------------------------------------------------


def test_a_call_says_who_it_is():
    with GRPCPeer() as peer, GRPCTransport(peer.url, headers={"X-Tenant": "a"}) as client:
        client.send(ASK, None, {"question": 1})

    [envelope], [metadata] = peer.requests, peer.metadata
    assert envelope["data"] == {"question": 1}
    assert (envelope["method"], envelope["path"]) == ("POST", "/ask")
    assert metadata["x-protolink-request-id"] == envelope["id"]
    assert metadata["idempotency-key"] == envelope["idempotency_key"] == envelope["id"]
    assert metadata["x-tenant"] == "a"
    assert metadata["user-agent"].startswith("protolink-sync/")


def test_the_peer_is_told_the_budget():
    left: list[float] = []
    with (
        GRPCPeer(lambda _envelope, context: left.append(context.time_remaining())) as peer,
        GRPCTransport(peer.url) as client,
    ):
        client.send(ASK, None, {}, timeout=7.0)

    assert 6.0 < left[0] <= 7.1


@pytest.mark.parametrize(
    ("name", "value"),
    [("X-Name", "é"), ("X-Name", "a\tb"), ("x-trace-bin", "a"), ("grpc-x", "a"), ("X!Y", "a")],
)
def test_what_grpc_does_not_carry_is_refused_at_once(name, value):
    with pytest.raises(ValueError, match=r"headers=") as caught:
        GRPCTransport(headers={name: value})

    assert value == "a" or repr(value) not in str(caught.value)


def test_a_user_agent_of_the_caller_is_sent_once():
    with GRPCPeer() as peer, GRPCTransport(peer.url, headers={"User-Agent": "mine/1"}) as client:
        client.send(ASK, None, {})

    assert peer.metadata[0]["user-agent"].startswith("mine/1 ")


def test_credentials_that_grpc_does_not_carry_are_not_shown():
    client = GRPCTransport("grpc://127.0.0.1:9", credentials=lambda _origin, _again: {"a!": "s3"})
    with client, pytest.raises(ValueError, match=r"'a!'") as caught:
        client.send(ASK, None, {})

    assert "s3" not in str(caught.value)


def test_stale_credentials_are_renewed_once():
    asked: list[bool] = []

    def credentials(_origin, refresh):
        asked.append(refresh)
        return {"Authorization": f"Bearer {'new' if refresh else 'old'}"}

    def answer(_envelope, context):
        if dict(context.invocation_metadata())["authorization"] != "Bearer new":
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "stale")
        return "welcome"

    with GRPCPeer(answer) as peer, GRPCTransport(peer.url, credentials=credentials) as client:
        assert client.send(ASK, None, {}) == "welcome"

    assert asked == [False, True]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("grpc://host", "no port"),
        ("grpc://host:1/path", "a path"),
        ("http://host:1", "grpc:// or grpcs://"),
    ],
)
def test_addresses_that_are_none(url, words):
    with pytest.raises(ValueError, match=words):
        GRPCTransport(url)


def test_host_names_of_a_certificate_are_always_checked(tls_files):
    with pytest.raises(ValueError, match="check_hostname"):
        GRPCTransport(tls=TLSConfig(cafile=tls_files.ca, check_hostname=False))


# ---- what comes back ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        ("UNAUTHENTICATED", AuthenticationError, False),
        ("PERMISSION_DENIED", AuthenticationError, False),
        ("NOT_FOUND", TransportRemoteError, False),
        ("INVALID_ARGUMENT", TransportRemoteError, False),
        ("UNIMPLEMENTED", TransportRemoteError, False),
        ("INTERNAL", TransportRemoteError, False),
        ("UNKNOWN", TransportRemoteError, False),
        ("ABORTED", TransportRemoteError, False),
        ("CANCELLED", TransportRemoteError, False),
        ("UNAVAILABLE", TransportConnectionError, True),
        ("RESOURCE_EXHAUSTED", TransportRemoteError, True),
        ("DEADLINE_EXCEEDED", TransportTimeoutError, False),
    ],
)
@pytest.mark.parametrize("token", [None, CancelToken()], ids=["plain", "token"])
def test_statuses_are_typed(status, kind, retryable, token):
    with GRPCPeer(answering_with(status, "look\nhere")) as peer, GRPCTransport(peer.url) as client:
        error = failed(client, cancel=token)

    assert type(error) is kind
    assert error.status_code == status
    assert error.retryable is retryable
    assert f"{status}: look here" in str(error)
    assert (error.url, len(error.request_id)) == (peer.url, 32)


@pytest.mark.parametrize(
    ("status", "spec", "calls"),
    [
        ("UNAVAILABLE", ASK, 3),
        ("RESOURCE_EXHAUSTED", ASK, 3),
        ("UNAVAILABLE", ASK_ONCE, 1),
        ("INTERNAL", ASK, 1),
    ],
)
def test_only_what_may_be_is_sent_again(status, spec, calls):
    with (
        GRPCPeer(answering_with(status)) as peer,
        GRPCTransport(peer.url, config=retrying()) as client,
    ):
        error = failed(client, spec)

    assert len(peer.requests) == error.attempt_count == calls
    assert len({json.dumps(request) for request in peer.requests}) == 1


def test_a_large_answer_is_taken():
    """grpcio's own limit is 4 MiB."""
    with GRPCPeer(lambda *_: "x" * (6 << 20)) as peer, GRPCTransport(peer.url) as client:
        assert len(client.send(ASK, None, {})) == 6 << 20


def test_an_answer_beyond_the_limit():
    limits = TransportLimits(max_response_bytes=10_000)
    with (
        GRPCPeer(lambda *_: "x" * 20_000) as peer,
        GRPCTransport(peer.url, config=TransportConfig(limits=limits)) as client,
    ):
        error = failed(client)

    assert type(error) is TransportLimitError
    assert "max_response_bytes" in str(error)


def test_sizes_that_no_number_has_are_words_of_the_peer():
    # No longer: of words beyond 8 KB grpcio refuses some at random.
    words = f"Received message larger than max ({'9' * 5000} vs. 5)"
    with (
        GRPCPeer(answering_with("RESOURCE_EXHAUSTED", words)) as peer,
        GRPCTransport(peer.url) as client,
    ):
        error = failed(client)

    assert type(error) is TransportRemoteError
    assert "larger than max" in str(error)


def test_a_request_beyond_the_peers_limit(start_peer):
    url = start_peer("grpc", "--limit", "max_request_bytes=2000").url
    with AgentClient("grpc") as client, pytest.raises(TransportRemoteError) as caught:
        client.send_task(url, text_task("echo " + "x" * 5000))

    assert caught.value.status_code == "RESOURCE_EXHAUSTED"
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"nope", "not JSON"),
        (b"[]", "no envelope"),
        (b'{"id":"other","ok":true,"result":1}', "id 'other'"),
        (b"", "not JSON"),
    ],
)
def test_an_answer_of_the_wrong_shape(answer, words):
    with GRPCPeer(lambda *_: answer) as peer, GRPCTransport(peer.url) as client:
        error = failed(client)

    assert type(error) is TransportProtocolError
    assert words in str(error)


# ---- connecting --------------------------------------------------------------------------------


def test_nobody_listens(unused_port):
    begin = time.monotonic()
    with GRPCTransport(f"grpc://127.0.0.1:{unused_port()}") as client:
        error = failed(client)

    assert type(error) is TransportConnectionError
    assert error.retryable
    assert error.phase == "connect"
    assert time.monotonic() - begin < 5


def test_a_peer_that_starts_late_is_reached_by_retries(unused_port):
    """By default a refused port fails at once; a pause of grpcio's own must not get in the way."""
    port = unused_port()
    config = retrying(20, initial_backoff=0.05, max_backoff=0.05)
    with GRPCTransport(f"grpc://127.0.0.1:{port}", config=config) as client:
        failed(client, ASK_ONCE)
        call = Calling(client.send, ASK, None, {})
        wait_until(lambda: client.metrics.retries > 2)
        with GRPCPeer(lambda *_: "here", port=port):
            assert call.result() == "here"


def test_a_new_peer_at_the_old_port_is_reached_at_once():
    with GRPCPeer(lambda *_: 1) as peer, GRPCTransport(peer.url) as client:
        assert client.send(ASK, None, {}) == 1
        peer.stop()
        failed(client)
        with GRPCPeer(lambda *_: 2, port=peer.port):
            assert client.send(ASK, None, {}) == 2


@pytest.mark.parametrize("scheme", ["grpc", "grpcs"])
def test_a_port_that_says_nothing(scheme):
    config = TransportConfig(connect_timeout=0.3)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        GRPCTransport(f"{scheme}://127.0.0.1:{silent.getsockname()[1]}", config=config) as client,
    ):
        error = failed(client)

    assert type(error) is TransportTimeoutError
    assert (error.phase, error.retryable) == ("connect", True)
    assert "connect_timeout" in str(error)
    assert error.elapsed < 1.5


@pytest.mark.parametrize("how", ["timeout", "token", "close"])
def test_a_call_ends_at_once_while_it_connects(how):
    token = CancelToken()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        # The oldest grpcio lets go of a socket only when its attempt to connect is over.
        config = TransportConfig(connect_timeout=1.5)
        client = GRPCTransport(f"grpc://127.0.0.1:{silent.getsockname()[1]}", config=config)
        timeout = 0.3 if how == "timeout" else LIMIT
        call = Calling(failed, client, timeout=timeout, cancel=token)
        peer, _ = silent.accept()
        end = {"timeout": lambda: None, "token": token.cancel, "close": client.close}[how]
        begin = time.monotonic()
        end()
        error = call.result()
        took = time.monotonic() - begin
        peer.close()
        client.close()

    kinds = {
        "timeout": TransportTimeoutError,
        "token": CallCancelledError,
        "close": ClientClosedError,
    }
    assert type(error) is kinds[how]
    assert took < (2.0 if how == "timeout" else 1.0)


def test_a_port_that_speaks_http_1():
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            sock, _ = listener.accept()
            with sock:
                sock.recv(100)
                sock.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                sock.recv(100)

        thread = threading.Thread(target=serve)
        thread.start()
        with GRPCTransport(f"grpc://127.0.0.1:{listener.getsockname()[1]}") as client:
            error = failed(client)
        thread.join(LIMIT)

    assert type(error) is TransportProtocolError
    assert "does not speak gRPC" in str(error)


# ---- TLS ---------------------------------------------------------------------------------------


def test_tls_to_a_real_agent(shared_peer, tls_files):
    url = shared_peer("grpc", "--cert", tls_files.server_cert, "--key", tls_files.server_key).url
    assert url.startswith("grpcs://")

    with AgentClient(GRPCTransport(tls=TLSConfig(cafile=tls_files.ca))) as client:
        assert client.send_task(url, text_task("echo hi")).get_last_part_content() == "hi"
    with AgentClient("grpc") as client, pytest.raises(TLSVerificationError) as caught:
        client.send_task(url, text_task("echo hi"))
    assert not caught.value.retryable


def test_the_environment_names_the_authority(shared_peer, tls_files, monkeypatch):
    url = shared_peer("grpc", "--cert", tls_files.server_cert, "--key", tls_files.server_key).url
    monkeypatch.setenv("SSL_CERT_FILE", tls_files.ca)

    with AgentClient("grpc") as client:
        assert client.get_agent_card(url).name == "grpc_agent"
    with AgentClient(GRPCTransport(trust_env=False)) as client, pytest.raises(TLSVerificationError):
        client.get_agent_card(url)


def test_both_sides_show_certificates(shared_peer, tls_files):
    url = shared_peer(
        "grpc",
        *("--cert", tls_files.server_cert),
        *("--key", tls_files.server_key),
        *("--ca", tls_files.ca),
    ).url
    whole = TLSConfig(tls_files.client_cert, tls_files.client_key, tls_files.ca)

    with AgentClient(GRPCTransport(tls=whole)) as client:
        assert client.get_agent_card(url).name == "grpc_agent"
    with (
        AgentClient(GRPCTransport(tls=TLSConfig(cafile=tls_files.ca))) as client,
        pytest.raises(TransportConnectionError, match="client certificate"),
    ):
        client.get_agent_card(url)


def test_files_that_are_no_certificates_are_named(tls_files, tmp_path):
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    with (
        GRPCTransport("grpcs://127.0.0.1:9", tls=TLSConfig(cafile=wrong)) as client,
        pytest.raises(ValueError, match=r"cafile.*wrong\.pem"),
    ):
        client.send(ASK, None, {})


def test_a_port_without_tls():
    with GRPCPeer() as peer, GRPCTransport(peer.url.replace("grpc:", "grpcs:")) as client:
        error = failed(client)

    assert type(error) is TransportConnectionError
    assert not error.retryable or "Socket closed" in str(error)


# ---- ending a call -----------------------------------------------------------------------------


@pytest.mark.parametrize("token", [None, CancelToken()], ids=["plain", "token"])
def test_a_budget_ends_the_call_and_the_peer_knows(token):
    with (
        GRPCPeer(lambda _envelope, context: until_cancelled(context)) as peer,
        GRPCTransport(peer.url) as client,
    ):
        error = failed(client, timeout=0.3, cancel=token)

        assert type(error) is TransportTimeoutError
        assert 0.25 < error.elapsed < 2
        assert error.phase == "wait"
        assert not error.retryable
        assert "timeout of 0.3 s" in str(error)
        assert peer.ended.wait(1)


def test_a_token_ends_a_call_at_once():
    token = CancelToken()
    with (
        GRPCPeer(lambda _envelope, context: until_cancelled(context)) as peer,
        GRPCTransport(peer.url) as client,
    ):
        call = Calling(failed, client, cancel=token)
        assert peer.arrived.acquire(timeout=LIMIT)
        begin = time.monotonic()
        token.cancel("enough")

        error = call.result()

        assert time.monotonic() - begin < at_once()
        assert type(error) is CallCancelledError
        assert error.reason == "enough"
        assert peer.ended.wait(1)


@pytest.mark.parametrize("token", [None, CancelToken()], ids=["plain", "token"])
def test_closing_ends_calls_at_once(token):
    with GRPCPeer(lambda _envelope, context: until_cancelled(context)) as peer:
        client = GRPCTransport(peer.url)
        call = Calling(failed, client, cancel=token)
        assert peer.arrived.acquire(timeout=LIMIT)
        begin = time.monotonic()
        client.close()

        assert type(call.result()) is ClientClosedError
        assert time.monotonic() - begin < at_once()
        assert type(failed(client)) is ClientClosedError


def test_an_attempt_of_a_submission_that_timed_out_is_not_repeated():
    """The peer cancelled the task with the attempt, and would run it again."""
    config = TransportConfig(retry=RetryPolicy(max_attempts=3, attempt_timeout=0.2, jitter=0))
    with (
        GRPCPeer(lambda _envelope, context: until_cancelled(context)) as peer,
        GRPCTransport(peer.url, config=config) as client,
    ):
        error = failed(client, TASK_REQUEST, data=text_task("wait"))
        assert (len(peer.requests), error.retryable) == (1, False)

        error = failed(client, TASK_CANCEL_REQUEST, data={"id": "t"})
        assert len(peer.requests) == 1 + 3


def test_a_cancelled_call_does_not_harm_the_others():
    token = CancelToken()

    def answer(envelope, context):
        if envelope["data"]["wait"]:
            until_cancelled(context)
        return envelope["data"].get("number")

    with GRPCPeer(answer) as peer, GRPCTransport(peer.url) as client:
        waiting = Calling(failed, client, data={"wait": True}, cancel=token)
        assert peer.arrived.acquire(timeout=LIMIT)
        assert together(
            8, lambda number: client.send(ASK, None, {"wait": False, "number": number})
        ) == list(range(8))
        token.cancel()
        assert type(waiting.result()) is CallCancelledError
        assert client.send(ASK, None, {"wait": False, "number": 9}) == 9


def test_many_calls_use_one_connection(shared_peer, counting_proxy):
    proxy = counting_proxy(shared_peer("grpc").url)
    with AgentClient("grpc") as client:
        together(8, lambda _: [client.get_agent_card(proxy.url) for _ in range(10)])

        assert proxy.total == 1
    assert wait_until(lambda: proxy.open == 0, 1)


def test_a_dropped_transport_leaves_no_connection(shared_peer, counting_proxy):
    proxy = counting_proxy(shared_peer("grpc").url)
    client = AgentClient("grpc")
    client.get_agent_card(proxy.url)
    assert proxy.open == 1
    del client

    assert wait_until(lambda: proxy.open == 0, 1)


# ---- the transport itself ----------------------------------------------------------------------


def test_what_it_says_of_itself():
    client = get_transport("grpc", url="grpc://127.0.0.1:1/", timeout=5)

    assert client.url == "grpc://127.0.0.1:1"
    assert client.capabilities.to_dict() == {
        "networked": True,
        "streaming": True,
        "tls": True,
        "bidirectional": False,
        "persistent_connections": True,
    }
    assert client.health()["status"] == "ready"
    client.close()
    assert client.health()["status"] == "stopped"


def test_it_can_be_pickled_after_use():
    with GRPCPeer(lambda *_: 1) as peer:
        client = GRPCTransport(peer.url, 7, headers={"a": "b"}, trust_env=False)
        client.send(ASK, None, {})
        copy = pickle.loads(pickle.dumps(client))
        with client, copy:
            assert (copy.url, copy.timeout) == (peer.url, 7)
            assert copy.send(ASK, None, {}) == 1


def test_it_counts():
    def answer(envelope, context):
        return until_cancelled(context) if envelope["data"] else 1

    with GRPCPeer(answer) as peer, GRPCTransport(peer.url) as client:
        client.send(ASK, None, {})
        failed(client, data={"wait": True}, timeout=0.1)
        metrics = client.metrics

    assert (metrics.requests_started, metrics.requests_succeeded) == (2, 1)
    assert metrics.bytes_received > 0


def test_without_grpcio_one_is_told_what_to_install():
    program = """
    import sys
    sys.modules["grpc"] = None
    from protolink_sync import AgentClient
    from protolink_sync.transport import GRPCTransport
    for make in (GRPCTransport, lambda: AgentClient("grpc")):
        try:
            make()
        except ImportError as error:
            print(error)
    """
    told = in_fresh_process(program)

    assert told == "GRPCTransport needs grpcio: install protolink-sync[grpc]\n" * 2


def test_making_one_opens_nothing():
    program = """
    import os, threading
    from protolink_sync.transport import GRPCTransport
    before = len(os.listdir("/proc/self/fd"))
    client = GRPCTransport("grpc://127.0.0.1:1")
    print(len(os.listdir("/proc/self/fd")) - before, threading.active_count())
    """
    assert in_fresh_process(program).split() == ["0", "1"]


INTERRUPTED = """
import signal, sys, time
from protolink_sync import AgentClient, CancelToken
from protolink_sync.models import Message, Task

# A process started in the background of a shell ignores the signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
client = AgentClient("grpc")
token = CancelToken() if sys.argv[2] == "token" else None
try:
    client.send_task(sys.argv[1], Task.create(Message.user("hi")), cancel=token)
except KeyboardInterrupt:
    print("interrupted", flush=True)
sys.stdin.read()
"""


def test_a_call_goes_on_beside_one_that_lost_the_connection_by_its_status():
    """Nobody begins on that connection any more; who is at it may still be answered."""
    goes_on = threading.Event()

    def answer(envelope, context):
        if envelope["data"]["id"] == "lost":
            context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")
        assert goes_on.wait(LIMIT)
        return envelope["data"]

    with GRPCPeer(answer) as peer, AgentClient("grpc") as client:
        try:
            other = Calling(client.send_task, peer.url, Task(id="other"))
            assert peer.arrived.acquire(timeout=LIMIT)
            with pytest.raises(TransportConnectionError):
                client.send_task(peer.url, Task(id="lost"))
        finally:
            goes_on.set()

        assert other.result().id == "other"


# Ctrl-C where grpcio has taken an event and enters a lock to say so: it waits for that one again.
BETWEEN = """
import linecache, sys

def watch(frame, event, arg):
    outer = frame.f_back
    if frame.f_code.co_name == "__enter__" and "next_event()" in linecache.getline(
        outer.f_code.co_filename, outer.f_lineno
    ):
        sys.settrace(None)
        raise KeyboardInterrupt

sys.settrace(watch)
"""


@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "TimeoutError"])
@pytest.mark.parametrize("ended_by", ["budget", "token"])
def test_what_a_handler_raises_where_grpcio_waits_lets_nothing_hang(ended_by, raised):
    program = (BETWEEN + INTERRUPTED).replace("KeyboardInterrupt", raised)
    with GRPCPeer() as peer:
        done = subprocess.run(
            [sys.executable, "-c", program, peer.url, ended_by],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=20,
        )

    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


@pytest.mark.parametrize("ended_by", ["budget", "token"])
def test_ctrl_c_ends_a_call_here_and_at_the_peer(ended_by):
    with GRPCPeer(lambda _envelope, context: until_cancelled(context)) as peer:
        process = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED, peer.url, ended_by],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with process:
            try:
                assert peer.arrived.acquire(timeout=LIMIT)
                begin = time.monotonic()
                process.send_signal(signal.SIGINT)

                assert process.stdout.readline() == "interrupted\n"
                assert time.monotonic() - begin < 1
                assert peer.ended.wait(1)
            finally:
                process.kill()
