"""Whom credentials go to, in which form, and that nobody else ever sees them."""

from __future__ import annotations

import base64
import copy
import logging
import pickle
from typing import Any

import pytest

from protolink_sync.errors import AuthenticationError, TransportRemoteError
from protolink_sync.models import ClientRequestSpec, Message, Task
from protolink_sync.security import APIKey, BasicAuth, BearerToken, TLSConfig
from protolink_sync.specs import TASK_REQUEST
from protolink_sync.transport import HTTPTransport, RetryPolicy, TransportConfig
from tests.cases.server import ScriptedServer
from tests.peers import bearer_jwt
from tests.transport.scenes import (
    ASK,
    CLOSE,
    RECV,
    answering,
    failed,
    reply,
    retrying,
    send,
    serving,
    transport,
)

SECRET = "s3cr3t-t0ken"
DENIED = reply({"detail": "Missing or invalid authentication"}, status=401)


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def authorizations(server: ScriptedServer) -> list[str | None]:
    return [request.header("Authorization") for request in server.requests]


# ---- forms -------------------------------------------------------------------------------------

FORMS = {
    "a text": (SECRET, "Authorization", f"Bearer {SECRET}"),
    "a token": (BearerToken(SECRET), "Authorization", f"Bearer {SECRET}"),
    "a key": (APIKey(SECRET), "X-API-Key", SECRET),
    "a key in a header of its own": (APIKey(SECRET, "X-Mine"), "X-Mine", SECRET),
    "user and password": (BasicAuth("me", "pä:ss"), "Authorization", basic("me", "pä:ss")),
    "a callable": (lambda origin, refresh: {"X-Any": SECRET}, "X-Any", SECRET),
}


@pytest.mark.parametrize("form", FORMS)
def test_credentials_become_a_header(form):
    credentials, name, value = FORMS[form]

    with answering() as server, transport(server, credentials=credentials) as client:
        client.send(ASK, None, {})

    assert server.requests[0].all(name) == [value]


def test_no_credentials_no_header():
    with answering() as server, transport(server) as client:
        client.send(ASK, None, {})

    assert authorizations(server) == [None]


@pytest.mark.parametrize(
    "form",
    [
        BearerToken.from_env("OUR_SECRET"),
        APIKey.from_env("OUR_SECRET", "Authorization"),
        BasicAuth.from_env("me", "OUR_SECRET"),
    ],
    ids=["token", "key", "password"],
)
def test_a_secret_of_the_environment_is_read_for_each_call(form, monkeypatch):
    with answering() as server, transport(server, credentials=form) as client:
        for secret in ("first", "second"):
            monkeypatch.setenv("OUR_SECRET", secret)
            client.send(ASK, None, {})

    one, other = authorizations(server)
    assert one != other
    assert one in ("Bearer first", "first", basic("me", "first"))


def test_a_secret_that_the_environment_does_not_have_is_a_value_error_that_names_it(monkeypatch):
    monkeypatch.delenv("OUR_SECRET", raising=False)

    with answering() as server:
        with (
            transport(server, credentials=BearerToken.from_env("OUR_SECRET")) as client,
            pytest.raises(ValueError, match="OUR_SECRET"),
        ):
            client.send(ASK, None, {})

        assert not server.requests


@pytest.mark.parametrize("value", ["tok\n", "tok\r\nX-Evil: 1", "tök"])
@pytest.mark.parametrize("form", [BearerToken, APIKey])
def test_a_secret_of_the_environment_cannot_end_its_header(form, value, monkeypatch):
    monkeypatch.setenv("OUR_SECRET", value)

    with answering() as server:
        with (
            transport(server, credentials=form.from_env("OUR_SECRET")) as client,
            pytest.raises(ValueError, match=r"OUR_SECRET|from_env") as caught,
        ):
            client.send(ASK, None, {})

        assert "tok" not in str(caught.value)
        assert "Evil" not in str(caught.value)
        assert not server.requests


