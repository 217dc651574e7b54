"""Objects: what goes out in each dialect, and what may come back."""

from __future__ import annotations

import uuid

import pytest

from protolink_sync.a2a import Message, MessageSendParams, Part, TaskState
from protolink_sync.errors import ModelError, TransportProtocolError
from tests.a2a.scripted import (
    artifact,
    card,
    done,
    message,
    old_card,
    result,
    sent,
    status,
    task,
)

EVERY_PART = [
    Part.from_text("words"),
    Part.from_data({"n": 1}),
    Part.from_bytes(b"\x00\x01", media_type="application/x", filename="f.bin"),
    Part.from_url("https://x.invalid/f.pdf", media_type="application/pdf"),
]


def keys_of(value):
    """Return every member name in a JSON value."""
    if isinstance(value, dict):
        return set(value) | {key for one in value.values() for key in keys_of(one)}
    if isinstance(value, list):
        return {key for one in value for key in keys_of(one)}
    return set()


def told_by(agent):
    return agent.calls[-1].params["message"]


def test_b26_a_1_0_body_has_no_kind(meet):
    agent, client = meet(done())

    client.send_message(Message.user(EVERY_PART))

    assert "kind" not in keys_of(agent.calls[0].body)
    assert told_by(agent)["role"] == "ROLE_USER"
    assert told_by(agent)["parts"] == [
        {"text": "words"},
        {"data": {"n": 1}},
        {"raw": "AAE=", "filename": "f.bin", "mediaType": "application/x"},
        {"url": "https://x.invalid/f.pdf", "mediaType": "application/pdf"},
    ]


def test_b26_a_0_3_body_has_a_kind_on_messages_and_parts(meet):
    agent, client = meet(done(old=True), card=old_card())

    client.send_message(Message.user(EVERY_PART))

    assert (told_by(agent)["kind"], told_by(agent)["role"]) == ("message", "user")
    file = {"bytes": "AAE=", "name": "f.bin", "mimeType": "application/x"}
    page = {"uri": "https://x.invalid/f.pdf", "mimeType": "application/pdf"}
    assert told_by(agent)["parts"] == [
        {"kind": "text", "text": "words"},
        {"kind": "data", "data": {"n": 1}},
        {"kind": "file", "file": file},
        {"kind": "file", "file": page},
    ]


TOLERATED = {
    "wrapped": sent(task(text="ok")),
    "bare": task(text="ok"),
    "with the old names": task(text="ok", old=True),
    "wrapped, with the old names": {"task": task(text="ok", old=True)},
    "a message": {"message": message("ok")},
    "a bare message": message("ok", old=True),
    "null for what is unset": sent(task(text="ok", artifacts=None, history=None, metadata=None)),
    "members nobody knows": sent(task(text="ok", future={"a": 1})),
}


@pytest.mark.parametrize("card_of", [card, old_card])
@pytest.mark.parametrize("form", TOLERATED)
def test_b27_reading_is_tolerant_in_either_dialect(form, card_of, meet):
    _, client = meet(result(TOLERATED[form]), card=card_of())

    received = client.send_message("hi")

    assert received.status.state is TaskState.COMPLETED
    assert received.text == "ok"


@pytest.mark.parametrize("card_of", [card, old_card])
def test_b27_a_wrapped_task_is_a_task_of_get_too(card_of, meet):
    _, client = meet(result(sent(task(text="ok"))), card=card_of())

    assert client.get_task("t1").id == "t1"


@pytest.mark.parametrize("card_of", [card, old_card])
def test_b28_an_unknown_state_is_unknown_and_its_text_kept(card_of, meet):
    odd = {**task(), "status": {"state": "TASK_STATE_PAUSED"}}
    _, client = meet(result(odd), card=card_of())

    received = client.get_task("t1")

    assert received.status.state is TaskState.UNKNOWN
    assert received.status.state_text == "TASK_STATE_PAUSED"
    assert not received.is_terminal


def test_b29_a_value_of_null_is_data(meet):
    parts = [{"data": None}, {"data": False}, {"data": {}}, {"text": "", "data": 1}]
    _, client = meet(result(task(artifacts=[{"artifactId": "a", "parts": parts}])))

    received = client.get_task("t1").artifacts[0].parts

    assert [part.kind for part in received] == ["data", "data", "data", "text"]
    assert [part.data for part in received[:3]] == [None, False, {}]


@pytest.mark.parametrize("part", [Part.from_text("x"), Part.from_data({"n": 1})])
def test_b30_a_media_type_of_text_and_data_exists_in_1_0_only(part, meet):
    part.media_type = "text/x"
    new, client = meet(done())
    client.send_message(Message.user([part]))
    old, client = meet(done(old=True), card=old_card())
    client.send_message(Message.user([part]))

    assert told_by(new)["parts"][0]["mediaType"] == "text/x"
    assert not {"mediaType", "mimeType"} & keys_of(told_by(old))


