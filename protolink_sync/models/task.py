"""Task: the unit of work that agents exchange, with its lifecycle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

from protolink_sync.errors import TaskExecutionError
from protolink_sync.models._converter import structure
from protolink_sync.models._ids import new_id
from protolink_sync.models._json import ODD, jsonable, plain
from protolink_sync.models._members import LazyExtra, brief
from protolink_sync.models._readers import identifier, json_object, nullable_text, text
from protolink_sync.models._run_context import run_metadata
from protolink_sync.models._showing import Shown
from protolink_sync.models._time import instant, utc_now
from protolink_sync.models.artifact import Artifact, read_artifacts, write_artifacts
from protolink_sync.models.message import Message, read_messages, write_messages
from protolink_sync.models.part import Part
from protolink_sync.models.task_state import (
    NEXT_STATES,
    STATE_BY_TEXT,
    TERMINAL_STATES,
    TaskState,
    as_state,
    read_state,
)

__all__ = ["Task"]

_ANSWERING_ROLES = ("agent", "assistant")
_NO_OUTPUT = object()


def _set_state(task: Task, attribute: attrs.Attribute[TaskState], value: TaskState) -> TaskState:
    """Forget the text of a peer's state together with that state."""
    state = as_state(value)
    task._state_text = None
    return state


