"""What a worker measures: each function returns the figures of one round.

Times are microseconds: ``wall_us`` by the clock, ``cpu_us`` of this process alone, all its
threads included. This module is read by the peers' interpreter too: standard library only.
"""

from __future__ import annotations

import gc
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["fresh", "growth", "imports", "larger", "paced", "repeated", "stream", "threads"]

Figures = dict[str, float]

# Share of the calls that come before the growth is measured: what is made once is no growth.
_WARM_UP_PART = 20


def _per_call(calls: int, wall: float, cpu: float) -> Figures:
    return {"calls": calls, "wall_us": wall / calls * 1e6, "cpu_us": cpu / calls * 1e6}


def repeated(call: Callable[[], object], duration: float) -> Figures:
    """Measure the same call again and again for some seconds."""
    call()
    gc.collect()
    calls = 0
    cpu, begin = time.process_time(), time.perf_counter()
    end = begin + duration
    while time.perf_counter() < end:
        call()
        calls += 1
    return _per_call(calls, time.perf_counter() - begin, time.process_time() - cpu)


def fresh(make: Callable[[], Callable[[], object]], duration: float) -> Figures:
    """Measure new clients with one call each for some seconds.

    Args:
        make: Makes a client and calls with it; returns what closes it, which is not measured.
        duration: Seconds.
    """
    make()()
    gc.collect()
    calls, wall, cpu = 0, 0.0, 0.0
    while wall < duration:
        cpu_before, before = time.process_time(), time.perf_counter()
        close = make()
        wall += time.perf_counter() - before
        cpu += time.process_time() - cpu_before
        calls += 1
        close()
    return _per_call(calls, wall, cpu)


def threads(call: Callable[[], object], duration: float, count: int) -> Figures:
    """Measure threads that all make the same call for some seconds.

    Returns:
        ``wall_us`` is the time of all divided by the calls of all; ``p99_us`` is the time below
        which 99 of 100 calls stayed.

    Raises:
        Exception: The first error of any thread.
    """
    call()
    gc.collect()
    durations: list[float] = []
    errors: list[Exception] = []
    over = threading.Event()

    def caller() -> None:
        mine = []
        try:
            while not over.is_set():
                before = time.perf_counter()
                call()
                mine.append(time.perf_counter() - before)
        except Exception as error:
            errors.append(error)
        durations.extend(mine)

    callers = [threading.Thread(target=caller, name=f"caller-{n}") for n in range(count)]
    cpu, begin = time.process_time(), time.perf_counter()
    for thread in callers:
        thread.start()
    time.sleep(duration)
    over.set()
    for thread in callers:
        thread.join()
    figures = _per_call(
        max(1, len(durations)), time.perf_counter() - begin, time.process_time() - cpu
    )
    if errors:
        raise errors[0]
    durations.sort()
    return {**figures, "p99_us": durations[int(len(durations) * 0.99)] * 1e6}


Stream = Callable[[], Iterator[Any]]


def stream(start: Stream, duration: float, expected: int) -> Figures:
    """Measure whole streams for some seconds, one at least; the times are those of one event.

    Args:
        start: Starts a stream and returns its events.
        duration: Seconds.
        expected: Events a stream must bring at least.
    """
    gc.collect()
    events = 0
    cpu, begin = time.process_time(), time.perf_counter()
    end = begin + duration
    while not events or time.perf_counter() < end:
        events += _count(start, expected)
    return _per_call(events, time.perf_counter() - begin, time.process_time() - cpu)


def paced(start: Stream, duration: float, expected: int) -> Figures:
    """Measure streams whose events come one by one, for some seconds.

    Returns:
        ``p50_us`` is the median of the times from the server's making an event to its arrival;
        ``first_us`` that from the call to the first event.
    """
    gc.collect()
    delays: list[float] = []
    firsts: list[float] = []
    end = time.perf_counter() + duration
    while not firsts or time.perf_counter() < end:
        before = time.monotonic_ns()
        arrived = []
        for event in start():
            now = time.monotonic_ns()
            if "sent_ns" in event:
                arrived.append((now, now - event["sent_ns"]))
        if len(arrived) != expected:
            raise ValueError(f"{len(arrived)} events, not {expected}")
        firsts.append((arrived[0][0] - before) / 1e3)
        delays.extend(delay / 1e3 for _, delay in arrived)
    return {
        "calls": len(delays),
        "p50_us": statistics.median(delays),
        "first_us": statistics.median(firsts),
    }


def larger(starts: tuple[Stream, Stream], duration: float) -> Figures:
    """Measure streams with one event, and those with one four times as large, by turns.

    Returns:
        ``wall_us`` is the time of a stream with the larger one; ``factor`` how many times that of
        the other it is.
    """
    gc.collect()
    walls: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + duration
    while not walls[1] or time.perf_counter() < end:
        for start, wall in zip(starts, walls, strict=True):
            before = time.perf_counter()
            _count(start, 1)
            wall.append(time.perf_counter() - before)
    small, large = map(statistics.median, walls)
    return {"calls": len(walls[1]), "wall_us": large * 1e6, "factor": large / small}


def _count(start: Stream, expected: int) -> int:
    events = sum(1 for _ in start())
    if events < expected:
        raise ValueError(f"{events} events, not {expected}")
    return events


def imports(statement: str, duration: float) -> Figures:
    """Measure an import in new processes, beyond what a bare interpreter takes.

    Args:
        statement: What a new interpreter runs.
        duration: Seconds; one import is measured at least.
    """
    _run(statement)
    bare: list[tuple[float, float]] = []
    whole: list[tuple[float, float]] = []
    end = time.perf_counter() + duration
    while not whole or time.perf_counter() < end:
        bare.append(_run("pass"))
        whole.append(_run(statement))
    wall, cpu = (
        statistics.median(run[kind] for run in whole) - statistics.median(run[kind] for run in bare)
        for kind in (0, 1)
    )
    return {"calls": len(whole), "wall_us": wall * 1e6, "cpu_us": cpu * 1e6}


def _run(statement: str) -> tuple[float, float]:
    """Return the seconds by the clock and of the processor for one new interpreter."""
    cpu, begin = _cpu_of_children(), time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", statement], check=True, stdin=subprocess.DEVNULL, timeout=60
    )
    return time.perf_counter() - begin, _cpu_of_children() - cpu


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def growth(call: Callable[[], bool], calls: int) -> Figures:
    """Make many calls one after the other and measure what they leave in this process.

    Args:
        call: Returns whether it was answered as it should be.
        calls: How many calls.

    Returns:
        ``failures``, ``descriptors`` and ``growth_bytes`` (of memory for each call).
    """
    failures = _failures(call, calls // _WARM_UP_PART)
    gc.collect()
    descriptors, memory = _descriptors(), _memory()
    failures += _failures(call, calls)
    gc.collect()
    return {
        "calls": calls,
        "failures": failures,
        "descriptors": _descriptors() - descriptors,
        "growth_bytes": max(0, _memory() - memory) / calls,
    }


def _failures(call: Callable[[], bool], calls: int) -> int:
    failures = 0
    for _ in range(calls):
        try:
            failures += not call()
        except Exception:
            failures += 1
    return failures


def _descriptors() -> int:
    return len(os.listdir("/dev/fd"))


def _memory() -> int:
    """Return the bytes of memory this process occupies; where only the peak is told, that."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except FileNotFoundError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # macOS counts in bytes
