"""Nothing that a peer sends is lost: ``from_dict(d).to_dict()`` contains all of ``d``."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protolink_sync import models
from protolink_sync.errors import ModelError
from protolink_sync.models import AgentCard, Artifact, Message, Part, RunEvent, Task
from protolink_sync.models._converter import structure
from tests.models.records import captured, lost, model

CAPTURED = captured()
READABLE = [row for row in CAPTURED if row.kind != "event"]
EVENTS = [row for row in CAPTURED if row.kind == "event"]
JSON_CLASSES = [
    getattr(models, name)
    for name in models.__all__
    if hasattr(getattr(models, name), "from_dict") and hasattr(getattr(models, name), "to_dict")
]


@pytest.mark.parametrize("kind", sorted({row.kind for row in READABLE}))
def test_a_captured_body_comes_back_whole(kind):
    for row in READABLE:
        if row.kind == kind:
            before = copy.deepcopy(row.data)

            back = model(kind).from_dict(row.data).to_dict()

            assert lost(row.data, back) == [], row.capture
            assert row.data == before, "reading changed what was read"


def test_a_captured_event_is_the_payload_of_its_run_event():
    for row in EVENTS:
        event = RunEvent.from_task_event(row.data)

        assert lost(row.data, event.to_dict()["payload"]) == [], row.capture
        assert RunEvent.from_dict(event.to_dict()) == event, row.capture


@pytest.mark.parametrize("kind", JSON_CLASSES, ids=lambda kind: kind.__name__)
def test_any_captured_object_is_kept_whole_or_refused(kind):
    """Also an object of another class, read by mistake, loses nothing silently."""
    for row in CAPTURED:
        try:
            back = kind.from_dict(row.data).to_dict()
        except ModelError:
            continue
        assert lost(row.data, back) == [], row.capture


# ---- property tests ----

json_scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
json_floats = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    json_scalars | json_floats,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
json_objects = st.dictionaries(st.text(max_size=5), json_values, max_size=3)
texts = st.text(max_size=10)


def objects(required, optional):
    """Objects with these members, and now and then members that nobody knows."""
    known = st.fixed_dictionaries(required, optional=optional)
    unknown = st.dictionaries(
        st.text(alphabet="xyz_", min_size=1, max_size=4), json_values, max_size=2
    )
    return st.builds(lambda a, b: {**b, **a}, known, unknown)


tool_calls = objects({"tool_name": texts}, {"args": json_objects, "call_id": json_scalars})
tool_outputs = objects({}, {"call_id": json_scalars, "result": json_values, "error": json_values})
decisions = objects(
    {"route_key": texts},
    {
        "reason": st.none() | texts,
        "confidence": st.none() | json_floats | st.integers(),
        "metadata": st.none() | json_objects,
    },
)
other_types = texts.filter(lambda word: word not in Part.CONTENT_CLASSES)
parts = st.one_of(
    objects({"type": other_types}, {"content": json_values}),
    objects({"type": st.sampled_from(["text", "json", "error"])}, {"content": json_values}),
    objects({"type": st.just("tool_call")}, {"content": tool_calls}),
    objects({"type": st.just("tool_output")}, {"content": tool_outputs}),
    objects({"type": st.sampled_from(["route", "decision"])}, {"content": decisions}),
)
part_lists = st.none() | st.lists(parts, max_size=3)
messages = objects(
    {},
    {
        "id": json_scalars,
        "role": st.none() | texts,
        "parts": part_lists,
        "timestamp": st.none() | texts,
    },
)
usual_messages = st.fixed_dictionaries(
    {"id": texts, "role": texts, "parts": st.lists(parts, max_size=3), "timestamp": texts}
)
nullable_texts = st.none() | texts
artifacts = objects(
    {},
    {
        "id": json_scalars,
        "parts": part_lists,
        "metadata": st.none() | json_objects,
        "timestamp": nullable_texts,
        "kind": nullable_texts,
        "name": nullable_texts,
        "uri": nullable_texts,
        "media_type": nullable_texts,
        "action_id": json_scalars,
    },
)
tasks = objects(
    {},
    {
        "id": json_scalars,
        "state": texts | st.sampled_from(["submitted", "completed", "unknown"]),
        "messages": st.none() | st.lists(messages | usual_messages, max_size=3),
        "artifacts": st.none() | st.lists(artifacts, max_size=2),
        "metadata": st.none() | json_objects,
        "flow_state": st.none() | json_objects,
        "created_at": nullable_texts,
    },
)
cards = objects(
    {name: st.text(min_size=1, max_size=5) for name in ("name", "description", "url")},
    {
        "transport": texts,
        "version": texts,
        "protocolVersion": texts,
        "capabilities": st.none()
        | objects({}, {"streaming": st.booleans(), "max_concurrency": st.integers()}),
        "skills": st.none()
        | st.lists(objects({"id": json_scalars}, {"examples": st.lists(json_values)}), max_size=2),
        "inputFormats": st.none() | st.lists(texts, max_size=2),
        "securitySchemes": st.none() | json_objects,
        "role": texts,
        "tags": st.none() | st.lists(texts, max_size=2),
        "additionalInterfaces": st.none() | st.lists(objects({"url": texts}, {}), max_size=2),
        "interfaces": st.none() | st.lists(objects({"url": texts}, {}), max_size=2),
    },
)


@given(tasks)
def test_a_task_comes_back_whole(data):
    before = copy.deepcopy(data)

    task = Task.from_dict(data)

    assert lost(data, task.to_dict()) == []
    assert data == before
    assert Task.from_dict(task.to_dict()) == task


@given(cards)
def test_a_card_comes_back_whole(data):
    card = AgentCard.from_dict(data)

    assert lost(data, card.to_dict()) == []
    assert AgentCard.from_dict(card.to_dict()).to_dict() == card.to_dict()


@pytest.mark.parametrize(
    ("kind", "values"),
    [(Part, parts), (Message, messages | usual_messages), (Artifact, artifacts), (Task, tasks)],
    ids=["Part", "Message", "Artifact", "Task"],
)
def test_the_fast_lane_and_the_careful_one_read_the_same(kind, values):
    @given(values.filter(lambda data: _names_itself(kind, data)))
    def check(data):
        assert kind.from_dict(data) == structure(kind, data)

    check()


def _names_itself(kind, data):
    """Leave out what gets a fresh id or time in either lane: those differ."""
    if kind is Part:
        content = data.get("content")
        usual = data["type"] not in ("tool_call", "tool_output") or not isinstance(content, dict)
        return usual or "call_id" in content
    if kind is Task and not {"id", "created_at"} <= data.keys():
        return False
    if kind in (Message, Artifact) and not {"id", "timestamp"} <= data.keys():
        return False
    inner = [(Part, p) for p in data.get("parts") or ()]
    inner += [(Message, m) for m in data.get("messages") or ()]
    inner += [(Artifact, a) for a in data.get("artifacts") or ()]
    return all(_names_itself(inner_kind, value) for inner_kind, value in inner)


@given(json_values, st.sampled_from(JSON_CLASSES))
def test_whatever_is_read_either_comes_back_whole_or_is_refused(data, kind):
    try:
        back = kind.from_dict(data).to_dict()
    except ModelError:
        return
    assert lost(data, back) == []
