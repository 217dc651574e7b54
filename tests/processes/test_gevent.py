"""One client shared by greenlets, where gevent has replaced threads and sockets."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time

import pytest

from tests.cases.play import Play
from tests.cases.test_set_ups import the_case
from tests.processes.calls import LIMIT, ROOT, Peer, output_of
from tests.processes.packages import needs

pytestmark = [pytest.mark.slow, needs("gevent")]


@pytest.mark.parametrize(
    ("wire", "when"),
    [
        ("sse", "first"),
        ("sse+tls", "first"),
        ("wss", "first"),
        ("grpc", "first"),
        ("sse+tls", "late"),
        ("ws", "late"),
        ("grpc", "late"),
    ],
)
def test_greenlets_share_a_client_and_never_stop_each_other(wire, when, counted_peer):
    """Calls and streams overlap, and end by token, budget, ``gevent.Timeout`` and kill."""
    peer, _ = counted_peer(wire)

    assert output_of("greenlets", peer, when) == ["well"]


SHARED = """
    from gevent import monkey; monkey.patch_all()
    import sys, gevent
    from protolink_sync import AgentClient, Task
    from protolink_sync.models import Message

    client = AgentClient("http")
    jobs = [
        gevent.spawn(client.send_task, sys.argv[1], Task.create(Message.user("hi")))
        for _ in range(50)
    ]
    gevent.joinall(jobs, raise_error=True)
    client.close()
    print(sum(job.value.text == "done" for job in jobs))
"""


def test_C186_many_greenlets_share_one_client():
    case = the_case("C186", outcome="returns", count_calls=50, max_s=4)
    with Play(case) as play:
        began = time.monotonic()
        run = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(SHARED), play.base],
            env=Peer("http", play.base).environment(),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )

        assert run.stdout == "50\n", run.stderr
        assert len(play.server.requests) == case.checks["count_calls"]
        assert time.monotonic() - began < case.checks["max_s"]
