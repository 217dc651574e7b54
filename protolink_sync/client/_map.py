"""Many tasks: submitted a few at a time, to one agent or several, by any executor."""

from __future__ import annotations

import concurrent.futures
import copy
import functools
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any

import attrs

from protolink_sync._deadline import CancelToken
from protolink_sync._display import Bar, View, bar, bundle
from protolink_sync.client._lanes import Lane, pick
from protolink_sync.client._sender import Sender, sender_for
from protolink_sync.errors import CallCancelledError, TransportRemoteError
from protolink_sync.models import Task

if TYPE_CHECKING:
    from protolink_sync.client.agent import AgentClient, Protocol

__all__ = ["MapResults", "submitted"]

_DEFAULT_IN_FLIGHT = 32

# How many results may wait for an earlier one, for each call in flight, when they are in order.
_AHEAD = 16

# The longest single wait: CPython can lose the wake-up of a signal that arrives just before its
# thread falls asleep, and Ctrl-C must get through all the same.
_LONGEST_WAIT = 0.5


@attrs.define(eq=False)
class _Job:
    """One task on its way. Its content never changes, so that its agent recognises it."""

    index: int
    task: Task
    lane: Lane
    begun_at: float = 0.0
    # Its budget, and until when it may be sent again.
    due: float = 0.0
    again_until: float = 0.0
    future: Future[Any] | None = None
    refusal: Exception | None = None


