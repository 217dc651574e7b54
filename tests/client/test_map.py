"""AgentClient.map: many tasks, to one agent or several, over any executor."""

from __future__ import annotations

import concurrent.futures
import contextvars
import gc
import multiprocessing
import os
import pathlib
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import resource_tracker
from typing import Any

import pytest

import protolink_sync
from protolink_sync import AgentCard, CancelToken, RetryPolicy, TransportConfig, TransportLimits
from protolink_sync.client import AgentClient
from protolink_sync.client._lanes import Lane, pick
from protolink_sync.client._map import MapResults
from protolink_sync.errors import (
    CallCancelledError,
    TransportConnectionError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import Message, Task, TaskState
from protolink_sync.server import Agent
from protolink_sync.testing import ScriptedTransport, reply
from protolink_sync.testing.steps import SentCall
from protolink_sync.transport import HTTPTransport
from tests.aio.silent import SilentPeer
from tests.streaming.scripted import InterruptedRelease, interrupted_after
from tests.transport.scenes import at_once, wait_until

URL = "http://agent.test"


def task(text: str) -> Task:
    return Task.create(Message.user(text))


def echoes(count: int) -> list[Task]:
    return [task(f"echo {number}") for number in range(count)]


def answered(call: SentCall) -> Any:
    """Answer a call of a scripted transport with its own text."""
    sent = Task.from_dict(call.data)
    return reply(sent.complete(sent.messages[0].text).to_dict())


def map_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("protolink-map")]


@pytest.fixture
def client():
    with AgentClient("http", timeout=30) as client:
        yield client


@pytest.fixture
def silent():
    with SilentPeer() as peer:
        yield peer


# --- results -------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_pool", [False, True])
def test_results_come_in_the_order_of_the_tasks_and_errors_are_values(
    client, agent_peer, with_pool
):
    tasks = echoes(60)
    tasks[3] = task("raise x")
    tasks[4] = task("fail for a reason")
    with ThreadPoolExecutor(16) as pool:
        results = list(client.map(tasks, agent_peer.url, executor=pool if with_pool else None))

    assert isinstance(results[3], TransportRemoteError)
    assert results[4].state is TaskState.FAILED
    texts = [done.text for number, done in enumerate(results) if number not in (3, 4)]
    assert texts == [str(number) for number in range(60) if number not in (3, 4)]
    assert [done.id for n, done in enumerate(results) if n != 3] == [
        sent.id for n, sent in enumerate(tasks) if n != 3
    ]


def test_results_as_they_come_say_which_task_they_belong_to(client, agent_peer):
    tasks = [task("count 0.6"), task("echo quick"), task("raise x")]

    results = client.map(tasks, agent_peer.url, ordered=False)
    by_index = dict(results.indexed())
    order = list(by_index)

    assert order[-1] == 0
    assert by_index[1].text == "quick"
    assert isinstance(by_index[2], TransportRemoteError)
    assert results.index == 0


def test_calls_overlap_up_to_the_bound(agent_peer):
    with AgentClient("http") as client:
        began = time.monotonic()
        list(client.map([task("count 0.3") for _ in range(20)], agent_peer.url, max_in_flight=20))
        together = time.monotonic() - began
        list(client.map([task("count 0.1") for _ in range(6)], agent_peer.url, max_in_flight=2))
        in_pairs = time.monotonic() - began - together

    assert together < 2
    assert in_pairs >= 0.3


class Counting(Agent):
    """Knows how many tasks it has at a time; refuses those above a limit."""

    def __init__(self, limit: int = 1000, work: float = 0.02) -> None:
        super().__init__(AgentCard("counting", "for tests", "http://127.0.0.1:1"))
        self.limit, self.work = limit, work
        self.now = self.most = self.runs = 0
        self.lock = threading.Lock()

    def handle_task(self, task: Task) -> Task:
        with self.lock:
            self.now += 1
            self.runs += 1
            self.most = max(self.most, self.now)
        try:
            time.sleep(self.work)
        finally:
            with self.lock:
                self.now -= 1
        return task.complete(task.messages[0].text)


