"""Part: the smallest piece of content in a message or an artifact."""

from __future__ import annotations

import builtins
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from protolink_sync.models._converter import structure
from protolink_sync.models._json import ODD, jsonable
from protolink_sync.models._members import LazyExtra, brief
from protolink_sync.models._raw import ANY_BYTES, decoded, encoded, file_name, only_given
from protolink_sync.models._readers import text as read_text
from protolink_sync.models.tools import USUAL_CONTENT, RouteDecision, ToolCall, ToolOutput
from protolink_sync.types import PartType

if TYPE_CHECKING:
    import pathlib

__all__ = ["Part"]


@attrs.define(repr=False, eq=False)
class Part(LazyExtra):
    """One piece of content: text, JSON, a tool call, a file, ...

    Args:
        type: What the content is. Words that are not in :data:`~protolink_sync.types.PartType`
            are kept: one unknown part does not lose a task.
        content: The content. Of ``tool_call``, ``tool_output``, ``route`` and ``decision`` it is
            read as a :class:`ToolCall`, :class:`ToolOutput` or :class:`RouteDecision`; of
            everything else as plain JSON. A content that is missing reads as None.
        extra: Members this library does not know; written back as they are.

    Source:
        ProtoLink, Models reference, "Part"; wire/protolink.md 14.

    >>> Part.text("Hello").to_dict()
    {'type': 'text', 'content': 'Hello'}
    """

    CONTENT_CLASSES: ClassVar[dict[str, builtins.type]] = {
        "tool_call": ToolCall,
        "tool_output": ToolOutput,
        "route": RouteDecision,
        "decision": RouteDecision,
    }

    type: PartType | str = attrs.field(metadata={"read": read_text})
    content: Any = None

    # ---- JSON ----

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Part:
        """Read a part from its JSON form.

        Raises:
            ModelError: It is no object, or has no ``type``, or the content of a tool call or a
                decision lacks what names it.
        """
        if cls is Part:
            try:
                return read_parts([data])[0]
            except ODD:
                pass
        return structure(cls, data)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form.

        In the content, models, dataclasses, attrs classes, enums, dates and times are converted.

        Raises:
            TypeError: The content has no JSON form, such as ``bytes``.
            ModelError: It holds NaN, an infinity, or itself.
        """
        try:
            return write_parts([self])[0]
        except ODD:
            return super().to_dict()

    # ---- making ----

    @classmethod
    def text(cls, content: str) -> Part:
        """Make a part of text."""
        return cls("text", content)

    @classmethod
    def json(cls, content: Any) -> Part:
        """Make a part of JSON: an object as a rule, any JSON value in fact."""
        return cls("json", content)

    @classmethod
    def tool_call(
        cls,
        tool_name: str,
        args: dict[str, Any] | None = None,
        call_id: str | None = None,
    ) -> Part:
        """Make a part that asks for one tool call; see :class:`ToolCall`."""
        call = ToolCall(tool_name, {} if args is None else args)
        if call_id is not None:
            call.call_id = call_id
        return cls("tool_call", call)

    @classmethod
    def tool_output(
        cls,
        call_id: str | None = None,
        result: Any = None,
        error: dict[str, Any] | None = None,
    ) -> Part:
        """Make a part that holds what a tool call came to; see :class:`ToolOutput`."""
        output = ToolOutput(result=result, error=error)
        if call_id is not None:
            output.call_id = call_id
        return cls("tool_output", output)

    @classmethod
    def infer(
        cls,
        prompt: str | None = None,
        user: str | None = None,
        output_schema: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Part:
        """Make a part that asks the agent's language model; only what is given is sent."""
        wanted = {
            "prompt": prompt,
            "user": user,
            "output_schema": output_schema,
            "metadata": metadata,
        }
        return cls("infer", only_given(wanted))

    @classmethod
    def infer_output(cls, content: str | dict[str, Any]) -> Part:
        """Make a part that holds the answer of a language model."""
        return cls("infer_output", content)

    @classmethod
    def error(cls, code: str, message: str, *, retryable: bool = False) -> Part:
        """Make a part that reports an error; the agent fails a task that ends with it."""
        return cls("error", {"code": code, "message": message, "retryable": retryable})

    @classmethod
    def warning(cls, content: Any) -> Part:
        """Make a part that warns, by text or by an object."""
        return cls("warning", content)

    @classmethod
    def status(cls, state: str, message: str | None = None) -> Part:
        """Make a part that reports a state; ``input-required`` makes the agent ask for input."""
        return cls("status", {"state": state, "message": message})

    @classmethod
    def route(
        cls,
        route_key: str,
        *,
        reason: str | None = None,
        confidence: float | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Part:
        """Make a part that tells a router where to go on; see :class:`RouteDecision`."""
        return cls("route", RouteDecision(route_key, reason, confidence, metadata or {}))

    @classmethod
    def decision(
        cls,
        route_key: str,
        *,
        reason: str | None = None,
        confidence: float | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Part:
        """Make a part that holds a decision; the content is that of :meth:`route`."""
        return cls("decision", RouteDecision(route_key, reason, confidence, metadata or {}))

    @classmethod
    def bytes(
        cls,
        data: builtins.bytes | bytearray | memoryview,
        media_type: str = ANY_BYTES,
        *,
        filename: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Part:
        """Make a part of bytes, carried as base64; A2A peers get them as a raw part.

        Source:
            wire/protolink.md 14, Part: ``{raw, filename, mediaType, metadata}``.
        """
        return cls("bytes", encoded(data, media_type, filename, metadata))

    @classmethod
    def file(
        cls,
        path: str | os.PathLike[str],
        media_type: str | None = None,
        *,
        metadata: dict[str, Any] | None = None,
    ) -> Part:
        """Make a part of a local file: its bytes are read now, its name goes along.

        Args:
            path: The file.
            media_type: What it holds; guessed from the name if not given.
            metadata: Anything else.

        Raises:
            OSError: The file cannot be read.
        """
        import mimetypes
        import pathlib

        file = pathlib.Path(path)
        if media_type is None:
            media_type = mimetypes.guess_type(file.name)[0] or ANY_BYTES
        return cls("file", encoded(file.read_bytes(), media_type, file.name, metadata))

    @classmethod
    def uri(
        cls,
        url: str,
        media_type: str | None = None,
        filename: str | None = None,
        *,
        metadata: dict[str, Any] | None = None,
    ) -> Part:
        """Make a part that points to content elsewhere; nothing is fetched."""
        members = {"url": url, "filename": filename, "mediaType": media_type, "metadata": metadata}
        return cls("uri", only_given(members))

    # ---- reading ----

    def as_tool_call(self) -> ToolCall:
        """Return the content as a tool call.

        Raises:
            ValueError: The part is of another type, or its object names no tool.
            TypeError: The content is no object.
        """
        call: ToolCall = self._as(ToolCall)
        return call

    def as_tool_output(self) -> ToolOutput:
        """Return the content as the output of a tool call; errors as in :meth:`as_tool_call`."""
        output: ToolOutput = self._as(ToolOutput)
        return output

    def as_route_decision(self) -> RouteDecision:
        """Return the content as a decision; errors as in :meth:`as_tool_call`."""
        decision: RouteDecision = self._as(RouteDecision)
        return decision

    def as_bytes(self) -> builtins.bytes:
        """Return the bytes that a part of a file, of bytes or of a medium carries.

        Raises:
            ValueError: It carries none, such as a part made by :meth:`uri`, or no base64.
        """
        return decoded(self.type, self.content)

    def save(self, path: str | os.PathLike[str]) -> pathlib.Path:
        """Write the bytes of :meth:`as_bytes` to a file.

        Args:
            path: The file, which is replaced; or a directory, where the file gets the part's own
                ``filename`` without its folders. A name that a peer chose replaces nothing.

        Returns:
            The file that was written.

        Raises:
            ValueError: The part carries no bytes, or no file name is known.
            FileExistsError: The directory has a file of that name.
            OSError: It cannot be written.
        """
        import pathlib

        data = self.as_bytes()
        target = pathlib.Path(path)
        if not target.is_dir():
            target.write_bytes(data)
            return target
        target = target / file_name(self.content)
        with target.open("xb") as file:
            file.write(data)
        return target

    def _as(self, kind: builtins.type[Any]) -> Any:
        if self.CONTENT_CLASSES.get(self.type) is not kind:
            wanted = [word for word, of in self.CONTENT_CLASSES.items() if of is kind]
            raise ValueError(f"expected a part of type {' or '.join(wanted)}, got {self.type!r}")
        if isinstance(self.content, kind):
            return self.content
        if isinstance(self.content, Mapping):
            return kind.from_dict(self.content)
        raise TypeError(
            f"the content of a {self.type} part is a {type_name(self.content)}, not an object"
        )

    def __repr__(self) -> str:
        return f"Part(type={self.type!r}, content={brief(self.content)})"


_new = object.__new__


def read_parts(values: Any) -> list[Part]:
    """Read a list of parts: the usual ones at once, others through the converter.

    An object is made without its ``__init__``: per part that is half of the whole work.

    Raises:
        TypeError, ValueError, ...: Whatever a wrong shape leads to. The caller reads the whole
            again with :func:`structure`, which says what is wrong and where.
    """
    if type(values) is not list:
        if values is None:
            return []
        raise TypeError
    parts: list[Part] = []
    append = parts.append
    for value in values:
        kind = value["type"]
        if len(value) != 2 or type(kind) is not str:
            append(structure(Part, value))
            continue
        content = value["content"]
        if kind in USUAL_CONTENT and type(content) is dict:
            content = USUAL_CONTENT[kind](content)
        part = _new(Part)
        part.type = kind
        part.content = content
        part._extra = None
        append(part)
    return parts


def write_parts(parts: list[Part]) -> list[dict[str, Any]]:
    """Return the JSON forms of parts.

    Raises:
        TypeError, ValueError, ...: Some content has no JSON form. The caller converts the whole
            again with :func:`jsonable`, which says where.
    """
    values: list[dict[str, Any]] = []
    for part in parts:
        kind, content = part.type, part.content
        if type(kind) is str and not part._extra:
            if type(content) is not str:
                content = jsonable(content)
            values.append({"type": kind, "content": content})
        else:
            values.append(jsonable(part))
    return values


def text_of(parts: list[Part]) -> str:
    """Return the text of parts of text, joined with nothing between."""
    return "".join(
        part.content for part in parts if part.type == "text" and isinstance(part.content, str)
    )


def type_name(value: Any) -> str:
    """Return the name of a value's class: inside :class:`Part`, ``type`` is the field."""
    return type(value).__name__
