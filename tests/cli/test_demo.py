"""The command ``protolink-sync demo``, with and without the extra."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import pytest

from protolink_sync.cli import main

LIMIT = 60

# As where the extra is not installed.
WITHOUT = """
import sys
sys.modules["click"] = sys.modules["rich"] = None
from protolink_sync.cli import main
sys.exit(main(sys.argv[1:]))
"""


def run(*arguments, extra=True):
    start = ["-m", "protolink_sync"] if extra else ["-c", WITHOUT]
    command = [sys.executable, *start, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)


def test_demo_shows_answers_times_and_connections(capsys):
    assert main(["demo", "--tasks", "16"]) == 0

    shown = capsys.readouterr().out
    assert re.search(r"What is 6 x 7\? +-> You asked: .* ms\n", shown)
    assert re.search(r"multiply\(a=6, b=7\) +-> 42 .* ms\n", shown)
    assert re.search(r"16 tasks in a row .* each, 1 connection\n", shown)
    assert re.search(r"8 threads x 2 tasks .* each, [1-8] connections?\n", shown)


@pytest.mark.parametrize("extra", [True, False])
def test_demo_runs_as_a_module(extra):
    done = run("demo", "--tasks", "8", extra=extra)

    assert (done.returncode, done.stderr) == (0, "")
    assert "1 connection" in done.stdout


@pytest.mark.parametrize("extra", [True, False])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "COMMAND"),
        (("dance",), "'dance'"),
        (("demo", "--tasks", "0"), "100000"),
        (("demo", "--tasks", "x"), "--tasks"),
        (("demo", "--loud"), "--loud"),
    ],
)
def test_wrong_arguments_are_explained(arguments, words, extra):
    done = run(*arguments, extra=extra)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.lower().startswith("usage: protolink-sync")
    assert words in done.stderr


def test_what_needs_the_extra_says_so_where_it_is_missing():
    done = run("send", "http://127.0.0.1:1", "hello", extra=False)

    assert done.returncode == 2
    assert "protolink-sync[cli]" in done.stderr
    assert "protolink-sync[cli]" in run("--help", extra=False).stdout


@pytest.mark.parametrize("extra", [True, False])
def test_version(extra):
    done = run("--version", extra=extra)

    assert done.returncode == 0
    assert done.stdout.startswith("protolink-sync ")


@pytest.mark.skipif(os.name == "nt", reason="no such signal")
def test_ctrl_c_ends_with_130():
    command = [sys.executable, "-m", "protolink_sync", "demo", "--tasks", "100000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LIMIT)

    assert process.returncode == 130
    assert errors.strip() == b"interrupted"
