"""client.with_options: calls with other options, over the same connections."""

from __future__ import annotations

import inspect
import pickle
import threading
import time

import pytest

from protolink_sync import AgentCard, CancelToken, RetryPolicy, TransportTimeoutError
from protolink_sync.client import AgentClient
from protolink_sync.errors import CallCancelledError, TransportConnectionError
from protolink_sync.models import Task
from protolink_sync.server import Agent
from protolink_sync.testing import ScriptedTransport, reply
from protolink_sync.transport import CallOptions, HTTPTransport, WebSocketTransport
from tests.aio.silent import SilentPeer
from tests.transport.grpc_peer import GRPCPeer
from tests.transport.scenes import at_once

URL = "http://agent.test"

NO_PAUSE = {"initial_backoff": 0.0, "jitter": 0.0}


class Listening(Agent):
    """Keeps what each request says of itself."""

    def __init__(self) -> None:
        self.heard: list[dict[str, object]] = []
        card = AgentCard("listening", "for tests", "http://127.0.0.1")
        super().__init__(card, authenticate=self.hear)

    def hear(self, environ):
        self.heard.append(environ)
        return "anybody"

    def handle_task(self, task):
        return task.complete("done")


@pytest.fixture
def listening():
    agent = Listening()
    with agent.serve("http://127.0.0.1:0", a2a=True) as server:
        agent.url = server.url
        yield agent


@pytest.fixture
def silent():
    with SilentPeer() as peer:
        yield peer


def refused():
    return TransportConnectionError("refused", retryable=True)


# --- the same connections ------------------------------------------------------------------------


def test_a_view_uses_the_transport_and_its_connection(agent_peer, counting_proxy):
    proxy = counting_proxy(agent_peer.url)
    with AgentClient("http") as client:
        view = client.with_options(timeout=20, headers={"X-Trace": "7"})
        client.get_agent_card(proxy.url)
        view.get_agent_card(proxy.url)
        view.with_options(timeout=10).get_agent_card(proxy.url)

        assert view.transport is client.transport
        assert proxy.total == 1


def test_closing_a_view_closes_nothing(agent_peer):
    with AgentClient("http") as client:
        with client.with_options(timeout=20) as view:
            pass
        view.close()

        assert view.get_agent_card(agent_peer.url) == client.get_agent_card(agent_peer.url)


# --- time ----------------------------------------------------------------------------------------


def test_the_timeout_bounds_every_call_and_a_calls_own_one_wins(silent):
    with AgentClient("http", timeout=30) as client:
        hurried = client.with_options(timeout=0.2)
        calls = [
            lambda: hurried.send_task(silent.url, Task.create("?")),
            lambda: hurried.get_agent_card(silent.url),
            lambda: hurried.cancel_task(silent.url, "t"),
            lambda: hurried.describe_state(silent.url),
            lambda: hurried.peer(silent.url).invoke("?"),
            lambda: hurried.sync.aio.sync.send_infer_task("?", silent.url),
            lambda: hurried.with_options(request_id="r").get_agent_card(silent.url),
            lambda: client.with_options(timeout=9).get_agent_card(silent.url, timeout=0.2),
        ]
        for call in calls:
            begin = time.monotonic()
            with pytest.raises(TransportTimeoutError, match=r"of 0\.2 s"):
                call()
            assert time.monotonic() - begin < 0.2 + at_once()


def test_the_timeout_of_a_stream_is_the_time_to_its_end(start_peer):
    peer = start_peer("sse")
    with AgentClient("sse") as client:
        stream = client.with_options(timeout=0.5).send_task_streaming(
            peer.url, Task.create("slow 100 0.05")
        )
        with pytest.raises(TransportTimeoutError, match=r"of 0\.5 s"):
            list(stream)

        assert stream.events > 1


def test_the_timeout_bounds_the_calls_of_map(silent):
    with AgentClient("http") as client:
        begin = time.monotonic()
        results = list(client.with_options(timeout=0.2).map([Task.create("?")] * 1, silent.url))

    assert isinstance(results[0], TransportTimeoutError)
    assert time.monotonic() - begin < 0.2 + at_once()


# --- tokens --------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["the view's", "the call's", "the outer view's"])
@pytest.mark.parametrize("a2a", [False, True])
def test_either_token_ends_a_call_at_once(silent, which, a2a):
    tokens = {name: CancelToken() for name in ("the view's", "the call's", "the outer view's")}
    with AgentClient("http", a2a=a2a) as client:
        outer = client.with_options(cancel=tokens["the outer view's"])
        view = outer.with_options(cancel=tokens["the view's"])
        moment = []

        def end():
            silent.asked.get(timeout=10)
            moment.append(time.monotonic())
            tokens[which].cancel("enough")

        ending = threading.Thread(target=end)
        ending.start()
        with pytest.raises(CallCancelledError) as caught:
            view.send_task(silent.url, Task.create("?"), cancel=tokens["the call's"])
        over = time.monotonic()
        ending.join()

    assert caught.value.reason == "enough"
    assert over - moment[0] < at_once()


