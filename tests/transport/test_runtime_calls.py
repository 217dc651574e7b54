"""Calls to agents in the same process: who makes which part, and what a caller leaves behind."""

from __future__ import annotations

import itertools
import pathlib
import sys
import threading

import pytest

import protolink_sync
from protolink_sync import AgentClient, CancelToken
from protolink_sync.config import RetryPolicy, TransportConfig, TransportLimits
from protolink_sync.errors import (
    CallCancelledError,
    TransportError,
    TransportLimitError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import AgentCard, Task, TaskState
from protolink_sync.server import Agent
from protolink_sync.transport import RuntimeTransport
from tests.transport.scenes import LIMIT, Calling, wait_until

URL = "runtime://workshop"
PACKAGE = str(pathlib.Path(protolink_sync.__file__).parent)


def workers() -> int:
    return sum(thread.name.startswith("protolink-runtime") for thread in threading.enumerate())


class Workshop(Agent):
    """Works while its gate is shut."""

    def __init__(self, **settings):
        super().__init__(AgentCard("workshop", "works", URL), **settings)
        self.gate = threading.Event()
        self.started = threading.Semaphore(0)
        self.executions = 0
        self.threads: set[int] = set()

    def handle_task(self, task):
        self.executions += 1
        self.threads.add(threading.get_ident())
        self.started.release()
        assert self.gate.wait(LIMIT)
        return task.complete(f"execution {self.executions}")


@pytest.fixture
def agent():
    agent = Workshop()
    with agent.serve(URL):
        yield agent
        agent.gate.set()


@pytest.fixture
def client():
    with AgentClient("runtime", URL, timeout=LIMIT) as client:
        yield client


def test_the_handler_has_a_thread_of_its_own(agent, client):
    agent.gate.set()
    client.send_task(URL, Task.create("x"))

    assert threading.get_ident() not in agent.threads


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_call_that_no_thread_can_make_sends_nothing(agent, client, monkeypatch, is_stream):
    start = threading.Thread.start

    def refused(thread):
        if thread.name.startswith("protolink-runtime"):
            raise RuntimeError("can't start new thread")
        start(thread)

    call = client.send_task_streaming if is_stream else client.send_task
    task = Task.create("x")
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        with pytest.raises(TransportError, match="can't start new thread"):
            call(URL, task)

    metrics = client.transport.metrics
    assert (metrics.active_requests, metrics.active_streams) == (0, 0)
    agent.gate.set()
    assert client.send_task(URL, task).text == "execution 1"


def test_neither_side_sees_what_the_other_does_to_its_objects(client):
    kept = []

    class Keeping(Agent):
        def handle_task(self, task):
            kept.append(task)
            return task.complete("done")

    task = Task.create("x")
    task.metadata["own"] = {"list": [1]}
    with Keeping(AgentCard("keeping", "d", URL)).serve(URL):
        answer = client.send_task(URL, task)
    kept[0].metadata["own"]["list"].append("handler")
    answer.metadata["own"]["list"].append("caller")

    assert task.metadata["own"] == {"list": [1]}
    assert kept[0].metadata["own"] == {"list": [1, "handler"]}
    assert answer.metadata["own"] == {"list": [1, "caller"]}


@pytest.mark.parametrize("how", ["token", "budget"])
def test_what_a_caller_left_is_carried_out_once_and_remembered(agent, client, how):
    """Also where the work after the handler is the caller's as a rule."""
    task, token = Task.create("x"), CancelToken()
    if how == "token":
        call = Calling(client.send_task, URL, task, cancel=token)
        agent.started.acquire()
        token.cancel()
        with pytest.raises(CallCancelledError):
            call.result()
    else:
        with pytest.raises(TransportTimeoutError, match="may be running"):
            client.send_task(URL, task, timeout=0.05)
    again = Calling(client.send_task, URL, task)
    agent.gate.set()

    assert again.result().text == "execution 1"
    assert client.send_task(URL, task).text == "execution 1"
    assert agent.executions == 1


def test_a_retry_waits_for_the_attempt_that_was_left(agent):
    retry = RetryPolicy(max_attempts=5, initial_backoff=0.01, jitter=0, attempt_timeout=0.1)
    config = TransportConfig(retry=retry)
    with RuntimeTransport(URL, config=config) as transport, AgentClient(transport) as client:
        call = Calling(client.send_task, URL, Task.create("x"))
        assert wait_until(lambda: transport.metrics.retries >= 1, LIMIT)
        agent.gate.set()

        assert call.result().state is TaskState.COMPLETED
    assert agent.executions == 1


class Answer(Task):
    """A task that waits when it is written."""

    begun = threading.Event()
    go = threading.Event()

    def to_dict(self):
        Answer.begun.set()
        Answer.go.wait(LIMIT)
        return super().to_dict()


def test_the_budget_ends_a_call_whose_answer_is_being_written(client, monkeypatch):
    """A caller's thread that wrote it could not be ended. It is remembered all the same."""
    executions = []

    class Answering(Agent):
        def handle_task(self, task):
            executions.append(task.id)
            return Answer(task.id, TaskState.COMPLETED)

    monkeypatch.setattr(Answer, "begun", threading.Event())
    monkeypatch.setattr(Answer, "go", threading.Event())
    task = Task.create("x")
    with Answering(AgentCard("answering", "d", URL)).serve(URL):
        with pytest.raises(TransportTimeoutError):
            client.send_task(URL, task, timeout=0.2)
        assert Answer.begun.is_set()
        Answer.go.set()

        assert client.send_task(URL, task, timeout=LIMIT).state is TaskState.COMPLETED
    assert executions == [task.id]


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_what_ends_a_handler_does_not_end_its_caller(kind, client):
    """It was raised in another thread, and means nobody here."""

    class Ending(Agent):
        def handle_task(self, task):
            raise kind("enough")

        def handle_task_streaming(self, task):
            yield {"type": "task_progress", "progress": 1}
            raise kind("enough")

    with Ending(AgentCard("ending", "d", URL)).serve(URL):
        with pytest.raises(TransportRemoteError) as caught:
            client.send_task(URL, Task.create("x"))
        assert caught.value.error_type == kind.__name__

        with pytest.raises(TransportRemoteError) as caught:
            list(client.send_task_streaming(URL, Task.create("x")))
        assert caught.value.error_type == kind.__name__


def test_a_handler_that_cancels_itself_has_failed(client):
    class Cancelling(Agent):
        async def handle_task(self, task):
            import asyncio

            inner = asyncio.create_task(asyncio.sleep(LIMIT))
            inner.cancel()
            await inner

    with (
        Cancelling(AgentCard("c", "d", URL)).serve(URL),
        pytest.raises(TransportRemoteError, match="cancelled in it"),
    ):
        client.send_task(URL, Task.create("x"))


def test_a_handlers_error_is_the_cause(client):
    class Failing(Agent):
        def handle_task(self, task):
            raise LookupError("no such part")

    with (
        Failing(AgentCard("failing", "d", URL)).serve(URL),
        pytest.raises(TransportRemoteError, match="LookupError: no such part") as caught,
    ):
        client.send_task(URL, Task.create("x"))

    assert type(caught.value.__cause__) is LookupError
    assert (caught.value.error_type, caught.value.error_message) == ("LookupError", "no such part")


def test_an_error_whose_text_cannot_be_had_ends_the_call_too(client):
    """Else its caller would wait until the budget is spent."""

    class WordlessError(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    class Failing(Agent):
        def handle_task(self, task):
            raise WordlessError

    with (
        Failing(AgentCard("failing", "d", URL)).serve(URL),
        pytest.raises(TransportRemoteError, match="interrupted"),
    ):
        client.send_task(URL, Task.create("x"))


@pytest.mark.parametrize("side", ["agent", "client"])
def test_an_answer_beyond_a_limit(side):
    config = TransportConfig(limits=TransportLimits(max_response_bytes=1000))

    class Talking(Agent):
        def handle_task(self, task):
            return task.complete("x" * 1000)

    agent = Talking(AgentCard("t", "d", URL), config=config if side == "agent" else None)
    transport = RuntimeTransport(config=config if side == "client" else None)
    kind = TransportRemoteError if side == "agent" else TransportLimitError
    with agent.serve(URL), transport, pytest.raises(kind, match="max_response_bytes"):
        AgentClient(transport).send_task(URL, Task.create("x"))


def test_a_thousand_calls_leave_one_worker(agent, client):
    agent.gate.set()
    for _ in range(1000):
        client.send_task(URL, Task.create("x"))

    assert workers() == 1
    client.close()
    client.transport.close()
    assert wait_until(lambda: workers() == 0, LIMIT)


class CtrlC:
    """Raise KeyboardInterrupt in this thread at the n-th line of the package, once."""

    def __init__(self, number):
        self.left = number
        self.where = None

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_):
        sys.settrace(self.before)

    def trace(self, frame, event, arg):
        if event == "line" and frame.f_code.co_filename.startswith(PACKAGE):
            self.left -= 1
            if self.left == 0:
                self.where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                raise KeyboardInterrupt
        return self.trace


@pytest.mark.slow
def test_ctrl_c_at_any_line_loses_nothing_and_has_nothing_done_twice(agent, client):
    """The same task, sent again, is carried out once in all."""
    agent.gate.set()
    for number in itertools.count(1):
        task, before = Task.create("x"), agent.executions
        started = client.transport.metrics.requests_started
        with CtrlC(number) as interrupt:
            try:
                client.send_task(URL, task)
                was_raised = False
            except KeyboardInterrupt:
                was_raised = True
        counted = client.transport.metrics

        assert was_raised == (interrupt.where is not None), interrupt.where
        assert client.send_task(URL, task).text == f"execution {before + 1}", interrupt.where
        assert agent.executions == before + 1, interrupt.where
        assert counted.active_requests == 0, interrupt.where
        ended = counted.requests_succeeded + counted.requests_failed + counted.requests_cancelled
        assert ended == counted.requests_started <= started + 1, interrupt.where
        if interrupt.where is None:
            break

    assert number > 100
    assert workers() <= 3
