"""AgentCard: who an A2A agent is, where it is called and what it can do; read leniently."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from protolink_sync.a2a.wire._lenient import flag, json_object, objects, text, texts
from protolink_sync.a2a.wire._object import A2AObject
from protolink_sync.a2a.wire._reading import members_of
from protolink_sync.a2a.wire.security_scheme import SecurityScheme, read_requirements

__all__ = [
    "AgentCapabilities",
    "AgentCard",
    "AgentExtension",
    "AgentInterface",
    "AgentProvider",
    "AgentSkill",
]

_LEGACY_ADDRESS = ("url", "preferredTransport", "protocolVersion", "additionalInterfaces")


@attrs.define(repr=False, eq=False)
class AgentInterface(A2AObject):
    """One address at which an agent is called, and how it is spoken to there.

    Args:
        url: The address, as the card has it.
        protocol_binding: ``JSONRPC``, ``GRPC``, ``HTTP+JSON`` or another word.
        protocol_version: The version of A2A that is spoken there; empty if the card has none.
        tenant: What goes into every request to it; empty if nothing does.
    """

    url: str
    protocol_binding: str = "JSONRPC"
    protocol_version: str = ""
    tenant: str = ""


@attrs.define(repr=False, eq=False)
class AgentExtension(A2AObject):
    """An extension of the protocol that an agent knows.

    Args:
        uri: Its identifier.
        description: How the agent uses it.
        required: The agent insists that callers use it.
        params: Its settings.
    """

    uri: str
    description: str = ""
    required: bool = False
    params: dict[str, Any] = attrs.field(factory=dict)


@attrs.define(repr=False, eq=False)
class AgentCapabilities(A2AObject):
    """What an agent offers beyond answering; what its card does not say is not offered.

    Args:
        streaming: It streams.
        push_notifications: It posts events to an address of the caller.
        extended_agent_card: It has a longer card for callers it knows.
        state_transition_history: It tells how the state of a task changed (0.3).
        extensions: The extensions it knows.
    """

    streaming: bool = False
    push_notifications: bool = False
    extended_agent_card: bool = False
    state_transition_history: bool = False
    extensions: list[AgentExtension] = attrs.field(factory=list)


@attrs.define(repr=False, eq=False)
class AgentSkill(A2AObject):
    """One thing an agent does for others.

    Args:
        id: Its identifier.
        name: Its name to show.
        description: What it does.
        tags: Words to find it by.
        examples: What to ask it.
        input_modes: Media types it takes, if they differ from the agent's.
        output_modes: Media types it gives, if they differ from the agent's.
        security_requirements: What a caller needs for it, as in :class:`AgentCard`.
    """

    id: str
    name: str = ""
    description: str = ""
    tags: list[str] = attrs.field(factory=list)
    examples: list[str] = attrs.field(factory=list)
    input_modes: list[str] = attrs.field(factory=list)
    output_modes: list[str] = attrs.field(factory=list)
    security_requirements: list[dict[str, list[str]]] = attrs.field(factory=list)


@attrs.define(repr=False, eq=False)
class AgentProvider(A2AObject):
    """Who offers an agent.

    Args:
        organization: The name.
        url: The address to read more at.
    """

    organization: str = ""
    url: str = ""


@attrs.define(repr=False, eq=False)
class AgentCard(A2AObject):
    """Who an A2A agent is, where it is called and what it can do.

    It is read from the forms of 1.0 and 0.3 and from cards that mix them. What is missing, null
    or of another type than expected counts as unset; ``raw`` has everything.

    Args:
        name: Its name.
        description: What it is for.
        version: The agent's own version.
        interfaces: Where it is called, preferred first.
        capabilities: What it offers beyond answering.
        skills: What it does for others.
        provider: Who offers it.
        default_input_modes: Media types it takes.
        default_output_modes: Media types it gives.
        security_schemes: The ways in which callers identify themselves, by name.
        security_requirements: The alternatives of which a caller has to fulfil one; each has the
            names of its schemes, all needed, and their scopes. None means that anybody may call.
        documentation_url: Where to read more.
        icon_url: Its icon.
        signatures: Its signatures as the card has them.
        is_legacy: True for a card that says where it is called in the form of 0.3 only.
        raw: The card as it was read.

    Source:
        wire/a2a.md 1, B10, B11, Q16.
    """

    name: str = ""
    description: str = ""
    version: str = ""
    interfaces: tuple[AgentInterface, ...] = ()
    capabilities: AgentCapabilities = attrs.field(factory=AgentCapabilities)
    skills: list[AgentSkill] = attrs.field(factory=list)
    provider: AgentProvider | None = None
    default_input_modes: list[str] = attrs.field(factory=list)
    default_output_modes: list[str] = attrs.field(factory=list)
    security_schemes: dict[str, SecurityScheme] = attrs.field(factory=dict)
    security_requirements: list[dict[str, list[str]]] = attrs.field(factory=list)
    documentation_url: str = ""
    icon_url: str = ""
    signatures: list[Any] = attrs.field(factory=list)
    is_legacy: bool = False
    raw: dict[str, Any] = attrs.field(factory=dict, repr=False)

    @classmethod
    def from_dict(cls, data: Any) -> AgentCard:
        """Read a card.

        Args:
            data: The decoded JSON value; what is inside may be shared, not copied.

        Raises:
            ModelError: It is no object.
        """
        members = members_of(data, "an agent card", None)
        provider = json_object(members, "provider")
        schemes = json_object(members, "securitySchemes")
        signatures = members.get("signatures")
        return cls(
            text(members, "name"),
            text(members, "description"),
            text(members, "version"),
            tuple(_interfaces(members)),
            _capabilities(members),
            [_skill(skill) for skill in objects(members, "skills")],
            AgentProvider(text(provider, "organization"), text(provider, "url"))
            if provider
            else None,
            texts(members, "defaultInputModes"),
            texts(members, "defaultOutputModes"),
            {
                name: SecurityScheme.from_dict(scheme)
                for name, scheme in schemes.items()
                if isinstance(scheme, Mapping)
            },
            read_requirements(members),
            text(members, "documentationUrl"),
            text(members, "iconUrl"),
            list(signatures) if type(signatures) is list else [],
            not _lists_interfaces(members),
            dict(members),
        )

    @property
    def supports_extended_card(self) -> bool:
        """True if the agent has a longer card for callers it knows."""
        return self.capabilities.extended_agent_card

    @property
    def is_usable(self) -> bool:
        """True if the card says anything about where or how the agent is called.

        A JSON object that does not, such as ``{}``, is no better than no card.

        Source:
            wire/a2a.md B9.
        """
        return bool(self.interfaces) or not self.is_legacy


def _lists_interfaces(members: Mapping[str, Any]) -> bool:
    listed = members.get("supportedInterfaces")
    return type(listed) is list and bool(listed)


def _interfaces(members: Mapping[str, Any]) -> list[AgentInterface]:
    if _lists_interfaces(members):
        return [
            AgentInterface(
                text(one, "url"),
                text(one, "protocolBinding"),
                text(one, "protocolVersion"),
                text(one, "tenant"),
            )
            for one in objects(members, "supportedInterfaces")
        ]
    version = text(members, "protocolVersion")
    found = []
    if any(members.get(name) for name in _LEGACY_ADDRESS):
        transport = text(members, "preferredTransport") or "JSONRPC"
        found.append(AgentInterface(text(members, "url"), transport, version))
    for one in objects(members, "additionalInterfaces"):
        found.append(AgentInterface(text(one, "url"), text(one, "transport"), version))
    return found


def _capabilities(members: Mapping[str, Any]) -> AgentCapabilities:
    given = json_object(members, "capabilities")
    return AgentCapabilities(
        flag(given, "streaming"),
        flag(given, "pushNotifications"),
        flag(given, "extendedAgentCard") or flag(members, "supportsAuthenticatedExtendedCard"),
        flag(given, "stateTransitionHistory"),
        [
            AgentExtension(
                text(one, "uri"),
                text(one, "description"),
                flag(one, "required"),
                dict(json_object(one, "params")),
            )
            for one in objects(given, "extensions")
        ],
    )


def _skill(members: Mapping[str, Any]) -> AgentSkill:
    return AgentSkill(
        text(members, "id"),
        text(members, "name"),
        text(members, "description"),
        texts(members, "tags"),
        texts(members, "examples"),
        texts(members, "inputModes"),
        texts(members, "outputModes"),
        read_requirements(members),
    )
