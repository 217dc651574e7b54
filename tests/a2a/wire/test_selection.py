"""Which interface of a card is called, and under which address: never a stranger's by itself."""

from __future__ import annotations

import pytest

from protolink_sync.a2a.wire import AgentCard, WireDialect, origin_of, select
from protolink_sync.errors import A2AClientError

BASE = "https://agent.test"
V1_0, V0_3 = WireDialect.V1_0, WireDialect.V0_3


def offer(url=f"{BASE}/rpc", version="1.0", binding="JSONRPC", **more):
    return {"url": url, "protocolBinding": binding, "protocolVersion": version, **more}


def card(*offers):
    return AgentCard.from_dict({"name": "n", "supportedInterfaces": list(offers)})


def legacy(**members):
    return AgentCard.from_dict({"name": "n", **members})


@pytest.mark.parametrize(
    ("version", "dialect"),
    [("1.0", V1_0), ("1.0.0", V1_0), ("1.1", V1_0), ("1", V1_0), ("1.0-rc", V1_0),
     ("0.3", V0_3), ("0.3.0", V0_3), ("0.2.6", V0_3), ("", V0_3)],
)  # fmt: skip
def test_b12_b14_the_leading_number_of_the_version_tells_the_dialect(version, dialect):
    """Case C068."""
    assert select(card(offer(version=version)), BASE).dialect is dialect


@pytest.mark.parametrize("version", ["2.0", "10.0", "x", "v1", ".1", "-1", "²"])
def test_b12_other_versions_are_no_candidates(version):
    with pytest.raises(A2AClientError):
        select(card(offer(version=version)), BASE)


@pytest.mark.parametrize("binding", ["JSONRPC", "jsonrpc", "JsonRpc"])
def test_b12_bindings_compare_without_case(binding):
    assert select(card(offer(binding=binding)), BASE).url == f"{BASE}/rpc"


@pytest.mark.parametrize("binding", ["GRPC", "HTTP+JSON", "", "JSONRPC2"])
def test_b12_other_bindings_are_no_candidates(binding):
    with pytest.raises(A2AClientError):
        select(card(offer(binding=binding)), BASE)


def test_b13_the_earliest_candidate_is_taken():
    chosen = select(
        card(offer(binding="GRPC"), offer(f"{BASE}/a", "0.3"), offer(f"{BASE}/b", "1.0")), BASE
    )

    assert (chosen.url, chosen.dialect) == (f"{BASE}/a", V0_3)


@pytest.mark.parametrize("own", [BASE, f"{BASE}/", f"{BASE}//"])
def test_b13_an_interface_at_the_agents_own_address_goes_first(own):
    chosen = select(card(offer(f"{BASE}/a", "0.3"), offer(own, "1.0")), f"{BASE}/")

    assert (chosen.interface.url, chosen.dialect) == (own, V1_0)


def test_b13_an_address_that_names_the_card_counts_as_the_agents():
    address = f"{BASE}/x/.well-known/agent-card.json"

    chosen = select(card(offer(f"{BASE}/a", "0.3"), offer(f"{BASE}/x", "1.0")), address)

    assert (chosen.url, chosen.dialect) == (f"{BASE}/x", V1_0)


def test_b14_a_legacy_card_without_version_is_0_3():
    assert select(legacy(url=f"{BASE}/rpc"), BASE).dialect is V0_3


def test_b15_without_a_candidate_the_error_lists_every_offer():
    offers = card(offer(version="2.0"), offer("h:9", binding="GRPC"), offer("", "", ""))

    with pytest.raises(A2AClientError) as raised:
        select(offers, BASE)

    said = str(raised.value)
    assert f"JSONRPC 2.0 @ {BASE}/rpc" in said
    assert "GRPC 1.0 @ h:9" in said
    assert "(no binding) (no version) @ (no url)" in said
    assert BASE in said


def test_b15_the_offers_of_a_stranger_are_shown_printable_and_short():
    offers = [offer(f"{BASE}/\x1b[31m{'x' * 100}", "9")] * 1000

    with pytest.raises(A2AClientError) as raised:
        select(card(*offers), BASE)

    assert "\x1b" not in str(raised.value)
    assert len(str(raised.value)) < 3000


def test_b16_the_tenant_is_that_of_the_chosen_entry():
    """Case C077."""
    chosen = select(card(offer(tenant="t-1"), offer(tenant="t-2")), BASE)

    assert chosen.tenant == "t-1"
    assert select(card(offer()), BASE).tenant == ""


def test_b19_the_order_of_the_card_decides_between_dialects_at_one_address():
    newer, older = offer(version="1.0"), offer(version="0.3")

    assert select(card(newer, older), BASE).dialect is V1_0
    assert select(card(older, newer), BASE).dialect is V0_3