def test_a_call_that_waits_for_another_ones_finding_ends_with_the_views_token(silent):
    """Threads that ask at once which protocol an agent speaks let one of them find out."""
    token = CancelToken()
    with AgentClient("http", a2a=True) as client:
        view = client.with_options(cancel=token)

        def ask():
            with pytest.raises(CallCancelledError):
                view.send_task(silent.url, Task.create("?"))

        first = threading.Thread(target=ask)
        first.start()
        silent.asked.get(timeout=10)
        threading.Timer(0.1, token.cancel).start()
        begin = time.monotonic()
        with pytest.raises(CallCancelledError):
            view.send_task(silent.url, Task.create("?"), cancel=CancelToken())
        first.join()

    assert time.monotonic() - begin < 0.1 + at_once()


def test_a_cancelled_token_sends_nothing_more_and_the_client_goes_on(listening):
    token = CancelToken()
    token.cancel()
    with AgentClient("http") as client:
        with pytest.raises(CallCancelledError):
            client.with_options(cancel=token).send_task(
                listening.url, Task.create("?"), cancel=CancelToken()
            )
        assert listening.heard == []
        assert client.send_task(listening.url, Task.create("?")).text == "done"


def test_a_views_token_holds_no_call_that_is_over():
    token, own = CancelToken(), CancelToken()
    transport = ScriptedTransport(*[reply([]) for _ in range(20)])
    view = AgentClient(transport).with_options(cancel=token)
    for _ in range(20):
        with pytest.raises(Exception, match="shape"):
            view.get_agent_card(URL, cancel=own)

    assert len(token._calls) == len(own._calls) == 0
    assert len(token._callbacks) == len(own._callbacks) == 0


def test_two_tokens_together_are_waited_for_and_tell_once():
    view = AgentClient("http").with_options(cancel=(first := CancelToken()))
    both = view.with_options(cancel=(second := CancelToken()))._options.cancel
    told = []
    both.on_cancel(lambda: told.append(1))
    taken_back = both.on_cancel(lambda: told.append(2))
    taken_back()

    assert not both.wait(0.01)
    second.cancel("second")
    assert both.wait(0.01)
    first.cancel("first")

    assert told == [1]
    assert both.cancelled


# --- headers and ids -----------------------------------------------------------------------------


def test_headers_go_with_calls_and_streams_beside_the_transports(listening):
    with HTTPTransport(headers={"X-Team": "a", "X-Kept": "k"}) as transport:
        client = AgentClient(transport)
        view = client.with_options(headers={"x-team": "b", "X-Trace": "7"})
        view.with_options(headers={"X-TRACE": "8"}).send_task(listening.url, Task.create("?"))
        client.send_task(listening.url, Task.create("?"))

    seen, other = listening.heard
    assert (seen["HTTP_X_TEAM"], seen["HTTP_X_KEPT"], seen["HTTP_X_TRACE"]) == ("b", "k", "8")
    assert (other["HTTP_X_TEAM"], other["HTTP_X_KEPT"]) == ("a", "k")
    assert "HTTP_X_TRACE" not in other


def test_a_stream_and_its_cancel_have_the_headers_too(listening):
    with AgentClient("sse") as client:
        view = client.with_options(headers={"X-Trace": "7"}, request_id="mine")
        with view.send_task_streaming(listening.url, Task.create("?")) as stream:
            stream.result()

    assert listening.heard[0]["HTTP_X_TRACE"] == "7"
    assert listening.heard[0]["HTTP_X_PROTOLINK_REQUEST_ID"] == "mine"


def test_a2a_calls_have_the_headers(listening):
    with AgentClient("http", a2a=True) as client:
        client.with_options(headers={"X-Trace": "7"}).send_task(
            listening.url, Task.create("?"), protocol="a2a"
        )

    assert len(listening.heard) == 1
    assert listening.heard[0]["HTTP_X_TRACE"] == "7"


def test_grpc_carries_the_headers_as_metadata():
    with GRPCPeer() as peer, AgentClient("grpc") as client:
        client.with_options(headers={"X-Trace": "7"}).send_task(peer.url, Task.create("?"))
        metadata = dict(peer.metadata[-1])

    assert metadata["x-trace"] == "7"


@pytest.mark.parametrize("name", ["websocket", "runtime"])
def test_a_transport_that_cannot_send_them_says_so_before_anything_is_sent(name):
    with AgentClient(name) as client:
        view = client.with_options(headers={"X-Trace": "7"})
        url = "ws://127.0.0.1:9" if name == "websocket" else "runtime://nobody"
        for call in (view.send_task, view.send_task_streaming):
            with pytest.raises(ValueError, match=r"no headers with a single call \(X-Trace\)"):
                call(url, Task.create("?"))


