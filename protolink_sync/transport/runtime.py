"""Calls to agents in the same process: bytes go over and come back, no object is shared."""

from __future__ import annotations

import contextvars
import itertools
import queue
import threading
from collections import deque
from typing import Any, ClassVar

from protolink_sync.config import TransportConfig
from protolink_sync.errors import TransportConnectionError, TransportLimitError
from protolink_sync.server import RuntimeHost, runtime_agent
from protolink_sync.transport._call import Call
from protolink_sync.transport.base import Codec, Transport, TransportCapabilities
from protolink_sync.wire import WireReply, WireRequest, envelope

__all__ = ["RuntimeTransport"]

# A worker that had nothing to do for so many seconds ends.
_IDLE_SECONDS = 10.0

_numbers = itertools.count(1)

# The transports inside whose calls the current code runs, from the outermost.
_inside: contextvars.ContextVar[tuple[Transport, ...]] = contextvars.ContextVar(
    "protolink_sync_inside", default=()
)


class _Job:
    """One envelope on its way to a handler and back. The one who waits can be called off."""

    __slots__ = ("_answer", "context", "host", "payload")

    def __init__(self, host: RuntimeHost, payload: bytes) -> None:
        self.host = host
        self.payload = payload
        # The caller's context variables, so that a handler's log lines and spans find them.
        self.context = contextvars.copy_context()
        # Its put() is re-entrant: a signal handler may cut.
        self._answer: queue.SimpleQueue[bytes | BaseException | None] = queue.SimpleQueue()

    def run(self) -> None:
        try:
            self._answer.put(self.context.run(self.host.handle, self.payload))
        except BaseException as error:
            self._answer.put(error)

    def wait(self) -> bytes | None:
        """Return the answer, or None if the call was ended."""
        answer = self._answer.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def cut(self) -> None:
        self._answer.put(None)

    def take_back(self) -> None:
        """Nothing is held: a handler that still runs comes to its end alone."""


class _Workers:
    """Threads that run handlers. The caller's own thread cannot: its budget could not end it."""

    def __init__(self) -> None:
        self._idle: deque[queue.SimpleQueue[_Job | None]] = deque()
        self._closed = False

    def start(self, job: _Job) -> None:
        try:
            self._idle.pop().put(job)
        except IndexError:
            threading.Thread(
                target=self._work,
                args=(job,),
                name=f"protolink-runtime-{next(_numbers)}",
                daemon=True,
            ).start()

    def close(self) -> None:
        self._closed = True
        while True:
            try:
                self._idle.pop().put(None)
            except IndexError:
                break

    def _work(self, first: _Job) -> None:
        jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        job: _Job | None = first
        while job is not None:
            # Ready for the next job before this one's answer wakes the caller, who may bring it.
            job.run()
            del job
            self._idle.append(jobs)
            if self._closed:
                self.close()
            job = self._next(jobs)

    def _next(self, jobs: queue.SimpleQueue[_Job | None]) -> _Job | None:
        try:
            return jobs.get(timeout=_IDLE_SECONDS)
        except queue.Empty:
            try:
                self._idle.remove(jobs)
            except ValueError:  # somebody has taken it at this moment and will put a job in
                return jobs.get()
            return None


class RuntimeTransport(Transport):
    """Carry calls to agents that this process serves at ``runtime://`` addresses.

    The handler runs in a thread of the transport, so budget and token end the call here in any
    case; the handler itself goes on to its end.

    Args:
        url: Address for calls that name none.
        timeout: Budget of a call that gives none, in seconds; ``math.inf`` for none.
        config: Sizes, retries, concurrency.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range, or an address is not ``runtime://name``.
    """

    transport_type: ClassVar[str] = "runtime"
    schemes: ClassVar[tuple[str, ...]] = ("runtime",)
    capabilities: ClassVar[TransportCapabilities] = TransportCapabilities(
        networked=False,
        streaming=False,
        tls=False,
        bidirectional=False,
        persistent_connections=False,
    )
    _codec: ClassVar[Codec] = envelope

    def __init__(
        self,
        url: str | None = None,
        timeout: float | None = 300.0,
        *,
        config: TransportConfig | None = None,
    ) -> None:
        super().__init__(url, timeout, config=config)

    def _begin_process(self) -> None:
        super()._begin_process()
        self._workers = _Workers()

    def _settings(self) -> dict[str, Any]:
        return {"url": self._url, "timeout": self._timeout, "config": self._config}

    # --- hooks -------------------------------------------------------------------------------

    def _is_nested(self) -> bool:
        return self in _inside.get()

    def _exchange(self, request: WireRequest, deadline: Call) -> WireReply:
        context = request.context
        host = runtime_agent(context.url)
        if host is None:
            raise TransportConnectionError(
                f"{context.where}: this process serves no agent there; "
                "agent.serve(url) does, and an agent of another process has another address",
                retryable=True,
            )
        job = _Job(host, request.body or b"")
        job.context.run(_inside.set, (*_inside.get(), self))
        deadline.phase = "wait"
        if not deadline.lend(job):
            raise self._ended(deadline, context)
        self._workers.start(job)
        answer = job.wait()
        if not deadline.release() or answer is None:
            raise self._ended(deadline, context)
        limit = self._config.limits.max_response_bytes
        if len(answer) > limit:
            raise TransportLimitError(
                f"{context.where}: the reply has {len(answer)} bytes, limit is {limit}. Raise "
                "TransportLimits.max_response_bytes, or ask the agent for less"
            )
        return WireReply(200, "", {}, answer)

    def _close(self) -> None:
        self._workers.close()
