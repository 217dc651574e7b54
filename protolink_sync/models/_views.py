"""What a notebook shows of the models."""

from __future__ import annotations

import json
from typing import Any

from protolink_sync._display import View
from protolink_sync.models._json import jsonable
from protolink_sync.models.card import AgentCard
from protolink_sync.models.compaction import HistoryCompactionResult
from protolink_sync.models.part import Part
from protolink_sync.models.state import StateOperationResult
from protolink_sync.models.task import Task

__all__ = ["view_of"]


def view_of(value: Any) -> View:
    """Return what is shown of a model."""
    if isinstance(value, Task):
        return _task(value)
    if isinstance(value, AgentCard):
        return _card(value)
    if isinstance(value, StateOperationResult):
        return _state(value)
    return _history(value)


def _task(task: Task) -> View:
    sections = [
        (str(message.role), _parts(message.parts)) for message in task.messages if message.parts
    ]
    sections += [(f"artifact {artifact.id}", _parts(artifact.parts)) for artifact in task.artifacts]
    return View(
        f"Task: {task.state_text}", [("id", task.id), ("created", task.created_at)], sections
    )


def _parts(parts: list[Part]) -> str:
    return "\n".join(_content(part) for part in parts)


def _content(part: Part) -> str:
    if isinstance(part.content, str):
        return part.content if part.type == "text" else f"[{part.type}] {part.content}"
    if isinstance(part.content, dict) and part.content.keys() == {"prompt"}:
        return f"[{part.type}] {part.content['prompt']}"
    told = json.dumps(jsonable(part.content), ensure_ascii=False, indent=1)
    return f"[{part.type}] {told}"


def _card(card: AgentCard) -> View:
    return View(
        card.name,
        [
            ("description", card.description),
            ("url", card.url),
            ("version", card.version),
            ("protocol", card.protocol_version),
            ("transport", card.transport),
            ("capabilities", card.capabilities.enabled()),
            ("tags", card.tags),
        ],
        columns=("skill", "description") if card.skills else (),
        rows=[(skill.id, skill.description) for skill in card.skills],
    )


def _state(result: StateOperationResult) -> View:
    return View(
        f"State: {result.operation}",
        [
            ("session", result.session_id),
            ("missing", list(result.missing)),
            (
                "errors",
                [f"{error.get('store')}: {error.get('message')}" for error in result.errors],
            ),
        ],
        columns=("store", "kept", "items", "messages", "done"),
        rows=[
            (
                store.name,
                store.enabled,
                store.item_count,
                store.message_count,
                "cleared" if store.cleared else "compacted" if store.compacted else "",
            )
            for store in result.stores
        ],
    )


def _history(result: HistoryCompactionResult) -> View:
    return View(
        f"History: {result.strategy}",
        columns=("", "before", "after"),
        rows=[
            ("messages", result.before_messages, result.after_messages),
            ("tokens", result.before_tokens, result.after_tokens),
        ],
        facts=[("summary", result.summary_created)],
    )
