"""ProtoLink tasks for A2A agents: what is sent, what the answer makes of the task, its ids."""

from __future__ import annotations

import copy

import pytest

from protolink_sync import AgentClient, RetryPolicy, TransportConfig
from protolink_sync.a2a import A2AClientError, A2ARpcError, A2ATaskNotCancelableError
from protolink_sync.errors import (
    NoResponseMessageError,
    TransportConnectionError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import Artifact, Message, Part, Task, TaskState
from protolink_sync.transport import HTTPTransport
from tests.a2a.client.bridges import a2a_only, asked, native_agent, paths
from tests.a2a.scripted import (
    HOLD,
    RST,
    artifact,
    card,
    done,
    envelope,
    error,
    interface,
    message,
    old_card,
    reply,
    result,
    sent,
    status,
    task,
)

KEYS = {"a2a_remote_task_id", "a2a_remote_context_id", "a2a_remote_agent_url", "a2a_remote_state"}


@pytest.fixture
def client():
    with AgentClient("http", timeout=20, a2a=True) as client:
        yield client


def answer(state="completed", text=None, **more):
    return result(sent(task(state, text, **more)))


# ---- the request -------------------------------------------------------------------------------


def test_the_request_is_the_one_that_protolink_sends(agent_of, client):
    agent = a2a_only(agent_of)
    ours = asked("hello from protolink")

    client.send_task(agent.base, ours, protocol="a2a")

    (call,) = agent.calls
    assert call.method == "SendMessage"
    assert call.params == {
        "message": {
            "messageId": ours.messages[0].id,
            "role": "ROLE_USER",
            "parts": [{"text": "hello from protolink"}],
        },
        "configuration": {"returnImmediately": False},
    }
    assert call.header("A2A-Version") == "1.0"
    assert call.header("Content-Type") == "application/json"
    assert len(call.header("X-Protolink-Request-ID")) == 32
    assert call.header("Idempotency-Key") is None


def test_each_request_has_an_id_of_its_own_the_card_too(agent_of, client):
    agent = a2a_only(agent_of)

    client.send_task(agent.base, asked())

    ids = [request.header("X-Protolink-Request-ID") for request in agent.requests]
    assert len(ids) == len(set(ids)) == 3
    assert None not in ids


@pytest.mark.parametrize(
    ("messages", "index"),
    [
        ([("user", "a"), ("agent", "b"), ("user", "c"), ("agent", "d")], 2),
        ([("agent", "a"), ("assistant", "b")], 1),
    ],
)
def test_the_last_message_of_the_user_is_sent_else_the_last_one(messages, index, agent_of, client):
    agent = a2a_only(agent_of)
    ours = Task(messages=[Message(role=role, parts=[Part.text(t)]) for role, t in messages])

    client.send_task(agent.base, ours)

    said = agent.calls[0].params["message"]
    assert (said["messageId"], said["role"]) == (ours.messages[index].id, "ROLE_USER")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (Task(), ValueError),
        (Task(messages=[Message(parts=[])]), ValueError),
        (Task(messages=[Message(parts=[Part.json({"x": object()})])]), TypeError),
        (Task(messages=[Message(parts=[Part.json(float("nan"))])]), ValueError),
    ],
    ids=["no message", "no parts", "no JSON", "not a number"],
)
def test_what_cannot_be_sent_is_refused_before_anything_is(wrong, why, agent_of, client):
    agent = a2a_only(agent_of)

    with pytest.raises(why):
        client.send_task(agent.base, wrong, protocol="a2a")

    assert agent.requests == []


def test_every_kind_of_part_is_translated(agent_of, client):
    agent = a2a_only(agent_of)
    parts = [
        Part.text("input"),
        Part.json({"a": 1}),
        Part.infer(prompt="p"),
        Part("status", {"s": "x"}),
        Part("bytes", "YWJj"),
        Part("uri", "https://e.example/x"),
    ]

    client.send_task(agent.base, Task(messages=[Message(parts=parts)]))

    assert agent.calls[0].params["message"]["parts"] == [
        {"text": "input"},
        {"data": {"a": 1}},
        {"text": "p"},
        {"data": {"s": "x"}, "metadata": {"protolinkPartType": "status"}},
        {"raw": "YWJj"},
        {"url": "https://e.example/x"},
    ]


