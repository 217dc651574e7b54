"""Each example starts its own peer, prints a result and ends by itself."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
FOLDER = ROOT / "examples"

PRINTED = {
    "script.py": """
        clerk knows the opening hours
        completed: You asked 'When are you open?'. We are open from 9 to 5.
        open at 20: False
    """,
    "flask_app.py": """
        200 What shall I read? Read Faust.
        502 the agent cannot be asked
    """,
    "django_view.py": """
        a WSGI application: True
        200 What shall I read? Read Faust.
        502 the agent cannot be asked
    """,
    "celery_task.py": """
        What shall I read? Read Faust.
        What shall I read? Read Faust.
        the agent was asked 1 time
    """,
    "kitchen.py": """
        You asked: What's for dinner?
        1 + 2 = 3
    """,
    "wsgi_host.py": """
        adder adds numbers
        2 + 3 = 5
    """,
    "cancel_on_timeout.py": """
        caller: gave up in phase 'wait'
        agent: stopped (out of time)
        caller: the task is canceled
    """,
    "many_threads.py": """
        160 of 160 answers are right
        at most 16 connections: True
    """,
    "a2a_client.py": """
        waiter books tables, over A2A 1.0
        asked back: In which city?
        completed: A table is booked in Athens
        tasks of this agent: 1
    """,
    "a2a_stream.py": """
        line 1
        line 2
        line 3
        the task is completed
        the task is canceled
    """,
    "stream_progress.py": """
        [##        ]  25 %  weather
        [#####     ]  50 %  hotels
        [#######   ]  75 %  flights
        [##########] 100 %  food
        completed: a guide with 4 chapters
    """,
    "flask_stream.py": """
        data: "Sing, "

        data: "goddess, "

        data: "the "

        data: "anger "

        data: "of "

        data: "Achilles "

        event: end
        data: "completed"
        the agent has stopped: True
    """,
    "stream_cancel_on_timeout.py": """
        the task is canceled: out of time
        some of 100 pieces are done: True
    """,
    "notebook_cell.py": """
        a loop is running: True
        HELLO
        ONE TWO THREE
    """,
}


def test_every_example_is_run():
    assert {path.name for path in FOLDER.glob("*.py")} == set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_its_result_and_ends(name, tmp_path):
    proxies = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
    environment = {name: value for name, value in os.environ.items() if name.lower() not in proxies}
    # The source tree if it is here, else what is installed.
    environment["PYTHONPATH"] = str(ROOT)

    run = subprocess.run(
        # A warning is an error here too, that of an unclosed socket included.
        [sys.executable, "-W", "error", FOLDER / name],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert run.returncode == 0, run.stderr
    wanted = [line.strip() for line in PRINTED[name].strip().splitlines()]
    assert run.stdout.splitlines() == wanted
    # Flask and Django tell of the agent that is gone; nothing else has anything to say.
    assert [line for line in run.stderr.splitlines() if "cannot connect" not in line] == []
