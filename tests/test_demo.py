"""The command ``protolink-sync demo``."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import pytest

from protolink_sync.cli import main

LIMIT = 60


def run(*arguments):
    command = [sys.executable, "-m", "protolink_sync", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)


def test_demo_shows_answers_times_and_connections(capsys):
    assert main(["demo", "--tasks", "16"]) == 0

    shown = capsys.readouterr().out
    assert re.search(r"What is 6 x 7\? +-> You asked: .* ms\n", shown)
    assert re.search(r"multiply\(a=6, b=7\) +-> 42 .* ms\n", shown)
    assert re.search(r"16 tasks in a row .* each, 1 connection\n", shown)
    assert re.search(r"8 threads x 2 tasks .* each, [1-8] connections?\n", shown)


def test_demo_runs_as_a_module():
    done = run("demo", "--tasks", "8")

    assert (done.returncode, done.stderr) == (0, "")
    assert "1 connection" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "COMMAND"),
        (("dance",), "'demo'"),
        (("demo", "--tasks", "0"), "from 1 to 100000"),
        (("demo", "--tasks", "x"), "--tasks"),
        (("demo", "--loud"), "--loud"),
    ],
)
def test_wrong_arguments_are_explained(arguments, words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("usage: protolink-sync")
    assert words in error


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])

    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("protolink-sync ")


@pytest.mark.skipif(os.name == "nt", reason="no such signal")
def test_ctrl_c_ends_with_130():
    command = [sys.executable, "-m", "protolink_sync", "demo", "--tasks", "100000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LIMIT)

    assert process.returncode == 130
    assert errors == b"interrupted\n"
