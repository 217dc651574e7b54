"""Whose the A2A tasks are, and how long they are kept."""

from __future__ import annotations

import itertools

import pytest

from protolink_sync.a2a.wire import (
    A2AInternalError,
    A2ATaskNotFoundError,
    StreamEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdate,
)
from protolink_sync.a2a.wire import Artifact as A2AArtifact
from protolink_sync.a2a.wire import Part as A2APart
from protolink_sync.models import Task
from protolink_sync.server.a2a_followers import Followers
from protolink_sync.server.a2a_store import HostedTasks
from protolink_sync.server.a2a_task import HostedTask
from protolink_sync.server.refusal import RefusedError
from tests.server.a2a_calling import calling, message, said
from tests.server.hosting import Kitchen, in_background

OWNER = ("ada", "")
WORKING = TaskStatus(TaskState.WORKING)


def by_name(environ):
    return environ.get("HTTP_X_USER") or None


def test_a_task_is_there_for_its_owner_only():
    agent = Kitchen(authenticate=by_name)
    with calling(agent) as (caller, _):
        params = {**message("who"), "tenant": "acme"}
        task = caller.result("SendMessage", params, X_User="ada")["task"]
        assert said(task) == "ada"
        mine = {"id": task["id"], "tenant": "acme"}
        strangers = [
            ({"id": task["id"], "tenant": "acme"}, "bob"),
            ({"id": task["id"]}, "ada"),
            ({"id": task["id"], "tenant": "other"}, "ada"),
        ]
        for params, user in strangers:
            for method in ("GetTask", "CancelTask", "SubscribeToTask"):
                assert caller.code(method, params, X_User=user) == -32001
            more = {**message("x", taskId=task["id"]), "tenant": params.get("tenant", "")}
            assert caller.code("SendMessage", more, X_User=user) == -32001
            listed = {"tenant": params.get("tenant", "")}
            assert caller.result("ListTasks", listed, X_User=user)["totalSize"] == 0
        assert caller.result("GetTask", mine, X_User="ada") == task
        assert caller.result("ListTasks", {"tenant": "acme"}, X_User="ada")["totalSize"] == 1


def test_metadata_cannot_make_a_task_somebody_elses():
    """Native callers may write what they like into metadata."""
    with calling(Kitchen(authenticate=by_name)) as (caller, _):
        params = {**message("echo x"), "metadata": {"a2a_principal_id": "bob"}}
        task = caller.result("SendMessage", params, X_User="ada")["task"]

        assert caller.code("GetTask", {"id": task["id"]}, X_User="bob") == -32001


def test_who_is_not_accepted_gets_401_and_runs_nothing():
    agent = Kitchen(authenticate=by_name)
    with calling(agent) as (caller, _):
        reply = caller.rpc("SendMessage", message("echo x"))

    assert reply.status == 401
    assert reply.error == "Missing credentials"
    assert not agent.executions


class Clock:
    """A monotonic clock that the test moves."""

    def __init__(self, start):
        self.now = start

    def __call__(self):
        return self.now


def hosted(*, running=False, size=10):
    task = HostedTask(Task.create("x"), "c", OWNER, size)
    if not running:
        task.cancel("over")
    return task


def add(tasks, **settings):
    task = hosted(**settings)
    tasks.add(task)
    return task


def is_there(tasks, task):
    try:
        tasks.find(task.id, OWNER)
    except A2ATaskNotFoundError:
        return False
    return True


def test_a_task_is_kept_for_an_hour():
    task = hosted()
    clock = Clock(task.changed_at)
    tasks = HostedTasks(clock)
    tasks.add(task)
    running = add(tasks, running=True)

    clock.now += 3599.9
    assert is_there(tasks, task)
    clock.now += 0.2
    assert not is_there(tasks, task)
    assert is_there(tasks, running)
    assert [found.id for found in tasks.of(OWNER)] == [running.id]


def test_the_oldest_makes_room_and_what_runs_is_never_dropped():
    tasks = HostedTasks()
    running = [add(tasks, running=True) for _ in range(3)]
    done = [add(tasks) for _ in range(1021)]
    assert all(map(is_there, itertools.repeat(tasks), done))

    add(tasks)

    assert not is_there(tasks, done[0])
    assert is_there(tasks, done[1])
    assert all(map(is_there, itertools.repeat(tasks), running))


def test_a_task_that_changed_again_is_not_the_oldest():
    tasks = HostedTasks()
    first, second = add(tasks, running=True), add(tasks)
    for _ in range(1022):
        add(tasks)
    first.cancel("over")

    add(tasks)

    assert is_there(tasks, first)
    assert not is_there(tasks, second)


def test_if_all_run_a_further_one_is_refused():
    tasks = HostedTasks()
    running = [add(tasks, running=True) for _ in range(1024)]

    with pytest.raises(A2AInternalError, match="too many tasks"):
        add(tasks, running=True)

    running[7].cancel("over")
    assert add(tasks, running=True)
    assert not is_there(tasks, running[7])


def test_large_requests_make_room_sooner():
    tasks = HostedTasks()
    first, second = add(tasks, size=200 * 2**20), add(tasks, size=50 * 2**20)

    third = add(tasks, size=50 * 2**20)

    assert [is_there(tasks, task) for task in (first, second, third)] == [False, True, True]


def test_those_who_follow_a_task_that_is_dropped_are_told():
    tasks, followers = HostedTasks(), Followers(1, 2**20)
    waiting = hosted(running=True)
    waiting.is_running = False
    tasks.add(waiting)
    follower = followers.new()
    waiting.follow(follower)
    for _ in range(1024):
        add(tasks)

    assert len(follower.take(1)) == 1
    with pytest.raises(RefusedError, match="dropped"):
        follower.take(1)
    assert len(followers) == 0


@pytest.mark.slow
def test_a_task_goes_on_without_those_who_do_not_read():
    followers = Followers(2, 2**20)
    task = hosted(running=True)
    asleep, awake = followers.new(), followers.new()
    task.follow(asleep)
    task.follow(awake)

    def work():
        for _ in range(200):
            task.wait_for_followers()
            task.tell(StreamEvent(status_update=TaskStatusUpdate(task.id, "c", WORKING)))
        task.cancel("done")

    worked = in_background(work)
    got = 0
    while events := awake.take(15):
        got += len(events)

    assert awake.take(0) is None
    assert got == 202
    assert len(asleep.take(0)) == 64
    with pytest.raises(RefusedError, match="too slowly"):
        asleep.take(0)
    worked()


def test_what_was_answered_counts_too():
    """A short question may bring a large answer, and a thousand of them."""
    tasks = HostedTasks()
    first = hosted(running=True)
    tasks.add(first)
    answer = first.seen()
    answer.artifacts = [A2AArtifact([A2APart.from_text("x" * 1000)])]

    first.end(answer)

    assert first.size > 1000
    add(tasks, size=256 * 2**20 - 500)
    assert not is_there(tasks, first)


def test_who_has_the_most_tasks_makes_room_for_others():
    """Nobody loses a task that waits for him because somebody else is busy."""
    tasks, mine = HostedTasks(), ("mine", "")
    waiting = HostedTask(Task.create("x"), "c", mine, 10)
    waiting.cancel("over")
    tasks.add(waiting)

    for _ in range(1030):
        add(tasks)

    assert tasks.find(waiting.id, mine) is waiting
    assert len(tasks.all()) == 1024
