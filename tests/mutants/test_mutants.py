"""A few dozen changes are noticed; all of them are tried by ``python -m tests.mutants``."""

from __future__ import annotations

import ast
import json
import os
import pathlib
import re
import subprocess
import sys

import attrs
import pytest

from tests.mutants.mutations import mutations
from tests.mutants.survivors import outdated, why_it_may_survive
from tests.mutants.targets import Target, modules

CHECKOUT = pathlib.Path(__file__).parents[2]
SURVIVORS = pathlib.Path(__file__).with_name("survivors.json")

SAMPLE_TESTS = (
    "tests/transport/test_retry_decision.py",
    "tests/wire/test_envelope_words.py",
    "tests/wire/test_envelope.py",
    "tests/a2a/wire/test_origins.py",
    "tests/a2a/wire/test_selection.py",
    "tests/a2a/wire/test_agent_card.py",
)

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="each change is tried in a fork")


def texts(source: str) -> list[str]:
    return [change.text for change in mutations(ast.parse(source))]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b", ["a < b -> a <= b", "a < b -> a >= b"]),
        ("x = a is None and b", ["a is None and b -> b", "a is None and b -> a is None"]),
        ("x = not a", ["not a -> a"]),
        ("x = a + 1", ["a + 1 -> a - 1", "1 -> 2"]),
        ("x = 'id'", ["'id' -> 'XXidXX'"]),
        ("x = b if a else c", ["b if a else c -> b", "b if a else c -> c"]),
        ("x = f(a, b=c)", ["f(b=c) -> f()"]),
        ("x = a.strip()", ["a.strip -> a.lstrip"]),
        ("f(a)", ["f(a) -> pass"]),
        ("self.a = b", ["self.a = b -> pass"]),
        ("raise E('it went wrong', url)", ["raise E('it went wrong', url) -> pass"]),
        ("def f():\n    return a", ["return a -> return None"]),
        ("if a:\n    f(b)", ["a -> False", "a -> True", "f(b) -> pass"]),
        ("while a:\n    break", ["a -> False", "break -> continue"]),
        (
            "try:\n    f()\nexcept E:\n    b = 1",
            ["f() -> pass", "except E: ... -> raise", "1 -> 2"],
        ),
    ],
)
def test_what_a_change_can_be(source, expected):
    found = texts(source)

    assert [text for text in expected if text not in found] == []


@pytest.mark.parametrize(
    "source",
    [
        "import a",
        "'''A docstring.'''",
        "x: list[int]",
        "def f(a: 'int') -> 'str': ...",
        "if TYPE_CHECKING:\n    x = 1",
        "_log.debug('%s', 1)",
        "__all__ = ['a']",
    ],
)
def test_what_changes_nothing_is_left_alone(source):
    assert texts(source) == []


def test_a_change_that_comes_twice_in_a_function_has_a_number():
    """Or the list of survivors could not tell them apart."""
    assert texts("x = f(1, 1)") == ["1 -> 2", "1 -> 2 #2"]


def test_the_code_of_a_change_is_that_of_the_module_but_for_the_change():
    target = Target.read("models/_paths.py")
    whole = compile(target.tree, target.file, "exec", dont_inherit=True)

    changed = target.changed(0)

    assert changed.co_filename == whole.co_filename
    assert changed != whole


def test_what_may_survive_has_a_reason():
    for module, examined in json.loads(SURVIVORS.read_text("utf-8")).items():
        assert module in modules()
        for one in examined:
            assert set(one) == {"line", "inside", "change", "why"}
            assert len(one["why"]) > 20
            assert why_it_may_survive(module, one["inside"], one["change"]) == one["why"]


def test_a_reason_whose_code_is_gone_is_told():
    """It would be believed of other code some day."""
    target = Target.read("wire/envelope.py")
    whole = outdated([target])

    told = outdated([attrs.evolve(target, changes=[])])

    assert set(whole) < set(told)
    assert {one[0] for one in told} == {"wire/envelope.py"}


def tried(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.mutants", *words],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=110,
    )


@needs_fork
def test_a_sample_of_changes_is_noticed():
    done = tried("transport/_retry.py", "wire/envelope.py", "a2a/wire/card.py",
                 "--sample", "16", "--seed", "3", "--tests", *SAMPLE_TESTS)  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\nall +48 ", done.stdout)


@needs_fork
def test_a_change_that_no_test_notices_is_told(tmp_path):
    """The tool could be blind: here the tests look at nothing."""
    blind = tmp_path / "test_blind.py"
    blind.write_text(
        "from protolink_sync.models._paths import join\n\n\ndef test_it():\n    join('$', 'a')\n"
    )

    done = tried("models/_paths.py", "--tests", str(blind), "--sample", "6")

    assert done.returncode == 1, done.stdout + done.stderr
    assert "survived  models/_paths.py" in done.stdout


@needs_fork
def test_a_change_of_what_runs_at_import_is_noticed(tmp_path):
    """The package is imported anew for it: a table that is read once would hide it."""
    looking = tmp_path / "test_looking.py"
    looking.write_text(
        "from protolink_sync.wire.request import TransportRequestContext\n\n\n"
        "def test_it():\n    assert TransportRequestContext('x', 'u', 'i').attempt == 1\n"
    )
    log = tmp_path / "log"

    tried("wire/request.py", "--tests", str(looking), "--log", str(log))

    ends = {tuple(line[2:4]): line[4] for line in map(json.loads, log.read_text().splitlines())}
    assert ends["TransportRequestContext", "1 -> 2"] == "import"
    assert ends["WireRequest", "'default' -> 'XXdefaultXX'"] == "survived"
