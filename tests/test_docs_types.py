"""The code of the documentation, of the README and of the examples has the right types.

A page is one module. Its blocks stand in their lines, so an error names the line of the page. A
block that is run alone is a module of its own.
What a type checker says although the page is right stands above the block, with the reason::

    .. types: method-assign, Flask is wrapped this way
"""

from __future__ import annotations

import itertools
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

import attrs
import pytest

from tests.test_docs import DOCS, ROOT, Block, blocks

pytestmark = pytest.mark.slow

SETTINGS = """
[mypy]
python_version = 3.10
check_untyped_defs = True
# The library itself is checked elsewhere, and more strictly.
follow_imports = silent
# Celery, Django, Dask and gevent have no types, or in packages of their own.
ignore_missing_imports = True
# A page goes on from one small program to the next and uses the same words.
allow_redefinition = True
"""

_SAID = re.compile(r"^(?P<file>[^:]+):(?P<line>\d+): error: (?P<what>.*)  \[(?P<code>[\w-]+)\]$")


@attrs.frozen
class Module:
    """One module of a page."""

    page: pathlib.Path
    name: str
    blocks: list[Block]

    def source(self) -> str:
        """Return its code, each line where it stands on the page."""
        lines: list[str] = []
        for block in self.blocks:
            lines += [""] * (block.line - 1 - len(lines)) + block.text.splitlines()
        return "\n".join(lines) + "\n"

    def expected(self) -> set[tuple[int, str]]:
        """Return the blocks of which something is said, by their lines."""
        return {(block.line, block.types) for block in self.blocks if block.types}

    def block_at(self, line: int) -> int:
        """Return the line in which the block with this line begins."""
        return max(block.line for block in self.blocks if block.line <= line)


def modules(page: pathlib.Path) -> Iterator[Module]:
    """Yield the modules of a page."""
    stem = f"{page.parent.name}_{page.stem}".replace("-", "_")
    own: list[Block] = []
    for block in blocks(page):
        if block.language != "python":
            continue
        if block.file:
            yield Module(page, f"{stem}_{block.line}_{block.file}", [block])
        else:
            own.append(block)
    if own:
        yield Module(page, stem, own)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Where mypy keeps what it knows of the library."""
    return tmp_path_factory.mktemp("mypy")


def said_of(found: list[Module], folder: pathlib.Path, cache: pathlib.Path) -> list[str]:
    """Return what mypy says of modules beyond what their pages expect, and what it does not say."""
    for module in found:
        (folder / f"{module.name}.py").write_text(module.source(), "utf-8")
    names = {f"{module.name}.py": module for module in found}
    expected = {(module.name, *place) for module in found for place in module.expected()}
    seen, wrong = set(), []
    for line in checked([folder / name for name in names], folder, cache):
        said = _SAID.match(line)
        module = names.get(pathlib.Path(said["file"]).name) if said else None
        if said is None or module is None:
            wrong.append(line)
            continue
        place = (module.name, module.block_at(int(said["line"])), said["code"])
        seen.add(place)
        if place not in expected:
            wrong.append(f"{module.page}, line {said['line']}: {said['what']} [{said['code']}]")
    return wrong + [f"{name}, line {line}: no {code}" for name, line, code in expected - seen]


def checked(paths: list[pathlib.Path], folder: pathlib.Path, cache: pathlib.Path) -> list[str]:
    """Return the errors that mypy finds in files."""
    settings = folder / "mypy.ini"
    settings.write_text(SETTINGS, "utf-8")
    run = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context"),
            *("--config-file", settings, "--cache-dir", cache, *paths),
        ],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert run.returncode in (0, 1), run.stderr + run.stdout
    return [line for line in run.stdout.splitlines() if ": note: " not in line]


def test_the_code_of_all_pages_has_the_right_types(tmp_path, cache):
    pages = [*sorted(DOCS.rglob("*.rst")), ROOT / "README.rst"]
    found = list(itertools.chain.from_iterable(map(modules, pages)))

    assert len(found) > 25
    assert said_of(found, tmp_path, cache) == []


def test_the_examples_have_the_right_types(tmp_path, cache):
    assert checked(sorted((ROOT / "examples").glob("*.py")), tmp_path, cache) == []


def test_a_wrong_type_and_one_that_is_not_there_any_more_are_found(tmp_path, cache):
    page = tmp_path / "page.rst"
    page.write_text(
        "One.\n\n.. code-block:: python\n\n   from protolink_sync import Task\n\n"
        "   Task.create_infer(prompt=5)\n\n"
        ".. types: assignment, it was so once\n\n.. code-block:: python\n\n   n = 1\n\n"
        ".. types: operator, on purpose\n\n.. code-block:: python\n\n   'a' + 1\n\n"
        ".. run alone: of another program\n\n.. code-block:: python\n\n   # other.py\n   n.x\n"
    )

    wrong = said_of(list(modules(page)), tmp_path, cache)

    assert len(wrong) == 3, wrong
    assert any("line 7" in line and "[arg-type]" in line for line in wrong)
    assert any("line 26" in line and "[name-defined]" in line for line in wrong)
    assert any("no assignment" in line for line in wrong)
