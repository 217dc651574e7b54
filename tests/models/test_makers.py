"""Parts, messages and tasks are made with all that was given, and with nothing else."""

from __future__ import annotations

import pytest

from protolink_sync.models import (
    Artifact,
    ConversationHistory,
    LLMMessage,
    Message,
    Part,
    RouteDecision,
    StateOperationResult,
    Task,
    TaskState,
    ToolOutput,
)
from protolink_sync.models.llm import LLMMessageRole


def test_the_output_of_a_tool_has_the_id_of_its_call():
    given = Part.tool_output("c", {"a": 1}, {"message": "no"})
    made = Part.tool_output(result=5)

    assert given.type == made.type == "tool_output"
    assert given.content == ToolOutput("c", {"a": 1}, {"message": "no"})
    assert (made.content.result, made.content.error) == (5, None)
    assert made.content.call_id
    assert made.content.call_id != Part.tool_output().content.call_id


@pytest.mark.parametrize(
    ("make", "type", "content"),
    [
        (lambda: Part.infer("p"), "infer", {"prompt": "p"}),
        (
            lambda: Part.infer("p", "u", {"type": "object"}, {"a": 1}),
            "infer",
            {"prompt": "p", "user": "u", "output_schema": {"type": "object"}, "metadata": {"a": 1}},
        ),
        (
            lambda: Part.bytes(b"ab", "image/png", filename="x", metadata={"a": 1}),
            "bytes",
            {"raw": "YWI=", "filename": "x", "mediaType": "image/png", "metadata": {"a": 1}},
        ),
        (
            lambda: Part.bytes(b"ab"),
            "bytes",
            {"raw": "YWI=", "mediaType": "application/octet-stream"},
        ),
        (lambda: Part.uri("http://h/f"), "uri", {"url": "http://h/f"}),
        (
            lambda: Part.uri("http://h/f", "image/png", "x", metadata={"a": 1}),
            "uri",
            {"url": "http://h/f", "filename": "x", "mediaType": "image/png", "metadata": {"a": 1}},
        ),
        (lambda: Part.route("r"), "route", RouteDecision("r", None, None, {})),
        (
            lambda: Part.route("r", reason="why", confidence=0.5, metadata={"a": 1}),
            "route",
            RouteDecision("r", "why", 0.5, {"a": 1}),
        ),
        (
            lambda: Part.decision("r", reason="why", confidence=0.5, metadata={"a": 1}),
            "decision",
            RouteDecision("r", "why", 0.5, {"a": 1}),
        ),
        (lambda: Part.decision("r"), "decision", RouteDecision("r", None, None, {})),
        (
            lambda: Part.error("c", "m"),
            "error",
            {"code": "c", "message": "m", "retryable": False},
        ),
        (
            lambda: Part.error("c", "m", retryable=True),
            "error",
            {"code": "c", "message": "m", "retryable": True},
        ),
        (lambda: Part.status("s"), "status", {"state": "s", "message": None}),
        (lambda: Part.warning(5), "warning", 5),
    ],
)
def test_a_part_is_what_it_was_given(make, type, content):
    part = make()

    assert (part.type, part.content) == (type, content)


def test_messages_are_said_by_whom_they_are_made_for():
    route = Message.route("r", reason="why", confidence=0.5, metadata={"a": 1})

    assert Message.user("x").role == Message.infer("x").role == "user"
    assert Message.tool_call("t").role == "user"
    assert Message.agent("x").role == route.role == "agent"
    assert Message.assistant("x").role == "assistant"
    assert route.parts == [Part.route("r", reason="why", confidence=0.5, metadata={"a": 1})]


@pytest.mark.parametrize("base64", ["YQ==", "YQ", " Y Q\r\n", "-_-_", "+/+/"])
def test_bytes_of_any_peer_are_read(base64):
    assert Part("bytes", {"raw": base64}).as_bytes() in (b"a", b"\xfb\xff\xbf")


def test_every_letter_of_base64_counts():
    for letter, byte in (("A", b"\0\0\0"), ("X", b"]u\xd7"), ("/", b"\xff\xff\xff")):
        assert Part("bytes", {"raw": f"{letter * 4}\r\n{letter * 4}"}).as_bytes() == byte * 2


@pytest.mark.parametrize("base64", ["YQ==YQ==", "Y*==", "Y"])
def test_what_is_no_base64_is_not_read_as_other_bytes(base64):
    with pytest.raises(ValueError, match="not base64") as caught:
        Part("bytes", {"raw": base64}).as_bytes()

    assert caught.value.path == "$.content.raw"  # type: ignore[attr-defined]


def test_a_part_without_bytes_says_where_they_would_be():
    with pytest.raises(ValueError, match=r"carries no bytes$"):
        Part("bytes", {}).as_bytes()
    with pytest.raises(ValueError, match=r"its 'url' is not fetched$"):
        Part("file", {"url": "http://h"}).as_bytes()


