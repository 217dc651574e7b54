"""When a stream is over, and the task that its events add up to."""

from __future__ import annotations

import itertools
import time

import pytest

from protolink_sync.a2a.wire import (
    Artifact,
    Message,
    Part,
    StreamEvent,
    Task,
    TaskArtifactUpdate,
    TaskAssembly,
    TaskState,
    TaskStatus,
    TaskStatusUpdate,
    WireDialect,
    ends_stream,
)
from protolink_sync.errors import ModelError
from tests.a2a.wire.values import artifact, brought, event, message, moved, moved_0_3, task_event

TERMINAL = ["COMPLETED", "FAILED", "CANCELED", "REJECTED"]
INTERRUPTED = ["INPUT_REQUIRED", "AUTH_REQUIRED"]
RUNNING = ["SUBMITTED", "WORKING"]
BOTH = pytest.mark.parametrize("dialect", list(WireDialect))


def assembled(*events: StreamEvent) -> Task:
    assembly = TaskAssembly()
    for one in events:
        assembly.see(one)
    task = assembly.task
    assert task is not None
    return task


# --- B41, B42: when it is over ---------------------------------------------------------------


@pytest.mark.parametrize("make", [task_event, moved])
def test_b41_final_of_1_0_is_told_by_the_state(make):
    assert all(make(state).is_final for state in TERMINAL + INTERRUPTED)
    assert not any(make(state).is_final for state in [*RUNNING, "PAUSED"])
    assert event({"message": message()}).is_final
    assert not brought("x", lastChunk=True).is_final


@pytest.mark.parametrize("state", ["working", "completed", "input-required"])
@pytest.mark.parametrize("final", [True, False])
def test_b41_final_of_0_3_is_what_the_event_says(state, final):
    assert moved_0_3(state, final).is_final is final


def test_b41_a_stray_final_means_nothing_in_1_0():
    stray = moved("WORKING", final=True)

    assert stray.status_update is not None
    assert (stray.is_final, stray.status_update.final) == (False, None)
    assert stray.to_dict()["statusUpdate"]["final"] is True


@BOTH
def test_b42_a_message_and_a_terminal_state_end_a_stream(dialect):
    """Also where the server holds the connection open, or says ``final: false``."""
    assert ends_stream(event({"message": message()}), dialect=dialect)
    for state, make in itertools.product(TERMINAL, (task_event, moved)):
        assert ends_stream(make(state), dialect=dialect, stop_on_interrupted=False)
        assert ends_stream(make(state), dialect=dialect, is_opening_of_subscription=True)
    assert ends_stream(moved_0_3("completed", final=False), dialect=WireDialect.V0_3)


def test_b42_the_mark_final_ends_a_stream_of_0_3_only():
    marked = moved_0_3("working", final=True)

    assert ends_stream(marked, dialect=WireDialect.V0_3)
    assert not ends_stream(marked, dialect=WireDialect.V1_0)


@BOTH
@pytest.mark.parametrize("state", INTERRUPTED)
def test_b42_a_state_that_waits_ends_a_stream_unless_told_otherwise(dialect, state):
    waiting = moved(state)

    assert ends_stream(waiting, dialect=dialect)
    assert not ends_stream(waiting, dialect=dialect, stop_on_interrupted=False)


@BOTH
def test_b42_the_opening_of_a_subscription_does_not_end_it_by_waiting(dialect):
    opening = task_event("INPUT_REQUIRED")

    assert not ends_stream(opening, dialect=dialect, is_opening_of_subscription=True)


@BOTH
def test_b42_nothing_else_ends_a_stream(dialect):
    for one in (
        *map(moved, RUNNING),
        *map(task_event, RUNNING),
        brought("x", lastChunk=True),
        event({"other": 1}),
        moved("PAUSED"),
    ):
        assert not ends_stream(one, dialect=dialect)


def test_q2_waiting_ends_a_stream_of_0_3_that_says_it_is_not_final():
    waiting = moved_0_3("input-required", final=False)
    assembly = TaskAssembly()

    assembly.see(waiting)

    assert ends_stream(waiting, dialect=WireDialect.V0_3)
    assert assembly.may_end


