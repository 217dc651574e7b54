"""What an agent's card says about who may call it: security schemes and requirements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from protolink_sync.a2a.wire._lenient import json_object, objects, text, texts
from protolink_sync.a2a.wire._object import A2AObject

__all__ = ["SecurityScheme", "read_requirements"]

_KIND_BY_WRAPPER = {
    "apiKeySecurityScheme": "apiKey",
    "httpAuthSecurityScheme": "http",
    "oauth2SecurityScheme": "oauth2",
    "openIdConnectSecurityScheme": "openIdConnect",
    "mtlsSecurityScheme": "mutualTLS",
}
_KINDS = frozenset(_KIND_BY_WRAPPER.values())


@attrs.define(repr=False, eq=False)
class SecurityScheme(A2AObject):
    """One way in which callers of an agent identify themselves.

    Args:
        kind: ``apiKey``, ``http``, ``oauth2``, ``openIdConnect``, ``mutualTLS``, or the card's
            own word.
        description: What the card says about it.
        location: Where an API key goes: ``header``, ``query`` or ``cookie``.
        name: The name under which an API key goes there.
        scheme: The scheme of ``http``, such as ``Bearer``.
        bearer_format: What a bearer token is, such as ``JWT``.
        flows: The flows of ``oauth2`` as the card has them.
        oauth2_metadata_url: Where the metadata of ``oauth2`` is.
        open_id_connect_url: Where the configuration of ``openIdConnect`` is.
        raw: The scheme as the card has it.

    Source:
        wire/a2a.md 9.
    """

    kind: str
    description: str = ""
    location: str = ""
    name: str = ""
    scheme: str = ""
    bearer_format: str = ""
    flows: dict[str, Any] = attrs.field(factory=dict)
    oauth2_metadata_url: str = ""
    open_id_connect_url: str = ""
    raw: dict[str, Any] = attrs.field(factory=dict, repr=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SecurityScheme:
        """Read a scheme: with the wrapper of 1.0, else with the ``type`` of 0.3.

        The wrapper goes first: cards for both dialects have both in one object.
        """
        members, kind = data, text(data, "type") or "unknown"
        for wrapper, kind_inside in _KIND_BY_WRAPPER.items():
            if isinstance(data.get(wrapper), Mapping):
                members, kind = data[wrapper], kind_inside
                break
        return cls(
            kind,
            text(members, "description"),
            text(members, "location") or text(members, "in"),
            text(members, "name"),
            text(members, "scheme"),
            text(members, "bearerFormat"),
            dict(json_object(members, "flows")),
            text(members, "oauth2MetadataUrl"),
            text(members, "openIdConnectUrl"),
            dict(data),
        )

    @property
    def is_known(self) -> bool:
        """True if :attr:`kind` is one that A2A defines."""
        return self.kind in _KINDS


def read_requirements(members: Mapping[str, Any]) -> list[dict[str, list[str]]]:
    """Read the alternatives of which a caller has to fulfil one, in either dialect's form.

    Returns:
        Each alternative with the names of its schemes, all needed, and their scopes.
    """
    alternatives = objects(members, "securityRequirements") or objects(members, "security")
    return [_alternative(one) for one in alternatives]


def _alternative(members: Mapping[str, Any]) -> dict[str, list[str]]:
    wrapped = members.get("schemes")
    schemes = wrapped if isinstance(wrapped, Mapping) else members
    return {
        name: texts(scopes, "list") if isinstance(scopes, Mapping) else texts(schemes, name)
        for name, scopes in schemes.items()
    }
