"""protolink 0.8.3's own client calls a hosted agent."""

from __future__ import annotations

import json
import pathlib
import subprocess
import threading

import pytest

from protolink_sync.server import Agent
from tests.peers import peer_python
from tests.server.hosting import card

PROGRAM = pathlib.Path(__file__).with_name("real_client.py")


@pytest.mark.peer
def test_the_clients_of_the_peer_can_call_us():
    agent = Agent(card())
    pause = threading.Event()

    @agent.infer
    def answer(prompt):
        if prompt == "raise":
            raise RuntimeError("not told")
        return f"you said {prompt}"

    @agent.tool
    def add(a: int, b: int) -> int:
        """Add two integers."""
        return a + b

    @agent.tool
    def wait():
        """Wait to be cancelled."""
        run = agent.current_run()
        while not run.cancelled:
            pause.wait(0.01)

    with agent.serve("http://127.0.0.1:0") as server:
        run = subprocess.run(
            [peer_python(), "-P", str(PROGRAM), server.url],
            capture_output=True,
            text=True,
            timeout=60,
        )

        assert run.returncode == 0, run.stderr
        assert json.loads(run.stdout) == {
            "card": ["kitchen", server.url, ["add", "wait"]],
            "infer": ["completed", "you said hello"],
            "tool": ["completed", 5],
            "unknown": ["failed", "Tool 'nope' not found"],
            "peer": ["you said again", 2],
            "cancel": ["canceled", "canceled", "enough"],
            "raise": ["TransportRemoteError", 500],
            "inert": True,
            "describe": ["conversation", True, True],
            "history": [2, 1],
            "compact": ["conversation"],
            "reset": ["conversation"],
        }
