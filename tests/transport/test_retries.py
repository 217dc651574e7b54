"""Sending a call once more: when, after which pause, with which bytes, and what is told."""

from __future__ import annotations

import contextlib
import email.utils
import itertools
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest

from protolink_sync import CancelToken
from protolink_sync.errors import (
    CallCancelledError,
    ClientClosedError,
    TransportConnectionError,
    TransportLimitError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import ClientRequestSpec
from protolink_sync.transport import Hooks, TransportConfig, TransportLimits
from tests.cases.server import ScriptedServer
from tests.transport.scenes import (
    ASK,
    ASK_ONCE,
    CLOSE,
    HOLD,
    LOOK,
    RECV,
    RST,
    Calling,
    about,
    answering,
    failed,
    in_fresh_process,
    raw_reply,
    reply,
    retrying,
    serving,
    transport,
)

BUSY = reply({"error": "busy"}, status=503)


def busy(**headers: str) -> dict[str, Any]:
    return reply(status=503, headers={name.replace("_", "-"): v for name, v in headers.items()})


def gaps(server: ScriptedServer) -> list[float]:
    """Return the seconds between each request and the next."""
    at = [request.at for request in server.requests]
    return [later - earlier for earlier, later in itertools.pairwise(at)]


# ---- what is repeated --------------------------------------------------------------------------


def test_an_idempotent_call_is_repeated_until_it_succeeds():
    with (
        answering(BUSY, BUSY, reply({"n": 3})) as server,
        transport(server, config=retrying(3)) as client,
    ):
        assert client.send(ASK, None, {}) == {"n": 3}

        assert len(server.requests) == 3
        assert client.metrics.retries == 2
        assert client.metrics.requests_started == client.metrics.requests_succeeded == 1


def test_by_default_nothing_is_repeated():
    with answering(BUSY) as server, transport(server) as client:
        error = failed(client)

    assert error.retryable
    assert error.attempt_count == 1
    assert len(server.requests) == 1


NOT_REPEATED = {
    "is not idempotent": (ASK_ONCE, {}),
    "forbids it": (attrs.evolve(ASK, allow_retries=False), {}),
    "uses another method": (ASK, {"retryable_methods": {"GET", "PUT", "DELETE"}}),
    "uses PATCH, by default": (attrs.evolve(ASK, method="PATCH"), {}),
}


@pytest.mark.parametrize("why", NOT_REPEATED)
@pytest.mark.parametrize("how", ["status", "cut"])
def test_a_call_is_not_repeated_when_its_spec(why, how):
    spec, policy = NOT_REPEATED[why]
    steps = [RECV, BUSY, HOLD] if how == "status" else [RECV, CLOSE]

    with serving(steps) as server, transport(server, config=retrying(3, **policy)) as client:
        error = failed(client, spec)

        assert error.retryable
        assert error.attempt_count == 1
        assert client.metrics.retries == 0

    assert len(server.requests) == 1


@pytest.mark.parametrize("spec", [ASK, LOOK, attrs.evolve(ASK, method="PUT")])
def test_methods_of_the_policy_are_repeated(spec):
    with answering(BUSY, reply()) as server, transport(server, config=retrying(2)) as client:
        assert client.send(spec, None, {} if spec is not LOOK else None) == {"ok": True}


NOT_RETRYABLE = {
    "400": reply(status=400),
    "401": reply(status=401),
    "404": reply(status=404),
    "500": reply(status=500),
    "307": reply(status=307, headers={"Location": "/other"}),
    "no JSON": raw_reply("<p>"),
    "an empty body": raw_reply(""),
    "too large": raw_reply('"' + "x" * 2000 + '"'),
}


@pytest.mark.parametrize("what", NOT_RETRYABLE)
def test_a_call_is_not_repeated_after(what):
    limits = TransportLimits(max_response_bytes=1000)
    config = retrying(3, config={"limits": limits})

    with answering(NOT_RETRYABLE[what]) as server, transport(server, config=config) as client:
        error = failed(client)

    assert not error.retryable
    assert isinstance(error, (TransportRemoteError, TransportProtocolError, TransportLimitError))
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_call_is_repeated_after_status(status):
    with (
        answering(reply(status=status), reply()) as server,
        transport(server, config=retrying(2)) as client,
    ):
        assert client.send(ASK, None, {}) == {"ok": True}


def test_the_policy_says_which_statuses_are_retryable():
    config = retrying(2, retryable_statuses={500})

    with (
        answering(reply(status=500), reply()) as server,
        transport(server, config=config) as client,
    ):
        assert client.send(ASK, None, {}) == {"ok": True}
    with answering(BUSY) as server, transport(server, config=config) as client:
        assert not failed(client).retryable


@pytest.mark.parametrize("how", [CLOSE, RST], ids=["closed", "reset"])
def test_a_call_is_repeated_after_its_connection_broke(how):
    with (
        serving([RECV, how], [RECV, reply()]) as server,
        transport(server, config=retrying(2)) as client,
    ):
        assert client.send(ASK, None, {}) == {"ok": True}

    assert len(server.requests) == 2


def test_a_call_is_repeated_after_a_refused_connect():
    with (
        ScriptedServer({"listen": False}) as server,
        transport(server, config=retrying(3)) as client,
    ):
        error = failed(client)

    assert type(error) is TransportConnectionError
    assert error.attempt_count == 3
    assert [type(one) for one in error.attempts] == [TransportConnectionError] * 2


def test_a_call_is_repeated_after_a_connect_that_timed_out():
    config = retrying(2, config={"connect_timeout": 0.2})

    with (
        ScriptedServer({"listen": "blackhole"}) as server,
        transport(server, config=config) as client,
    ):
        error = failed(client)

    assert type(error) is TransportTimeoutError
    assert error.attempt_count == 2
    assert error.elapsed == about(0.4)


def test_a_certificate_that_is_not_trusted_is_not_tried_again(tls_server):
    with answering(tls=tls_server) as server:
        with transport(server, config=retrying(3)) as client:
            error = failed(client)

        assert not error.retryable
        assert error.attempt_count == 1
        assert len(server.connections) == 1


# ---- the very same call ------------------------------------------------------------------------


def test_every_attempt_sends_the_same_bytes():
    with answering(BUSY, BUSY, reply()) as server, transport(server, config=retrying(3)) as client:
        client.send(ASK, None, {"text": "ä", "n": 10**20}, {"page": 2})

    first, *others = server.requests
    for other in others:
        assert other.target == first.target
        assert other.headers == first.headers
        assert other.body == first.body


def test_two_calls_have_two_ids_and_keys():
    with answering() as server, transport(server) as client:
        client.send(ASK, None, {"id": "t-1"})
        client.send(ASK, None, {"id": "t-1"})

    for name in ("X-Protolink-Request-ID", "Idempotency-Key"):
        one, other = (request.header(name) for request in server.requests)
        assert one
        assert other
        assert one != other


# ---- pauses ------------------------------------------------------------------------------------


def test_pauses_double_up_to_their_cap():
    config = retrying(4, initial_backoff=0.2, max_backoff=0.4)

    with answering(BUSY) as server, transport(server, config=config) as client:
        failed(client)

    assert gaps(server) == [about(pause) for pause in (0.2, 0.4, 0.4)]
    # Not 0.8 in the end.
    assert gaps(server)[2] < 0.75


def test_jitter_makes_a_pause_longer_by_chance():
    config = retrying(2, initial_backoff=0.05, jitter=0.2)

    with answering(BUSY) as server, transport(server, config=config) as client:
        pauses = []
        for number in range(4):
            failed(client)
            pauses.append(gaps(server)[2 * number])

    assert min(pauses) >= 0.05
    assert max(pauses) < 0.05 + 0.2 + 0.4
    assert len({round(pause, 4) for pause in pauses}) > 1


def test_a_longer_retry_after_is_honoured():
    with (
        answering(busy(Retry_After="1"), reply()) as server,
        transport(server, config=retrying(2)) as client,
    ):
        assert client.send(ASK, None, {}) == {"ok": True}

    assert gaps(server) == [about(1.0)]


def test_a_retry_after_may_be_a_date():
    when = email.utils.formatdate(time.time() + 2, usegmt=True)

    with (
        answering(busy(Retry_After=when), reply()) as server,
        transport(server, config=retrying(2)) as client,
    ):
        assert client.send(ASK, None, {}) == {"ok": True}

    assert 0.8 <= gaps(server)[0] <= 2.2


@pytest.mark.parametrize("value", ["0", "Thu, 01 Jan 1970 00:00:00 GMT", "nonsense"])
def test_a_shorter_retry_after_leaves_the_pause_as_it_is(value):
    with (
        answering(busy(Retry_After=value), reply()) as server,
        transport(server, config=retrying(2, initial_backoff=0.2)) as client,
    ):
        assert client.send(ASK, None, {}) == {"ok": True}

    assert gaps(server) == [about(0.2)]


def test_a_retry_after_that_is_too_long_raises_at_once():
    with (
        answering(busy(Retry_After="31")) as server,
        transport(server, config=retrying(5), timeout=300.0) as client,
    ):
        error = failed(client)

    assert error.retry_after == 31.0
    assert error.elapsed < 1
    assert error.attempt_count == 1
    assert len(server.requests) == 1


def test_how_long_a_retry_after_may_be_is_a_setting():
    with (
        answering(busy(Retry_After="1")) as server,
        transport(server, config=retrying(2, max_retry_after=0.5)) as client,
    ):
        assert failed(client).retry_after == 1.0

    assert len(server.requests) == 1


def test_a_pause_that_does_not_fit_the_budget_is_not_begun():
    with (
        answering(BUSY) as server,
        transport(server, config=retrying(3, initial_backoff=1.0)) as client,
    ):
        error = failed(client, timeout=0.5)

    assert type(error) is TransportRemoteError
    assert error.elapsed < 0.4
    assert len(server.requests) == 1


def test_the_budget_holds_for_all_attempts_together():
    with answering([HOLD]) as server:
        config = retrying(20, attempt_timeout=0.1)
        with transport(server, config=config) as client:
            error = failed(client, timeout=0.5)

    assert type(error) is TransportTimeoutError
    assert error.elapsed < 0.5 + 0.4
    assert 2 <= error.attempt_count <= 5


def test_no_attempt_begins_when_the_peer_has_forgotten_the_key():
    config = retrying(10, initial_backoff=0.2, max_backoff=0.2, config={"idempotency_ttl": 0.7})

    with answering(BUSY) as server, transport(server, config=config) as client:
        error = failed(client)

    assert type(error) is TransportRemoteError
    assert 2 <= error.attempt_count <= 4


# ---- bounds of one attempt ---------------------------------------------------------------------


def test_an_attempt_that_takes_too_long_is_given_up_and_repeated():
    config = retrying(2, attempt_timeout=0.5)

    with (
        serving([RECV, HOLD], [RECV, reply()]) as server,
        transport(server, config=config) as client,
    ):
        assert client.send(ASK, None, {}) == {"ok": True}

        assert server.wait_for_end(1) == "client"
        assert client.metrics.retries == 1


def test_the_error_of_an_attempt_that_took_too_long_says_which_limit():
    config = TransportConfig.from_dict({"retry": {"attempt_timeout": 0.2}})

    with serving([RECV, HOLD]) as server, transport(server, config=config) as client:
        error = failed(client)

    assert type(error) is TransportTimeoutError
    assert error.retryable
    assert error.phase == "wait"
    assert "RetryPolicy.attempt_timeout of 0.2 s" in str(error)


def test_the_bound_of_an_attempt_does_not_shorten_the_pause_after_it():
    config = retrying(2, attempt_timeout=0.4, initial_backoff=0.8)

    with answering(BUSY, reply()) as server, transport(server, config=config) as client:
        assert client.send(ASK, None, {}) == {"ok": True}

        assert client.metrics.retries == 1
    assert gaps(server) == [about(0.8)]


def test_there_is_a_pause_after_an_attempt_that_took_too_long_too():
    config = retrying(2, attempt_timeout=0.15, initial_backoff=0.4)

    with (
        serving([RECV, HOLD], [RECV, reply()]) as server,
        transport(server, config=config) as client,
    ):
        assert client.send(ASK, None, {}) == {"ok": True}

    assert gaps(server) == [about(0.55)]


def test_the_bound_of_connecting_does_not_shorten_the_pause_after_it():
    config = retrying(2, initial_backoff=0.5, config={"connect_timeout": 0.15})

    with ScriptedServer({"listen": False}) as server, transport(server, config=config) as client:
        error = failed(client)

    assert error.attempt_count == 2
    assert error.elapsed == about(0.5)


def test_connecting_in_time_leaves_the_reply_all_the_time_it_needs():
    config = TransportConfig(connect_timeout=0.2)

    with (
        answering([{"op": "sleep", "s": 0.5}, reply()]) as server,
        transport(server, config=config) as client,
    ):
        assert client.send(ASK, None, {}) == {"ok": True}
        # On a kept connection there is nothing to connect at all.
        assert client.send(ASK, None, {}) == {"ok": True}

    assert len(server.connections) == 1


# ---- the error in the end ----------------------------------------------------------------------


def test_the_last_error_is_raised_with_the_earlier_ones_in_order():
    with (
        serving([RECV, CLOSE], [RECV, BUSY], [RECV, reply(status=502)]) as server,
        transport(server, config=retrying(3)) as client,
    ):
        error = failed(client)

    assert error.status_code == 502
    assert error.attempt_count == 3
    assert [type(one) for one in error.attempts] == [TransportConnectionError, TransportRemoteError]
    assert error.attempts[1].status_code == 503
    assert error.url == server.base
    assert {one.request_id for one in (*error.attempts, error)} == {error.request_id}


def test_an_error_that_may_not_be_retried_ends_the_attempts():
    with (
        answering(BUSY, reply(status=500), reply()) as server,
        transport(server, config=retrying(5)) as client,
    ):
        error = failed(client)

    assert error.status_code == 500
    assert error.attempt_count == 2
    assert len(server.requests) == 2


def test_a_failure_after_retries_counts_once():
    with answering(BUSY) as server, transport(server, config=retrying(3)) as client:
        failed(client)

        counted = client.metrics
        assert (counted.requests_started, counted.requests_failed) == (1, 1)
        assert counted.retries == 2


# ---- ended between two attempts ----------------------------------------------------------------


@contextlib.contextmanager
def pausing(
    server: ScriptedServer, **settings: Any
) -> Iterator[tuple[Any, Callable[..., Calling]]]:
    """Give a client with long pauses, and what begins a call and returns it in its first one."""
    pauses = threading.Event()
    hooks = Hooks(on_retry=lambda _: pauses.set())
    config = retrying(3, initial_backoff=2.0)

    def paused(**words: Any) -> Calling:
        call = Calling(client.send, ASK, None, {}, **words)
        assert pauses.wait(5)
        return call

    with transport(server, config=config, hooks=hooks, **settings) as client:
        yield client, paused


def test_a_cancel_ends_a_pause_at_once():
    token = CancelToken()

    with answering(BUSY) as server, pausing(server) as (client, paused):
        call = paused(cancel=token)
        begin = time.monotonic()
        token.cancel("enough")

        with pytest.raises(CallCancelledError) as caught:
            call.result()

        assert time.monotonic() - begin < 0.5
        assert caught.value.reason == "enough"
        assert caught.value.phase == "backoff"
        assert client.metrics.requests_cancelled == 1
        assert client.metrics.retries == 0

    assert len(server.requests) == 1


def test_closing_ends_a_pause_at_once():
    with answering(BUSY) as server, pausing(server) as (client, paused):
        call = paused()
        begin = time.monotonic()
        client.close()

        with pytest.raises(ClientClosedError):
            call.result()

        assert time.monotonic() - begin < 0.5
    assert len(server.requests) == 1


def test_no_credentials_are_asked_for_a_call_that_is_over():
    token = CancelToken()
    asked: list[str] = []

    def credentials(origin: str, refresh: bool) -> dict[str, str]:
        asked.append(origin)
        return {"Authorization": "Bearer x"}

    with answering(BUSY) as server, pausing(server, credentials=credentials) as (_, paused):
        call = paused(cancel=token)
        token.cancel()
        with pytest.raises(CallCancelledError):
            call.result()

    assert len(asked) == 1


# ---- what it costs -----------------------------------------------------------------------------


def test_tenacity_is_not_imported_by_calls_that_need_no_second_attempt():
    program = """
        import sys
        from protolink_sync.errors import TransportError
        from protolink_sync.models import ClientRequestSpec
        from protolink_sync.transport import HTTPTransport, RetryPolicy, TransportConfig

        ask = ClientRequestSpec("ask", "/ask", "POST", idempotent=True)
        config = TransportConfig(retry=RetryPolicy(max_attempts=2, initial_backoff=0.0))
        with HTTPTransport(sys.argv[1], config=config) as client:
            client.send(ask, None, {})
            try:
                client.send(ask, None, {})
            except TransportError:
                print("tenacity" in sys.modules)
            client.send(ask, None, {})
            print("tenacity" in sys.modules)
    """

    with answering(reply(), reply(status=500), BUSY, reply()) as server:
        assert in_fresh_process(program, server.base).split() == ["False", "True"]


def test_a_peer_that_is_overloaded_by_many_callers_serves_all_in_the_end():
    """Retries of many threads do not disturb each other."""
    with (
        answering(*[BUSY] * 10, reply()) as server,
        transport(server, config=retrying(20)) as client,
    ):
        calls = [Calling(client.send, ASK, None, {"n": number}) for number in range(10)]

        assert [call.result() for call in calls] == [{"ok": True}] * 10
        assert client.metrics.requests_succeeded == 10
        assert client.metrics.retries == 10


def test_a_call_without_any_bound_is_repeated_too():
    with answering(BUSY, reply()) as server, transport(server, config=retrying(2)) as client:
        assert client.send(ASK, None, {}, timeout=math.inf) == {"ok": True}


def test_the_spec_of_a_call_is_made_once():
    """The body is encoded once: a change of the data during a pause changes nothing."""
    data = {"n": 1}
    spec = ClientRequestSpec("ask", "/ask", "POST", idempotent=True)

    with (
        answering(BUSY, reply()) as server,
        transport(server, config=retrying(2, initial_backoff=0.3)) as client,
    ):
        call = Calling(client.send, spec, None, data)
        server.wait_for_requests(1)
        data["n"] = 2
        call.result()

    assert [request.json() for request in server.requests] == [{"n": 1}, {"n": 1}]


def test_a_resolver_that_fails_is_asked_again(monkeypatch):
    asked: list[str] = []
    real = socket.getaddrinfo

    def lookup(host: str, port: Any, *args: Any, **words: Any) -> Any:
        if host != "agent.test":
            return real(host, port, *args, **words)
        if words.get("flags"):
            raise socket.gaierror(socket.EAI_NONAME, "a name")
        asked.append(host)
        if len(asked) == 1:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)

    with answering() as server, transport(config=retrying(2)) as client:
        assert client.send(ASK, f"http://agent.test:{server.port}", {}) == {"ok": True}
