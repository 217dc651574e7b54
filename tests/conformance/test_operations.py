"""Every unary operation means the same on every transport (wire/protolink.md 2 and 18)."""

from __future__ import annotations

import pytest

from protolink_sync import AgentPeer
from protolink_sync.errors import NoResponseMessageError, TaskExecutionError
from protolink_sync.models import (
    AgentCard,
    ClientRequestSpec,
    HistoryCompactionResult,
    Message,
    Part,
    StateOperationResult,
    Task,
    TaskState,
)


def task(text: str) -> Task:
    return Task.create(Message.user(text))


def test_a_task_comes_back_completed(stage, client):
    sent = task("echo hello")
    before = sent.to_dict()

    done = client.send_task(stage.url, sent)

    assert (done.id, done.state, done.text) == (sent.id, TaskState.COMPLETED, "hello")
    assert done.messages[0].to_dict() == before["messages"][0]
    assert sent.to_dict() == before, "the caller's task is not changed"
    changes = [(c["previous_state"], c["new_state"]) for c in done.metadata["state_history"]]
    assert changes == [("submitted", "working"), ("working", "completed")]


def test_content_of_every_kind_arrives_unchanged(stage, client):
    contents = [
        {"nested": {"list": [1, 2.5, -0.0, None, True, ""]}},
        '\u00e4\u20ac\U0001f600\u2028\0\x7f"\\',
        10**30,
        -(2**63) - 1,
        1e-300,
        [],
        {},
        "",
        None,
    ]
    sent = Task.create(Message(role="user", parts=[Part("json", c) for c in contents]))
    sent.metadata["own"] = {"key": contents}
    sent.add_message(Message.user("back"))

    arrived = client.send_task(stage.url, sent).messages[-1].parts[0].content

    assert arrived["messages"] == sent.to_dict()["messages"]
    assert arrived["metadata"]["own"] == {"key": contents}
    assert [type(p["content"]) for p in arrived["messages"][0]["parts"]] == [
        type(content) for content in contents
    ]


@pytest.mark.parametrize(
    ("text", "state"),
    [("fail on purpose", TaskState.FAILED), ("need", TaskState.INPUT_REQUIRED)],
)
def test_a_task_that_ends_otherwise_is_an_answer(stage, client, text, state):
    done = client.send_task(stage.url, task(text))

    assert done.state is state
    if state is TaskState.FAILED:
        assert done.metadata["error"] == "on purpose"
        with pytest.raises(TaskExecutionError, match="on purpose"):
            done.raise_for_status()


def test_a_task_at_its_end_comes_back_as_it_is(stage, client):
    ended = task("echo x").begin().complete("done before")

    done = client.send_task(stage.url, ended)

    assert [m.to_dict() for m in done.messages] == [m.to_dict() for m in ended.messages]


def test_plain_text_is_inert(stage, client):
    done = client.send_task(stage.url, task("nothing to do"))

    assert done.state is TaskState.COMPLETED
    assert len(done.messages) == 1


def test_artifacts_come_back_in_order(stage, client):
    done = client.send_task(stage.url, task("artifacts"))

    assert [(a.name, a.parts[0].content) for a in done.artifacts] == [
        ("a", "first"),
        ("b", "second"),
    ]


def test_a_question_is_answered(stage, client):
    done = client.send_infer_task("hello?", stage.url, metadata={"document": 5})

    assert done.get_output() == "the mock model says hi"
    assert done.state is TaskState.COMPLETED


def test_a_message_is_answered_by_a_message(stage, client):
    answer = client.send_message(stage.url, Message.user("echo hi"))

    assert (answer.role, answer.parts[0].content) == ("agent", "hi")


@pytest.mark.parametrize("text", ["artifacts", "nothing to do"])
def test_no_message_is_an_error_that_has_the_task(stage, client, text):
    with pytest.raises(NoResponseMessageError) as caught:
        client.send_message(stage.url, Message.user(text))

    assert caught.value.task.state is TaskState.COMPLETED


