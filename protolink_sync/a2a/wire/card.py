"""Where an agent's card is, which of its interfaces is called, and under which address."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

import attrs

from protolink_sync.a2a.wire.agent_card import AgentCard, AgentInterface
from protolink_sync.a2a.wire.states import WireDialect
from protolink_sync.errors import A2AClientError

__all__ = ["WELL_KNOWN_PATH", "Selection", "card_url", "origin_of", "select"]

WELL_KNOWN_PATH = "/.well-known/agent-card.json"

_BINDING = "JSONRPC"
_DIALECT_BY_MAJOR = {"0": WireDialect.V0_3, "1": WireDialect.V1_0}
_DEFAULT_PORTS = {"http": 80, "https": 443}
_IPV6_NETLOC = re.compile(r"\[[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*\](:[0-9]*)?")


def card_url(base_url: str) -> tuple[str, str]:
    """Return the address of an agent without trailing slashes, and that of its card.

    Args:
        base_url: The address as given; one that names the card already is taken too.

    Source:
        wire/a2a.md B1, B2.

    >>> card_url("https://h/a/b/")
    ('https://h/a/b', 'https://h/a/b/.well-known/agent-card.json')
    """
    base = base_url.rstrip("/").removesuffix(WELL_KNOWN_PATH).rstrip("/")
    return base, base + WELL_KNOWN_PATH


@attrs.frozen
class Selection:
    """The interface that is called, and how.

    Args:
        interface: What the card offers.
        url: Where calls go.
        dialect: What is spoken there.
        tenant: What goes into every request; empty if nothing does.
        is_cross_origin: Calls go to another origin than the agent's address, as allowed.
        ignored_url: An address on another origin, which the card names and which is not used.
        unusable_url: An address that the card names and that is none of HTTP.
    """

    interface: AgentInterface
    url: str
    dialect: WireDialect
    tenant: str = ""
    is_cross_origin: bool = False
    ignored_url: str | None = None
    unusable_url: str | None = None

    @property
    def warning(self) -> str | None:
        """What the caller should hear about an address that is not used; None if there is none.

        Source:
            wire/a2a.md B94.
        """
        if self.ignored_url is None:
            return None
        theirs, ours = origin_of(self.ignored_url) or "", origin_of(self.url) or self.url
        return (
            f"the agent card names an interface at {_printable(theirs)}, another origin than "
            f"{_printable(ours)}: calls go to {_printable(self.url)} all the same. "
            "Set allow_cross_origin=True to follow the card."
        )


def select(
    card: AgentCard,
    base_url: str,
    *,
    dialect: WireDialect | None = None,
    allow_cross_origin: bool = False,
) -> Selection:
    """Choose the interface to call.

    An interface at the agent's own address goes before earlier ones; else the earliest that this
    library speaks is taken. An address that cannot be used, or that is on another origin, is
    replaced by the agent's own.

    Args:
        card: The agent's card.
        base_url: The agent's address.
        dialect: Take only interfaces of this dialect.
        allow_cross_origin: Follow the card to other origins.

    Raises:
        A2AClientError: The card offers nothing that this library speaks; it lists the offers.

    Source:
        wire/a2a.md B12-B19, B93-B97.
    """
    base = card_url(base_url)[0]
    candidates = [
        (one, spoken)
        for one in card.interfaces
        if (spoken := _dialect(one)) is not None and dialect in (None, spoken)
    ]
    if not candidates:
        raise A2AClientError(_no_candidate(card, base, dialect))
    own = [found for found in candidates if found[0].url.rstrip("/") == base]
    interface, spoken = (own or candidates)[0]
    chosen = Selection(interface, base, spoken, interface.tenant)
    url = _usable(interface.url, base)
    if url is None:
        return attrs.evolve(chosen, unusable_url=interface.url or None)
    is_cross_origin = origin_of(url) != origin_of(base)
    if is_cross_origin and not allow_cross_origin:
        return attrs.evolve(chosen, ignored_url=url)
    return attrs.evolve(chosen, url=url, is_cross_origin=is_cross_origin)


def origin_of(url: str) -> str | None:
    """Return the origin of an HTTP address in one spelling; None if it is no such address.

    Source:
        wire/a2a.md 15; RFC 6454, 4.

    >>> origin_of("HTTP://H.example:80/x")
    'http://h.example'
    """
    # What a URL must not have, and what programs read in more than one way.
    if not (url.isascii() and url.isprintable()) or "\\" in url or any(c.isspace() for c in url):
        return None
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme.lower(), (parts.hostname or "").rstrip("."), parts.port
        if scheme not in _DEFAULT_PORTS or not host or "@" in parts.netloc:
            return None
        # urlsplit() takes what stands in brackets for the host, whatever stands around them.
        if "[" in parts.netloc and not _IPV6_NETLOC.fullmatch(parts.netloc):
            return None
        if ":" in host:
            host = f"[{ipaddress.ip_address(host).compressed}]"
    except ValueError:
        return None
    is_default = port in (None, _DEFAULT_PORTS[scheme])
    return f"{scheme}://{host}" if is_default else f"{scheme}://{host}:{port}"


def _usable(url: str, base: str) -> str | None:
    """Return the address to call for that of an interface; None if it cannot be used."""
    if url.startswith("/"):
        parts = urlsplit(base)
        url = f"{parts.scheme}://{parts.netloc}{url}"
    return url if origin_of(url) is not None else None


def _dialect(interface: AgentInterface) -> WireDialect | None:
    """Return the dialect of an interface; None if this library does not speak to it."""
    if interface.protocol_binding.upper() != _BINDING:
        return None
    major = re.match(r"[0-9]+", interface.protocol_version or "0.3")
    return _DIALECT_BY_MAJOR.get(major[0].lstrip("0") or "0") if major else None


def _no_candidate(card: AgentCard, base: str, dialect: WireDialect | None) -> str:
    offers = [
        f"{one.protocol_binding or '(no binding)'} {one.protocol_version or '(no version)'} "
        f"@ {one.url or '(no url)'}"
        for one in card.interfaces
    ]
    wanted = "1.x or 0.x" if dialect is None else dialect.value
    return (
        f"the A2A agent at {base} offers no interface that this client speaks, which is JSONRPC "
        f"{wanted}; it offers: {_printable('; '.join(offers))[:2000] or 'nothing'}"
    )


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)
