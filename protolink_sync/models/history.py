"""ConversationHistory: the conversation with a language model."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from protolink_sync.models.llm import LLMMessage
from protolink_sync.types import LLMMessageRole

__all__ = ["ConversationHistory"]


class ConversationHistory:
    """The messages of one conversation, whoever provides the model.

    Args:
        system_prompt: Message of the system to begin with; None or "" adds none.

    Source:
        ProtoLink, Models reference, "ConversationHistory"; wire/protolink.md 14.

    >>> history = ConversationHistory("Be brief.")
    >>> history.add_user("Hello")
    >>> history.messages
    [{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': 'Hello'}]
    """

    __slots__ = ("__weakref__", "_messages")

    def __init__(self, system_prompt: str | None = None) -> None:
        self._messages: deque[LLMMessage] = deque()
        if system_prompt:
            self.add_system(system_prompt)

    # ---- adding ----

    def add_system(self, content: str) -> None:
        """Add a message of the system."""
        self._messages.append(LLMMessage(LLMMessageRole.SYSTEM, content))

    def add_user(self, content: str, *, metadata: Mapping[str, Any] | None = None) -> None:
        """Add a message of the user."""
        message = LLMMessage(LLMMessageRole.USER, content, metadata=dict(metadata or {}))
        self._messages.append(message)

    def add_assistant(self, content: str, *, metadata: Mapping[str, Any] | None = None) -> None:
        """Add a message of the assistant."""
        message = LLMMessage(LLMMessageRole.ASSISTANT, content, metadata=dict(metadata or {}))
        self._messages.append(message)

    def add_tool(
        self, content: str, tool_name: str, *, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Add what a tool returned; the message has the tool's name as its ``name``."""
        self._messages.append(
            LLMMessage(LLMMessageRole.TOOL, content, tool_name, metadata=dict(metadata or {}))
        )

    def add_raw(self, message: Mapping[str, Any]) -> None:
        """Add a message from its JSON form; without ``content`` it is empty text.

        Raises:
            ModelError: It has no role, or not the form of a message.
        """
        self._messages.append(LLMMessage.from_dict({"content": "", **message}))

    # ---- reading ----

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages as most providers take them: ``role``, ``content`` and, if any, ``name``."""
        taken = []
        for message in self._messages:
            taken.append({"role": message.role.value, "content": message.content})
            if message.name:
                taken[-1]["name"] = message.name
        return taken

    def to_list(self) -> list[dict[str, Any]]:
        """Return the messages in their full JSON form."""
        return [message.to_dict() for message in self._messages]

    @classmethod
    def from_list(cls, messages_data: Iterable[Mapping[str, Any]]) -> ConversationHistory:
        """Make a history from messages in their JSON form.

        Raises:
            ModelError: One has not the form of a message.
        """
        history = cls()
        history.replace(messages_data)
        return history

    def copy(self) -> ConversationHistory:
        """Return a history of copied messages."""
        return copy.deepcopy(self)

    def __iter__(self) -> Iterator[LLMMessage]:
        return iter(self._messages)

    def __len__(self) -> int:
        return len(self._messages)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConversationHistory):
            return NotImplemented
        return self._messages == other._messages

    # A history changes.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ConversationHistory(messages={len(self._messages)})"

    # ---- changing ----

    def replace(self, messages_data: Iterable[Mapping[str, Any]]) -> None:
        """Replace all messages by these, given in their JSON form.

        Raises:
            ModelError: One has not the form of a message; nothing is replaced then.
        """
        self._messages = deque(LLMMessage.from_dict(message) for message in messages_data)

    def set_system(self, system_prompt: str) -> None:
        """Replace the message of the system at the beginning, or put one there."""
        if self._messages and self._messages[0].role is LLMMessageRole.SYSTEM:
            self._messages.popleft()
        self._messages.appendleft(LLMMessage(LLMMessageRole.SYSTEM, system_prompt))

    def reset_to_system(self, system_prompt: str) -> None:
        """Forget everything and begin with this message of the system."""
        self._messages.clear()
        self.add_system(system_prompt)

    def truncate(self, max_messages: int) -> None:
        """Keep the newest messages, and the message of the system at the beginning.

        Args:
            max_messages: How many to keep, that of the system included.

        Raises:
            ValueError: It is below 2.
        """
        if max_messages < 2:
            raise ValueError(f"max_messages is {max_messages}, must be at least 2")
        if len(self._messages) <= max_messages:
            return
        kept = [self._messages[0]] if self._messages[0].role is LLMMessageRole.SYSTEM else []
        while len(self._messages) > max_messages - len(kept):
            self._messages.popleft()
        self._messages.extendleft(kept)