def test_no_more_are_in_flight_than_asked(client):
    agent = Counting()
    with agent.serve("http://127.0.0.1:0") as server:
        assert len(list(client.map(echoes(40), server.url, max_in_flight=4))) == 40

    assert agent.most == 4


def test_the_transports_limit_bounds_what_is_in_flight():
    """Else the budgets of the others would run while they wait for a slot."""
    config = TransportConfig(limits=TransportLimits(max_concurrent_requests=3))
    agent = Counting(work=0.15)
    with agent.serve("http://127.0.0.1:0") as server, HTTPTransport(config=config) as transport:
        results = AgentClient(transport).map(echoes(12), server.url, timeout=0.5)
        assert all(isinstance(done, Task) for done in results)

    assert agent.most == 3


def test_a_view_bounds_each_task_by_its_own_timeout(client, silent):
    began = time.monotonic()
    (result,) = client.with_options(timeout=0.3).map([task("a")], silent.url)

    assert isinstance(result, TransportTimeoutError)
    assert time.monotonic() - began < 2


def test_several_agents_share_the_tasks(client):
    agents = [Counting(), Counting(), Counting()]
    servers = [agent.serve("http://127.0.0.1:0") for agent in agents]
    try:
        urls = [server.url for server in servers]
        results = list(client.map(echoes(30), urls, max_in_flight=6))
    finally:
        for server in servers:
            server.close()

    assert [done.text for done in results] == [f"echo {number}" for number in range(30)]
    assert all(agent.runs >= 5 for agent in agents)


def test_tasks_are_taken_as_they_are_needed(client, agent_peer):
    taken = []

    def endless():
        number = 0
        while True:
            taken.append(number)
            yield task(f"echo {number}")
            number += 1

    with client.map(endless(), agent_peer.url, max_in_flight=4) as results:
        first = [next(results).text for _ in range(10)]

    assert first == [str(number) for number in range(10)]
    assert len(taken) < 10 + 4 * 17 + 1
    assert results.total is None
    assert list(results) == []


def test_one_that_takes_long_does_not_let_results_pile_up_without_bound(client, silent):
    """In order, the first result is waited for while others come."""
    agent = Counting(work=0)
    taken = []

    def many():
        for number in range(500):
            taken.append(number)
            yield task(str(number))

    with agent.serve("http://127.0.0.1:0") as server:
        # The first task goes to the agent that never answers.
        urls = [silent.url, server.url]
        results = client.map(many(), urls, max_in_flight=2, timeout=0.8)
        first = next(results)
        assert isinstance(first, TransportTimeoutError)
        assert len(taken) < 60
        results.close()


def test_a_task_that_its_owner_changes_meanwhile_is_sent_as_it_was():
    shared = task("0")
    all_made = threading.Event()

    def reused():
        for number in range(5):
            shared.id = f"t{number}"
            shared.messages[0].parts[0].content = str(number)
            yield shared
        all_made.set()

    client = AgentClient(ScriptedTransport(*[answered] * 5))
    with ThreadPoolExecutor(1) as pool:
        pool.submit(all_made.wait, 10)
        results = list(client.map(reused(), URL, executor=pool))

    assert [done.text for done in results] == ["0", "1", "2", "3", "4"]


def test_tasks_that_have_ended_are_not_asked_for_again():
    """They may come out of a queue, where the next one would be waited for."""

    class Queue:
        left = echoes(3)

        def __iter__(self):
            return self

        def __next__(self):
            if not self.left:
                raise KeyError("asked once more")
            if len(self.left) == 1:
                self.left.clear()
                raise StopIteration
            return self.left.pop()

    results = AgentClient(ScriptedTransport(*[answered] * 2)).map(Queue(), URL)

    assert len(list(results)) == 2


def test_nothing_to_do_gives_nothing():
    assert list(AgentClient(ScriptedTransport()).map([], URL)) == []


def test_progress_is_told_in_the_reading_thread(client, agent_peer):
    told = []

    def progress(done, total):
        told.append((done, total, threading.current_thread()))

    list(client.map(echoes(5), agent_peer.url, progress=progress))
    assert told == [(n, 5, threading.current_thread()) for n in range(1, 6)]

    told.clear()
    list(client.map(iter(echoes(2)), agent_peer.url, progress=progress))
    assert told[0][1] in (None, 2)
    assert told[-1][:2] == (2, 2)


