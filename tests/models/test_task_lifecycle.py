"""The lifecycle of a task, as measured on protolink 0.8.3 (wire/protolink.md 14)."""

from __future__ import annotations

import pytest

from protolink_sync.models import Message, Task, TaskExecutionError, TaskState

STATES = [state.value for state in TaskState]

# Rows and columns in the order of STATES; "=" changes nothing, "." is refused.
TRANSITIONS = {
    "submitted": "= y . . y y .",
    "working": ". = y y y y .",
    "input-required": ". y = . y y .",
    "completed": ". . . = . . .",
    "canceled": ". . . . = . .",
    "failed": ". . . . . = .",
    "unknown": "y y y y y y =",
}
TABLE = [
    (old, new, mark)
    for old, marks in TRANSITIONS.items()
    for new, mark in zip(STATES, marks.split(), strict=True)
]

# What each method leads through, as the new states in the history; None is refused.
METHODS = {
    "begin": {
        "submitted": ["working"],
        "working": [],
        "input-required": ["working"],
        "completed": None,
        "canceled": None,
        "failed": None,
        "unknown": ["working"],
    },
    "complete": {
        "submitted": ["working", "completed"],
        "working": ["completed"],
        "input-required": ["working", "completed"],
        "completed": [],
        "canceled": None,
        "failed": None,
        "unknown": ["completed"],
    },
    "fail": {
        "submitted": ["failed"],
        "working": ["failed"],
        "input-required": ["failed"],
        "completed": None,
        "canceled": None,
        "failed": [],
        "unknown": ["failed"],
    },
    "cancel": {
        "submitted": ["canceled"],
        "working": ["canceled"],
        "input-required": ["canceled"],
        "completed": None,
        "canceled": [],
        "failed": None,
        "unknown": ["canceled"],
    },
    "require_input": {
        "submitted": ["working", "input-required"],
        "working": ["input-required"],
        "input-required": ["working", "input-required"],
        "completed": None,
        "canceled": None,
        "failed": None,
        "unknown": ["input-required"],
    },
}
ARGUMENTS = {"complete": ("done",), "fail": ("broken",)}
CALLS = [(name, old, steps) for name, rows in METHODS.items() for old, steps in rows.items()]


def history(task):
    return [entry["new_state"] for entry in task.metadata.get("state_history", [])]


@pytest.mark.parametrize(("old", "new", "mark"), TABLE)
def test_update_state_follows_the_table(old, new, mark):
    for wanted in (new, TaskState(new)):
        task = Task(state=TaskState(old))

        if mark == ".":
            with pytest.raises(
                ValueError, match=f"^Invalid task state transition: {old} -> {new}$"
            ):
                task.update_state(wanted)
            assert (task.state.value, history(task)) == (old, [])
        else:
            assert task.update_state(wanted) is task
            assert (task.state.value, history(task)) == (new, [new] if mark == "y" else [])


@pytest.mark.parametrize(("name", "old", "steps"), CALLS)
def test_each_method_leads_through_the_states_of_the_table(name, old, steps):
    task = Task(state=TaskState(old))
    method = getattr(task, name)

    if steps is None:
        with pytest.raises(ValueError, match="Invalid task state transition"):
            method(*ARGUMENTS.get(name, ()))
        assert (task.state.value, task.metadata, task.messages) == (old, {}, [])
    else:
        assert method(*ARGUMENTS.get(name, ())) is task
        assert history(task) == steps
        assert task.state.value == (steps[-1] if steps else old)


def test_each_change_is_noted_with_both_states_and_the_time():
    task = Task().begin()

    (entry,) = task.metadata["state_history"]

    assert (entry["previous_state"], entry["new_state"]) == ("submitted", "working")
    assert entry["timestamp"].endswith("+00:00")


def test_a_history_of_a_peer_that_is_no_list_is_left_alone():
    task = Task(metadata={"state_history": "kept elsewhere"}).begin()

    assert task.metadata == {"state_history": "kept elsewhere"}
    assert task.state is TaskState.WORKING


def test_what_a_task_was_read_from_is_not_changed_by_its_lifecycle():
    data = {"state": "submitted", "metadata": {"state_history": [{"new_state": "submitted"}]}}

    Task.from_dict(data).complete("done")

    assert data["metadata"] == {"state_history": [{"new_state": "submitted"}]}


