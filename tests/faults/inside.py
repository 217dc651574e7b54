"""An agent of this process that fails once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from protolink_sync import AgentCard, Task
from protolink_sync.server import Agent
from tests.faults.cells import Cell
from tests.faults.wires import LIMIT

URL = "runtime://faulty"

_LONG = 20.0


class _Faulty(Agent):
    """Repeat what it is told, but for the first time."""

    def __init__(self, cell: Cell) -> None:
        super().__init__(AgentCard("faulty", "fails on demand", URL))
        self._cell = cell
        self._is_armed = True
        self.played = threading.Event()
        self.stopped = threading.Event()

    def handle_task(self, task: Task) -> Task:
        text = task.messages[-1].text
        if self._takes():
            if self._cell.fault == "stall":
                self.stopped.wait(_LONG)
            else:
                text = "x" * (2 * LIMIT)
        return task.complete(text)

    def handle_task_streaming(self, task: Task) -> Iterator[Any]:
        text = task.messages[-1].text
        if self._takes("wait"):
            self.stopped.wait(_LONG)
        yield {"type": "task_progress", "message": "begun"}
        if self._takes("mid-event"):
            if self._cell.fault == "stall":
                self.stopped.wait(_LONG)
            else:
                yield {"type": "task_progress", "message": "x" * (2 * LIMIT)}
        yield {"type": "task_progress", "message": text}

    def _takes(self, phase: str | None = None) -> bool:
        if phase not in (None, self._cell.phase):
            return False
        armed, self._is_armed = self._is_armed, False
        if armed:
            self.played.set()
        return armed


class FaultyAgent:
    """Serve it, as a :class:`~tests.faults.peer.FaultyPeer` serves its peer."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self._agent = _Faulty(cell)
        self._handle: Any = None
        self.url = URL
        self.played = self._agent.played
        if cell.phase == "connect":
            self.played.set()
        else:
            self._handle = self._agent.serve(URL)

    def heal(self) -> None:
        """Serve from now on, and let what stalls go on."""
        self._agent.stopped.set()
        self._agent._is_armed = False
        if self._handle is None:
            self._handle = self._agent.serve(URL)

    def __enter__(self) -> FaultyAgent:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._agent.stopped.set()
        if self._handle is not None:
            self._handle.close()
