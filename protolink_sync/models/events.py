"""RunEvent, the envelope of whatever happens in a run, and a sink that collects them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from protolink_sync.models._ids import new_id
from protolink_sync.models._members import LazyExtra, brief
from protolink_sync.models._readers import identifier, nullable_text
from protolink_sync.models._run_events import (
    ids_of,
    optional_text,
    promoted,
    run_type,
    severity_of,
    summary_of,
)
from protolink_sync.models._time import utc_now

__all__ = ["InMemoryEventSink", "RunEvent"]

RUN_EVENT_VERSION = "1.0"

_READ_ID = {"read": identifier}
_READ_TEXT = {"read": nullable_text}


@attrs.define(repr=False, eq=False)
class RunEvent(LazyExtra):
    """Something that happened in a run, in one form for every kind of event.

    Args:
        type: What happened, such as ``task.status`` or ``llm.stream``.
        run_id: The run; so for the next ids. A peer's may be any JSON scalar.
        task_id: The task.
        agent_name: The agent that tells.
        sequence: Number of the event in its sink.
        step: Step of the inference.
        span_id: Span that it belongs to.
        parent_span_id: Span around that.
        action_id: Action that it belongs to.
        parent_action_id: Action around that.
        delegation_id: Delegation that it belongs to.
        severity: ``info``, ``warning`` or ``error``.
        summary: One line for people.
        payload: All of what happened.
        final: It is the last one of the run.
        metadata: Anything about the envelope.
        event_id: Identifier, made if not given.
        version: Version of the envelope.
        timestamp: When it happened, as ISO 8601 text.
        extra: Members this library does not know; written back as they are.

    Source:
        wire/protolink.md 16; the order is that of 0.8.3.
    """

    type: str = attrs.field(default="run.event", metadata=_READ_TEXT)
    run_id: str | None = attrs.field(default=None, metadata=_READ_ID)
    task_id: str | None = attrs.field(default=None, metadata=_READ_ID)
    agent_name: str | None = None
    sequence: int | None = None
    step: int | None = None
    span_id: str | None = attrs.field(default=None, metadata=_READ_ID)
    parent_span_id: str | None = attrs.field(default=None, metadata=_READ_ID)
    action_id: str | None = attrs.field(default=None, metadata=_READ_ID)
    parent_action_id: str | None = attrs.field(default=None, metadata=_READ_ID)
    delegation_id: str | None = attrs.field(default=None, metadata=_READ_ID)
    severity: str = attrs.field(default="info", metadata=_READ_TEXT)
    summary: str | None = None
    payload: dict[str, Any] = attrs.field(factory=dict)
    final: bool = False
    metadata: dict[str, Any] = attrs.field(factory=dict)
    event_id: str = attrs.field(factory=new_id, metadata=_READ_ID)
    version: str = attrs.field(default=RUN_EVENT_VERSION, metadata=_READ_TEXT)
    timestamp: str = attrs.field(factory=utc_now, metadata=_READ_TEXT)

    @classmethod
    def from_task_event(
        cls, event: Any, *, context: Any = None, sequence: int | None = None
    ) -> RunEvent:
        """Make a run event of an event of a task stream.

        Args:
            event: The event: a mapping, an object with ``to_dict``, or any other value, which
                becomes the ``content`` of a ``run.event``. An envelope is taken as it is.
            context: Run context to take run and agent from: a mapping, or an object with
                ``to_dict``. Without it they are looked for in the event.
            sequence: Number to give to the event.

        Raises:
            ModelError: The event is an envelope and has not the form of one.
            TypeError: The context is neither.

        Source:
            wire/protolink.md 16, ``RunEvent.from_task_event``.

        >>> RunEvent.from_task_event({"type": "task_progress", "progress": 40}).summary
        'Task progress 40%'
        """
        run = _as_mapping(context)
        if run is None and context is not None:
            raise TypeError(f"a run context is a mapping, not {type(context).__name__}")
        data = _as_mapping(event)
        if data is None:
            data = {"type": "run.event", "content": event}
        if "version" in data and "payload" in data and "event_id" in data:
            envelope = cls.from_dict(data)
            if sequence is not None:
                envelope.sequence = sequence
            return envelope
        kind = str(data.get("type") or "run.event")
        payload = promoted(data)
        run = run or _context_in(data)
        step = data.get("step")
        return cls(
            type=run_type(kind, data),
            run_id=_run_id(run, data),
            task_id=optional_text(data.get("task_id")),
            agent_name=_agent_name(run, data),
            sequence=sequence,
            step=step if type(step) is int else None,
            severity=severity_of(kind, data),
            summary=summary_of(kind, data),
            payload=payload,
            final=bool(data.get("final", False)),
            metadata={"source_type": kind},
            timestamp=str(data.get("timestamp") or utc_now()),
            **ids_of(payload),
        )

    def __repr__(self) -> str:
        return (
            f"RunEvent(type={self.type!r}, sequence={self.sequence}, summary={brief(self.summary)})"
        )


class InMemoryEventSink:
    """Collect run events in a list and number them.

    Nothing here waits: where ProtoLink writes ``await sink.emit(event)``, leave the ``await`` out.

    Source:
        wire/protolink.md 16, "InMemoryEventSink".

    >>> sink = InMemoryEventSink()
    >>> sink.emit_task_event({"type": "task_progress", "progress": 40}).sequence
    1
    """

    def __init__(self) -> None:
        self._events: list[RunEvent] = []
        self._next = 1

    @property
    def events(self) -> tuple[RunEvent, ...]:
        """The events so far."""
        return tuple(self._events)

    def emit(self, event: RunEvent) -> None:
        """Take an event. Without a number it gets the next one; a number n makes n + 1 next."""
        if event.sequence is None:
            event.sequence = self._next
        self._next = max(self._next, event.sequence + 1)
        self._events.append(event)

    def emit_task_event(self, event: Any, *, context: Any = None) -> RunEvent:
        """Make a run event of an event of a task stream, take it and return it.

        Args:
            event: As for :meth:`RunEvent.from_task_event`.
            context: As there.
        """
        run_event = RunEvent.from_task_event(event, context=context)
        self.emit(run_event)
        return run_event

    def to_list(self) -> list[dict[str, Any]]:
        """Return the events in their JSON form."""
        return [event.to_dict() for event in self._events]

    def clear(self) -> None:
        """Forget the events and begin with 1 again."""
        self._events.clear()
        self._next = 1


def _as_mapping(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, Mapping):
        return value
    to_dict = getattr(value, "to_dict", None)
    return to_dict() if callable(to_dict) else None


def _context_in(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Find the run context in the task that a final event carries."""
    value: Any = event
    for name in ("metadata", "task", "metadata", "run_context"):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value if isinstance(value, Mapping) else None


def _run_id(run: Mapping[str, Any] | None, event: Mapping[str, Any]) -> str | None:
    if run is not None and run.get("run_id") is not None:
        return str(run["run_id"])
    metadata = event.get("metadata")
    return optional_text(metadata.get("run_id")) if isinstance(metadata, Mapping) else None


def _agent_name(run: Mapping[str, Any] | None, event: Mapping[str, Any]) -> str | None:
    metadata = event.get("metadata")
    told = event.get("agent_name")
    if not told and isinstance(metadata, Mapping):
        told = metadata.get("agent")
    if told:
        return str(told)
    chain = run.get("agent_chain") if run is not None else None
    return str(chain[-1]) if isinstance(chain, (list, tuple)) and chain else None
