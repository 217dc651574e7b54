"""Whatever a peer sends, the only errors are ours; whatever we write, we read again."""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protolink_sync.a2a.wire import (
    AgentCard,
    Artifact,
    Message,
    MessageSendParams,
    Part,
    Role,
    Task,
    TaskAssembly,
    TaskState,
    TaskStatus,
    read_notification,
    read_request,
    result_of,
    select,
)
from protolink_sync.errors import A2AClientError, ModelError
from tests.a2a.wire.recorded import exchanges, plain
from tests.a2a.wire.values import V0_3, V1_0

_NAMES = """
    kind id contextId taskId status state message role parts text raw url data file bytes metadata
    task history artifacts artifact artifactId append lastChunk final statusUpdate artifactUpdate
    tasks configs pushNotificationConfig authentication schemes scheme error code result jsonrpc
    method params supportedInterfaces protocolBinding protocolVersion additionalInterfaces
    securitySchemes securityRequirements skills capabilities @type fieldViolations configuration
    historyLength
"""
_WORDS = """
    task message status-update artifact-update text file TASK_STATE_COMPLETED working ROLE_USER
    agent 2.0 1.0 JSONRPC https://h/ AA== type.googleapis.com/google.rpc.BadRequest
"""
NAMES, WORDS = _NAMES.split(), _WORDS.split()

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(WORDS)
)
anything: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=4), inner, max_size=6)
    ),
    max_leaves=20,
)

RECORDED = [
    value
    for exchange in exchanges("jsonrpc-", "real-", "protolink-server", "card-hybrid")
    for value in exchange.received
]


@st.composite
def damaged(draw: Any) -> Any:
    """A recorded answer in which one place is something else."""
    value = copy.deepcopy(draw(st.sampled_from(RECORDED)))
    holder, key, place = None, None, value
    for _ in range(draw(st.integers(1, 9))):
        if isinstance(place, dict) and place:
            holder, key = place, draw(st.sampled_from(sorted(place)))
        elif isinstance(place, list) and place:
            holder, key = place, draw(st.integers(0, len(place) - 1))
        else:
            break
        place = holder[key]  # type: ignore[index]
    if holder is not None:
        holder[key] = draw(anything)
    return value


READINGS: list[Callable[[Any], Any]] = [
    lambda v: result_of(v, 1, where="x"),
    lambda v: V1_0.parse_send(v).copy().to_dict(),
    lambda v: V1_0.parse_send(v).text,
    lambda v: V1_0.parse_event(v).to_dict(),
    lambda v: TaskAssembly().see(V0_3.parse_event(v)),
    lambda v: repr(read_notification(v)) + read_notification(v).kind,
    V1_0.parse_task,
    V1_0.parse_page,
    V1_0.parse_push,
    V1_0.parse_pushes,
    lambda v: V1_0.read_send_params(v),  # type: ignore[attr-defined]
    read_request,
    lambda v: select(AgentCard.from_dict(v), "https://h"),
]


def check_readings(value: Any) -> None:
    """Let everything that reads what a peer sends read it."""
    before = json.dumps(value)
    result = value.get("result") if isinstance(value, dict) else None
    for one, read in itertools.product((value, result), READINGS):
        with contextlib.suppress(ModelError, A2AClientError):
            read(one)
    assert json.dumps(value) == before, "what was received was changed"


@given(anything)
def test_arbitrary_json_raises_nothing_but_our_errors(value):
    check_readings(value)


@given(damaged())
def test_damaged_answers_raise_nothing_but_our_errors(value):
    check_readings(value)


# --- there and back --------------------------------------------------------------------------

texts = st.text(max_size=10)
ids = st.text(min_size=1, max_size=10)
objects = st.dictionaries(texts, anything, max_size=3)
metadata = objects
uris = st.lists(st.text(min_size=1, max_size=5), max_size=2)

text_parts = st.builds(Part, texts, media_type=texts, metadata=metadata)
file_parts = st.builds(Part, raw=st.binary(), filename=texts, media_type=texts, metadata=metadata)
url_parts = st.builds(Part, url=ids, filename=texts, media_type=texts, metadata=metadata)
data_parts = st.builds(Part.from_data, anything, texts)
parts = text_parts | file_parts | url_parts | data_parts


ROLES = st.sampled_from(Role)


def messages(parts: st.SearchStrategy[Part], roles: Any = ROLES) -> Any:
    return st.builds(
        Message,
        st.lists(parts, min_size=1, max_size=4),
        roles,
        ids,
        texts,
        texts,
        metadata,
        uris,
        uris,
    )


statuses = st.builds(
    TaskStatus,
    st.sampled_from([state for state in TaskState if state is not TaskState.UNKNOWN]),
    st.none() | messages(parts),
    texts,
)
artifacts = st.builds(Artifact, st.lists(parts, max_size=3), texts, texts, texts, metadata, uris)
tasks = st.builds(
    Task,
    ids,
    texts,
    statuses,
    st.lists(artifacts, max_size=2),
    st.lists(messages(parts), max_size=2),
    metadata,
)


@settings(max_examples=40)
@given(tasks)
def test_a_task_written_in_1_0_is_read_again(task):
    wire = json.loads(json.dumps(task.to_dict()))

    assert V1_0.parse_task(wire) == task
    assert V1_0.parse_send({"task": wire}) == V0_3.parse_send(wire) == task
    assert task.copy() == task


@given(messages(parts, st.just(Role.USER)))
def test_a_message_sent_in_1_0_is_read_by_a_host(message):
    wire = json.loads(json.dumps(V1_0.send_params(MessageSendParams(message), "acme")))

    read = V1_0.read_send_params(wire)  # type: ignore[attr-defined]

    assert (read.message, read.extra) == (message, {"tenant": "acme"})


without_media_type = st.builds(Part, texts, metadata=metadata) | st.builds(
    lambda value, about: Part(data=value, metadata=about), objects, metadata
)


@given(messages(without_media_type | file_parts | url_parts, st.just(Role.USER)))
def test_a_message_sent_in_0_3_is_read_again(message):
    """But for the media types of text and data, which 0.3 has no member for."""
    wire = json.loads(json.dumps(V0_3.send_params(MessageSendParams(message))["message"]))

    assert Message.from_dict(wire) == message


@given(messages(parts, st.just(Role.USER)))
def test_a_message_cannot_say_other_things_in_the_two_dialects(message):
    try:
        older = V0_3.send_params(MessageSendParams(message))["message"]
    except ValueError:
        assert any(part.kind == "data" and type(part.data) is not dict for part in message.parts)
        return

    newer = V1_0.send_params(MessageSendParams(message))["message"]
    for part in newer["parts"]:
        if "text" in part or "data" in part:
            part.pop("mediaType", None)
    assert plain(Message.from_dict(older).to_dict()) == plain(newer)


def test_deep_nesting_is_no_crash():
    """A peer's data may be nested deeper than Python calls; it is kept, not walked."""
    data: Any = []
    for _ in range(100_000):
        data = [data]

    task = Task.from_dict({"id": "t", "status": {"state": "working"}, "metadata": {"x": data}})

    with pytest.raises(ModelError, match="nested too deeply"):
        task.to_dict()
