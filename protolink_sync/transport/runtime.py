"""Calls to agents in the same process: copies go over and come back, no object is shared."""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import queue
import threading
from collections import deque
from typing import Any, ClassVar

from protolink_sync._threads import NoThreadError, start
from protolink_sync.config import TransportConfig
from protolink_sync.errors import (
    ProtoLinkError,
    TransportConnectionError,
    TransportError,
    TransportLimitError,
    words,
)
from protolink_sync.server import Execution, RefusedError, RuntimeHost, runtime_agent
from protolink_sync.transport._call import Call
from protolink_sync.transport._hooks import Hooks
from protolink_sync.transport._identity import task_id
from protolink_sync.transport.base import Codec, Transport, TransportCapabilities
from protolink_sync.wire import TransportRequestContext, WireReply, WireRequest, local

__all__ = ["RuntimeTransport"]

# A worker that had nothing to do for so many seconds ends.
_IDLE_SECONDS = 10.0

_LONGEST_WAIT = 0.5

_numbers = itertools.count(1)

# The transports inside whose calls the current code runs, from the outermost.
_inside: contextvars.ContextVar[tuple[Transport, ...]] = contextvars.ContextVar(
    "protolink_sync_inside", default=()
)


class _Job:
    """One call on its way to a handler and back. The one who waits can be called off.

    All that takes the agent's time is done by a worker: nothing could end it in the caller.
    """

    __slots__ = ("_execution", "_over", "context")

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        # The caller's context variables, so that a handler's log lines and spans find them.
        self.context = contextvars.copy_context()
        # Its put() is re-entrant: a signal handler may cut.
        self._over: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def run(self) -> None:
        """Have the handler work, and what it returned encoded (a worker)."""
        try:
            self.context.run(self._execution.run)
        except BaseException:  # an error that cannot be told: its text is not to be had
            self._execution.give_up()
        self._over.put(True)

    def wait(self) -> bytes | None:
        """Return the answer, or None if the call was ended.

        Raises:
            RefusedError: There is no answer; it says why.
        """
        while True:
            # In slices: CPython can lose the wake-up of a signal that comes just before a wait.
            try:
                is_handled = self._over.get(timeout=_LONGEST_WAIT)
                break
            except queue.Empty:
                continue
        return self._execution.answer() if is_handled else None

    def cut(self) -> None:
        self._over.put(False)

    def take_back(self) -> None:
        """Nothing is held: a handler that still runs comes to its end alone."""