@pytest.mark.parametrize("with_executor", [True, False])
def test_a_stray_stop_iteration_is_no_end(with_executor):
    """As the end of the loop it would look like no results at all."""

    def stray(*args):
        return next(iter([]))

    class Stray(ThreadPoolExecutor):
        def submit(self, fn, /, *args, **kwargs):
            return stray()

    options = {"executor": Stray()} if with_executor else {"progress": stray}
    results = AgentClient(ScriptedTransport(*[answered] * 9)).map(echoes(3), URL, **options)

    with pytest.raises(RuntimeError, match="StopIteration") as caught:
        list(results)

    assert isinstance(caught.value.__cause__, StopIteration)


def test_results_have_one_reader_at_a_time(client, silent):
    """Two would lose some of them, and take each other's index."""
    results = client.map([task("a")], silent.url)
    read = []
    reader = threading.Thread(target=lambda: read.extend(results))
    reader.start()
    silent.asked.get(timeout=5)

    with pytest.raises(RuntimeError, match="another thread reads"):
        next(results)

    assert reader.is_alive()  # who came second has ended nothing
    results.close()
    reader.join(5)
    assert not reader.is_alive()


def test_a_reader_may_follow_another():
    results = AgentClient(ScriptedTransport(*[answered] * 3)).map(echoes(3), URL)
    read = [next(results).text]
    for _ in range(2):
        other = threading.Thread(target=lambda: read.append(next(results).text))
        other.start()
        other.join(5)

    assert read == ["echo 0", "echo 1", "echo 2"]
    assert list(results) == []


def test_ctrl_c_between_two_results_ends_the_calls_and_keeps_no_reader_out(client, silent):
    with Counting(work=0).serve("http://127.0.0.1:0") as server:
        results = client.map(echoes(2), [server.url, silent.url], ordered=False)
        assert isinstance(next(results), Task)
        silent.asked.get(timeout=5)

        interrupted_after(MapResults._read, "if not self._reading", lambda: next(results))

        silent.left.get(timeout=5)
    read: list[Any] = []
    other = threading.Thread(target=lambda: read.append(list(results)))
    other.start()
    other.join(5)
    assert read == [[]]


@pytest.mark.parametrize("signalled", [KeyboardInterrupt(), TimeoutError("of an alarm")])
def test_a_signal_with_a_result_in_hand_leaves_no_gap(client, signalled):
    """Who reads on would come to a good end without it."""
    with Counting(work=0).serve("http://127.0.0.1:0") as server:
        results = client.map(echoes(3), server.url)
        assert next(results).text == "echo 0"
        results._reading = InterruptedRelease(signalled)

        with pytest.raises(type(signalled)):
            next(results)

        assert list(results) == [], "the rest after a gap"


def test_results_keep_their_number_when_readers_alternate():
    """Each asks again as long as another one reads."""
    tasks = echoes(300)
    results = AgentClient(ScriptedTransport(*[answered] * 300)).map(tasks, URL, ordered=False)
    read: list[tuple[int, Any]] = []

    def take_turns() -> None:
        while True:
            try:
                for pair in results.indexed():
                    read.append(pair)
                return
            except RuntimeError:
                time.sleep(0)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        readers = [threading.Thread(target=take_turns) for _ in range(3)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(30)
    finally:
        sys.setswitchinterval(interval)

    assert sorted(number for number, _ in read) == list(range(300))
    assert all(done.text == f"echo {number}" for number, done in read)


@pytest.mark.skipif(sys.platform == "win32", reason="any size of a stack is granted there")
def test_a_thread_that_cannot_be_had_is_the_error_of_its_task():
    before = threading.stack_size()

    def tasks():
        for number, one in enumerate(echoes(5)):
            # No system has memory for a stack of this size.
            threading.stack_size(1 << 46 if number == 2 else before)
            yield one

    try:
        client = AgentClient(ScriptedTransport(*[answered] * 5))
        results = list(client.map(tasks(), URL, max_in_flight=1))
    finally:
        threading.stack_size(before)

    assert [type(result) for result in results] == [Task, Task, RuntimeError, Task, Task]
    assert "thread" in str(results[2])


def test_context_variables_travel():
    who = contextvars.ContextVar("who", default="nobody")
    seen = []

    def look(call):
        seen.append(who.get())
        return answered(call)

    who.set("Ada")
    list(AgentClient(ScriptedTransport(look, look)).map(echoes(2), URL))

    assert seen == ["Ada", "Ada"]


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"max_in_flight": 0}, ValueError, "max_in_flight"),
        ({"max_in_flight": True}, TypeError, "max_in_flight"),
        ({"timeout": 0}, ValueError, "timeout"),
        ({"protocol": "http"}, ValueError, "protocol"),
        ({"executor": 5}, TypeError, "executor"),
        ({"cancel": "now"}, TypeError, "CancelToken"),
        ({"agent_url": []}, ValueError, "agent_url"),
        ({"agent_url": [None]}, ValueError, "agent_url"),
        ({"tasks": [Task.create("a"), "b"]}, TypeError, "task 1 is a str"),
    ],
)
def test_a_mistake_is_told_before_anything_is_sent(options, error, said):
    transport = ScriptedTransport()
    arguments = {"tasks": echoes(2), "agent_url": URL, **options}

    with pytest.raises(error, match=said):
        AgentClient(transport).map(**arguments)
    assert transport.calls == []


