"""Origins: a card may say where to call, but not whom; two servers, and who hears a secret."""

from __future__ import annotations

import logging

import pytest

from protolink_sync import APIKey, BearerToken
from protolink_sync.a2a import WireDialect
from tests.a2a.client.scenes import heard
from tests.a2a.client.test_selection import NEW, OPERATIONS
from tests.a2a.scripted import card, done, interface, old_card, sent, stream, task

SECRET = "s3cret-of-mine"
ANSWERS = {"SendMessage": done(), "message/send": done(old=True)}


def heard_by(server):
    """Return every byte that arrived at a server."""
    return b"".join(bytes(connection.received) for connection in list(server.connections))


@pytest.fixture
def two(agent_of, client_of):
    """Start an agent whose card names a second server: ``two(card, ...)``."""

    def start(offered, answers=ANSWERS, **settings):
        stranger = agent_of(methods=answers)
        agent = agent_of(methods=answers, card=[offered], peers=[stranger])
        return agent, stranger, client_of(agent, **settings)

    return start


ELSEWHERE = interface("{{base:0}}/rpc", tenant="acme")


@pytest.mark.parametrize("path", ["/a2a/v1", "/", "/rpc/", "/rpc?x=1"])
def test_b93_any_path_of_the_same_origin_is_called(path, meet):
    agent, client = meet(done(), card=card(interface("{{base}}" + path)))

    client.send_message("hi")

    assert agent.calls[0].request.target == path


def test_b93_the_origin_is_compared_not_the_spelling(meet):
    agent, client = meet(done(), card=card(interface("HTTP://{{hdr:Host}}/rpc")))

    client.send_message("hi")

    assert agent.calls[0].path == "/rpc"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_b94_another_origin_is_ignored_and_nothing_arrives_there(operation, two):
    method, answer = NEW[operation]
    agent, stranger, client = two(
        card(ELSEWHERE), {method: answer}, credentials=BearerToken(SECRET)
    )

    OPERATIONS[operation](client)

    assert stranger.connections == []
    (call,) = agent.calls
    assert (call.path.rstrip("/"), call.method) == ("", method)
    assert call.params["tenant"] == "acme"
    assert client.endpoint_url == agent.base
    assert call.header("Authorization") == f"Bearer {SECRET}"


def test_b94_one_warning_names_both_origins_and_the_switch(two, caplog):
    agent, stranger, client = two(card(ELSEWHERE), credentials=BearerToken(SECRET))

    with caplog.at_level(logging.WARNING, logger="protolink_sync"):
        client.send_message("hi")
        client.send_message("hi")

    (told,) = [record.getMessage() for record in caplog.records]
    assert agent.address in told
    assert stranger.address in told
    assert "cross_origin" in told
    assert SECRET not in told


def test_b94_a_host_that_does_not_print_is_shown_printable(meet, caplog):
    odd = "http://evil\u0007\u001b[31m.invalid\u0000/rpc"
    agent, client = meet(done(), card=card(interface(odd)))

    with caplog.at_level(logging.WARNING, logger="protolink_sync"):
        client.send_message("hi")

    assert len(agent.calls) == 1
    assert all(text.isprintable() for record in caplog.records for text in [record.getMessage()])


@pytest.mark.parametrize("path", ["/rpc", "/a/b?x=1"])
def test_b95_a_path_is_resolved_against_the_origin(path, agent_of, client_of):
    agent = agent_of(done(), card=card(interface(path)))

    client_of(agent.base + "/deep/down").send_message("hi")

    assert agent.calls[0].request.target == path


UNUSABLE = [
    "ftp://127.0.0.1/x",
    "file:///etc/hostname",
    "javascript:alert(1)",
    "http://",
    "http://[::1",
    "http://127.0.0.1:port/rpc",
    "rpc",
    "",
    "ht!tp://x",
]


@pytest.mark.parametrize("url", UNUSABLE)
def test_b95_an_address_that_is_none_is_not_used(url, meet, caplog):
    agent, client = meet(done(), card=card(interface(url)))

    with caplog.at_level(logging.WARNING, logger="protolink_sync"):
        client.send_message("hi")

    (call,) = agent.calls
    assert call.path.rstrip("/") in {"", "/rpc"}
    if url != "rpc":
        assert client.endpoint_url == agent.base
        assert not caplog.records


@pytest.mark.parametrize("url", ["//{}/rpc", "http:\\\\{}/rpc", "http://user:pw@{}/rpc"])
def test_b95_a_spelling_that_hides_a_host_leads_nowhere_else(url, meet, agent_of):
    stranger = agent_of(methods=ANSWERS)
    hiding = card(interface(url.format(stranger.address)))
    agent, client = meet(methods=ANSWERS, card=hiding, client={"credentials": BearerToken(SECRET)})

    client.send_message("hi")

    assert stranger.connections == []
    assert len(agent.calls) == 1


