"""The run context that a task carries: complete, and mirrored where peers look for it."""

from __future__ import annotations

import pytest

from protolink_sync.models import Task


class Given:
    def __init__(self, **members):
        self._members = members

    def to_dict(self):
        return dict(self._members)


def metadata(**given):
    return Task.create("x", **given).metadata


def test_a_session_makes_a_whole_run_context():
    task = Task.create("x", session_id="s")

    run = task.metadata["run_context"]
    assert run.pop("created_at")
    assert run.pop("budget")["metadata"] == {}
    assert run == {
        "run_id": task.id,
        "session_id": "s",
        "trace_id": None,
        "workspace_uri": None,
        "parent_run_id": None,
        "agent_chain": [],
        "permissions": {},
        "canceled": False,
        "cancel_reason": None,
        "metadata": {},
    }
    assert task.metadata["run_id"] == task.id
    assert task.metadata["session_id"] == "s"
    assert "trace_id" not in task.metadata
    assert "canceled" not in task.metadata


def test_without_anything_there_is_none():
    assert metadata() == {}


def test_what_is_given_beside_the_context_wins_over_it():
    context = {"session_id": "old", "budget": {"max_steps": 1}, "run_id": "r", "trace_id": "t"}

    kept = metadata(context=context)
    won = metadata(context=context, session_id="new", budget={"max_steps": 2})

    assert (kept["session_id"], kept["run_context"]["budget"]["max_steps"]) == ("old", 1)
    assert (won["session_id"], won["run_context"]["budget"]["max_steps"]) == ("new", 2)
    assert won["run_id"] == kept["run_id"] == "r"
    assert won["trace_id"] == "t"


def test_a_run_that_was_canceled_says_so_beside_the_context():
    assert metadata(context={"canceled": True})["canceled"] is True


@pytest.mark.parametrize("name", ["context", "budget"])
def test_objects_are_taken_by_their_json_form_and_nothing_else_is(name):
    assert metadata(**{name: Given(run_id="r", max_steps=3)})
    with pytest.raises(TypeError, match=f"{name} is a int"):
        metadata(**{name: 5})
