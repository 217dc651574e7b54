"""Who may call."""

from __future__ import annotations

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


@pytest.mark.parametrize("result", [RuntimeError("database gone"), ["unhashable"]])
def test_a_broken_check_lets_nobody_in(result):
    def authenticate(environ):
        if isinstance(result, Exception):
            raise result
        return result

    with calling(Kitchen(authenticate=authenticate)) as (caller, _):
        reply = caller.send(text_task("echo in"))

    assert (reply.status, reply.body) == (500, b"Internal Server Error")


def test_serving_everybody_beyond_this_machine_warns():
    with pytest.warns(UserWarning, match="anybody who reaches 0.0.0.0") as warned:
        Kitchen().serve("http://0.0.0.0:0").close()

    assert warned[0].filename == __file__


def test_serving_beyond_this_machine_with_a_check_does_not_warn():
    Kitchen(authenticate=bearer).serve("http://0.0.0.0:0").close()
