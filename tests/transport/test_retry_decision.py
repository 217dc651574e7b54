"""Whether a call is sent once more and after which pause: each condition, and each boundary."""

from __future__ import annotations

import email.utils
import math
import time

import pytest

from protolink_sync import AgentClient, CancelToken
from protolink_sync.errors import (
    CallCancelledError,
    TransportConnectionError,
    TransportRemoteError,
)
from protolink_sync.models import ClientRequestSpec, Task
from protolink_sync.testing import ScriptedTransport, refused, reply
from protolink_sync.transport import Hooks, RetryPolicy, TransportConfig

URL = "http://agent.test"
ASK = ClientRequestSpec("ask", "/ask", "POST", idempotent=True)
QUIET = {"jitter": 0.0}


def busy(after: str | None = None, status: int = 503):
    headers = {} if after is None else {"Retry-After": after}
    return reply(status=status, body=b"", headers=headers)


def asked(*script, spec=ASK, hooks=None, timeout=None, ttl=300.0, **policy) -> ScriptedTransport:
    """Play a call to its end; what it raised is in ``transport.raised``."""
    config = TransportConfig(
        retry=RetryPolicy(**{"max_attempts": 5, **QUIET, **policy}), idempotency_ttl=ttl
    )
    transport = ScriptedTransport(*script, config=config, hooks=hooks)
    transport.raised = None  # type: ignore[attr-defined]
    try:
        transport.send(spec, URL, {}, timeout=timeout)
    except (TransportRemoteError, TransportConnectionError) as error:
        transport.raised = error  # type: ignore[attr-defined]
    return transport


@pytest.mark.parametrize(
    ("spec", "policy", "attempts"),
    [
        ({}, {}, 2),
        ({"idempotent": False}, {}, 1),
        ({"allow_retries": False}, {}, 1),
        ({}, {"retryable_methods": ("GET",)}, 1),
        ({}, {"retryable_statuses": (429,)}, 1),
        ({}, {"max_attempts": 1}, 1),
        ({}, {"max_attempts": 2}, 2),
    ],
)
def test_each_condition_alone_forbids_a_second_attempt(spec, policy, attempts):
    operation = ClientRequestSpec("ask", "/ask", "POST", **{"idempotent": True, **spec})

    transport = asked(busy(), reply(1), spec=operation, **policy)

    assert len(transport.calls) == attempts
    assert (transport.raised is None) == (attempts == 2)


def test_with_one_attempt_no_pause_is_told_of():
    told = []

    transport = asked(busy(), max_attempts=1, hooks=Hooks(on_retry=told.append))

    assert (told, transport.waits) == ([], [])
    assert (transport.raised.attempts, transport.raised.attempt_count) == ((), 1)


def test_an_error_that_may_not_be_retried_is_not_told_of_as_if_it_were():
    told = []

    transport = asked(busy(status=500), hooks=Hooks(on_retry=told.append))

    assert told == []
    assert len(transport.calls) == 1


@pytest.mark.parametrize(
    ("after", "wait"),
    [
        (None, 0.5),
        ("0", 0.5),
        ("1", 1.0),
        ("30", 30.0),
        ("soon", 0.5),
    ],
)
def test_the_longer_of_backoff_and_retry_after_is_waited(after, wait):
    assert asked(busy(after), reply(1), initial_backoff=0.5).waits == [wait]


def test_a_date_is_waited_for():
    date = email.utils.formatdate(time.time() + 20, usegmt=True)

    (wait,) = asked(busy(date), reply(1)).waits

    assert 15 < wait <= 20


def test_an_answer_longer_than_may_be_waited_for_is_raised_at_once():
    transport = asked(busy("31"), reply(1))

    assert transport.raised.retry_after == 31.0
    assert transport.waits == []
    assert asked(busy("8"), reply(1), max_retry_after=7.0).raised is not None
    assert asked(busy("7"), reply(1), max_retry_after=7.0).raised is None


def test_of_a_refused_connection_nobody_says_how_long_to_wait():
    assert asked(refused(), refused(), reply(1), initial_backoff=0.5).waits == [0.5, 1.0]


def test_the_earlier_errors_are_in_the_last_one_oldest_first():
    first, second, last = (refused(text) for text in ("one", "two", "three"))

    raised = asked(first, second, last, max_attempts=3).raised

    assert raised is last
    assert raised.attempts == (first, second)
    assert raised.attempt_count == 3
    assert second.attempts == (first,)
    assert second.attempt_count == 2


def test_attempts_are_numbered_from_one():
    told = []

    transport = asked(
        refused(),
        refused(),
        reply(1),
        initial_backoff=0.5,
        hooks=Hooks(on_retry=lambda planned: told.append((planned.attempt, planned.pause))),
    )

    assert [call.attempt for call in transport.calls] == [1, 2, 3]
    assert told == [(1, 0.5), (2, 1.0)]
    assert transport.metrics.retries == 2