@pytest.mark.parametrize(
    "wrong", [5, b"token", ["token"], {"http://h": 5}, {"http://h": None}], ids=repr
)
def test_credentials_of_another_type_are_refused(wrong):
    with pytest.raises(TypeError, match="credentials"):
        HTTPTransport(credentials=wrong)


@pytest.mark.parametrize("wrong", ["", "a\nb", "a\r\nX: y", "ä", "a\x00"])
@pytest.mark.parametrize("form", [str, BearerToken, APIKey])
def test_a_secret_that_cannot_be_sent_is_refused_and_not_shown(form, wrong):
    with pytest.raises(ValueError) as caught:
        HTTPTransport(credentials=form(wrong))

    assert not wrong or wrong not in str(caught.value)


def test_a_mapping_needs_origins():
    with pytest.raises(ValueError, match="agent"):
        HTTPTransport(credentials={"agent": "x"})


# ---- to whom -----------------------------------------------------------------------------------


def test_a_mapping_gives_each_origin_its_own():
    with answering() as one, answering() as other, answering() as third:
        credentials = {f"{one.base}/some/path": "for-one", other.base: APIKey("for-other")}
        with transport(credentials=credentials) as client:
            for server in (one, other, third):
                client.send(ASK, server.base, {})

    assert authorizations(one) == ["Bearer for-one"]
    assert one.requests[0].header("X-API-Key") is None
    assert authorizations(other) == [None]
    assert other.requests[0].header("X-API-Key") == "for-other"
    assert authorizations(third) == [None]
    assert third.requests[0].header("X-API-Key") is None


def test_another_port_is_another_origin():
    with answering() as server, transport(server, credentials={"http://127.0.0.1": "x"}) as client:
        client.send(ASK, None, {})

    assert authorizations(server) == [None]


def test_the_spelling_of_an_origin_makes_no_difference():
    with answering() as server:
        credentials = {f"HTTP://127.0.0.1.:{server.port}/": SECRET}
        with transport(credentials=credentials) as client:
            client.send(ASK, server.base, {})

    assert authorizations(server) == [f"Bearer {SECRET}"]


def test_a_callable_is_asked_for_each_attempt_with_the_origin():
    asked: list[tuple[str, bool]] = []

    def credentials(origin: str, refresh: bool) -> dict[str, str]:
        asked.append((origin, refresh))
        return {"Authorization": f"Bearer {len(asked)}"}

    with (
        answering(reply(status=503), reply(status=503), reply()) as server,
        transport(credentials=credentials, config=retrying(3)) as client,
    ):
        client.send(ASK, f"{server.base}/", {})

    assert asked == [(server.base, False)] * 3
    assert authorizations(server) == ["Bearer 1", "Bearer 2", "Bearer 3"]


def test_a_callable_may_have_nothing_for_an_origin():
    with answering() as server, transport(credentials=lambda origin, refresh: None) as client:
        assert client.send(ASK, server.base, {}) == {"ok": True}


@pytest.mark.parametrize("wrong", ["token", 5, [("a", "b")]])
def test_a_callable_that_returns_no_mapping_is_a_type_error(wrong):
    with answering() as server:
        with (
            transport(server, credentials=lambda origin, refresh: wrong) as client,
            pytest.raises(TypeError, match="callable"),
        ):
            client.send(ASK, None, {})

        assert not server.requests


def test_a_callable_that_returns_what_cannot_be_sent_is_a_value_error():
    wrong = {"Authorization": f"{SECRET}\r\nX-Evil: 1"}

    with answering() as server:
        with (
            transport(server, credentials=lambda origin, refresh: wrong) as client,
            pytest.raises(ValueError) as caught,
        ):
            client.send(ASK, None, {})

        assert SECRET not in str(caught.value)
        assert not server.requests