def test_what_is_saved_under_the_name_of_a_peer_are_its_bytes(tmp_path):
    saved = Part.bytes(b"content", filename="a.txt").save(tmp_path)

    assert saved.read_bytes() == b"content"


def test_text_is_that_of_text_parts():
    parts = [Part.text("a"), Part.json("b"), Part("text", 5), Part("text", None), Part.text("c")]

    assert Message(parts=parts).text == Artifact(parts=parts).text == "ac"


@pytest.mark.parametrize("type", ["tool_call", "tool_output", "route", "decision", "text"])
def test_the_content_of_a_part_is_asked_for_by_its_type(type):
    part = Part(type, {"tool_name": "t", "call_id": "c", "route_key": "r"})
    asked = {
        "tool_call": part.as_tool_call,
        "tool_output": part.as_tool_output,
    }

    for wanted, ask in asked.items():
        if wanted == type:
            assert ask().call_id == "c"
        else:
            with pytest.raises(ValueError, match=f"expected a part of type {wanted}, got '{type}'"):
                ask()


@pytest.mark.parametrize("name", ["route_key", "route", "key"])
def test_the_key_of_a_route_is_read_in_each_spelling_and_written_back(name):
    told = {"type": "route", "content": {name: "r", "reason": "why"}}

    part = Part.from_dict(told)

    assert (part.content.route_key, part.content.reason) == ("r", "why")
    assert part.to_dict()["content"][name] == "r"


def test_of_two_spellings_the_documented_one_counts_and_null_is_none():
    def key(**content):
        return Part.from_dict({"type": "route", "content": content}).content.route_key

    assert key(route_key="a", route="b") == "a"
    assert key(route_key=None, route="b") == "b"
    with pytest.raises(ValueError, match="required member missing"):
        key(route_key=None)
    with pytest.raises(ValueError, match="required member missing"):
        key()


@pytest.mark.parametrize(
    ("given", "state", "text"),
    [
        ({}, TaskState.SUBMITTED, "submitted"),
        ({"state": "working"}, TaskState.WORKING, "working"),
        ({"state": "unknown"}, TaskState.UNKNOWN, "unknown"),
        ({"state": "resting"}, TaskState.UNKNOWN, "resting"),
        ({"state": "resting", "messages": ()}, TaskState.UNKNOWN, "resting"),
        ({"state": "unknown", "messages": ()}, TaskState.UNKNOWN, "unknown"),
    ],
)
def test_a_state_is_read_and_written_in_the_word_of_the_peer(given, state, text):
    task = Task.from_dict(given)

    assert (task.state, task.state_text, task.to_dict()["state"]) == (state, text, text)
    assert task.id
    assert task.created_at


@pytest.mark.parametrize("value", [None, [], "x", 5])
def test_a_task_is_an_object(value):
    with pytest.raises(ValueError, match="expected an object"):
        Task.from_dict(value)


def test_stores_that_are_an_empty_object_are_none():
    """Peers whose language has one type for lists and objects write so."""
    assert StateOperationResult.from_dict({"stores": {}}).stores == ()
    with pytest.raises(ValueError, match="expected an array"):
        StateOperationResult.from_dict({"stores": {"a": 1}})


def test_an_artifact_grows_by_a_part():
    artifact = Artifact()

    assert artifact.add_part(Part.text("a")) is artifact
    assert artifact.parts == [Part.text("a")]


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (Part.text("a"), "Part(type='text', content='a')"),
        (Artifact("i"), "Artifact(id='i', kind='result', parts=0)"),
        (Artifact("i", name="n"), "Artifact(id='i', kind='result', name='n', parts=0)"),
        (LLMMessage("user", "x"), "LLMMessage(role='user', content='x')"),
        (Message("i"), "Message(id='i', role='user', parts=[])"),
    ],
    ids=["part", "artifact", "named artifact", "llm message", "message"],
)
def test_a_repr_is_short_and_tells_what_it_is(made, shown):
    assert repr(made).partition("(")[0] == shown.partition("(")[0]
    assert repr(made).endswith(")")
    assert len(repr(Part.text("x" * 10_000))) < 200


@pytest.mark.parametrize("make", [Task.create_infer, Task.create_tool_call], ids=["infer", "tool"])
def test_a_task_that_asks_carries_its_session_budget_and_context(make):
    task = make("x", session_id="s", budget={"max_steps": 3}, context={"run_id": "r"})

    run = task.metadata["run_context"]
    assert (run["session_id"], run["run_id"], run["budget"]["max_steps"]) == ("s", "r", 3)


