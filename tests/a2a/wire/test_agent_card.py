"""Cards of both dialects, mixed ones, and those that strangers wrote carelessly."""

from __future__ import annotations

import pytest

from protolink_sync.a2a.wire import AgentCard, AgentInterface, SecurityScheme, card_url
from protolink_sync.errors import ModelError
from tests.a2a.wire.recorded import named

HYBRID = named("card-hybrid-full").received[0]


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("https://h", "https://h"),
        ("https://h/", "https://h"),
        ("https://h/a/b", "https://h/a/b"),
        ("https://h/a/b//", "https://h/a/b"),
        ("https://h/a/b/.well-known/agent-card.json", "https://h/a/b"),
        ("https://h/.well-known/agent-card.json/", "https://h"),
    ],
)
def test_b1_b2_the_card_is_below_the_whole_address(given, base):
    assert card_url(given) == (base, f"{base}/.well-known/agent-card.json")


def test_b10_a_legacy_card_is_a_list_of_interfaces():
    card = AgentCard.from_dict(
        {
            "name": "a",
            "url": "http://h/grpc",
            "preferredTransport": "GRPC",
            "protocolVersion": "0.3.0",
            "additionalInterfaces": [{"url": "http://h/j", "transport": "JSONRPC"}],
        }
    )

    assert card.is_legacy
    assert card.interfaces == (
        AgentInterface("http://h/grpc", "GRPC", "0.3.0"),
        AgentInterface("http://h/j", "JSONRPC", "0.3.0"),
    )


def test_b10_without_a_preferred_transport_it_is_jsonrpc():
    card = AgentCard.from_dict({"url": "http://h"})

    assert card.interfaces == (AgentInterface("http://h", "JSONRPC", ""),)


def test_b11_listed_interfaces_replace_the_legacy_ones():
    card = AgentCard.from_dict(HYBRID)

    assert not card.is_legacy
    assert [(one.protocol_binding, one.protocol_version) for one in card.interfaces] == [
        (binding, version)
        for binding in ("JSONRPC", "HTTP+JSON", "GRPC")
        for version in ("1.0", "0.3")
    ]


@pytest.mark.parametrize("listed", [[], None, {}, "x"])
def test_b11_an_empty_list_does_not(listed):
    card = AgentCard.from_dict({"supportedInterfaces": listed, "url": "http://h"})

    assert card.is_legacy
    assert card.interfaces[0].url == "http://h"


def test_the_tenant_is_read():
    card = AgentCard.from_dict(named("card-tenant").received[0])

    assert {one.tenant for one in card.interfaces} == {"acme"}


@pytest.mark.parametrize("value", [None, [], "x", 5, [{}]])
def test_b9_what_is_no_object_is_no_card(value):
    with pytest.raises(ModelError, match="an agent card"):
        AgentCard.from_dict(value)


def test_b9_an_object_that_says_nothing_about_calling_is_no_better():
    assert not AgentCard.from_dict({}).is_usable
    assert not AgentCard.from_dict({"name": "spa", "url": ""}).is_usable
    assert AgentCard.from_dict({"protocolVersion": "0.3.0"}).is_usable
    assert AgentCard.from_dict({"supportedInterfaces": [None]}).is_usable
    assert AgentCard.from_dict({"url": "http://h"}).is_usable


def test_what_a_whole_card_says():
    card = AgentCard.from_dict(HYBRID)

    assert card.capabilities.streaming
    assert card.capabilities.push_notifications
    assert card.supports_extended_card
    (extension,) = card.capabilities.extensions
    assert (extension.uri, extension.required) == ("https://ext.example/v1", False)
    assert card.provider is not None
    assert (card.provider.organization, card.provider.url) == ("Example", "https://example.com")
    assert card.default_input_modes == ["text/plain", "application/json"]
    (skill,) = card.skills
    assert (skill.id, skill.name, skill.tags, skill.examples) == ("echo", "Echo", ["echo"], ["hi"])
    assert card.raw == HYBRID