def test_the_error_of_a_callable_passes_through():
    def broken(origin: str, refresh: bool) -> dict[str, str]:
        raise KeyError("vault")

    with answering() as server, transport(server, credentials=broken) as client:
        with pytest.raises(KeyError, match="vault"):
            client.send(ASK, None, {})

        assert client.metrics.requests_failed == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("form", ["a text", "a key", "user and password"])
def test_a_redirect_takes_credentials_nowhere(status, form):
    with answering() as stranger:
        away = reply(status=status, headers={"Location": f"{stranger.base}/ask"})
        with (
            answering(away) as server,
            transport(server, credentials=FORMS[form][0]) as client,
        ):
            failed(client)

        assert not stranger.connections


# ---- refreshing --------------------------------------------------------------------------------


class Vault:
    """Tokens that wear out: a new one for each refresh."""

    def __init__(self, *, renews: bool = True) -> None:
        self.asked: list[bool] = []
        self._renews = renews
        self._number = 1

    def __call__(self, origin: str, refresh: bool) -> dict[str, str]:
        self.asked.append(refresh)
        if refresh and self._renews:
            self._number += 1
        return {"Authorization": f"Bearer token-{self._number}"}


def test_after_a_401_the_callable_is_asked_for_fresh_ones_and_the_call_sent_once_more():
    vault = Vault()

    with answering(DENIED, reply()) as server, transport(server, credentials=vault) as client:
        assert client.send(ASK, None, {"n": 1}) == {"ok": True}

        assert client.metrics.retries == 0
        assert client.metrics.requests_succeeded == 1

    assert vault.asked == [False, True]
    assert authorizations(server) == ["Bearer token-1", "Bearer token-2"]
    first, second = server.requests
    assert first.body == second.body
    assert first.header("Idempotency-Key") == second.header("Idempotency-Key")
    assert len(server.connections) == 1


def test_a_call_that_may_not_be_repeated_is_sent_with_fresh_credentials_too():
    """A 401 was not processed, so nothing is done twice."""
    once = ClientRequestSpec("ask", "/ask", "POST")

    with answering(DENIED, reply()) as server, transport(server, credentials=Vault()) as client:
        assert client.send(once, None, {}) == {"ok": True}


def test_credentials_are_refreshed_once_only():
    vault = Vault()

    with answering(DENIED) as server, transport(server, credentials=vault) as client:
        error = failed(client)

    assert type(error) is AuthenticationError
    assert vault.asked == [False, True]
    assert len(server.requests) == 2


def test_the_same_credentials_are_not_tried_twice():
    vault = Vault(renews=False)

    with answering(DENIED) as server, transport(server, credentials=vault) as client:
        assert type(failed(client)) is AuthenticationError

    assert vault.asked == [False, True]
    assert len(server.requests) == 1


def test_a_403_is_not_answered_with_fresh_credentials():
    vault = Vault()

    with answering(reply(status=403)) as server, transport(server, credentials=vault) as client:
        assert failed(client).status_code == 403

    assert vault.asked == [False]


def test_a_fixed_secret_is_sent_once_only():
    with answering(DENIED) as server, transport(server, credentials=SECRET) as client:
        assert type(failed(client)) is AuthenticationError

    assert len(server.requests) == 1


# ---- headers= ----------------------------------------------------------------------------------


def test_headers_of_the_transport_go_with_every_call():
    with answering() as server, transport(server, headers={"X-Tenant": "t 1"}) as client:
        client.send(ASK, None, {})
        client.send(ASK, None, {})

    assert [request.all("X-Tenant") for request in server.requests] == [["t 1"], ["t 1"]]


OWN = ["Host", "Content-Length", "Transfer-Encoding", "Connection", "Idempotency-Key"]
OWN += ["X-Protolink-Request-ID", "x-protolink-anything", "hOST"]


@pytest.mark.parametrize("name", OWN)
def test_headers_that_the_transport_sets_itself_are_refused(name):
    with pytest.raises(ValueError, match=name):
        HTTPTransport(headers={name: "x"})


