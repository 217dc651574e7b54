"""invoke_typed: what is asked, how often, and what is said when nothing fits."""

from __future__ import annotations

import json
import pickle
import time

import attrs
import pytest

from protolink_sync import AgentCard, AgentPeer, CancelToken, connect
from protolink_sync.client import AgentClient
from protolink_sync.errors import (
    CallCancelledError,
    StructuredResponseError,
    TaskExecutionError,
    TransportConnectionError,
    TransportTimeoutError,
)
from protolink_sync.models import Message, Task, TaskState
from protolink_sync.server import Agent
from protolink_sync.testing import ScriptedTransport, reply
from protolink_sync.testing.steps import Step
from tests.client.test_shapes import answer

URL = "http://agent.test"


@attrs.define
class Total:
    total: float


def peer(*steps: Step) -> tuple[AgentPeer, ScriptedTransport]:
    transport = ScriptedTransport(*steps)
    return AgentPeer(AgentClient(transport), URL), transport


def prompts(transport: ScriptedTransport) -> list[str]:
    bodies = [json.loads(call.body) for call in transport.calls]
    return [body["messages"][0]["parts"][0]["content"]["prompt"] for body in bodies]


def test_the_schema_is_in_the_prompt_too():
    """An agent's engine may ignore output_schema."""
    agent, transport = peer(answer({"total": 3}))

    assert agent.invoke_typed("How much?", Total) == Total(3.0)
    (prompt,) = prompts(transport)
    assert prompt.startswith("How much?\n")
    assert '"required": ["total"]' in prompt


def test_an_answer_that_does_not_fit_is_corrected_in_a_new_task():
    agent, transport = peer(answer("about three"), answer({"sum": 3}), answer({"total": 3}))

    assert agent.invoke_typed("How much?", Total, max_attempts=3) == Total(3.0)
    first, second, third = prompts(transport)
    assert "about three" in second
    assert "no JSON" in second
    assert '{"sum": 3}' in third
    assert "about three" not in third
    assert all(prompt.startswith(first) for prompt in (second, third))
    ids = {json.loads(call.body)["id"] for call in transport.calls}
    keys = {call.headers["Idempotency-Key"] for call in transport.calls}
    assert len(ids) == len(keys) == 3


def test_there_are_no_more_attempts_than_were_allowed():
    agent, transport = peer(*[answer("no")] * 5)

    with pytest.raises(StructuredResponseError, match=r"after 2 attempt\(s\)") as caught:
        agent.invoke_typed("How much?", Total, max_attempts=2)

    assert len(transport.calls) == 2
    error = pickle.loads(pickle.dumps(caught.value))
    assert error.attempts == 2
    assert "no JSON" in error.validation_error
    assert error.task.get_output() == "no"


def test_a_long_answer_is_not_sent_back_whole():
    agent, transport = peer(answer("x" * 100_000), answer({"total": 3}))

    agent.invoke_typed("How much?", Total, max_attempts=2)

    assert len(prompts(transport)[1]) < 10_000


HUGE = "1" + "0" * 400


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        (int, "[" * 100_000, "nested too deeply"),
        (list, "[" * 100_000 + "]" * 100_000, "nested too deeply"),
        (float, HUGE, "too large"),
        (Total, f'{{"total": {HUGE}}}', "too large"),
        (float, "1e999", "too large for a float"),
        (list[float], "[1, -1e999]", "too large for a float"),
        (float, "NaN", "no JSON"),
        (int, "9" * 5000, "no JSON"),
        (set[tuple[list[int], int]], "[[[1], 2]]", "unhashable"),
    ],
    ids=["half", "deep", "huge", "huge inside", "inf", "-inf", "NaN", "digits", "no set"],
)
def test_what_no_value_can_be_made_of_does_not_fit(kind, text, words):
    agent, _ = peer(answer(text))

    with pytest.raises(StructuredResponseError, match="does not fit") as caught:
        agent.invoke_typed("How much?", kind)

    assert words in caught.value.validation_error


def test_what_fits_in_no_other_way_is_text_all_the_same():
    agent, _ = peer(answer("[" * 100_000))

    assert agent.invoke_typed("Draw brackets", float | str) == "[" * 100_000


def test_a_deep_answer_that_is_no_text_is_asked_for_again():
    deep: list[object] = []
    for _ in range(150):
        deep = [deep]
    agent, transport = peer(answer(deep), answer({"total": 3}))

    assert agent.invoke_typed("How much?", Total, max_attempts=2) == Total(3.0)
    assert "[[[[" in prompts(transport)[1]