def test_a_generator_of_something_else_is_told_when_it_is_reached():
    results = AgentClient(ScriptedTransport(answered)).map(iter([task("a"), "b"]), URL)

    with pytest.raises(TypeError, match="task 1 is a str"):
        list(results)


def test_an_error_of_the_generator_ends_everything(client, silent):
    def broken():
        yield task("a")
        raise KeyError("mine")

    with pytest.raises(KeyError):
        list(client.map(broken(), silent.url))
    assert wait_until(lambda: not map_threads(), at_once())


# --- agents that have too much to do -------------------------------------------------------------


def refusing(agent: Counting, status: str):
    """Return a WSGI application that answers a status while the agent has its limit of tasks."""
    inner = agent.wsgi_app()
    lock = threading.Lock()
    state = {"now": 0, "refused": 0, "keys": []}

    def application(environ, start_response):
        with lock:
            is_too_much = state["now"] >= agent.limit
            state["refused" if is_too_much else "now"] += 1
            state["keys"].append(environ.get("HTTP_IDEMPOTENCY_KEY"))
        if is_too_much:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start_response(status, [("Content-Type", "text/plain"), ("Content-Length", "4")])
            return [b"busy"]
        try:
            return list(inner(environ, start_response))
        finally:
            with lock:
                state["now"] -= 1

    return application, state


@pytest.fixture
def wsgi_server():
    """Serve WSGI applications in threads, by the server of the standard library."""
    import socketserver
    from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

    class Threaded(socketserver.ThreadingMixIn, WSGIServer):
        request_queue_size = 64

    class Quiet(WSGIRequestHandler):
        def log_message(self, *args):
            pass

    servers = []

    def serve(application) -> str:
        server = Threaded(("127.0.0.1", 0), Quiet)
        server.set_app(application)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        servers.append((server, thread))
        return f"http://127.0.0.1:{server.server_port}"

    yield serve
    for server, thread in servers:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("status", ["503 Service Unavailable", "429 Too Many Requests"])
def test_a_busy_agent_gets_fewer_at_a_time_and_every_task_once(client, wsgi_server, status):
    agent = Counting(limit=4)
    application, state = refusing(agent, status)

    results = list(client.map(echoes(60), wsgi_server(application), max_in_flight=24))

    assert [done.text for done in results] == [f"echo {number}" for number in range(60)]
    assert agent.runs == 60
    assert state["refused"] > 0
    # What was refused came again under its key.
    assert len(state["keys"]) == 60 + state["refused"]
    assert len({*state["keys"]}) == 60
    # It has learned: with the limit of 24 each of 60 tasks would be refused several times.
    assert state["refused"] < 60


def busy(call: SentCall) -> Any:
    return reply(status=503, body=b"busy")


