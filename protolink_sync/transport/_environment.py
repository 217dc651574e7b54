"""What the environment says about proxies and certificate authorities."""

from __future__ import annotations

import ipaddress
import os
from urllib.parse import urlsplit

from requests.utils import get_environ_proxies, select_proxy

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


def proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for an address, or None.

    Read are ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``, in upper or lower
    case; ``NO_PROXY`` may hold IPv4 and IPv6 networks.

    Args:
        url: The address that is called.
    """
    # requests knows the IPv4 half of this only.
    if _excepted(urlsplit(url).hostname or ""):
        return None
    return select_proxy(url, get_environ_proxies(url)) or None


def authority_file() -> str | None:
    """Return the file or folder of certificate authorities that the environment names."""
    return next((os.environ[name] for name in _CA_VARIABLES if os.environ.get(name)), None)
