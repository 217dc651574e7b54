"""What is printed where an encoding, a closed output or a peer's words stand in the way."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest

from protolink_sync import AgentCapabilities, AgentCard, Task
from protolink_sync.cli import main
from protolink_sync.server import Agent
from tests.cases.play import reply
from tests.cases.server import ScriptedServer

LIMIT = 60

HALF = "half \ud83d"
SNOW = "caf\xe9 \u2603"

posix = pytest.mark.skipif(os.name == "nt", reason="no such shell, no such device")


class Parrot(Agent):
    """Says one thing, whatever it is asked."""

    def __init__(self, said: str) -> None:
        card = AgentCard("parrot", said, "http://127.0.0.1")
        card.capabilities = AgentCapabilities(streaming=True)
        super().__init__(card)

    def handle_task(self, task: Task) -> Task:
        return task.complete(self.card.description)


@pytest.fixture
def parrot(request):
    """Serve an agent that says something: ``parrot(text)`` is its address."""

    def start(said: str) -> str:
        server = Parrot(said).serve("http://127.0.0.1:0", a2a=True)
        request.addfinalizer(server.close)
        return server.url

    return start


def run(*words: str, shell: str = "", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process of its own; ``shell`` is what stands behind it."""
    command = [sys.executable, "-m", "protolink_sync", *words]
    if shell:
        command = ["bash", "-o", "pipefail", "-c", f'"$@" {shell}', "run", *command]
    return subprocess.run(
        command, capture_output=True, timeout=LIMIT, env={**os.environ, **environment}
    )


@pytest.fixture
def printed(monkeypatch):
    """Run a command here, with an output of an encoding: ``printed(encoding, ...)``."""

    def printed(encoding: str, *words: str) -> tuple[int, bytes, str]:
        out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        err = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="backslashreplace")
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        code = main(words)
        return code, out.buffer.getvalue(), err.buffer.getvalue().decode(encoding)

    return printed


COMMANDS = [("send", "{}", "?"), ("stream", "{}", "?"), ("a2a", "send", "{}", "?"), ("card", "{}")]


@pytest.mark.parametrize("words", COMMANDS[:3])
@pytest.mark.parametrize(
    ("said", "encoding", "shown"),
    [
        (HALF, "utf-8", b"half \\ud83d"),
        (SNOW, "ascii", b"caf\\xe9 \\u2603"),
        (SNOW, "latin-1", b"caf\xe9 \\u2603"),
        (SNOW, "utf-8", SNOW.encode()),
    ],
)
def test_what_an_output_cannot_show_is_shown_by_its_number(
    parrot, printed, words, said, encoding, shown
):
    """A text that came is not lost because of one character."""
    url = parrot(said)

    code, out, err = printed(encoding, *[word.format(url) for word in words])

    assert (code, "Error" in err) == (0, False)
    assert shown in out


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize(("said", "encoding"), [(HALF, "utf-8"), (SNOW, "ascii"), (SNOW, "utf-8")])
def test_json_is_json_in_every_encoding(parrot, printed, words, said, encoding):
    url = parrot(said)

    code, out, err = printed(encoding, *[word.format(url) for word in words], "--json")

    lines = [json.loads(line) for line in out.decode(encoding).splitlines()]
    assert (code, err) == (0, "")
    # Escaped only where it has to be.
    assert (SNOW.encode() in out) == (said == SNOW and encoding == "utf-8")
    assert said in json.dumps(lines, ensure_ascii=False)


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_whole_program_with_an_output_of_ascii(parrot, flags):
    done = run("send", parrot(SNOW), "?", *flags, PYTHONIOENCODING="ascii")

    assert (done.returncode, done.stderr) == (0, b"")
    assert (b"caf\\u00e9" if flags else b"caf\\xe9") in done.stdout


@posix
@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_nobody_reads_any_more(parrot, flags):
    done = run("send", parrot("x" * 200_000), "?", *flags, shell="| head -c 1")

    assert (done.returncode, len(done.stdout), done.stderr) == (1, 1, b"")


@posix
@pytest.mark.parametrize("flags", [[], ["--json"]])
@pytest.mark.parametrize(
    ("shell", "code"), [(">&-", 0), (">&- 2>&-", 0), ("2>&-", 0), (">/dev/full", 1)]
)
def test_an_output_that_is_closed_or_full(parrot, flags, shell, code):
    """Without an output there is nothing to print to; a full disk is a failure, not a success."""
    done = run("send", parrot("hello"), "?", *flags, shell=shell)

    assert done.returncode == code
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


@posix
def test_a_failure_is_told_by_its_code_where_nothing_can_be_printed():
    assert run("card", "http://127.0.0.1:1", shell=">&- 2>&-").returncode == 3


def test_what_a_peer_says_forges_no_line_of_a_report(parrot):
    done = run("doctor", parrot("d\n  ok      auth      forged\x1b[2J"))

    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0
    assert [line for line in lines if "forged" in line] == [
        line for line in lines if line.split()[:2] == ["ok", "card"]
    ]


def test_what_a_peer_says_forges_no_line_of_an_answer_or_a_note(printed):
    forged = "no\nforged\x1b[2J"
    routes = {
        "POST /tasks/cancel": [[reply(json.dumps({"id": "t", "state": forged}))]],
        "*": [
            [reply(json.dumps({"status": forged, "errors": [{"store": "a", "message": forged}]}))]
        ],
    }
    with ScriptedServer({"routes": routes}) as peer:
        told = printed("utf-8", "registry", "heartbeat", peer.base, "http://agent.test")
        canceled = printed("utf-8", "cancel", peer.base, "t")
        state = printed("utf-8", "state", peer.base)

    assert told[1] == b"no forged [2J\n"
    assert canceled[1] == b"t: no forged [2J\n"
    assert state[2] == "a: no forged [2J\n"
