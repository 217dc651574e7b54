"""Task: its latest item, its answer, and how it is made."""

from __future__ import annotations

import time

import pytest

from protolink_sync.models import Artifact, Message, Part, Task, TaskState, ToolCall, ToolOutput

EARLY = "2026-01-02T03:04:05Z"
LATE = "2026-01-02T03:04:05.000000001Z"


def said(timestamp=EARLY, role="agent", text="said"):
    return Message(role=role, parts=[Part.text(text)], timestamp=timestamp)


def made(timestamp=EARLY, kind="result", text="made"):
    return Artifact(parts=[Part.text(text)], timestamp=timestamp, kind=kind)


class TestTheLatestItem:
    def test_is_none_without_messages_and_artifacts(self):
        task = Task()

        assert task.get_last_item() is task.get_last_part() is task.get_last_part_content() is None

    def test_is_what_was_added_last_whatever_its_time(self):
        message, artifact = said(LATE), made(EARLY)

        assert Task().add_message(message).add_artifact(artifact).get_last_item() is artifact
        assert Task().add_artifact(made(LATE)).add_message(message).get_last_item() is message

    @pytest.mark.parametrize(
        ("message_time", "artifact_time", "latest"),
        [
            (EARLY, LATE, "artifact"),
            (LATE, EARLY, "message"),
            (EARLY, EARLY, "message"),
            # As text, the first of each pair is the greater one.
            ("2026-01-02T03:04:05+02:00", "2026-01-02T02:04:05+00:00", "artifact"),
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5Z", "artifact"),
            ("2026-01-02T04:04:05+01:00", EARLY, "message"),
            ("yesterday", EARLY, "artifact"),
            (None, EARLY, "artifact"),
            (EARLY, "yesterday", "message"),
            (EARLY, None, "message"),
            (None, None, "message"),
        ],
    )
    def test_of_a_task_that_was_read_is_the_later_moment(self, message_time, artifact_time, latest):
        task = Task.from_dict(
            {
                "messages": [{"id": "message", "timestamp": message_time}],
                "artifacts": [{"id": "artifact", "timestamp": artifact_time}],
            }
        )

        assert task.get_last_item().id == latest

    def test_notices_what_is_appended_directly(self):
        task = Task.from_dict({"messages": [{"timestamp": LATE}]})
        task.get_last_item()

        task.artifacts.append(artifact := made(EARLY))
        assert task.get_last_item() is artifact

        task.messages.append(message := said(EARLY))
        assert task.get_last_item() is message

    def test_notices_what_is_replaced_or_taken_away(self):
        task = Task(messages=[said(), said()])
        task.get_last_item()

        task.messages[-1] = other = said()
        assert task.get_last_item() is other

        task.messages.pop()
        assert task.get_last_item() is task.messages[0]

        task.messages.clear()
        assert task.get_last_item() is None

    def test_takes_no_longer_with_many_messages(self):
        """The documents promise O(1); a look through 200,000 items would take 50 times longer."""
        task = Task(messages=[said() for _ in range(10)])
        large = Task(messages=task.messages * 20_000)
        large.get_last_item()

        def duration(of):
            best = 1.0
            for _ in range(5):
                begin = time.perf_counter()
                for _ in range(1000):
                    of.get_last_item()
                best = min(best, time.perf_counter() - begin)
            return best

        assert duration(large) < 10 * duration(task)


class TestTheLastPart:
    def test_is_that_of_the_latest_item_only(self):
        task = Task(messages=[said()]).add_message(Message(role="agent"))

        assert task.get_last_part() is None
        assert task.get_output("nothing") == "nothing"

    def test_of_a_tool_gives_its_object_as_content(self):
        task = Task.create_tool_call("add", {"a": 1}, call_id="c")

        assert task.get_last_part_content() == ToolCall("add", {"a": 1}, "c")


ERROR = {"message": "no"}


class TestTheOutput:
    @pytest.mark.parametrize(
        ("item", "output"),
        [
            (Message(role="agent", parts=[Part.text("t")]), "t"),
            (Message(role="assistant", parts=[Part.json({"a": 1})]), {"a": 1}),
            (Message(role="user", parts=[Part.text("t")]), "default"),
            (Message(role="system", parts=[Part.json(1)]), "default"),
            (Message(role="user", parts=[Part.infer_output("i")]), "i"),
            (Message(role="agent", parts=[Part.infer_output("")]), ""),
            (Message(role="agent", parts=[Part.json(None)]), None),
            (Message(role="agent", parts=[Part.json(0)]), 0),
            (Message(role="agent", parts=[Part.text("a"), Part.status("working")]), "default"),
            (Message(role="agent", parts=[Part.error("E", "bad")]), "default"),
            (Artifact(parts=[Part.text("t")]), "t"),
            (Artifact(parts=[Part.text("t")], kind="preview"), "default"),
            (Artifact(parts=[Part.infer_output("i")], kind="preview"), "default"),
            (Artifact.from_dict({"kind": None, "parts": [{"type": "text", "content": "t"}]}), "t"),
            (Artifact(parts=[Part.tool_output("c", 3)]), 3),
            (Artifact(parts=[Part.tool_output("c", None)]), None),
            (Artifact(parts=[Part.tool_output("c", 3, ERROR)]), "default"),
            (Artifact(parts=[Part("tool_output", {"call_id": "c", "result": 4})]), 4),
            (Artifact(parts=[Part.route("k")]), "default"),
        ],
    )
    def test_is_the_last_part_if_that_is_an_answer(self, item, output):
        task = Task()
        (task.add_message if isinstance(item, Message) else task.add_artifact)(item)

        assert task.get_output("default") == output

    def test_is_the_default_without_any_item(self):
        assert Task().get_output() is None

    def test_is_there_for_a_failed_task_too(self):
        task = Task(state=TaskState.FAILED).add_message(said(text="half an answer"))

        assert task.get_output() == "half an answer"


