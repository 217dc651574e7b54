"""The code in the documentation runs, and prints what the documentation says it prints.

A page is one program: its Python blocks run in order and share their names. On the page they call
an agent at ``http://localhost:8010``; here that is an agent of our own at another port. A block
with the class ``output`` holds what the program has printed since the last such block; ``...``
there stands for anything. A block that is a program of its own says why in a comment above it;
``test_docs_programs.py`` runs those::

    .. run alone: starts processes
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import doctest
import importlib
import io
import os
import pathlib
import pkgutil
import re
import runpy
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import pytest

import protolink_sync
from protolink_sync import AgentClient, AgentPeer, RegistryClient
from protolink_sync.server import Agent, AgentServer
from protolink_sync.transport import Transport, factory

ROOT = pathlib.Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.rst"))
ADDRESS = "http://localhost:8010"
# Pages whose code stands in notebook cells: it runs inside a running event loop.
IN_A_LOOP = {"howto/notebook.rst"}
# Pages that need more than the agent: test_docs_programs.py runs them.
ELSEWHERE = {
    f"howto/{name}.rst" for name in ("a2a", "hosting", "observe", "registry", "tls-and-proxies")
}

# What people come with.
SUBJECTS = [
    *("script", "Jupyter", "Flask", "Django", "Celery", "gunicorn", "gevent", "uWSGI", "asyncio"),
    *("TLS", "proxies", "auth", "timeouts", "cancelling", "retries", "idempotency", "testing"),
    *("calls", "protolink", "a2a-sdk"),
]

_DIRECTIVE = re.compile(r"^(?P<indent> *)\.\. code-block:: (?P<language>\S+)$")
_ALONE = re.compile(r"^ *\.\. run alone: (?P<reason>\S.*)$")
_FILE = re.compile(r"# (?:\S*/)?(?P<name>\w+)\.py\n")
_TYPES = re.compile(r"^ *\.\. types: (?P<code>[a-z-]+), (?P<reason>\S.*)$")
_OPTION = re.compile(r"^ *:(?P<name>[a-z-]+):(?P<value>.*)$")


# ---- pages into programs ------------------------------------------------------------------------


@attrs.frozen
class Block:
    """One literal block of a page."""

    language: str
    line: int
    text: str
    options: dict[str, str]
    alone: str | None
    # What a type checker says of it, for a reason that the page gives.
    types: str | None

    @property
    def is_output(self) -> bool:
        return "output" in self.options.get("class", "").split()

    @property
    def file(self) -> str | None:
        """The module that a block of another program is, by its first line, as ``# tasks.py``."""
        found = _FILE.match(self.text) if self.alone else None
        return found["name"] if found else None


def blocks(path: pathlib.Path) -> Iterator[Block]:
    """Yield the ``code-block`` directives of a page, in order."""
    lines = path.read_text(encoding="utf-8").splitlines()
    alone = types = None
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        found = _DIRECTIVE.match(line)
        if found is None:
            if line.strip():
                marks = [mark.match(line) for mark in (_ALONE, _TYPES)]
                if not any(marks):
                    alone = types = None
                alone = marks[0]["reason"] if marks[0] else alone
                types = marks[1]["code"] if marks[1] else types
            continue
        indent = len(found["indent"])
        options: dict[str, str] = {}
        while number < len(lines) and (option := _OPTION.match(lines[number])):
            options[option["name"]] = option["value"].strip()
            number += 1
        body = []
        first = number + 1
        while number < len(lines):
            text = lines[number]
            if text.strip() and len(text) - len(text.lstrip()) <= indent:
                break
            body.append(text)
            number += 1
        first += next((n for n, text in enumerate(body) if text.strip()), 0)
        code = textwrap.dedent("\n".join(body)).strip("\n") + "\n"
        yield Block(found["language"], first, code, options, alone, types)
        alone = types = None


def run_page(
    path: pathlib.Path,
    places: Mapping[str, str],
    *,
    in_a_loop: bool = False,
    names: dict[str, Any] | None = None,
) -> int:
    """Run the Python blocks of a page as one program and compare what it prints.

    Args:
        path: The page.
        places: What stands for an address of the page here.
        in_a_loop: Whether the code runs inside a running event loop.
        names: What holds the names of the program while it runs.

    Returns:
        How many blocks were run.
    """
    names = {} if names is None else names
    names["__name__"] = "page"
    printed = io.StringIO()
    last: Block | None = None
    count = 0

    async def cell(code: str) -> None:
        exec(code, names)

    try:
        for block in blocks(path):
            where = f"{path}, line {block.line}"
            if block.is_output and not (last and last.alone):
                said = there(printed.getvalue(), places)
                # Emptied, not replaced: the program may have kept it as its standard output.
                printed.seek(0)
                printed.truncate()
                assert matches(block.text, said), (
                    f"{where}: the page says\n{block.text}\nbut the program printed\n{said}"
                )
            if block.is_output or block.language == "python":
                last = block
            if block.language != "python":
                continue
            if block.alone is not None:
                ast.parse(block.text)
                continue
            # Empty lines before it: a traceback names the line of the page.
            source = "\n" * (block.line - 1) + here(block.text, places)
            code = compile(source, str(path), "exec")
            with contextlib.redirect_stdout(printed):
                if in_a_loop:
                    asyncio.run(cell(code))
                else:
                    exec(code, names)
            count += 1
    finally:
        for value in list(names.values()):
            if isinstance(value, (AgentClient, AgentPeer, AgentServer, RegistryClient, Transport)):
                value.close()
    return count


