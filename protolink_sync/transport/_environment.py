"""What the environment says about proxies and certificate authorities."""

from __future__ import annotations

import ipaddress
import os
from urllib.parse import urlsplit

from requests.utils import should_bypass_proxies

__all__ = ["authority_file", "proxy_for"]

_CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


def _excepted(host: str) -> bool:
    """Return whether ``NO_PROXY`` has a network or address that holds an IP host."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    entries = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    for entry in entries.replace(" ", "").split(","):
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
    # requests knows host names and IPv4 networks in NO_PROXY, but no IPv6 networks.
    if proxy is None or _excepted(parts.hostname or "") or should_bypass_proxies(url, None):
        return None
    return proxy


def authority_file() -> str | None:
    """Return the file or folder of certificate authorities that the environment names."""
    return next((os.environ[name] for name in _CA_VARIABLES if os.environ.get(name)), None)
