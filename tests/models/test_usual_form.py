"""The usual form of what comes by the thousand is read on a way of its own: to the same objects.

Each member is looked at alone: whole, missing, null, of another type, and with one too many.
"""

from __future__ import annotations

import collections
from typing import Any

import attrs
import pytest

from protolink_sync.errors import ModelError
from protolink_sync.models import (
    AgentSkill,
    Artifact,
    LLMMessage,
    Message,
    Part,
    Task,
    ToolCall,
    ToolOutput,
)

PARTS = [{"type": "text", "content": "a"}]
MESSAGE = {"id": "i", "role": "agent", "parts": PARTS, "timestamp": "t"}
ARTIFACT = {
    "id": "i",
    "parts": PARTS,
    "metadata": {"m": 1},
    "timestamp": "t",
    "kind": "k",
    "name": "n",
    "uri": "u",
    "media_type": "mt",
    "action_id": "a",
}
CALL = {"tool_name": "t", "args": {"a": 1}, "call_id": "c"}
OUTPUT = {"call_id": "c", "result": {"r": 1}, "error": {"e": 1}}

# Where it stands in a task, and what reads one alone.
KINDS: dict[str, tuple[dict[str, Any], type]] = {
    "messages": (MESSAGE, Message),
    "artifacts": (ARTIFACT, Artifact),
}


def in_task(name: str, value: Any) -> Any:
    return getattr(Task.from_dict({name: [value]}), name)[0]


@pytest.mark.parametrize("name", KINDS)
def test_all_members_arrive_where_they_belong(name):
    whole, kind = KINDS[name]

    for read in (in_task(name, whole), kind.from_dict(whole)):  # type: ignore[attr-defined]
        found = {member: getattr(read, member) for member in whole}
        assert found == {**whole, "parts": [Part.text("a")]}
        assert read.extra == {}
        assert read.to_dict() == whole


EACH = pytest.mark.parametrize(
    ("name", "member"), [(name, member) for name, (whole, _) in KINDS.items() for member in whole]
)


@EACH
def test_a_member_that_is_missing_leaves_the_others(name, member):
    whole, _ = KINDS[name]
    part = {key: value for key, value in whole.items() if key != member}

    read = in_task(name, part)

    for other in part:
        if other != "parts":
            assert getattr(read, other) == part[other]
    assert len(read.parts) == (member != "parts")


@EACH
def test_one_member_too_many_is_kept_beside_the_others(name, member):
    whole, _ = KINDS[name]
    # As many members as usual, and one more than usual.
    swapped = {("x" if key == member else key): value for key, value in whole.items()}

    assert in_task(name, {**whole, "x": 1}).extra == {"x": 1}
    assert in_task(name, swapped).extra == {"x": whole[member]}


@EACH
@pytest.mark.parametrize("wrong", [[1], {"a": 1}, 5, True], ids=["list", "object", "int", "bool"])
def test_a_member_of_another_type_is_refused_with_its_place(name, member, wrong):
    whole, _ = KINDS[name]
    value = {**whole, member: wrong}
    fits = type(wrong) is type(whole[member])
    # Peers do not check their ids, and want back what they sent.
    fits = fits or (member in ("id", "action_id") and not isinstance(wrong, (list, dict)))
    if fits and member != "parts":
        assert getattr(in_task(name, value), member) == wrong
        return

    with pytest.raises(ModelError) as caught:
        in_task(name, value)

    assert str(caught.value.path).startswith(f"$.{name}[0].{member}")


@EACH
def test_null_is_kept_or_means_nothing_but_never_the_text_of_it(name, member):
    whole, _ = KINDS[name]
    try:
        read = getattr(in_task(name, {**whole, member: None}), member)
    except ModelError as error:
        read = error.path

    assert read in (None, [], {}, f"$.{name}[0].{member}")


