"""Which credential goes where by what a card asks for, and what cannot go there."""

from __future__ import annotations

from typing import Any

import pytest

from protolink_sync.a2a import A2AClientError, SchemeCredentials
from protolink_sync.a2a.wire import AgentCard
from protolink_sync.security import BasicAuth

KEY = {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}
BASIC = {"httpAuthSecurityScheme": {"scheme": "Basic"}}
OTHER = {"httpAuthSecurityScheme": {"scheme": "Digest"}}
MUTUAL = {"mtlsSecurityScheme": {}}


def card(*alternatives: list[str], **schemes: Any) -> AgentCard:
    asked = [{"schemes": {name: {"list": []} for name in one}} for one in alternatives]
    return AgentCard.from_dict({"securitySchemes": schemes, "securityRequirements": asked})


def test_a_certificate_is_shown_by_the_connection_and_needs_no_header():
    shown = SchemeCredentials({"k": "s3cret"}).shown(card(["m", "k"], m=MUTUAL, k=KEY))

    assert shown == ({"X-Key": "s3cret"}, "")


def test_the_first_alternative_that_can_be_met_is_met():
    credentials = SchemeCredentials({"b": BasicAuth("u", "p")})

    headers, behind = credentials.shown(card(["k"], ["b"], k=KEY, b=BASIC))

    assert headers == BasicAuth("u", "p").headers()
    assert behind == ""


def test_another_word_of_http_is_kept():
    headers, _ = SchemeCredentials({"o": "s3cret"}).shown(card(["o"], o=OTHER))

    assert headers == {"Authorization": "Digest s3cret"}


@pytest.mark.parametrize(
    ("credential", "scheme", "words"),
    [
        (BasicAuth("u", "p"), KEY, "wants one text"),
        (BasicAuth("u", "p"), OTHER, "wants one text"),
        ("s3cret", BASIC, r"wants BasicAuth\(user, password\)"),
    ],
)
def test_a_credential_of_the_wrong_kind_is_not_sent(credential, scheme, words):
    with pytest.raises(A2AClientError, match=words) as caught:
        SchemeCredentials({"s": credential}).shown(card(["s"], s=scheme))

    assert "s3cret" not in str(caught.value)


def test_a_scheme_that_the_card_does_not_describe_cannot_be_met():
    with pytest.raises(A2AClientError, match="asks for gone and k or other"):
        SchemeCredentials({"gone": "s3cret"}).shown(card(["k", "gone"], ["other"], k=KEY))


def test_a_card_that_asks_for_nothing_gets_nothing():
    credentials = SchemeCredentials({"k": "s3cret"})

    assert credentials.shown(card(k=KEY)) == ({}, "")
    assert credentials.shown(None) == ({}, "")
