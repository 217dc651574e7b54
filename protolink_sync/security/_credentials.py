"""Which secret is for which origin."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from protolink_sync.security._headers import check_header, check_not_own
from protolink_sync.security._secrets import APIKey, BasicAuth, BearerToken

__all__ = ["Credentials", "check_credentials", "credential_headers", "origin"]

_DEFAULT_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}
_BRACKETED = re.compile(r"\[[^\[\]]+\](:[0-9]*)?")


@functools.lru_cache(maxsize=1024)
def origin(url: str) -> str:
    """Return the origin of a URL in one spelling: scheme, host, and the port if not the default.

    Args:
        url: An absolute URL.

    Raises:
        ValueError: The URL has no scheme or no host, its port is no number, or what stands in or
            beside brackets is no IPv6 address.

    Source:
        RFC 6454, 4 and 6.1.

    >>> origin("https://H.example:443/x") == origin("https://h.example")
    True
    >>> origin("http://[0:0::1]:8")
    'http://[::1]:8'
    """
    parts = urlsplit(url)
    scheme, host = parts.scheme.lower(), (parts.hostname or "").rstrip(".")
    if not scheme or not host:
        raise ValueError(f"{url!r} is no absolute URL: it needs a scheme and a host")
    address = parts.netloc.rpartition("@")[2]
    # What stands beside the brackets would be lost, and the origin be another one.
    if "[" in address and not (":" in host and _BRACKETED.fullmatch(address)):
        raise ValueError(f"{url!r} has no valid IPv6 address in its brackets")
    if ":" in host:
        import ipaddress  # few addresses are IPv6

        host = f"[{ipaddress.ip_address(host).compressed}]"
    port = parts.port
    if port is None or port == _DEFAULT_PORTS.get(scheme):
        return f"{scheme}://{host}"
    return f"{scheme}://{host}:{port}"


# One value for every origin the client is told to call; a mapping from origin to value; or a
# callable (origin, refresh) -> headers or None, asked for each attempt.
Credentials = (
    str
    | BearerToken
    | APIKey
    | BasicAuth
    | Mapping[str, str | BearerToken | APIKey | BasicAuth]
    | Callable[[str, bool], Mapping[str, str] | None]
)


def check_credentials(credentials: Credentials | None) -> Credentials | None:
    """Return credentials ready for use: texts become bearer tokens, origins one spelling.

    Raises:
        TypeError: The value is none of the forms of ``Credentials``.
        ValueError: A text cannot be sent, or a key of a mapping is no origin.
    """
    if credentials is None or isinstance(credentials, (BearerToken, APIKey, BasicAuth)):
        return credentials
    if isinstance(credentials, str):
        return BearerToken(credentials)
    if isinstance(credentials, Mapping):
        result: dict[str, Any] = {}
        for key, value in credentials.items():
            if not isinstance(value, (str, BearerToken, APIKey, BasicAuth)):
                raise TypeError(
                    f"credentials for {key!r} are a {type(value).__name__}, must be a str, "
                    "BearerToken, APIKey or BasicAuth"
                )
            result[origin(key)] = BearerToken(value) if isinstance(value, str) else value
        return result
    if callable(credentials):
        return credentials
    raise TypeError(
        f"credentials is a {type(credentials).__name__}, must be a str, BearerToken, APIKey, "
        "BasicAuth, a mapping from origin to one of these, or a callable (origin, refresh)"
    )


def credential_headers(
    credentials: Credentials | None, url: str, *, refresh: bool = False
) -> Mapping[str, str] | None:
    """Return the headers that carry the credentials for one address.

    Args:
        credentials: As :func:`check_credentials` returned them.
        url: The address that is called.
        refresh: True when the peer refused what was sent before; only a callable can answer
            differently then.

    Raises:
        TypeError: A callable returned no mapping.
        ValueError: A callable returned a header that cannot be sent, or an environment variable
            is not set.
    """
    if credentials is None:
        return None
    if isinstance(credentials, (BearerToken, APIKey, BasicAuth)):
        return credentials.headers()
    if isinstance(credentials, Mapping):
        value = credentials.get(origin(url))
        return None if value is None else value.headers()  # type: ignore[union-attr]
    headers = credentials(origin(url), refresh)  # type: ignore[operator]
    if headers is None:
        return None
    if not isinstance(headers, Mapping):
        raise TypeError(
            f"the credentials callable returned a {type(headers).__name__}, "
            "must be a mapping of headers or None"
        )
    for name, value in headers.items():
        check_header(name, value, what="the credentials callable's result")
        check_not_own(name, what="the credentials callable's result")
    return headers