class MapResults(Iterator["Task | Exception"]):
    """The results of many tasks, as they are asked for: made by ``AgentClient.map``.

    Each is the task as it came back, or the error that it brought instead. Tasks are submitted
    while results are read, by one thread at a time. Leaving the loop submits no more and ends the
    calls that run; a task that was submitted may run on at its agent.
    """

    def __init__(
        self,
        tasks: Iterable[Task],
        urls: Sequence[str],
        sender: Sender,
        token: CancelToken,
        *,
        ordered: bool,
        in_flight: int,
        shown: Bar | None,
        progress: Callable[[int, int | None], object] | None,
        cancel: CancelToken | None,
    ) -> None:
        self._tasks = iter(tasks)
        # None, or one.
        self._drawn: list[Task] = []
        self._total = len(tasks) if isinstance(tasks, Sequence) else None
        self._lanes = [Lane(url, in_flight, sender.patience) for url in urls]
        self._sender = sender
        self._token = token
        self._ordered = ordered
        self._in_flight = in_flight
        self._shown = shown
        self._progress = progress
        self._taken = self._given = self._arrived = 0
        self._index: int | None = None
        self._has_more = True
        self._pid = os.getpid()
        self._reading = threading.RLock()
        self._is_closed = False
        self._running: dict[_Job, None] = {}
        self._refused: dict[_Job, None] = {}
        self._results: dict[int, Task | Exception] = {}
        # Jobs come here when they end. What puts them here knows nothing of this object, so that
        # it is collected when nobody reads it any more, and ends what runs.
        self._ended: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        unlink = _link(cancel, token, self._ended)
        self._let_go = weakref.finalize(
            self, _let_go, token, self._running, unlink, shown, self._pid
        )

    @property
    def index(self) -> int | None:
        """Number of the task that the latest result belongs to, from 0."""
        return self._index

    @property
    def done(self) -> int:
        """How many results have come, read or not."""
        return self._arrived

    @property
    def total(self) -> int | None:
        """How many tasks there are; None while that is not known."""
        return self._total

    def indexed(self) -> Iterator[tuple[int, Task | Exception]]:
        """Return the results, each with the number of its task, from 0."""
        while True:
            found = self._read()
            if found is None:
                return
            yield found

    def __next__(self) -> Task | Exception:
        found = self._read()
        if found is None:
            raise StopIteration
        return found[1]

    def _read(self) -> tuple[int, Task | Exception] | None:
        """Wait for the next result, one thread at a time; None at the end."""
        if os.getpid() != self._pid:
            raise RuntimeError(
                "these results belong to the parent process: a forked child cannot read them"
            )
        try:
            # Inside: Ctrl-C may come before the next line.
            if not self._reading.acquire(blocking=False):
                raise RuntimeError(
                    "another thread reads these results: they have one reader at a time"
                )
            return self._read_alone()
        except KeyboardInterrupt:
            self.close()
            raise
        finally:
            try:
                self._reading.release()
            except RuntimeError:  # another thread has it
                pass
            except BaseException:  # of a signal handler, with a result in hand, which is lost
                self.close()
                raise

    def _read_alone(self) -> tuple[int, Task | Exception] | None:
        try:
            found = self._next()
        except StopIteration as error:
            # Passed on it would be the end of a loop that has not had all results.
            self.close()
            raise RuntimeError("map: progress= or executor= raised StopIteration") from error
        except BaseException:
            self.close()
            raise
        if found is None:
            self.close()
        return found

    def _next(self) -> tuple[int, Task | Exception] | None:
        """Wait for the next result and return it with its number; None at the end."""
        if self._shown is not None and not self._taken and not self._is_closed:
            self._shown.update(0, self._total)
        while not self._is_closed:
            self._fill()
            found = self._ready()
            if found is not None:
                return found
            if self._is_at_end():
                return None
            self._wait()
        return None

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        view = View(
            "Results of many tasks",
            [
                ("come", self._arrived),
                ("read", self._given),
                ("of", self._total),
                ("under way", len(self._running) + len(self._refused)),
                ("agents", [lane.url for lane in self._lanes]),
            ],
        )
        return bundle(view, include, exclude)

    # --- submitting --------------------------------------------------------------------------

    def _fill(self) -> None:
        """Submit what there is room for."""
        while len(self._running) < self._in_flight and not self._token.cancelled:
            job = self._next_job()
            if job is None:
                return
            self._begin(job)

    def _next_job(self) -> _Job | None:
        now = time.monotonic()
        for job in list(self._refused):
            if max(now, job.lane.free_at) >= job.again_until:
                del self._refused[job]
                self._keep(job, job.refusal)
            elif job.lane.room:
                del self._refused[job]
                return job
        is_far_ahead = self._ordered and len(self._results) >= _AHEAD * self._in_flight
        if is_far_ahead or not self._has_more:
            return None
        lane = pick(self._lanes, self._taken)
        if lane is not None:
            return self._new_job(lane)
        refusals = [lane.refusal for lane in self._lanes]
        if refusals[0] is not None and None not in refusals:
            unsent = self._new_job(self._lanes[0])
            if unsent is not None:
                self._keep(unsent, _not_sent(unsent, refusals[0]))
        return None

    def _draw(self) -> None:
        """Take a further task, if none was taken and there is one."""
        if self._drawn:
            return
        try:
            self._drawn.append(next(self._tasks))
        except StopIteration:
            self._has_more = False
            self._total = self._taken

    def _new_job(self, lane: Lane) -> _Job | None:
        self._draw()
        if not self._drawn:
            return None
        task = self._drawn.pop()
        _check_task(self._taken, task)
        # A copy: a task that its owner changes meanwhile would be another one when sent again.
        job = _Job(self._taken, copy.deepcopy(task), lane)
        self._taken += 1
        return job

    def _begin(self, job: _Job) -> None:
        job.begun_at = time.monotonic()
        if job.refusal is None:
            job.due = job.begun_at + self._sender.timeout
            job.again_until = job.begun_at + min(self._sender.again_for, self._sender.timeout)
        left = max(job.due - job.begun_at, 0.001)
        future = job.future = self._sender.submit(job.lane.url, job.task, left)
        job.lane.begin()
        self._running[job] = None
        future.add_done_callback(functools.partial(_put, self._ended, job))

    # --- waiting -----------------------------------------------------------------------------

    def _wait(self) -> None:
        """Wait for a job to end, or for an agent to be ready again."""
        if self._token.cancelled:
            self._give_up()
        now = time.monotonic()
        pauses = [lane.free_at - now for lane in self._lanes if lane.free_at > now]
        try:
            job = self._ended.get(timeout=min([_LONGEST_WAIT, *pauses]))
        except queue.Empty:
            return
        # None wakes only; a job may have been given up before it ended.
        if job is not None and job in self._running:
            del self._running[job]
            self._settle(job)

    def _settle(self, job: _Job) -> None:
        """Keep what a job brought, or put it back if its agent was too busy for it."""
        outcome = _outcome(job)
        # The future knows the job by its callback.
        job.future = None
        is_refused = job.lane.end(outcome, job.begun_at)
        if is_refused and job.lane.free_at < job.again_until and not self._token.cancelled:
            job.refusal = outcome
            self._refused[job] = None
        else:
            self._keep(job, outcome)

    def _keep(self, job: _Job, outcome: Any) -> None:
        self._results[job.index] = outcome
        self._arrived += 1
        if self._progress is not None:
            self._progress(self._arrived, self._total)

    def _ready(self) -> tuple[int, Task | Exception] | None:
        """Return the next result and its number, if it is there."""
        index = self._given if self._ordered else next(iter(self._results), -1)
        result = self._results.pop(index, None)
        if result is None:
            return None
        self._given += 1
        self._index = index
        return index, result

    # --- the end -----------------------------------------------------------------------------

    def _is_at_end(self) -> bool:
        if self._running or self._refused or self._results:
            return False
        if not self._has_more or self._taken == self._total:
            return True
        if self._token.cancelled:
            # Not asked for another: there may be none, and to tell may take its time.
            raise CallCancelledError(
                f"map: cancelled by its token after {self._arrived} results; no further task was "
                "sent",
                reason=self._token.reason,
            )
        # Before an agent is waited for with nothing left to send.
        self._draw()
        return not self._has_more

    def _give_up(self) -> None:
        """After a cancel: end what a token does not reach."""
        for job in list(self._refused):
            del self._refused[job]
            self._keep(job, job.refusal)
        for job in list(self._running):
            if job.future is None or job.future.cancel() or self._sender.ends_at_once:
                continue
            if not job.future.done():
                del self._running[job]
                self._keep(job, _cancelled(self._token, "; it may be running"))

    def __length_hint__(self) -> int:
        return max(0, (self._total or 0) - self._given)

    def close(self) -> None:
        """Submit no more and end the calls that run. Twice is silent."""
        self._is_closed = True
        self._let_go()

    def __enter__(self) -> MapResults:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        of = "" if self._total is None else f" of {self._total}"
        return f"<MapResults {self._arrived}{of} done, {len(self._running)} in flight>"


