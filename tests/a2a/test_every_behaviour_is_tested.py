"""Each behaviour of wire/a2a.md has a test that is named after it.

A number without one fails here: what nothing tries is not promised. Signatures (B69 to B72) and
the other bindings (B76 to B82) are not part of the client yet.
"""

from __future__ import annotations

import ast
import pathlib
import re

BEHAVIOURS = [*range(1, 69), *range(73, 76), *range(83, 115)]

_HERE = pathlib.Path(__file__).parent
_NAMED = re.compile(r"test_b(\d+)_")


def names_in(source: str) -> list[str]:
    """Return the names of the tests in a file's text."""
    return [
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def behaviours_of(names: list[str]) -> set[int]:
    """Return the numbers that the names say."""
    return {int(match[1]) for name in names if (match := _NAMED.match(name))}


def test_each_number_has_a_test():
    files = sorted(_HERE.rglob("test_*.py"))
    names = [name for file in files for name in names_in(file.read_text(encoding="utf-8"))]

    missing = sorted(set(BEHAVIOURS) - behaviours_of(names))

    assert missing == []


def test_no_test_is_named_after_a_number_that_is_none():
    files = sorted(_HERE.rglob("test_*.py"))
    names = [name for file in files for name in names_in(file.read_text(encoding="utf-8"))]

    assert behaviours_of(names) - set(BEHAVIOURS) <= set(range(69, 83))


def test_a_number_is_read_from_the_name_of_a_test_alone():
    source = "def test_b7_x(): pass\ndef b8_x(): pass\n# test_b9_x\n'test_b10_x'\n"

    assert behaviours_of(names_in(source)) == {7}
