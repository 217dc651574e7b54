"""Artifact: what a task brings forth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from protolink_sync.models._converter import structure
from protolink_sync.models._ids import new_id
from protolink_sync.models._json import ODD, jsonable
from protolink_sync.models._members import LazyExtra, brief
from protolink_sync.models._readers import identifier, nullable_text
from protolink_sync.models._time import utc_now
from protolink_sync.models.part import Part, read_parts, text_of, write_parts

__all__ = ["Artifact"]


@attrs.define(repr=False, eq=False)
class Artifact(LazyExtra):
    """A result, a preview, a diagnosis, a resource: output that outlives the conversation.

    Args:
        id: Identifier, made if not given. A peer's may be any JSON scalar; it is kept as it is.
        parts: The content, in order.
        metadata: Anything about it; null reads as empty.
        timestamp: When it was made, as ISO 8601 text. A peer's text is kept as it is, null too.
        kind: Category, open to any word; ``result`` counts as an answer.
        name: Name to show.
        uri: Address of what it stands for.
        media_type: What it holds as a whole.
        action_id: The run action that it belongs to.
        extra: Members this library does not know; written back as they are.

    Source:
        ProtoLink, Models reference, "Artifact"; wire/protolink.md 14.
    """

    id: str = attrs.field(factory=new_id, metadata={"read": identifier})
    parts: list[Part] = attrs.field(factory=list)
    metadata: dict[str, Any] = attrs.field(factory=dict)
    timestamp: str = attrs.field(factory=utc_now, metadata={"read": nullable_text})
    kind: str = attrs.field(default="result", metadata={"read": nullable_text})
    name: str | None = None
    uri: str | None = None
    media_type: str | None = None
    action_id: str | None = attrs.field(default=None, metadata={"read": identifier})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Artifact:
        """Read an artifact from its JSON form.

        Raises:
            ModelError: It has not the form of an artifact; ``path`` says where.
        """
        if cls is Artifact:
            try:
                return read_artifacts([data])[0]
            except ODD:
                pass
        return structure(cls, data)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form.

        Raises:
            TypeError: Some content has no JSON form, such as ``bytes``; the message says where.
            ModelError: It holds NaN, an infinity, or itself.
        """
        try:
            return write_artifacts([self])[0]
        except ODD:
            return super().to_dict()

    def add_part(self, part: Part) -> Artifact:
        """Add a part and return the artifact."""
        self.parts.append(part)
        return self

    def add_text(self, text: str) -> Artifact:
        """Add a part of text and return the artifact."""
        self.parts.append(Part.text(text))
        return self

    def for_action(self, action_id: str) -> Artifact:
        """Set the run action that the artifact belongs to and return the artifact."""
        self.action_id = action_id
        return self

    @property
    def text(self) -> str:
        """The text of the artifact: its text parts, joined with nothing between."""
        return text_of(self.parts)

    def __repr__(self) -> str:
        name = f", name={brief(self.name)}" if self.name else ""
        return f"Artifact(id={brief(self.id)}, kind={self.kind!r}{name}, parts={brief(self.parts)})"


def read_artifacts(values: Any) -> list[Artifact]:
    """Read a list of artifacts: the usual ones at once, others through the converter.

    Raises:
        TypeError, ValueError, ...: As :func:`~protolink_sync.models.part.read_parts`.
    """
    if type(values) is not list:
        if values is None:
            return []
        raise TypeError
    return [*map(_read_artifact, values)]


def _read_artifact(value: dict[str, Any]) -> Artifact:
    """Read an artifact; at once if it is as the peer writes it: nine members, texts and nulls."""
    if len(value) != 9:
        return structure(Artifact, value)
    try:
        identity, moment, kind = value["id"], value["timestamp"], value["kind"]
        metadata = value["metadata"]
        optional = value["name"], value["uri"], value["media_type"], value["action_id"]
        parts = value["parts"]
    except KeyError:
        return structure(Artifact, value)
    if (
        type(identity) is str
        and type(moment) is str
        and type(kind) is str
        and type(metadata) is dict
        and all(x is None or type(x) is str for x in optional)
    ):
        return Artifact(identity, read_parts(parts), dict(metadata), moment, kind, *optional)
    return structure(Artifact, value)


def write_artifacts(artifacts: list[Artifact]) -> list[dict[str, Any]]:
    """Return the JSON forms of artifacts.

    Raises:
        TypeError, ValueError, ...: As :func:`~protolink_sync.models.part.write_parts`.
    """
    values = []
    for artifact in artifacts:
        value = {
            "id": jsonable(artifact.id),
            "parts": write_parts(artifact.parts),
            "metadata": jsonable(artifact.metadata),
            "timestamp": jsonable(artifact.timestamp),
            "kind": jsonable(artifact.kind),
            "name": jsonable(artifact.name),
            "uri": jsonable(artifact.uri),
            "media_type": jsonable(artifact.media_type),
            "action_id": jsonable(artifact.action_id),
        }
        if artifact._extra:
            for name, item in artifact._extra.items():
                value.setdefault(name, jsonable(item))
        values.append(value)
    return values