@pytest.mark.parametrize(
    ("events", "whole"),
    [
        ([], False),
        ([task_event()], False),
        ([task_event(), moved("WORKING")], False),
        ([task_event(), brought("x", lastChunk=True)], False),
        ([event({"other": 1})], False),
        ([task_event(), moved("COMPLETED")], True),
        ([task_event(), moved("INPUT_REQUIRED")], True),
        ([moved_0_3("working", final=True)], True),
        ([event({"message": message()})], True),
        ([moved("INPUT_REQUIRED"), moved("WORKING")], False),
        ([moved("INPUT_REQUIRED"), brought("x")], True),
    ],
)
def test_b43_an_end_of_the_connection_is_whole_or_a_cut(events, whole):
    """Case C034."""
    assembly = TaskAssembly()

    for one in events:
        assembly.see(one)

    assert assembly.may_end is whole


# --- B44, B45: what it adds up to ------------------------------------------------------------


def test_b44_a_task_replaces_everything():
    task = assembled(
        moved("WORKING", message("old"), metadata={"a": 1}),
        brought("old"),
        task_event("WORKING", artifacts=[artifact("new", id="n")]),
        brought("er", id="n", append=True),
    )

    assert (task.history, task.metadata) == ([], {})
    assert [(one.artifact_id, one.text) for one in task.artifacts] == [("n", "newer")]


def test_b44_a_status_update_sets_the_status_and_merges_its_metadata():
    task = assembled(
        task_event(metadata={"a": 1, "b": 1}),
        moved("INPUT_REQUIRED", message("which?"), metadata={"b": 2}),
    )

    assert task.status.state is TaskState.INPUT_REQUIRED
    assert task.metadata == {"a": 1, "b": 2}
    assert [one.text for one in task.history] == ["which?"]


def test_b44_a_message_that_repeats_the_last_one_is_not_added_again():
    """Q13: some agents repeat the latest message in the history."""
    task = assembled(
        task_event(history=[message("a", id="1")]),
        moved("WORKING", message("a", id="1")),
        moved("WORKING", message("b", id="2")),
        moved("COMPLETED", message("b", id="2")),
    )

    assert [one.text for one in task.history] == ["a", "b"]


def test_b44_messages_without_ids_are_not_taken_for_one():
    task = assembled(moved("WORKING", message("a", id="")), moved("WORKING", message("b", id="")))

    assert [one.text for one in task.history] == ["a", "b"]


def test_b44_it_works_without_a_task_event():
    task = assembled(brought("Hel"), brought("lo", append=True), moved("COMPLETED"))

    assert (task.id, task.context_id, task.text) == ("t", "c", "Hello")
    assert task.status.state is TaskState.COMPLETED


def test_b45_chunks_append_start_over_or_begin():
    """Case C088: nothing between the pieces, none of them twice."""
    events = [
        brought("Hel", artifact_members={"name": "n", "metadata": {"a": 1}}),
        brought("lo", append=True, artifact_members={"metadata": {"b": 2}}),
        brought("other", id="b", append=True),
        brought("!", append=True, lastChunk=True),
    ]
    task = assembled(*events)

    assert [(one.artifact_id, one.text) for one in task.artifacts] == [
        ("a", "Hello!"),
        ("b", "other"),
    ]
    assert [part.text for part in task.artifacts[0].parts] == ["Hel", "lo", "!"]
    assert (task.artifacts[0].name, task.artifacts[0].metadata) == ("n", {"a": 1, "b": 2})
    over = assembled(*events, brought("again", lastChunk=True))
    assert [one.text for one in over.artifacts] == ["again", "other"]


@pytest.mark.parametrize("state", TERMINAL)
def test_a_terminal_task_is_not_overwritten(state):
    """An agent's late WORKING must not turn a finished task into a running one."""
    before = [task_event(), brought("x"), moved(state)]
    late = [
        moved("WORKING"),
        task_event(),
        brought("y", append=True),
        event({"message": message()}),
    ]

    assert assembled(*before, *late) == assembled(*before)


def test_a_message_is_the_whole_answer():
    task = assembled(event({"message": message("pong")}))

    assert (task.text, task.from_message) == ("pong", True)
    assert task.status.state is TaskState.COMPLETED


def test_a_message_behind_a_task_is_its_last_word_and_claims_no_state():
    task = assembled(task_event(), event({"message": message("pong")}))

    assert (task.id, task.text, task.from_message) == ("t", "pong", False)
    assert task.status.state is TaskState.WORKING


def test_b44_ids_that_come_late_are_taken():
    assembly = TaskAssembly()
    assembly.see(event({"statusUpdate": {"status": {"state": "working"}}}))
    assert assembly.task_id == ""

    assembly.see(moved("WORKING"))
    assembly.see(event({"statusUpdate": {"status": {"state": "completed"}}}))

    task = assembly.task
    assert task is not None
    assert (task.id, task.context_id, task.is_terminal) == ("t", "c", True)


