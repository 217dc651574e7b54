"""Every failure is the same typed error on every transport (wire/protolink.md 10, 11, 13)."""

from __future__ import annotations

import errno
import math
import pickle
import threading
import time

import pytest

from protolink_sync import APIKey, BasicAuth, BearerToken, CancelToken
from protolink_sync.config import RetryPolicy, TransportConfig, TransportLimits
from protolink_sync.errors import (
    AuthenticationError,
    CallCancelledError,
    ClientClosedError,
    TransportConnectionError,
    TransportError,
    TransportLimitError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import ClientRequestSpec, Message, Task
from tests.conformance.sides import KEY, PASSWORD, SIDES, TOKEN, USER
from tests.conformance.test_operations import task

# --- the peer's errors --------------------------------------------------------------------------

REMOTE = {
    "a handler that raises": lambda c, url: c.send_task(url, task("raise boom")),
    "a cancel of an unknown task": lambda c, url: c.cancel_task(url, "nobody"),
    "an unknown operation": lambda c, url: c.transport.send(
        ClientRequestSpec("nope", "/nope", "GET", None, "none"), url
    ),
    "a wrong method": lambda c, url: c.transport.send(
        ClientRequestSpec("nope", "/tasks/", "GET", None, "none"), url
    ),
    "a task in an unknown state": lambda c, url: c.transport.send(
        ClientRequestSpec("task", "/tasks/", "POST"), url, {"state": "bogus"}
    ),
    "a body that is no object": lambda c, url: c.transport.send(
        ClientRequestSpec("task", "/tasks/", "POST"), url, [1, 2]
    ),
    "no body": lambda c, url: c.transport.send(ClientRequestSpec("task", "/tasks/", "POST"), url),
    "an unknown strategy": lambda c, url: c.transport.send(
        ClientRequestSpec("compact", "/llm/history/compact", "POST"), url, {"strategy": "all"}
    ),
}


def test_what_the_agent_cannot_do_is_a_remote_error(stage):
    for name, call in REMOTE.items():
        if name == "a task in an unknown state" and stage.side.takes_unknown_states:
            continue
        client = stage.client()

        with pytest.raises(TransportRemoteError) as caught:
            call(client, stage.url)

        error = caught.value
        assert type(error) is TransportRemoteError, name
        assert isinstance(error, RuntimeError), name
        assert (error.url, error.retryable) == (stage.url, False), name
        assert len(error.request_id or "") == 32, name
        assert stage.url in str(error), name
        assert (error.status_code is not None) == stage.side.statuses, name
        assert str(pickle.loads(pickle.dumps(error))) == str(error), name
        metrics = client.transport.metrics
        assert (metrics.requests_started, metrics.requests_failed) == (1, 1), name


def test_a_call_after_an_agents_error_is_not_hit_by_it(stage, client):
    """uvicorn closes the connection after each 500, a moment later and without saying so."""
    for number in range(50):
        with pytest.raises(TransportRemoteError):
            client.send_task(stage.url, task("raise boom"))
        assert client.send_task(stage.url, task(f"echo {number}")).text == str(number)


def test_a_task_at_its_end_cannot_be_cancelled(stage, client):
    done = client.send_task(stage.url, task("echo x"))

    with pytest.raises(TransportRemoteError):
        client.cancel_task(stage.url, done.id)


def test_the_agents_words_are_in_the_error_where_it_gives_any(stage, client):
    if not stage.side.reasons:
        pytest.skip("this agent's answer to everything is a bare 500")

    with pytest.raises(TransportRemoteError, match="nobody") as caught:
        client.cancel_task(stage.url, "nobody")

    assert "nobody" in (caught.value.error_message or "")


def test_the_agents_own_fault_is_not_told_to_the_caller(stage, client):
    """But in the process itself, or over a wire that has always told it."""
    with pytest.raises(TransportRemoteError) as caught:
        client.send_task(stage.url, task("raise the secret of the house"))

    if stage.side.statuses:
        assert "secret" not in str(caught.value)
        assert caught.value.status_code == 500


def test_an_answer_of_the_wrong_shape_is_a_protocol_error(stage, client):
    spec = ClientRequestSpec("card", "/.well-known/agent.json", "GET", parser, "none")

    with pytest.raises(TransportProtocolError, match=r"wrong shape.*\$\.messages"):
        client.transport.send(spec, stage.url)


def parser(value: dict[str, object]) -> Task:
    return Task.from_dict({"messages": value})


# --- connections --------------------------------------------------------------------------------


def test_nobody_there_is_a_connection_error(stage, client):
    url = stage.nobody()

    with pytest.raises(TransportConnectionError) as caught:
        client.send_task(url, task("echo x"))

    error = caught.value
    assert isinstance(error, ConnectionError)
    assert (error.retryable, error.status_code, error.url) == (True, stage.side.nobody, url)
    if client.transport.capabilities.networked and stage.side.nobody is None:
        assert error.errno == errno.ECONNREFUSED


def test_a_connection_that_failed_is_tried_as_often_as_the_policy_says(stage):
    retry = RetryPolicy(max_attempts=3, initial_backoff=0.001, jitter=0)
    client = stage.client(config=TransportConfig(retry=retry))

    with pytest.raises(TransportConnectionError) as caught:
        client.get_agent_card(stage.nobody())

    assert caught.value.attempt_count == 3
    assert [type(error) for error in caught.value.attempts] == [TransportConnectionError] * 2
    metrics = client.transport.metrics
    assert (metrics.requests_started, metrics.retries, metrics.requests_failed) == (1, 2, 1)


def test_what_is_not_idempotent_is_not_tried_again(stage):
    retry = RetryPolicy(max_attempts=3, initial_backoff=0.001, jitter=0)
    client = stage.client(config=TransportConfig(retry=retry))

    with pytest.raises(TransportConnectionError) as caught:
        client.reset_state(stage.nobody())

    assert caught.value.attempt_count == 1
    assert client.transport.metrics.retries == 0


def test_an_agents_error_is_not_tried_again(stage):
    """500 is this peer's answer to everything."""
    retry = RetryPolicy(max_attempts=3, initial_backoff=0.001, jitter=0)
    client = stage.client(config=TransportConfig(retry=retry))

    with pytest.raises(TransportRemoteError):
        client.send_task(stage.url, task("raise boom"))

    assert client.transport.metrics.retries == 0


# --- time ---------------------------------------------------------------------------------------


def test_a_budget_ends_the_call(stage, client):
    sent = task("wait 30")
    before = time.monotonic()

    with pytest.raises(TransportTimeoutError, match="The task may be running") as caught:
        client.send_task(stage.url, sent, timeout=0.3)

    took = time.monotonic() - before
    error = caught.value
    assert 0.3 <= took < 5
    assert isinstance(error, TimeoutError)
    assert (error.retryable, error.phase, error.errno) == (False, "wait", errno.ETIMEDOUT)
    assert "0.3" in str(error)
    stage.end(sent.id)
    assert client.send_task(stage.url, task("echo next")).text == "next"


def test_a_token_ends_the_call(stage, client):
    token, sent = CancelToken(), task("wait 30")
    timer = threading.Timer(0.2, token.cancel, ["enough"])
    timer.start()

    with pytest.raises(CallCancelledError, match="enough") as caught:
        client.send_task(stage.url, sent, cancel=token)

    timer.join()
    assert not isinstance(caught.value, TransportError)
    assert (caught.value.reason, caught.value.url) == ("enough", stage.url)
    stage.end(sent.id)
    assert client.send_task(stage.url, task("echo next")).text == "next"


def test_a_cancelled_token_sends_nothing(stage, client):
    token, sent = CancelToken(), task("count")
    token.cancel()

    with pytest.raises(CallCancelledError):
        client.send_task(stage.url, sent, cancel=token)

    assert client.send_task(stage.url, sent).text == "1 executions, 1 messages"


def test_closing_ends_the_call(stage):
    client, sent = stage.client(), task("wait 30")
    timer = threading.Timer(0.2, client.transport.close)
    timer.start()

    with pytest.raises(ClientClosedError):
        client.send_task(stage.url, sent)

    timer.join()
    with pytest.raises(ClientClosedError):
        client.get_agent_card(stage.url)
    stage.end(sent.id)


def test_infinity_is_no_bound(stage, client):
    assert client.send_task(stage.url, task("echo x"), timeout=math.inf).text == "x"


# --- limits -------------------------------------------------------------------------------------


def limited(**limits: int) -> TransportConfig:
    return TransportConfig(limits=TransportLimits(**limits))


def test_a_request_over_our_limit_is_refused_before_it_is_sent(stage):
    client = stage.client(config=limited(max_request_bytes=2000))

    with pytest.raises(TransportLimitError, match="max_request_bytes") as caught:
        client.send_task(stage.nobody(), task("echo " + "x" * 3000))

    assert isinstance(caught.value, ValueError)
    assert caught.value.retryable is False
    assert client.transport.metrics.requests_started == 0
    assert client.send_task(stage.url, task("echo x")).text == "x"


def test_an_answer_over_our_limit_is_refused(stage):
    client = stage.client(config=limited(max_response_bytes=20_000))

    with pytest.raises(TransportLimitError, match=r"limit is 20000.*max_response_bytes") as caught:
        client.send_task(stage.url, task("big 50000"))

    assert caught.value.retryable is False
    assert client.send_task(stage.url, task("echo next")).text == "next"


def test_an_answer_within_the_default_limit_is_whole(stage, client):
    assert len(client.send_task(stage.url, task("big 3000000")).text) == 3_000_000


def test_a_large_request_is_whole(stage, client):
    assert len(client.send_task(stage.url, task("echo " + "y" * 3_000_000)).text) == 3_000_000


def test_a_request_over_the_agents_limit_is_its_error(stage, client):
    url = stage.agent(max_request_bytes=5000)

    expected = TransportConnectionError if stage.side.cuts_oversize else TransportRemoteError
    with pytest.raises(expected) as caught:
        client.send_task(url, task("echo " + "x" * 10_000))

    assert caught.value.retryable is False
    assert stage.client().send_task(url, task("echo x")).text == "x"


def test_an_answer_over_the_agents_limit_is_its_error(stage, client):
    url = stage.agent(max_response_bytes=5000)

    with pytest.raises(TransportRemoteError):
        client.send_task(url, task("big 10000"))

    assert stage.client().send_task(url, task("echo x")).text == "x"


def test_calls_over_the_number_at_a_time_wait_their_turn(stage):
    client = stage.client(config=limited(max_concurrent_requests=1))
    sent = task("wait 30")
    results: list[str] = []
    first = threading.Thread(target=lambda: results.append(client.send_task(stage.url, sent).text))
    first.start()
    other = stage.client()
    while not client.transport.metrics.active_requests:
        threading.Event().wait(0.005)

    with pytest.raises(TransportTimeoutError) as caught:
        client.send_task(stage.url, task("echo x"), timeout=0.1)

    assert caught.value.phase == "slot"
    assert "may be running" not in str(caught.value)
    stage.cancel_when_running(other, sent.id)
    first.join(30)
    assert client.send_task(stage.url, task("echo next")).text == "next"


# --- authentication -----------------------------------------------------------------------------

HOLDERS = {
    "key": [APIKey(KEY)],
    "bearer": [BearerToken(TOKEN), TOKEN],
    "basic": [BasicAuth(USER, PASSWORD)],
}
STRANGERS = [None, APIKey("wrong"), BearerToken("wrong"), BasicAuth(USER, "wrong"), {}]


def test_every_side_without_credentials_says_so():
    assert [str(side) for side in SIDES if not side.guards] == ["runtime-hosted"]


@pytest.mark.parametrize("guard", HOLDERS)
def test_an_agent_lets_in_who_has_what_it_asks_for(stage, guard):
    if not stage.side.guards:
        pytest.skip("callers in the same process are not asked")
    url = stage.agent(guard=guard)

    for credentials in [*HOLDERS[guard], {url: HOLDERS[guard][0]}]:
        client = stage.client(credentials=credentials)
        assert client.send_task(url, task("echo in")).text == "in"
        assert client.get_agent_card(url).name


@pytest.mark.parametrize("guard", HOLDERS)
def test_an_agent_keeps_out_everybody_else(stage, guard):
    if not stage.side.guards:
        pytest.skip("callers in the same process are not asked")
    url = stage.agent(guard=guard)

    for credentials in [*STRANGERS, {"http://other.test": HOLDERS[guard][0]}]:
        client = stage.client(credentials=credentials)
        for call in (
            lambda c: c.send_task(url, task("echo in")),
            lambda c: c.get_agent_card(url),
            lambda c: c.cancel_task(url, "t"),
            lambda c: c.describe_state(url),
        ):
            with pytest.raises(AuthenticationError, match="credentials=") as caught:
                call(client)
            error = caught.value
            assert isinstance(error, TransportRemoteError)
            assert (error.status_code, error.retryable) == (stage.side.refusal, False)
            assert "redentials" in str(error) or "uthenti" in str(error)
            assert KEY not in str(error)
            assert PASSWORD not in str(error)


def test_health_is_open_to_everybody(stage):
    if not stage.side.guards or not stage.side.open_health:
        pytest.skip("nobody is asked here, or everybody at the door")
    url = stage.agent(guard="key")

    health = stage.client().transport.send(
        ClientRequestSpec("health", "/healthz", "GET", None, "none"), url
    )

    assert health["ready"] is True


def test_credentials_that_are_refused_are_asked_for_once_more(stage):
    if not stage.side.guards:
        pytest.skip("callers in the same process are not asked")
    url = stage.agent(guard="key")
    asked: list[tuple[str, bool]] = []

    def credentials(origin: str, refresh: bool) -> dict[str, str]:
        asked.append((origin, refresh))
        return {"X-API-Key": KEY if refresh else "expired"}

    client = stage.client(credentials=credentials)

    assert client.send_message(url, Message.user("echo in")).parts[0].content == "in"
    assert asked == [(url, False), (url, True)]


def test_a_stream_that_is_refused_is_asked_for_once_more_too(stage):
    if not stage.side.guards or not stage.side.streams:
        pytest.skip("callers in the same process are not asked, and plain HTTP does not stream")
    url = stage.agent(guard="key")
    asked: list[bool] = []

    def credentials(origin: str, refresh: bool) -> dict[str, str]:
        asked.append(refresh)
        return {"X-API-Key": KEY if refresh else "expired"}

    stream = stage.client(credentials=credentials).send_task_streaming(
        url, Task.create(Message.user("echo in"))
    )

    assert stream.result().text == "in"
    assert asked == [False, True]
