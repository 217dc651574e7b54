"""What a client of many agents remembers: how each is spoken to, and the ids they gave to tasks."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, MutableMapping
from typing import Any, Generic, TypeVar

import attrs

from protolink_sync.a2a.client._discovery import Target

__all__ = ["A2AMemory", "Choice", "RemoteTask"]

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@attrs.frozen
class Choice:
    """How an agent is spoken to.

    Args:
        target: Where and in which dialect of A2A; None for ProtoLink's own protocol.
    """

    target: Target | None = None


@attrs.frozen
class RemoteTask:
    """A task as the agent knows it that works on it.

    Args:
        target: Where the agent is called.
        task_id: The agent's id of the task.
        context_id: The agent's id of the conversation; empty if it gave none.
        task: The task as it came back last, with the caller's id, in its JSON form.
    """

    target: Target
    task_id: str
    context_id: str
    task: dict[str, Any]


class A2AMemory:
    """What an ``AgentClient(a2a=True)`` remembers of the agents it calls.

    That is how each agent is spoken to, for 300 s, and which id an agent gave to a task of ours,
    for 3,600 s; 1,024 of each, of which the oldest go first. Clients may share one memory, then a
    task that one of them sent can be cancelled through another.

    Args:
        clock: Returns seconds; what is remembered grows old by it.
        choices: Where the first kind is kept: ``agent's address -> (end, value)``.
        tasks: Where the second kind is kept: ``(agent's address, our id) -> (end, value)``. Both
            must iterate in the order in which keys were added, as a ``dict`` does. They are used
            by one thread at a time, others wait for it.

    Source:
        ProtoLink 0.8.3, "AgentClient", "automatic selection"; wire/a2a.md 19, "Remote map".

    >>> from protolink_sync.client import AgentClient
    >>> with AgentClient("http", a2a=True) as one, AgentClient("http", a2a=True) as other:
    ...     other.a2a_memory = one.a2a_memory
    """

    CHOICE_SECONDS = 300.0
    TASK_SECONDS = 3600.0
    MOST = 1024

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        choices: MutableMapping[str, tuple[float, Choice]] | None = None,
        tasks: MutableMapping[tuple[str, Any], tuple[float, RemoteTask]] | None = None,
    ) -> None:
        self._choices = _Bounded({} if choices is None else choices, self.MOST, clock)
        self._tasks = _Bounded({} if tasks is None else tasks, self.MOST, clock)

    def choice(self, agent_url: str) -> Choice | None:
        """Return how an agent is spoken to; None if that is not known, or too old."""
        return self._choices.get(agent_url)

    def keep_choice(self, agent_url: str, choice: Choice, max_age: float | None = None) -> None:
        """Remember how an agent is spoken to.

        Args:
            agent_url: Its address.
            choice: How.
            max_age: Seconds for which what it rests on is good; None if nobody said.
        """
        length = self.CHOICE_SECONDS if max_age is None else min(max_age, self.CHOICE_SECONDS)
        if length > 0:
            self._choices.put(agent_url, choice, length)

    def task(self, agent_url: str, task_id: Any) -> RemoteTask | None:
        """Return what an agent calls a task of ours; None if that is not known, or too old."""
        return self._tasks.get((agent_url, task_id))

    def keep_task(self, agent_url: str, task_id: Any, remote: RemoteTask) -> None:
        """Remember what an agent calls a task of ours."""
        self._tasks.put((agent_url, task_id), remote, self.TASK_SECONDS)

    def forget_task(self, agent_url: str, task_id: Any) -> None:
        """Forget it: a task of this id went to the agent in another way."""
        self._tasks.drop((agent_url, task_id))


class _Bounded(Generic[_Key, _Value]):
    """A few values, each for its time; any number of threads may share it.

    Args:
        store: Where they are.
        most: How many there may be.
        clock: Returns seconds.
    """

    def __init__(
        self,
        store: MutableMapping[_Key, tuple[float, _Value]],
        most: int,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._most = most
        self._clock = clock
        self._begin_process()

    def _begin_process(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()

    def _guard(self) -> threading.RLock:
        # The thread that held it when the process was forked did not come along.
        if self._pid != os.getpid():
            self._begin_process()
        return self._lock

    def get(self, key: _Key) -> _Value | None:
        """Return a value; None if it is not there, or its time is over."""
        with self._guard():
            end, value = self._store.get(key, (0.0, None))
            if value is not None and self._clock() >= end:
                del self._store[key]
                return None
            return value

    def put(self, key: _Key, value: _Value, length: float) -> None:
        """Keep a value for so many seconds; it is the newest one now."""
        with self._guard():
            now = self._clock()
            self._store.pop(key, None)
            self._store[key] = now + length, value
            # Those whose time is over are the oldest, but where an agent gave a shorter time.
            while self._store:
                oldest = next(iter(self._store))
                if len(self._store) <= self._most and self._store[oldest][0] > now:
                    break
                del self._store[oldest]

    def drop(self, key: _Key) -> None:
        """Forget a value."""
        with self._guard():
            self._store.pop(key, None)
