"""A client that was used, and then is used by four children and their parent at once.

``python -m tests.processes.forking CALLS`` prints how many answers were wrong. The children end
as programs do, so that whatever finalizers they inherited run in them.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from tests.processes.calls import Peer, wrong_answers

_CHILDREN = 4
_CHILD_LIMIT = 40.0  # seconds until a child counts as hung


def fork(work: object) -> int:
    """Do something in a child, which ends as a program that is through; return its process id."""
    pid = os.fork()
    if pid == 0:
        assert callable(work)
        sys.exit(work())
    return pid


def code_of(pid: int) -> int:
    """Return the exit code of a child; one that hangs is ended and gives -9."""
    end = time.monotonic() + _CHILD_LIMIT
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main(calls: int) -> None:
    """Call, fork, call everywhere at the same time, and once more in the parent."""
    client = Peer.from_environment().client()
    wrong = wrong_answers(client, "before", 1)
    pids = [
        fork(lambda name=f"child{number}": min(wrong_answers(client, name, calls), 100))
        for number in range(_CHILDREN)
    ]
    wrong += wrong_answers(client, "parent", calls)
    wrong += sum(code_of(pid) for pid in pids)
    wrong += wrong_answers(client, "after", 1)
    client.transport.close()
    print(wrong, threading.active_count())


if __name__ == "__main__":
    main(int(sys.argv[1]))
