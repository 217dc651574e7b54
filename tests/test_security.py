"""What a caller holds: headers of credentials, secrets that never show, origins, TLS files."""

from __future__ import annotations

import base64
import copy
import json
import pathlib
import pickle
import traceback
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protolink_sync.errors import ProtoLinkError
from protolink_sync.security import (
    APIKey,
    BasicAuth,
    BearerToken,
    TLSConfig,
    check_header,
    credential_headers,
    origin,
)
from protolink_sync.specs import AGENT_CARD_REQUEST
from protolink_sync.testing import ScriptedTransport, reply
from protolink_sync.transport import HTTPTransport

URL = "http://agent.test"

ROOT = pathlib.Path(__file__).parent
SECRET = "s3cret-W0rd"
CARD = {"name": "a", "description": "d", "url": URL}


def literals() -> list[Any]:
    return [
        BearerToken(SECRET),
        APIKey(SECRET),
        APIKey(SECRET, header="X-Other"),
        BasicAuth("user", SECRET),
    ]


def references() -> list[Any]:
    return [
        BearerToken.from_env("TESTS_SECRET"),
        APIKey.from_env("TESTS_SECRET"),
        APIKey.from_env("TESTS_SECRET", header="X-Other"),
        BasicAuth.from_env("user", "TESTS_SECRET"),
    ]


@pytest.fixture
def environment(monkeypatch):
    monkeypatch.setenv("TESTS_SECRET", SECRET)
    return monkeypatch


# --- headers ------------------------------------------------------------------------------------


def test_each_kind_of_credential_is_its_header(environment):
    basic = "Basic " + base64.b64encode(f"user:{SECRET}".encode()).decode()
    expected = [
        {"Authorization": f"Bearer {SECRET}"},
        {"X-API-Key": SECRET},
        {"X-Other": SECRET},
        {"Authorization": basic},
    ]

    assert [c.headers() for c in literals()] == expected
    assert [c.headers() for c in references()] == expected


def test_the_headers_are_those_of_protolinks_own_client():
    """But for the key: theirs sends it twice, which a stranger's log may keep."""
    file = ROOT / "wire" / "vectors" / "credential_headers.json"
    recorded = {
        entry["step"]: entry["headers"] for entry in json.loads(file.read_text())["credentials"]
    }
    token = recorded["auth_client_headers_bearer"]["authorization"].removeprefix("Bearer ")

    def lower(headers):
        return {name.lower(): value for name, value in headers.items()}

    assert lower(BearerToken(token).headers()) == recorded["auth_client_headers_bearer"]
    assert lower(BasicAuth("user", "pass").headers()) == recorded["auth_client_headers_basic_b64"]
    assert (
        lower(APIKey("key-123").headers()).items() < recorded["auth_client_headers_apikey"].items()
    )


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])))
def test_a_password_of_any_letters_is_encoded_as_utf_8(password):
    header = BasicAuth("user", password).headers()["Authorization"]

    assert base64.b64decode(header.removeprefix("Basic ")).decode() == f"user:{password}"
    check_header("Authorization", header, what="test")


def test_an_environment_variable_is_read_anew_for_each_call(environment):
    credential = BearerToken.from_env("TESTS_SECRET")
    environment.setenv("TESTS_SECRET", "next")

    assert credential.headers() == {"Authorization": "Bearer next"}


@pytest.mark.parametrize("value", [None, ""])
def test_a_variable_that_is_not_set_is_named(value, monkeypatch):
    monkeypatch.delenv("TESTS_SECRET", raising=False)
    if value is not None:
        monkeypatch.setenv("TESTS_SECRET", value)

    for credential in references():
        with pytest.raises(ValueError, match="TESTS_SECRET is not set"):
            credential.headers()


# --- what is refused ----------------------------------------------------------------------------

UNSENDABLE = [
    f"{SECRET}\n",
    f"{SECRET}\r\nX-Evil: 1",
    f"{SECRET}\0",
    f"{SECRET}\u20ac",
    f"{SECRET}\x7f",
]