def test_a_busy_agent_is_not_asked_for_ever():
    transport = ScriptedTransport(*[busy] * 100)

    (result,) = AgentClient(transport).map([task("a")], URL, timeout=0.7)

    assert isinstance(result, TransportRemoteError)
    assert result.status_code == 503
    assert 2 <= len(transport.calls) < 10


def test_a_pause_that_the_agent_asks_for_is_kept():
    asked = reply(status=503, headers={"retry-after": "1"}, body=b"")
    transport = ScriptedTransport(asked, answered)

    began = time.monotonic()
    (result,) = AgentClient(transport).map([task("a")], URL)

    assert result.text == "a"
    assert time.monotonic() - began >= 1
    (too_long,) = AgentClient(
        ScriptedTransport(reply(status=503, headers={"retry-after": "3600"}, body=b""))
    ).map([task("a")], URL)
    assert isinstance(too_long, TransportRemoteError)


def asking_for(pause: str) -> Any:
    return reply(status=503, headers={"retry-after": pause}, body=b"")


FAR = "Fri, 31 Dec 9999 23:59:59 GMT"


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("pause", ["3600", "1" + "0" * 30, "9" * 400, FAR])
def test_nobody_waits_for_an_agent_that_wants_to_be_left_alone_for_long(pause, ordered):
    transport = ScriptedTransport(*[asking_for(pause)] * 4)
    tasks = (task(str(number)) for number in range(20))

    began = time.monotonic()
    results = list(
        AgentClient(transport).map(tasks, URL, max_in_flight=2, timeout=2, ordered=ordered)
    )

    assert time.monotonic() - began < 2
    assert len(results) == 20
    assert {(type(result), result.status_code) for result in results} == {
        (TransportRemoteError, 503)
    }
    assert all(result.retry_after > 3000 for result in results)
    # Those that were not sent say so.
    assert len(transport.calls) <= 2
    unsent = [result for result in results if "was not sent to http://agent.test" in str(result)]
    assert len(unsent) == 20 - len(transport.calls)
    assert {result.attempt_count for result in unsent} == {0}


def test_what_waits_to_be_sent_again_is_not_kept_by_a_longer_pause():
    transport = ScriptedTransport(asking_for("2"), asking_for("3600"))

    began = time.monotonic()
    results = list(AgentClient(transport).map(echoes(2), URL, max_in_flight=2))

    assert time.monotonic() - began < 1.5
    assert [result.status_code for result in results] == [503, 503]


def test_a_task_that_was_not_sent_waits_for_longer_than_its_own_budget():
    """How long is a setting; the budget begins when the task is sent."""
    policy = RetryPolicy(max_retry_after=0)
    for options, last in ({}, "sent"), ({"retry": policy}, "refused"):
        transport = ScriptedTransport(asking_for("1"), answered)
        client = AgentClient(transport).with_options(**options)

        first, second = client.map(echoes(2), URL, max_in_flight=1, timeout=0.5)

        assert isinstance(first, TransportRemoteError)
        assert isinstance(second, Task if last == "sent" else TransportRemoteError)
        assert len(transport.calls) == (2 if last == "sent" else 1)


def test_an_agent_that_is_left_alone_does_not_keep_the_tasks_of_another(client, wsgi_server):
    def alone(environ, start_response):
        headers = [("Content-Length", "0"), ("Retry-After", "3600")]
        start_response("503 Service Unavailable", headers)
        return [b""]

    with Counting().serve("http://127.0.0.1:0") as server:
        urls = [wsgi_server(alone), server.url]
        results = list(client.map(echoes(30), urls, max_in_flight=2, timeout=5))

    assert sum(isinstance(done, Task) for done in results) >= 28


@pytest.mark.parametrize("is_generator", [True, False])
def test_the_end_does_not_wait_for_a_pause_in_which_nothing_is_left_to_send(is_generator):
    transport = ScriptedTransport(asking_for("20"))
    tasks = (one for one in echoes(1)) if is_generator else echoes(1)

    began = time.monotonic()
    (result,) = AgentClient(transport).map(tasks, URL, max_in_flight=1, timeout=0.5)

    assert isinstance(result, TransportRemoteError)
    assert time.monotonic() - began < 5


