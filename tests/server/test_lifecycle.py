"""What an agent does with a task by default."""

from __future__ import annotations

import pytest

from protolink_sync.models import (
    AgentCapabilities,
    AgentCard,
    AgentSkill,
    Artifact,
    Message,
    Part,
    Task,
    TaskState,
)
from protolink_sync.server import Agent
from tests.server.hosting import calling, card, text_task


def run(agent, task):
    with calling(agent) as (caller, _):
        return caller.send(task).task()


def add(a: int, b: int = 1) -> int:
    """Add two integers."""
    return a + b


# ---- tools ----


def test_a_tool_call_is_answered_with_an_artifact():
    task = run(Agent(card(), tools=[add]), Task.create_tool_call("add", {"a": 2, "b": 3}))

    (artifact,) = task.artifacts
    assert task.state is TaskState.COMPLETED
    assert task.get_output() == 5
    assert artifact.kind == "result"
    assert artifact.parts[0].as_tool_output().call_id == task.messages[0].parts[0].content.call_id


def test_an_unknown_tool_is_rejected_in_the_words_of_the_peer():
    """Source: capture http_unknown_tool."""
    task = run(Agent(card(), tools=[add]), Task.create_tool_call("nope"))

    assert task.state is TaskState.FAILED
    assert task.metadata["error"] == "Tool 'nope' not found"
    assert task.artifacts[0].parts[0].as_tool_output().error == {
        "status": "rejected",
        "changes_made": False,
        "code": "unknown_tool",
        "message": "Tool 'nope' not found",
        "details": {"available_tools": ["add"]},
        "suggestion": "Choose a registered tool or delegate an inference request.",
    }


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"b": 2}, "tool args.a is required"),
        ({"a": "x"}, "tool args.a must be integer"),
        ({"a": True}, "tool args.a must be integer"),
        ({"a": 1, "c": 3}, "tool args.c is not an argument of this tool"),
    ],
)
def test_bad_arguments_are_rejected_before_the_tool_is_called(args, problem):
    """Source: capture http_tool_bad_args."""
    task = run(Agent(card(), tools=[add]), Task.create_tool_call("add", args))

    error = task.artifacts[0].parts[0].as_tool_output().error
    assert task.state is TaskState.FAILED
    assert error["code"] == "invalid_arguments"
    assert error["message"] == f"Tool 'add' arguments were invalid: {problem}"


def test_an_exception_of_a_tool_fails_the_task_with_its_message(caplog):
    agent = Agent(card())

    @agent.tool
    def divide(a: float):
        return 1 / a

    task = run(agent, Task.create_tool_call("divide", {"a": 0}))

    assert task.state is TaskState.FAILED
    assert task.metadata["error"] == "division by zero"


def test_a_tool_may_be_async_and_have_another_name():
    agent = Agent(card())

    @agent.tool(name="double", description="Twice as much.")
    async def function(n: int) -> int:
        return 2 * n

    task = run(agent, Task.create_tool_call("double", {"n": 4}))

    assert task.get_output() == 8
    with calling(agent) as (caller, _):
        (skill,) = caller.request("GET", "/.well-known/agent.json").json()["skills"]
    assert (skill["id"], skill["description"]) == ("double", "Twice as much.")


# ---- infer ----


@pytest.mark.parametrize("answer", ["text", {"total": 5}, [1, 2], 0, None, ""])
def test_what_the_model_returns_is_the_output(answer):
    agent = Agent(card())
    agent.infer(lambda prompt: answer)

    task = run(agent, Task.create_infer("go"))

    assert task.artifacts[0].parts[0].type == "infer_output"
    assert task.get_output("nothing") == answer


def test_the_model_gets_what_it_takes():
    agent = Agent(card())

    @agent.infer
    def answer(prompt, *, output_schema, user="nobody", metadata=None):
        return [prompt, output_schema, user, metadata]

    task = run(agent, Task.create_infer("go", metadata={"a": 1}))

    assert task.get_output() == ["go", None, "nobody", {"a": 1}]


def test_a_model_with_keywords_gets_all_that_is_given():
    agent = Agent(card())
    agent.infer(lambda **given: given)

    task = run(agent, Task.create_infer(user="bob", output_schema={"type": "object"}))

    assert task.get_output() == {"user": "bob", "output_schema": {"type": "object"}}


def test_pieces_are_joined():
    agent = Agent(card())

    @agent.infer
    def answer(prompt):
        yield "you said "
        yield prompt

    assert run(agent, Task.create_infer("hi")).get_output() == "you said hi"


def test_pieces_of_an_async_generator_are_joined():
    agent = Agent(card())

    @agent.infer
    async def answer(prompt):
        yield "you said "
        yield prompt

    assert run(agent, Task.create_infer("hi")).get_output() == "you said hi"


