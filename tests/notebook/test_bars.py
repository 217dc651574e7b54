"""Bars: in a real terminal, in none, in a notebook's cell, and without the library."""

from __future__ import annotations

import operator
import os
import subprocess
import sys

import pytest

from protolink_sync import AgentCard, AgentClient, Task
from protolink_sync.server import Agent
from tests.processes.packages import posix

PROGRAM = """
from protolink_sync import AgentCard, AgentClient, Task
from protolink_sync.server import Agent

class Guide(Agent):
    def handle_task_streaming(self, task):
        odd = task.messages[-1].parts[0].content["prompt"] == "0"
        for percent in (True, "half", None) if odd else (25, True, "half", 75):
            yield {"type": "task_progress", "progress": percent, "message": "on it"}
        yield from super().handle_task_streaming(task)

guide = Guide(AgentCard("guide", "for tests", "runtime://guide"))

@guide.infer
def answer(prompt):
    yield from ("To ", prompt)

tasks = [Task.create_infer(prompt=str(n)) for n in range(7)]
with guide.serve("runtime://guide"), AgentClient("runtime") as client:
"""


SHOW = """
with client.send_task_streaming('runtime://guide', tasks[3]) as stream:
    stream.show()
"""


def run(body, *, terminal=("stderr",)):
    """Run a program whose outputs are a terminal or a pipe; return both."""
    lead, follow = os.openpty()
    outputs = {
        name: follow if name in terminal else subprocess.PIPE for name in ("stdout", "stderr")
    }
    program = PROGRAM + "".join(f"    {line}\n" for line in body.splitlines())
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.DEVNULL,
        env=environment | {"TERM": "xterm", "COLUMNS": "100"},
        **outputs,
    )
    os.close(follow)
    drawn = b""
    try:
        while piece := _read(lead):
            drawn += piece
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
        os.close(lead)
    assert process.returncode == 0, (drawn, err)
    return drawn.decode(), (out or b"").decode(), (err or b"").decode()


def _read(descriptor):
    try:
        return os.read(descriptor, 4096)
    except OSError:  # a terminal's other side is closed
        return b""


@posix
def test_a_terminal_shows_a_bar_and_a_pipe_gets_what_the_program_prints():
    """rich would send it to the bar's output."""
    drawn, printed, _ = run(
        "for done in client.map(tasks, 'runtime://guide', progress=True):\n    print(done.text)"
    )

    assert "0/7" in drawn
    assert "7/7" in drawn
    assert "?" not in drawn.replace("\x1b[?25", "")  # how many there are is known from the first
    assert printed.splitlines() == [f"To {n}" for n in range(7)]
    assert drawn.rindex("\x1b[?25h") > drawn.rindex("\x1b[?25l")  # the cursor is there again


@posix
@pytest.mark.parametrize("leaving", ["break", "raise ValueError"])
def test_a_bar_that_is_left_gives_the_cursor_back(leaving):
    drawn, _, _ = run(
        "try:\n"
        "    for done in client.map(tasks, 'runtime://guide', progress=True):\n"
        f"        {leaving}\n"
        "except ValueError:\n"
        "    pass"
    )

    assert "/7" in drawn
    assert drawn.rindex("\x1b[?25h") > drawn.rindex("\x1b[?25l")


@posix
def test_a_file_gets_no_bar():
    _, printed, told = run(
        "print(len(list(client.map(tasks, 'runtime://guide', progress=True))))", terminal=()
    )

    assert (printed, told) == ("7\n", "")


@posix
def test_a_stream_shows_how_far_the_agent_is_until_it_answers():
    drawn, printed, _ = run(SHOW)

    assert "25/100" in drawn
    assert "75/100" in drawn
    assert printed == "To 3\nStream: completed\n"


@posix
def test_the_bar_of_a_stream_is_over_when_the_answer_begins():
    drawn, _, _ = run(
        SHOW,
        terminal=("stdout", "stderr"),
    )

    assert drawn.index("75/100") < drawn.rindex("\x1b[?25h") < drawn.index("To 3")
    assert "/100" not in drawn[drawn.index("To 3") :]


@posix
def test_what_is_no_number_draws_no_bar():
    drawn, _, _ = run(
        "with client.send_task_streaming('runtime://guide', tasks[0]) as stream:\n    stream.show()"
    )

    assert drawn == ""


@pytest.fixture
def parrot():
    agent = Agent(AgentCard("parrot", "for tests", "runtime://parrot-of-bars"))
    agent.infer(lambda prompt: prompt)
    with agent.serve("runtime://parrot-of-bars") as server, AgentClient("runtime") as client:
        yield client, server.url


def test_without_the_library_the_error_names_what_to_install(parrot, monkeypatch):
    client, url = parrot
    monkeypatch.setitem(sys.modules, "rich.console", None)

    with pytest.raises(ImportError, match=r"protolink-sync\[cli\]"):
        client.map([Task.create_infer(prompt="a")], url, progress=True)
    assert [done.text for done in client.map([Task.create_infer(prompt="a")], url)] == ["a"]


@posix
def test_without_the_library_a_stream_is_shown_all_the_same():
    _, printed, _ = run("import sys\nsys.modules['rich.console'] = None\n" + SHOW)

    assert printed == "To 3\nStream: completed\n"


def test_progress_is_a_bar_or_a_function(parrot):
    client, url = parrot
    tasks = [Task.create_infer(prompt="a")]

    for wrong in ("yes", 1, []):
        with pytest.raises(TypeError, match="progress is"):
            client.map(tasks, url, progress=wrong)
    assert len(list(client.map(tasks, url, progress=False))) == 1


def test_whoever_draws_a_bar_of_their_own_learns_how_many_are_left(parrot):
    client, url = parrot
    results = client.map([Task.create_infer(prompt="a") for _ in range(3)], url)

    assert operator.length_hint(results) == 3
    next(results)
    assert operator.length_hint(results) == 2
    assert len(list(results)) == 2