class TestText:
    def test_is_the_output(self):
        assert Task(messages=[said(text="a"), said(text="b")]).text == "b"

    def test_of_an_output_that_is_no_text_is_json(self):
        task = Task(artifacts=[Artifact(parts=[Part.json({"city": "Zürich"})])])

        assert task.text == '{"city": "Zürich"}'

    def test_of_no_result_is_empty(self):
        assert Task(artifacts=[Artifact(parts=[Part.tool_output("c", None)])]).text == ""

    def test_without_an_output_is_what_the_agent_said_last(self):
        spoken = Message(role="agent", parts=[Part.text("one, "), Part.text("two"), Part.json({})])
        task = Task(messages=[said(text="old"), spoken, said(role="user", text="thanks")])

        assert task.text == "one, two"

    def test_without_an_agent_is_empty(self):
        assert Task.create("hello").text == Task().text == ""


class TestMaking:
    def test_from_text_is_a_message_of_the_user_and_nothing_else(self):
        task = Task.create("hello")

        assert (task.messages[0].role, task.messages[0].text) == ("user", "hello")
        assert (task.state, task.metadata) == (TaskState.SUBMITTED, {})

    def test_from_anything_else_is_refused(self):
        with pytest.raises(TypeError, match="Message or text, not dict"):
            Task.create({"role": "user"})

    def test_an_infer_task_has_only_what_is_given(self):
        task = Task.create_infer("sum up", user="me", metadata={"k": 1})

        assert task.messages[0].parts == [
            Part("infer", {"prompt": "sum up", "user": "me", "metadata": {"k": 1}})
        ]
        assert task.metadata == {}

    def test_a_tool_call_task_keeps_arguments_apart_from_controls(self):
        task = Task.create_tool_call("pay", {"budget": 5})

        assert task.get_last_part_content().args == {"budget": 5}
        assert task.metadata == {}

    def test_a_session_travels_as_run_context(self):
        task = Task.create("hello", session_id="s")

        assert (task.metadata["session_id"], task.metadata["run_id"]) == ("s", task.id)
        assert task.metadata["run_context"]["session_id"] == "s"
        assert task.metadata["run_context"]["run_id"] == task.id

    def test_a_budget_has_all_its_limits(self):
        run = Task.create_infer("p", budget={"max_steps": 3}).metadata["run_context"]

        assert run["budget"] == {
            "max_steps": 3,
            "max_llm_calls": None,
            "max_tool_calls": None,
            "max_runtime_seconds": None,
            "max_input_tokens": None,
            "max_output_tokens": None,
            "metadata": {},
        }

    def test_a_context_is_copied_and_mirrored(self):
        context = {"run_id": "r", "session_id": "old", "trace_id": "t", "agent_chain": ["a"]}

        task = Task.create("hello", session_id="new", context=context)
        task.metadata["run_context"]["agent_chain"].append("b")

        assert {k: task.metadata[k] for k in ("run_id", "session_id", "trace_id")} == {
            "run_id": "r",
            "session_id": "new",
            "trace_id": "t",
        }
        assert context["agent_chain"] == ["a"]

    @pytest.mark.parametrize("name", ["budget", "context"])
    def test_a_control_that_is_no_mapping_is_refused(self, name):
        with pytest.raises(TypeError, match=f"{name} is a int"):
            Task.create("hello", **{name: 5})

    def test_two_tasks_share_nothing(self):
        one, two = Task(), Task()
        one.add_message(said())
        one.metadata["k"] = 1

        assert one.id != two.id
        assert (two.messages, two.metadata) == ([], {})

    def test_documented_fields_are_positional_in_their_order(self):
        task = Task("t", "working", [said()], [made()], {"m": 1}, {"f": 2}, EARLY)

        assert task.state is TaskState.WORKING
        assert (task.metadata, task.flow_state, task.created_at) == ({"m": 1}, {"f": 2}, EARLY)
        assert list(task.to_dict()) == [
            "id",
            "state",
            "messages",
            "artifacts",
            "metadata",
            "flow_state",
            "created_at",
        ]

    def test_what_a_peer_left_out_is_made(self):
        task = Task.from_dict({})

        assert task.state is TaskState.SUBMITTED
        assert task.id
        assert task.created_at.endswith("+00:00")


def test_the_json_form_shares_nothing_with_the_task():
    task = Task(metadata={"k": [1]}, messages=[Message(parts=[Part.json({"a": []})])])

    data = task.to_dict()
    data["metadata"]["k"].append(2)
    data["messages"][0]["parts"][0]["content"]["a"].append(1)

    assert task.metadata == {"k": [1]}
    assert task.messages[0].parts[0].content == {"a": []}


def test_a_task_that_was_asked_for_its_latest_item_equals_one_that_was_not():
    task = Task.create(Message.user("x")).complete("y")
    read = Task.from_dict(task.to_dict())

    assert read == task
    assert read.get_last_item() == task.get_last_item()
    assert read == task == Task.from_dict(task.to_dict())


def test_large_content_is_cut_in_the_repr():
    task = Task(metadata={"token": "secret"}, messages=[said(text="x" * 100_000)])

    assert len(repr(task)) < 200
    assert "secret" not in repr(task)
    assert len(repr(task.messages[0])) < 400
    assert len(repr(made(text="x" * 100_000))) < 400


def test_a_tool_output_that_was_read_knows_its_error():
    data = {"type": "tool_output", "content": {"call_id": "c", "result": None, "error": ERROR}}

    assert Part.from_dict(data).as_tool_output() == ToolOutput("c", None, ERROR)
