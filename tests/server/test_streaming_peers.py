"""Streams read by protolink 0.8.3's own client, and sent by WSGI servers that are not ours."""

from __future__ import annotations

import json
import os
import pathlib
import socket
import subprocess
import sys
import threading

import pytest

from protolink_sync import AgentClient
from protolink_sync.models import Task, TaskState
from protolink_sync.server import Agent
from tests.peers import peer_python
from tests.server.hosting import LIMIT, card, wait_until

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
WORKING = ["task_status_update", None, "working"]
COMPLETED = ["task_status_update", None, "completed"]
ARTIFACT = ["task_artifact_update", None, None]


@pytest.mark.peer
def test_the_client_of_the_peer_can_read_our_streams():
    agent = Agent(card())
    agent.heartbeat = 0.02
    left = threading.Event()
    pause = threading.Event()

    @agent.infer
    def answer(prompt):
        yield "you said "
        if prompt == "raise":
            raise RuntimeError("told")
        pause.wait(0.1)  # some heartbeats
        yield prompt

    @agent.tool
    def add(a: int, b: int) -> int:
        return a + b

    @agent.tool
    def wait():
        run = agent.current_run()
        while not run.cancelled:
            pause.wait(0.01)
        if run.reason == "the client left":
            left.set()

    @agent.tool
    def reason():
        """Wait until a client has left."""
        if not left.wait(LIMIT):
            raise RuntimeError("nobody left")

    with agent.serve("http://127.0.0.1:0") as server:
        run = subprocess.run(
            [peer_python(), "-P", str(HERE / "real_stream_client.py"), server.url],
            capture_output=True,
            text=True,
            timeout=60,
        )

    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout)
    words = "you said one \u2028\x85 two"
    assert said == {
        "streaming": True,
        "infer": [
            WORKING,
            ["task_llm_stream", "llm_chunk", "you said "],
            ["task_llm_stream", "llm_chunk", "one \u2028\x85 two"],
            ["task_llm_stream", "llm_final", words],
            ARTIFACT,
            COMPLETED,
        ],
        "task": ["completed", words],
        "tool": [WORKING, ["task_progress", None, None], ARTIFACT, COMPLETED],
        "raise": [
            WORKING,
            ["task_llm_stream", "llm_chunk", "you said "],
            ["TransportRemoteError", None, said["raise"][2][2]],
        ],
        "cancel": ["canceled", "canceled", "enough"],
        "left": "completed",
    }
    assert "told" in said["raise"][2][2]


HOSTED = """
import threading
from protolink_sync.models import AgentCard
from protolink_sync.server import Agent

class Hosted(Agent):
    heartbeat = 0.1
    left = threading.Event()
    pause = threading.Event()

    def handle_task(self, task):
        return task.complete(str(self.left.wait(20)))

    def handle_task_streaming(self, task):
        run = self.current_run()
        if task.messages[0].text == "wait":
            while not run.cancelled:
                self.pause.wait(0.01)
            if run.reason == "the client left":
                self.left.set()
        for n in range(20):
            yield {"n": n}
            self.pause.wait(0.01)
        return task.complete("done")

app = Hosted(AgentCard("hosted", "streams", "http://hosted.test")).wsgi_app()
"""
SERVERS = {
    "gunicorn": (
        "-m gunicorn --worker-class gthread --threads 4 --no-control-socket --log-level error "
        "--graceful-timeout 1 --timeout 2 --bind 127.0.0.1:PORT hosted:app"
    ),
    "waitress": "-m waitress --listen 127.0.0.1:PORT hosted:app",
    "werkzeug": "-m werkzeug_hosted PORT",
}
WERKZEUG = """
import sys
from werkzeug.serving import run_simple
from hosted import app
run_simple("127.0.0.1", int(sys.argv[1]), app, threaded=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", SERVERS)
def test_other_servers_stream(tmp_path, unused_port, name):
    (tmp_path / "hosted.py").write_text(HOSTED)
    (tmp_path / "werkzeug_hosted.py").write_text(WERKZEUG)
    port = unused_port()
    process = subprocess.Popen(
        [sys.executable, *SERVERS[name].replace("PORT", str(port)).split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: _answers(port), limit=30)
        check(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(15)


def check(url):
    with AgentClient("sse", url, timeout=20) as client:
        first, *events, last = client.send_task_streaming(url, Task.create("count"))
        assert first["new_state"] == "working"
        assert [event["n"] for event in events] == [*range(20)]
        assert last["new_state"] == "completed"

        waiting = Task.create("wait")
        stream = client.send_task_streaming(url, waiting)
        assert next(stream)["new_state"] == "working"  # while the handler is silent
        assert stream.cancel("enough").state is TaskState.CANCELED
        assert stream.result().metadata["cancel_reason"] == "enough"

        stream = client.send_task_streaming(url, Task.create("wait"))
        next(stream)
        stream.close()
        assert client.send_task(url, Task.create("has it left?")).text == "True"


def _answers(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
