"""ProtoLink or A2A: how ``AgentClient`` finds out, how long it remembers, many threads at once."""

from __future__ import annotations

import os
import pickle
import time

import pytest

from protolink_sync import AgentClient, CancelToken
from protolink_sync.a2a import A2AClientError, A2AMemory
from protolink_sync.errors import (
    AuthenticationError,
    CallCancelledError,
    TransportConnectionError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import TaskState
from protolink_sync.transport import HTTPTransport
from tests.a2a.client.bridges import (
    AUTO,
    EXPLICIT,
    NATIVE,
    NATIVE_CARD,
    STANDARD,
    a2a_only,
    asked,
    native_agent,
    paths,
)
from tests.a2a.client.scenes import Running, in_threads
from tests.a2a.scripted import HOLD, RST, card, done, envelope, old_card, reply, result, sent, task
from tests.cases.play import eventually
from tests.transport.scenes import at_once


class Clock:
    """A clock that a test moves."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


# What is kept is not looked at.
MARK = object()
WORKING = {"SendMessage": result(sent(task("working"))), "CancelTask": result(task("working"))}


@pytest.fixture
def client():
    with AgentClient("http", timeout=20, a2a=True) as client:
        yield client


@pytest.fixture
def clock(client):
    """A clock by which the client's memory grows old."""
    clock = Clock()
    client.a2a_memory = A2AMemory(clock=clock)
    return clock


# ---- which -------------------------------------------------------------------------------------


def test_auto_keeps_to_protolink_where_there_is_a_protolink_card(agent_of, client):
    agent = native_agent(agent_of, card=card())

    came = client.send_task(agent.base, asked())

    assert came.state is TaskState.COMPLETED
    assert paths(agent) == [f"GET {NATIVE}", "POST /tasks/"]


@pytest.mark.parametrize("status", [404, 405])
def test_auto_takes_a2a_where_there_is_no_protolink_card(status, agent_of, client):
    agent = a2a_only(agent_of, routes={f"GET {NATIVE}": [[reply("no", status=status)]]})

    client.send_task(agent.base, asked())

    assert paths(agent) == AUTO


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (reply("no", status=401), AuthenticationError),
        (reply("no", status=403), AuthenticationError),
        (reply("no", status=410), TransportRemoteError),
        (reply("no", status=500), TransportRemoteError),
        (reply("no", status=503), TransportRemoteError),
        (reply("", status=307, headers={"Location": STANDARD}), TransportRemoteError),
        (reply("<html>"), TransportProtocolError),
        (reply({"name": "x"}), TransportProtocolError),
        (RST, TransportConnectionError),
        (HOLD, TransportTimeoutError),
    ],
    ids=["401", "403", "410", "500", "503", "307", "HTML", "no card", "reset", "silence"],
)
def test_whatever_else_is_raised_and_nothing_is_sent(answer, why, agent_of, client):
    agent = a2a_only(agent_of, routes={f"GET {NATIVE}": [[answer]]})

    began = time.monotonic()
    with pytest.raises(why):
        client.send_task(agent.base, asked(), timeout=0.5)

    assert time.monotonic() - began < 2
    assert paths(agent) == [f"GET {NATIVE}"]


def test_an_a2a_card_at_the_old_address_is_no_protolink_card(agent_of, client):
    """Agents of A2A 0.3 answer at both."""
    agent = a2a_only(
        agent_of,
        card=old_card(),
        routes={f"GET {NATIVE}": [[reply(old_card())]]},
        methods={"message/send": done(old=True)},
    )

    assert client.send_task(agent.base, asked()).text == "done"


def test_protolink_asks_for_no_card(agent_of, client):
    agent = native_agent(agent_of)

    client.send_task(agent.base, asked(), protocol="protolink")
    client.cancel_task(agent.base, "t", protocol="protolink")

    assert paths(agent) == ["POST /tasks/", "POST /tasks/cancel"]