def test_completing_again_adds_the_message_and_notes_nothing():
    task = Task().complete("one").complete("two")

    assert [m.text for m in task.messages] == ["one", "two"]
    assert history(task) == ["working", "completed"]


@pytest.mark.parametrize("message", ["broken", ""])
def test_failing_keeps_the_error_and_a_second_one_replaces_it(message):
    assert Task().fail("first").fail(message).metadata["error"] == message


@pytest.mark.parametrize(("reason", "kept"), [("late", "late"), ("", None), (None, None)])
def test_canceling_keeps_a_reason_that_says_something(reason, kept):
    assert Task().cancel(reason).metadata.get("cancel_reason") == kept


def test_canceling_again_replaces_the_reason():
    assert Task().cancel("one").cancel("two").metadata["cancel_reason"] == "two"


def test_requiring_input_adds_what_is_asked():
    task = Task().require_input(Message.agent("Which city?"))

    assert task.get_last_item().text == "Which city?"


@pytest.mark.parametrize("wrong", [5, None, b"working"])
def test_a_state_that_is_neither_state_nor_text_is_a_type_error(wrong):
    with pytest.raises(TypeError):
        Task().update_state(wrong)


def test_an_unknown_state_is_refused_with_those_that_exist():
    with pytest.raises(ValueError, match="'paused'; known: submitted, working, input-required"):
        Task().update_state("paused")


@pytest.mark.parametrize("state", TaskState)
def test_three_states_are_terminal(state):
    assert Task(state=state).is_terminal is (state.value in ("completed", "canceled", "failed"))


@pytest.mark.parametrize(
    ("task", "told"),
    [
        (Task("t").fail("no key"), "Task 't' failed: no key"),
        (Task("t").fail(""), "Task 't' failed"),
        (Task("t").cancel("late"), "Task 't' canceled: late"),
        (Task("t").cancel(), "Task 't' canceled"),
    ],
)
def test_raise_for_status_raises_for_failed_and_canceled(task, told):
    with pytest.raises(TaskExecutionError) as caught:
        task.raise_for_status()

    assert caught.value.message == told
    assert caught.value.task is task


@pytest.mark.parametrize("state", ["rejected", "error", "Completed"])
def test_raise_for_status_raises_for_a_word_that_nobody_knows(state):
    """It may be a failure, and must not pass for a success."""
    data = {"id": "t", "state": state, "metadata": {"error": "no key"}}
    task = Task.from_dict(data)

    with pytest.raises(TaskExecutionError) as caught:
        task.raise_for_status()

    assert caught.value.message == f"Task 't' {state}: no key"
    assert caught.value.task is task


KNOWN = ["submitted", "working", "input-required", "completed", "unknown"]


@pytest.mark.parametrize("state", KNOWN)
def test_raise_for_status_returns_any_other_task(state):
    task = Task(state=state)

    assert task.raise_for_status() is task


class TestStatesThatNobodyKnows:
    def test_they_read_as_unknown_and_are_written_back(self):
        task = Task.from_dict({"state": "archived"})

        assert (task.state, task.state_text) == (TaskState.UNKNOWN, "archived")
        assert not task.is_terminal
        assert task.to_dict()["state"] == "archived"

    def test_the_text_is_gone_with_the_state(self):
        task = Task.from_dict({"state": "archived"}).update_state("working")

        assert task.state_text == task.to_dict()["state"] == "working"
        assert task.metadata["state_history"][0]["previous_state"] == "archived"

    def test_an_assignment_forgets_the_text_too(self):
        task = Task.from_dict({"state": "archived"})

        task.state = "completed"

        assert task.state is TaskState.COMPLETED
        assert task.to_dict()["state"] == "completed"

    def test_the_constructor_takes_the_text_for_an_unknown_state_only(self):
        assert Task(state="unknown", state_text="paused").to_dict()["state"] == "paused"
        with pytest.raises(ValueError, match=r"TaskState\.UNKNOWN"):
            Task(state="working", state_text="paused")

    def test_the_word_unknown_itself_is_an_ordinary_state(self):
        assert Task.from_dict({"state": "unknown"}).state_text == "unknown"


def test_a_received_state_is_taken_as_it_is_without_a_history():
    """The remote may have jumped: parsing checks nothing, the local graph still holds."""
    task = Task.from_dict({"state": "completed"})

    assert task.state is TaskState.COMPLETED
    with pytest.raises(ValueError, match="completed -> working"):
        task.begin()
