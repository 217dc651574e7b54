"""The clients of a2a-sdk 1.3.0 and protolink 0.8.3 call a hosted agent over A2A."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest

from protolink_sync.models import Message, Part
from protolink_sync.server import Agent
from tests.peers import peer_python
from tests.server.a2a_calling import A2ACaller, message, state
from tests.server.hosting import card, wait_until
from tests.server.test_wsgi import GUNICORN, ROOT, _answers

HERE = pathlib.Path(__file__).parent
SDK, PROTOLINK = HERE / "a2a_sdk_client.py", HERE / "a2a_protolink_client.py"

BY_SDK = {
    "unary": ["TASK_STATE_COMPLETED", ["hello big world"], 1],
    "get": ["TASK_STATE_COMPLETED", ["hello big world"], 0],
    "list": True,
    "asked": ["TASK_STATE_INPUT_REQUIRED", "which city?"],
    "done": ["TASK_STATE_COMPLETED", 3, True],
    "errors": ["TaskNotFoundError", "TaskNotCancelableError", "ContentTypeNotSupportedError"],
    "kinds": ["task", "status_update", *["artifact_update"] * 4, "status_update"],
    "pieces": ["one", " two", " three", ""],
    "append": [False, True, True, True],
    "stream end": "TASK_STATE_COMPLETED",
    "subscribed": True,
    "canceled": "TASK_STATE_CANCELED",
    "ends": ["TASK_STATE_CANCELED", "TASK_STATE_CANCELED"],
}
BY_PROTOLINK = {
    "card": ["kitchen", True],
    "task": ["completed", "hello big world", True],
    "remote": ["TASK_STATE_COMPLETED", True],
    "asked": ["input-required", "which city?"],
    "more": ["completed", True],
    "canceled": ["canceled", "enough"],
    "auto": ["completed", False],
}


def agent():
    """Says the prompt again, word by word; ``need`` asks back, ``wait`` waits to be cancelled."""
    hosted = Agent(card())
    pause = threading.Event()

    @hosted.infer
    def answer(prompt):
        if prompt == "need":
            asking = [Part.text("which city?"), Part.status("input-required")]
            return Message(role="agent", parts=asking)
        return words(prompt)

    def words(prompt):
        run = hosted.current_run()
        while prompt == "wait" and not run.cancelled:
            pause.wait(0.01)
        for number, word in enumerate(prompt.split()):
            yield f" {word}" if number else word

    return hosted


def run(program, url):
    done = subprocess.run(
        [peer_python(), "-P", str(program), url], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.peer
def test_the_client_of_a2a_sdk_can_call_us():
    with agent().serve("http://127.0.0.1:0", a2a=True) as server:
        assert run(SDK, server.url) == BY_SDK


@pytest.mark.peer
def test_the_client_of_protolink_can_call_us():
    with agent().serve("http://127.0.0.1:0", a2a=True) as server:
        assert run(PROTOLINK, server.url) == BY_PROTOLINK


HOSTED = """
from tests.server import test_a2a_real_clients

hosted = test_a2a_real_clients.agent()
hosted.card.url = "http://127.0.0.1:PORT"
app = hosted.wsgi_app(a2a=True)
"""
WERKZEUG = (
    "from werkzeug.serving import run_simple; from hosted import app; "
    "run_simple('127.0.0.1', PORT, app, threaded=True)"
)
SERVERS = {
    "gunicorn": ["-m", *GUNICORN.split(), "--bind", "127.0.0.1:PORT", "hosted:app"],
    "waitress": ["-m", "waitress", "--listen", "127.0.0.1:PORT", "hosted:app"],
    "werkzeug": ["-c", WERKZEUG],
}


@pytest.mark.peer
@pytest.mark.slow
@pytest.mark.parametrize("name", SERVERS)
def test_they_can_call_us_in_other_servers(tmp_path, unused_port, name):
    port = str(unused_port())
    (tmp_path / "hosted.py").write_text(HOSTED.replace("PORT", port))
    process = subprocess.Popen(
        [sys.executable, *(argument.replace("PORT", port) for argument in SERVERS[name])],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: _answers(int(port)), limit=30)
        url = f"http://127.0.0.1:{port}"
        assert run(SDK, url) == BY_SDK
        assert run(PROTOLINK, url) == BY_PROTOLINK
        _follow_again(url)
    finally:
        process.terminate()
        process.wait(15)


def _follow_again(url):
    """A client that leaves does not end the task (B49), in no server."""
    with A2ACaller(url) as caller:
        stream = caller.stream("SendStreamingMessage", message("wait"))
        id = next(stream)["task"]["id"]
        stream.close()
        stream.response.close()
        with caller.stream("SubscribeToTask", {"id": id}) as again:
            assert next(again)["task"]["id"] == id
            assert state(caller.result("CancelTask", {"id": id})) == "CANCELED"
            assert state(list(again)[-1]["statusUpdate"]) == "CANCELED"
