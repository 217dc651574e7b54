"""What the threads of the soak do, and whether everything that was asked came to an end once."""

from __future__ import annotations

import collections
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from protolink_sync import AgentCard, AgentClient, CancelToken, Message, Task
from protolink_sync.config import TransportConfig
from protolink_sync.errors import (
    CallCancelledError,
    StreamInterruptedError,
    TransportConnectionError,
    TransportTimeoutError,
)
from protolink_sync.server import Agent
from protolink_sync.transport import SSEJSONRPCTransport
from tests.soak.cutter import CuttingProxy

# Much longer than any call takes, much shorter than the soak.
_LIMIT = 30.0
_SHORT = 0.02

_CUT_SHARE = 0.3
_CUT_BYTES = 20_000

# What is no end of a call that a cut can bring.
_ALLOWED = (TransportConnectionError, StreamInterruptedError)


class _Repeating(Agent):
    """Say what was asked, at once or after a while, whole or in pieces."""

    def handle_task(self, task: Task) -> Task:
        text = task.messages[-1].text
        if text.startswith("slow"):
            self.stopped.wait(0.2)
        return task.complete(text)

    def handle_task_streaming(self, task: Task) -> Iterator[Any]:
        text = task.messages[-1].text
        for number in range(20):
            yield {"type": "task_progress", "n": number, "message": text}
            if text.startswith("slow"):
                self.stopped.wait(0.02)


@attrs.define
class Result:
    """What came of the soak.

    Args:
        outcomes: How often each way of ending came, over all threads.
        wrong: What must not have happened.
        rss: KiB of the process after each sample's seconds.
        descriptors: How many were open then.
        cuts: How many connections were cut.
        counted: The transport's own counters at the end.
    """

    outcomes: collections.Counter[str]
    wrong: list[str]
    rss: list[int]
    descriptors: list[int]
    cuts: int
    counted: Any

    @property
    def calls(self) -> int:
        """How many calls and streams there were."""
        return sum(self.outcomes.values())


class _Worker(threading.Thread):
    """One of the threads."""

    def __init__(self, client: AgentClient, url: str, number: int, seed: int, end: float) -> None:
        super().__init__(name=f"soak-{number}", daemon=True)
        self._client, self._url, self._number, self._end = client, url, number, end
        self._chance = random.Random(f"{seed} {number}")
        self.outcomes: collections.Counter[str] = collections.Counter()
        self.wrong: list[str] = []

    def run(self) -> None:
        kinds = (self._call, self._call, self._call, self._stream, self._left, self._cancelled)
        asked = 0
        while time.monotonic() < self._end:
            asked += 1
            kind = self._chance.choice((*kinds, self._late))
            self.outcomes[self._came(kind, f"{self._number}-{asked}")] += 1

    def _came(self, kind: Callable[[str], str], question: str) -> str:
        """Do one thing; return how it ended, once."""
        try:
            return kind(question)
        except _ALLOWED:
            return "stream cut" if kind in (self._stream, self._left) else "call cut"
        except Exception as error:
            self.wrong.append(f"{kind.__name__}: {error!r}")
            return "wrong"

    def _expect(self, question: str, answer: str) -> None:
        if answer != question:
            self.wrong.append(f"asked {question!r}, was told {answer!r}")

    def _task(self, question: str) -> Task:
        return Task.create(Message.user(question))

    def _call(self, question: str) -> str:
        # Of different sizes, so that cuts come everywhere.
        question += " " + "x" * self._chance.choice((0, 100, 3000))
        answer = self._client.send_task(self._url, self._task(question), timeout=_LIMIT)
        self._expect(question, answer.text)
        return "call answered"

    def _stream(self, question: str) -> str:
        numbers = []
        task = self._task(question)
        with self._client.send_task_streaming(self._url, task, idle_timeout=_LIMIT) as stream:
            for event in stream:
                if event["type"] == "task_progress":
                    numbers.append(event["n"])
                    self._expect(question, event["message"])
        if numbers != list(range(20)):
            self.wrong.append(f"{question}: events {numbers}")
        return "stream finished"

    def _left(self, question: str) -> str:
        task = self._task(f"slow {question}")
        stream = self._client.send_task_streaming(self._url, task, idle_timeout=_LIMIT)
        for _ in range(self._chance.randrange(3)):
            next(stream)
        stream.close()
        return "stream left"

    def _cancelled(self, question: str) -> str:
        token = CancelToken()
        timer = threading.Timer(self._chance.uniform(0, 0.01), token.cancel)
        timer.start()
        try:
            self._client.send_task(
                self._url, self._task(f"slow {question}"), timeout=_LIMIT, cancel=token
            )
        except CallCancelledError:
            return "call cancelled"
        finally:
            timer.join()
        self.wrong.append(f"{question} was not cancelled")
        return "wrong"

    def _late(self, question: str) -> str:
        question = f"slow {question}"
        try:
            answer = self._client.send_task(self._url, self._task(question), timeout=_SHORT)
        except TransportTimeoutError:
            return "call timed out"
        # The whole process stood still meanwhile: the answer was there before anybody looked.
        self._expect(question, answer.text)
        return "call answered"


