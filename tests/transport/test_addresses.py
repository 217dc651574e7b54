"""Addresses as people write them: one spelling inside, no secret outside."""

from __future__ import annotations

import pickle

import pytest

from protolink_sync.specs import AGENT_CARD_REQUEST
from protolink_sync.transport import HTTPTransport, WebSocketTransport


def test_the_case_of_a_scheme_makes_no_difference():
    """Who compares it must not take WSS:// or GRPCS:// for an address without TLS."""
    assert HTTPTransport("HTTPS://agent.example/").url == "https://agent.example"
    assert WebSocketTransport("WSS://agent.example").url == "wss://agent.example"


@pytest.mark.parametrize("url", ["ftp://u:geheim@h", "http://u:geheim@h:x", "http://u:geheim@h"])
def test_a_password_in_an_address_is_refused_and_not_shown(url):
    with pytest.raises(ValueError) as caught:
        HTTPTransport(url)

    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    "proxy", ["http://u:geh/eim@proxy:80", "http://u:geheim@proxy:x", "socks5://u:geheim@proxy"]
)
def test_a_proxy_that_cannot_be_used_is_refused_and_its_password_not_shown(proxy):
    with pytest.raises(ValueError) as caught:
        HTTPTransport(proxy=proxy)

    assert "geh" not in str(caught.value)
    assert "eim" not in str(caught.value)


@pytest.mark.parametrize("name", ["Api-Key", "X-Auth-Token", "Cookie", "X-Client-Secret"])
def test_a_header_that_names_a_secret_keeps_a_transport_from_being_pickled(name):
    with pytest.raises(TypeError, match="secret"):
        pickle.dumps(HTTPTransport(headers={name: "s3cr3t"}))


def test_a_credentials_callable_cannot_set_what_frames_a_request():
    transport = HTTPTransport(credentials=lambda origin, refresh: {"Transfer-Encoding": "chunked"})

    with transport, pytest.raises(ValueError, match="Transfer-Encoding"):
        transport.send(AGENT_CARD_REQUEST, "http://127.0.0.1:9")


def test_port_0_is_taken_for_an_own_address_and_refused_for_a_call():
    """The documents give a transport grpc://127.0.0.1:0, the address of an agent that serves."""
    with HTTPTransport("http://127.0.0.1:0") as transport:
        assert transport.url == "http://127.0.0.1:0"

        for url in (None, "http://127.0.0.1:0"):
            with pytest.raises(ValueError, match="port 0"):
                transport.send(AGENT_CARD_REQUEST, url)
