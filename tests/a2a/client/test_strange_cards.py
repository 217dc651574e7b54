"""Cards from strangers: a clear error, or the leniency that is documented; never a crash."""

from __future__ import annotations

import time

import pytest

from protolink_sync.a2a import A2AClientError
from protolink_sync.config import TransportConfig, TransportLimits
from protolink_sync.errors import (
    TransportConnectionError,
    TransportLimitError,
    TransportProtocolError,
)
from tests.a2a.client.scenes import Running
from tests.a2a.scripted import card, done, interface, old_card, reply

WHOLE = card()


@pytest.mark.parametrize("member", [name for name in WHOLE if name != "supportedInterfaces"])
@pytest.mark.parametrize("how", ["missing", "null"])
def test_a_member_that_is_missing_or_null_reads_as_unset(member, how, meet):
    offered = {**WHOLE, member: None}
    if how == "missing":
        del offered[member]
    agent, client = meet(done(), card=[offered], client={"strict": member != "capabilities"})

    assert client.send_message("hi").text == "done"

    seen = client.fetch_agent_card()
    assert not list(seen.skills)
    assert agent.calls[0].path == "/rpc"


def test_a_card_with_nothing_but_an_interface_is_enough(meet):
    _agent, client = meet(done(), card=[{"supportedInterfaces": [interface()]}])

    assert client.send_message("hi").text == "done"


def test_a_legacy_card_with_nothing_but_an_address_is_enough(meet):
    agent, client = meet(done(old=True), card=[{"url": "{{base}}/rpc"}])

    assert client.send_message("hi").text == "done"

    assert agent.methods == ["message/send"]


def test_unknown_members_are_kept(meet):
    offered = card(interface(future=1), hologram={"a": [1]})
    _, client = meet(card=[offered])

    seen = client.fetch_agent_card()

    assert seen.raw["hologram"] == {"a": [1]}
    assert seen.raw["supportedInterfaces"][0]["future"] == 1


ODD_MEMBERS = {
    "interfaces that are no list": {"supportedInterfaces": 5},
    "an interface that is no object": {"supportedInterfaces": [7, None, interface()]},
    "an address that is no text": {"supportedInterfaces": [interface(url=5), interface()]},
    "a version that is a number": {"supportedInterfaces": [interface(version=1.0), interface()]},
    "capabilities that are a list": {"capabilities": []},
    "skills that are a text": {"skills": "all"},
    "a skill that is a number": {"skills": [1]},
    "a name that is an object": {"name": {}},
    "modes that are numbers": {"defaultInputModes": [1]},
    "schemes that are a list": {"securitySchemes": [1]},
    "a scheme that is a text": {"securitySchemes": {"a": "b"}},
    "requirements that are a text": {"securityRequirements": "all"},
    "signatures that are a number": {"signatures": 4},
}


@pytest.mark.parametrize("what", ODD_MEMBERS)
def test_a_member_of_the_wrong_type_is_an_error_of_ours_or_passed_over(what, meet):
    _agent, client = meet(done(), card=[{**WHOLE, **ODD_MEMBERS[what]}])

    seen = Running(lambda: client.fetch_agent_card() and client.send_message("hi")).end()

    assert seen.value is not None or isinstance(
        seen.error, (A2AClientError, TransportProtocolError)
    )
    assert len(str(seen.error)) < 2000


def test_a_security_scheme_may_lack_its_wrapper_or_have_both(meet):
    wrapper = {"httpAuthSecurityScheme": {"scheme": "Bearer"}, "scheme": "Bearer", "type": "http"}
    bare = {"type": "apiKey", "in": "header", "name": "X-Key"}
    _, client = meet(card=[card(securitySchemes={"both": wrapper, "bare": bare, "odd": {}})])

    seen = client.fetch_agent_card().security_schemes

    assert set(seen) == {"both", "bare", "odd"}
    assert seen["both"].kind == "http"
    assert (seen["bare"].kind, seen["bare"].location, seen["bare"].name) == (
        "apiKey",
        "header",
        "X-Key",
    )


def test_a_hybrid_card_is_read_whole(meet):
    offered = {**old_card("{{base}}/old"), **card(interface(), interface(version="0.3"))}
    _, client = meet(card=[offered])

    seen = client.fetch_agent_card()

    assert [one.protocol_version for one in seen.interfaces] == ["1.0", "0.3"]
    assert not seen.is_legacy
    assert seen.supports_extended_card


def test_html_instead_of_a_card_is_named(meet):
    _, client = meet(
        done(), card=[reply("<html><title>app</title>", headers={"Content-Type": "text/html"})]
    )

    with pytest.raises(TransportProtocolError, match=r"text/html|html"):
        client.fetch_agent_card()


def test_a_card_of_ten_megabytes_is_read_or_refused_within_its_limit(meet):
    big = card(description="x" * 10_000_000)
    _, reading = meet(done(), card=[big])
    _, refusing = meet(
        done(),
        card=[big],
        client={"config": TransportConfig(limits=TransportLimits(max_response_bytes=1_000_000))},
    )

    assert len(reading.fetch_agent_card().description) == 10_000_000
    with pytest.raises(TransportLimitError, match="1000000"):
        refusing.fetch_agent_card()


def test_a_card_with_ten_thousand_interfaces_makes_one_short_error(meet):
    many = card(*(interface(f"h:{n}", binding="GRPC") for n in range(10_000)))
    _, client = meet(done(), card=[many])

    with pytest.raises(A2AClientError) as caught:
        client.send_message("hi")

    assert len(str(caught.value)) < 100_000


def test_a_card_that_drips_ends_with_the_budget(meet):
    body = '{"name": "' + "x" * 1000
    dripping = [
        {"op": "head", "headers": {"Content-Type": "application/json", "Content-Length": "5000"}},
        {"op": "drip", "data": body, "every_s": 0.05},
        {"op": "hold"},
    ]
    _, client = meet(done(), card=[dripping])
    began = time.monotonic()

    with pytest.raises((TimeoutError, TransportConnectionError)):
        client.fetch_agent_card(timeout=0.4)

    assert time.monotonic() - began < 1.0


def test_a_card_that_is_nested_without_end_is_an_error(meet):
    deep = "[" * 200_000
    _, client = meet(done(), card=[reply('{"name": ' + deep)])

    with pytest.raises(TransportProtocolError):
        client.fetch_agent_card()