def test_a2a_reads_the_a2a_card_each_time(agent_of, client):
    agent = native_agent(agent_of, card=card(), methods={"SendMessage": done()})

    client.send_task(agent.base, asked(), protocol="a2a")
    client.send_task(agent.base, asked(), protocol="a2a")
    client.send_task(agent.base, asked())

    assert paths(agent) == [*EXPLICIT, *EXPLICIT, f"GET {NATIVE}", "POST /tasks/"]


def test_without_a2a_no_card_is_asked_for(agent_of):
    agent = native_agent(agent_of)

    with AgentClient("http") as plain:
        plain.send_task(agent.base, asked())

    assert paths(agent) == ["POST /tasks/"]


def test_a_native_cancel_is_native(agent_of, client):
    agent = native_agent(agent_of)

    client.cancel_task(agent.base, "t-1", reason="stop")

    assert paths(agent) == [f"GET {NATIVE}", "POST /tasks/cancel"]
    assert agent.requests[1].json()["id"] == "t-1"


# ---- how long ----------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [a2a_only, native_agent])
def test_the_choice_is_kept_for_five_minutes(start, agent_of, client, clock):
    agent = start(agent_of)

    for seconds in (0, 299, 0.9, 0.2):
        clock.now += seconds
        client.send_task(agent.base, asked())

    asked_native = [path for path in paths(agent) if path == f"GET {NATIVE}"]
    assert len(asked_native) == 2
    assert len([path for path in paths(agent) if path.startswith("POST")]) == 4


def with_max_age(value):
    return reply(card(), headers={"Content-Type": "application/json", "Cache-Control": value})


@pytest.mark.parametrize(
    ("told", "good", "over"),
    [("max-age=60", 59.0, 61.0), ("public, max-age=3600", 299.0, 301.0), ("max-age=0", None, 0.0)],
)
def test_max_age_bounds_the_choice(told, good, over, agent_of, client, clock):
    agent = a2a_only(agent_of, card=with_max_age(told))
    client.send_task(agent.base, asked())

    if good is not None:
        clock.now += good
        client.send_task(agent.base, asked())
        assert len(agent.gets) == 2
        clock.now -= good
    clock.now += over
    client.send_task(agent.base, asked())

    assert len(agent.gets) == 4


def test_what_must_not_be_kept_is_not(agent_of, client):
    choices: dict = {}
    client.a2a_memory = A2AMemory(choices=choices)
    client.a2a_memory.keep_choice("http://other", MARK)

    client.send_task(a2a_only(agent_of, card=with_max_age("no-store")).base, asked())

    assert list(choices) == ["http://other"]


def test_each_agent_is_chosen_for_itself(agent_of, client):
    first, second = a2a_only(agent_of), native_agent(agent_of)

    for agent in (first, second, first, second):
        client.send_task(agent.base, asked())

    assert paths(first) == [*AUTO, "POST /rpc"]
    assert paths(second) == [f"GET {NATIVE}", "POST /tasks/", "POST /tasks/"]


def test_a_slash_makes_no_other_agent(agent_of, client):
    agent = a2a_only(agent_of)

    client.send_task(agent.base, asked())
    client.send_task(agent.base + "/", asked())

    assert len(agent.gets) == 2


def test_a_failure_is_not_remembered(agent_of, client):
    answers = [[reply("no", status=500)], [reply(NATIVE_CARD)]]
    agent = native_agent(agent_of, routes={f"GET {NATIVE}": answers})

    with pytest.raises(TransportRemoteError):
        client.send_task(agent.base, asked())
    client.send_task(agent.base, asked())

    assert paths(agent) == [f"GET {NATIVE}", f"GET {NATIVE}", "POST /tasks/"]


def test_a_task_is_remembered_for_an_hour_after_its_last_change(agent_of, client, clock):
    agent = a2a_only(
        agent_of,
        methods={
            "SendMessage": result(sent(task("working"))),
            "CancelTask": result(task("working")),
        },
    )
    ours = client.send_task(agent.base, asked())

    for seconds in (3599, 3599):
        clock.now += seconds
        client.cancel_task(agent.base, ours.id)
    clock.now += 3600
    with pytest.raises(A2AClientError, match="not known"):
        client.cancel_task(agent.base, ours.id, protocol="a2a")

    assert agent.methods == ["SendMessage", "CancelTask", "CancelTask"]


