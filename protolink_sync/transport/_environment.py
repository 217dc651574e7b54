"""What the environment says about proxies and certificate authorities."""

from __future__ import annotations

import ipaddress
import os
import re
from urllib.parse import urlsplit

import attrs

from protolink_sync.security import TLSConfig

__all__ = ["authority_file", "checked_proxy", "proxy_for", "proxy_tls"]

_CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


_DEFAULT_PORTS = {"http": 80, "https": 443}

# An address with its port: 10.0.0.1:80 or [::1]:80.
_WITH_PORT = re.compile(r"(?:\[(.+)\]|([^:]+)):(\d+)")


def _excepted(host: str, port: int | None) -> bool:
    """Return whether ``NO_PROXY`` has a network or address that holds an IP host."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    entries = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    for entry in entries.replace(" ", "").split(","):
        with_port = _WITH_PORT.fullmatch(entry)
        if with_port is not None:
            if int(with_port[3]) != port:
                continue
            entry = with_port[1] or with_port[2]
        try:
            if address in ipaddress.ip_network(entry.strip("[]"), strict=False):
                return True
        except ValueError:
            continue
    return False


def _named(scheme: str) -> str | None:
    """Return the proxy that a variable names for one scheme; lower case wins."""
    for name in (f"{scheme}_proxy", "all_proxy"):
        found = os.environ.get(name) or os.environ.get(name.upper())
        # In a CGI program HTTP_PROXY is what a visitor sent as the header "Proxy".
        if found and not (name == "http_proxy" and "REQUEST_METHOD" in os.environ):
            return found
    return None


def proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for an address, or None.

    Read are ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``, in upper or lower
    case; ``NO_PROXY`` may hold IPv4 and IPv6 networks.

    Args:
        url: The address that is called.
    """
    parts = urlsplit(url)
    proxy = _named(parts.scheme)
    if proxy is None:
        return None
    from requests.utils import should_bypass_proxies  # not at import: few have a proxy

    # requests knows host names and IPv4 networks in NO_PROXY, but no IPv6 networks, and no ports
    # of addresses.
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    if _excepted(parts.hostname or "", port) or should_bypass_proxies(url, None):
        return None
    return proxy


def checked_proxy(proxy: str) -> str:
    """Return the URL of a proxy with its scheme, or say what is wrong with it; no password.

    Raises:
        TypeError: It is no text.
        ValueError: It is no ``http`` or ``https`` proxy.
    """
    if not isinstance(proxy, str):
        raise TypeError(f"proxy is a {type(proxy).__name__}, must be a str")
    url = proxy if "://" in proxy else f"http://{proxy}"
    scheme = url.partition("://")[0]
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    # Behind the host there is nothing; a "/" in a password must be written as %2F.
    if not usable or "@" in parts.path or parts.query or parts.fragment:
        raise ValueError(
            f"the proxy's URL (scheme {scheme!r}) cannot be used: it must be http://host:port or "
            "https://host:port; in a user and a password before the host, / is written %2F"
        )
    return url


def proxy_tls(tls: TLSConfig | None) -> TLSConfig | None:
    """Return how a proxy is spoken to over TLS: checked in any case, but not told who calls.

    Args:
        tls: What the peers are spoken to with. Its certificate is meant for them alone, and so
            is the leave to be another host.
    """
    if tls is None:
        return None
    return attrs.evolve(tls, certfile=None, keyfile=None, check_hostname=True)


def authority_file() -> str | None:
    """Return the file or folder of certificate authorities that the environment names."""
    return next((os.environ[name] for name in _CA_VARIABLES if os.environ.get(name)), None)
