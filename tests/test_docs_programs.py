"""The code of the documentation that needs more than one agent, or a process of its own, runs too.

A page whose code calls more than one agent runs here with all of them. A page that changes its
process, by signals, logging or tracing, runs in one that ends with it. A block that is marked as
``run alone`` is a file: the files of a page are put into a folder, and one of them is started as
the page says, or imported by a program that stands here for the one that the page speaks of
(Celery, Django, Apache).
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest

from protolink_sync import AgentClient, RegistryClient, TLSConfig, TransportConnectionError
from protolink_sync.models import AgentCard
from tests.a2a.peers import sdk_agent
from tests.test_docs import (
    ADDRESS,
    DOCS,
    ELSEWHERE,
    PAGES,
    ROOT,
    Block,
    blocks,
    here,
    kitchen,
    matches,
    run,  # noqa: F401  (a fixture)
    served,
    there,
)

pytestmark = pytest.mark.slow

LIMIT = 40.0  # seconds for a program

# What uses the files of a page: a program for each that is not started itself.
USERS = {
    ("howto/processes.rst", "agents"): "",  # tasks.py imports it
    ("howto/processes.rst", "tasks"): """
        import tasks

        print(tasks.ask.apply(args=["Hello!"]).get())
    """,
    ("howto/processes.rst", "pool"): None,
    ("howto/processes.rst", "main"): """
        import main
        from gevent.monkey import is_module_patched

        from agents import client

        patched = is_module_patched("socket") and is_module_patched("threading")
        print(client.send_infer_task("Hello!", "http://localhost:8010").text if patched else "no")
    """,
    ("howto/wsgi.rst", "agents"): "",  # views.py imports it
    ("howto/wsgi.rst", "views"): """
        import django
        from django.conf import settings
        from django.test import Client
        from django.urls import path

        settings.configure(
            AGENT_URL="http://localhost:8010", ROOT_URLCONF="__main__", ALLOWED_HOSTS=["testserver"]
        )
        django.setup()

        from shop.views import ask

        urlpatterns = [path("ask", ask)]
        print(Client().post("/ask", {"question": "Hello!"}).json()["answer"])
    """,
    ("howto/mod-wsgi.rst", "wsgi"): """
        from wsgi import application

        begun = []
        environ = {"QUERY_STRING": "Hello!"}
        (body,) = application(environ, lambda status, headers: begun.append(status))
        print(body.decode() if begun == ["200 OK"] else begun)
    """,
    ("howto/many-calls.rst", "many"): None,
    ("howto/many-calls.rst", "cluster"): None,
}
# Where the files of a page are a package, as those of a Django application.
PACKAGES = {"howto/wsgi.rst": "shop"}

_RUN_PAGE = """
import json, pathlib, sys
from tests.test_docs import run_page
run_page(pathlib.Path(sys.argv[1]), json.loads(sys.argv[2]))
"""
_SHOW_LEVELS = """
import logging
print([logging.getLogger(name).getEffectiveLevel() for name in ("protolink_sync.client", "other")])
"""


# ---- addresses and processes --------------------------------------------------------------------


@pytest.fixture
def free_address(unused_port: Callable[[], int]) -> str:
    """An address at which nobody listens yet."""
    return f"http://127.0.0.1:{unused_port()}"


def until(condition: Callable[[], Any]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


@contextlib.contextmanager
def program(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Run Python in a process of its own, in the folder and the environment of the test."""
    process = subprocess.Popen(
        # A warning is an error here too, that of an unclosed socket included.
        [sys.executable, "-W", "error", *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.getcwd()])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            # With the processes that it started.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def printed_by(process: subprocess.Popen[str]) -> str:
    """Wait for the end of a program, which must be a good one, and return what it printed."""
    said, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, errors
    return said


@pytest.fixture
def url(monkeypatch, tmp_path) -> Iterator[str]:
    """The agent of the pages; the test is in an empty folder."""
    with served(monkeypatch, tmp_path) as address:
        yield address


# ---- pages with more than one agent -------------------------------------------------------------


def test_the_page_about_registries_runs_with_a_registry(run, url, start_peer, free_address):  # noqa: F811
    registry_url, own_url = start_peer("registry").url, free_address
    names: dict[str, Any] = {}
    seen: list[AgentCard] = []
    over = threading.Event()

    def end_it() -> None:
        """Wait for the page's agent to be entered, and close its server."""
        end = time.monotonic() + LIMIT
        with RegistryClient("http", url=registry_url) as registry:
            while not seen and time.monotonic() < end and not over.wait(0.02):
                seen.extend(registry.discover({"tags": "fun"}))
        if "server" in names:
            names["server"].close()

    ending = threading.Thread(target=end_it)
    with RegistryClient("http", url=registry_url) as registry:
        registry.register(AgentCard("weather", "tells the weather", url, tags=["weather"]))
        ending.start()
        try:
            run(
                DOCS / "howto" / "registry.rst",
                {
                    ADDRESS: url,
                    "http://localhost:9000": registry_url,
                    "http://agents.example.com:8010": own_url,
                },
                names=names,
            )
        finally:
            over.set()
            ending.join()
        left = registry.discover()

    assert [card.url for card in seen] == [own_url]
    assert [card.name for card in left] == ["weather"]


