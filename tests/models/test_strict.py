"""A wrong shape is refused, and the error says where: nobody has to search a reply by hand."""

from __future__ import annotations

import pytest

from protolink_sync.errors import ModelError, ProtoLinkError
from protolink_sync.models import (
    AgentCard,
    AgentSkill,
    Artifact,
    HistoryCompactionResult,
    LLMMessage,
    Message,
    Part,
    RunEvent,
    StateOperationResult,
    Task,
    TaskCancellationRequest,
)

CARD = {"name": "n", "description": "d", "url": "u"}


def message_with(**members):
    return {"messages": [{"id": "m", "role": "user", "parts": [], "timestamp": "t", **members}]}


@pytest.mark.parametrize(
    ("kind", "data", "path", "told"),
    [
        (Task, [], "$", "expected an object, found an array"),
        (Task, "task", "$", "expected an object, found a string ('task')"),
        (Task, None, "$", "expected an object, found null"),
        (Task, {"state": None}, "$.state", "expected a string, found null"),
        (Task, {"state": 3}, "$.state", "expected a string, found a number (3)"),
        (Task, {"messages": "hi"}, "$.messages", "expected an array, found a string ('hi')"),
        (Task, {"messages": {}}, "$.messages", "expected an array, found an object"),
        (Task, {"messages": [None]}, "$.messages[0]", "expected an object, found null"),
        (Task, message_with(parts="hi"), "$.messages[0].parts", "expected an array"),
        (Task, message_with(parts=["hi"]), "$.messages[0].parts[0]", "expected an object"),
        (Task, message_with(parts=[{}]), "$.messages[0].parts[0].type", "required member missing"),
        (Task, message_with(parts=[{"type": 5, "content": 1}]), "$.messages[0].parts[0].type", "5"),
        (Task, message_with(role=5), "$.messages[0].role", "expected a string or null"),
        (Task, message_with(timestamp=5), "$.messages[0].timestamp", "expected a string or null"),
        (Task, message_with(id=[1]), "$.messages[0].id", "expected a string or another scalar"),
        (Task, {"metadata": []}, "$.metadata", "expected an object, found an array"),
        (Task, {"artifacts": [{"kind": 1}]}, "$.artifacts[0].kind", "expected a string or null"),
        (Task, {"artifacts": [{"name": 1}]}, "$.artifacts[0].name", "expected a string"),
        (Task, {"created_at": 1}, "$.created_at", "expected a string or null"),
        (Part, {"type": "tool_call", "content": {}}, "$.content.tool_name", "required member"),
        (Part, {"type": "route", "content": {"reason": "r"}}, "$.content.route_key", "required"),
        (
            Part,
            {"type": "route", "content": {"route_key": "k", "confidence": True}},
            "$.content.confidence",
            "expected a number or null, found true",
        ),
        (Message, {"parts": 1}, "$.parts", "expected an array, found a number (1)"),
        (Artifact, {"metadata": "m"}, "$.metadata", "expected an object"),
        (AgentCard, {**CARD, "transport": 1}, "$.transport", "expected a string"),
        (AgentCard, {**CARD, "protocolVersion": 1}, "$.protocolVersion", "expected a string"),
        (AgentCard, {**CARD, "inputFormats": [1]}, "$.inputFormats[0]", "expected a string"),
        (AgentCard, {**CARD, "tags": "t"}, "$.tags", "expected an array"),
        (AgentCard, {**CARD, "skills": [{}]}, "$.skills[0].id", "required member missing"),
        (
            AgentCard,
            {**CARD, "capabilities": {"streaming": 1}},
            "$.capabilities.streaming",
            "expected true or false, found a number (1)",
        ),
        (
            AgentCard,
            {**CARD, "capabilities": {"max_concurrency": True}},
            "$.capabilities.max_concurrency",
            "expected an integer, found true",
        ),
        (
            AgentCard,
            {**CARD, "additionalInterfaces": [{"transport": "grpc"}]},
            "$.additionalInterfaces[0].url",
            "required member missing",
        ),
        (
            AgentCard,
            {**CARD, "securitySchemes": []},
            "$.securitySchemes",
            "expected an object",
        ),
        (RunEvent, {"sequence": "1"}, "$.sequence", "expected an integer"),
        (RunEvent, {"final": 1}, "$.final", "expected true or false"),
        (RunEvent, {"payload": "p"}, "$.payload", "expected an object"),
        (HistoryCompactionResult, {"before_tokens": 1.5}, "$.before_tokens", "(1.5)"),
        (StateOperationResult, {"stores": [{"name": None}]}, "$.stores[0].name", "found null"),
        (StateOperationResult, {"errors": ["e"]}, "$.errors[0]", "expected an object"),
        (LLMMessage, {"role": "user"}, "$.content", "required member missing"),
        (LLMMessage, {"role": "robot", "content": ""}, "$.role", "unknown role 'robot'; known"),
        (
            LLMMessage,
            {"role": "user", "content": "", "created_at": "now"},
            "$.created_at",
            "expected a timestamp",
        ),
        (TaskCancellationRequest, {"id": " "}, "$", "the id of the task to cancel is empty"),
        (
            TaskCancellationRequest,
            {"id": "t", "reason": 5},
            "$.reason",
            "expected a string or null, found a number (5)",
        ),
        (AgentSkill, {"id": ["s"]}, "$.id", "expected a string or another scalar, found an array"),
    ],
)
def test_a_wrong_shape_names_its_place(kind, data, path, told):
    with pytest.raises(ModelError) as caught:
        kind.from_dict(data)

    assert caught.value.path == path
    assert told in str(caught.value)
    assert caught.value.message.endswith(path)


