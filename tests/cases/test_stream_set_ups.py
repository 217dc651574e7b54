"""Cases of streams that no byte script can set up; see test_set_ups.py."""

from __future__ import annotations

import contextlib
import contextvars
import logging
import subprocess
import sys
import threading
import time

import pytest

from protolink_sync.errors import TransportRemoteError
from tests.cases.checks import run_checks
from tests.cases.play import Play, environment, new_task
from tests.cases.server import ScriptedServer
from tests.cases.test_set_ups import LIMIT, ROOT, the_case

LEFT_UNREAD = """
import sys
from protolink_sync.client import AgentClient
from protolink_sync.models import Message, Task

stream = AgentClient("sse").send_task_streaming(sys.argv[1], Task.create(Message.user("hi")))
next(stream)
"""


def run_script(play: Play, text: str, *options: str) -> None:
    """Run a script to its end as the play's process and only call."""
    with environment(PYTHONPATH=ROOT):
        play.call(
            lambda: subprocess.run(
                [sys.executable, *options, "-c", text, play.base],
                capture_output=True,
                text=True,
                timeout=LIMIT,
                check=False,
            )
        )
    play.process = play.result


def test_C167_interpreter_exit_with_an_unread_stream():
    case = the_case("C167", max_s=5, exit_code=0, stderr_empty=True)
    with Play(case) as play:
        run_script(play, LEFT_UNREAD)

        run_checks(play)


FAILED = '{"id":"{{req_id}}","ok":false,"error":{"message":"model died"},"final":true}'
FAILING = {
    "routes": {
        "POST /tasks/stream": [
            [
                {"op": "sse_head"},
                {"op": "chunk", "data": f"data: {FAILED}\n\n"},
                {"op": "end_chunks"},
            ]
        ]
    }
}


def test_C191_context_variables_reach_the_worker():
    case = the_case("C191", outcome="yields")
    tenant = contextvars.ContextVar("tenant", default="nobody")
    seen = {}

    class Handler(logging.Handler):
        def emit(self, record):
            seen.setdefault(threading.current_thread().name, set()).add(tenant.get())

    with Play(case) as play, ScriptedServer(FAILING) as failing, logged(Handler()):
        client = play.client("sse")
        token = tenant.set("tenant-123")
        try:
            play.stream(lambda: client.send_task_streaming(play.base, new_task()))
            # A worker has something to log when its stream fails.
            stream = client.send_task_streaming(failing.base, new_task())
            with pytest.raises(TransportRemoteError, match="model died"):
                list(stream)
        finally:
            tenant.reset(token)

        run_checks(play)
        connections = [*play.server.connections, *failing.connections]
        assert not any(b"tenant-123" in connection.received for connection in connections)
    workers = {name: values for name, values in seen.items() if name.startswith("protolink-stream")}
    assert list(workers.values()) == [{"tenant-123"}]


@contextlib.contextmanager
def logged(handler):
    """Give a handler what the library logs, at every level."""
    logger = logging.getLogger("protolink_sync")
    before = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


CLOSED = """
import gc, sys
from protolink_sync.client import AgentClient
from protolink_sync.models import Message, Task

def task():
    return Task.create(Message.user("hi"))

with AgentClient("sse") as client:
    client.send_task(sys.argv[1], task())
    list(client.send_task_streaming(sys.argv[1], task()))
    for event in client.send_task_streaming(sys.argv[1], task()):
        break
gc.collect()
print("closed", flush=True)
sys.stdin.read()
"""


def test_C215_no_resource_warning_after_close():
    case = the_case("C215", stderr_empty=True, peer_close_within_s=2)
    with Play(case) as play, environment(PYTHONPATH=ROOT):
        process = subprocess.Popen(
            [sys.executable, "-W", "error::ResourceWarning", "-c", CLOSED, play.base],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with process:
            try:
                assert process.stdout.readline() == "closed\n"
                closed = time.monotonic()
                # The process lives on: it is the library that closed them.
                for connection in play.server.connections:
                    assert play.server.wait_for_end(connection.number, 2) == "client"
                    assert connection.closed_at - closed <= case.checks["peer_close_within_s"]
                err = process.communicate(timeout=LIMIT)[1]
            finally:
                process.kill()

        assert [r.path for r in play.server.requests] == [
            "/tasks/",
            "/tasks/stream",
            "/tasks/stream",
        ]
    assert process.returncode == 0
    assert err == ""
