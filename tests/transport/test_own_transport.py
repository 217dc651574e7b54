"""A transport of your own: a codec and two hooks, and everything else comes from the base."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

import attrs
import pytest

from protolink_sync import AgentClient, CancelToken
from protolink_sync.errors import (
    CallCancelledError,
    ClientClosedError,
    TransportConnectionError,
    TransportError,
    TransportLimitError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import Message, Task
from protolink_sync.specs import TASK_REQUEST
from protolink_sync.transport import RetryPolicy, Transport, TransportConfig, TransportLimits
from protolink_sync.transport.base import Call
from protolink_sync.wire import WireReply, WireRequest
from tests.transport.scenes import ASK, ASK_ONCE, Calling, about, failed, wait_until

Step = Callable[[WireRequest, Call], WireReply]


def answer(value: Any, status: int = 200, **headers: str) -> Step:
    body = json.dumps(value).encode()
    return lambda request, call: WireReply(status, "", headers, body)


def refused(request: WireRequest, call: Call) -> WireReply:
    raise TransportConnectionError(f"{request.context.where}: refused", retryable=True)


class Waiting:
    """Something that a call blocks on, as a socket would be."""

    def __init__(self) -> None:
        self.over = threading.Condition()
        self.cuts = 0
        self.returns = 0

    def cut(self) -> None:
        with self.over:
            self.cuts += 1
            self.over.notify_all()

    def take_back(self) -> None:
        self.returns += 1

    def wait(self) -> None:
        with self.over:
            assert self.over.wait_for(lambda: self.cuts, 20)


class ScriptedTransport(Transport):
    """Answer each attempt with the next step of a script; the last one repeats.

    It shows what a transport has to do: encode with the codec's help, send, and give back what
    came. It knows nothing of budgets, slots, retries, credentials or counters.
    """

    transport_type: ClassVar[str] = "scripted"
    schemes: ClassVar[tuple[str, ...]] = ("scripted",)

    def __init__(self, *steps: Step, retry: RetryPolicy | None = None, **settings: Any) -> None:
        settings.setdefault("url", "scripted://peer")
        if retry is not None:
            settings["config"] = TransportConfig(retry=retry)
        super().__init__(**settings)
        self.steps = list(steps)
        self.calls: list[WireRequest] = []
        self.closed = 0

    def _exchange(self, request: WireRequest, deadline: Call) -> WireReply:
        # The context of a call is one object for all attempts.
        self.calls.append(attrs.evolve(request, context=attrs.evolve(request.context)))
        step = self.steps[min(len(self.calls), len(self.steps)) - 1]
        return step(request, deadline)

    def _close(self) -> None:
        self.closed += 1


def blocking(**settings: Any) -> tuple[ScriptedTransport, Waiting]:
    """Return a transport whose calls wait until they are ended."""
    handle = Waiting()

    def step(request: WireRequest, call: Call) -> WireReply:
        call.phase = "wait"
        if call.lend(handle):
            handle.wait()
        raise client._ended(call, request.context)

    client = ScriptedTransport(step, **settings)
    return client, handle


# ---- what comes from the base ------------------------------------------------------------------


def test_a_value_comes_back():
    with ScriptedTransport(answer({"n": 1})) as client:
        assert client.send(ASK, None, {"a": 2}) == {"n": 1}

    (call,) = client.calls
    assert (call.method, call.path, call.body) == ("POST", "/ask", b'{"a":2}')
    assert call.context.url == "scripted://peer"


def test_an_agent_client_works_with_it():
    task = Task.create(Message.user("hi")).complete("hello")

    with ScriptedTransport(answer(task.to_dict())) as transport:
        assert AgentClient(transport).send_task("scripted://peer", task).text == "hello"


def test_a_retry_repeats_the_very_same_call():
    """The peer can only replay a finished task if key and body are unchanged."""
    retry = RetryPolicy(max_attempts=3, initial_backoff=0.01, jitter=0.0)
    submit = attrs.evolve(TASK_REQUEST, response_parser=None)

    with ScriptedTransport(refused, answer({"state": "completed"}), retry=retry) as client:
        result = client.send(submit, None, {"id": "task-1"})

    first, second = client.calls
    assert result == {"state": "completed"}
    assert (first.context.attempt, second.context.attempt) == (1, 2)
    assert attrs.evolve(second, context=first.context) == first
    assert first.headers["Idempotency-Key"].startswith("task-1:")


def test_what_may_not_be_repeated_is_not():
    with ScriptedTransport(refused, retry=RetryPolicy(max_attempts=3)) as client:
        failed(client, ASK_ONCE)

    assert len(client.calls) == 1


def test_errors_are_told_which_call_they_are_about():
    with ScriptedTransport(refused) as client:
        error = failed(client)

    assert type(error) is TransportConnectionError
    assert error.url == "scripted://peer"
    assert error.request_id == client.calls[0].context.request_id
    assert error.elapsed is not None


def test_statuses_become_errors():
    with ScriptedTransport(answer({"detail": "busy"}, 503, **{"retry-after": "2"})) as client:
        error = failed(client)

    assert type(error) is TransportRemoteError
    assert (error.status_code, error.retryable, error.retry_after) == (503, True, 2.0)


def test_a_body_that_is_no_json_is_a_protocol_error():
    with ScriptedTransport(lambda request, call: WireReply(200, "", {}, b"<p>")) as client:
        assert type(failed(client)) is TransportProtocolError


def test_credentials_come_with_each_attempt():
    with ScriptedTransport(answer({}), credentials="s3cr3t") as client:
        client.send(ASK, None, {})

    assert client.calls[0].credentials == {"Authorization": "Bearer s3cr3t"}
    assert "s3cr3t" not in repr(client.calls)


def test_a_request_that_is_too_large_does_not_reach_it():
    config = TransportConfig(limits=TransportLimits(max_request_bytes=10))

    with ScriptedTransport(answer({}), config=config) as client:
        assert type(failed(client, data={"a": "x" * 100})) is TransportLimitError

    assert client.calls == []


def test_an_address_of_another_scheme_does_not_reach_it():
    with ScriptedTransport(answer({})) as client, pytest.raises(ValueError, match="scripted://"):
        client.send(ASK, "http://127.0.0.1:9", {})

    assert client.calls == []


def test_an_error_that_it_does_not_expect_passes_through_and_is_counted():
    def broken(request: WireRequest, call: Call) -> WireReply:
        raise ZeroDivisionError

    with ScriptedTransport(broken) as client:
        with pytest.raises(ZeroDivisionError):
            client.send(ASK, None, {})

        assert client.metrics.requests_failed == 1
        assert client.metrics.active_requests == 0


# ---- ending ------------------------------------------------------------------------------------


def test_the_budget_cuts_what_a_call_blocks_on():
    client, handle = blocking(timeout=0.2)

    with client:
        error = failed(client)

    assert type(error) is TransportTimeoutError
    assert error.phase == "wait"
    assert error.elapsed == about(0.2)
    assert handle.cuts == 1
    assert handle.returns == 1


def test_a_token_cuts_what_a_call_blocks_on():
    client, handle = blocking()
    token = CancelToken()

    with client:
        call = Calling(client.send, ASK, None, {}, cancel=token)
        assert wait_until(lambda: client.calls)
        begin = time.monotonic()
        token.cancel("enough")
        with pytest.raises(CallCancelledError, match="enough"):
            call.result()

    assert time.monotonic() - begin < 0.5
    assert (handle.cuts, handle.returns) == (1, 1)


def test_a_cancelled_token_lets_nothing_begin():
    token = CancelToken()
    token.cancel()

    with ScriptedTransport(answer({})) as client:
        assert type(failed(client, cancel=token)) is CallCancelledError

    assert client.calls == []


def test_closing_cuts_what_calls_block_on():
    client, _ = blocking()
    call = Calling(client.send, ASK, None, {})
    assert wait_until(lambda: client.calls)

    client.close()

    with pytest.raises(ClientClosedError):
        call.result()
    assert client.closed == 1


def test_a_slot_is_given_back_by_whatever_ends_a_call():
    config = TransportConfig(limits=TransportLimits(max_concurrent_requests=1))
    client, _ = blocking(config=config)

    with client:
        for _ in range(3):
            failed(client, timeout=0.05)
        client.steps = [answer({"n": 1})]

        assert client.send(ASK, None, {}) == {"n": 1}


def test_calls_beyond_the_limit_wait_and_their_budget_runs():
    config = TransportConfig(limits=TransportLimits(max_concurrent_requests=1))
    client, handle = blocking(config=config)

    with client:
        first = Calling(client.send, ASK, None, {})
        assert wait_until(lambda: client.calls)
        error = failed(client, timeout=0.2)

        assert type(error) is TransportTimeoutError
        assert error.phase == "slot"
        assert len(client.calls) == 1
        assert handle.cuts == 0
        client.close()
        with pytest.raises(ClientClosedError):
            first.result()


# ---- as a class --------------------------------------------------------------------------------


def test_a_constructor_with_arguments_of_its_own_takes_any():
    with ScriptedTransport(answer({}), timeout=3) as client:
        assert client.timeout == 3


def test_arguments_that_neither_knows_are_refused():
    with pytest.raises(TypeError):
        ScriptedTransport(answer({}), retries=3)


def test_what_it_can_do_is_said_by_attributes_of_the_class():
    with ScriptedTransport(answer({})) as client:
        assert client.transport_type == "scripted"
        assert not client.supports_streaming
        assert client.health()["transport"] == "scripted"
        with pytest.raises(TransportError):
            client.subscribe("scripted://peer", Task.create(Message.user("hi")))