def test_a_pause_that_outlasts_the_budget_or_the_key_is_not_begun():
    """The peer would not recognise the key any more, and would do the work twice."""
    for limits in ({"timeout": 10.0}, {"ttl": 10.0}):
        transport = asked(busy("11"), reply(1), **limits)
        assert (transport.waits, len(transport.calls)) == ([], 1)
        assert asked(busy("9"), reply(1), **limits).waits == [9.0]


def test_an_error_that_may_not_be_retried_ends_the_attempts():
    transport = asked(refused(), busy(status=500), reply(1))

    assert transport.raised.status_code == 500
    assert len(transport.calls) == 2


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_what_is_no_failure_of_a_transport_ends_the_attempts(kind):
    """Ctrl-C above all: nothing is sent after it."""

    def ended(_call):
        raise kind("ended")

    retry = RetryPolicy(max_attempts=4, **QUIET)
    transport = ScriptedTransport(refused(), ended, reply(1), config=TransportConfig(retry=retry))

    with pytest.raises(kind, match="ended"):
        transport.send(ASK, URL, {})

    assert len(transport.calls) == 2


def test_a_call_that_ends_in_its_pause_has_no_further_attempt():
    token = CancelToken()
    transport = ScriptedTransport(
        refused(),
        reply(1),
        retry=RetryPolicy(max_attempts=2),
        hooks=Hooks(on_retry=lambda planned: token.cancel("enough")),
    )

    with pytest.raises(CallCancelledError, match="enough"):
        transport.send(ASK, URL, {}, cancel=token)

    assert len(transport.calls) == 1
    assert transport.metrics.retries == 0


# ---- by which key a repeated call is recognised -------------------------------------------------


def keys(client: AgentClient, transport: ScriptedTransport) -> list[str]:
    for _ in range(2):
        client.get_agent_card(URL)
    return [call.headers["Idempotency-Key"] for call in transport.calls]


CARD = {"name": "n", "description": "d", "url": URL}


def test_each_call_has_a_key_of_its_own_that_is_its_request_id():
    transport = ScriptedTransport(reply(CARD), reply(CARD))

    one, other = keys(AgentClient(transport), transport)

    assert one != other
    assert one == transport.calls[0].headers["X-Protolink-Request-ID"]


def test_calls_under_one_request_id_have_two_keys():
    """With the id as key the second would be answered from the peer's memory of the first."""
    transport = ScriptedTransport(reply(CARD), reply(CARD))

    one, other = keys(AgentClient(transport).with_options(request_id="mine"), transport)

    assert one != other
    assert len(one) == len(other) == 32
    assert "mine" not in (one, other)
    assert {call.headers["X-Protolink-Request-ID"] for call in transport.calls} == {"mine"}


def test_other_options_leave_the_key_as_it_is():
    transport = ScriptedTransport(reply(CARD), reply(CARD))

    one, _ = keys(AgentClient(transport).with_options(headers={"X-A": "b"}), transport)

    assert one == transport.calls[0].headers["X-Protolink-Request-ID"]


def test_the_policy_of_a_view_is_that_of_its_calls_only():
    transport = ScriptedTransport(refused(), reply(CARD), refused())
    client = AgentClient(transport)

    client.with_options(retry=RetryPolicy(max_attempts=2)).get_agent_card(URL)
    with pytest.raises(TransportConnectionError):
        client.get_agent_card(URL)

    assert len(transport.calls) == 3


@pytest.mark.parametrize("key", ["", "a\nb", "ä"])
def test_a_key_of_the_callers_that_cannot_be_sent_is_refused_and_named(key):
    transport = ScriptedTransport()

    with pytest.raises(ValueError, match="idempotency_key"):
        AgentClient(transport).send_task(URL, Task("t"), idempotency_key=key)

    assert transport.calls == []


@pytest.mark.parametrize("sixth", [(503,), 5.0])
def test_what_we_add_to_the_documented_policy_has_a_name(sixth):
    with pytest.raises(TypeError, match="positional"):
        RetryPolicy(1, 0.1, 2.0, 0.1, ("GET",), sixth)  # type: ignore[misc]


class SilentOnce(ScriptedTransport):
    """Its peer never answers the first attempt of a call."""

    def _exchange(self, request, deadline):
        if request.context.attempt > 1:
            return super()._exchange(request, deadline)
        deadline.wait(math.inf)
        raise self._ended(deadline, request.context)


def test_an_attempt_after_one_that_took_too_long_begins_anew():
    retry = RetryPolicy(max_attempts=2, attempt_timeout=0.5, initial_backoff=0.0, jitter=0.0)
    transport = SilentOnce(reply({"n": 1}), config=TransportConfig(retry=retry))

    assert transport.send(ASK, URL, {}) == {"n": 1}
    assert transport.metrics.retries == 1