@pytest.mark.parametrize("name", ["", "a b", "a:b", "ä", "a\r\nb", "a\n"])
def test_header_names_that_http_does_not_allow_are_refused(name):
    with pytest.raises(ValueError):
        HTTPTransport(headers={name: "x"})


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\nb", "a\rb", "a\x00b", "ä", "日本", "\x7f"])
def test_header_values_that_cannot_be_sent_are_refused(value):
    with pytest.raises(ValueError, match="X-A") as caught:
        HTTPTransport(headers={"X-A": value})

    assert value not in str(caught.value)


@pytest.mark.parametrize("headers", [{"X-A": 5}, {5: "a"}, {"X-A": b"x"}, {"X-A": None}])
def test_headers_that_are_no_text_are_refused(headers):
    with pytest.raises(TypeError):
        HTTPTransport(headers=headers)


@pytest.mark.parametrize("name", ["accept", "USER-AGENT", "accept-encoding", "content-type"])
def test_a_header_goes_out_once_however_it_is_spelled(name):
    with answering() as server, transport(server, headers={name: "mine"}) as client:
        client.send(ASK, None, {})

    assert len(server.requests[0].all(name)) == 1


@pytest.mark.parametrize("name", ["Authorization", "authorization", "AUTHORIZATION"])
def test_credentials_win_over_a_header_of_the_same_name(name):
    with (
        answering() as server,
        transport(server, headers={name: "Bearer old"}, credentials="new") as client,
    ):
        client.send(ASK, None, {})

    assert server.requests[0].all("Authorization") == ["Bearer new"]


SNEAKY = {
    "Authorization": "Bearer other",
    "authorization": "Bearer other",
    "X-API-Key": "other",
    "Host": "elsewhere",
    "content-length": "0",
    "Transfer-Encoding": "chunked",
    "Connection": "close",
    "Idempotency-Key": "other",
    "x-protolink-request-id": "0" * 32,
}


@pytest.mark.parametrize("name", SNEAKY)
@pytest.mark.parametrize("source", ["spec", "data"])
def test_headers_of_an_operation_cannot_replace_what_the_transport_sets(name, source):
    """A spec may come from anywhere; whom we are and whom we call is not its business."""
    headers = {name: SNEAKY[name], "X-Fine": "yes"}
    if source == "spec":
        spec = ClientRequestSpec("ask", "/ask", "POST", idempotent=True, headers=headers)
        data: Any = {"n": 1}
    else:
        spec = ClientRequestSpec("ask", "/ask", "POST", None, "headers", idempotent=True)
        data = headers

    with answering() as server, transport(server, credentials=SECRET) as client:
        client.send(spec, None, data)
        client.send(spec, None, data)

    request = server.requests[0]
    if name != "content-length" or source == "spec":  # data in headers leaves an empty body
        assert SNEAKY[name] not in request.all(name)
    assert len(request.all(name)) <= 1
    assert request.all("Authorization") == [f"Bearer {SECRET}"]
    assert request.all("X-Fine") == ["yes"]
    assert len(server.connections) == 1


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "ä", "a\x00"])
def test_data_that_travels_in_headers_cannot_end_its_line(value):
    spec = ClientRequestSpec("ask", "/ask", "GET", None, "headers")

    with answering() as server, transport(server) as client:
        with pytest.raises(ValueError):
            client.send(spec, None, {"X-Data": value})

        assert not server.requests


@pytest.mark.parametrize("name", ["X Data", "X-Evil: 1\r\nX-Data", "", "ä"])
def test_data_that_travels_in_headers_needs_names_that_http_allows(name):
    spec = ClientRequestSpec("ask", "/ask", "GET", None, "headers")

    with answering() as server, transport(server) as client:
        with pytest.raises(ValueError):
            client.send(spec, None, {name: "x"})

        assert not server.requests