def test_a_task_that_waits_may_say_for_what():
    asks = Message.agent("which one?")

    silent, asking = Task().require_input(), Task().require_input(asks)

    assert silent.messages == []
    assert asking.messages == [asks]
    assert silent.state is asking.state is TaskState.INPUT_REQUIRED


class TestTheLatestItem:
    def test_it_is_what_was_added_last_whatever_its_timestamp(self):
        task = Task()
        old = Artifact(timestamp="1999-01-01T00:00:00+00:00")

        task.add_message(Message.agent("m"))
        task.add_artifact(old)

        assert task.get_last_item() is old

    def test_it_follows_what_is_changed_in_the_lists(self):
        task = Task()
        assert task.get_last_item() is None
        first, second = Message.agent("1"), Message.agent("2")

        task.messages.append(first)
        assert task.get_last_item() is first
        task.messages[0] = second
        assert task.get_last_item() is second
        task.messages.clear()
        assert task.get_last_item() is None
        assert task.get_output("none") == "none"

    def test_an_artifact_that_replaces_another_is_the_latest_of_both(self):
        task = Task(artifacts=[Artifact("a")], messages=[])
        assert task.get_last_item() is task.artifacts[0]

        task.artifacts[0] = Artifact("b")

        assert task.get_last_item() is task.artifacts[0]

    def test_a_replaced_message_leaves_the_artifact_that_came_after_it(self):
        task = Task()
        task.add_message(Message("m", "agent", [], "2026-01-01T00:00:00Z"))
        task.add_artifact(Artifact("a", timestamp="2026-01-02T00:00:00Z"))

        task.messages[0] = Message("n", "agent", [], "2026-01-01T00:00:00Z")

        assert task.get_last_item() is task.artifacts[0]

    @pytest.mark.parametrize("late", ["messages", "artifacts"])
    def test_what_is_appended_to_a_list_is_later_than_all_before(self, late):
        task = Task(messages=[Message("m", timestamp="2026-01-02T00:00:00Z")],
                    artifacts=[Artifact("a", timestamp="2026-01-01T00:00:00Z")])  # fmt: skip
        task.get_last_item()
        old = "1999-01-01T00:00:00Z"
        new = Message("n", timestamp=old) if late == "messages" else Artifact("n", timestamp=old)

        getattr(task, late).append(new)

        assert task.get_last_item() is new

    def test_what_is_appended_to_both_lists_is_compared_by_its_time(self):
        task = Task(messages=[Message("m")], artifacts=[Artifact("a")])
        task.get_last_item()

        task.messages.append(Message("n", timestamp="2099-01-01T00:00:00Z"))
        task.artifacts.append(Artifact("b", timestamp="2098-01-01T00:00:00Z"))

        assert task.get_last_item() is task.messages[-1]

    @pytest.mark.parametrize(
        ("message", "artifact", "latest"),
        [
            ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "artifact"),
            ("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z", "message"),
            ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "message"),
            ("nonsense", "2026-01-01T00:00:00Z", "artifact"),
            ("2026-01-01T00:00:00Z", "nonsense", "message"),
        ],
    )
    def test_of_a_task_that_was_read_it_is_the_later_one(self, message, artifact, latest):
        task = Task(messages=[Message("m", timestamp=message)],
                    artifacts=[Artifact("a", timestamp=artifact)])  # fmt: skip

        assert task.get_last_item() is (
            task.messages[0] if latest == "message" else task.artifacts[0]
        )


class TestHistories:
    def test_messages_keep_their_metadata(self):
        history = ConversationHistory()
        history.add_user("u", metadata={"a": 1})
        history.add_assistant("a", metadata={"b": 2})
        history.add_tool("t", "tool", metadata={"c": 3})
        history.add_user("plain")

        assert [message.metadata for message in history] == [{"a": 1}, {"b": 2}, {"c": 3}, {}]
        assert [message.role for message in history][:3] == [
            LLMMessageRole.USER,
            LLMMessageRole.ASSISTANT,
            LLMMessageRole.TOOL,
        ]

    def test_the_message_of_the_system_is_replaced_only_where_there_is_one(self):
        history = ConversationHistory()
        history.set_system("one")
        history.add_user("u")
        history.set_system("two")
        assert [m.content for m in history] == ["two", "u"]

        other = ConversationHistory()
        other.add_user("u")
        other.set_system("one")
        assert [m.content for m in other] == ["one", "u"]

    def test_as_many_as_there_are_stay_as_they_are(self):
        history = ConversationHistory()
        for number in range(3):
            history.add_user(str(number))

        history.truncate(3)
        assert [m.content for m in history] == ["0", "1", "2"]
        history.truncate(2)
        assert [m.content for m in history] == ["1", "2"]

    def test_a_history_is_equal_to_histories_only(self):
        one, other = ConversationHistory(), ConversationHistory()

        assert one == other
        assert one != []
        other.add_user("u")
        assert one != other
