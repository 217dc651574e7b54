"""How threads start, and that none is left behind before uWSGI forks its workers.

tests/processes has the real uWSGI.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import types

import pytest

from protolink_sync._threads import NoThreadError, before_bare_fork, start

# What uWSGI puts there; the numbers are what its version 2.0.30 was seen to say.
MASTER = "types.SimpleNamespace(worker_id=lambda: 0, masterpid=os.getpid)"
WITHOUT_MASTER = "types.SimpleNamespace(worker_id=lambda: worker, masterpid=lambda: 0)"

BEGINNING = """
    import os, sys, threading, time, types
    worker = 0
    sys.modules["uwsgi"] = {uwsgi}
    from protolink_sync._deadline import Deadline, Timer, watch

    def watching():
        return [one for one in threading.enumerate() if one.name == "protolink-deadline"]
"""


def run(program: str, uwsgi: str = MASTER) -> None:
    """Run a program in a process that takes itself for uWSGI's."""
    text = textwrap.dedent(BEGINNING).replace("{uwsgi}", uwsgi) + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", text], timeout=60, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("worker", "master", "expected"),
    [
        (0, "this process", True),
        (0, "none", True),
        (1, "none", False),
        (1, "another", False),
        (0, "another", False),  # a mule or a spooler
    ],
)
def test_uwsgi_says_whether_it_is_still_to_fork(monkeypatch, worker, master, expected):
    pid = {"this process": os.getpid(), "none": 0, "another": os.getppid()}[master]
    told = types.SimpleNamespace(worker_id=lambda: worker, masterpid=lambda: pid)
    monkeypatch.setitem(sys.modules, "uwsgi", told)

    assert before_bare_fork() is expected


def test_a_module_that_is_only_called_uwsgi_says_nothing(monkeypatch):
    monkeypatch.setitem(sys.modules, "uwsgi", types.ModuleType("uwsgi"))

    assert not before_bare_fork()


def test_the_deadline_thread_ends_with_the_last_call():
    run("""
        for _ in range(200):
            first, second = Deadline(30), Deadline(20)
            first.begin()
            second.begin()
            first.finish()
            assert len(watching()) == 1
            second.finish()
            assert not watching()
    """)


def test_calls_of_several_threads_end_in_time_and_leave_no_thread():
    run("""
        late = []

        def calls():
            for number in range(300):
                call = Deadline(0.01 if number % 10 == 0 else 30)
                call.begin()
                if number % 10 == 0:
                    late.append(not call.wait(5) and call.elapsed() > 1)
                call.finish()

        threads = [threading.Thread(target=calls) for _ in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert late == [False] * 240, late
        assert not watching()
    """)


def test_a_timer_keeps_no_thread_and_is_looked_after_by_the_next_call():
    run("""
        acted = threading.Event()
        watch(Timer(0.01, acted.set))
        assert not watching()
        call = Deadline(30)
        call.begin()
        assert acted.wait(5)
        call.finish()
        assert not watching()
    """)


def test_the_thread_stays_once_the_process_is_a_worker():
    run(
        """
        call = Deadline(30)
        call.begin()
        call.finish()
        assert not watching()
        worker = 1
        for _ in range(3):
            call = Deadline(30)
            call.begin()
            call.finish()
            assert len(watching()) == 1
        """,
        WITHOUT_MASTER,
    )


class Interrupted(threading.Thread):
    """A thread in whose start a signal handler raises: so it looks where a lock is taken again."""

    def start(self):
        lock = threading.Lock()
        try:
            raise KeyboardInterrupt
        finally:
            lock.release()


class OneTooMany(threading.Thread):
    def start(self):
        raise RuntimeError("can't start new thread")


def test_what_a_signal_handler_raises_while_a_thread_starts_is_not_taken_for_a_lack_of_threads():
    with pytest.raises(RuntimeError, match="unlocked lock"):
        Interrupted().start()

    with pytest.raises(KeyboardInterrupt):
        start(Interrupted())


class LockTimeout(threading.Thread):
    """A signal handler of the program's raises an error of its own."""

    def start(self):
        raise RuntimeError("lock timed out")


@pytest.mark.parametrize(
    ("thread", "kind", "words"),
    [(OneTooMany, NoThreadError, "can't start"), (LockTimeout, RuntimeError, "lock timed out")],
)
def test_a_lack_of_threads_is_told_also_where_something_else_is_being_handled(thread, kind, words):
    try:
        raise ValueError
    except ValueError:
        with pytest.raises(RuntimeError, match=words) as caught:
            start(thread())

    assert type(caught.value) is kind
