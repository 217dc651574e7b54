"""Credentials by the card's security schemes: where each one goes, and where none does."""

from __future__ import annotations

import logging

import pytest

from protolink_sync import BasicAuth, BearerToken
from protolink_sync.a2a import A2AClientError, SchemeCredentials
from protolink_sync.errors import TransportError
from tests.a2a.scripted import card, done, interface, old_card, reply

KEY = "k3y/of me"
PLACES = {
    "a header": ({"location": "header", "name": "X-Key"}, "X-Key", KEY),
    "a cookie": ({"location": "cookie", "name": "sid"}, "Cookie", f"sid={KEY}"),
}


def new(**schemes):
    """Return a 1.0 card that asks for all of these schemes."""
    wanted = {"schemes": {name: {"list": []} for name in schemes}}
    return card(securitySchemes=schemes, securityRequirements=[wanted])


def old(**schemes):
    """Return a 0.3 card that asks for all of these schemes."""
    return old_card(securitySchemes=schemes, security=[{name: [] for name in schemes}])


def http_scheme(name):
    return {"httpAuthSecurityScheme": {"scheme": name}}


@pytest.mark.parametrize("place", PLACES)
def test_b67_an_api_key_goes_where_the_card_says(place, meet):
    said, header, value = PLACES[place]
    credentials = SchemeCredentials({"mine": KEY})
    agent, client = meet(
        done(), card=new(mine={"apiKeySecurityScheme": said}), client={"credentials": credentials}
    )
    legacy = {"type": "apiKey", "in": said["location"], "name": said["name"]}
    older, older_client = meet(
        done(old=True), card=old(mine=legacy), client={"credentials": credentials}
    )

    client.send_message("hi")
    older_client.send_message("hi")

    for seen in (agent, older):
        assert seen.calls[0].request.all(header) == [value]
        assert seen.gets[0].header(header) is None
        assert KEY.encode() not in seen.calls[0].request.body


def test_b67_an_api_key_of_the_query_stands_behind_the_address(meet):
    scheme = {"apiKeySecurityScheme": {"location": "query", "name": "api key"}}
    offered = {**new(mine=scheme), "supportedInterfaces": [interface("{{base}}/rpc?a=1")]}
    agent, client = meet(
        done(), card=offered, client={"credentials": SchemeCredentials({"mine": KEY})}
    )

    client.send_message("hi")

    assert agent.calls[0].request.target == "/rpc?a=1&api%20key=k3y%2Fof%20me"


def test_b67_a_key_of_the_query_shows_in_no_error_and_no_log(meet, caplog):
    scheme = {"apiKeySecurityScheme": {"location": "query", "name": "key"}}
    agent, client = meet(
        reply({}, status=500),
        card=new(mine=scheme),
        client={"credentials": SchemeCredentials({"mine": "s3cret"})},
    )

    with (
        caplog.at_level(logging.DEBUG),
        pytest.raises(TransportError) as caught,
    ):
        client.send_message("hi")

    assert "s3cret" in agent.calls[0].request.target
    shown = [str(caught.value), repr(caught.value), str(caught.value.url), client.endpoint_url]
    shown += [r.getMessage() for r in caplog.records if r.name.startswith("protolink_sync")]
    assert not [text for text in shown if "s3cret" in text]