def test_of_1024_tasks_the_oldest_gives_way(agent_of, client):
    agent = a2a_only(
        agent_of,
        methods={
            "SendMessage": result(sent(task("working"))),
            "CancelTask": result(task("working")),
        },
    )
    first, *others = [client.send_task(agent.base, asked()).id for _ in range(1024)]
    client.cancel_task(agent.base, first)  # so it is the newest one now

    last = client.send_task(agent.base, asked()).id

    for known in (first, others[1], last):
        client.cancel_task(agent.base, known)
    with pytest.raises(A2AClientError, match="not known"):
        client.cancel_task(agent.base, others[0])


def test_the_store_is_the_callers_and_is_bounded(agent_of, client):
    choices: dict = {}
    client.a2a_memory = A2AMemory(choices=choices)
    agent = a2a_only(agent_of)

    for number in range(1030):
        client.a2a_memory.keep_choice(f"http://h{number}", MARK)
    client.send_task(agent.base, asked())

    assert len(choices) == 1024
    assert next(iter(choices)) == "http://h7"
    assert list(choices)[-1] == agent.base


def test_what_is_over_leaves_the_store_before_what_is_not(client):
    clock, tasks = Clock(), {}
    memory = A2AMemory(clock=clock, tasks=tasks)
    memory.keep_task("http://h", "old", MARK)
    clock.now += 3000
    memory.keep_task("http://h", "new", MARK)
    clock.now += 700

    memory.keep_task("http://h", "newest", MARK)

    assert list(tasks) == [("http://h", "new"), ("http://h", "newest")]
    assert memory.task("http://h", "old") is None
    assert memory.task("http://h", "new") is MARK


def test_clients_that_share_a_memory_share_what_they_know(agent_of, client):
    agent = a2a_only(
        agent_of,
        methods={
            "SendMessage": result(sent(task("working"))),
            "CancelTask": result(task("working")),
        },
    )
    ours = client.send_task(agent.base, asked())

    with AgentClient("http", a2a=True) as other:
        other.a2a_memory = client.a2a_memory
        other.cancel_task(agent.base, ours.id)

    assert len(agent.gets) == 2


# ---- threads -----------------------------------------------------------------------------------


def test_thirty_two_threads_that_ask_first_make_one_selection(agent_of, client):
    """Each gets the answer to its own task."""
    own = reply(envelope(result=sent({**task(), "id": "ID"})).replace('"ID"', '"{{task_id}}"'))
    gate = {"op": "wait", "event": "go"}
    agent = a2a_only(agent_of, own, routes={f"GET {NATIVE}": [[gate, reply("no", status=404)]]})
    tasks = [asked(str(number)) for number in range(32)]

    def work(number):
        if number == 31:
            agent.wait_for_requests(1)
            agent.fire("go")
        return client.send_task(agent.base, tasks[number])

    results = in_threads(32, work)

    told = {call.params["message"]["messageId"]: str(call.id) for call in agent.calls}
    assert [r.id for r in results] == [t.id for t in tasks]
    assert [r.metadata["a2a_remote_task_id"] for r in results] == [
        told[t.messages[0].id] for t in tasks
    ]
    assert sorted(paths(agent)) == sorted([*EXPLICIT[:1], f"GET {NATIVE}", *["POST /rpc"] * 32])


def waiting(client, agent, **words):
    """Start a call whose selection hangs, and one that waits for it."""
    first = Running(lambda: client.send_task(agent.base, asked(), timeout=15))
    agent.wait_for_requests(1)
    second = Running(lambda: client.send_task(agent.base, asked(), **words))
    # Nobody says that it has begun to wait; one that has not would ask again.
    assert eventually(lambda: second.is_inside("_flight.py"))
    return first, second