def test_the_tenant_of_the_interface_goes_into_send_and_cancel(agent_of, client):
    agent = a2a_only(
        agent_of,
        card=card(interface(tenant="acme")),
        methods={"SendMessage": answer("working"), "CancelTask": result(task("canceled"))},
    )
    ours = asked()

    client.send_task(agent.base, ours)
    client.cancel_task(agent.base, ours.id)

    assert [call.params["tenant"] for call in agent.calls] == ["acme", "acme"]


# ---- the answer --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("theirs", "state"),
    [
        ("submitted", TaskState.SUBMITTED),
        ("working", TaskState.WORKING),
        ("input-required", TaskState.INPUT_REQUIRED),
        ("completed", TaskState.COMPLETED),
        ("canceled", TaskState.CANCELED),
        ("failed", TaskState.FAILED),
        ("rejected", TaskState.FAILED),
        ("auth-required", TaskState.INPUT_REQUIRED),
        ("unspecified", TaskState.UNKNOWN),
        ("resting", TaskState.UNKNOWN),
    ],
)
def test_every_state_is_translated_and_the_agents_word_kept(theirs, state, agent_of, client):
    agent = a2a_only(agent_of, answer(theirs))

    came = client.send_task(agent.base, asked())

    word = "TASK_STATE_" + theirs.upper().replace("-", "_")
    assert (came.state, came.metadata["a2a_remote_state"]) == (state, word)


def test_the_task_keeps_its_id_and_its_own_and_the_callers_is_not_changed(agent_of, client):
    agent = a2a_only(agent_of, answer("completed", "sunny"))
    ours = asked("weather?", flow_state={"step": [1]})
    ours.metadata["mine"] = {"a": 1}
    before = copy.deepcopy(ours.to_dict())

    came = client.send_task(agent.base, ours)
    came.metadata["mine"]["a"] = 2
    came.flow_state["step"].append(2)

    assert (came.id, came.created_at) == (ours.id, ours.created_at)
    assert [m.text for m in came.messages] == ["weather?", "sunny"]
    assert ours.to_dict() == before


def test_the_metadata_tells_what_the_agent_calls_the_task(agent_of, client):
    told = task("completed", metadata={"cost": 3, "deep": {"x": [1]}})
    told["status"]["timestamp"] = "2026-11-29T23:25:10.170Z"
    agent = a2a_only(agent_of, result(sent(told)))

    came = client.send_task(agent.base + "/", asked())

    assert {k: v for k, v in came.metadata.items() if k.startswith("a2a_")} == {
        "a2a_remote_task_id": "t1",
        "a2a_remote_context_id": "c1",
        "a2a_remote_agent_url": agent.base,
        "a2a_remote_state": "TASK_STATE_COMPLETED",
        "a2a_remote_status_timestamp": "2026-11-29T23:25:10.170Z",
        "a2a_remote_metadata": {"cost": 3, "deep": {"x": [1]}},
    }


def test_history_comes_before_the_status_and_nothing_comes_twice(agent_of, client):
    ours = asked("question")
    heard = {"messageId": ours.messages[0].id, "role": "ROLE_USER", "parts": [{"text": "question"}]}
    history = [heard, message("on it", number=7), message("on it", number=7)]
    told = task("completed", "done", history=[*history, message("done", number=1)])
    agent = a2a_only(agent_of, result(sent(told)))

    came = client.send_task(agent.base, ours)

    assert [(m.id, m.role, m.text) for m in came.messages] == [
        (ours.messages[0].id, "user", "question"),
        ("m7", "agent", "on it"),
        ("m1", "agent", "done"),
    ]


