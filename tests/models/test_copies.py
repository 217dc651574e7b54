"""Models go through pickle and copy whole: between processes, and into another thread's hands."""

from __future__ import annotations

import copy
import pickle

import attrs
import pytest

from protolink_sync import models
from protolink_sync.models import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Artifact,
    ClientRequestSpec,
    ConversationHistory,
    EndpointSpec,
    HistoryCompactionRequest,
    HistoryCompactionResult,
    InMemoryEventSink,
    LLMMessage,
    Message,
    Part,
    RouteDecision,
    RunEvent,
    StateOperationRequest,
    StateOperationResult,
    StateStoreReport,
    Task,
    TaskCancellationRequest,
    ToolCall,
    ToolOutput,
)

MORE = {"extra": {"x": [1]}}
MADE = [
    AgentCapabilities(True, **MORE),
    AgentCard("n", "d", "u", skills=[AgentSkill("s", **MORE)], **MORE),
    AgentInterface("u", "grpc", **MORE),
    AgentSkill("s", **MORE),
    Artifact(parts=[Part.text("t")], **MORE),
    ClientRequestSpec("n", "/p", "GET", Task.from_dict, headers={"X-A": "1"}),
    EndpointSpec("n", "/p", "GET", print),
    HistoryCompactionRequest(**MORE),
    HistoryCompactionResult(**MORE),
    LLMMessage("user", "c", **MORE),
    Message(parts=[Part.tool_call("t", {"a": [1]})], **MORE),
    Part.json({"a": [1]}),
    RouteDecision("k", **MORE),
    RunEvent("t", **MORE),
    StateOperationRequest(stores="tools", **MORE),
    StateOperationResult("reset", stores=(StateStoreReport("s"),), **MORE),
    StateStoreReport("s", **MORE),
    Task.from_dict({"state": "archived", "messages": [{"parts": []}], "x": [1]}),
    TaskCancellationRequest("t", "r", **MORE),
    ToolCall("t", **MORE),
    ToolOutput("c", 1, **MORE),
]


def test_every_class_is_tried():
    tried = {type(value).__name__ for value in MADE} | {"ConversationHistory", "InMemoryEventSink"}

    assert tried | {"TaskState", "TaskExecutionError"} == set(models.__all__)


@pytest.mark.parametrize("value", MADE, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(
    "through",
    [*(lambda v, p=p: pickle.loads(pickle.dumps(v, p)) for p in range(2, 6)), copy.deepcopy],
    ids=["pickle2", "pickle3", "pickle4", "pickle5", "deepcopy"],
)
def test_a_copy_is_equal_and_independent(value, through):
    other = through(value)

    assert other == value
    assert other is not value
    if hasattr(value, "to_dict"):
        assert other.to_dict() == value.to_dict()
        other.extra["y"] = 2
        assert other != value
        assert "y" not in value.extra


def test_a_history_and_a_sink_are_copied_too():
    history = ConversationHistory("s")
    sink = InMemoryEventSink()
    sink.emit(RunEvent("a"))

    other = pickle.loads(pickle.dumps(sink))
    other.emit(RunEvent("b"))

    assert pickle.loads(pickle.dumps(history)) == history
    assert [event.sequence for event in other.events] == [1, 2]
    assert len(sink.events) == 1


def test_the_latest_item_is_still_the_one_in_the_list():
    task = Task().add_message(Message.user("a")).add_artifact(Artifact())

    for other in (pickle.loads(pickle.dumps(task)), copy.deepcopy(task)):
        assert other.get_last_item() is other.artifacts[-1]


def test_asking_for_extra_makes_no_difference():
    one, other = Part.text("t"), Part.text("t")

    assert one.extra == {}
    assert one == other
    assert one.to_dict() == other.to_dict()


def test_a_member_in_extra_never_hides_a_documented_one():
    task = Task("t", extra={"id": "other", "new": 1})

    assert (task.to_dict()["id"], task.to_dict()["new"]) == ("t", 1)


@pytest.mark.parametrize("value", MADE, ids=lambda value: type(value).__name__)
def test_an_attribute_that_does_not_exist_is_refused(value):
    """A typing error must not pass in silence."""
    with pytest.raises(AttributeError):
        value.mesages = []


def test_a_class_of_ones_own_reads_and_writes_its_own_members():
    @attrs.define
    class Ticket(Task):
        queue: str = attrs.field(default="main", kw_only=True)

    ticket = Ticket.from_dict({"id": "t", "queue": "late", "messages": [{"id": "m"}]})

    assert isinstance(ticket, Ticket)
    assert (ticket.queue, ticket.messages[0].id) == ("late", "m")
    assert ticket.to_dict()["queue"] == "late"
    assert Ticket.from_dict(ticket.to_dict()) == ticket