@attrs.define(repr=False, eq=False)
class Task(Shown, LazyExtra):
    """A unit of work: what was asked, what was answered, where it stands.

    Args:
        id: Identifier, made if not given. A peer's may be any JSON scalar; it is kept as it is.
        state: Where the task stands, or its text. The constructor and assignments take any state;
            :meth:`update_state` keeps to the lifecycle.
        messages: What was said, in order.
        artifacts: What came of it, in order.
        metadata: Anything about it; ``state_history``, ``error`` and ``cancel_reason`` are
            written by the methods of the lifecycle.
        flow_state: What a flow of several agents keeps.
        created_at: When it was made, as ISO 8601 text. A peer's text is kept as it is, null too.
        state_text: The text of a state that this library does not know; only with
            ``TaskState.UNKNOWN``.
        extra: Members this library does not know; written back as they are.

    Source:
        ProtoLink, Models reference, "Task"; wire/protolink.md 14; design.md 7.

    >>> task = Task.create(Message.user("What's the weather?")).complete("Sunny.")
    >>> task.state, task.get_output(), [s["new_state"] for s in task.metadata["state_history"]]
    (<TaskState.COMPLETED: 'completed'>, 'Sunny.', ['working', 'completed'])
    """

    id: str = attrs.field(factory=new_id, metadata={"read": identifier})
    state: TaskState = attrs.field(
        default=TaskState.SUBMITTED,
        converter=as_state,
        on_setattr=_set_state,
        metadata={"read": read_state},
    )
    messages: list[Message] = attrs.field(factory=list)
    artifacts: list[Artifact] = attrs.field(factory=list)
    metadata: dict[str, Any] = attrs.field(factory=dict)
    flow_state: dict[str, Any] = attrs.field(factory=dict)
    created_at: str = attrs.field(factory=utc_now, metadata={"read": nullable_text})
    _state_text: str | None = attrs.field(default=None, kw_only=True)
    # What get_last_item() found, and how many messages and artifacts there were then.
    _last: Message | Artifact | None = attrs.field(default=None, init=False, eq=False)
    _counted: tuple[int, int] | None = attrs.field(default=None, init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        if self._state_text is not None and self.state is not TaskState.UNKNOWN:
            raise ValueError("state_text is for TaskState.UNKNOWN; other states have their own")

    # ---- JSON ----

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Task:
        """Read a task from its JSON form.

        Every member may be missing. The state is taken as it is, whatever came before.

        Args:
            data: The decoded JSON object. Contents of parts are shared with it, not copied.

        Raises:
            ModelError: It has not the form of a task; ``path`` says where.
        """
        if cls is Task:
            try:
                return _read_task(data)
            except ODD:
                pass
        return structure(cls, data)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form: always the seven documented members, and ``extra``.

        Raises:
            TypeError: Some content has no JSON form, such as ``bytes``; the message says where.
            ModelError: It holds NaN, an infinity, or itself.
        """
        if type(self) is Task:
            try:
                return _write_task(self)
            except ODD:
                pass
        return super().to_dict()

    def _json_members(self) -> dict[str, Any]:
        return {**super()._json_members(), "state": self.state_text}

    def _after_reading(self, data: Mapping[str, Any]) -> None:
        if self.state is TaskState.UNKNOWN and data["state"] != TaskState.UNKNOWN.value:
            self._state_text = data["state"]

    # ---- making ----

    @classmethod
    def create(
        cls,
        message: Message | str,
        *,
        session_id: str | None = None,
        budget: Any = None,
        context: Any = None,
    ) -> Task:
        """Make a task from its first message.

        Args:
            message: The message, or the text of a user's message. Text is only said: to ask the
                agent's language model use :meth:`create_infer`.
            session_id: Conversation that the task belongs to.
            budget: Limits of the run: a mapping, or an object with ``to_dict``.
            context: Run context: a mapping, or an object with ``to_dict``; it is copied.
        """
        if isinstance(message, str):
            message = Message.user(message)
        if not isinstance(message, Message):
            raise TypeError(f"a task begins with a Message or text, not {type(message).__name__}")
        task = cls(messages=[message])
        task.metadata = run_metadata(task.id, session_id=session_id, budget=budget, context=context)
        return task

    @classmethod
    def create_infer(
        cls,
        prompt: str | None = None,
        user: str | None = None,
        output_schema: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        *,
        session_id: str | None = None,
        budget: Any = None,
        context: Any = None,
    ) -> Task:
        """Make a task that asks the agent's language model.

        Args:
            prompt: What the model is to do.
            user: Who asks, or what the user said.
            output_schema: JSON Schema of the answer.
            metadata: Metadata of the request, not of the task.
            session_id: As in :meth:`create`; so are ``budget`` and ``context``.
            budget: See :meth:`create`.
            context: See :meth:`create`.
        """
        message = Message.infer(prompt, user, output_schema, metadata)
        return cls.create(message, session_id=session_id, budget=budget, context=context)

    @classmethod
    def create_tool_call(
        cls,
        tool_name: str,
        args: dict[str, Any] | None = None,
        *,
        call_id: str | None = None,
        session_id: str | None = None,
        budget: Any = None,
        context: Any = None,
    ) -> Task:
        """Make a task that asks for one tool call; see :meth:`create` for the last three."""
        message = Message.tool_call(tool_name, args, call_id)
        return cls.create(message, session_id=session_id, budget=budget, context=context)

    # ---- content ----

    def add_message(self, message: Message) -> Task:
        """Add a message and return the task."""
        self.messages.append(message)
        return self._added(message)

    def add_artifact(self, artifact: Artifact) -> Task:
        """Add an artifact and return the task."""
        self.artifacts.append(artifact)
        return self._added(artifact)

    def get_last_item(self) -> Message | Artifact | None:
        """Return the latest message or artifact, or None if there is neither.

        It is what was added last, by the methods or to one of the lists. Of a task that was read
        or built from lists it is the last message or the last artifact, whichever has the later
        timestamp: moments are compared, not texts, and one that is missing or unreadable counts
        as the oldest. At the same moment it is the message. The answer is kept, so asking again
        takes no time.
        """
        counted = len(self.messages), len(self.artifacts)
        last = self._last
        if counted != self._counted or not self._is_at_an_end(last):
            self._last = last = self._find_last(counted)
            self._counted = counted
        return last

    def get_last_part(self) -> Part | None:
        """Return the last part of the latest item, or None; earlier items are not searched."""
        item = self.get_last_item()
        return item.parts[-1] if item is not None and item.parts else None

    def get_last_part_content(self) -> Any:
        """Return the content of :meth:`get_last_part`, or None: of a tool part the object."""
        part = self.get_last_part()
        return None if part is None else part.content

    def get_output(self, default: Any = None) -> Any:
        """Return the answer of the task, whatever its state.

        It is the last part of the latest item, and only that: an ``infer_output``; the result of
        a ``tool_output`` without error; a ``text`` or ``json`` of an agent, an assistant or an
        artifact of kind ``result``. Falsy answers are returned as they are.

        Args:
            default: What to return when that part is no answer.
        """
        item, part = self.get_last_item(), self.get_last_part()
        if item is None or part is None:
            return default
        if isinstance(item, Artifact) and item.kind not in ("result", None):
            return default
        if part.type == "infer_output":
            return part.content
        if part.type == "tool_output":
            output = part.as_tool_output()
            return output.result if output.error is None else default
        if part.type in ("text", "json") and (
            isinstance(item, Artifact) or item.role in _ANSWERING_ROLES
        ):
            return part.content
        return default

    @property
    def text(self) -> str:
        """The answer as text: that of :meth:`get_output`, JSON if it is none.

        Without an answer there, the text of the newest message of an agent or assistant; else "".
        """
        output = self.get_output(_NO_OUTPUT)
        if output is _NO_OUTPUT:
            spoken = (m.text for m in reversed(self.messages) if m.role in _ANSWERING_ROLES)
            return next(spoken, "")
        if output is None or isinstance(output, str):
            return output or ""
        return json.dumps(jsonable(output), ensure_ascii=False)

    # ---- lifecycle ----

    @property
    def state_text(self) -> str:
        """The state as it stands on the wire: the peer's own word if the state is unknown."""
        return self.state._value_ if self._state_text is None else self._state_text

    @property
    def is_terminal(self) -> bool:
        """True if the task is completed, canceled or failed."""
        return self.state in TERMINAL_STATES

    def raise_for_status(self) -> Task:
        """Return the task, unless it failed or was canceled.

        A state that is none of ProtoLink's (:attr:`state_text` has the word, say ``rejected``) is
        taken for a failure: nobody here knows that it is none.

        Raises:
            TaskExecutionError: It did; the error's ``task`` is this one.
        """
        is_known = self._state_text is None
        if is_known and self.state not in (TaskState.FAILED, TaskState.CANCELED):
            return self
        key = "cancel_reason" if self.state is TaskState.CANCELED else "error"
        reason = self.metadata.get(key)
        told = f": {reason}" if reason else ""
        raise TaskExecutionError(f"Task '{self.id}' {self.state_text}{told}", task=self)

    def update_state(self, state: TaskState | str) -> Task:
        """Move the task to another state and note it in ``metadata["state_history"]``.

        The state it is in already changes nothing and is not noted.

        Args:
            state: The new state, or its text.

        Raises:
            ValueError: The lifecycle does not lead there, or there is no such state.
            TypeError: It is neither state nor text.

        Source:
            wire/protolink.md 14, "Measured transitions".
        """
        new, old, old_text = as_state(state), self.state, self.state_text
        if new is old:
            return self
        if new not in NEXT_STATES[old]:
            raise ValueError(f"Invalid task state transition: {old_text} -> {new.value}")
        self.state = new
        history = self.metadata.get("state_history", [])
        # A peer's metadata may hold anything under this key; it is not overwritten.
        if isinstance(history, list):
            entry = {"previous_state": old_text, "new_state": new.value, "timestamp": utc_now()}
            # A new list: the old one may belong to the dictionary the task was read from.
            self.metadata["state_history"] = [*history, entry]
        return self

    def begin(self) -> Task:
        """Mark the task as being worked on and return it.

        Raises:
            ValueError: The task is completed, canceled or failed.
        """
        return self.update_state(TaskState.WORKING)

    def require_input(self, message: Message | None = None) -> Task:
        """Mark the task as waiting for input, add what is asked, and return it.

        Raises:
            ValueError: The task is completed, canceled or failed.
        """
        self._begin_if_idle().update_state(TaskState.INPUT_REQUIRED)
        return self if message is None else self.add_message(message)

    def complete(self, response_text: str) -> Task:
        """Mark the task as completed, add the answer as an agent's message, and return it.

        Raises:
            ValueError: The task is canceled or failed.
        """
        self._begin_if_idle().update_state(TaskState.COMPLETED)
        return self.add_message(Message.agent(response_text))

    def fail(self, error_message: str) -> Task:
        """Mark the task as failed, keep why in ``metadata["error"]``, and return it.

        Raises:
            ValueError: The task is completed or canceled.
        """
        self.update_state(TaskState.FAILED)
        self.metadata["error"] = error_message
        return self

    def cancel(self, reason: str | None = None) -> Task:
        """Mark this object as canceled, keep why in ``metadata["cancel_reason"]``; return it.

        No peer is told: to stop the work there use ``client.cancel_task``.

        Raises:
            ValueError: The task is completed or failed.
        """
        self.update_state(TaskState.CANCELED)
        if reason:
            self.metadata["cancel_reason"] = reason
        return self

    def _begin_if_idle(self) -> Task:
        if self.state in (TaskState.SUBMITTED, TaskState.INPUT_REQUIRED):
            self.begin()
        return self

    def _added(self, item: Message | Artifact) -> Task:
        self._last = item
        self._counted = len(self.messages), len(self.artifacts)
        return self

    def _is_at_an_end(self, item: Message | Artifact | None) -> bool:
        """Tell whether a remembered item still is the last of a list: one may be replaced."""
        if self.messages and self.messages[-1] is item:
            return True
        if self.artifacts and self.artifacts[-1] is item:
            return True
        return item is None and not self.messages and not self.artifacts

    def _find_last(self, counted: tuple[int, int]) -> Message | Artifact | None:
        message = self.messages[-1] if self.messages else None
        artifact = self.artifacts[-1] if self.artifacts else None
        if message is None or artifact is None:
            return message or artifact
        if self._counted is not None:
            # Appended to one list directly since the last time: that is later than all before.
            more_messages = counted[0] > self._counted[0]
            more_artifacts = counted[1] > self._counted[1]
            if more_messages != more_artifacts:
                return message if more_messages else artifact
        said, made = instant(message.timestamp), instant(artifact.timestamp)
        if made is None:
            return message
        return artifact if said is None or made > said else message

    def __repr__(self) -> str:
        return (
            f"Task(id={brief(self.id)}, state={self.state_text!r}, "
            f"messages={len(self.messages)}, artifacts={len(self.artifacts)})"
        )


_TASK_MEMBERS = frozenset(
    {"id", "state", "messages", "artifacts", "metadata", "flow_state", "created_at"}
)

_new = object.__new__

# What sets a slot: a task that is read has nothing to convert, and no earlier state to forget.
_put_id, _put_state, _put_messages, _put_artifacts, _put_metadata, _put_flow_state = (
    getattr(Task, name).__set__
    for name in ("id", "state", "messages", "artifacts", "metadata", "flow_state")
)
_put_created_at, _put_state_text, _put_last, _put_counted, _put_extra = (
    getattr(Task, name).__set__
    for name in ("created_at", "_state_text", "_last", "_counted", "_extra")
)


def _read_task(data: Any) -> Task:
    """Read a task whose members have their usual types; anything else raises one of ``ODD``."""
    if type(data) is not dict:
        raise TypeError
    get = data.get
    word = get("state", "submitted")
    state = STATE_BY_TEXT.get(word)
    identity = data["id"] if "id" in data else new_id()
    metadata, flow_state = get("metadata"), get("flow_state")
    moment = data["created_at"] if "created_at" in data else utc_now()
    is_usual = _TASK_MEMBERS.issuperset(data)
    task = _new(Task)
    _put_id(task, identity if type(identity) is str else identifier(identity))
    _put_state(task, TaskState.UNKNOWN if state is None else state)
    _put_messages(task, read_messages(get("messages")))
    _put_artifacts(task, read_artifacts(get("artifacts")))
    _put_metadata(task, dict(metadata) if type(metadata) is dict else json_object(metadata))
    _put_flow_state(task, dict(flow_state) if type(flow_state) is dict else json_object(flow_state))
    _put_created_at(task, moment if type(moment) is str else nullable_text(moment))
    _put_state_text(task, text(word) if state is None else None)
    _put_last(task, None)
    _put_counted(task, None)
    _put_extra(task, None if is_usual else {k: data[k] for k in data if k not in _TASK_MEMBERS})
    return task


def _write_task(task: Task) -> dict[str, Any]:
    identity, moment, word = task.id, task.created_at, task._state_text
    try:
        metadata, flow_state = plain(task.metadata), plain(task.flow_state)
    except (ValueError, RecursionError):
        metadata, flow_state = jsonable(task.metadata), jsonable(task.flow_state)
    value = {
        "id": identity if type(identity) is str else jsonable(identity),
        "state": task.state._value_ if word is None else word,
        "messages": write_messages(task.messages),
        "artifacts": write_artifacts(task.artifacts),
        "metadata": metadata,
        "flow_state": flow_state,
        "created_at": moment if type(moment) is str else jsonable(moment),
    }
    if task._extra:
        for name, item in task._extra.items():
            value.setdefault(name, jsonable(item))
    return value