@pytest.mark.parametrize(
    "text",
    [
        '{"total": 3}',
        '```json\n{"total": 3}\n```',
        '```\n{"total":\n3}\n```',
        '\n ```json \n\n{"total": 3}\n\n  ```\n\n',
        '```json\r\n{"total": 3}\r\n```\r\n',
    ],
)
def test_json_may_stand_in_a_block(text):
    agent, _ = peer(answer(text))

    assert agent.invoke_typed("How much?", Total) == Total(3.0)


@pytest.mark.parametrize(
    "text", ['```python\n{"total": 3}\n```', '```json\n{"total": 3}', "```", "``````", "```\n```"]
)
def test_what_is_no_block_of_json_does_not_fit(text):
    agent, _ = peer(answer(text))

    with pytest.raises(StructuredResponseError, match="no JSON"):
        agent.invoke_typed("How much?", Total)


@pytest.mark.parametrize("run", ["\n", " ", "`", "```\n"])
@pytest.mark.parametrize("size", [200, 100_000])
def test_a_long_answer_is_read_at_once(run, size):
    agent, _ = peer(answer("```\n" + run * (size // len(run)) + "x"))

    before = time.process_time()
    with pytest.raises(StructuredResponseError):
        agent.invoke_typed("How much?", Total)
    assert time.process_time() - before < 0.5


def came_back(state: TaskState, *texts: str) -> Step:
    task = Task("t-1", state, [Message.user("asked"), *map(Message.agent, texts)])
    return reply(task.to_dict())


def test_a_task_that_failed_is_not_tried_again():
    agent, transport = peer(came_back(TaskState.FAILED), answer({"total": 3}))

    with pytest.raises(TaskExecutionError) as caught:
        agent.invoke_typed("How much?", Total, max_attempts=3)

    assert not isinstance(caught.value, StructuredResponseError)
    assert len(transport.calls) == 1


@pytest.mark.parametrize(
    "step",
    [
        came_back(TaskState.INPUT_REQUIRED, '{"total": 3}'),
        came_back(TaskState.COMPLETED),
        came_back(TaskState.WORKING, '{"total": 3}'),
    ],
)
def test_a_task_without_an_end_or_an_answer_is_not_tried_again(step):
    agent, transport = peer(step, answer({"total": 3}))

    with pytest.raises(StructuredResponseError, match="nothing to validate") as caught:
        agent.invoke_typed("How much?", Total, max_attempts=3)

    assert caught.value.task.id == "t-1"
    assert len(transport.calls) == 1


def test_a_broken_connection_is_not_tried_again():
    agent, transport = peer(TransportConnectionError("cut"), answer({"total": 3}))

    with pytest.raises(TransportConnectionError):
        agent.invoke_typed("How much?", Total, max_attempts=3)
    assert len(transport.calls) == 1


def test_all_attempts_share_one_budget_and_one_token():
    def slowly(call):
        time.sleep(0.2)
        return answer("no")

    agent, transport = peer(*[slowly] * 20)
    with pytest.raises(TransportTimeoutError):
        agent.invoke_typed("How much?", Total, max_attempts=20, timeout=0.5)
    assert len(transport.calls) < 5

    token = CancelToken()
    token.cancel()
    agent, transport = peer()
    with pytest.raises(CallCancelledError):
        agent.invoke_typed("How much?", Total, cancel=token)
    assert transport.calls == []


@pytest.mark.parametrize("attempts", [0, -1, True, 1.5, "2"])
def test_the_number_of_attempts_is_checked(attempts):
    agent, transport = peer()

    with pytest.raises(ValueError, match="max_attempts"):
        agent.invoke_typed("How much?", Total, max_attempts=attempts)
    with pytest.raises(TypeError, match="must be a str"):
        agent.invoke_typed(Message.user("How much?"), Total)
    assert transport.calls == []


def test_a_model_that_answers_in_the_schema():
    agent = Agent(AgentCard("till", "adds up", "runtime://till"))

    @agent.infer
    def reply_with(prompt, output_schema):
        (name,) = output_schema["required"]
        return {name: 12.5}

    with agent.serve("runtime://till"), connect("runtime://till") as till:
        assert till.invoke_typed("the total?", Total) == Total(12.5)


def test_a_real_agent_whose_model_cannot(agent_peer):
    with connect(agent_peer.url) as agent, pytest.raises(StructuredResponseError) as caught:
        agent.invoke_typed("the total?", Total, max_attempts=2)

    assert caught.value.task.is_terminal
    assert caught.value.attempts == 2
