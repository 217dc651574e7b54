"""The list of an agent's A2A tasks: whose they are, and how long they are kept."""

from __future__ import annotations

import heapq
import threading
import time
from collections import Counter
from collections.abc import Callable

from protolink_sync.a2a.wire import A2AInternalError, A2ATaskNotFoundError
from protolink_sync.server.a2a_task import HostedTask, Owner

__all__ = ["HostedTasks"]

_MOST_TASKS = 1024
_TTL = 3600.0
# What was sent and answered may be as large as TransportLimits allows; a thousand of those are no
# list.
_MOST_BYTES = 256 * 1024 * 1024


class HostedTasks:
    """The tasks of one agent, the newest 1,024 of the last hour; those that run are all kept.

    Args:
        clock: Tells the time in seconds, monotonic.

    Source:
        wire/a2a.md 19, "Server side".
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._tasks: dict[str, HostedTask] = {}
        self._owned: Counter[Owner] = Counter()
        # A heap of when each task was changed. Entries that do not hold any more are mended when
        # they come to the top.
        self._order: list[tuple[float, str]] = []

    def add(self, task: HostedTask) -> None:
        """Add a task; of those of the owner who has the most, the one unchanged longest makes room.

        Raises:
            A2AInternalError: All that are there run.
        """
        with self._lock:
            dropped = self._prune(1, task.size)
            if len(self._tasks) >= _MOST_TASKS:
                raise A2AInternalError("too many tasks at a time; try again later", code=-32603)
            self._tasks[task.id] = task
            self._owned[task.owner] += 1
            heapq.heappush(self._order, (task.changed_at, task.id))
        _dismiss(dropped)

    def grow(self, task: HostedTask, size: int) -> None:
        """Count the bytes of a further request for a task."""
        task.grow(size)
        with self._lock:
            dropped = self._prune(0, 0)
        _dismiss(dropped)

    def find(self, id: str, owner: Owner) -> HostedTask:
        """Return a task of somebody.

        Raises:
            A2ATaskNotFoundError: There is none, it is too old, or it is somebody else's.
        """
        with self._lock:
            task = self._tasks.get(id)
        is_old = task is not None and not task.is_running and self._age(task) >= _TTL
        if task is None or is_old or task.owner != owner:
            raise A2ATaskNotFoundError(f"there is no task {id[:80]!r}", code=-32001)
        return task

    def of(self, owner: Owner) -> list[HostedTask]:
        """Return all tasks of somebody, in no order."""
        with self._lock:
            dropped = self._prune(0, 0)
            found = [task for task in self._tasks.values() if task.owner == owner]
        _dismiss(dropped)
        return found

    def all(self) -> list[HostedTask]:
        """Return all tasks."""
        with self._lock:
            return list(self._tasks.values())

    def _prune(self, count: int, size: int) -> list[HostedTask]:
        """Drop what is too old or too much, so that so many more find room; the lock is held."""
        dropped = []
        held = sum(task.size for task in self._tasks.values())
        while (task := self._oldest()) is not None:
            is_room = len(self._tasks) + count <= _MOST_TASKS and held + size <= _MOST_BYTES
            if is_room and self._age(task) < _TTL:
                break
            if not is_room and len(self._owned) > 1:
                task = self._oldest_of_the_greatest() or task
            del self._tasks[task.id]
            self._owned[task.owner] -= 1
            self._owned += Counter()  # without those who have none left
            held -= task.size
            dropped.append(task)
        return dropped

    def _oldest_of_the_greatest(self) -> HostedTask | None:
        """Return the like of the owner who has the most tasks, so that nobody loses by others."""
        owner, _ = self._owned.most_common(1)[0]
        theirs = [task for task in self._tasks.values() if task.owner == owner]
        resting = [task for task in theirs if not task.is_running]
        return min(resting, key=lambda task: task.changed_at, default=None)

    def _oldest(self) -> HostedTask | None:
        """Return the task that changed longest ago and does not run; the lock is held."""
        order, running, found = self._order, [], None
        while order and found is None:
            moment, id = order[0]
            task = self._tasks.get(id)
            if task is None:
                heapq.heappop(order)
            elif task.changed_at != moment:
                heapq.heapreplace(order, (task.changed_at, id))
            elif task.is_running:
                running.append(heapq.heappop(order))
            else:
                found = task
        for entry in running:
            heapq.heappush(order, entry)
        return found

    def _age(self, task: HostedTask) -> float:
        return self._clock() - task.changed_at


def _dismiss(tasks: list[HostedTask]) -> None:
    for task in tasks:
        task.dismiss("the task was dropped: it is too old, or there are too many")