SLOW = {f"GET {NATIVE}": [[{"op": "wait", "event": "go"}, reply("no", status=404)]]}


def test_a_call_from_inside_the_asking_does_not_wait_for_itself(agent_of):
    """A credentials callable that calls the same agent would wait for its own end."""
    inner = []

    def credentials(origin, refresh):
        if not inner:
            inner.append(None)
            with pytest.raises(RuntimeError, match="from inside another one") as caught:
                client.send_task(agent.base, asked(), timeout=20)
            inner[0] = caught.value
        return {"Authorization": "Bearer token"}

    agent = a2a_only(agent_of)
    began = time.monotonic()
    with HTTPTransport(credentials=credentials) as transport:
        client = AgentClient(transport, a2a=True)
        assert client.send_task(agent.base, asked(), timeout=20).text == "done"

    assert isinstance(inner[0], RuntimeError)
    assert time.monotonic() - began < 5


def test_what_credentials_raise_is_not_told_as_an_agent_without_a_card(agent_of):
    """They may have asked somebody else, who had no token."""

    def credentials(origin, refresh):
        raise TransportRemoteError("the vault has none", status_code=404)

    agent = a2a_only(agent_of)
    with HTTPTransport(credentials=credentials) as transport:
        client = AgentClient(transport, a2a=True)
        with pytest.raises(TransportRemoteError, match="the vault has none"):
            client.send_task(agent.base, asked())

    assert agent.requests == []


def test_who_waits_has_a_token_of_its_own(agent_of, client):
    token = CancelToken()
    agent = a2a_only(agent_of, routes=SLOW)
    first, second = waiting(client, agent, cancel=token)

    began = time.monotonic()
    token.cancel("enough")
    second.end(5)

    assert isinstance(second.error, CallCancelledError)
    assert second.ended_at - began < at_once()
    assert first.alive
    agent.fire("go")
    assert first.end().value.text == "done"


def test_who_waits_has_a_budget_of_its_own(agent_of, client):
    agent = a2a_only(agent_of, routes=SLOW)
    first, second = waiting(client, agent, timeout=0.3)

    second.end(5)

    assert isinstance(second.error, TransportTimeoutError)
    assert "0.3 s" in str(second.error)
    agent.fire("go")
    assert first.end().value.text == "done"


def test_a_failure_is_told_to_all_who_wait_for_it(agent_of, client):
    """They do not ask one after the other, each as long as the one before."""
    barrier = [{"op": "wait", "event": "go"}, reply("no", status=500)]
    agent = a2a_only(agent_of, routes={f"GET {NATIVE}": [barrier]})
    first, second = waiting(client, agent)

    agent.fire("go")
    first.end(), second.end()

    assert isinstance(first.error, TransportRemoteError)
    assert isinstance(second.error, TransportRemoteError)
    assert second.error is not first.error
    assert paths(agent) == [f"GET {NATIVE}"]


def test_one_who_gives_up_leaves_the_question_to_the_next(agent_of, client):
    token = CancelToken()
    agent = a2a_only(agent_of, routes={f"GET {NATIVE}": [[HOLD], [reply("no", status=404)]]})
    first = Running(lambda: client.send_task(agent.base, asked(), cancel=token))
    agent.wait_for_requests(1)
    second = Running(lambda: client.send_task(agent.base, asked()))

    token.cancel()

    assert isinstance(first.end().error, CallCancelledError)
    assert second.end().value.text == "done"


def test_one_whose_time_is_over_leaves_the_question_to_the_next(agent_of, client):
    """That says nothing of the agent."""
    agent = a2a_only(agent_of, routes={f"GET {NATIVE}": [[HOLD], [reply("no", status=404)]]})
    first = Running(lambda: client.send_task(agent.base, asked(), timeout=0.4))
    agent.wait_for_requests(1)
    second = Running(lambda: client.send_task(agent.base, asked()))

    assert isinstance(first.end().error, TransportTimeoutError)
    assert second.end().value.text == "done"


