"""Who may call."""

from __future__ import annotations

import asyncio
import concurrent.futures

import pytest

from tests.server.hosting import Kitchen, calling, text_task


def bearer(environ):
    scheme, _, token = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    return {"right": "ann"}.get(token) if scheme == "Bearer" else None


@pytest.fixture
def caller():
    with calling(Kitchen(authenticate=bearer)) as (caller, _):
        yield caller


def test_the_principal_is_known_to_the_handler(caller):
    reply = caller.send(text_task("who"), Authorization="Bearer right")

    assert reply.task().messages[-1].text == "ann"


@pytest.mark.parametrize("path", ["/.well-known/agent.json", "/status"])
def test_without_credentials_everything_is_refused(caller, path):
    """Source: capture auth_http_bearer_cases."""
    reply = caller.request("GET", path)

    assert (reply.status, reply.json()) == (401, {"error": "Missing credentials"})


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/status", {"Authorization": "Bearer wrong"}),
        ("/status", {"X_API_Key": "wrong"}),
        ("/status?api_key=wrong", {}),
        ("/status?token=wrong", {}),
    ],
)
def test_wrong_credentials_are_told_from_none(caller, path, headers):
    reply = caller.request("GET", path, **headers)

    assert reply.status == 401
    assert reply.error.startswith("Authentication failed: ")


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_checks_need_none(caller, path):
    assert caller.request("GET", path).status == 200


def test_the_task_is_not_executed_and_the_connection_goes_on(caller):
    reply = caller.send(text_task("raise"))

    assert reply.status == 401
    assert caller.send(text_task("who"), Authorization="Bearer right").status == 200


async def waits_for_bearer(environ):
    await asyncio.sleep(0)
    return bearer(environ)


class Check:
    async def __call__(self, environ):
        return await waits_for_bearer(environ)


@pytest.mark.parametrize(
    "authenticate",
    [waits_for_bearer, Check(), lambda environ: waits_for_bearer(environ)],
    ids=["function", "object", "lambda"],
)
def test_a_check_may_be_async(authenticate):
    agent = Kitchen(authenticate=authenticate)
    with calling(agent) as (caller, _):
        known = caller.send(text_task("who"), Authorization="Bearer right")
        strangers = [caller.send(text_task("who"), **sent) for sent in ({}, {"X_API_Key": "a"})]

    assert known.task().messages[-1].text == "ann"
    assert [reply.status for reply in strangers] == [401, 401]
    assert sum(agent.executions.values()) == 1


def test_a_check_that_is_async_is_asked_over_a2a_too():
    agent = Kitchen(authenticate=waits_for_bearer)
    with calling(agent, a2a=True) as (caller, _):
        reply = caller.request("POST", "/", {"jsonrpc": "2.0", "id": 1, "method": "ListTasks"})

    assert (reply.status, reply.json()) == (401, {"error": "Missing credentials"})


@pytest.mark.parametrize("nobody", [False, "", 0, b"", ()], ids=repr)
def test_what_is_empty_or_false_is_nobody(nobody):
    """``return token == ...`` refuses, and an empty name is not that of somebody."""
    agent = Kitchen(authenticate=lambda environ: nobody)
    with calling(agent) as (caller, _):
        reply = caller.send(text_task("echo in"))

    assert (reply.status, reply.error) == (401, "Missing credentials")
    assert not agent.executions


def broken(environ):
    raise RuntimeError("database gone")


async def broken_later(environ):
    raise RuntimeError("database gone")


def generator(environ):
    yield "ann"


async def async_generator(environ):
    yield "ann"


@pytest.mark.parametrize(
    "authenticate",
    [
        broken,
        broken_later,
        generator,
        async_generator,
        lambda environ: ["unhashable"],
        lambda environ: True,
        lambda environ: object(),
        lambda environ: PermissionError("no"),
        lambda environ: bearer,
        lambda environ: "ann".startswith,
        lambda environ: Check().__call__,
        lambda environ: concurrent.futures.Future(),
    ],
)
def test_a_broken_check_lets_nobody_in(authenticate):
    """True says nothing of who asks, and what equals only itself is somebody new each time."""
    agent = Kitchen(authenticate=authenticate)
    with calling(agent) as (caller, _):
        reply = caller.send(text_task("echo in"))

    assert (reply.status, reply.body) == (500, b"Internal Server Error")
    assert not agent.executions


@pytest.mark.parametrize("principal", ["ann", 7, ("ann", "sales"), frozenset({"ann"}), b"ann"])
def test_a_principal_is_anything_that_two_calls_of_one_caller_have_alike(principal):
    with calling(Kitchen(authenticate=lambda environ: principal)) as (caller, _):
        reply = caller.send(text_task("who"))

    assert reply.task().messages[-1].text == str(principal)


def test_serving_everybody_beyond_this_machine_warns():
    with pytest.warns(UserWarning, match="anybody who reaches 0.0.0.0") as warned:
        Kitchen().serve("http://0.0.0.0:0").close()

    assert warned[0].filename == __file__


def test_serving_beyond_this_machine_with_a_check_does_not_warn():
    Kitchen(authenticate=bearer).serve("http://0.0.0.0:0").close()