@pytest.mark.parametrize("make", [BearerToken, APIKey])
def test_a_secret_that_could_end_the_header_is_refused_and_not_shown(make):
    for value in UNSENDABLE:
        with pytest.raises(ValueError, match=r"position \d+") as caught:
            make(value)
        assert SECRET not in shown(caught.value)


def test_a_variable_that_holds_what_cannot_be_sent_is_refused_and_not_shown(monkeypatch):
    """``export TOKEN=$(cat file)`` with Windows line ends, and then a header of its own."""
    for value in UNSENDABLE:
        if "\0" in value:
            continue  # no environment holds it
        monkeypatch.setenv("TESTS_SECRET", value)
        for credential in references()[:3]:
            with pytest.raises(ValueError, match=r"position \d+") as caught:
                credential.headers()
            assert SECRET not in shown(caught.value)


@pytest.mark.parametrize("password", ["pass\ud800", "\udcff"])
def test_a_password_that_is_no_text_is_refused_and_not_shown(password, monkeypatch):
    """What the environment holds may be no UTF-8; Python keeps such bytes as half surrogates."""
    with pytest.raises(ValueError, match="BasicAuth") as caught:
        BasicAuth("user", SECRET + password)
    assert SECRET not in shown(caught.value)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: BearerToken(""), ValueError, "empty"),
        (lambda: BearerToken(b"x"), TypeError, "bytes"),
        (lambda: BearerToken(None), TypeError, "NoneType"),
        (lambda: APIKey(""), ValueError, "empty"),
        (lambda: APIKey(5), TypeError, "int"),
        (lambda: APIKey("k", header="X Key"), ValueError, "X Key"),
        (lambda: APIKey("k", header=""), ValueError, "header name"),
        (lambda: APIKey("k", header="X-Key:"), ValueError, "X-Key:"),
        (lambda: APIKey("k", header="Content-Length"), ValueError, "Content-Length"),
        (lambda: APIKey.from_env("N", header="Host"), ValueError, "Host"),
        (lambda: BasicAuth("", "p"), ValueError, "user"),
        (lambda: BasicAuth("a:b", "p"), ValueError, "colon"),
        (lambda: BasicAuth("a", None), TypeError, "text"),
        (lambda: BasicAuth(None, "p"), TypeError, "text"),
        (lambda: BasicAuth("us\ner", "p"), ValueError, "BasicAuth"),
        (lambda: BearerToken.from_env(""), ValueError, "name of an environment variable"),
        (lambda: BearerToken.from_env(None), ValueError, "name of an environment variable"),
        (lambda: BasicAuth.from_env("a:b", "N"), ValueError, "colon"),
    ],
)
def test_a_wrong_argument_says_what_is_wrong(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("", "v", ValueError),
        ("X A", "v", ValueError),
        ("X-\u00dc", "v", ValueError),
        ("X:", "v", ValueError),
        ("X", "a\nb", ValueError),
        ("X", "\u00fc", ValueError),
        ("X", 5, TypeError),
        (5, "v", TypeError),
        ("X", b"v", TypeError),
    ],
)
def test_a_header_that_http_does_not_allow_is_refused(name, value, error):
    with pytest.raises(error, match="headers="):
        check_header(name, value, what="headers=")


def test_a_header_with_blanks_and_tabs_is_allowed():
    check_header("X-A_b.c~1", "a b\tc", what="headers=")


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "content-length",
        "Transfer-Encoding",
        "CONNECTION",
        "Idempotency-Key",
        "X-Protolink-Request-ID",
        "x-protolink-anything",
    ],
)
def test_headers_of_the_transport_cannot_be_given(name):
    with pytest.raises(ValueError, match="sets itself"):
        HTTPTransport(headers={name: "1"})


# --- secrets do not show ------------------------------------------------------------------------


def shown(error: BaseException) -> str:
    """Return all that a traceback with local variables, a log or a debugger would show of it."""
    lines = traceback.TracebackException.from_exception(error, capture_locals=False).format()
    parts = ["".join(lines), repr(error), str(error), repr(vars(error))]
    chained = error.__cause__ or error.__context__
    return (
        "".join(parts) + (repr(getattr(error, "object", ""))) + (shown(chained) if chained else "")
    )