def test_another_agent_goes_on_while_one_is_busy(client, wsgi_server):
    never, always = Counting(limit=0), Counting()
    refused, _ = refusing(never, "503 Service Unavailable")
    with always.serve("http://127.0.0.1:0") as server:
        urls = [wsgi_server(refused), server.url]
        results = list(client.map(echoes(30), urls, max_in_flight=4, timeout=2))

    assert sum(isinstance(done, Task) for done in results) >= 24
    assert all(isinstance(done, (Task, TransportRemoteError)) for done in results)


@pytest.fixture
def nobody_there(unused_port) -> Callable[[], str]:
    return lambda: f"http://127.0.0.1:{unused_port()}"


@pytest.mark.parametrize("in_flight", [1, 4, 32])
def test_an_agent_that_cannot_be_reached_does_not_draw_the_tasks_of_another(
    client, nobody_there, in_flight
):
    """It has nothing to do, and so the most room."""
    with Counting(work=0.01).serve("http://127.0.0.1:0") as server:
        urls = [nobody_there(), server.url]
        results = list(client.map(echoes(150), urls, max_in_flight=in_flight))

    failures = [done for done in results if not isinstance(done, Task)]
    assert {type(failure) for failure in failures} == {TransportConnectionError}
    assert len(failures) <= in_flight / 2 + 8


def test_an_agent_that_can_be_reached_again_gets_tasks_again(client, nobody_there):
    first, second = Counting(work=0.01), Counting(work=0.01)
    url = nobody_there()
    with first.serve("http://127.0.0.1:0") as server:
        results = client.map(
            (task(str(n)) for n in range(5000)), [url, server.url], max_in_flight=4
        )
        failures = sum(not isinstance(next(results), Task) for _ in range(20))
        with second.serve(url):
            assert any(second.runs for _ in results)
        results.close()

    assert failures


def test_one_call_finds_out_whether_an_agent_can_be_reached_again():
    """It may take a connect timeout, for which no further tasks shall be kept."""
    lost, other = Lane("lost", 8, 1.0), Lane("other", 8, 1.0)
    for _ in range(3):
        other.begin()
    lost.begin()
    lost.end(TransportConnectionError("refused", phase="connect"), time.monotonic())

    assert pick([lost, other], 0) is other
    assert wait_until(lambda: pick([lost, other], 0) is lost, 5)
    lost.begin()
    assert pick([lost, other], 0) is other
    lost.end(TransportRemoteError("it says no"), time.monotonic())
    assert pick([lost, other], 0) is lost


def test_where_no_agent_can_be_reached_nobody_waits(client, nobody_there):
    began = time.monotonic()
    results = list(client.map(echoes(40), [nobody_there(), nobody_there()], max_in_flight=2))

    assert [type(result) for result in results] == [TransportConnectionError] * 40
    assert time.monotonic() - began < 10


def test_other_errors_are_no_reason_to_send_again():
    transport = ScriptedTransport(
        TransportConnectionError("cut", retryable=True),
        reply(status=500, body=b""),
        reply(status=502, body=b""),
    )

    results = list(AgentClient(transport).map(echoes(3), URL, max_in_flight=1))

    assert [getattr(result, "status_code", 0) for result in results] == [None, 500, 502]
    assert len(transport.calls) == 3


def test_what_may_go_out_as_a2a_is_sent_once(client):
    """An A2A agent recognises nothing that comes a second time."""
    sent = []

    def application(environ, start_response):
        sent.append(environ["PATH_INFO"])
        start_response("503 Service Unavailable", [("Content-Length", "0")])
        return [b""]

    import wsgiref.simple_server

    class Quiet(wsgiref.simple_server.WSGIRequestHandler):
        def log_message(self, *args):
            pass

    server = wsgiref.simple_server.make_server("127.0.0.1", 0, application, handler_class=Quiet)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        with AgentClient("http", a2a=True) as both:
            url = f"http://127.0.0.1:{server.server_port}"
            (result,) = both.map([task("a")], url, timeout=2)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

    assert isinstance(result, TransportRemoteError)
    assert len(sent) == 1


# --- ending --------------------------------------------------------------------------------------


def waiting_calls(silent: SilentPeer, count: int) -> None:
    for _ in range(count):
        silent.asked.get(timeout=5)