def test_the_callers_own_message_is_no_answer(stage, client):
    with pytest.raises(NoResponseMessageError):
        client.send_message(stage.url, Message.agent("just saying"))


def test_the_card(stage, client):
    card = client.get_agent_card(stage.url)

    assert isinstance(card, AgentCard)
    assert (card.url, card.transport) == (stage.url, stage.side.card_says or stage.side.transport)
    assert "add" in [skill.id for skill in card.skills]
    assert card.protocol_version == "0.8.3"


def test_state_and_history_of_a_session(stage, client):
    asked = Task.create_infer(prompt="remember", session_id="S-conformance")
    client.send_task(stage.url, asked)

    described = client.describe_state(stage.url, session_id="S-conformance", include_data=True)
    compacted = client.compact_state(stage.url, session_id="S-conformance", max_tokens=8000)
    history = client.compact_history(stage.url, session_id="S-conformance", max_messages=5)
    reset = client.reset_state(stage.url, session_id="S-conformance")
    after = client.describe_state(stage.url, session_id="S-conformance")

    for result, operation in (
        (described, "describe"),
        (compacted, "compact"),
        (reset, "reset"),
        (after, "describe"),
    ):
        assert isinstance(result, StateOperationResult)
        assert (result.operation, result.session_id) == (operation, "S-conformance")
        assert result.errors == ()
        assert [store.name for store in result.stores] == ["conversation"]
    assert described.stores[0].exists
    assert described.stores[0].data is not None
    assert reset.cleared == ("conversation",)
    assert not after.stores[0].exists
    assert isinstance(history, HistoryCompactionResult)
    assert history.strategy == "recent"
    assert history.after_messages == history.before_messages - history.removed_messages


def test_a_session_that_is_not_there(stage, client):
    assert client.compact_state(stage.url, session_id="nobody").compacted == ()
    assert not client.describe_state(stage.url, session_id="nobody").stores[0].exists
    assert client.reset_state(stage.url, session_id="nobody").errors == ()


def test_a_running_task_is_cancelled_while_its_caller_waits(stage, client):
    from concurrent.futures import ThreadPoolExecutor

    sent = task("wait 30")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(client.send_task, stage.url, sent)
        canceled = stage.cancel_when_running(
            client, sent.id, reason="enough", metadata={"source": "tests"}
        )
        result = running.result(30)

    for ended in (canceled, result):
        assert (ended.id, ended.state) == (sent.id, TaskState.CANCELED)
        assert ended.metadata["cancel_reason"] == "enough"


def test_health_is_asked_with_an_operation_of_ones_own(stage, client):
    health = client.transport.send(
        ClientRequestSpec("health", "/healthz", "GET", None, "none"), stage.url
    )

    assert health["ready"] is True


def test_a_peer(stage, client):
    agent = AgentPeer(client, stage.url)

    assert agent.invoke("hello?") == "the mock model says hi"
    assert agent.call_tool("add", a=2, b=3) == 5
    assert agent.run_task(task("need")).state is TaskState.INPUT_REQUIRED
    assert agent.card.url == stage.url
    with pytest.raises(TaskExecutionError, match="on purpose"):
        agent.invoke(Message.user("fail on purpose"))


@pytest.mark.parametrize(
    ("name", "args"), [("nope", {}), ("add", {"a": 1}), ("add", {"a": "x", "b": 1})]
)
def test_a_tool_that_cannot_be_called_fails_the_task(stage, client, name, args):
    done = client.send_task(stage.url, Task.create_tool_call(name, args))

    assert done.state is TaskState.FAILED
    error = done.get_last_part().content.error
    assert error["status"] == "rejected"
    assert error["changes_made"] is False
    with pytest.raises(TaskExecutionError):
        AgentPeer(client, stage.url).call_tool(name, **args)