@pytest.mark.parametrize("name", ["messages", "artifacts"])
def test_a_list_that_is_null_is_empty_and_anything_else_is_refused(name):
    assert getattr(Task.from_dict({name: None}), name) == []
    assert getattr(Task.from_dict({name: ()}), name) == []
    for wrong in ("text", 5, {"a": 1}):
        with pytest.raises(ModelError) as caught:
            Task.from_dict({name: wrong})
        assert caught.value.path == f"$.{name}"


@pytest.mark.parametrize("default", [str, dict, lambda: None])
def test_a_mapping_with_defaults_is_read_as_it_stands_and_stays_so(default):
    given = collections.defaultdict(default, {"parts": []})

    read = Artifact.from_dict(given)

    assert read.kind == Artifact.from_dict({"parts": []}).kind
    assert given == {"parts": []}


def test_any_mapping_is_read_as_a_dictionary_is():
    for name, (whole, _) in KINDS.items():
        assert in_task(name, collections.UserDict(whole)) == in_task(name, whole)


# ---- parts -------------------------------------------------------------------------------------


def part(content: Any, type: Any = "tool_call", **more: Any) -> Part:
    message = {**MESSAGE, "parts": [{"type": type, "content": content, **more}]}
    return Task.from_dict({"messages": [message]}).messages[0].parts[0]


def test_the_content_of_tool_parts_is_an_object_of_its_own_class():
    assert part(CALL).content == ToolCall("t", {"a": 1}, "c")
    assert part(OUTPUT, "tool_output").content == ToolOutput("c", {"r": 1}, {"e": 1})
    for odd in (CALL, {**CALL, "x": 1}):
        assert type(part(odd, more=1).content) is ToolCall
    assert part({**CALL, "x": 1}).content.extra == {"x": 1}
    assert part({**OUTPUT, "x": 1}, "tool_output").content.extra == {"x": 1}


@pytest.mark.parametrize("member", CALL)
@pytest.mark.parametrize("wrong", [[1], {"a": 1}, 5])
def test_a_wrong_member_of_a_call_is_refused_with_its_place(member, wrong):
    if member == "args" and isinstance(wrong, dict):
        assert part({**CALL, member: wrong}).content.args == wrong
        return
    if member == "call_id" and wrong == 5:
        assert part({**CALL, member: wrong}).content.call_id == 5
        return
    with pytest.raises(ModelError) as caught:
        part({**CALL, member: wrong})

    assert caught.value.path == f"$.messages[0].parts[0].content.{member}"


@pytest.mark.parametrize("member", CALL)
def test_a_call_without_a_member_is_read_as_far_as_it_means_something(member):
    some = {key: value for key, value in CALL.items() if key != member}
    if member == "tool_name":
        with pytest.raises(ModelError, match="required member missing"):
            part(some)
        return
    content = part(some).content

    assert content.tool_name == "t"
    assert content.args == ({} if member == "args" else {"a": 1})
    assert content.call_id


@pytest.mark.parametrize("member", OUTPUT)
def test_an_output_without_a_member_keeps_the_others(member):
    some = {key: value for key, value in OUTPUT.items() if key != member}
    content = part(some, "tool_output").content

    for name in some:
        assert getattr(content, name) == OUTPUT[name]
    if member != "call_id":
        assert getattr(content, member) is None


@pytest.mark.parametrize("content", ["text", 5, None, [1]])
def test_content_of_a_tool_part_that_is_no_object_stays_as_it_is(content):
    assert part(content).content == content


@pytest.mark.parametrize("type", ["text", "json", "weather"])
def test_objects_in_other_parts_stay_dictionaries(type):
    assert part(dict(CALL), type).content == CALL


def test_a_part_without_a_type_is_refused_and_one_without_content_has_none():
    assert Part.from_dict({"type": "x"}).content is None
    for wrong in ({}, {"content": 1}, {"type": 5, "content": 1}):
        with pytest.raises(ModelError) as caught:
            Task.from_dict({"messages": [{**MESSAGE, "parts": [wrong]}]})
        assert caught.value.path == "$.messages[0].parts[0].type"


class Note(Message):
    """A class of a user's own."""


class Piece(Part):
    pass


