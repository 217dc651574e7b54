"""The answer as text: prose at once, actions replaced by their answers, nothing twice."""

from __future__ import annotations

from typing import Any

import pytest

from protolink_sync.models import Message, Task
from protolink_sync.streaming import EventStream
from tests.streaming.scripted import ScriptedSource

ACTION = ['{"type": "fi', 'nal", "content": "It is 42."}']
CALL = ['{"type": "tool', '_call", "tool": "look"}']


def chunk(content: str, step: int | None = 1) -> dict[str, Any]:
    return {
        "type": "task_llm_stream",
        "llm_event_type": "llm_chunk",
        "step": step,
        "content": content,
    }


def chunks(pieces: list[str], step: int | None = 1) -> list[dict[str, Any]]:
    return [chunk(piece, step) for piece in pieces]


def final(content: Any, step: int | None = 1) -> dict[str, Any]:
    return {
        "type": "task_llm_stream",
        "llm_event_type": "llm_final",
        "step": step,
        "content": content,
        "final": True,
    }


def finished(text: str) -> dict[str, Any]:
    task = Task.create(Message.user("?")).complete(text)
    return {
        "type": "task_status_update",
        "new_state": "completed",
        "final": True,
        "metadata": {"task": task.to_dict()},
    }


def stream_of(*events: dict[str, Any]) -> EventStream:
    return EventStream(ScriptedSource(*([event] for event in events), None))


def told(*events: dict[str, Any]) -> list[str]:
    return list(stream_of(*events).text())


# --- the answer is told -------------------------------------------------------------------------

ANSWER = "It is 42."

ANSWERS = {
    "prose": [*chunks(["It ", "is ", "42."])],
    "prose, then told as a whole": [*chunks(["It ", "is ", "42."]), final(ANSWER)],
    "prose in part": [*chunks(["It ", "is"]), final(ANSWER)],
    "prose in part, and no whole": [*chunks(["It ", "is"])],
    "prose with blanks around it": [*chunks(["\nIt is ", "42. \n"]), final(ANSWER)],
    "prose without a step": [*chunks(["It ", "is 42."], None)],
    "an action": [*chunks(ACTION), final(ANSWER)],
    "an action that nothing replaces": [*chunks(ACTION)],
    "an action in a code block": [*chunks(["``", "`json\n", *ACTION, "\n```"]), final(ANSWER)],
    "an action behind blanks": [*chunks([" ", "\n", *ACTION]), final(ANSWER)],
    "a tool call, then an action": [*chunks(CALL), *chunks(ACTION, 2), final(ANSWER, 2)],
    "a tool call, then prose": [*chunks(CALL), *chunks(["It ", "is 42."], 2), final(ANSWER, 2)],
    "prose, then an action that goes on from it": [
        *chunks(["It ", "is "]),
        *chunks(ACTION, 2),
        final(ANSWER, 2),
    ],
    "prose, then an action that says it again": [
        *chunks([ANSWER]),
        *chunks(ACTION, 2),
        final(ANSWER, 2),
    ],
    "prose, then an action that nothing replaces": [*chunks(["It is "]), *chunks(ACTION, 2)],
    "the whole only": [final(ANSWER)],
    "the task only": [],
}


@pytest.mark.parametrize("case", ANSWERS)
def test_the_pieces_joined_are_the_answer(case):
    assert "".join(told(*ANSWERS[case], finished(ANSWER))).strip() == ANSWER


def test_prose_comes_at_once():
    stream = stream_of(chunk("It "), chunk("is 42."), finished(ANSWER))
    pieces = stream.text()

    assert next(pieces) == "It "
    assert stream.events == 1


@pytest.mark.parametrize("begin", ["`", "``", "`code` is"])
def test_prose_may_begin_with_a_mark_of_code(begin):
    assert "".join(told(*chunks([*begin, " x"]), finished(f"{begin} x"))) == f"{begin} x"


def test_a_structured_answer_is_told_as_json():
    assert told(*chunks(ACTION), final({"ä": 1})) == ['{"ä": 1}']


# --- remarks ------------------------------------------------------------------------------------

REMARK = "Let me look that up."

REMARKS = {
    "then an action": [*chunks([REMARK]), *chunks(ACTION, 2), final(ANSWER, 2)],
    "then an action that nothing replaces": [*chunks([REMARK]), *chunks(ACTION, 2)],
    "then prose": [*chunks([REMARK]), *chunks(["It is ", "42."], 2)],
    "then prose, told as a whole too": [
        *chunks([REMARK]),
        *chunks(["It is ", "42."], 2),
        final(ANSWER, 2),
    ],
    "in the step of the answer": [*chunks([f"{REMARK} ", *ACTION]), final(ANSWER)],
    "then the answer in the task alone": [*chunks([REMARK])],
    "with its line end": [*chunks([f"{REMARK}\n"]), *chunks(ACTION, 2), final(ANSWER, 2)],
}


@pytest.mark.parametrize("case", REMARKS)
def test_after_a_remark_the_answer_is_told_once_and_on_a_line_of_its_own(case):
    """What was given cannot be taken back; but the answer must not run into it."""
    lines = "".join(told(*REMARKS[case], finished(ANSWER))).split("\n")

    assert lines[0].startswith(REMARK)
    assert lines[1:] == [ANSWER]


def test_a_task_that_failed_has_no_answer_to_add():
    """Its newest message is that of an earlier turn."""
    task = Task.create(Message.user("?"))
    task.add_message(Message.agent("the answer before"))
    task.fail("no more")
    ending = {**finished(""), "metadata": {"task": task.to_dict()}}

    assert told(chunk("Let me"), ending) == ["Let me"]


def test_several_answers_are_told_each_on_its_line():
    events = [final("one"), final("one"), *chunks(["two"], 2), final("two", 2)]

    assert "".join(told(*events, finished("two"))) == "one\none\ntwo"


def test_a_part_of_the_prose_is_not_taken_for_the_answer():
    assert "".join(told(*chunks(["I have 42 apples."]), finished("4"))) == "I have 42 apples.\n4"
