"""Threads: how they start, and which of them must end before uWSGI forks.

uWSGI imports the application in its master process and forks the workers from it with the system's
``fork()`` alone, which tells Python nothing. A thread that waits for the interpreter's lock at that
moment is lost, but the lock's condition variable counts it as a waiter in the worker too, and the
worker's first switch of threads may wait for it for ever. So the threads of calls and streams end
with them there (those of gRPC, ``runtime://``, the shim and ``map`` excepted).
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

__all__ = ["Messenger", "NoThreadError", "before_bare_fork", "leave_none", "start"]

# A thread that has nothing left to do ends far sooner, also on a busy machine.
_END_ON_ITS_WAY = 5.0

# How CPython words it.
_NO_THREAD = ("can't start new thread", "can't create new thread")
_NOT_LOCKED = ("release unlocked lock", "cannot release un-acquired lock")


def before_bare_fork() -> bool:
    """Return whether this process is uWSGI's, and its workers are still to be forked."""
    uwsgi: Any = sys.modules.get("uwsgi")
    try:
        # Without a master the first process becomes a worker itself.
        return uwsgi.worker_id() == 0 and uwsgi.masterpid() in (0, os.getpid())
    except AttributeError:  # there is no uWSGI, or a module that is only called so
        return False


def leave_none(thread: threading.Thread) -> None:
    """Wait for a thread that is about to end, if a fork without hooks may follow."""
    if before_bare_fork() and thread is not threading.current_thread():
        thread.join(_END_ON_ITS_WAY)


class NoThreadError(RuntimeError):
    """No thread can start: there are too many, or Python (3.12) is about to exit."""


class Messenger(threading.Thread):
    """A thread that hands what it comes to, errors too, to another one."""


def start(thread: threading.Thread) -> None:
    """Start a thread.

    Raises:
        NoThreadError: The system or Python has none.
        BaseException: What a signal handler has raised; the thread may run. CPython may tell of it
            by the ``RuntimeError`` of a lock that it wanted to release and did not have.
    """
    try:
        thread.start()
    except RuntimeError as error:
        told = str(error)
        if told.startswith(_NO_THREAD):
            raise NoThreadError(told) from error
        if told in _NOT_LOCKED and error.__context__ is not None:
            raise error.__context__ from None
        raise
