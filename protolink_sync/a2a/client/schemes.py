"""Credentials by the security schemes that a card names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from protolink_sync.a2a.client._headers import checked_headers
from protolink_sync.a2a.wire import AgentCard, SecurityScheme
from protolink_sync.errors import A2AClientError
from protolink_sync.security import APIKey, BasicAuth, BearerToken, check_header

__all__ = ["SchemeCredentials"]

_Value = str | BearerToken | BasicAuth


class SchemeCredentials:
    """Credentials by the names under which an agent's card asks for them.

    The card says where each one goes: into a header, the query, a cookie, or ``Authorization``.
    Of the alternatives in its security requirements the first one is taken for which everything
    is there. They are not sent with the request for the card, which comes first.

    Args:
        by_scheme: Name of the scheme to its credential: a text (an API key, a token), a
            ``BearerToken`` (which may come from the environment), or ``BasicAuth`` for the HTTP
            scheme ``basic``. Mutual TLS needs no entry: its certificate stands in ``TLSConfig``.

    Raises:
        TypeError: It is no mapping of such values.
        ValueError: A text is empty or cannot be sent.

    >>> SchemeCredentials({"key": "s3cret"})
    SchemeCredentials(key)
    """

    def __init__(self, by_scheme: Mapping[str, _Value]) -> None:
        if not isinstance(by_scheme, Mapping):
            kind = type(by_scheme).__name__
            raise TypeError(f"SchemeCredentials needs a mapping from scheme to value, not a {kind}")
        self._by_scheme: dict[str, BearerToken | BasicAuth] = {}
        for name, value in by_scheme.items():
            if not isinstance(value, (str, BearerToken, BasicAuth)):
                raise TypeError(
                    f"the credential for the scheme {name!r} is a {type(value).__name__}, must be "
                    "a str, a BearerToken or a BasicAuth"
                )
            # A token masks itself, refuses pickling, and has the same rules for its characters.
            self._by_scheme[name] = BearerToken(value) if isinstance(value, str) else value

    def __repr__(self) -> str:
        return f"SchemeCredentials({', '.join(sorted(self._by_scheme))})"

    def shown(self, card: AgentCard | None) -> tuple[dict[str, str], str]:
        """Return the headers that a card asks for, and what it wants behind the address.

        Args:
            card: The card; without one nothing is sent.

        Raises:
            A2AClientError: None of its alternatives can be met; the message has their names.
            ValueError: The card wants a header that cannot be sent.
        """
        if card is None or not card.security_requirements:
            return {}, ""
        for alternative in card.security_requirements:
            if all(self._has(card.security_schemes.get(name), name) for name in alternative):
                return self._placed(card, alternative)
        wanted = " or ".join(
            " and ".join(sorted(alternative)) for alternative in card.security_requirements
        )
        raise A2AClientError(
            f"the agent asks for {wanted}, and SchemeCredentials has "
            f"{', '.join(sorted(self._by_scheme)) or 'nothing'}"
        )

    def _has(self, scheme: SecurityScheme | None, name: str) -> bool:
        if scheme is None:
            return False
        return name in self._by_scheme or scheme.kind == "mutualTLS"

    def _placed(
        self, card: AgentCard, alternative: Mapping[str, Any]
    ) -> tuple[dict[str, str], str]:
        headers: dict[str, str] = {}
        query: list[str] = []
        cookies: list[str] = []
        for name in alternative:
            scheme = card.security_schemes[name]
            if scheme.kind == "mutualTLS":
                continue
            credential = self._by_scheme[name]
            if scheme.kind != "apiKey":
                headers["Authorization"] = _authorization(name, scheme, credential)
                continue
            key, where = _text(name, credential), scheme.name
            if scheme.location == "query":
                query.append(f"{quote(where, safe='')}={quote(key, safe='')}")
            elif scheme.location == "cookie":
                check_header(where, key, what=f"the cookie of scheme {name!r}")
                cookies.append(f"{where}={key}")
            else:
                headers.update(_in_header(name, where, key))
        if cookies:
            headers["Cookie"] = "; ".join(cookies)
        return headers, f"?{'&'.join(query)}" if query else ""


def _in_header(name: str, header: str, key: str) -> dict[str, str]:
    """Return the header that a card names, by the same rules as for one of the caller's own."""
    try:
        checked = APIKey(key, header).headers()
        return checked_headers(checked)
    except ValueError as error:
        raise A2AClientError(
            f"the card's scheme {name!r} wants the credential in the header {header!r}, which "
            f"cannot be: {error}"
        ) from error


def _text(name: str, credential: BearerToken | BasicAuth) -> str:
    if isinstance(credential, BasicAuth):
        raise A2AClientError(f"the scheme {name!r} wants one text, not user and password")
    return credential.headers()["Authorization"].partition(" ")[2]


def _authorization(name: str, scheme: SecurityScheme, credential: BearerToken | BasicAuth) -> str:
    if scheme.kind == "http" and scheme.scheme.lower() == "basic":
        if not isinstance(credential, BasicAuth):
            raise A2AClientError(f"the scheme {name!r} wants BasicAuth(user, password)")
        return credential.headers()["Authorization"]
    word = scheme.scheme if scheme.kind == "http" and scheme.scheme else "Bearer"
    value = f"{word} {_text(name, credential)}"
    check_header("Authorization", value, what=f"the card's scheme {name!r}")
    return value