def test_a_credential_shows_its_kind_only():
    texts = [f"{c!r} {c} {[c]}" for c in literals()]

    assert not any(SECRET in text for text in texts)
    assert "user" in texts[3]
    assert ["***" in text for text in texts] == [True] * 4


def test_a_reference_shows_the_variable(environment):
    for credential in references():
        assert "TESTS_SECRET" in repr(credential)
        assert SECRET not in repr(credential)


def test_a_literal_secret_is_not_pickled_and_the_error_names_the_way_out():
    for credential in literals():
        for protocol in range(6):
            with pytest.raises(
                TypeError, match=rf"{type(credential).__name__}\.from_env"
            ) as caught:
                pickle.dumps(credential, protocol)
            assert SECRET not in shown(caught.value)


def test_a_reference_is_pickled_without_the_secret(environment):
    for credential in references():
        for protocol in range(6):
            pickled = pickle.dumps(credential, protocol)

            assert SECRET.encode() not in pickled
            assert pickle.loads(pickled).headers() == credential.headers()


def test_a_credential_is_copied_by_sharing():
    for credential in literals():
        assert copy.copy(credential) is credential
        assert copy.deepcopy({"c": credential})["c"] is credential


def test_a_transport_shows_no_secret():
    for credential in [SECRET, *literals(), {URL: SECRET}, lambda origin, refresh: {"A": SECRET}]:
        transport = ScriptedTransport(
            reply(status=401, body=b"no"), credentials=credential, headers={"X-Own": SECRET}
        )

        with pytest.raises(ProtoLinkError) as caught:
            transport.send(AGENT_CARD_REQUEST, URL)

        assert SECRET not in shown(caught.value)
        assert SECRET not in f"{transport!r}{transport.health()}{transport.calls}"
        assert SECRET.encode() not in pickle.dumps(caught.value)


def test_a_transport_with_a_literal_secret_is_not_pickled():
    for credential in [SECRET, *literals(), {URL: SECRET}]:
        with pytest.raises(TypeError, match="from_env") as caught:
            pickle.dumps(HTTPTransport(credentials=credential))
        assert SECRET not in shown(caught.value)
    for name in ("Authorization", "x-api-key", "Cookie"):
        with pytest.raises(TypeError, match="from_env") as caught:
            pickle.dumps(HTTPTransport(headers={name: SECRET}))
        assert SECRET not in shown(caught.value)


def test_a_user_in_an_address_is_refused_and_not_shown():
    for url in (f"http://user:{SECRET}@h", f"http://{SECRET}@h:1/x"):
        with pytest.raises(ValueError, match="credentials=") as caught:
            ScriptedTransport(url=url)
        assert SECRET not in shown(caught.value)


def test_a_header_that_cannot_be_sent_is_not_shown():
    with pytest.raises(ValueError, match="X-Own") as caught:
        ScriptedTransport(headers={"X-Own": f"{SECRET}\n"})

    assert SECRET not in shown(caught.value)


# --- whom they are sent to ----------------------------------------------------------------------


def sent(credentials: Any, url: str = URL) -> Any:
    transport = ScriptedTransport(reply(CARD), credentials=credentials)
    transport.send(AGENT_CARD_REQUEST, url)
    return transport.calls[0].credentials


def test_one_credential_goes_to_every_peer_that_is_called():
    for url in (URL, "https://other.test:8443/x"):
        assert sent("token", url) == {"Authorization": "Bearer token"}
        assert sent(APIKey("k"), url) == {"X-API-Key": "k"}


def test_a_mapping_sends_each_origin_its_own_and_a_stranger_none():
    credentials = {"http://agent.test": "one", "https://B.test:443/ignored": APIKey("two")}

    assert sent(credentials, "http://AGENT.test:80/path") == {"Authorization": "Bearer one"}
    assert sent(credentials, "https://b.test") == {"X-API-Key": "two"}
    assert sent(credentials, "http://b.test") == {}
    assert sent(credentials, "http://agent.test:8080") == {}


