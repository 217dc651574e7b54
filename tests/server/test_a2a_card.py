"""The A2A card of a hosted agent, and the address in it."""

from __future__ import annotations

import json

import pytest

from protolink_sync.a2a import A2AClient
from protolink_sync.models import AgentCard, AgentSkill
from protolink_sync.server import Agent
from tests.server.a2a_calling import CARD, calling
from tests.server.hosting import Kitchen, card
from tests.server.test_wsgi import call


def fetched(agent, **environ):
    status, headers, body = call(agent.wsgi_app(a2a=True), "GET", CARD, **environ)
    assert status == 200
    return json.loads(body), headers


def url_of(own, **environ):
    value, _ = fetched(Agent(AgentCard("a", "b", own)), **environ)
    (interface,) = value["supportedInterfaces"]
    assert (interface["protocolBinding"], interface["protocolVersion"]) == ("JSONRPC", "1.0")
    return interface["url"]


def test_the_card_says_what_the_agent_is():
    skills = [AgentSkill("book-table", "books", tags=["food"], examples=["for two", {"n": 2}])]
    agent = Agent(card(skills=skills, input_formats=["text/plain", "image/png"], version="2.1"))

    @agent.tool
    def price(title: str) -> float:
        """What it costs."""
        return 1.0

    value, _ = fetched(agent)

    del value["supportedInterfaces"]
    assert value == {
        "name": "kitchen",
        "description": "does what the text says",
        "version": "2.1",
        "capabilities": {
            "streaming": True,
            "pushNotifications": False,
            "extendedAgentCard": False,
        },
        "defaultInputModes": ["text/plain", "image/png"],
        "defaultOutputModes": ["text/plain"],
        "skills": [
            {
                "id": "book-table",
                "name": "Book Table",
                "description": "books",
                "tags": ["food"],
                "examples": ["for two"],
            },
            {
                "id": "price",
                "name": "Price",
                "description": "What it costs.",
                "tags": value["skills"][1]["tags"],
            },
        ],
    }
    assert value["skills"][1]["tags"]


FLOWS = {"clientCredentials": {"tokenUrl": "http://id.test", "scopes": {}}}
SCHEMES = {
    "apiKey": {"type": "apiKey", "scheme": None, "metadata": {}, "description": "a key"},
    "http": {"type": "http", "scheme": "bearer", "metadata": {"bearer_format": "JWT"}},
    "oidc": {"type": "openIdConnect", "metadata": {"open_id_connect_url": "http://id.test"}},
    "oauth": {"type": "oauth2", "flows": FLOWS},
    "mutualTLS": {},
    "own": {"apiKeySecurityScheme": {"location": "query", "name": "k"}},
    "lacking": {"type": "http"},
    "unknown": {"type": "magic"},
}


def test_the_schemes_of_the_card_become_those_of_a2a():
    value, _ = fetched(Agent(card(security_schemes=SCHEMES)))

    assert value["securitySchemes"] == {
        "apiKey": {
            "apiKeySecurityScheme": {
                "location": "header",
                "name": "X-API-Key",
                "description": "a key",
            }
        },
        "http": {"httpAuthSecurityScheme": {"scheme": "bearer", "bearerFormat": "JWT"}},
        "oidc": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "http://id.test"}},
        "oauth": {
            "oauth2SecurityScheme": {"flows": FLOWS},
        },
        "mutualTLS": {"mtlsSecurityScheme": {}},
        "own": {"apiKeySecurityScheme": {"location": "query", "name": "k"}},
    }
    assert value["securityRequirements"][0] == {"schemes": {"apiKey": {"list": []}}}
    assert len(value["securityRequirements"]) == 6


def test_an_agent_that_asks_who_calls_says_how_and_shows_its_card_to_all():
    agent = Kitchen(authenticate=lambda environ: None)
    with calling(agent) as (caller, _):
        reply = caller.request("GET", CARD)
        assert caller.rpc("ListTasks").status == 401
        assert caller.request("GET", "/.well-known/agent.json").status == 401

    assert reply.json()["securitySchemes"] == {
        "bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}
    }
    assert "securitySchemes" not in fetched(Kitchen())[0]


