"""Cards made from what users have at hand, and what they say of capabilities and interfaces."""

from __future__ import annotations

import pytest

from protolink_sync.models import AgentCapabilities, AgentCard, AgentInterface, AgentSkill

BASE = {"name": "n", "description": "d", "url": "http://h"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, AgentCapabilities()),
        ({}, AgentCapabilities()),
        ({"streaming": True}, AgentCapabilities(streaming=True)),
        (AgentCapabilities(rag=True), AgentCapabilities(rag=True)),
    ],
)
def test_capabilities_are_taken_as_a_mapping_too(given, expected):
    assert AgentCard(**BASE, capabilities=given).capabilities == expected


def test_interfaces_are_taken_as_mappings_too():
    interface = AgentInterface("http://i", "sse")

    made = AgentCard(**BASE, interfaces=[{"url": "http://i", "transport": "sse"}, interface])

    assert made.interfaces == [interface, interface]


def test_an_interface_has_the_names_of_the_wire():
    data = {"url": "http://i", "transport": "sse", "protocolVersion": "0.9"}

    assert AgentInterface("http://i", "sse", "0.9").to_dict() == data
    assert AgentInterface.from_dict(data) == AgentInterface("http://i", "sse", "0.9")


def test_a_card_has_the_names_of_the_wire():
    made = AgentCard(
        **BASE,
        protocol_version="0.9",
        input_formats=["text/html"],
        output_formats=["text/csv"],
        security_schemes={"bearer": {"scheme": "x"}},
        interfaces=[AgentInterface("http://i")],
    )

    written = made.to_dict()

    assert written["protocolVersion"] == "0.9"
    assert written["inputFormats"] == ["text/html"]
    assert written["outputFormats"] == ["text/csv"]
    assert written["securitySchemes"] == {"bearer": {"scheme": "x"}}
    assert [one["url"] for one in written["additionalInterfaces"]] == ["http://i"]
    assert AgentCard.from_dict(written) == made
    assert AgentCard.from_dict(written).extra == {}


@pytest.mark.parametrize("id", [5, None, True])
def test_an_id_of_a_skill_that_is_no_text_is_kept(id):
    assert AgentSkill.from_dict({"id": id}).to_dict()["id"] is id


@pytest.mark.parametrize(
    ("capabilities", "enabled"),
    [
        (AgentCapabilities(), ["max_concurrency: 1", "delegation"]),
        (AgentCapabilities(max_concurrency=0, delegation=False), []),
        (AgentCapabilities(max_concurrency=-1, delegation=False), []),
        (
            AgentCapabilities(max_concurrency=2, rag=True, supports_inference=False),
            ["max_concurrency: 2", "delegation", "rag"],
        ),
    ],
)
def test_what_is_there_is_named(capabilities, enabled):
    assert capabilities.enabled() == enabled


@pytest.mark.parametrize(
    ("given", "interfaces", "written"),
    [
        ({}, 0, None),
        ({"additionalInterfaces": []}, 0, []),
        ({"additionalInterfaces": None}, 0, []),
        ({"interfaces": [{"url": "u"}]}, 1, ["u"]),
        ({"additionalInterfaces": [{"url": "u"}]}, 1, ["u"]),
        ({"additionalInterfaces": [{"url": "u"}], "interfaces": [{"url": "v"}]}, 1, ["u"]),
    ],
)
def test_interfaces_are_read_in_either_spelling_and_an_empty_list_is_kept(
    given, interfaces, written
):
    card = AgentCard.from_dict({**BASE, **given})

    assert len(card.interfaces) == interfaces
    told = card.to_dict().get("additionalInterfaces")
    assert (told and [one["url"] for one in told]) == (written and list(written))
    assert (told is None) == (written is None)