def soak(seconds: float, *, threads: int = 16, seed: int = 0, samples: int = 10) -> Result:
    """Run for so long, with so many threads over one client."""
    agent = _Repeating(AgentCard("soak", "repeats", "http://127.0.0.1"))
    agent.stopped = threading.Event()
    transport = SSEJSONRPCTransport(trust_env=False, config=TransportConfig())
    with (
        agent.serve("http://127.0.0.1:0") as host,
        CuttingProxy(
            host.url, random.Random(seed), share=_CUT_SHARE, most_bytes=_CUT_BYTES
        ) as proxy,
        AgentClient(transport) as client,
        transport,
    ):
        end = time.monotonic() + seconds
        workers = [_Worker(client, proxy.url, n, seed, end) for n in range(threads)]
        for worker in workers:
            worker.start()
        rss, descriptors = _sampled(workers, seconds / samples)
        outcomes = sum((worker.outcomes for worker in workers), collections.Counter())
        wrong = [what for worker in workers for what in worker.wrong]
        wrong += _miscounted(outcomes, transport)
        counted = transport.metrics
        agent.stopped.set()
        return Result(outcomes, wrong, rss, descriptors, proxy.cuts, counted)


def _sampled(workers: list[_Worker], every: float) -> tuple[list[int], list[int]]:
    rss, descriptors = [], []
    while any(worker.is_alive() for worker in workers):
        next((w for w in workers if w.is_alive()), workers[0]).join(every)
        rss.append(_resident())
        descriptors.append(len(os.listdir("/dev/fd")))
    return rss, descriptors


def _resident() -> int:
    """Return the KiB of memory of this process, where the system tells (Linux)."""
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    except OSError:
        return 0


def _miscounted(outcomes: collections.Counter[str], transport: SSEJSONRPCTransport) -> list[str]:
    """Compare what the threads saw with what the transport has counted."""
    end = time.monotonic() + 10
    while transport.metrics.active_streams and time.monotonic() < end:
        time.sleep(0.01)  # the workers of streams that were left are on their way out
    told = transport.metrics
    pairs = {
        "calls answered": (outcomes["call answered"], told.requests_succeeded),
        "calls failed": (outcomes["call cut"] + outcomes["call timed out"], told.requests_failed),
        "calls cancelled": (outcomes["call cancelled"], told.requests_cancelled),
        "streams": (
            outcomes["stream finished"] + outcomes["stream left"] + outcomes["stream cut"],
            told.streams_started,
        ),
        "streams that ended": (
            told.streams_started,
            told.streams_completed + told.streams_failed + told.streams_cancelled,
        ),
        "calls under way": (0, told.active_requests),
        "streams under way": (0, told.active_streams),
    }
    return [
        f"{name}: {mine} seen, {its} counted" for name, (mine, its) in pairs.items() if mine != its
    ]