def test_b96_the_switch_follows_the_card_from_the_next_selection_on(two):
    agent, stranger, client = two(card(ELSEWHERE))
    client.send_message("hi")
    assert stranger.connections == []

    client.set_allow_cross_origin_interfaces(True)
    client.send_message("hi")
    assert [call.params["tenant"] for call in stranger.calls] == ["acme"]
    assert client.endpoint_url == stranger.base + "/rpc"

    client.set_allow_cross_origin_interfaces(False)
    client.send_message("hi")
    assert len(stranger.calls) == 1
    assert len(agent.gets) == 1


@pytest.mark.parametrize(
    "offered",
    [
        old_card("{{base:0}}/rpc"),
        old_card(
            "{{base:0}}/grpc",
            preferredTransport="GRPC",
            additionalInterfaces=[{"url": "{{base:0}}/rpc", "transport": "JSONRPC"}],
        ),
    ],
)
def test_b97_the_addresses_of_a_legacy_card_are_under_the_same_rule(offered, two):
    agent, stranger, client = two(offered, credentials=BearerToken(SECRET))

    client.send_message("hi")

    assert stranger.connections == []
    assert (agent.calls[0].path.rstrip("/"), agent.methods) == ("", ["message/send"])
    assert client.wire_dialect is WireDialect.V0_3


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_b98_an_agent_whose_card_names_an_inner_address_can_be_called(host, meet):
    """There the call works because the card's address is ignored."""
    agent, client = meet(done(), card=card(interface(f"http://{host}:9/rpc")))

    assert client.send_message("hi").text == "done"

    assert len(agent.calls) == 1


CREDENTIALS = {
    "a token": {"credentials": BearerToken(SECRET)},
    "a key": {"credentials": APIKey(SECRET)},
    "a callable": {"credentials": lambda origin, refresh: {"Authorization": SECRET}},
    "headers": {"headers": {"X-Mine": SECRET}},
}


@pytest.mark.parametrize("how", CREDENTIALS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_b99_no_credential_goes_to_another_origin_without_the_second_switch(operation, how, two):
    method, answer = NEW[operation]
    _agent, stranger, client = two(
        card(ELSEWHERE), {method: answer}, allow_cross_origin=True, **CREDENTIALS[how]
    )
    client.set_authorization_header(f"Bearer {SECRET}")

    OPERATIONS[operation](client)

    assert len(stranger.calls) == 1
    assert SECRET.encode() not in heard_by(stranger)


@pytest.mark.parametrize("how", CREDENTIALS)
def test_b99_with_the_second_switch_they_go_there(how, two):
    _agent, stranger, client = two(
        card(ELSEWHERE),
        allow_cross_origin=True,
        send_credentials_cross_origin=True,
        **CREDENTIALS[how],
    )

    client.send_message("hi")

    assert SECRET.encode() in heard_by(stranger)


def test_b99_credentials_for_the_other_origin_go_there(agent_of, client_of):
    """Who names an origin has told the client to give them to it."""
    stranger = agent_of(methods=ANSWERS)
    agent = agent_of(card=[card(ELSEWHERE)], peers=[stranger])
    client = client_of(
        agent,
        allow_cross_origin=True,
        credentials={agent.base: BearerToken("for-agent"), stranger.base: BearerToken("for-other")},
    )

    client.send_message("hi")

    assert agent.gets[0].header("Authorization") == "Bearer for-agent"
    assert b"for-agent" not in heard_by(stranger)
    assert stranger.calls[0].header("Authorization") in {None, "Bearer for-other"}


def test_b99_a_stream_keeps_to_the_same_rule(two):
    _agent, stranger, client = two(
        card(ELSEWHERE),
        {"SendStreamingMessage": stream(sent(task()))},
        credentials=BearerToken(SECRET),
        allow_cross_origin=True,
    )

    seen = heard(lambda: client.stream_message("hi"))

    assert seen.error is None
    assert len(stranger.calls) == 1
    assert SECRET.encode() not in heard_by(stranger)


def test_b95_an_address_with_user_info_is_not_used(meet):
    """Also not that of the same host: what stands there would be shown as credentials."""
    agent, client = meet(done(), card=card(interface("http://me:p4ss@{{hdr:Host}}/rpc")))

    client.send_message("hi")

    (call,) = agent.calls
    assert call.path.rstrip("/") == ""
    assert call.header("Authorization") is None
    assert b"p4ss" not in heard_by(agent)
    assert client.endpoint_url == agent.base