@pytest.mark.parametrize(
    "stranger",
    [
        {"task": {"id": "other", "status": {"state": "working"}}},
        {"statusUpdate": {"taskId": "other", "contextId": "c", "status": {"state": "completed"}}},
        {"artifactUpdate": {"taskId": "other", "contextId": "c", "artifact": artifact("x")}},
        {"message": message(taskId="other")},
    ],
    ids=lambda value: next(iter(value)),
)
def test_an_event_of_another_task_is_not_mixed_in(stranger):
    """It would be the answer to somebody else."""
    assembly = TaskAssembly()
    assembly.see(task_event())
    before = assembly.task

    with pytest.raises(ModelError, match="'other' in the stream of task 't'") as raised:
        assembly.see(event(stranger))

    assert raised.value.path == ("$.id" if "task" in stranger else "$.taskId")
    assert assembly.task == before


def test_b35_other_context_ids_do_not_matter():
    task = assembled(task_event(), moved("COMPLETED", message(contextId="else"), contextId="else"))

    assert (task.id, task.context_id) == ("t", "c")


def test_b46_what_was_handed_out_does_not_change_with_later_events():
    assembly = TaskAssembly()
    opening, chunk = task_event(artifacts=[artifact("a")]), brought("b", append=True)
    assembly.see(opening)
    first = assembly.task
    assembly.see(chunk)
    second = assembly.task
    assembly.see(moved("COMPLETED", message("end"), metadata={"a": 1}))

    assert first is not None
    assert second is not None
    assert [first.text, second.text] == ["a", "ab"]
    assert (first.history, first.metadata, first.is_terminal) == ([], {}, False)
    assert opening.task is not None
    assert chunk.artifact_update is not None
    assert opening.task.text == "a"
    assert opening.raw["task"]["artifacts"] == [artifact("a")]
    assert chunk.artifact_update.artifact.text == "b"


def test_b46_editing_what_was_handed_out_changes_neither_task_nor_event():
    assembly = TaskAssembly()
    opening = task_event("WORKING", artifacts=[artifact("a")], metadata={"x": [1]})
    assembly.see(opening)
    mine = assembly.task
    assert mine is not None
    assert opening.task is not None
    mine.artifacts[0].parts[0].text = "changed"
    mine.artifacts[0].parts.append(Part("more"))
    mine.metadata["x"].append(2)
    mine.status.state = TaskState.COMPLETED

    assert assembly.task == opening.task
    assert opening.task.text == "a"


def test_b47_an_unknown_event_changes_nothing():
    assembly = TaskAssembly()
    assembly.see(event({"other": 1}))
    assert (assembly.task, assembly.state, assembly.task_id) == (None, None, "")
    assembly.see(task_event())
    before = assembly.task

    assembly.see(event({"other": 1}))

    assert assembly.task == before
    assert (assembly.state, assembly.task_id) == (TaskState.WORKING, "t")


def test_an_event_tells_what_it_is_about():
    for one, kind, state in (
        (task_event("WORKING"), "task", TaskState.WORKING),
        (moved("FAILED"), "status-update", TaskState.FAILED),
        (brought("x"), "artifact-update", None),
        (event({"message": message(taskId="t", contextId="c")}), "message", None),
    ):
        assert (one.kind, one.task_id, one.context_id, one.state) == (kind, "t", "c", state)


def test_events_can_be_made_by_a_host():
    made = StreamEvent(message=Message.agent("x"))
    update = TaskArtifactUpdate("t", "c", Artifact([Part("x")], "a"))

    assert (made.kind, made.is_final, made.raw) == ("message", True, None)
    assert StreamEvent(artifact_update=update).to_dict() == brought("x").raw
    assert StreamEvent(artifact_update=update) == brought("x")
    said = TaskStatusUpdate("t", "c", TaskStatus(TaskState.FAILED), {"a": 1})
    assert StreamEvent(status_update=said).to_dict() == moved("FAILED", metadata={"a": 1}).raw


def test_many_artifacts_take_linear_time():
    """It takes a tenth of a second; a scan of all artifacts for each event, many seconds."""
    events = [brought("x", id=str(number)) for number in range(15_000)]
    assembly = TaskAssembly()
    begin = time.process_time()

    for one in events:
        assembly.see(one)

    assert time.process_time() - begin < 3
    assert assembly.task is not None
    assert len(assembly.task.artifacts) == 15_000
