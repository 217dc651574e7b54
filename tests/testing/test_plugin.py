"""The fixtures of the pytest plugin, in a test run of their own."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap

import protolink_sync

TESTS = """
    import pytest
    from protolink_sync import AgentClient, Task
    from protolink_sync.a2a import A2AClient
    from protolink_sync.transport import HTTPTransport

    @pytest.fixture
    def agent(fake_agent):
        return fake_agent("Faust")

    def test_a_fake(agent, fake_agent):
        assert agent.peer.invoke("?") == "Faust"
        assert fake_agent("Emma").peer.invoke("?") == "Emma"

    @pytest.mark.parametrize("word", ["a/b"])
    def test_recorded(recorded, word):
        client = AgentClient(recorded(HTTPTransport))
        assert client.send_task("URL", Task.create(f"echo {word}")).text == word

    def test_recorded_a2a(recorded):
        with A2AClient("URL") as client:
            recorded(client.transport)
            assert client.send_message("echo hi").text == "hi"
"""


def run(folder: pathlib.Path, *options: str) -> subprocess.CompletedProcess[str]:
    root = str(pathlib.Path(protolink_sync.__path__[0]).parent)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "protolink_sync.testing.plugin", "-p"]
    command += ["no:cacheprovider", *options]
    environment = {**os.environ, "PYTHONPATH": root, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("PYTEST_ADDOPTS", None)  # those of the run of this very test
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_fixtures_fake_record_and_play(tmp_path, shared_peer):
    url = shared_peer("http", "--a2a").url
    test = tmp_path / "test_mine.py"
    test.write_text(textwrap.dedent(TESTS.replace("URL", url)))

    first = run(tmp_path, "--protolink-record")
    # Played to an address where nobody answers.
    test.write_text(test.read_text().replace(url, "http://127.0.0.1:1"))
    second = run(tmp_path)

    assert first.returncode == 0, first.stdout
    assert second.returncode == 0, second.stdout
    assert sorted(file.name for file in (tmp_path / "recordings").iterdir()) == [
        "test_recorded_a2a.json",
        "test_recorded_a_b_.json",
    ]


def test_the_plugin_loads_nothing_that_a_test_run_may_not_need():
    program = "import sys, protolink_sync.testing.plugin; print(*sorted(sys.modules))"

    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    loaded = {name for name in run.stdout.split() if name.startswith("protolink_sync")}
    assert loaded <= {
        "protolink_sync",
        "protolink_sync._version",
        "protolink_sync.testing",
        "protolink_sync.testing.plugin",
    }