def test_a_callable_is_asked_with_the_origin_for_each_call():
    asked = []

    def credentials(origin, refresh):
        asked.append((origin, refresh))
        return {"Authorization": "own"}

    assert sent(credentials, "http://Agent.test:80/x/y") == {"Authorization": "own"}
    assert asked == [("http://agent.test", False)]
    assert sent(lambda origin, refresh: None) == {}


@pytest.mark.parametrize(
    ("result", "error"),
    [
        ("text", TypeError),
        ([("a", "b")], TypeError),
        ({"A": 5}, TypeError),
        ({"A": f"{SECRET}\n"}, ValueError),
        ({"A b": "x"}, ValueError),
    ],
)
def test_what_a_callable_returns_is_checked(result, error):
    with pytest.raises(error, match="callable") as caught:
        sent(lambda origin, refresh: result)

    assert SECRET not in shown(caught.value)


@pytest.mark.parametrize(
    ("credentials", "error", "words"),
    [
        (5, TypeError, "int"),
        (b"token", TypeError, "bytes"),
        ({URL: 5}, TypeError, "int"),
        ({"no origin": "x"}, ValueError, "no origin"),
        ({"": "x"}, ValueError, "absolute URL"),
        ("", ValueError, "empty"),
        ("tok\nen", ValueError, "position 3"),
    ],
)
def test_other_credentials_are_refused_when_they_are_given(credentials, error, words):
    with pytest.raises(error, match=words):
        ScriptedTransport(credentials=credentials)


def test_no_credentials_are_no_headers():
    assert sent(None) == {}
    assert credential_headers(None, URL) is None


# --- a refused call asks once more --------------------------------------------------------------


def test_a_callable_may_answer_a_401_with_fresh_headers():
    answers = iter([{"A": "old"}, {"A": "new"}])
    asked = []

    def credentials(origin, refresh):
        asked.append(refresh)
        return next(answers)

    transport = ScriptedTransport(reply(status=401), reply(CARD), credentials=credentials)

    transport.send(AGENT_CARD_REQUEST, URL)

    first, second = transport.calls
    assert (first.credentials, second.credentials) == ({"A": "old"}, {"A": "new"})
    assert asked == [False, True]
    assert (first.body, first.headers) == (second.body, second.headers)


@pytest.mark.parametrize("status", [401, 403])
def test_the_same_headers_are_not_sent_twice(status):
    transport = ScriptedTransport(reply(status=status), credentials=lambda o, r: {"A": "same"})

    with pytest.raises(ProtoLinkError):
        transport.send(AGENT_CARD_REQUEST, URL)

    assert len(transport.calls) == 1


def test_a_second_401_is_the_end():
    answers = iter([{"A": "1"}, {"A": "2"}, {"A": "3"}])
    transport = ScriptedTransport(
        reply(status=401), reply(status=401), credentials=lambda o, r: next(answers)
    )

    with pytest.raises(ProtoLinkError, match="401"):
        transport.send(AGENT_CARD_REQUEST, URL)

    assert len(transport.calls) == 2


# --- origins ------------------------------------------------------------------------------------

PAIRS = next(
    case["input"]
    for case in json.loads((ROOT / "cases" / "cases.json").read_text(encoding="utf-8"))["cases"]
    if case["id"] == "C075"
)

SAME = [
    *PAIRS["pairs_equal"],
    ["ws://h", "WS://H:80/path?q#f"],
    ["wss://h:443", "wss://h"],
    ["http://h.", "http://h"],
    ["http://h:", "http://h:80"],
    ["http://user:pass@h", "http://h"],
    ["http://[2001:DB8::1]", "http://[2001:db8:0:0:0:0:0:1]:80"],
    ["grpc://H:1", "grpc://h:1"],
    ["http://h:0080", "http://h"],
]
OTHERS = [
    *PAIRS["pairs_different"],
    ["ws://h", "http://h"],
    ["grpc://h", "grpc://h:443"],
    ["http://h", "http://h.example"],
    ["http://h@evil.test", "http://h"],
    ["http://[::1]", "http://127.0.0.1"],
    ["https://h:80", "https://h"],
    ["http://h:443", "https://h"],
]


def test_one_origin_has_one_spelling():
    assert [pair for pair in SAME if origin(pair[0]) != origin(pair[1])] == []