@pytest.mark.parametrize("how", ["del", "close", "with", "error"])
def test_leaving_ends_the_calls_and_their_threads_at_once(client, silent, how):
    moment = []

    def mixed():
        yield task("echo quick")
        for _ in range(3):
            yield task("never")

    agent = Counting(work=0)
    with agent.serve("http://127.0.0.1:0") as server:
        # In turn: the first and third go to the agent that answers.
        results = client.map(mixed(), [server.url, silent.url], max_in_flight=4, ordered=False)
        next(results)
        silent.asked.get(timeout=5)
        moment.append(time.monotonic())
        if how == "close":
            results.close()
            results.close()  # twice is silent
        elif how == "with":
            with results:
                pass
        elif how == "error":
            with pytest.raises(KeyError), results:
                raise KeyError
        del results
        gc.collect()
        assert silent.left.get(timeout=5) - moment[0] < at_once()
        assert wait_until(lambda: not map_threads(), at_once())


@pytest.mark.parametrize("with_pool", [False, True])
def test_a_token_ends_everything(client, silent, with_pool):
    """What was in flight is a value; that more was to come is an error."""
    token = CancelToken()
    ended: list[float] = []
    results: list[Any] = []

    def cancel() -> None:
        waiting_calls(silent, 3)
        ended.append(time.monotonic())
        token.cancel("enough")

    with ThreadPoolExecutor(3) as pool:
        thread = threading.Thread(target=cancel)
        thread.start()
        mapped = client.map(
            iter(echoes(10)),
            silent.url,
            executor=pool if with_pool else None,
            max_in_flight=3,
            cancel=token,
        )
        with pytest.raises(CallCancelledError) as caught:
            results.extend(iter(lambda: next(mapped), None))
        assert time.monotonic() - ended[0] < at_once()
        thread.join()

    assert [type(result) for result in results] == [CallCancelledError] * 3
    assert caught.value.reason == "enough"
    assert silent.asked.empty()
    assert wait_until(lambda: not map_threads(), at_once())


def cancelled_with_the_third(tasks: Any, in_flight: int) -> Any:
    token = CancelToken()

    def progress(done: int, total: int | None) -> None:
        if done == 3:
            token.cancel("enough")

    client = AgentClient(ScriptedTransport(*[answered] * 4))
    return client.map(tasks, URL, cancel=token, max_in_flight=in_flight, progress=progress)


@pytest.mark.parametrize("in_flight", [1, 2, 3])
def test_a_token_that_comes_with_the_last_result_ends_nothing(in_flight):
    results = cancelled_with_the_third(echoes(3), in_flight)

    assert [done.text for done in results] == ["echo 0", "echo 1", "echo 2"]


def test_a_token_lets_no_further_task_be_asked_for():
    """Whether there is one may take its time to tell."""
    tasks = echoes(4)
    results = cancelled_with_the_third((tasks.pop(0) for _ in range(4)), 1)

    read = [next(results).text for _ in range(3)]
    with pytest.raises(CallCancelledError, match="after 3 results; no further task was sent"):
        next(results)

    assert read == ["echo 0", "echo 1", "echo 2"]
    assert len(tasks) == 1


def test_a_token_that_is_cancelled_already_sends_nothing():
    token = CancelToken()
    token.cancel()
    transport = ScriptedTransport()

    with pytest.raises(CallCancelledError):
        list(AgentClient(transport).map(echoes(2), URL, cancel=token))
    assert transport.calls == []


def test_a_token_for_many_maps_keeps_nothing_of_them():
    token = CancelToken()
    client = AgentClient(ScriptedTransport(*[answered] * 6))

    for _ in range(3):
        list(client.map(echoes(2), URL, cancel=token))

    assert token._callbacks == {}


def test_a_pool_that_is_shut_down_is_told(client, agent_peer):
    pool = ThreadPoolExecutor(1)
    pool.shutdown()

    with pytest.raises(RuntimeError, match="shutdown"):
        list(client.map(echoes(2), agent_peer.url, executor=pool))


