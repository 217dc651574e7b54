"""The A2A card of a hosted agent, made from its own, and the address that stands in it."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from protolink_sync.models import AgentCard, AgentSkill, jsonable

__all__ = ["address", "card_value"]

_ANY_TEXT = ["text/plain"]
_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[A-Za-z0-9.-]+(:\d{1,5})?|\[[0-9A-Fa-f:.]+\](:\d{1,5})?")
# The form of ProtoLink's schemes in the agent's own card, and the form of A2A.
_WRAPPERS = {
    "apiKey": "apiKeySecurityScheme",
    "api_key": "apiKeySecurityScheme",
    "http": "httpAuthSecurityScheme",
    "oauth2": "oauth2SecurityScheme",
    "openIdConnect": "openIdConnectSecurityScheme",
    "mutualTLS": "mtlsSecurityScheme",
}
_BEARER = {"bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}}


def card_value(card: AgentCard, url: str, *, asks: bool) -> dict[str, Any]:
    """Return the A2A 1.0 card of an agent.

    Args:
        card: The agent's own card, as it is served.
        url: Where its A2A interface is.
        asks: Whether callers have to say who they are. If the card does not say how, it is by a
            bearer token.

    Source:
        wire/a2a.md 1, "Card members, side by side".
    """
    written: dict[str, Any] = {
        "name": card.name,
        "description": card.description,
        "supportedInterfaces": [
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        ],
        "version": card.version,
        "capabilities": {
            "streaming": True,
            "pushNotifications": False,
            "extendedAgentCard": False,
        },
        "defaultInputModes": list(card.input_formats) or _ANY_TEXT,
        "defaultOutputModes": list(card.output_formats) or _ANY_TEXT,
        "skills": [_skill(skill) for skill in card.skills],
    }
    schemes = _schemes(card) or (_BEARER if asks else {})
    if schemes:
        written["securitySchemes"] = schemes
        written["securityRequirements"] = [{"schemes": {name: {"list": []}}} for name in schemes]
    return written


def _skill(skill: AgentSkill) -> dict[str, Any]:
    id = str(skill.id)
    written: dict[str, Any] = {
        "id": id,
        "name": id.replace("_", " ").replace("-", " ").title(),
        "description": skill.description or id,
        # A2A asks for at least one.
        "tags": list(skill.tags) or [id],
    }
    examples = [example for example in skill.examples if isinstance(example, str)]
    return {**written, "examples": examples} if examples else written


def _schemes(card: AgentCard) -> dict[str, Any]:
    found = {}
    for name, scheme in (card.security_schemes or {}).items():
        wrapped = _scheme(name, scheme) if isinstance(scheme, Mapping) else None
        if wrapped is not None:
            found[str(name)] = wrapped
    return found


def _scheme(name: str, scheme: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return one scheme in the form of A2A; None if it has not what that form needs."""
    if len(set(_WRAPPERS.values()).intersection(scheme)) == 1:
        return dict(jsonable(scheme))
    kind = str(scheme.get("type", name))
    about = scheme.get("metadata")
    members = {**(about if isinstance(about, Mapping) else {}), **scheme}
    if kind in ("apiKey", "api_key"):
        location = members.get("in") or members.get("location") or "header"
        told = {"location": location, "name": members.get("name") or "X-API-Key"}
    elif kind == "http":
        told = {"scheme": members.get("scheme")}
        if bearer := members.get("bearerFormat") or members.get("bearer_format"):
            told["bearerFormat"] = bearer
    elif kind == "openIdConnect":
        url = members.get("openIdConnectUrl") or members.get("open_id_connect_url")
        told = {"openIdConnectUrl": url}
    elif kind == "oauth2":
        told = {"flows": members.get("flows")}
        if url := members.get("oauth2MetadataUrl") or members.get("oauth2_metadata_url"):
            told["oauth2MetadataUrl"] = url
    elif kind == "mutualTLS":
        told = {}
    else:
        return None
    if None in told.values():
        return None
    if description := members.get("description"):
        told["description"] = description
    return {_WRAPPERS[kind]: jsonable(told)}


def address(environ: Mapping[str, Any], served: str | None, own: str) -> tuple[str, bool]:
    """Return where the A2A interface is, and whether only the request says so.

    It is the address at which the agent is served, or that of its own card; the ``Host`` of the
    request chooses between the two, and among the names of this machine, and can put in no other.
    Only if neither is an address that others could call, it is the ``Host`` itself: the answer is
    then for the one who asked and must not be kept for others, since anybody can forge it.

    Args:
        environ: The WSGI environment of the request for the card.
        served: Where the agent is served, if that is known.
        own: The address in the agent's own card.
    """
    known = [url for url in (served, own) if url and _is_callable(url)]
    host = str(environ.get("HTTP_HOST", "")).lower()
    asked = host if _HOST.fullmatch(host) else ""
    for url in known:
        if _authority(url) == _authority(f"{urlsplit(url).scheme}://{asked}"):
            return url, False
    for url in known:
        if _is_this_machine(url, asked):
            return urlsplit(url)._replace(netloc=asked).geturl(), False
    if known:
        return known[0], False
    asked = asked or f"{environ.get('SERVER_NAME', '')}:{environ.get('SERVER_PORT', '')}"
    prefix = quote(str(environ.get("SCRIPT_NAME", "")).encode("latin-1"))
    return f"{environ.get('wsgi.url_scheme', 'http')}://{asked}{prefix}/", True


def _authority(url: str) -> tuple[str, int]:
    """Return host and port of an HTTP address; no host if it is none."""
    try:
        parts = urlsplit(url)
        return parts.hostname or "", parts.port or _PORTS[parts.scheme]
    except (ValueError, KeyError):
        return "", 0


def _is_callable(url: str) -> bool:
    """Tell whether an address is one that others could call."""
    name, _ = _authority(url)
    try:
        return not ipaddress.ip_address(name).is_unspecified
    except ValueError:
        return bool(name)


def _is_this_machine(url: str, asked: str) -> bool:
    """Tell whether both an address and what was asked for mean one port of this machine."""
    (name, port), (other, its_port) = _authority(url), _authority(f"http://{asked}")
    return port == its_port and _is_loopback(name) and _is_loopback(other)


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
