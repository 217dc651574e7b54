"""The library inside WSGI servers: one client, made and used before the workers are forked."""

from __future__ import annotations

import http.client
import signal
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest

from protolink_sync import AgentCard, Task
from protolink_sync.server import Agent
from tests.cases.play import reply, task_json
from tests.cases.server import ScriptedServer
from tests.processes.calls import Peer, wait_until
from tests.processes.packages import PACKAGES, needs, posix
from tests.processes.servers import Server, gunicorn, uwsgi
from tests.transport.scenes import Calling

pytestmark = [pytest.mark.slow, posix, needs("gunicorn")]

REQUESTS = 150
BROWSERS = 8

# Of one server of each kind: so many requests, each of which makes so many calls.
MANY_REQUESTS = 80
CALLS_IN_EACH = 125

# name -> (command, how many calls its workers may make at a time)
SERVERS = {
    "gunicorn sync": (lambda: gunicorn("-w", "3"), 3),
    "gunicorn sync --preload": (lambda: gunicorn("-w", "3", "--preload"), 3),
    "gunicorn gthread --preload": (
        lambda: gunicorn("-w", "2", "-k", "gthread", "--threads", "8", "--preload"),
        16,
    ),
    "gunicorn gevent": (lambda: gunicorn("-w", "2", "-k", "gevent"), 2 * BROWSERS),
    "gunicorn gevent --preload": (
        lambda: gunicorn("-w", "2", "-k", "gevent", "--preload"),
        2 * BROWSERS,
    ),
    "uwsgi": (lambda: uwsgi("--processes", "2"), 2),
    "uwsgi --enable-threads": (
        lambda: uwsgi("--processes", "2", "--enable-threads", "--threads", "4"),
        8,
    ),
}
ONE_OF_EACH = ["gunicorn gthread --preload", "gunicorn gevent --preload", "uwsgi"]


def named(names: Iterable[str], *others: str) -> list[object]:
    """Return parameters, each left out where its server is not installed."""
    return [
        pytest.param(
            name, *others, marks=[needs(word) for word in name.split() if word in PACKAGES]
        )
        for name in names
    ]


@pytest.mark.parametrize(("name", "wire"), [*named(SERVERS, "http"), *named(ONE_OF_EACH, "wss")])
def test_every_answer_goes_to_who_asked(name, wire, counted_peer, tmp_path):
    command, at_a_time = SERVERS[name]
    peer, proxy = counted_peer(wire)
    with Server(command(), peer, tmp_path) as server, ThreadPoolExecutor(BROWSERS) as browsers:
        questions = [f"question {number}" for number in range(REQUESTS)]

        answers = list(browsers.map(lambda text: server.get("/ask", f"echo {text}"), questions))

        assert answers == questions
        # Each process had used its client when it was imported, perhaps in another thread.
        assert proxy.total <= at_a_time + 3
        assert server.stop() == 0, server.log()
    assert wait_until(lambda: proxy.open == 0), "a worker has left a connection open"


class Echo(Agent):
    """A quick peer, which a real one is not; keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        super().__init__(AgentCard("echo", "says what it is told", "http://127.0.0.1"))

    def handle_task(self, task: Task) -> Task:
        text = task.messages[-1].text.removeprefix("echo ")
        self.asked.append(text)
        return task.complete(text)


@pytest.mark.parametrize("name", named(ONE_OF_EACH))
def test_no_answer_of_ten_thousand_goes_to_another(name, tmp_path):
    command, at_a_time = SERVERS[name]
    asked = [f"browser-{number}" for number in range(MANY_REQUESTS)]
    right = [f"{who}: 0 of {CALLS_IN_EACH} are wrong" for who in asked]
    assert MANY_REQUESTS * CALLS_IN_EACH == 10_000

    echo = Echo()
    with echo.serve("http://127.0.0.1:0") as agent:
        peer = Peer("http", agent.url)
        with Server(command(), peer, tmp_path) as server, ThreadPoolExecutor(BROWSERS) as browsers:
            answers = list(
                browsers.map(lambda who: server.get("/many", f"{who} {CALLS_IN_EACH}"), asked)
            )

            assert answers == right
            calls = [text for text in echo.asked if text.startswith("browser-")]
            assert len(calls) == len(set(calls)) == 10_000, "a call was lost, or sent twice"
            assert agent.connections <= at_a_time + 3
            assert server.stop() == 0, server.log()


@pytest.mark.parametrize("wire", ["http", "wss", "sse"])
@pytest.mark.parametrize("name", named(name for name in SERVERS if name.startswith("uwsgi")))
def test_no_thread_is_left_when_uwsgi_forks(name, wire, counted_peer, tmp_path):
    """One that waits for the interpreter's lock at that moment would stop a worker for ever."""
    peer, _ = counted_peer(wire)
    with Server(SERVERS[name][0](), peer, tmp_path) as server:
        assert server.get("/left") == ""