def test_memory_stays_flat_over_many_tasks():
    client = AgentClient(ScriptedTransport(*[answered] * 300))
    gc.collect()
    gc.disable()
    try:
        for done in client.map((task(str(n)) for n in range(300)), URL, max_in_flight=4):
            assert isinstance(done, Task)
        alive = [one for one in gc.get_objects() if isinstance(one, concurrent.futures.Future)]
    finally:
        gc.enable()

    assert len(alive) < 20


# --- other processes -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tracker():
    """The process that multiprocessing starts once and keeps."""
    resource_tracker.ensure_running()


@pytest.fixture
def processes(tracker):
    # Fork in a process with threads is not what is tested here.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        yield pool


def test_a_process_pool_gets_copies_of_the_client(agent_peer, counting_proxy, processes):
    """Each process has one connection; that of the task that raises is closed by the peer."""
    proxy = counting_proxy(agent_peer.url)
    tasks = echoes(20)
    tasks[3] = task("raise x")
    with AgentClient("http", timeout=30) as client:
        results = list(client.map(tasks, proxy.url, executor=processes))

    assert isinstance(results[3], TransportRemoteError)
    assert [done.text for n, done in enumerate(results) if n != 3] == [
        str(number) for number in range(20) if number != 3
    ]
    assert proxy.total <= 3


def test_a_cancel_does_not_wait_for_other_processes(silent, processes):
    token = CancelToken()
    with AgentClient("http", timeout=3) as client:
        thread = threading.Thread(target=lambda: (waiting_calls(silent, 2), token.cancel()))
        thread.start()
        results = list(client.map(echoes(2), silent.url, executor=processes, cancel=token))
        assert silent.left.empty()
        thread.join()

    assert [type(result) for result in results] == [CallCancelledError] * 2
    assert all("may be running" in str(result) for result in results)


def test_a_client_with_a_secret_does_not_travel(processes):
    with HTTPTransport(credentials="s3cret") as transport:
        client = AgentClient(transport)
        with pytest.raises(TypeError, match="from_env"):
            client.map(echoes(2), URL, executor=processes)


class Inline(concurrent.futures.Executor):
    """Runs each call where it is submitted, as some executors of frameworks do."""

    def submit(self, fn, /, *args, **kwargs):
        future = concurrent.futures.Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def test_any_executor_does(client, agent_peer):
    results = list(client.map(echoes(3), agent_peer.url, executor=Inline()))

    assert [done.text for done in results] == ["0", "1", "2"]


CLUSTER = """
import sys
import textwrap

from distributed import Client, LocalCluster

from protolink_sync import AgentClient, Task

if __name__ == "__main__":
    with LocalCluster(2, threads_per_worker=2, dashboard_address=None) as cluster:
        pool = Client(cluster).get_executor(pure=False)
        tasks = [Task.create("raise x" if n == 3 else f"echo {n}") for n in range(20)]
        results = list(AgentClient("http", timeout=30).map(tasks, sys.argv[1], executor=pool))
        assert isinstance(results.pop(3), Exception)
        print([int(done.text) for done in results])
"""


@pytest.mark.slow
def test_a_dask_cluster_does(agent_peer, tmp_path):
    program = tmp_path / "cluster.py"
    program.write_text(CLUSTER)

    run = subprocess.run(
        [sys.executable, str(program), agent_peer.url],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "PYTHONPATH": str(pathlib.Path(protolink_sync.__path__[0]).parent)},
    )

    assert run.stdout.strip() == str([n for n in range(20) if n != 3]), run.stderr


def test_a_forked_child_gets_a_clear_error_and_ends_nothing_of_its_parent(agent_peer):
    program = """
        import gc, os, sys
        from protolink_sync import AgentClient, Task

        tasks = [Task.create("echo now"), *(Task.create("count 0.5") for _ in range(3))]
        results = AgentClient("http").map(tasks, sys.argv[1])
        next(results)
        child = os.fork()
        if not child:
            try:
                next(results)
            except RuntimeError as error:
                said = str(error)
            del results
            gc.collect()
            os._exit("parent process" not in said)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        texts = [getattr(done, "text", done) for done in results]
        assert texts == ["1 executions, 1 messages"] * 3, texts
    """
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program), agent_peer.url]

    run = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert run.returncode == 0, run.stderr