class _StreamJob:
    """One stream on its way from a handler to its reader, with a bound on what is between."""

    # What waits for the reader is counted in pieces, of which each event takes one or more.
    _PIECE = 64 * 1024
    _MOST_PIECES = 64

    def __init__(self, host: RuntimeHost, request: WireRequest) -> None:
        self._host = host
        self._request = request
        self.context = contextvars.copy_context()
        # Their put() is re-entrant: a signal handler may cut.
        self._events: queue.SimpleQueue[tuple[bytes, int] | BaseException | None] = (
            queue.SimpleQueue()
        )
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(self._MOST_PIECES):
            self._room.put(None)
        self._left = False
        # Where the handler works; the lock, because the thread goes on to others' work after it.
        self._thread: int | None = None
        self._lock = threading.RLock()

    def run(self) -> None:
        """Have the handler work, as far as its events are taken (a worker)."""
        end: BaseException | None = None
        try:
            self.context.run(self._run)
        except RefusedError as refused:
            end = refused
        except BaseException as error:
            end = RefusedError(500, words(error), type(error).__name__)
            end.__cause__ = error
        self._events.put(end)

    def _run(self) -> None:
        self._thread = threading.get_ident()
        request = self._request
        try:
            with contextlib.closing(
                self._host.stream(request.method, request.path, request.body)
            ) as events:
                for event in events:
                    pieces = min(max(1, len(event) // self._PIECE), self._MOST_PIECES)
                    for _ in range(pieces):
                        self._room.get()
                    if self._left:
                        return
                    self._events.put((event, pieces))
        finally:
            with self._lock:
                self._thread = None

    def receive(self) -> list[bytes] | None:
        """Wait for the next events; None at the end, or when the stream was cut."""
        got = self._events.get()
        received: list[bytes] = []
        while isinstance(got, tuple):
            received.append(got[0])
            for _ in range(got[1]):
                self._room.put(None)
            try:
                got = self._events.get_nowait()
            except queue.Empty:
                return received
        if received:
            self._events.put(got)  # an end: for the next time
            return received
        if isinstance(got, BaseException):
            raise got
        return None

    def leave(self) -> None:
        """Let the handler end where it stands: nobody takes its events any more (the reader)."""
        self._left = True
        for _ in range(self._MOST_PIECES):
            self._room.put(None)
        with self._lock:
            if self._thread is not None:
                self._host.abandon([self._thread], "the stream was left")

    def cut(self) -> None:
        self._events.put(None)

    def take_back(self) -> None:
        self.leave()


class _RuntimeStream:
    """One open stream."""

    def __init__(
        self,
        transport: RuntimeTransport,
        job: _StreamJob,
        call: Call,
        context: TransportRequestContext,
    ) -> None:
        self._transport = transport
        self._job = job
        self._call = call
        self._context = context
        # What came together with an event that is too large, from that one on.
        self._held: list[bytes] = []

    def receive(self) -> list[bytes] | None:
        """Wait for the next events."""
        try:
            received, self._held = self._held or self._job.receive(), []
        except RefusedError as refused:
            raise _told(refused, self._context) from refused.__cause__
        if self._call.ended is not None:
            raise self._transport._ended(self._call, self._context)
        limit = self._transport.config.limits.max_event_bytes
        for number, event in enumerate(received or ()):
            if len(event) > limit:
                if received and number:  # the events before it come first
                    self._held = received[number:]
                    return received[:number]
                raise TransportLimitError(
                    f"{self._context.where}: an event has {len(event)} bytes, limit is {limit}. "
                    "Raise TransportLimits.max_event_bytes"
                )
        return received

    def close(self, finished: bool) -> None:
        """Nothing to do: the call takes the job back."""


class _Workers:
    """Threads that run handlers. The caller's own thread cannot: its budget could not end it."""

    def __init__(self) -> None:
        self._idle: deque[queue.SimpleQueue[_Job | _StreamJob | None]] = deque()
        self._closed = False

    def start(self, job: _Job | _StreamJob) -> None:
        try:
            self._idle.pop().put(job)
        except IndexError:
            start(
                threading.Thread(
                    target=self._work,
                    args=(job,),
                    name=f"protolink-runtime-{next(_numbers)}",
                    daemon=True,
                )
            )

    def close(self) -> None:
        self._closed = True
        while True:
            try:
                self._idle.pop().put(None)
            except IndexError:
                break

    def _work(self, first: _Job | _StreamJob) -> None:
        jobs: queue.SimpleQueue[_Job | _StreamJob | None] = queue.SimpleQueue()
        job: _Job | _StreamJob | None = first
        while job is not None:
            # Ready for the next job before this one's answer wakes the caller, who may bring it.
            job.run()
            del job
            self._idle.append(jobs)
            if self._closed:
                self.close()
            try:
                job = jobs.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                job = self._last(jobs)

    def _last(self, jobs: queue.SimpleQueue[_Job | _StreamJob | None]) -> _Job | _StreamJob | None:
        """Take a worker that has nothing to do out of the row, or the job it gets just then."""
        with contextlib.suppress(ValueError):
            self._idle.remove(jobs)
            return None
        # Somebody has taken it at this moment and puts a job in, unless he was interrupted.
        try:
            return jobs.get(timeout=_IDLE_SECONDS)
        except queue.Empty:
            return None


class RuntimeTransport(Transport):
    """Carry calls to agents that this process serves at ``runtime://`` addresses.

    The handler runs in a thread of the transport, so budget and token end the call here in any
    case; the handler itself goes on to its end. That of a stream which is left is closed at its
    next event, and ``Agent.current_run()`` is cancelled; it works no further ahead than a few
    events that nobody has read.

    Args:
        url: Address for calls that name none.
        timeout: Budget of a call that gives none, in seconds; ``math.inf`` for none.
        config: Sizes, retries, concurrency.
        hooks: Functions that are told what happens.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range, or an address is not ``runtime://name``.
    """

    transport_type: ClassVar[str] = "runtime"
    schemes: ClassVar[tuple[str, ...]] = ("runtime",)
    capabilities: ClassVar[TransportCapabilities] = TransportCapabilities(
        networked=False,
        streaming=True,
        tls=False,
        bidirectional=False,
        persistent_connections=False,
    )
    _codec: ClassVar[Codec] = local
    _headers_per_call: ClassVar[bool] = False

    def __init__(
        self,
        url: str | None = None,
        timeout: float | None = 300.0,
        *,
        config: TransportConfig | None = None,
        hooks: Hooks | None = None,
    ) -> None:
        super().__init__(url, timeout, config=config, hooks=hooks)

    def _begin_process(self) -> None:
        super()._begin_process()
        self._workers = _Workers()

    def _settings(self) -> dict[str, Any]:
        return {
            "url": self._url,
            "timeout": self._timeout,
            "config": self._config,
            "hooks": self._hooks,
        }

    # --- hooks -------------------------------------------------------------------------------

    @staticmethod
    def _task_key(task: Any, body: bytes) -> str:
        # The host sets the digest of the body beside it, as for any key.
        return str(task_id(task))

    def _is_nested(self) -> bool:
        return self in _inside.get()

    def _exchange(self, request: WireRequest, deadline: Call) -> WireReply:
        context = request.context
        begin = self._host(context).begin
        try:
            job = _Job(begin(request.method, request.path, request.body, context.idempotency_key))
            self._start(job, deadline, context)
            answer = job.wait()
        except RefusedError as refused:
            raise _told(refused, context) from refused.__cause__
        # A job that still runs stays lent, so that the end of the call takes it back.
        if answer is None or not deadline.release():
            raise self._ended(deadline, context)
        limit = self._config.limits.max_response_bytes
        if len(answer) > limit:
            raise TransportLimitError(
                f"{context.where}: the reply has {len(answer)} bytes, limit is {limit}. Raise "
                "TransportLimits.max_response_bytes, or ask the agent for less"
            )
        return WireReply(200, "", {}, answer)

    def _open_stream(self, request: WireRequest, deadline: Call) -> _RuntimeStream:
        context = request.context
        job = _StreamJob(self._host(context), request)
        self._start(job, deadline, context)
        return _RuntimeStream(self, job, deadline, context)

    def _host(self, context: TransportRequestContext) -> RuntimeHost:
        host = runtime_agent(context.url)
        if host is None:
            raise TransportConnectionError(
                f"{context.where}: this process serves no agent there; "
                "agent.serve(url) does, and an agent of another process has another address",
                retryable=True,
            )
        return host

    def _start(self, job: _Job | _StreamJob, call: Call, context: TransportRequestContext) -> None:
        job.context.run(_inside.set, (*_inside.get(), self))
        call.phase = "wait"
        if not call.lend(job):
            raise self._ended(call, context)
        try:
            self._workers.start(job)
        except NoThreadError as error:
            raise TransportError(
                f"{context.where}: no thread can start for the handler ({error}), and the agent "
                "was not asked. Where Python starts none at its exit (3.12), make a first call "
                "before"
            ) from error

    def _close(self) -> None:
        self._workers.close()


def _told(refused: RefusedError, context: TransportRequestContext) -> ProtoLinkError:
    """Return what the caller gets for a call that the agent refused, or could not carry out."""
    return local.remote_error(refused.kind, refused.message, context)
