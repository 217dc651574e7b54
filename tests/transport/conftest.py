"""TLS for the transports' peers."""

from __future__ import annotations

import ssl

import pytest

from protolink_sync.security import TLSConfig


@pytest.fixture
def tls_server(tls_files) -> ssl.SSLContext:
    """What a peer at 127.0.0.1 serves TLS with."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls_files.server_cert, tls_files.server_key)
    return context


@pytest.fixture
def curious_tls_server(tls_server, tls_files) -> ssl.SSLContext:
    """The same, of a peer that asks for a certificate of the client but goes on without."""
    tls_server.load_verify_locations(tls_files.ca)
    tls_server.verify_mode = ssl.CERT_OPTIONAL
    return tls_server


@pytest.fixture
def tls_identity(tls_files) -> TLSConfig:
    """What trusts it, and has a certificate to show."""
    return TLSConfig(
        cafile=tls_files.ca, certfile=tls_files.client_cert, keyfile=tls_files.client_key
    )


@pytest.fixture
def tls_client(tls_files) -> TLSConfig:
    """What trusts it."""
    return TLSConfig(cafile=tls_files.ca)


@pytest.fixture(autouse=True)
def no_proxy_here(monkeypatch) -> None:
    """What this machine's environment says of proxies and authorities is no part of a test."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
