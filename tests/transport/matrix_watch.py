"""What the matrices look at: descriptors, threads, phases."""

from __future__ import annotations

import gc
import os
import pathlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from protolink_sync import CancelToken
from protolink_sync.transport import Transport

ROOT = pathlib.Path(__file__).parents[2]

_PROGRAM_LIMIT = 110.0  # seconds; pytest's own limit is 120

_ASLEEP = 3  # looks in a row that find a thread asleep
_LIMIT = 20.0  # seconds until a condition that does not come true is a failure


def until(condition: Callable[[], Any], what: str) -> None:
    """Wait for a condition.

    Raises:
        AssertionError: It does not come true.
    """
    end = time.monotonic() + _LIMIT
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {_LIMIT:g} s"
        time.sleep(0.0005)


def descriptors() -> int:
    """Return how many descriptors this process has open; nothing waits for the collector."""
    gc.collect()
    return len(os.listdir("/dev/fd"))


def threads() -> list[str]:
    """Return the names of the threads beside the main one and the deadline thread."""
    return sorted(
        thread.name
        for thread in threading.enumerate()
        if thread is not threading.main_thread() and thread.name != "protolink-deadline"
    )


def phase(transport: Transport, token: CancelToken | None = None) -> str | None:
    """Return what a running call does: the one with the token, or the only one.

    No public name tells this while the call runs, and a peer cannot know what its client does.
    """
    for call in transport._slots.calls():
        if token is None or call._token is token:
            return call.phase
    return None


def until_asleep(thread: threading.Thread) -> None:
    """Wait until a thread waits in the kernel, where the system tells (Linux).

    CPython loses the wake-up of a signal that arrives just before its main thread falls asleep
    in a system call; a person who types Ctrl-C never meets that moment, a program that watches
    for the call's begin does.
    """
    stat = f"/proc/self/task/{thread.native_id}/stat"
    asleep = 0
    while asleep < _ASLEEP:
        # Not only while this thread has the interpreter, for which the other may wait.
        time.sleep(0.001)
        try:
            with open(stat) as file:
                asleep = asleep + 1 if file.read().rpartition(")")[2].split()[0] == "S" else 0
        except OSError:
            time.sleep(0.02)
            return


def lines_of(program: str, *arguments: str) -> list[str]:
    """Run a program of this folder and return the lines it prints.

    Raises:
        AssertionError: It says that something was missed, or does not end.
    """
    run = subprocess.run(
        [sys.executable, "-m", f"tests.transport.{program}", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_PROGRAM_LIMIT,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout.splitlines()