def test_operations_keep_the_headers_that_are_theirs(listening):
    with AgentClient("http") as client:
        client.with_options(headers={"accept": "text/html"}).get_agent_card(listening.url)

    assert listening.heard[0]["HTTP_ACCEPT"] == "application/json"


def test_calls_with_one_request_id_are_still_different_calls():
    """The peer answers a key it knows from its memory: another call must not have it."""
    transport = ScriptedTransport(*[reply({"id": name, "state": "canceled"}) for name in "ab"])
    view = AgentClient(transport).with_options(request_id="trace-1")
    view.cancel_task(URL, "a")
    view.cancel_task(URL, "b")

    ids = [call.headers["X-Protolink-Request-ID"] for call in transport.calls]
    keys = [call.headers.get("Idempotency-Key") for call in transport.calls]
    assert ids == ["trace-1", "trace-1"]
    assert len({*keys, "trace-1"}) == 3


# --- retries -------------------------------------------------------------------------------------


def test_the_retry_policy_is_the_views():
    card = AgentCard("a", "b", URL).to_dict()
    transport = ScriptedTransport(refused(), refused(), reply(card), refused())
    client = AgentClient(transport)

    view = client.with_options(retry=RetryPolicy(max_attempts=3, **NO_PAUSE), request_id="r")
    assert view.get_agent_card(URL).name == "a"
    with pytest.raises(TransportConnectionError):
        client.get_agent_card(URL)

    first, second, third, _ = transport.calls
    assert [call.headers["X-Protolink-Request-ID"] for call in (first, second, third)] == ["r"] * 3
    assert len({call.headers.get("Idempotency-Key") for call in (first, second, third)}) == 1


def test_statuses_and_time_of_an_attempt_are_the_policys(silent):
    policy = RetryPolicy(retryable_statuses={418}, attempt_timeout=0.1)
    transport = ScriptedTransport(reply({}, status=418))
    with pytest.raises(Exception, match="418") as caught:
        AgentClient(transport).with_options(retry=policy).get_agent_card(URL)
    assert caught.value.retryable

    with AgentClient("http") as client, pytest.raises(TransportTimeoutError, match="attempt"):
        client.with_options(retry=policy).get_agent_card(silent.url)


# --- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"color": "red"}, TypeError),
        ({"timeout": 0}, ValueError),
        ({"timeout": "1"}, TypeError),
        ({"timeout": True}, TypeError),
        ({"retry": 3}, TypeError),
        ({"cancel": threading.Event()}, TypeError),
        ({"headers": {"Host": "x"}}, ValueError),
        ({"headers": {"X-A": "1\r\nX-B: 2"}}, ValueError),
        ({"headers": {"Idempotency-Key": "x"}}, ValueError),
        ({"request_id": ""}, ValueError),
        ({"request_id": 7}, TypeError),
        ({"request_id": "a\nb"}, ValueError),
        ({"request_id": "a" * 201}, ValueError),
    ],
)
def test_an_option_that_is_wrong_is_told_at_once(options, kind):
    with pytest.raises(kind):
        AgentClient("http").with_options(**options)


def test_options_are_given_by_name():
    parameters = inspect.signature(AgentClient.with_options).parameters

    assert {p.kind for name, p in parameters.items() if name != "self"} == {
        inspect.Parameter.KEYWORD_ONLY
    }
    with pytest.raises(TypeError):
        WebSocketTransport().send(None, options=CallOptions())


def test_a_view_shows_its_options_without_the_values_of_headers():
    view = AgentClient("http").with_options(headers={"X-Pass": "hush"}, timeout=2)

    assert "X-Pass" in repr(view)
    assert "hush" not in repr(view)
    assert "hush" not in repr(view._options)


def test_a_view_travels_to_another_process_with_its_options(listening):
    with AgentClient("http", a2a=True) as client:
        view = client.with_options(headers={"X-Trace": "7"}, timeout=20, request_id="r")
        with pickle.loads(pickle.dumps(view)) as copy:
            copy.send_task(listening.url, Task.create("?"), protocol="protolink")
        copy.transport.close()

    assert listening.heard[0]["HTTP_X_TRACE"] == "7"


@pytest.mark.parametrize(
    "options", [{"cancel": CancelToken()}, {"headers": {"Authorization": "Bearer hush"}}]
)
def test_a_view_with_a_token_or_a_secret_does_not_travel(options):
    with pytest.raises(TypeError) as caught:
        pickle.dumps(AgentClient("http").with_options(**options))

    assert "hush" not in str(caught.value)