def test_an_artifact_replaces_the_one_with_its_id_or_is_added(agent_of, client):
    agent = a2a_only(
        agent_of, answer(artifacts=[artifact("new", name="a1"), artifact("other", name="a2")])
    )
    ours = asked()
    ours.add_artifact(Artifact("a1", [Part.text("old")]))
    ours.add_artifact(Artifact("a0", [Part.text("kept")]))

    came = client.send_task(agent.base, ours)

    assert [(a.id, a.parts[0].content, a.kind) for a in came.artifacts] == [
        ("a1", "new", "result"),
        ("a0", "kept", "result"),
        ("a2", "other", "result"),
    ]
    assert came.get_output() == "other"


def test_a_bare_message_completes_the_task(agent_of, client):
    agent = a2a_only(agent_of, result({"message": message("hello")}))

    came = client.send_task(agent.base, asked())

    assert (came.state, came.messages[-1].text) == (TaskState.COMPLETED, "hello")
    assert len(came.messages) == 2
    assert {k for k in came.metadata if k.startswith("a2a_")} == {
        "a2a_remote_agent_url",
        "a2a_remote_state",
    }


def test_a_bare_message_without_an_id_is_not_taken_twice(agent_of, client):
    said = {"role": "ROLE_AGENT", "parts": [{"text": "hello"}]}
    agent = a2a_only(agent_of, result({"message": said}))

    assert len(client.send_task(agent.base, asked()).messages) == 2


def test_send_message_returns_the_agents_message(agent_of, client):
    agent = a2a_only(agent_of, done("hello"))

    assert client.send_message(agent.base, Message.user("hi")).text == "hello"


def test_artifacts_alone_are_no_message(agent_of, client):
    agent = a2a_only(agent_of, answer(artifacts=[artifact("x")]))

    with pytest.raises(NoResponseMessageError) as caught:
        client.send_message(agent.base, Message.user("hi"))

    assert caught.value.task.artifacts[0].parts[0].content == "x"


def test_send_infer_task_sends_the_prompt(agent_of, client):
    agent = a2a_only(agent_of, done("sunny"))

    came = client.send_infer_task("weather?", agent.base, protocol="a2a")

    assert agent.calls[0].params["message"]["parts"] == [{"text": "weather?"}]
    assert came.text == "sunny"


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        {"jsonrpc": "1.0", "id": 1, "result": sent(task())},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": "another", "result": sent(task())},
        {"jsonrpc": "2.0", "id": None, "result": sent(task())},
        {"jsonrpc": "2.0", "id": 1, "result": None},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "result": {"task": task(), "message": message("x")}},
        {"jsonrpc": "2.0", "id": 1, "result": {"task": {"status": status("completed")}}},
        {"jsonrpc": "2.0", "id": 1, "result": {"task": {"id": "t", "status": {}}}},
        {"jsonrpc": "2.0", "id": 1, "result": {"task": {**task(), "contextId": 5}}},
        "no JSON",
    ],
    ids=lambda value: str(value)[:60],
)
def test_an_answer_of_another_shape_is_no_success(wrong, agent_of, client):
    agent = a2a_only(agent_of, reply(wrong))

    with pytest.raises(TransportProtocolError):
        client.send_task(agent.base, asked(), protocol="a2a")

    assert len(agent.calls) == 1


def test_an_error_beside_a_result_is_an_error(agent_of, client):
    both = envelope(result=sent(task()), error={"code": -32603, "message": "broken"})
    agent = a2a_only(agent_of, reply(both))

    with pytest.raises(A2ARpcError, match="broken"):
        client.send_task(agent.base, asked())


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (error(-32603, "broken"), A2ARpcError),
        (reply("busy", status=503, headers={"Retry-After": "0"}), TransportRemoteError),
        (RST, TransportConnectionError),
    ],
    ids=["error", "503", "reset"],
)
def test_a_send_is_never_repeated(step, why, agent_of):
    """The agent makes a task of each message that it is sent."""
    agent = a2a_only(agent_of, step)
    policy = RetryPolicy(max_attempts=4, initial_backoff=0.01)

    with HTTPTransport(config=TransportConfig(retry=policy)) as transport:
        client = AgentClient(transport, a2a=True)
        with pytest.raises(why):
            client.send_task(agent.base, asked())

    assert len(agent.calls) == 1