def test_the_error_is_of_our_tree_and_a_value_error():
    with pytest.raises(ValueError) as caught:
        Task.from_dict({"messages": 1})

    assert isinstance(caught.value, ProtoLinkError)


def test_several_faults_are_told_together_and_the_rest_is_counted():
    with pytest.raises(ModelError) as caught:
        Task.from_dict({"messages": [{"role": n} for n in range(8)], "state": 1})

    assert caught.value.path == "$.state"
    assert "$.messages[3].role" in str(caught.value)
    assert caught.value.message.endswith("and 4 more")


def test_a_card_names_every_member_it_lacks_in_one_error():
    with pytest.raises(ModelError) as caught:
        AgentCard.from_dict({"description": "", "url": None, "version": 5})

    assert "name, description, url" in str(caught.value).partition("missing or empty: ")[2]


def test_a_bad_card_in_a_list_is_named_by_its_index():
    with pytest.raises(ModelError) as caught:
        AgentCard.from_list([CARD, {"name": "n"}])

    assert caught.value.path == "$[1]"


def test_a_long_value_is_cut_in_the_message():
    with pytest.raises(ModelError) as caught:
        Task.from_dict({"messages": "x" * 10_000})

    assert len(str(caught.value)) < 150


@pytest.mark.parametrize("identity", [5, 0, 1.5, True, None, "", "ünïcode", 10**30])
def test_an_id_of_any_scalar_type_comes_back_as_it_was(identity):
    data = {"id": identity, "messages": [{"id": identity}], "artifacts": [{"id": identity}]}

    back = Task.from_dict(data).to_dict()

    assert [back["id"], back["messages"][0]["id"], back["artifacts"][0]["id"]] == [identity] * 3
    assert type(back["id"]) is type(identity)


def test_null_for_lists_and_objects_reads_as_empty_and_can_be_added_to():
    nothing = dict.fromkeys(("messages", "artifacts", "metadata", "flow_state"))
    task = Task.from_dict(nothing | {"state": "working"})

    task.add_message(Message.from_dict({"parts": None}).add_text("hi"))
    task.add_artifact(Artifact.from_dict({"parts": None, "metadata": None}).add_text("x"))
    task.update_state("completed").flow_state["step"] = 1

    assert len(task.messages) == len(task.artifacts) == len(task.metadata["state_history"]) == 1


def test_words_of_a_peer_that_nobody_knows_are_kept():
    data = message_with(role="narrator", parts=[{"type": "hologram", "content": {"depth": 3}}])

    message = Task.from_dict(data).messages[0]

    assert (message.role, message.parts[0].type) == ("narrator", "hologram")
    assert message.parts[0].content == {"depth": 3}