class Thing(Artifact):
    pass


class Job(Task):
    pass


@pytest.mark.parametrize(
    ("kind", "value"),
    [(Note, MESSAGE), (Piece, PARTS[0]), (Thing, ARTIFACT), (Job, {"id": "t", "state": "working"})],
)
def test_a_class_of_ones_own_reads_objects_of_that_class(kind, value):
    read = kind.from_dict(value)

    assert type(read) is kind
    assert {name: read.to_dict()[name] for name in value} == value


def test_parts_with_members_of_their_own_are_written_with_them():
    """Nothing a peer sends is lost on the way to the caller, nor on the way back."""
    odd = {"type": "text", "content": "a", "x": 1}
    task = {"id": "t", "state": "working", "messages": [{**MESSAGE, "parts": [odd], "y": 2}],
            "artifacts": [{**ARTIFACT, "parts": [odd], "z": 3}]}  # fmt: skip

    written = Task.from_dict(task).to_dict()

    assert written["messages"] == task["messages"]
    assert written["artifacts"] == task["artifacts"]


@pytest.mark.parametrize("identity", [5, None, 1.5])
def test_ids_that_are_no_text_are_written_as_they_came(identity):
    for name in ("messages", "artifacts"):
        whole = {**KINDS[name][0], "id": identity}
        assert Task.from_dict({name: [whole]}).to_dict()[name] == [whole]


# ---- names that are ours -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["extra", "_extra", "_state_text", "state_text", "_read_as"])
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (AgentSkill, {"id": "s"}),
        (Message, MESSAGE),
        (Artifact, ARTIFACT),
        (Part, {"type": "text", "content": "a"}),
        (ToolCall, CALL),
        (LLMMessage, {"role": "user", "content": "x"}),
        (Task, {"id": "t", "state": "working", "messages": ()}),
    ],
)
def test_a_member_of_a_peer_with_a_name_of_ours_is_one_of_those_nobody_knows(kind, value, name):
    """It is neither lost nor taken for what we note beside the members."""
    for told in ("x", {"a": 1}):
        read = kind.from_dict({**value, name: told})

        assert read.extra == {name: told}
        assert read.to_dict()[name] == told


def test_asking_for_what_nobody_knows_makes_no_difference():
    for kind in (Task, Message, Artifact):
        asked, other = kind(id="i"), kind(id="i")
        for name in ("created_at", "timestamp"):
            if hasattr(asked, name):
                setattr(asked, name, "t")
                setattr(other, name, "t")

        assert asked.extra == {}
        assert asked == other
        assert other == asked
        asked.extra["x"] = 1
        assert asked != other


def test_a_type_that_cannot_be_looked_up_is_refused_with_its_place():
    for value in ({"type": ["text"], "content": 1}, {"type": {}, "content": 1, "x": 1}):
        with pytest.raises(ModelError) as caught:
            Part.from_dict(value)
        assert caught.value.path == "$.type"


@pytest.mark.parametrize("content", ["text", 5, None, [1]])
def test_content_that_is_no_object_stays_so_beside_unknown_members(content):
    assert part(content, more=1).content == content


@pytest.mark.parametrize("wrong", [[1], {"a": 1}])
def test_the_id_of_an_output_is_refused_where_it_is_no_scalar(wrong):
    with pytest.raises(ModelError) as caught:
        part({**OUTPUT, "call_id": wrong}, "tool_output")

    assert caught.value.path == "$.messages[0].parts[0].content.call_id"


def test_a_task_that_is_read_has_all_that_one_has_that_is_made():
    """Its constructor is not asked: a field that is forgotten there would be missing."""
    members = {"id": "i", "metadata": {"m": 1}, "flow_state": {"f": 1}, "created_at": "t"}
    made = Task(**members, state="working", messages=[Message.from_dict(MESSAGE)])

    read = Task.from_dict({**members, "state": "working", "messages": [MESSAGE]})

    for field in attrs.fields(Task):
        assert getattr(read, field.name) == getattr(made, field.name), field.name