def test_b19_a_dialect_can_be_pinned():
    both = card(offer(f"{BASE}/new"), offer(f"{BASE}/old", "0.3"))

    assert select(both, BASE, dialect=V0_3).url == f"{BASE}/old"
    assert select(both, BASE, dialect=V1_0).url == f"{BASE}/new"
    with pytest.raises(A2AClientError, match=r"JSONRPC 0\.3; it offers: JSONRPC 1\.0 @"):
        select(card(offer()), BASE, dialect=V0_3)


# --- the origin policy -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "base"),
    [
        (f"{BASE}/a2a/v1?x=1", BASE),
        ("https://AGENT.test:443/x", BASE),
        ("HTTPS://agent.test./x", BASE),
        ("http://h:80/x", "http://h/prefix"),
        ("http://[::1]:8/x", "http://[0:0::1]:8"),
    ],
)
def test_b93_an_address_of_the_same_origin_is_used(url, base):
    chosen = select(card(offer(url)), base)

    assert (chosen.url, chosen.is_cross_origin) == (url, False)
    assert chosen.warning is None


STRANGERS = [
    "https://evil.test/rpc",
    "http://agent.test/rpc",
    "https://agent.test:444/rpc",
    "https://agent.test.evil.test/rpc",
    "https://agent.test%2eevil.test/",
    "http://localhost/rpc",
    "http://127.0.0.1/rpc",
    "http://0.0.0.0:9/rpc",
]


@pytest.mark.parametrize("url", STRANGERS)
def test_b94_an_address_of_another_origin_is_not_used(url):
    """Cases C071, C072. The call goes to the agent, as the card says otherwise."""
    chosen = select(card(offer(url, "0.3", tenant="t")), f"{BASE}/base/")

    assert (chosen.url, chosen.dialect, chosen.tenant) == (f"{BASE}/base", V0_3, "t")
    assert (chosen.ignored_url, chosen.is_cross_origin) == (url, False)
    assert chosen.warning is not None
    assert origin_of(url) in chosen.warning
    assert BASE in chosen.warning
    assert "allow_cross_origin" in chosen.warning


@pytest.mark.parametrize("url", STRANGERS)
def test_b96_it_is_used_where_that_is_allowed(url):
    chosen = select(card(offer(url)), BASE, allow_cross_origin=True)

    assert (chosen.url, chosen.is_cross_origin, chosen.ignored_url) == (url, True, None)


def test_b94_loopback_by_name_and_by_number_are_two_origins():
    assert select(card(offer("http://localhost:8/rpc")), "http://127.0.0.1:8").ignored_url


@pytest.mark.parametrize(
    "path", ["/rpc", "/", "//evil.test/rpc", "/@evil.test/rpc", "/:80@evil.test"]
)
def test_b95_a_path_belongs_to_the_agents_origin(path):
    """Case C058. Two slashes would lead ``urljoin`` to another host."""
    chosen = select(card(offer(path)), f"{BASE}/base")

    assert chosen.url == BASE + path
    assert origin_of(chosen.url) == BASE
    assert not chosen.is_cross_origin


UNUSABLE = [
    "ftp://agent.test/x",
    "file:///etc/hostname",
    "javascript:alert(1)",
    "agent.test/rpc",
    "rpc",
    "https://",
    "https://agent.test:x/",
    "https://agent.test:99999/",
    "https://[::/",
    "https://agent.test\\@evil.test/",
    "https://agent.test/\r\nX: y",
    "https://agent.test /",
    "https://user:pw@agent.test/",
    "https://agent.test@evil.test/",
    "/\\evil.test/rpc",
    "/a b",
    "/a\x00b",
    "https://ägent.test/",
]


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("url", UNUSABLE)
def test_b95_an_address_that_cannot_be_used_is_replaced(url, allowed):
    """Case C074. Some of these name two hosts, depending on who reads them."""
    chosen = select(card(offer(url)), BASE, allow_cross_origin=allowed)

    assert (chosen.url, chosen.unusable_url) == (BASE, url)
    assert (chosen.warning, chosen.is_cross_origin) == (None, False)


def test_q16_a_legacy_card_without_an_address_is_called_at_the_agents():
    chosen = select(legacy(protocolVersion="0.3.0"), BASE)

    assert (chosen.url, chosen.dialect, chosen.unusable_url) == (BASE, V0_3, None)


def test_b97_the_policy_holds_for_legacy_cards():
    main = legacy(url="https://evil.test/")
    additional = legacy(
        url="h:9",
        preferredTransport="GRPC",
        additionalInterfaces=[{"url": "https://evil.test/j", "transport": "JSONRPC"}],
    )

    for one in (main, additional):
        chosen = select(one, BASE)
        assert chosen.url == BASE
        assert chosen.ignored_url is not None
        assert select(one, BASE, allow_cross_origin=True).is_cross_origin


def test_a_card_that_offers_nothing_is_no_card_to_select_from():
    with pytest.raises(A2AClientError, match="it offers: nothing"):
        select(AgentCard.from_dict({}), BASE)
