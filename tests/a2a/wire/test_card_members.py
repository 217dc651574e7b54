"""Every member of a card is read, from where it stands and from nowhere else."""

from __future__ import annotations

import pytest

from protolink_sync.a2a.wire import AgentCard, SecurityScheme
from protolink_sync.a2a.wire.agent_card import (
    AgentCapabilities,
    AgentExtension,
    AgentInterface,
    AgentProvider,
    AgentSkill,
)

WHOLE = {
    "name": "n",
    "description": "d",
    "version": "v",
    "supportedInterfaces": [
        {"url": "u", "protocolBinding": "b", "protocolVersion": "pv", "tenant": "t"}
    ],
    "capabilities": {
        "streaming": True,
        "pushNotifications": False,
        "extendedAgentCard": False,
        "stateTransitionHistory": True,
        "extensions": [{"uri": "x", "description": "xd", "required": True, "params": {"p": 1}}],
    },
    "skills": [
        {
            "id": "s",
            "name": "sn",
            "description": "sd",
            "tags": ["st"],
            "examples": ["se"],
            "inputModes": ["si"],
            "outputModes": ["so"],
            "securityRequirements": [{"schemes": {"k": {"list": ["s1"]}}}],
        }
    ],
    "provider": {"organization": "o", "url": "pu"},
    "defaultInputModes": ["i"],
    "defaultOutputModes": ["o"],
    "securitySchemes": {
        "k": {"apiKeySecurityScheme": {"name": "X", "location": "header"}},
        "broken": 5,
    },
    "securityRequirements": [{"schemes": {"k": {"list": ["r1"]}}}],
    "documentationUrl": "du",
    "iconUrl": "iu",
    "signatures": [{"protected": "p"}],
}


def test_a_card_of_1_0_is_read_whole():
    card = AgentCard.from_dict(WHOLE)

    assert card == AgentCard(
        "n",
        "d",
        "v",
        (AgentInterface("u", "b", "pv", "t"),),
        AgentCapabilities(True, False, False, True, [AgentExtension("x", "xd", True, {"p": 1})]),
        [AgentSkill("s", "sn", "sd", ["st"], ["se"], ["si"], ["so"], [{"k": ["s1"]}])],
        AgentProvider("o", "pu"),
        ["i"],
        ["o"],
        {"k": SecurityScheme.from_dict(WHOLE["securitySchemes"]["k"])},  # type: ignore[index]
        [{"k": ["r1"]}],
        "du",
        "iu",
        [{"protected": "p"}],
        False,
        WHOLE,
    )


def test_what_a_card_does_not_say_is_unset():
    card = AgentCard.from_dict({})

    assert card == AgentCard(is_legacy=True)
    assert card.provider is None
    assert not card.is_usable


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_a_member_of_another_type_counts_as_unset(name):
    """A stranger's slip in one member must not hide the rest of the card."""
    wrong = AgentCard.from_dict({**WHOLE, name: object()})
    without = AgentCard.from_dict({k: v for k, v in WHOLE.items() if k != name})

    wrong.raw = without.raw
    assert wrong == without


@pytest.mark.parametrize(
    ("members", "offered"),
    [
        ({"capabilities": {"extendedAgentCard": True}}, True),
        ({"supportsAuthenticatedExtendedCard": True}, True),
        ({"capabilities": {"extendedAgentCard": False}}, False),
        ({"supportsAuthenticatedExtendedCard": False}, False),
        ({}, False),
    ],
)
def test_either_place_may_offer_the_longer_card(members, offered):
    assert AgentCard.from_dict(members).supports_extended_card is offered


@pytest.mark.parametrize("number", [2, 1.5])
def test_a_version_that_is_a_number_is_its_text(number):
    assert AgentCard.from_dict({"version": number}).version == str(number)


@pytest.mark.parametrize("text", ["true", 1, "yes", None])
def test_an_offer_is_true_and_nothing_else(text):
    assert not AgentCard.from_dict({"capabilities": {"streaming": text}}).capabilities.streaming


def test_the_repr_shows_what_is_set():
    shown = repr(AgentCapabilities(streaming=True, extensions=[AgentExtension("x")]))

    assert shown == "AgentCapabilities(streaming=True, extensions=[AgentExtension(uri='x')])"
    assert repr(AgentCapabilities()) == "AgentCapabilities()"
    assert "raw" not in repr(AgentCard(name="n", raw={"name": "n"}))


def test_objects_of_two_kinds_are_not_equal():
    assert AgentProvider("a", "b") != AgentInterface("a", "b")
    assert AgentProvider("a", "b") != ("a", "b")
    assert AgentProvider("a") != AgentProvider("b")


def test_texts_are_those_of_a_list():
    card = AgentCard.from_dict({"defaultInputModes": ["a", 5, None, "b", ["c"]]})

    assert card.default_input_modes == ["a", "b"]


@pytest.mark.parametrize(
    "members",
    [
        {"url": "u"},
        {"preferredTransport": "GRPC"},
        {"protocolVersion": "0.3.0"},
        {"additionalInterfaces": [{"url": "u"}]},
    ],
)
def test_a_card_of_0_3_that_says_anything_of_an_address_is_usable(members):
    card = AgentCard.from_dict(members)

    assert card.is_legacy
    assert card.is_usable
    assert card.interfaces[0] == AgentInterface(
        members.get("url", ""),  # type: ignore[arg-type]
        members.get("preferredTransport", "JSONRPC"),  # type: ignore[arg-type]
        members.get("protocolVersion", ""),  # type: ignore[arg-type]
    )