def test_a_key_is_refused_where_nobody_would_know_it(agent_of, client):
    agent = a2a_only(agent_of)

    with pytest.raises(A2AClientError, match="idempotency_key"):
        client.send_task(agent.base, asked(), protocol="a2a", idempotency_key="k")
    assert agent.requests == []
    with pytest.raises(A2AClientError, match="idempotency_key"):
        client.send_task(agent.base, asked(), idempotency_key="k")
    assert agent.calls == []


def test_a_time_out_says_that_the_task_may_be_running(agent_of, client):
    agent = a2a_only(agent_of, HOLD)

    with pytest.raises(TransportTimeoutError, match="task may be running"):
        client.send_task(agent.base, asked(), timeout=0.5)


# ---- going on with a task ----------------------------------------------------------------------


def sent_ids(call):
    said = call.params["message"]
    return said.get("taskId"), said.get("contextId")


def test_a_fresh_task_sends_no_id(agent_of, client):
    agent = a2a_only(agent_of)

    client.send_task(agent.base, asked())

    assert sent_ids(agent.calls[0]) == (None, None)


def test_the_task_that_came_back_goes_on_where_it_was(agent_of, client):
    agent = a2a_only(agent_of, answer("input-required", "which colour?"), done("blue it is"))

    came = client.send_task(agent.base, asked())
    came.add_message(Message.user("blue"))
    last = client.send_task(agent.base, came)

    assert sent_ids(agent.calls[1]) == ("t1", "c1")
    assert agent.calls[1].params["message"]["parts"] == [{"text": "blue"}]
    assert (last.id, last.state) == (came.id, TaskState.COMPLETED)


def test_the_metadata_is_enough_in_another_process(agent_of, client):
    agent = a2a_only(agent_of, answer("input-required"), done())
    came = client.send_task(agent.base, asked())
    stored = Task.from_dict(came.to_dict()).add_message(Message.user("blue"))

    with AgentClient("http", a2a=True) as other:
        other.send_task(agent.base + "/", stored)

    assert sent_ids(agent.calls[1]) == ("t1", "c1")


def test_the_callers_own_task_goes_on_too_with_another_message(agent_of, client):
    agent = a2a_only(agent_of, answer("input-required"), done())
    ours = asked()

    client.send_task(agent.base, ours)
    client.send_task(agent.base, ours.add_message(Message.user("blue")))

    assert sent_ids(agent.calls[1]) == ("t1", "c1")


@pytest.mark.parametrize("state", ["input-required", "completed"])
def test_the_same_task_once_more_is_a_fresh_one(state, agent_of, client):
    agent = a2a_only(agent_of, answer(state))
    ours = asked()

    client.send_task(agent.base, ours)
    client.send_task(agent.base, ours)

    assert sent_ids(agent.calls[1]) == (None, None)


def test_what_is_over_is_not_gone_on_with_unless_the_caller_says_so(agent_of, client):
    agent = a2a_only(agent_of, answer("completed"))
    ours = asked()

    came = client.send_task(agent.base, ours)
    client.send_task(agent.base, ours.add_message(Message.user("and now?")))
    client.send_task(agent.base, came.add_message(Message.user("and now?")))

    assert [sent_ids(call) for call in agent.calls[1:]] == [(None, None), ("t1", "c1")]


FORGED = [
    {"a2a_remote_agent_url": "http://other.example"},
    {"a2a_remote_agent_url": "{base}x"},
    {"a2a_remote_agent_url": "{base}/deeper"},
    {"a2a_remote_agent_url": None},
    {"a2a_remote_agent_url": ["{base}"]},
    {},
]