def here(text: str, places: Mapping[str, str]) -> str:
    """Return a text of a page with the addresses that stand for its own."""
    for address, place in places.items():
        text = text.replace(address, place)
    return text


def there(text: str, places: Mapping[str, str]) -> str:
    """Return a text with the addresses of the page."""
    return here(text, {place: address for address, place in places.items()})


def matches(expected: str, printed: str) -> bool:
    """Return whether a text is what a page says: ``...`` is anything, and lines may wrap."""
    pieces = " ".join(expected.split()).split("...")
    pattern = ".*?".join(re.escape(piece) for piece in pieces)
    return re.fullmatch(pattern, " ".join(printed.split()), re.DOTALL) is not None


# ---- what the pages call ------------------------------------------------------------------------


def kitchen() -> Agent:
    """Return the agent of ``examples/kitchen.py``, which readers are told to serve."""
    return runpy.run_path(str(ROOT / "examples" / "kitchen.py"))["kitchen"]()


@contextlib.contextmanager
def served(monkeypatch: pytest.MonkeyPatch, folder: pathlib.Path) -> Iterator[str]:
    """Serve that agent in an empty folder, in an environment without proxies; yield its address."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(factory, "_registered", {})  # one page registers a transport of its own
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    with kitchen().serve("http://127.0.0.1:0", a2a=True) as server:
        yield server.url


@pytest.fixture
def run(monkeypatch, tmp_path) -> Iterator[Callable[..., int]]:
    """Run a page against an agent that is served for it: ``run(page, {address: place}, ...)``."""
    with served(monkeypatch, tmp_path) as url:
        yield lambda path, places=(), **options: run_page(
            path, {ADDRESS: url, **dict(places)}, **options
        )


# ---- tests --------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ELSEWHERE])
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(page, run):
    run(DOCS / page, in_a_loop=page in IN_A_LOOP)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_no_place_of_this_machine_and_no_host_of_packages(page):
    text = (DOCS / page).read_text(encoding="utf-8")

    assert re.findall(r"/(?:work|root|home|tmp)/\S*|pypi\.\S+", text) == []


def test_a_block_that_prints_something_else_is_found(tmp_path, run):
    page = tmp_path / "page.rst"
    page.write_text(
        ".. code-block:: python\n\n   print(1)\n\n.. code-block:: text\n   :class: output\n\n   2\n"
    )

    with pytest.raises(AssertionError, match="line 8"):
        run(page)


def test_a_block_that_fails_is_found_with_its_line(tmp_path, run):
    page = tmp_path / "page.rst"
    page.write_text("Text.\n\n.. code-block:: python\n\n   1 / 0\n")

    with pytest.raises(ZeroDivisionError) as caught:
        run(page)

    assert caught.traceback[-1].lineno == 4  # counted from 0


def test_a_block_that_is_run_alone_must_be_python(tmp_path, run):
    page = tmp_path / "page.rst"
    page.write_text(".. run alone: a reason\n\n.. code-block:: python\n\n   def\n")

    with pytest.raises(SyntaxError):
        run(page)


def test_a_block_that_is_run_alone_has_no_part_in_the_program_of_its_page(tmp_path, run):
    page = tmp_path / "page.rst"
    text = (
        ".. code-block:: python\n\n   print(1)\n\n"
        ".. run alone: a reason\n\n.. code-block:: python\n\n   # a.py\n   print(2)\n\n"
        ".. code-block:: text\n   :class: output\n\n   2\n\n"
        ".. code-block:: text\n   :class: output\n\n   {}\n"
    )

    page.write_text(text.format(1))
    assert run(page) == 1
    assert [block.file for block in blocks(page)] == [None, "a", None, None]

    page.write_text(text.format(3))
    with pytest.raises(AssertionError, match="line 20"):
        run(page)


def test_every_page_can_be_reached_from_the_index():
    entries = {"index"}
    for page in PAGES:
        folder = pathlib.PurePosixPath(page).parent
        for tree in re.findall(
            r"\.\. toctree::\n(?: +:.*\n)*\n((?: +\S.*\n)+)", (DOCS / page).read_text("utf-8")
        ):
            entries.update(str(folder / entry.strip()) for entry in tree.splitlines())

    assert {page.removesuffix(".rst") for page in PAGES} - entries == set()


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_subject_is_found_in_the_index_of_the_how_tos(subject):
    """With a page or a section behind it: a link that leads nowhere fails the build."""
    rows = (DOCS / "howto" / "index.rst").read_text("utf-8").splitlines()

    found = [row for row in rows if re.search(rf"\b{subject}\b", row[:31])]
    assert len(found) >= 1
    assert all(":doc:`" in row or ":ref:`" in row for row in found)


def test_the_tutorial_has_five_steps_one_after_the_other():
    steps = re.findall(r"^   (tutorial/\S+)$", (DOCS / "index.rst").read_text("utf-8"), re.M)

    assert len(steps) == 5
    for number, (page, following) in enumerate(
        zip(steps, [*steps[1:], "howto/a2a"], strict=True), 1
    ):
        text = (DOCS / f"{page}.rst").read_text("utf-8")
        assert text.startswith(f"Step {number}: ")
        target = following if number == 5 else following.removeprefix("tutorial/")
        assert text.rstrip().endswith(f":doc:`{'/' * (number == 5)}{target}`.")


MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(protolink_sync.__path__, "protolink_sync.")
    if not module.name.endswith("__main__")
)


@pytest.mark.parametrize("name", ["protolink_sync", *MODULES])
def test_the_examples_in_the_docstrings_of_a_module_hold(name):
    result = doctest.testmod(importlib.import_module(name))

    assert result.failed == 0