def test_a_cancelled_token_sends_nothing(agent_of, client):
    agent, token = a2a_only(agent_of), CancelToken()
    token.cancel()

    for call in (
        lambda: client.send_task(agent.base, asked(), cancel=token),
        lambda: client.send_task(agent.base, asked(), protocol="a2a", cancel=token),
        lambda: client.get_a2a_agent_card(agent.base, cancel=token),
    ):
        with pytest.raises(CallCancelledError):
            call()

    assert agent.requests == []


def test_a_budget_covers_the_selection_too(agent_of, client):
    agent = native_agent(
        agent_of,
        routes={
            f"GET {NATIVE}": [[{"op": "sleep", "s": 0.4}, reply(NATIVE_CARD)]],
            "POST /tasks/": [[HOLD]],
        },
    )

    began = time.monotonic()
    with pytest.raises(TransportTimeoutError):
        client.send_task(agent.base, asked(), timeout=0.8)

    # A bound of its own for each of the two would be 1.2 s.
    assert time.monotonic() - began < 1.15


# ---- one transport, processes ------------------------------------------------------------------


def test_everything_goes_over_the_clients_one_connection(agent_of):
    agent = a2a_only(agent_of)
    with HTTPTransport(timeout=20) as transport:
        client = AgentClient(transport, a2a=True)
        for _ in range(5):
            client.send_task(agent.base, asked())

        assert transport.metrics.requests_succeeded == 6  # the card, five sends
    assert len(agent.connections) == 1


def test_a_closed_client_calls_nobody(agent_of):
    agent = a2a_only(agent_of)
    client = AgentClient("http", a2a=True)
    client.send_task(agent.base, asked())
    client.close()

    with pytest.raises(RuntimeError):
        client.send_task(agent.base, asked())

    assert len(agent.calls) == 1


def test_a_pickled_client_speaks_a2a_and_has_forgotten(agent_of, client):
    agent = a2a_only(agent_of)
    client.send_task(agent.base, asked())

    with pickle.loads(pickle.dumps(client)) as copy:
        assert copy.a2a
        copy.send_task(agent.base, asked())

    assert paths(agent) == [*AUTO, *AUTO]


def test_a_pickled_client_cannot_cancel_what_the_client_sent(agent_of, client):
    agent = a2a_only(agent_of, methods=WORKING)
    came = client.send_task(agent.base, asked())

    with pickle.loads(pickle.dumps(client)) as copy, pytest.raises(A2AClientError):
        copy.cancel_task(agent.base, came.id)

    assert client.cancel_task(agent.base, came.id).id == came.id


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_goes_on_although_a_parents_thread_was_asking(agent_of, client):
    """What that thread would have found never comes in the child."""
    agent = a2a_only(
        agent_of,
        routes={
            f"GET {NATIVE}": [
                [{"op": "wait", "event": "go"}, reply("no", status=404)],
                [reply("no", status=404)],
            ]
        },
    )
    first = Running(lambda: client.send_task(agent.base, asked()))
    agent.wait_for_requests(1)

    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if client.send_task(agent.base, asked(), timeout=10).text == "done" else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    agent.fire("go")
    assert first.end().value.text == "done"


def test_no_lock_is_held_while_an_agent_is_asked(agent_of, client):
    """A slow agent does not keep calls of others waiting."""
    slow, quick = a2a_only(agent_of, routes=SLOW), a2a_only(agent_of)
    first = Running(lambda: client.send_task(slow.base, asked()))
    slow.wait_for_requests(1)

    assert client.send_task(quick.base, asked(), timeout=5).text == "done"

    assert first.alive
    slow.fire("go")
    first.end()


def test_views_of_a_client_give_no_id_twice(agent_of, client):
    """They share connections, on which an answer is known by its id."""
    agent = a2a_only(agent_of)

    for user in (client, client.with_options(timeout=9), client.with_options(timeout=8)):
        user.send_task(agent.base, asked())

    ids = [call.id for call in agent.calls]
    assert len(set(ids)) == len(ids) == 3