# ---- the end of a server -----------------------------------------------------------------------

WORKERS = {
    "gunicorn sync": [],
    "gunicorn gthread": ["-k", "gthread", "--threads", "4"],
    "gunicorn gevent": ["-k", "gevent"],
}
each_worker = pytest.mark.parametrize("worker", named(WORKERS))
GO = {"op": "wait", "event": "go", "s": 30}
EVENT = 'data: {"id":"{{req_id}}","ok":true,"result":{"type":"%s"},"final":%s}\n\n'


def serving(worker: str, peer: ScriptedServer, alias: str, folder) -> Server:
    command = gunicorn("-w", "1", *WORKERS[worker], "--graceful-timeout", "2")
    return Server(command, Peer(alias, peer.base), folder, warm=False)


@each_worker
def test_sigterm_lets_a_call_come_to_its_end(worker, tmp_path):
    script = {"routes": {"POST /tasks/": [[GO, reply(task_json("the answer"))]]}}
    with ScriptedServer(script) as peer, serving(worker, peer, "http", tmp_path) as server:
        browser = Calling(server.get, "/ask", "question")
        peer.wait_for_requests(1, 20)

        server.process.send_signal(signal.SIGTERM)
        assert wait_until(lambda: "Handling signal: term" in server.log())
        peer.fire("go")

        assert browser.result() == "the answer"
        assert server.process.wait(10) == 0, server.log()
        assert peer.wait_for_end(within=2) == "client"


@each_worker
def test_sigterm_lets_a_stream_come_to_its_end(worker, tmp_path):
    chunks = [{"op": "chunk", "data": EVENT % ("first", "false")}]
    rest = [{"op": "chunk", "data": EVENT % ("last", "true")}, {"op": "end_chunks"}]
    script = {"routes": {"POST /tasks/stream": [[{"op": "sse_head"}, *chunks, GO, *rest]]}}
    with ScriptedServer(script) as peer, serving(worker, peer, "sse", tmp_path) as server:
        browser = Calling(server.get, "/stream", "question")
        peer.wait_for_requests(1, 20)

        server.process.send_signal(signal.SIGTERM)
        assert wait_until(lambda: "Handling signal: term" in server.log())
        peer.fire("go")

        assert browser.result() == "first\nlast\n"
        assert server.process.wait(10) == 0, server.log()


@each_worker
@pytest.mark.parametrize(("alias", "path"), [("sse", "/ask"), ("sse", "/stream")])
def test_a_quick_end_is_not_held_up(worker, alias, path, tmp_path):
    """SIGINT to gunicorn: what runs is given up; the peer sees its connections end."""
    script = {"routes": {"*": [[{"op": "hold", "s": 60}]]}}
    with ScriptedServer(script) as peer, serving(worker, peer, alias, tmp_path) as server:
        browser = Calling(server.get, path, "question")
        peer.wait_for_requests(1, 20)

        assert server.stop(signal.SIGINT) == 0, server.log()

        assert peer.wait_for_end(within=2) == "client"
        with pytest.raises((OSError, http.client.HTTPException, RuntimeError)):
            browser.result()
