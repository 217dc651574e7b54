"""What a notebook shows of each model: all of it, under names that can be read."""

from __future__ import annotations

from protolink_sync._display import View
from protolink_sync.models import (
    AgentCapabilities,
    AgentCard,
    AgentSkill,
    Artifact,
    HistoryCompactionResult,
    Message,
    Part,
    StateOperationResult,
    StateStoreReport,
    Task,
)
from protolink_sync.models._views import view_of


def test_a_task_shows_who_said_what():
    task = Task(
        "t",
        "working",
        [
            Message("1", "user", [Part.text("hi"), Part.infer("do it")]),
            Message("2", "agent", []),
            Message("3", "agent", [Part("status", "busy"), Part.json({"ä": 1})]),
        ],
        [Artifact("a", [Part.json([1]), Part.json({"prompt": "p", "user": "u"})])],
        created_at="then",
    )

    assert view_of(task) == View(
        "Task: working",
        [("id", "t"), ("created", "then")],
        [
            ("user", "hi\n[infer] do it"),
            ("agent", '[status] busy\n[json] {\n "ä": 1\n}'),
            ("artifact a", '[json] [\n 1\n]\n[json] {\n "prompt": "p",\n "user": "u"\n}'),
        ],
    )


def test_a_card_shows_its_skills_if_it_has_any():
    card = AgentCard(
        "n",
        "d",
        "http://h",
        "sse",
        "2.0",
        "0.8.3",
        AgentCapabilities(streaming=True),
        [AgentSkill("s", "does")],
        tags=["x"],
    )

    shown = view_of(card)

    assert shown == View(
        "n",
        [
            ("description", "d"),
            ("url", "http://h"),
            ("version", "2.0"),
            ("protocol", "0.8.3"),
            ("transport", "sse"),
            ("capabilities", ["streaming", "max_concurrency: 1", "delegation"]),
            ("tags", ["x"]),
        ],
        columns=("skill", "description"),
        rows=[("s", "does")],
    )
    bare = view_of(AgentCard("n", "d", "http://h"))
    assert (bare.columns, bare.rows) == ((), [])


def test_a_state_shows_what_became_of_each_store():
    result = StateOperationResult(
        "reset",
        "s",
        (
            StateStoreReport("a", True, True, 1, 2, cleared=True),
            StateStoreReport("b", compacted=True),
            StateStoreReport("c"),
        ),
        missing=("d",),
        errors=({"store": "e", "message": "broken"},),
    )

    assert view_of(result) == View(
        "State: reset",
        [("session", "s"), ("missing", ["d"]), ("errors", ["e: broken"])],
        columns=("store", "kept", "items", "messages", "done"),
        rows=[
            ("a", True, 1, 2, "cleared"),
            ("b", False, None, None, "compacted"),
            ("c", False, None, None, ""),
        ],
    )


def test_a_history_shows_what_there_was_and_what_is_left():
    result = HistoryCompactionResult("recent", 9, 4, 5, 900, 400, True)

    assert view_of(result) == View(
        "History: recent",
        [("summary", True)],
        columns=("", "before", "after"),
        rows=[("messages", 9, 4), ("tokens", 900, 400)],
    )


def test_each_of_them_is_what_a_notebook_is_given():
    for model in (
        Task("t"),
        AgentCard("n", "d", "http://h"),
        StateOperationResult(),
        HistoryCompactionResult(),
    ):
        told = model._repr_mimebundle_()

        assert view_of(model).title in told["text/plain"]
        assert set(model._repr_mimebundle_(include={"text/plain"})) == {"text/plain"}
        assert "text/html" not in model._repr_mimebundle_(exclude={"text/html"})
