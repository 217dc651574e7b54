"""AgentCard: names on the wire, defaults, and what a language model is shown of it."""

from __future__ import annotations

import json

import pytest

from protolink_sync.models import AgentCapabilities, AgentCard, AgentInterface, AgentSkill

MINIMAL = {"name": "n", "description": "d", "url": "http://peer.test"}


def test_a_card_is_written_with_all_its_members_and_defaults():
    assert AgentCard("n", "d", "http://peer.test").to_dict() == {
        **MINIMAL,
        "transport": "http",
        "version": "1.0.0",
        "protocolVersion": "0.8.3",
        "capabilities": {
            "streaming": False,
            "push_notifications": False,
            "state_transition_history": False,
            "has_llm": False,
            "max_concurrency": 1,
            "message_batching": False,
            "tool_calling": False,
            "multi_step_reasoning": False,
            "timeout_support": False,
            "delegation": True,
            "rag": False,
            "code_execution": False,
            "supports_inference": None,
        },
        "skills": [],
        "inputFormats": ["text/plain"],
        "outputFormats": ["text/plain"],
        "securitySchemes": {},
        "role": "worker",
        "tags": [],
    }


def test_a_minimal_card_reads_as_one_that_was_made():
    assert AgentCard.from_dict(MINIMAL) == AgentCard("n", "d", "http://peer.test")


def test_the_role_goes_there_and_back():
    """0.8.3 forgets it: a registry of ours can tell gateways from workers."""
    card = AgentCard("n", "d", "u", role="gateway")

    assert AgentCard.from_dict(card.to_dict()).role == "gateway"


def test_documented_fields_are_positional_in_their_order():
    card = AgentCard(
        "n",
        "d",
        "u",
        "grpc",
        "2.0",
        "0.9",
        AgentCapabilities(True),
        [AgentSkill("s")],
        ["a/b"],
        ["c/d"],
        {"apiKey": {}},
        "observer",
        ["t"],
    )

    assert AgentCard.from_dict(card.to_dict()) == card
    assert (card.version, card.protocol_version, card.role, card.tags) == (
        "2.0",
        "0.9",
        "observer",
        ["t"],
    )


def test_unknown_capabilities_and_skill_members_are_kept():
    """protolink's own parser raises a TypeError for them."""
    data = {
        **MINIMAL,
        "capabilities": {"streaming": True, "teleport": True},
        "skills": [{"id": "s", "inputModes": ["a/b"]}],
        "provider": {"organization": "o"},
    }

    card = AgentCard.from_dict(data)

    assert card.capabilities.extra == {"teleport": True}
    assert card.skills[0].extra == {"inputModes": ["a/b"]}
    assert card.to_dict()["provider"] == {"organization": "o"}
    assert "teleport" in card.capabilities.enabled()


@pytest.mark.parametrize("name", ["interfaces", "additionalInterfaces"])
def test_further_addresses_are_read_under_both_names(name):
    data = {**MINIMAL, name: [{"url": "grpc://peer.test", "transport": "grpc", "weight": 1}]}

    card = AgentCard.from_dict(data)

    assert card.interfaces == [AgentInterface("grpc://peer.test", "grpc", extra={"weight": 1})]
    assert card.to_dict()[name][0]["weight"] == 1


def test_no_further_addresses_are_written_if_there_are_none():
    assert "additionalInterfaces" not in AgentCard("n", "d", "u").to_dict()
    empty = AgentCard.from_dict({**MINIMAL, "additionalInterfaces": []})
    assert empty.to_dict()["additionalInterfaces"] == []


def test_null_reads_as_empty_and_capabilities_as_the_default_ones():
    nothing = dict.fromkeys(
        ("capabilities", "skills", "tags", "inputFormats", "securitySchemes", "interfaces")
    )
    card = AgentCard.from_dict(MINIMAL | nothing)

    card.tags.append("t")

    assert card.capabilities == AgentCapabilities()
    assert (card.skills, card.input_formats, card.security_schemes) == ([], [], {})


def test_capabilities_may_be_given_as_a_mapping():
    card = AgentCard("n", "d", "u", capabilities={"streaming": True, "x": 1})

    assert card.capabilities == AgentCapabilities(True, extra={"x": 1})
    with pytest.raises(TypeError, match="AgentCapabilities or a mapping, not a str"):
        AgentCard("n", "d", "u", capabilities="streaming")


@pytest.mark.parametrize("wrong", ["yes", 1])
def test_inference_support_is_told_or_not(wrong):
    with pytest.raises(TypeError, match="supports_inference"):
        AgentCapabilities(supports_inference=wrong)


def test_enabled_names_what_is_there():
    capabilities = AgentCapabilities(rag=True, delegation=False, max_concurrency=5)

    assert capabilities.enabled() == ["max_concurrency: 5", "rag"]
    assert capabilities.as_dict()["max_concurrency"] == 5


def test_the_prompt_text_is_sorted_json():
    card = AgentCard(
        "wetter",
        'Sagt "schön"',
        "u",
        skills=[AgentSkill("b", examples=[{"city": "Zürich"}]), AgentSkill("a", "first")],
    )

    text = card.get_prompt_format()

    assert json.loads(text) == {
        "capabilities": card.capabilities.as_dict(),
        "description": 'Sagt "schön"',
        "name": "wetter",
        "tools": [
            {
                "description": "first",
                "examples": [],
                "input_schema": {},
                "name": "a",
                "output_schema": {},
            },
            {
                "description": "",
                "examples": [{"city": "Zürich"}],
                "input_schema": {},
                "name": "b",
                "output_schema": {},
            },
        ],
    }
    assert text.startswith('{\n  "capabilities": {\n    "code_execution": false,')
    assert "Zürich" in text


def test_a_registry_answer_is_a_list_of_cards():
    assert [card.name for card in AgentCard.from_list([MINIMAL, {**MINIMAL, "name": "m"}])] == [
        "n",
        "m",
    ]
    assert AgentCard.from_list([]) == []