def test_a_model_may_return_a_message_or_an_artifact():
    agent = Agent(card())
    answers = {"m": Message.agent("said"), "a": Artifact(name="made").add_text("x")}
    agent.infer(lambda prompt: answers[prompt])

    said, made = run(agent, Task.create_infer("m")), run(agent, Task.create_infer("a"))

    assert (said.messages[-1].text, said.artifacts) == ("said", [])
    assert made.artifacts[0].name == "made"


def test_without_a_model_an_inference_fails():
    task = run(Agent(card()), Task.create_infer("go"))

    assert task.state is TaskState.FAILED
    assert task.artifacts[0].parts[0].content["code"] == "no_llm"


def test_two_models_are_refused():
    agent = Agent(card())
    agent.infer(lambda prompt: "")

    with pytest.raises(ValueError, match="already"):
        agent.infer(lambda prompt: "")


def test_a_model_that_asks_for_something_else_is_refused():
    with pytest.raises(TypeError, match=r"'text'.*prompt, user, output_schema, metadata"):
        Agent(card()).infer(lambda text: "")


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(ValueError, match="add"):
        Agent(card(), tools=[add, add])


# ---- states ----


def test_text_is_inert():
    """Source: capture http_plain_text_task_is_inert."""
    task = run(Agent(card()), text_task("plain"))

    assert task.state is TaskState.COMPLETED
    assert task.artifacts == []
    assert [entry["new_state"] for entry in task.metadata["state_history"]] == [
        "working",
        "completed",
    ]


def test_only_the_last_item_is_carried_out():
    task = Task.create_tool_call("add", {"a": 1})
    task.add_message(Message.user("and now?"))

    assert run(Agent(card(), tools=[add]), task).artifacts == []


def test_all_parts_of_the_last_item_are_carried_out():
    calls = [Part.tool_call("add", {"a": number}) for number in range(3)]

    task = run(Agent(card(), tools=[add]), Task.create(Message(parts=calls)))

    results = [artifact.parts[0].as_tool_output().result for artifact in task.artifacts]
    assert results == [1, 2, 3]


def test_a_terminal_task_comes_back_unchanged():
    task = Task.create_tool_call("add", {"a": 1})
    task.begin().fail("before")

    assert run(Agent(card(), tools=[add]), task) == task


@pytest.mark.parametrize(
    ("part", "state"),
    [
        (Part.error("E", "went wrong"), TaskState.FAILED),
        (Part.status("input-required"), TaskState.INPUT_REQUIRED),
        (Part.status("input_required"), TaskState.INPUT_REQUIRED),
        (Part.status("working"), TaskState.COMPLETED),
        (Part.warning("hm"), TaskState.COMPLETED),
    ],
)
def test_the_output_decides_the_state(part, state):
    agent = Agent(card())
    agent.infer(lambda prompt: part)

    task = run(agent, Task.create_infer("go"))

    assert task.state is state
    assert task.metadata.get("error") == ("went wrong" if state is TaskState.FAILED else None)


def test_run_and_session_are_noted_and_those_of_the_caller_kept():
    context = {"session_id": "s", "trace_id": "t", "agent_chain": ["first"]}
    task = Task.create(Message.user("x"), context=context)

    answer = run(Agent(card()), task)
    plain = run(Agent(card()), text_task("x"))

    noted = answer.metadata["run_context"]
    assert (noted["trace_id"], noted["agent_chain"]) == ("t", ["first", "kitchen"])
    assert answer.metadata["session_id"] == noted["session_id"] == "s"
    assert plain.metadata["session_id"] == plain.metadata["run_id"] == plain.id


def test_an_async_handler_runs_to_its_end():
    class Asynchronous(Agent):
        async def handle_task(self, task):
            return task.complete(f"{self.current_run().task_id == task.id}")

    assert run(Asynchronous(card()), text_task("x")).messages[-1].text == "True"


# ---- the card ----


def test_the_served_card_says_where_and_what():
    given = AgentCard(
        "k",
        "d",
        "http://elsewhere.test",
        skills=[AgentSkill("cook")],
        capabilities=AgentCapabilities(streaming=False),
    )
    before = given.to_dict()
    agent = Agent(given, tools=[add])
    agent.infer(lambda prompt: "")

    with calling(agent) as (caller, server):
        served = AgentCard.from_dict(caller.request("GET", "/.well-known/agent.json").json())

        assert served.url == server.url
    assert served.transport == "http"
    assert [skill.id for skill in served.skills] == ["cook", "add"]
    assert served.skills[1].input_schema["properties"] == {
        "a": {"type": "integer"},
        "b": {"type": "integer"},
    }
    assert served.skills[1].input_schema["required"] == ["a"]
    can = served.capabilities
    assert (can.has_llm, can.tool_calling, can.supports_inference) == (True, True, True)
    assert can.streaming
    assert given.to_dict() == before


def test_an_agent_without_model_and_tools_says_so():
    with calling(Agent(card())) as (caller, _):
        can = caller.request("GET", "/.well-known/agent.json").json()["capabilities"]

    assert (can["has_llm"], can["tool_calling"], can["supports_inference"]) == (
        False,
        False,
        False,
    )