@pytest.mark.parametrize("named", FORGED, ids=str)
def test_ids_of_another_agent_are_not_sent(named, agent_of, client):
    """A task from elsewhere may say anything; one agent's ids are no other's business."""
    agent = a2a_only(agent_of, result({"message": message("hello")}))
    ours = asked()
    ours.metadata.update(a2a_remote_task_id="secret-1", a2a_remote_context_id="secret-2")
    ours.metadata["a2a_remote_metadata"] = {"theirs": 1}
    for name, value in named.items():
        ours.metadata[name] = value.format(base=agent.base) if isinstance(value, str) else value

    came = client.send_task(agent.base, ours)
    client.send_task(agent.base, came.add_message(Message.user("again")))

    assert [sent_ids(call) for call in agent.calls] == [(None, None)] * 2
    assert "secret" not in str([bytes(c.received) for c in agent.connections])
    assert "a2a_remote_task_id" not in came.metadata
    assert "a2a_remote_metadata" not in came.metadata


def test_what_two_agents_call_one_task_is_not_mixed_up(agent_of, client):
    """Each one's own word for it, also when the task has been with the other meanwhile."""
    first = a2a_only(agent_of, answer("input-required"))
    theirs = {**task("input-required"), "id": "t2", "contextId": "c2"}
    second = a2a_only(agent_of, result(sent(theirs)))

    came = client.send_task(first.base, asked())
    came = client.send_task(second.base, came.add_message(Message.user("b")))
    came = client.send_task(first.base, came.add_message(Message.user("c")))
    client.send_task(second.base, came.add_message(Message.user("d")))

    assert [sent_ids(call) for call in first.calls] == [(None, None), ("t1", "c1")]
    assert [sent_ids(call) for call in second.calls] == [(None, None), ("t2", "c2")]


def test_ids_that_are_no_text_are_not_sent(agent_of, client):
    agent = a2a_only(agent_of)
    ours = asked()
    ours.metadata.update(
        a2a_remote_agent_url=agent.base, a2a_remote_task_id={"a": 1}, a2a_remote_context_id=5
    )

    client.send_task(agent.base, ours)

    assert sent_ids(agent.calls[0]) == (None, None)


def test_a_bare_message_in_a_task_leaves_its_ids(agent_of, client):
    agent = a2a_only(agent_of, answer("input-required"), result({"message": message("hm")}))

    came = client.send_task(agent.base, asked())
    came = client.send_task(agent.base, came.add_message(Message.user("blue")))

    assert came.metadata["a2a_remote_task_id"] == "t1"
    assert came.metadata["a2a_remote_context_id"] == "c1"


# ---- cancelling --------------------------------------------------------------------------------


@pytest.fixture
def working(agent_of, client):
    """An agent with a task that works, and the task."""
    agent = a2a_only(
        agent_of,
        methods={
            "SendMessage": answer("working"),
            "CancelTask": result(task("canceled", "stopped")),
        },
    )
    return agent, client.send_task(agent.base, asked())


@pytest.mark.parametrize("protocol", ["auto", "a2a"])
def test_a_cancel_names_the_task_as_the_agent_does(protocol, working, client):
    agent, ours = working

    came = client.cancel_task(
        agent.base, ours.id, reason="stop", metadata={"source": "cli"}, protocol=protocol
    )

    (call,) = agent.calls[1:]
    assert (call.method, call.header("Idempotency-Key")) == ("CancelTask", None)
    assert call.params == {"id": "t1", "metadata": {"source": "cli", "reason": "stop"}}
    assert (came.id, came.state, came.messages[-1].text) == (
        ours.id,
        TaskState.CANCELED,
        "stopped",
    )
    assert came.messages[0] == ours.messages[0]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"reason": "mine", "metadata": {"reason": "theirs"}}, {"reason": "theirs"}),
        ({"reason": "mine"}, {"reason": "mine"}),
        ({}, None),
    ],
)
def test_the_reason_is_put_where_there_is_none(given, told, working, client):
    agent, ours = working

    client.cancel_task(agent.base, ours.id, **given)

    assert agent.calls[1].params.get("metadata") == told


