"""Origins: two addresses that one server answers compare equal, any others never.

Credentials go by these: a false equal sends a secret to a stranger.
"""

from __future__ import annotations

import pytest

from protolink_sync.a2a.wire import AgentCard, card_url, origin_of, select


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://h", "http://h"),
        ("HTTP://H.Example/x?y#z", "http://h.example"),
        ("http://h:80", "http://h"),
        ("https://h:443/a", "https://h"),
        ("http://h:443", "http://h:443"),
        ("https://h:80", "https://h:80"),
        ("http://h:8080", "http://h:8080"),
        ("http://h.:8080/", "http://h:8080"),
        ("http://127.0.0.1:1/x", "http://127.0.0.1:1"),
        ("http://[::1]", "http://[::1]"),
        ("https://[0:0::0001]:443/", "https://[::1]"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_an_origin_has_one_spelling(url, origin):
    assert origin_of(url) == origin


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h",
        "/x",
        "ftp://h",
        "file:///etc",
        "http://",
        "http://.",
        "http:///x",
        "http://user@h",
        "http://user:word@h",
        "http://@h",
        "http://h\\@other",
        "http://h /",
        "http://h\t",
        "http://h\n",
        "http://h\x7f",
        "http://hä",
        "http://h:x",
        "http://h:99999",
        "http://[::1",
        "http://[1::2::3]",
        "http://[v1.x]",
        "http://[::1]other/",
        "http://other[::1]/",
        "http://[::1].:80",
        "http://[fe80::1%25eth0]",
    ],
)
def test_what_programs_may_read_in_two_ways_has_none(url):
    assert origin_of(url) is None


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("https://h/.well-known/agent-card.json", "https://h"),
        ("https://h//.well-known/agent-card.json//", "https://h"),
        (
            "https://h/.well-known/agent-card.json/more/",
            "https://h/.well-known/agent-card.json/more",
        ),
    ],
)
def test_only_slashes_at_the_end_and_the_name_of_the_card_are_taken_off(given, base):
    assert card_url(given) == (base, f"{base}/.well-known/agent-card.json")


def card(*interfaces: dict[str, str]) -> AgentCard:
    return AgentCard.from_dict({"supportedInterfaces": list(interfaces)})


def offered(url: str, binding: str = "JSONRPC", version: str = "1.0") -> dict[str, str]:
    return {"url": url, "protocolBinding": binding, "protocolVersion": version}


def test_the_warning_names_both_origins_and_what_to_do():
    chosen = select(card(offered("https://other:9/x")), "http://h/a/")

    assert chosen.warning == (
        "the agent card names an interface at https://other:9, another origin than http://h: "
        "calls go to http://h/a all the same. Set allow_cross_origin=True to follow the card."
    )


def test_an_address_that_is_followed_is_no_reason_for_a_warning():
    chosen = select(card(offered("https://other/x")), "http://h", allow_cross_origin=True)

    assert (chosen.url, chosen.is_cross_origin) == ("https://other/x", True)
    assert chosen.warning is None


@pytest.mark.parametrize(
    ("url", "called"),
    [
        ("/rpc", "http://h:1/rpc"),
        ("http://h:1/rpc", "http://h:1/rpc"),
        ("rpc", "http://h:1/a"),
        ("", "http://h:1/a"),
        ("http://user:word@h:1/rpc", "http://h:1/a"),
        ("//other/rpc", "http://h:1//other/rpc"),
    ],
)
def test_an_address_without_an_origin_never_leaves_the_agents_own(url, called):
    chosen = select(card(offered(url)), "http://h:1/a", allow_cross_origin=True)

    assert chosen.url == called
    assert chosen.is_cross_origin is False


def test_the_interface_at_the_agents_own_address_goes_first():
    chosen = select(
        card(offered("http://h/other"), offered("http://h/a/", version="0.3")), "http://h/a"
    )

    assert chosen.interface.protocol_version == "0.3"


@pytest.mark.parametrize(
    ("version", "dialect"),
    [("1.0", "1.0"), ("1", "1.0"), ("01.2", "1.0"), ("0.3.0", "0.3"), ("", "0.3"), ("00", "0.3")],
)
def test_the_first_number_of_a_version_decides(version, dialect):
    chosen = select(card(offered("http://h", "jsonrpc", version)), "http://h")

    assert chosen.dialect.value == dialect