def test_two_origins_have_two_spellings():
    assert [pair for pair in OTHERS if origin(pair[0]) == origin(pair[1])] == []


@pytest.mark.parametrize(
    "url",
    [
        *("", "h", "/path", "http://", "http:///x", "http://:80", "http://h:x", "http://h:99999"),
        *("//h", "http://[::1]evil/", "http://x[::1]/", "http://u@x[::1]/", "http://[v1.x]/"),
    ],
)
def test_what_is_no_absolute_url_has_no_origin(url):
    with pytest.raises(ValueError):
        origin(url)


@given(st.text(max_size=30) | st.text("htps:/[].@?#ab1%\\ \t\n", max_size=30))
def test_an_origin_is_found_or_a_value_error(text):
    try:
        found = origin(text)
    except ValueError:
        return
    assert origin(found) == found, "an origin is its own origin"


hosts = st.sampled_from(["h", "H.Example", "127.0.0.1", "[::1]", "[0:0::1]", "xn--bcher-kva.ch"])


@given(st.sampled_from(["http", "https", "ws", "grpc"]), hosts, st.integers(1, 65535) | st.none())
def test_path_and_case_do_not_change_an_origin(scheme, host, port):
    url = f"{scheme}://{host}" + ("" if port is None else f":{port}")

    assert origin(url) == origin(url.upper()) == origin(f"{url}/a/b?c=d#e")


# --- TLS ----------------------------------------------------------------------------------------


def test_certificates_are_given_as_paths(tls_files):
    config = TLSConfig(tls_files.client_cert, tls_files.client_key, tls_files.ca)

    assert (config.certfile, config.keyfile) == (tls_files.client_cert, tls_files.client_key)
    assert (config.require_client_cert, config.check_hostname) == (False, True)
    assert TLSConfig(cafile=pathlib.Path(tls_files.ca)) == TLSConfig(
        cafile=pathlib.Path(tls_files.ca)
    )


def test_tls_settings_are_frozen_values(tls_files):
    config = TLSConfig(cafile=tls_files.ca)

    assert len({config, TLSConfig(cafile=tls_files.ca), TLSConfig()}) == 2
    assert pickle.loads(pickle.dumps(config)) == copy.deepcopy(config) == config
    with pytest.raises(AttributeError):
        config.cafile = None  # type: ignore[misc]


def test_certificate_and_key_belong_together(tls_files):
    with pytest.raises(ValueError, match="certfile but no keyfile"):
        TLSConfig(certfile=tls_files.client_cert)
    with pytest.raises(ValueError, match="keyfile but no certfile"):
        TLSConfig(keyfile=tls_files.client_key)


def test_asking_callers_for_certificates_needs_their_authority(tls_files):
    with pytest.raises(ValueError, match="needs cafile"):
        TLSConfig(require_client_cert=True)

    assert TLSConfig(cafile=tls_files.ca, require_client_cert=True).require_client_cert


@pytest.mark.parametrize("name", ["certfile", "keyfile", "cafile"])
def test_a_file_must_be_there(name, tmp_path):
    with pytest.raises(ValueError, match=rf"TLSConfig\.{name}.*missing\.pem"):
        TLSConfig(**{name: str(tmp_path / "missing.pem")})
    with pytest.raises(ValueError, match=rf"TLSConfig\.{name}"):
        TLSConfig(**{name: str(tmp_path)})
    with pytest.raises(TypeError, match=rf"TLSConfig\.{name}"):
        TLSConfig(**{name: 5})


def test_a_switch_is_true_or_false(tls_files):
    """``check_hostname=None`` must not switch the check off in silence."""
    for name in ("require_client_cert", "check_hostname"):
        for value in (None, 0, 1, "no", ""):
            with pytest.raises(TypeError, match=rf"TLSConfig\.{name} is {value!r}"):
                TLSConfig(cafile=tls_files.ca, **{name: value})


def test_the_place_of_the_private_key_does_not_show(tls_files):
    config = TLSConfig(tls_files.client_cert, tls_files.client_key)

    assert tls_files.client_key not in repr(config)