WORDS = {
    "bearer": (http_scheme("Bearer"), "tok", "Bearer tok"),
    "bearer, written small": (http_scheme("bearer"), BearerToken("tok"), "bearer tok"),
    "another scheme of HTTP": (http_scheme("Digest"), "tok", "Digest tok"),
    "basic": (http_scheme("basic"), BasicAuth("u", "p"), "Basic dTpw"),
    "OAuth 2": ({"oauth2SecurityScheme": {"flows": {}}}, "tok", "Bearer tok"),
    "OpenID": (
        {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://x.invalid"}},
        "tok",
        "Bearer tok",
    ),
    "both forms in one": (
        {**http_scheme("Bearer"), "type": "http", "scheme": "x"},
        "t",
        "Bearer t",
    ),
}


@pytest.mark.parametrize("how", WORDS)
def test_b67_what_http_calls_credentials_goes_into_authorization(how, meet):
    scheme, credential, value = WORDS[how]
    agent, client = meet(
        done(),
        card=new(mine=scheme),
        client={"credentials": SchemeCredentials({"mine": credential})},
    )

    client.send_message("hi")

    assert agent.calls[0].request.all("Authorization") == [value]


def test_b67_the_first_alternative_that_can_be_met_is_taken_whole(meet):
    schemes = {
        "one": {"apiKeySecurityScheme": {"location": "header", "name": "X-One"}},
        "two": {"apiKeySecurityScheme": {"location": "header", "name": "X-Two"}},
        "three": {"apiKeySecurityScheme": {"location": "header", "name": "X-Three"}},
    }
    wanted = [
        {"schemes": {"one": {}, "missing": {}}},
        {"schemes": {"two": {"list": ["read"]}, "three": {}}},
        {"schemes": {"one": {}}},
    ]
    agent, client = meet(
        done(),
        card=card(securitySchemes=schemes, securityRequirements=wanted),
        client={"credentials": SchemeCredentials({"one": "1", "two": "2", "three": "3"})},
    )

    client.send_message("hi")

    shown = [agent.calls[0].header(name) for name in ("X-One", "X-Two", "X-Three")]
    assert shown == [None, "2", "3"]


def test_b67_nothing_is_sent_if_no_alternative_can_be_met(meet):
    agent, client = meet(
        done(),
        card=new(theirs=http_scheme("Bearer")),
        client={"credentials": SchemeCredentials({"mine": "s3cret"})},
    )

    with pytest.raises(A2AClientError, match="theirs") as caught:
        client.send_message("hi")

    assert "s3cret" not in str(caught.value)
    assert agent.calls == []


@pytest.mark.parametrize("offered", [card(), card(securitySchemes={"mine": http_scheme("Bearer")})])
def test_b67_who_asks_for_nothing_is_shown_nothing(offered, meet):
    agent, client = meet(
        done(), card=offered, client={"credentials": SchemeCredentials({"mine": "s3cret"})}
    )

    client.send_message("hi")

    assert b"s3cret" not in b"".join(bytes(c.received) for c in agent.connections)


@pytest.mark.parametrize(
    "name", ["Host", "Content-Length", "Transfer-Encoding", "X\r\nX-Evil", "", "Idempotency-Key"]
)
def test_b67_a_card_cannot_have_a_key_put_where_it_does_harm(name, meet):
    scheme = {"apiKeySecurityScheme": {"location": "header", "name": name}}
    agent, client = meet(
        done(),
        card=new(mine=scheme),
        client={"credentials": SchemeCredentials({"mine": "s3cret"})},
    )

    with pytest.raises((ValueError, A2AClientError)) as caught:
        client.send_message("hi")

    assert "s3cret" not in str(caught.value)
    assert agent.calls == []


def test_b99_credentials_by_scheme_go_to_no_other_origin(agent_of, client_of):
    stranger = agent_of(done())
    offered = {
        **new(mine=http_scheme("Bearer")),
        "supportedInterfaces": [interface("{{base:0}}/x")],
    }
    agent = agent_of(card=[offered], peers=[stranger])
    client = client_of(
        agent, credentials=SchemeCredentials({"mine": "s3cret"}), allow_cross_origin=True
    )

    client.send_message("hi")

    assert len(stranger.calls) == 1
    assert b"s3cret" not in b"".join(bytes(c.received) for c in stranger.connections)


def test_no_secret_shows_and_none_is_pickled():
    import pickle

    credentials = SchemeCredentials({"mine": "s3cret"})

    assert "s3cret" not in repr(credentials)
    with pytest.raises(TypeError):
        pickle.dumps(credentials)