def test_the_page_about_tls_runs_with_certificates(run, tls_files):  # noqa: F811
    folder = pathlib.Path("certs")
    folder.mkdir()
    for path in attrs.astuple(tls_files):
        shutil.copy(path, folder)
    own = {"certfile": tls_files.server_cert, "keyfile": tls_files.server_key}
    guard = TLSConfig(**own, cafile=tls_files.ca, require_client_cert=True)

    with (
        kitchen().serve("https://127.0.0.1:0", tls=TLSConfig(**own)) as agent,
        kitchen().serve("https://127.0.0.1:0", tls=guard) as guarded,
    ):
        run(
            DOCS / "howto" / "tls-and-proxies.rst",
            {
                "https://agent.internal:8443": agent.url,
                "https://guarded.internal:8443": guarded.url,
                "https://127.0.0.1:8443": "https://127.0.0.1:0",
            },
        )


@pytest.mark.peer
def test_the_page_about_a2a_runs_with_an_agent_that_reports_events(run, free_address):  # noqa: F811
    with sdk_agent() as agent:
        run(
            DOCS / "howto" / "a2a.rst",
            {
                "http://localhost:9999": agent.url,
                # Nobody listens there; the agent must not look for another machine.
                "https://my.example/notifications": f"{free_address}/notifications",
            },
        )


# ---- pages in a process of their own ------------------------------------------------------------


def test_the_page_about_logs_and_traces_runs(url):
    page = DOCS / "howto" / "observe.rst"

    with program("-c", _RUN_PAGE + _SHOW_LEVELS, page, json.dumps({ADDRESS: url})) as process:
        assert printed_by(process) == f"{[logging.INFO, logging.WARNING]}\n"


def test_the_page_about_hosting_runs_and_its_server_ends_at_a_signal(url, free_address):
    page, own_url = DOCS / "howto" / "hosting.rst", free_address
    places = {ADDRESS: url, "http://127.0.0.1:8020": own_url}

    def answers() -> bool:
        assert process.poll() is None, process.communicate()
        with contextlib.suppress(TransportConnectionError), AgentClient("http") as client:
            return client.send_infer_task("Faust?", own_url).text == "Somebody asks: Faust?"
        return False

    with program("-c", _RUN_PAGE, page, json.dumps(places)) as process:
        until(answers)
        process.send_signal(signal.SIGTERM)
        printed_by(process)


# ---- files --------------------------------------------------------------------------------------


def files_of(page: str) -> list[tuple[Block, str | None]]:
    """Return the files that a page shows, each with what the page says that it prints."""
    found: list[tuple[Block, str | None]] = []
    last: Block | None = None
    for block in blocks(DOCS / page):
        if block.alone:
            found.append((block, None))
        elif block.is_output and last and last.alone:
            found[-1] = (last, block.text)
        if block.language == "python" or block.is_output:
            last = block
    return found


@pytest.mark.parametrize(("page", "name"), USERS)
def test_a_file_of_a_page_does_what_the_page_says(page, name, url, tmp_path, monkeypatch):
    monkeypatch.setenv("AGENT_TOKEN", "a token")
    folder = tmp_path / PACKAGES.get(page, ".")
    folder.mkdir(exist_ok=True)
    for block, _ in files_of(page):
        (folder / f"{block.file}.py").write_text(here(block.text, {ADDRESS: url}), "utf-8")
    expected = next(said for block, said in files_of(page) if block.file == name)
    user = USERS[page, name]
    if user:
        (tmp_path / "user.py").write_text(here(textwrap.dedent(user), {ADDRESS: url}), "utf-8")
        expected = "You asked: Hello!"

    with program("user.py" if user else folder / f"{name}.py") as process:
        printed = there(printed_by(process), {ADDRESS: url})

    assert matches(expected or "", printed), printed


# ---- all are run --------------------------------------------------------------------------------


def test_every_file_of_a_page_is_run():
    assert {(page, block.file) for page in PAGES for block, _ in files_of(page)} == set(USERS)


def test_every_page_that_is_run_elsewhere_is_run_here():
    text = pathlib.Path(__file__).read_text("utf-8")

    assert [page for page in ELSEWHERE if f'"{pathlib.Path(page).name}"' not in text] == []
