"""One play of a case: its servers, its clients, the calls it makes and what came of them."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pathlib
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from protolink_sync.client import AgentClient
from protolink_sync.models import Message, Task
from protolink_sync.transport import get_transport
from tests.cases.server import ScriptedServer

_CASES_FILE = pathlib.Path(__file__).with_name("cases.json")
_PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@attrs.frozen
class Case:
    """One entry of cases.json."""

    id: str
    kind: str
    title: str
    input: dict[str, Any]
    expected: list[str]
    checks: dict[str, Any]
    spec: str
    notes: str

    @property
    def call(self) -> str:
        """What the caller does, in words."""
        return str(self.input["call"])


def load_cases() -> dict[str, Case]:
    """Return all cases by id, in the file's order."""
    document = json.loads(_CASES_FILE.read_text(encoding="utf-8"))
    cases = [Case(**entry) for entry in document["cases"]]
    assert len({case.id for case in cases}) == len(cases), "an id stands twice in cases.json"
    return {case.id: case for case in cases}


@attrs.define
class Call:
    """One call and its end: a value, events, or an error."""

    began: float
    ended: float = 0.0
    value: Any = None
    events: list[Any] | None = None
    """What a stream yielded; None when the call was no stream."""
    first_event_after: float | None = None
    error: Exception | None = None
    sent: Any = None
    """The task that was sent, where the rule keeps it."""


class Play:
    """Hold what a rule works with; leaving it closes the clients and stops the servers."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.calls: list[Call] = []
        """The calls the checks are about."""
        self.clients: list[AgentClient] = []
        self.prepared: list[Call] = []
        """Calls before them, which have returned."""
        self.descriptors_after_first: int | None = None
        self.log: list[logging.LogRecord] = []
        self.process: subprocess.CompletedProcess[str] | None = None
        """The script that was run, for cases that need a process of their own."""
        self.settings: dict[str, Any] = {}
        """How the client of the call was made, for cases that go on with another one."""
        self.texts: list[str] = []
        """What people or logs get to see, for cases about secrets."""
        self._stack = contextlib.ExitStack()
        self._lock = threading.Lock()

    def __enter__(self) -> Play:
        with contextlib.ExitStack() as stack:
            stack.enter_context(environment())
            stack.enter_context(_recorded_warnings(self.log))
            self.peers = [
                stack.enter_context(ScriptedServer(script))
                for script in self.case.input.get("peers", ())
            ]
            self._server: ScriptedServer | None = None
            if "server" in self.case.input:
                self._server = stack.enter_context(
                    ScriptedServer(
                        self.case.input["server"],
                        host=self.case.input.get("host", "127.0.0.1"),
                        peers=self.peers,
                    )
                )
            self.threads = set(threading.enumerate())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *details: Any) -> None:
        self._stack.__exit__(*details)

    @property
    def server(self) -> ScriptedServer:
        """The case's server; what it saw is in its ``requests`` and ``connections``."""
        assert self._server is not None, f"{self.case.id} has no server"
        return self._server

    @property
    def base(self) -> str:
        """The server's URL."""
        return self.server.base

    def client(self, transport: str = "http", *, a2a: bool = False, **settings: Any) -> AgentClient:
        """Return a client that is closed with the play.

        Without settings, or with a ``timeout`` alone, the client makes its transport itself.
        """
        a2a_setting: dict[str, Any] = {"a2a": True} if a2a else {}
        if "a2a_allow_cross_origin" in settings:
            a2a_setting["a2a_allow_cross_origin"] = settings.pop("a2a_allow_cross_origin")
        if settings.keys() <= {"timeout"}:
            client = AgentClient(transport, **a2a_setting, **settings)
        else:
            own = get_transport(transport, **settings)
            self._stack.callback(own.close)
            client = AgentClient(own, **a2a_setting)
        self._stack.callback(client.close)
        self.clients.append(client)
        return client

    def environ(self, **variables: str) -> None:
        """Set environment variables until the play ends."""
        self._stack.enter_context(environment(**variables))

    def call(self, action: Callable[[], Any], *, sent: Any = None) -> Call:
        """Make one call that the checks are about; an error is kept, not raised."""
        call = Call(time.monotonic(), sent=sent)
        try:
            call.value = action()
        except Exception as exc:
            call.error = exc
        call.ended = time.monotonic()
        with self._lock:
            self.calls.append(call)
            if len(self.calls) == 1:
                self.descriptors_after_first = open_descriptors()
        return call

    def prepare(self, action: Callable[[], Any]) -> Any:
        """Make a call that comes before the one in question; it has to return."""
        call = Call(time.monotonic())
        call.value = action()
        call.ended = time.monotonic()
        self.prepared.append(call)
        return call.value

    def stream(self, action: Callable[[], Any]) -> Call:
        """Read a stream to its end, as ``list()`` does, and keep what came before an error."""
        call = Call(time.monotonic(), events=[])
        assert call.events is not None
        try:
            for event in action():
                if call.first_event_after is None:
                    call.first_event_after = time.monotonic() - call.began
                call.events.append(event)
        except Exception as exc:
            call.error = exc
        call.ended = time.monotonic()
        self.calls.append(call)
        return call

    def in_threads(self, count: int, work: Callable[[int], None], limit: float = 60.0) -> None:
        """Run ``work(0)`` ... in threads that start together, and wait for all of them."""
        start = threading.Barrier(count)
        faults: list[BaseException] = []

        def run(number: int) -> None:
            try:
                start.wait(limit)
                work(number)
            except BaseException as exc:
                faults.append(exc)

        threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(limit)
        assert not any(thread.is_alive() for thread in threads), "a thread hangs"
        if faults:
            raise faults[0]

    @property
    def result(self) -> Any:
        """The value of the last call."""
        return self.calls[-1].value

    @property
    def error(self) -> Any:
        """The error of the last call."""
        return self.calls[-1].error


def new_task(text: str = "hi") -> Task:
    """Return a task with one message of the user."""
    return Task.create(Message.user(text))


def task_json(text: str = "done", task_id: str = "{{task_id}}") -> str:
    """Return a completed task as a server script's body."""
    part = {"type": "text", "content": text}
    message = {"id": "m1", "role": "agent", "parts": [part], "timestamp": "2026-01-02T03:04:05Z"}
    task = {"id": task_id, "state": "completed", "messages": [message], "artifacts": []}
    return json.dumps({**task, "metadata": {}})


def reply(body: str, **words: Any) -> dict[str, Any]:
    """Return a step that answers with JSON."""
    return {"op": "reply", "headers": {"Content-Type": "application/json"}, "body": body, **words}


@contextlib.contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Set variables and leave out every proxy variable that is not among them."""
    names = {v for name in _PROXY_VARIABLES for v in (name, name.lower())} | set(variables)
    before = {name: os.environ.pop(name, None) for name in names}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def open_descriptors() -> int:
    """Return how many descriptors this process has open (Linux, macOS)."""
    return len(os.listdir("/dev/fd"))


def eventually(condition: Callable[[], object], within: float = 5.0) -> bool:
    """Wait until a condition holds that nobody announces; say whether it did in time."""
    end = time.monotonic() + within
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


@contextlib.contextmanager
def _recorded_warnings(records: list[logging.LogRecord]) -> Iterator[None]:
    """Keep what libraries log at WARNING and above."""
    handler = logging.Handler(logging.WARNING)
    handler.emit = records.append  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
