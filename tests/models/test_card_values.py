"""Cards made from what users have at hand, and what they say of capabilities and interfaces."""

from __future__ import annotations

import pytest

from protolink_sync.models import AgentCapabilities, AgentCard, AgentInterface

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
