"""One client in many greenlets: ``python -m tests.processes.greenlets WHEN``.

``first`` replaces threads and sockets before the library is imported, as gevent asks for;
``late`` after it was imported and a client was made, as ``gunicorn --preload`` does.
"""

from __future__ import annotations

import sys
import warnings

from gevent import monkey

if sys.argv[1] == "first":
    monkey.patch_all()

import gevent

from protolink_sync import CancelToken, Task
from protolink_sync.errors import CallCancelledError, TransportTimeoutError
from protolink_sync.models import Message
from tests.processes.calls import Peer, ask, own_threads

_LATE = "Monkey-patching ssl after ssl has already been imported"

peer = Peer.from_environment()
client = peer.client()
if sys.argv[1] == "late":
    warnings.filterwarnings("ignore", _LATE)
    monkey.patch_all()


class Ticks:
    """Counts as long as the loop runs: what stops every greenlet stops it too."""

    def __init__(self) -> None:
        self.seen = 0
        gevent.spawn(self._count)

    def _count(self) -> None:
        while True:
            gevent.sleep(0.01)
            self.seen += 1


def overlap() -> None:
    """Call in twenty greenlets, twice: with new connections and with those that are there."""
    ticks = Ticks()
    for _ in range(2):
        before = ticks.seen
        jobs = [gevent.spawn(ask, client, "count 0.5") for _ in range(20)]
        gevent.joinall(jobs, timeout=5, raise_error=True)
        assert all(job.ready() for job in jobs), "the calls wait for each other"
        assert ticks.seen - before > 10, "the calls stop the loop"


def _events(count: int) -> int:
    task = Task.create(Message.user(f"slow {count} 0.1"))
    return sum(e["type"] == "task_progress" for e in client.send_task_streaming(peer.url, task))


def streams() -> None:
    """Read ten streams at a time, and leave one."""
    ticks = Ticks()
    jobs = [gevent.spawn(_events, 5) for _ in range(10)]
    gevent.joinall(jobs, timeout=5, raise_error=True)
    assert [job.value for job in jobs] == [5] * 10
    assert ticks.seen > 10, "the streams stop the loop"
    task = Task.create(Message.user("slow 100 0.1"))
    with client.send_task_streaming(peer.url, task) as stream:
        next(stream)
    assert not own_threads()


def _ended_by(error: type[BaseException], **words: object) -> None:
    try:
        ask(client, "wait 20", **words)
    except error:
        pass
    else:
        raise AssertionError("the call was not ended")


def ends() -> None:
    """End calls by token, by budget, by ``gevent.Timeout`` and by killing their greenlet."""
    ask(client, "echo warm")
    token = CancelToken()
    gevent.spawn_later(0.2, token.cancel)
    _ended_by(CallCancelledError, cancel=token)
    _ended_by(TransportTimeoutError, timeout=0.3)
    limit = gevent.Timeout(0.2)
    with limit:
        _ended_by(gevent.Timeout)
    job = gevent.spawn(ask, client, "wait 20")
    gevent.sleep(0.2)
    job.kill(timeout=1)
    assert job.ready(), "the greenlet lives on"
    assert client.transport.metrics.active_requests == 0
    assert ask(client, "echo after") == "after"


if __name__ == "__main__":
    with gevent.Timeout(20, AssertionError("it hangs")):
        for part in (overlap, streams, ends):
            part()
    client.transport.close()
    print("well")
