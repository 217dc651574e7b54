"""Part: a piece of content, which is text, bytes, an address or data."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import attrs

from protolink_sync.a2a.wire._object import A2AObject
from protolink_sync.a2a.wire._reading import (
    Place,
    members_of,
    object_at,
    others,
    path_of,
    text_at,
    unexpected,
)
from protolink_sync.errors import ModelError
from protolink_sync.models import jsonable

__all__ = ["Part", "encoded", "text_of"]

_KNOWN = frozenset({"kind", "text", "raw", "url", "data", "filename", "mediaType", "metadata"})
_FILE = frozenset({"bytes", "uri", "name", "mimeType"})

# Peers also send the URL-safe alphabet, lines of 76 and no padding.
_STANDARD_ALPHABET = str.maketrans("-_", "+/", " \r\n\t")


@attrs.define(repr=False, eq=False)
class Part(A2AObject):
    """One piece of the content of a message or an artifact.

    Which of ``text``, ``raw``, ``url`` and ``data`` is set decides what it is, in this order.

    Args:
        text: The text; may be empty.
        raw: The bytes of a file.
        url: Address of a file.
        data: Any JSON value.
        filename: Name of the file.
        media_type: Media type of the content.
        metadata: Anything about it.
        null_data: True if there is data, and it is JSON null.
        extra: Members this library does not know; written back as they are.

    Source:
        wire/a2a.md 4, B29, B30.
    """

    text: str | None = None
    raw: bytes | None = None
    url: str | None = None
    data: Any = None
    filename: str = ""
    media_type: str = ""
    metadata: dict[str, Any] = attrs.field(factory=dict)
    null_data: bool = attrs.field(default=False, kw_only=True)
    extra: dict[str, Any] = attrs.field(factory=dict, kw_only=True)

    @classmethod
    def from_text(cls, text: str, media_type: str | None = None) -> Part:
        """Make a part of text.

        Raises:
            TypeError: It is no text.
        """
        if not isinstance(text, str):
            raise TypeError(f"expected text, got {type(text).__name__}")
        return cls(text, media_type=media_type or "")

    @classmethod
    def from_bytes(
        cls, data: bytes, media_type: str | None = None, filename: str | None = None
    ) -> Part:
        """Make a part that carries the bytes of a file.

        Raises:
            TypeError: ``data`` is not bytes.
        """
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"expected bytes, got {type(data).__name__}")
        return cls(raw=bytes(data), media_type=media_type or "", filename=filename or "")

    @classmethod
    def from_url(cls, url: str, media_type: str | None = None, filename: str | None = None) -> Part:
        """Make a part that says where a file is.

        Raises:
            ValueError: The address is empty.
        """
        if not url:
            raise ValueError("the address of a part is empty")
        return cls(url=url, media_type=media_type or "", filename=filename or "")

    @classmethod
    def from_data(cls, value: Any, media_type: str | None = None) -> Part:
        """Make a part of any JSON value, null too. 0.3 agents take objects only."""
        return cls(data=value, media_type=media_type or "", null_data=value is None)

    @property
    def kind(self) -> str:
        """What it is: ``text``, ``raw``, ``url``, ``data``, or ``unknown`` if nothing is set."""
        if self.text is not None:
            return "text"
        if self.raw is not None:
            return "raw"
        if self.url:
            return "url"
        return "data" if self.data is not None or self.null_data else "unknown"

    @classmethod
    def from_dict(cls, data: Any, place: Place = None) -> Part:
        """Read a part in the form of either dialect.

        Args:
            data: The decoded JSON object.
            place: Where it stands in what was received.

        Raises:
            ModelError: It has not the form of a part; ``path`` says where.
        """
        members = members_of(data, "a part", place)
        if members.keys() <= _ONLY_TEXT and type(members.get("text")) is str:
            return cls(members["text"])
        part = cls(
            text_at(members, "text", place) if members.get("text") is not None else None,
            _bytes_at(members, "raw", place),
            text_at(members, "url", place) or None,
            members.get("data"),
            text_at(members, "filename", place),
            text_at(members, "mediaType", place),
            object_at(members, "metadata", place),
            extra=others(members, _KNOWN),
        )
        if isinstance(members.get("file"), Mapping):
            part._take_file(members["file"], (place, "file"))
        part.null_data = "data" in members and part.kind == "unknown"
        return part

    def to_dict(self) -> dict[str, Any]:
        """Return the form of 1.0.

        Raises:
            TypeError: Some content has no JSON form; the message says where.
            ModelError: Some number is NaN or infinite, or a structure contains itself.
        """
        written: dict[str, Any] = jsonable(self.extra)
        if self.text is not None:
            written["text"] = self.text
        if self.raw is not None:
            written["raw"] = encoded(self.raw)
        if self.url:
            written["url"] = self.url
        if self.data is not None or self.null_data:
            written["data"] = jsonable(self.data)
        if self.filename:
            written["filename"] = self.filename
        if self.media_type:
            written["mediaType"] = self.media_type
        if self.metadata:
            written["metadata"] = jsonable(self.metadata)
        return written

    def copy(self) -> Part:
        """Return a part that shares nothing with this one."""
        if self.text is not None and not (self.metadata or self.extra or self.data):
            return Part(self.text, self.raw, self.url, None, self.filename, self.media_type)
        return Part(
            self.text,
            self.raw,
            self.url,
            jsonable(self.data),
            self.filename,
            self.media_type,
            jsonable(self.metadata),
            null_data=self.null_data,
            extra=jsonable(self.extra),
        )

    def _take_file(self, file: Mapping[str, Any], place: Place) -> None:
        """Take over the member ``file`` of 0.3."""
        self.raw = _bytes_at(file, "bytes", place)
        self.url = text_at(file, "uri", place) or None
        self.filename = text_at(file, "name", place)
        self.media_type = text_at(file, "mimeType", place)
        unknown = others(file, _FILE)
        del self.extra["file"]
        if unknown:
            self.extra["file"] = unknown


_ONLY_TEXT = frozenset({"kind", "text"})


def text_of(parts: list[Part]) -> str:
    """Return the text of parts, joined with nothing between."""
    return "".join([part.text for part in parts if part.text is not None])


def encoded(raw: bytes) -> str:
    """Return bytes as base64 text."""
    return base64.b64encode(raw).decode("ascii")


def _bytes_at(members: Mapping[str, Any], name: str, place: Place) -> bytes | None:
    value = members.get(name)
    if value is None:
        return None
    if type(value) is not str:
        raise unexpected("a string in base64", value, (place, name))
    standard = value.translate(_STANDARD_ALPHABET)
    try:
        return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except ValueError as exc:
        path = path_of((place, name))
        raise ModelError(f"not base64: {exc} @ {path}", path=path) from exc
