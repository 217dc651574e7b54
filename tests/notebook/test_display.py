"""What things show of themselves: escaped HTML, and plain text always."""

from __future__ import annotations

import html.parser

import pytest

from protolink_sync import AgentCapabilities, AgentCard, AgentClient, Artifact, Message, Part, Task
from protolink_sync._display import View
from protolink_sync.a2a import A2AClient
from protolink_sync.client import CheckReport, CheckStep
from protolink_sync.errors import StreamInterruptedError
from protolink_sync.models import (
    AgentSkill,
    HistoryCompactionResult,
    StateOperationResult,
    StateStoreReport,
)
from protolink_sync.server import Agent
from protolink_sync.streaming import EventStream
from tests.streaming.scripted import ScriptedSource

EVIL = "<script>alert(1)</script>\"'&\x1b[2J\u202e"

OURS = {"div", "p", "b", "i", "table", "tr", "th", "td", "pre"}


class Guide(Agent):
    def handle_task_streaming(self, task):
        yield {"type": "task_progress", "progress": 50, "message": "half"}
        yield from super().handle_task_streaming(task)


@pytest.fixture
def guide():
    card = AgentCard("guide", "for tests", "http://127.0.0.1")
    card.capabilities = AgentCapabilities(streaming=True)
    agent = Guide(card)

    @agent.infer
    def answer(prompt):
        yield from ("To ", prompt)

    with agent.serve("http://127.0.0.1:0", a2a=True) as server:
        yield server.url


def evil_task() -> Task:
    task = Task.create(Message.user(EVIL))
    task.add_artifact(Artifact(id=EVIL, parts=[Part.json({EVIL: EVIL})]))
    return task


THINGS = {
    "task": evil_task,
    "card": lambda: AgentCard(
        EVIL, EVIL, "http://127.0.0.1/", tags=[EVIL], skills=[AgentSkill(EVIL, EVIL)]
    ),
    "state": lambda: StateOperationResult(
        EVIL,
        EVIL,
        (StateStoreReport(EVIL),),
        missing=(EVIL,),
        errors=({"store": EVIL, "message": EVIL},),
    ),
    "history": lambda: HistoryCompactionResult(EVIL, 4, 2, 2),
    "report": lambda: CheckReport("http://a", "http", (CheckStep("card", "ok", EVIL, EVIL),)),
}


class Tags(html.parser.HTMLParser):
    """Collects the tags and the attributes of a document."""

    def __init__(self, text):
        super().__init__()
        self.found, self.attributes = set(), set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.add(tag)
        self.attributes.update(name for name, _ in attrs)


@pytest.mark.parametrize("name", THINGS)
def test_nothing_of_a_peer_is_markup(name):
    shown = THINGS[name]()._repr_mimebundle_()

    tags = Tags(shown["text/html"])
    assert tags.found <= OURS
    assert tags.attributes <= {"style"}
    assert "alert(1)" in shown["text/html"]
    assert "\u202e" not in shown["text/html"]
    if name != "report":
        assert "\x1b" not in shown["text/plain"]


@pytest.mark.parametrize("name", THINGS)
def test_plain_text_is_always_there_and_the_caller_chooses_the_rest(name):
    thing = THINGS[name]()

    assert set(thing._repr_mimebundle_()) == {"text/plain", "text/html"}
    assert set(thing._repr_mimebundle_(include={"image/png"})) == {"text/plain"}
    assert set(thing._repr_mimebundle_(exclude={"text/html", "text/plain"})) == {"text/plain"}
    assert set(thing._repr_mimebundle_(include=["text/html"])) == {"text/plain", "text/html"}


def test_a_task_shows_what_was_said():
    task = Task.create(Message.user("What is 6 x 7?")).complete("42")
    shown = task._repr_mimebundle_()

    assert shown["text/plain"].splitlines()[0] == "Task: completed"
    assert "user:\nWhat is 6 x 7?" in shown["text/plain"]
    assert "<pre" in shown["text/html"]
    assert shown["text/html"].index("What is 6 x 7?") < shown["text/html"].index(">42<")


def test_a_question_is_shown_as_text():
    shown = Task.create_infer(prompt="Which\ntrain?")._repr_mimebundle_()

    assert shown["text/plain"].endswith("user:\n[infer] Which\ntrain?")


def test_a_bar_is_as_full_as_can_be_and_no_fuller():
    plain = View("x", share=0.5).plain()
    assert plain == "x\n  [##########          ]"
    assert View("x", share=7.0).plain() == f"x\n  [{'#' * 20}]"
    assert View("x", share=-7.0).plain() == f"x\n  [{' ' * 20}]"
    assert "<progress" not in View("x").html()
    assert 'value="1.000"' in View("x", share=float("inf")).html()


def test_what_is_very_long_is_cut_and_says_so():
    long = Task.create(Message.user("x" * 1_000_000))
    many = Task.create(Message.user("first"))
    for number in range(500):
        many.add_message(Message.agent(f"message {number}"))

    assert len(long._repr_mimebundle_()["text/html"]) < 50_000
    assert "980000 more characters" in long._repr_mimebundle_()["text/html"]
    shown = many._repr_mimebundle_()["text/html"]
    assert "message 499" in shown
    assert "451 earlier" in shown
    assert "first" not in shown


# --- streams -------------------------------------------------------------------------------------


def test_a_stream_shows_itself_without_being_read(guide):
    with (
        AgentClient("sse") as client,
        client.send_task_streaming(guide, Task.create_infer("Rome")) as stream,
    ):
        shown = stream._repr_mimebundle_()
        assert "Stream: open" in shown["text/plain"]
        assert stream.events == 0
        stream.result()
        assert "last: completed" in stream._repr_mimebundle_()["text/plain"]


def test_outside_a_notebook_the_answer_is_printed(guide, capsys):
    with (
        AgentClient("sse") as client,
        client.send_task_streaming(guide, Task.create_infer("Rome\x1b[2J")) as stream,
    ):
        assert stream.show() is None

    assert capsys.readouterr().out == "To Rome [2J\nStream: completed\n"
    assert stream.task.text == "To Rome\x1b[2J"


def test_the_stream_of_an_a2a_agent_is_shown_too(guide, capsys):
    with A2AClient(guide) as client, client.stream_message("Rome") as stream:
        stream.show()

    out = capsys.readouterr().out
    assert "Rome" in out
    assert "COMPLETED" in out.splitlines()[-1].upper()


def test_what_ends_a_stream_is_raised_after_what_came_before(capsys):
    piece = {"type": "task_llm_stream", "llm_event_type": "llm_chunk", "content": "To Ro"}
    stream = EventStream(ScriptedSource([piece], StreamInterruptedError("cut")))

    with pytest.raises(StreamInterruptedError):
        stream.show()

    assert capsys.readouterr().out == "To Ro\nStream: begun\n"


def test_results_of_many_tasks_tell_how_far_they_are(guide):
    with AgentClient("http") as client:
        results = client.map([Task.create_infer("Rome"), Task.create_infer("Oslo")], guide)
        assert "come: 0" in results._repr_mimebundle_()["text/plain"]
        list(results)
        assert "come: 2" in results._repr_mimebundle_()["text/plain"]
