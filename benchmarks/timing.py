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
from collections.abc import Callable

__all__ = ["fresh", "growth", "imports", "repeated", "threads"]

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