def test_a_card_that_is_known_is_not_sent_again():
    with calling(Kitchen()) as (caller, server):
        first = caller.request("GET", CARD)
        tag = first.headers["etag"]
        for told in (tag, f"W/{tag}", f'"other", {tag}', "*"):
            again = caller.request("GET", CARD, If_None_Match=told)
            assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
            assert "transfer-encoding" not in again.headers
        assert caller.request("GET", CARD, If_None_Match='"other"').body == first.body
        assert caller.request("HEAD", CARD).headers["content-length"] == str(len(first.body))
        # The connection stays in step after an answer without a body.
        assert server.connections == 1


def test_the_application_keeps_to_pep_3333_with_304_too():
    app = Kitchen().wsgi_app(a2a=True)
    _, headers, _ = call(app, "GET", CARD)

    status, _, body = call(app, "GET", CARD, HTTP_IF_NONE_MATCH=headers["ETag"])

    assert (status, body) == (304, b"")


def test_a_served_agent_says_where_it_is_served():
    with calling(Kitchen()) as (caller, server):
        (interface,) = caller.request("GET", CARD).json()["supportedInterfaces"]
        port = server.url.rpartition(":")[2]
        local = caller.request("GET", CARD, Host=f"LOCALHOST:{port}").json()
        own = caller.request("GET", CARD, Host="kitchen.test").json()
        forged = caller.request("GET", CARD, Host="evil.test").json()

    assert interface["url"] == server.url
    assert local["supportedInterfaces"][0]["url"] == f"http://localhost:{port}"
    # Reached through a proxy that passes on the name of the agent's own card.
    assert own["supportedInterfaces"][0]["url"] == "http://kitchen.test"
    assert forged["supportedInterfaces"][0]["url"] == server.url


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.test",
        "kitchen.test@evil.test",
        "[",
        "[::1",
        "a b",
        "kitchen.test:x",
        "ä",
        "x" * 9999,
    ],
)
def test_behind_another_server_it_is_the_address_of_the_card(host):
    assert (
        url_of("https://kitchen.test/agents/a", HTTP_HOST=host) == "https://kitchen.test/agents/a"
    )


@pytest.mark.parametrize(
    "own", ["", "runtime://kitchen", "http://0.0.0.0:80", "http://[::", "http:"]
)
def test_without_an_address_it_is_what_was_asked_for_and_not_to_be_kept_for_others(own):
    agent = Agent(AgentCard("a", "b", own))
    asked = {"HTTP_HOST": "agents.test:8443", "SCRIPT_NAME": "/a b", "wsgi.url_scheme": "https"}

    value, headers = fetched(agent, **asked)

    assert value["supportedInterfaces"][0]["url"] == "https://agents.test:8443/a%20b/"
    assert headers["Cache-Control"] == "private, no-cache"
    assert headers["Vary"] == "Host"


def test_a_host_that_is_no_host_is_not_repeated():
    assert url_of("", HTTP_HOST="x/<script>") == "http://127.0.0.1:80/"


def test_our_client_finds_its_way_by_the_name_it_called():
    with Kitchen().serve("http://127.0.0.1:0", a2a=True) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        with A2AClient(url) as client:
            assert client.send_message("echo hi").text == "hi"
            assert client.endpoint_url == url


@pytest.mark.parametrize("path", ["", "/"])
def test_below_a_prefix_the_calls_may_go_to_the_prefix_itself(path):
    body = b'{"jsonrpc":"2.0","id":1,"method":"ListTasks"}'
    headers = {"CONTENT_TYPE": "application/json", "HTTP_A2A_VERSION": "1.0"}
    mounted = {"SCRIPT_NAME": "/agents/kitchen", **headers}

    status, _, answer = call(Kitchen().wsgi_app(a2a=True), "POST", path, body, **mounted)

    assert status == 200
    assert json.loads(answer)["result"]["totalSize"] == 0