def test_q16_nulls_and_missing_members_read_as_unset():
    """Cases C053 and C054; every member of a card is tried."""
    for name in [*HYBRID, "documentationUrl", "iconUrl", "signatures"]:
        for odd in (None, 5, "x", [], {}, [None], [5], {"a": None}, {"a": 5}, True):
            card = AgentCard.from_dict({**HYBRID, name: odd})
            assert card.raw[name] == odd
        left_out = {member: value for member, value in HYBRID.items() if member != name}
        assert AgentCard.from_dict(left_out).version in ("1.2.3", "")


def test_q16_lists_that_are_null_are_empty():
    card = AgentCard.from_dict(
        {**HYBRID, "capabilities": None, "skills": None, "defaultInputModes": None}
    )

    assert (card.skills, card.default_input_modes) == ([], [])
    assert not card.capabilities.streaming


def test_q16_numbers_as_versions_are_read():
    interface = {"url": "u", "protocolBinding": "JSONRPC", "protocolVersion": 1.0}

    card = AgentCard.from_dict({"version": 2, "supportedInterfaces": [interface]})

    assert (card.version, card.interfaces[0].protocol_version) == ("2", "1.0")


def test_a_card_owns_its_raw_form():
    """So far as members go: a caller who adds one changes nobody else's card."""
    value = {"url": "u"}
    card = AgentCard.from_dict(value)
    card.raw["x"] = 1

    assert value == {"url": "u"}


# --- section 9: security ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
            SecurityScheme("apiKey", location="header", name="X-Key"),
        ),
        (
            {"type": "apiKey", "in": "cookie", "name": "k", "description": "d"},
            SecurityScheme("apiKey", "d", location="cookie", name="k"),
        ),
        (
            {"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}},
            SecurityScheme("http", scheme="Bearer", bearer_format="JWT"),
        ),
        ({"type": "http", "scheme": "basic"}, SecurityScheme("http", scheme="basic")),
        (
            {"oauth2SecurityScheme": {"flows": {"implicit": {}}, "oauth2MetadataUrl": "u"}},
            SecurityScheme("oauth2", flows={"implicit": {}}, oauth2_metadata_url="u"),
        ),
        ({"type": "oauth2", "flows": {}}, SecurityScheme("oauth2")),
        (
            {"openIdConnectSecurityScheme": {"openIdConnectUrl": "u"}},
            SecurityScheme("openIdConnect", open_id_connect_url="u"),
        ),
        ({"mtlsSecurityScheme": {}}, SecurityScheme("mutualTLS")),
        ({"type": "mutualTLS"}, SecurityScheme("mutualTLS")),
    ],
)
def test_security_schemes_of_both_dialects_are_read(value, expected):
    read = AgentCard.from_dict({"securitySchemes": {"s": value}}).security_schemes["s"]

    expected.raw = value
    assert read == expected
    assert read.is_known


def test_in_a_mixed_scheme_the_wrapper_goes_first():
    read = SecurityScheme.from_dict(
        {"httpAuthSecurityScheme": {"scheme": "Bearer"}, "type": "apiKey", "name": "k"}
    )

    assert (read.kind, read.scheme, read.name) == ("http", "Bearer", "")


def test_a_scheme_that_nobody_knows_says_so():
    for value, kind in (
        ({}, "unknown"),
        ({"type": "palm"}, "palm"),
        ({"newScheme": {}}, "unknown"),
    ):
        read = SecurityScheme.from_dict(value)

        assert (read.kind, read.is_known) == (kind, False)


def test_requirements_are_alternatives_of_schemes_with_scopes():
    in_1_0 = [
        {"schemes": {"o": {"list": ["read", "write"]}, "k": {}}},
        {"schemes": {"b": {"list": []}}},
    ]
    in_0_3 = [{"o": ["read", "write"], "k": []}, {"b": []}]

    read = [
        AgentCard.from_dict(card).security_requirements
        for card in ({"securityRequirements": in_1_0}, {"security": in_0_3})
    ]

    assert read == [in_0_3, in_0_3]
    assert (
        AgentCard.from_dict({"skills": [{"security": in_0_3}]}).skills[0].security_requirements
        == in_0_3
    )