@pytest.mark.parametrize("protocol", ["auto", "a2a"])
def test_an_unknown_task_is_not_cancelled_and_nothing_is_sent(protocol, working, client):
    agent, ours = working
    before = paths(agent)

    for url, id in ((agent.base, "unknown"), (agent.base, "t1"), (agent.base + "/x", ours.id)):
        if protocol == "auto" and url != agent.base:
            continue  # another agent, which is asked for its card first
        with pytest.raises(A2AClientError, match="not known"):
            client.cancel_task(url, id, protocol=protocol)

    assert paths(agent) == before


def test_auto_asks_for_the_protocol_before_it_says_that_a_task_is_unknown(agent_of, client):
    agent = a2a_only(agent_of)

    with pytest.raises(A2AClientError, match="not known"):
        client.cancel_task(agent.base, "unknown")

    assert [method for method in paths(agent) if method.startswith("POST")] == []


def test_a_task_that_went_out_natively_last_is_cancelled_natively(agent_of, client):
    agent = native_agent(agent_of, card=card(), methods={"SendMessage": answer("working")})
    ours = asked()

    client.send_task(agent.base, ours, protocol="a2a")
    client.send_task(agent.base, ours)
    client.cancel_task(agent.base, ours.id)

    assert paths(agent)[-1] == "POST /tasks/cancel"


def test_an_answer_about_another_task_is_no_answer(agent_of, client):
    agent = a2a_only(
        agent_of,
        methods={
            "SendMessage": answer("working"),
            "CancelTask": result({**task("canceled"), "id": "t9"}),
        },
    )
    ours = client.send_task(agent.base, asked())

    with pytest.raises(TransportProtocolError, match="t9"):
        client.cancel_task(agent.base, ours.id)


def test_a_refused_cancel_is_an_error(agent_of, client):
    agent = a2a_only(
        agent_of, methods={"SendMessage": answer("completed"), "CancelTask": error(-32002)}
    )
    ours = client.send_task(agent.base, asked())

    with pytest.raises(A2ATaskNotCancelableError):
        client.cancel_task(agent.base, ours.id)


def test_what_the_caller_does_to_a_task_does_not_change_what_is_remembered(working, client):
    agent, ours = working
    ours.messages.clear()
    ours.metadata.clear()

    came = client.cancel_task(agent.base, ours.id)

    assert [m.text for m in came.messages] == ["hi", "stopped"]


# ---- 0.3 ---------------------------------------------------------------------------------------


def test_a_0_3_agent_is_called_in_its_dialect(agent_of, client):
    agent = a2a_only(
        agent_of,
        card=old_card(),
        methods={
            "message/send": result(sent(task("input-required", old=True), old=True)),
            "tasks/cancel": result(task("canceled", old=True)),
        },
    )
    ours = asked()

    came = client.send_task(agent.base, ours)
    canceled = client.cancel_task(agent.base, ours.id)

    send, cancel = agent.calls
    assert send.params["message"]["parts"] == [{"kind": "text", "text": "hi"}]
    assert send.params["configuration"] == {"blocking": True}
    assert cancel.params == {"id": "t1"}
    assert send.header("A2A-Version") is None
    assert came.state is TaskState.INPUT_REQUIRED
    assert came.metadata.keys() >= KEYS
    assert came.metadata["a2a_remote_state"] == "input-required"
    assert canceled.state is TaskState.CANCELED


def test_an_error_names_the_call_that_was_made(agent_of, client):
    agent = a2a_only(agent_of, error(-32603, "no"))

    with pytest.raises(A2ARpcError, match=r"^send_task to http"):
        client.send_task(agent.base, asked("hi"), protocol="a2a")