def _link(
    cancel: CancelToken | None, token: CancelToken, ended: queue.SimpleQueue[_Job | None]
) -> Callable[[], object]:
    """Have the caller's token end everything; return what takes that back."""
    if cancel is None:
        return lambda: None
    if not isinstance(cancel, CancelToken):
        raise TypeError(f"cancel is a {type(cancel).__name__}, must be a CancelToken")

    def stop() -> None:
        token.cancel(cancel.reason)
        ended.put(None)

    return cancel.on_cancel(stop)


def _let_go(
    token: CancelToken,
    running: dict[_Job, None],
    unlink: Callable[[], object],
    shown: Bar | None,
    pid: int,
) -> None:
    """End what nobody reads any more; also from a finalizer."""
    unlink()
    # A forked child that drops what it inherited must not end its parent's calls.
    if os.getpid() == pid:
        token.cancel("the results of map() are not read any more")
        for job in list(running):
            if job.future is not None:
                job.future.cancel()
        if shown is not None:
            shown.end()


def _put(ended: queue.SimpleQueue[_Job | None], job: _Job, _: Future[Any]) -> None:
    ended.put(job)


def _outcome(job: _Job) -> Any:
    assert job.future is not None
    try:
        return job.future.result(timeout=0)
    except concurrent.futures.CancelledError:
        return CallCancelledError(f"map: task {job.index} was cancelled before it was sent")
    except Exception as error:
        return error


def _cancelled(token: CancelToken, details: str) -> CallCancelledError:
    return CallCancelledError(f"map: cancelled by its token{details}", reason=token.reason)


def _not_sent(job: _Job, refusal: TransportRemoteError) -> TransportRemoteError:
    return TransportRemoteError(
        f"map: task {job.index} was not sent to {job.lane.url}, which answered another one with "
        f"status {refusal.status_code} and wants to be left alone for {refusal.retry_after:g} s",
        retry_after=refusal.retry_after,
        url=refusal.url,
        retryable=True,
        status_code=refusal.status_code,
        attempt_count=0,
    )


def _check_task(index: int, task: object) -> None:
    if not isinstance(task, Task):
        raise TypeError(
            f"task {index} is a {type(task).__name__}, must be a Task: "
            "Task.create(...) and Task.create_infer(...) make one"
        )


# ---- the beginning ------------------------------------------------------------------------------


def submitted(
    client: AgentClient,
    tasks: Iterable[Task],
    agent_url: str | Sequence[str],
    *,
    executor: Executor | None,
    ordered: bool,
    max_in_flight: int | None,
    protocol: Protocol,
    timeout: float | None,
    progress: bool | Callable[[int, int | None], object] | None,
    cancel: CancelToken | None,
) -> MapResults:
    """Return the results of many tasks; see ``AgentClient.map``."""
    if isinstance(tasks, Sequence):
        for index, task in enumerate(tasks):
            _check_task(index, task)
    urls = [agent_url] if isinstance(agent_url, str) else list(agent_url)
    if not urls or not all(isinstance(url, str) for url in urls):
        raise ValueError("agent_url is empty or no text: give an address, or several")
    token, shown = CancelToken(), _shown(progress)
    told = progress if callable(progress) else None
    if shown is not None:
        told = shown.update
    return MapResults(
        tasks,
        urls,
        sender_for(client, executor, protocol, timeout, token),
        token,
        ordered=ordered,
        in_flight=_in_flight(client, max_in_flight),
        shown=shown,
        progress=told,
        cancel=cancel,
    )


def _shown(progress: bool | Callable[[int, int | None], object] | None) -> Bar | None:
    if progress is True:
        return bar("tasks")
    if not (progress is None or progress is False or callable(progress)):
        raise TypeError(f"progress is {progress!r}, must be True or a function of done and total")
    return None


def _in_flight(client: AgentClient, given: int | None) -> int:
    if given is None:
        return min(_DEFAULT_IN_FLIGHT, client.transport.config.limits.max_concurrent_requests)
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(f"max_in_flight is {given!r}, must be an int")
    if given < 1:
        raise ValueError(f"max_in_flight is {given}, must be 1 or more")
    return given
