"""Bytes inside a part: base64 there and back, and names of files that peers chose."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from protolink_sync.errors import ModelError

__all__ = ["ANY_BYTES", "decoded", "encoded", "file_name", "only_given"]

ANY_BYTES = "application/octet-stream"

# Peers also send the URL-safe alphabet, lines of 76 and no padding.
_STANDARD_ALPHABET = str.maketrans("-_", "+/", " \r\n\t")


def encoded(
    data: Any, media_type: str, filename: str | None, metadata: dict[str, Any] | None
) -> dict[str, Any]:
    """Return bytes as the content of a part.

    Raises:
        TypeError: ``data`` is not bytes.

    Source:
        wire/protolink.md 14, Part: ``{raw, filename, mediaType, metadata}``.
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"expected bytes, got {type(data).__name__}; for text use Part.text")
    raw = base64.b64encode(data).decode("ascii")
    return only_given(
        {"raw": raw, "filename": filename, "mediaType": media_type, "metadata": metadata}
    )


def decoded(kind: str, content: Any) -> bytes:
    """Return the bytes in the content of a part of that type.

    Raises:
        ValueError: There are none.
        ModelError: There is text that is no base64.
    """
    members = content if isinstance(content, Mapping) else {}
    raw = members.get("raw")
    if not isinstance(raw, str):
        elsewhere = "; its 'url' is not fetched" if "url" in members else ""
        raise ValueError(f"a part of type {kind!r} without 'raw' carries no bytes{elsewhere}")
    raw = raw.translate(_STANDARD_ALPHABET)
    try:
        return base64.b64decode(raw + "=" * (-len(raw) % 4), validate=True)
    except ValueError as exc:
        raise ModelError(f"not base64: {exc} @ $.content.raw", path="$.content.raw") from exc


def file_name(content: Mapping[str, Any]) -> str:
    """Return the file name in the content of a part, without any folders.

    Raises:
        ValueError: There is none that could be used.
    """
    import pathlib

    name = content.get("filename")
    # A peer on any system chose it. The Windows rules know both separators and the drives, so
    # that on no system the name leads out of the directory.
    name = pathlib.PureWindowsPath(name).name if isinstance(name, str) else ""
    if name in ("", "..") or "\0" in name:
        raise ValueError("the part has no file name: give the path of a file, not a directory")
    return name


def only_given(members: dict[str, Any]) -> dict[str, Any]:
    """Leave out the members that were not given."""
    return {name: value for name, value in members.items() if value is not None}