def test_data_in_path_and_query_cannot_end_the_request_line():
    path = ClientRequestSpec("look", "/ask/{name}", "GET", None, "path_params")
    query = ClientRequestSpec("look", "/ask", "GET", None, "query_params")
    evil = "x HTTP/1.1\r\nX-Evil: 1\r\n\r\n/../#?&ä"

    with answering() as server, transport(server) as client:
        client.send(path, None, {"name": evil})
        client.send(query, None, {evil: evil})
        client.send(query, None, {}, {"p": evil})

    assert len(server.requests) == 3
    for request in server.requests:
        assert request.header("X-Evil") is None
        assert request.path.startswith("/ask")


# ---- secrets stay secret -----------------------------------------------------------------------

HOLDERS = {
    "a text": lambda: HTTPTransport(credentials=SECRET),
    "a token": lambda: HTTPTransport(credentials=BearerToken(SECRET)),
    "a key": lambda: HTTPTransport(credentials=APIKey(SECRET)),
    "a password": lambda: HTTPTransport(credentials=BasicAuth("me", SECRET)),
    "a mapping": lambda: HTTPTransport(credentials={"http://h": SECRET}),
    "a header": lambda: HTTPTransport(headers={"Authorization": f"Bearer {SECRET}"}),
    "a key header": lambda: HTTPTransport(headers={"x-api-KEY": SECRET}),
    "a cookie": lambda: HTTPTransport(headers={"Cookie": SECRET}),
    "a proxy": lambda: HTTPTransport(proxy=f"http://me:{SECRET}@127.0.0.1:9"),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_repr_shows_no_secret(holder):
    with HOLDERS[holder]() as client:
        assert SECRET not in repr(client)
        assert SECRET not in str(client.health())


@pytest.mark.parametrize(
    "secret",
    [BearerToken(SECRET), APIKey(SECRET), BasicAuth("me", SECRET)],
    ids=lambda s: type(s).__name__,
)
def test_the_repr_of_a_credential_masks_it(secret):
    assert SECRET not in repr(secret)
    assert SECRET not in str(secret)
    assert SECRET not in f"{[secret]}"
    assert not hasattr(secret, "__dict__")


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("protocol", [0, pickle.HIGHEST_PROTOCOL])
def test_a_literal_secret_refuses_pickling_and_names_the_way_out(holder, protocol):
    with (
        HOLDERS[holder]() as client,
        pytest.raises(TypeError, match="cannot be pickled") as caught,
    ):
        pickle.dumps(client, protocol)

    assert SECRET not in str(caught.value)
    assert 'from_env("NAME")' in str(caught.value) or "environment" in str(caught.value)


@pytest.mark.parametrize(
    "credentials",
    [
        BearerToken.from_env("OUR_SECRET"),
        APIKey.from_env("OUR_SECRET", "Authorization"),
        BasicAuth.from_env("me", "OUR_SECRET"),
    ],
    ids=["token", "key", "password"],
)
def test_a_reference_to_a_secret_can_be_pickled(credentials, monkeypatch):
    monkeypatch.setenv("OUR_SECRET", SECRET)
    with answering() as server:
        config = TransportConfig(retry=RetryPolicy(max_attempts=2))
        before = transport(server, credentials=credentials, headers={"X-A": "b"}, config=config)
        data = pickle.dumps(before)
        before.close()

        assert SECRET.encode() not in data
        with pickle.loads(data) as after:
            after.send(ASK, None, {})

            assert after.url == before.url
            assert after.timeout == before.timeout
            assert after.config == config

    assert authorizations(server)[0] in (f"Bearer {SECRET}", SECRET, basic("me", SECRET))
    assert server.requests[0].header("X-A") == "b"


def test_a_pickle_takes_neither_connections_nor_counters_along():
    with answering() as server, transport(server) as before:
        before.send(ASK, None, {})
        with pickle.loads(pickle.dumps(before)) as after:
            assert after.metrics.requests_started == 0
            after.send(ASK, None, {})

        assert len(server.connections) == 2


def test_a_pickled_transport_keeps_tls_and_proxy(tls_files):
    tls = TLSConfig(cafile=tls_files.ca, check_hostname=False)

    with (
        HTTPTransport(tls=tls, proxy="http://127.0.0.1:9", trust_env=False) as before,
        pickle.loads(pickle.dumps(before)) as after,
    ):
        assert after._settings() == before._settings()


def test_a_copy_of_a_credential_is_the_same_credential():
    secret = BearerToken(SECRET)

    assert copy.deepcopy([secret])[0].headers() == secret.headers()


FAILURES = {
    "denied": [RECV, DENIED],
    "a redirect": [RECV, reply(status=302, headers={"Location": "/x"})],
    "no JSON": [RECV, send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n<")],
    "no HTTP": [RECV, send("SSH-2.0\r\n"), CLOSE],
    "cut": [RECV, CLOSE],
}


@pytest.mark.parametrize("failure", FAILURES)
def test_no_error_and_no_log_shows_a_secret(failure, caplog):
    caplog.set_level(logging.DEBUG)

    with (
        serving(FAILURES[failure]) as server,
        transport(server, credentials=SECRET, config=retrying(2)) as client,
    ):
        error = failed(client)

    shown: BaseException | None = error
    while shown is not None:
        assert SECRET not in str(shown)
        assert SECRET not in repr(vars(shown))
        shown = shown.__cause__ or shown.__context__
    assert SECRET not in caplog.text


def test_a_peer_that_echoes_the_headers_gives_nothing_away_to_the_log(caplog):
    caplog.set_level(logging.DEBUG)
    echo = reply({"echo": "{{hdr:Authorization}}"})

    with answering(echo) as server, transport(server, credentials=SECRET) as client:
        client.send(ASK, None, {})

    assert SECRET not in caplog.text


def test_netrc_is_not_read(tmp_path, monkeypatch):
    """requests would replace the caller's token by what stands there."""
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine 127.0.0.1 login me password {SECRET}\n")
    monkeypatch.setenv("NETRC", str(netrc))

    with answering() as server, transport(server, credentials="mine") as client:
        client.send(ASK, None, {})
    with answering() as other, transport(other) as client:
        client.send(ASK, None, {})

    assert authorizations(server) == ["Bearer mine"]
    assert authorizations(other) == [None]


def give_address(where: str, url: str) -> None:
    if where == "transport":
        HTTPTransport(url)
    else:
        with HTTPTransport() as client:
            client.send(ASK, url, {})


@pytest.mark.parametrize("where", ["transport", "call"])
def test_a_user_in_a_url_is_refused_and_the_password_not_shown(where):
    url = f"http://me:{SECRET}@127.0.0.1:8010"

    with pytest.raises(ValueError, match="credentials=") as caught:
        give_address(where, url)

    assert SECRET not in str(caught.value)


# ---- real peers --------------------------------------------------------------------------------

TASK = Task.create(Message.user("echo hi"))


@pytest.mark.parametrize("kind", ["api-key", "bearer", "basic"])
def test_a_real_peer_accepts_what_it_asks_for_and_nothing_else(shared_peer, kind):
    option, right, wrong = {
        "api-key": ("k-1", APIKey("k-1"), APIKey("k-2")),
        "bearer": ("j-1", BearerToken(bearer_jwt("j-1")), BearerToken(bearer_jwt("j-2"))),
        "basic": ("me:pw", BasicAuth("me", "pw"), BasicAuth("me", "wp")),
    }[kind]
    peer = shared_peer("http", f"--{kind}", option)

    with HTTPTransport(peer.url, credentials=right) as client:
        assert client.send(TASK_REQUEST, None, TASK).text == "hi"
    for refused in (wrong, None):
        with HTTPTransport(peer.url, credentials=refused) as client:
            error = failed(client, TASK_REQUEST, data=TASK)
            assert isinstance(error, TransportRemoteError)
            assert error.status_code in (401, 403)
