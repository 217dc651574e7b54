"""The README is what people try first: its code runs, and its commands are there."""

from __future__ import annotations

import re

import pytest

from tests.test_docs import ROOT, blocks, run  # noqa: F401  (run is a fixture)

README = ROOT / "README.rst"
COMMANDS = [
    "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/protolink-sync demo",
    "python3 -m venv .venv && .venv/bin/pip install -e '.[test]' && .venv/bin/python -m pytest",
]


def test_the_code_runs_and_prints_what_the_readme_says(run):  # noqa: F811
    count = run(README)

    assert count == sum(block.language == "python" for block in blocks(README))


def test_the_first_block_needs_no_network():
    first = next(block for block in blocks(README) if block.language == "python")

    assert "runtime://" in first.text
    assert "http" not in first.text


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_stands_once_on_a_line_of_its_own(command):
    """.ci/run takes the commands from here."""
    lines = [line.strip() for line in README.read_text(encoding="utf-8").splitlines()]

    assert lines.count(command) == 1


def test_every_folder_and_file_that_is_named_is_there():
    text = README.read_text(encoding="utf-8")
    named = re.findall(r"``((?:docs|examples)/[\w/.-]*)``", text)

    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_readme_names_no_place_of_this_machine():
    assert re.findall(r"/(?:work|root|home|tmp)/\S*", README.read_text(encoding="utf-8")) == []
