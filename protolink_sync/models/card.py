"""AgentCard: who an agent is, where it is reached, what it can do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

from protolink_sync.errors import ModelError
from protolink_sync.models._converter import structure
from protolink_sync.models._json import jsonable
from protolink_sync.models._members import JSONObject, brief
from protolink_sync.models._readers import identifier, json_object, text
from protolink_sync.models._showing import Shown
from protolink_sync.types import AgentRoleType, MimeType, SecuritySchemeType, TransportType

__all__ = ["AgentCapabilities", "AgentCard", "AgentInterface", "AgentSkill"]

PROTOCOL_VERSION = "0.8.3"
"""The ProtoLink release whose wire this library speaks."""


def _check_told(_: Any, field: attrs.Attribute[Any], value: Any) -> None:
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"{field.name} is {type(value).__name__}, must be a bool or None")


@attrs.define(repr=False, eq=False)
class AgentCapabilities(JSONObject):
    """What an agent can do and how much of it.

    Args:
        streaming: It sends the events of a task while it works.
        push_notifications: It calls webhooks.
        state_transition_history: It tells how the state of a task changed.
        has_llm: It has a language model.
        max_concurrency: How many tasks it works on at a time.
        message_batching: It takes several messages in one request.
        tool_calling: It can call tools.
        multi_step_reasoning: It reasons in several steps.
        timeout_support: It keeps to time limits.
        delegation: It may hand tasks to other agents.
        rag: It retrieves documents to answer from.
        code_execution: It can run code in a sandbox.
        supports_inference: It takes ``infer`` parts; None if the card does not say.
        extra: Capabilities this library does not know; written back as they are.

    Source:
        ProtoLink, Models reference, "AgentCapabilities"; wire/protolink.md 14.
    """

    streaming: bool = False
    push_notifications: bool = False
    state_transition_history: bool = False
    has_llm: bool = False
    max_concurrency: int = 1
    message_batching: bool = False
    tool_calling: bool = False
    multi_step_reasoning: bool = False
    timeout_support: bool = False
    delegation: bool = True
    rag: bool = False
    code_execution: bool = False
    supports_inference: bool | None = attrs.field(default=None, validator=_check_told)
    extra: dict[str, Any] = attrs.field(factory=dict, kw_only=True)

    def as_dict(self) -> dict[str, Any]:
        """Return all capabilities by name; the same as :meth:`to_dict`."""
        return self.to_dict()

    def enabled(self) -> list[str]:
        """Return the names of what is there; numbers as ``max_concurrency: 5``.

        >>> AgentCapabilities(streaming=True).enabled()
        ['streaming', 'max_concurrency: 1', 'delegation']
        """
        found = []
        for name, value in self.to_dict().items():
            if value is True:
                found.append(name)
            elif type(value) is int and value > 0:
                found.append(f"{name}: {value}")
        return found


@attrs.define(repr=False, eq=False)
class AgentSkill(JSONObject):
    """One thing an agent does for others.

    Args:
        id: Its name.
        description: What it does.
        input_schema: JSON Schema of what it takes.
        output_schema: JSON Schema of what it gives.
        tags: Words to find it by.
        examples: Inputs, outputs or scenes.
        extra: Members this library does not know; written back as they are.

    Source:
        ProtoLink, Models reference, "AgentSkill".
    """

    id: str = attrs.field(metadata={"read": identifier})
    description: str = ""
    input_schema: dict[str, Any] = attrs.field(factory=dict)
    output_schema: dict[str, Any] = attrs.field(factory=dict)
    tags: list[str] = attrs.field(factory=list)
    examples: list[Any] = attrs.field(factory=list)
    extra: dict[str, Any] = attrs.field(factory=dict, kw_only=True)


@attrs.frozen(repr=False, eq=False)
class AgentInterface(JSONObject):
    """One more address at which the same agent is reached.

    Args:
        url: The address.
        transport: How it is spoken to there.
        protocol_version: Which version is spoken there; ``protocolVersion`` on the wire.
        extra: Members this library does not know; written back as they are.

    Source:
        wire/protolink.md 14, "interface".
    """

    url: str
    transport: TransportType | str = attrs.field(default="http", metadata={"read": text})
    protocol_version: str = attrs.field(
        default=PROTOCOL_VERSION, metadata={"name": "protocolVersion"}
    )
    extra: dict[str, Any] = attrs.field(factory=dict, kw_only=True)


def _as_capabilities(value: Any) -> AgentCapabilities:
    if isinstance(value, AgentCapabilities):
        return value
    if value is None or isinstance(value, Mapping):
        return AgentCapabilities.from_dict(value or {})
    raise TypeError(
        f"capabilities are AgentCapabilities or a mapping, not a {type(value).__name__}"
    )


def _as_interfaces(values: Any) -> list[AgentInterface]:
    return [AgentInterface.from_dict(v) if isinstance(v, Mapping) else v for v in values]


@attrs.define(repr=False, eq=False)
class AgentCard(Shown, JSONObject):
    """Who an agent is, where it is reached and what it can do.

    Args:
        name: Its name.
        description: What it is for.
        url: Its address.
        transport: How it is spoken to there.
        version: The agent's own version.
        protocol_version: ProtoLink version; ``protocolVersion`` on the wire.
        capabilities: What it can do; a mapping is taken too.
        skills: What it does for others.
        input_formats: Media types it takes; ``inputFormats`` on the wire.
        output_formats: Media types it gives; ``outputFormats`` on the wire.
        security_schemes: How callers identify themselves; ``securitySchemes`` on the wire.
        role: What it is responsible for. Written and read here, although 0.8.3 forgets it.
        tags: Words to find it by.
        interfaces: Further addresses; ``additionalInterfaces`` on the wire, written if there are
            any. The name ``interfaces`` is read too, and written back.
        extra: Members this library does not know; written back as they are.

    Source:
        ProtoLink, Models reference, "AgentCard"; wire/protolink.md 14; design.md 7.

    >>> card = AgentCard("weather", "Weather service", "https://api.example.com/weather")
    >>> card.to_dict()["protocolVersion"]
    '0.8.3'
    """

    name: str
    description: str
    url: str
    transport: TransportType | str = attrs.field(default="http", metadata={"read": text})
    version: str = "1.0.0"
    protocol_version: str = attrs.field(
        default=PROTOCOL_VERSION, metadata={"name": "protocolVersion"}
    )
    capabilities: AgentCapabilities = attrs.field(
        factory=AgentCapabilities, converter=_as_capabilities
    )
    skills: list[AgentSkill] = attrs.field(factory=list)
    input_formats: list[MimeType | str] = attrs.field(
        factory=lambda: ["text/plain"], metadata={"name": "inputFormats"}
    )
    output_formats: list[MimeType | str] = attrs.field(
        factory=lambda: ["text/plain"], metadata={"name": "outputFormats"}
    )
    security_schemes: dict[SecuritySchemeType | str, dict[str, Any]] | None = attrs.field(
        factory=dict, metadata={"name": "securitySchemes", "read": json_object}
    )
    role: AgentRoleType | str = attrs.field(default="worker", metadata={"read": text})
    tags: list[str] = attrs.field(factory=list)
    interfaces: list[AgentInterface] = attrs.field(
        factory=list, converter=_as_interfaces, metadata={"name": "additionalInterfaces"}
    )
    extra: dict[str, Any] = attrs.field(factory=dict, kw_only=True)

    @classmethod
    def from_list(cls, data: Any) -> list[AgentCard]:
        """Read a list of cards from its JSON form, as a registry answers.

        Raises:
            ModelError: It is no list, or one entry is no card; ``path`` says which.
        """
        return structure(list[AgentCard], data)

    def get_prompt_format(self) -> str:
        """Return the agent as JSON text for the prompt of a language model that may call it.

        Keys and skills are sorted, so the text of the same agent is always the same.

        Source:
            wire/protolink.md 14, ``get_prompt_format()``.
        """
        tools = [
            {
                "name": skill.id,
                "description": skill.description,
                "input_schema": skill.input_schema,
                "output_schema": skill.output_schema,
                "examples": skill.examples,
            }
            for skill in sorted(self.skills, key=lambda skill: str(skill.id))
        ]
        shown = {
            "name": self.name,
            "description": self.description,
            "capabilities": self.capabilities,
            "tools": tools,
        }
        return json.dumps(jsonable(shown), ensure_ascii=False, indent=2, sort_keys=True)

    @staticmethod
    def _validate_fields(data: Mapping[str, Any]) -> None:
        """Check that the members without which there is no agent are there.

        Raises:
            ModelError: One or more are missing, null or empty; it names them all.
        """
        missing = [name for name in ("name", "description", "url") if not data.get(name)]
        if missing:
            raise ModelError(
                "an agent card needs name, description and url; missing or empty: "
                + ", ".join(missing),
                path="$",
            )

    @classmethod
    def _before_reading(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        cls._validate_fields(data)
        read = dict(data)
        if read.get("capabilities") is None:
            read["capabilities"] = {}
        if read.get("additionalInterfaces") is None:
            read["additionalInterfaces"] = read.get("interfaces")
        return read

    def _after_reading(self, data: Mapping[str, Any]) -> None:
        # An empty list is not written for itself, but where one was read it is.
        if "additionalInterfaces" in data and not self.interfaces:
            self.extra["additionalInterfaces"] = []

    def _json_members(self) -> dict[str, Any]:
        members = super()._json_members()
        if not self.interfaces and "additionalInterfaces" not in self.extra:
            del members["additionalInterfaces"]
        return members

    def __repr__(self) -> str:
        return (
            f"AgentCard(name={brief(self.name)}, url={brief(self.url)}, "
            f"transport={self.transport!r}, skills={len(self.skills)})"
        )
