"""TaskCancellationRequest: asks a peer to stop a task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from protolink_sync.models._members import JSONObject
from protolink_sync.models._readers import identifier, nullable_text

__all__ = ["TaskCancellationRequest"]


@attrs.frozen(repr=False, eq=False)
class TaskCancellationRequest(JSONObject):
    """Ask a peer to stop a task.

    Args:
        id: The task. ``task_id`` is read too, and written back.
        reason: Why. It travels as ``metadata["reason"]``, unless there is one already.
        metadata: Anything else; the mapping is copied.
        extra: Members this library does not know; written back as they are.

    Raises:
        ValueError: The id is empty or blank.

    Source:
        wire/protolink.md 14, "Cancel".

    >>> TaskCancellationRequest("task-1", "too slow").to_dict()
    {'id': 'task-1', 'metadata': {'reason': 'too slow'}}
    """

    id: str = attrs.field(metadata={"read": identifier})
    reason: str | None = attrs.field(default=None, metadata={"read": nullable_text})
    metadata: dict[str, Any] = attrs.field(factory=dict, converter=dict)
    extra: dict[str, Any] = attrs.field(factory=dict, kw_only=True)

    def __attrs_post_init__(self) -> None:
        identity: Any = self.id
        if identity is None or not str(identity).strip():
            raise ValueError("the id of the task to cancel is empty")
        if self.reason is not None:
            self.metadata.setdefault("reason", self.reason)

    @classmethod
    def _before_reading(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        read = dict(data)
        if not read.get("id") and read.get("task_id"):
            read["id"] = read["task_id"]
        metadata = read.get("metadata")
        if read.get("reason") is None and isinstance(metadata, Mapping):
            given = metadata.get("reason")
            read["reason"] = given if isinstance(given, str) else None
        return read

    def _after_reading(self, data: Mapping[str, Any]) -> None:
        # Where it was read beside the metadata, it is written there too.
        if "reason" in data:
            self.extra["reason"] = data["reason"]

    def _json_members(self) -> dict[str, Any]:
        members = {"id": self.id, "metadata": self.metadata}
        return {**members, **self.extra, **members}