@pytest.mark.parametrize("value", [5, "s", [1], None, False])
def test_b30_data_that_0_3_cannot_say_is_refused_before_it_is_sent(value, meet):
    agent, client = meet(done(old=True), card=old_card())

    with pytest.raises((ValueError, TypeError, ModelError), match="object"):
        client.send_message(Message.user([Part.from_data(value)]))

    assert agent.calls == []


def test_b31_numbers_that_became_floats_are_equal_to_what_was_sent(meet):
    _, client = meet(
        result(task(metadata={"n": 1.0}, artifacts=[{"artifactId": "a", "parts": [{"data": 1.0}]}]))
    )

    received = client.get_task("t1")

    assert received.metadata["n"] == 1
    assert received.artifacts[0].parts[0].data == 1


def test_b32_an_empty_text_means_unset_but_for_a_text_part(meet):
    """a2a-sdk prints every member of the tasks it lists."""
    parts = [
        {"text": "", "filename": "", "mediaType": ""},
        {"url": "https://x.invalid/f", "filename": "", "mediaType": ""},
    ]
    printed = {"artifactId": "a", "parts": parts, "description": "", "name": "", "extensions": []}
    _, client = meet(result(task(artifacts=[printed])))

    (received,) = client.get_task("t1").artifacts

    assert [part.kind for part in received.parts] == ["text", "url"]
    assert received.parts[0].text == ""
    assert not received.parts[1].media_type
    assert not received.description


def test_b33_every_message_has_a_fresh_random_id(agent_of, client_of):
    agent = agent_of(done())

    for client in (client_of(agent), client_of(agent)):
        client.send_message("one")
        client.send_message(Message.user("two"))

    ids = [call.params["message"]["messageId"] for call in agent.calls]
    assert len(set(ids)) == 4
    assert {uuid.UUID(one).version for one in ids} == {4}


@pytest.mark.parametrize("card_of", [card, old_card])
def test_b34_ids_are_absent_unless_given(card_of, meet):
    agent, client = meet(result(task(old=True)), card=card_of())

    client.send_message("one")
    client.send_message("two", task_id="t1", context_id="c1")
    client.send_message(MessageSendParams(Message.user("three", task_id="", context_id="")))

    bare, named, empty = (call.params["message"] for call in agent.calls)
    assert not {"taskId", "contextId"} & (set(bare) | set(empty))
    assert (named["taskId"], named["contextId"]) == ("t1", "c1")
    assert all(one["role"] in {"user", "ROLE_USER"} for one in (bare, named, empty))


def test_b34_what_a_client_sends_is_the_users(meet):
    """Also when a message of the agent is passed on."""
    agent, client = meet(done())
    answer = client.send_message("hi").status.message

    client.send_message(answer)

    assert told_by(agent)["role"] == "ROLE_USER"


def test_b35_only_the_tasks_own_ids_are_trusted(meet):
    said = message("which?", taskId="other", contextId="else")
    asking = {**task("input-required"), "status": {**status("input-required"), "message": said}}
    _, client = meet(result(sent(asking)))

    received = client.send_message("hi")

    assert (received.id, received.context_id) == ("t1", "c1")


def test_b27_a_bare_message_becomes_a_completed_task(meet):
    _, client = meet(result({"message": message("pong", contextId="c1", taskId="t1")}))

    received = client.send_message("ping")

    assert received.from_message
    assert (received.id, received.context_id) == ("t1", "c1")
    assert received.status.state is TaskState.COMPLETED
    assert [one.text for one in received.history] == ["pong"]
    assert received.text == "pong"


NO_TASKS = {
    "null": None,
    "a text": "ok",
    "a number": 7,
    "a list": [],
    "an empty object": {},
    "a task without a state": {"task": {"id": "t1", "contextId": "c1"}},
    "a task without an id": {"task": {"status": {"state": "TASK_STATE_COMPLETED"}}},
    "a message without parts": {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": 5}},
    "something else": {"weather": "fine"},
}


@pytest.mark.parametrize("what", NO_TASKS)
@pytest.mark.parametrize("card_of", [card, old_card])
def test_b27_what_is_no_task_is_an_error_and_no_invented_task(what, card_of, meet):
    agent, client = meet(result(NO_TASKS[what]), card=card_of())

    with pytest.raises(TransportProtocolError):
        client.send_message("hi")

    assert len(agent.calls) == 1


def test_the_answer_is_never_what_a_working_agent_or_a_user_says(meet):
    told = [message("asked", role="ROLE_USER"), message("answered", number=2)]
    _, client = meet(
        result(task("working", "busy", history=told)),
        result(task("completed", "at last", artifacts=[artifact("not this")])),
        result(task("completed", artifacts=[artifact("the ", "artifact")])),
        result(task("completed", history=told[:1])),
    )

    texts = [client.get_task("t1").text for _ in range(4)]

    assert texts == ["answered", "at last", "the artifact", ""]
