"""AgentPeer and connect(): one agent, called without naming it again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from protolink_sync import AgentPeer, CancelToken, connect
from protolink_sync.client import AgentClient
from protolink_sync.config import TransportConfig, TransportLimits
from protolink_sync.errors import CallCancelledError, ClientClosedError, TaskExecutionError
from protolink_sync.models import AgentCard, Artifact, Message, Part, Task, TaskState, ToolOutput
from protolink_sync.security import APIKey, TLSConfig
from protolink_sync.server import Agent
from protolink_sync.testing import ScriptedTransport, reply
from protolink_sync.testing.steps import Step

URL = "http://agent.test"

CARD = {"name": "a", "description": "d", "url": URL}


def peer(*steps: Step) -> tuple[AgentPeer, ScriptedTransport]:
    transport = ScriptedTransport(*steps)
    return AgentPeer(AgentClient(transport), URL), transport


def body(transport: ScriptedTransport) -> Any:
    return json.loads(transport.calls[-1].body or b"null")


def done(*parts: Part, state: str = "completed", artifact: bool = True, **metadata: Any) -> Any:
    """Return a task that comes back with one item that has these parts."""
    task = Task("t-1", TaskState(state), [Message.user("asked")], metadata=metadata)
    if parts and artifact:
        task.add_artifact(Artifact(parts=list(parts)))
    elif parts:
        task.add_message(Message(role="agent", parts=list(parts)))
    return reply(task.to_dict())


# --- invoke -------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["yes", "", 0, False, [], {"total": 5}])
def test_the_output_is_the_answer_falsy_ones_too(output):
    agent, transport = peer(done(Part("infer_output", output)))

    answer = agent.invoke("question")

    assert answer == output
    assert type(answer) is type(output)
    part = body(transport)["messages"][0]["parts"][0]
    assert part == {"type": "infer", "content": {"prompt": "question"}}


def test_the_text_of_a_message_is_an_answer():
    agent, _ = peer(done(Part.text("hello"), artifact=False))

    assert agent.invoke("question") == "hello"


def test_no_output_is_none():
    agent, _ = peer(done())

    assert agent.invoke("question") is None


def test_a_message_is_sent_as_it_is():
    agent, transport = peer(done(Part("infer_output", "yes")))
    message = Message.user("echo hi")

    agent.invoke(message)

    assert body(transport)["messages"] == [message.to_dict()]


def test_session_budget_and_context_travel_in_the_run_context():
    agent, transport = peer(done(Part("infer_output", "yes")))

    agent.invoke("hi", session_id="S", budget={"max_steps": 5}, context={"trace_id": "T"})

    metadata = body(transport)["metadata"]
    run = metadata["run_context"]
    assert (run["session_id"], run["trace_id"], run["budget"]["max_steps"]) == ("S", "T", 5)
    assert metadata["session_id"] == "S"


@pytest.mark.parametrize("state", ["failed", "canceled"])
def test_a_task_that_failed_is_an_error_that_has_it(state):
    agent, _ = peer(done(state=state, error="no weather"))

    with pytest.raises(TaskExecutionError) as caught:
        agent.invoke("question")

    assert caught.value.task.state.value == state
    assert isinstance(caught.value, RuntimeError)


def back(state: str, *parts: Part) -> Any:
    """Return a task that comes back in a state."""
    task = Task("t-1", artifacts=[Artifact(parts=list(parts))])
    return reply({**task.to_dict(), "state": state})


STRANGE = ["rejected", "error", "auth-required"]


@pytest.mark.parametrize("state", STRANGE)
def test_what_came_back_in_a_state_of_nobody_is_an_error(state):
    agent, _ = peer(back(state, Part("infer_output", "go away")))

    with pytest.raises(TaskExecutionError, match=state) as caught:
        agent.invoke("question")

    assert caught.value.task.state_text == state


@pytest.mark.parametrize("state", STRANGE)
def test_what_a_tool_left_in_such_a_task_is_no_result(state):
    output = Part.from_dict({"type": "tool_output", "content": {"call_id": "c-1", "result": 3}})
    agent, _ = peer(back(state, output))

    with pytest.raises(TaskExecutionError, match=state):
        agent.call_tool("add")


@pytest.mark.parametrize("state", ["submitted", "working", "unknown"])
def test_an_answer_of_an_agent_that_leaves_the_state_alone_counts(state):
    """As for ProtoLink's own peer: its handlers need not change it."""
    agent, _ = peer(back(state, Part("infer_output", "done")))

    assert agent.invoke("question") == "done"


def test_a_question_in_return_is_an_answer():
    agent, _ = peer(done(Part.text("which one?"), state="input-required", artifact=False))

    assert agent.invoke("question") == "which one?"


@pytest.mark.parametrize("message", [None, 5, {"role": "user"}, b"hi"])
def test_a_question_is_a_text_or_a_message(message):
    agent, transport = peer()

    with pytest.raises(TypeError, match="str or a Message"):
        agent.invoke(message)
    assert transport.calls == []


def test_budget_and_token_reach_the_call():
    agent, transport = peer()
    token = CancelToken()
    token.cancel()

    with pytest.raises(CallCancelledError):
        agent.invoke("hi", cancel=token)
    with pytest.raises(ValueError, match="timeout"):
        agent.run_task(Task.create("hi"), timeout=0)
    assert transport.calls == []


# --- tools --------------------------------------------------------------------------------------


@pytest.mark.parametrize("result", [3, 0, "", None, [1], {"a": None}])
def test_a_tool_returns_its_bare_result(result):
    agent, transport = peer(done(Part("tool_output", ToolOutput("c-1", result))))

    assert agent.call_tool("add", a=1, b=2) == result
    part = body(transport)["messages"][0]["parts"][0]
    assert part["type"] == "tool_call"
    assert part["content"]["tool_name"] == "add"
    assert part["content"]["args"] == {"a": 1, "b": 2}


def test_arguments_may_have_any_name():
    agent, transport = peer(done(Part("tool_output", ToolOutput("c-1", 1))))

    agent.call_tool("t", name="n", self="s", timeout=5, cancel=True)

    args = body(transport)["messages"][0]["parts"][0]["content"]["args"]
    assert args == {"name": "n", "self": "s", "timeout": 5, "cancel": True}


@pytest.mark.parametrize("error", ["boom", {"code": "E", "message": "boom"}])
def test_the_error_of_a_tool_is_an_error(error):
    content = {"call_id": "c-1", "result": None, "error": error}
    agent, _ = peer(done(Part.from_dict({"type": "tool_output", "content": content})))

    with pytest.raises(TaskExecutionError, match="boom") as caught:
        agent.call_tool("add")

    assert caught.value.task.id == "t-1"


@pytest.mark.parametrize("parts", [[], [Part.text("hello")], [Part("infer_output", "x")]])
def test_an_answer_that_is_no_tool_output_is_an_error(parts):
    agent, _ = peer(done(*parts))

    with pytest.raises(TaskExecutionError, match="not with the output of a tool"):
        agent.call_tool("add")


def test_a_failed_task_is_the_error_of_a_tool():
    agent, _ = peer(done(state="failed", error="unknown tool"))

    with pytest.raises(TaskExecutionError, match="unknown tool"):
        agent.call_tool("nope")


# --- the rest -----------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["failed", "canceled", "input-required"])
def test_run_task_returns_any_task(state):
    agent, _ = peer(done(state=state))

    assert agent.run_task(Task.create("hi")).state.value == state


def test_the_card_is_fetched_once_when_it_is_asked_for():
    agent, transport = peer(reply(CARD))
    assert transport.calls == []

    assert agent.card is agent.card

    assert agent.card.name == "a"
    assert len(transport.calls) == 1


def test_a_card_that_did_not_come_is_asked_for_again():
    agent, _ = peer(reply(status=500), reply(CARD))

    with pytest.raises(RuntimeError):
        _ = agent.card

    assert agent.card.name == "a"


def test_a_peer_knows_its_client_and_address():
    agent, transport = peer()

    assert (agent.url, agent.client.transport) == (URL, transport)
    assert URL in repr(agent)


def test_a_peer_needs_a_client():
    for wrong in (ScriptedTransport(), "http", None):
        with pytest.raises(TypeError, match="AgentClient"):
            AgentPeer(wrong, URL)  # type: ignore[arg-type]


def test_closing_a_peer_leaves_the_client_open():
    agent, _ = peer(reply(CARD))
    with agent:
        pass
    agent.close()

    assert agent.card.name == "a"


# --- connect ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("http://127.0.0.1:9", "http"),
        ("https://127.0.0.1:9/path/", "http"),
        ("HTTP://127.0.0.1:9", "http"),
        ("runtime://nobody", "runtime"),
    ],
)
def test_the_scheme_chooses_the_transport_and_nothing_is_sent(url, kind):
    with connect(url) as agent:
        transport = agent.client.transport

        assert transport.transport_type in (kind, {"http": "sse"}.get(kind))
        assert agent.url == url
        assert transport.metrics.requests_started == 0
    with pytest.raises(ClientClosedError):
        _ = agent.card
    agent.close()


def test_settings_reach_the_transport(tls_files):
    config = TransportConfig(limits=TransportLimits(max_request_bytes=1))

    with connect(
        "https://127.0.0.1:9",
        credentials=APIKey("k"),
        tls=TLSConfig(cafile=tls_files.ca),
        timeout=7,
        config=config,
    ) as agent:
        assert agent.client.transport.timeout == 7
        assert agent.client.transport.config is config
    with connect("http://127.0.0.1:9", timeout=None) as agent:
        assert agent.client.transport.timeout == 300


@pytest.mark.parametrize(
    ("url", "error", "words"),
    [
        ("", ValueError, "known: .*http://.*https://.*runtime://"),
        ("127.0.0.1:8010", ValueError, "known: "),
        ("localhost", ValueError, "known: "),
        ("ftp://h", ValueError, "known: "),
        ("http://", ValueError, "host"),
        ("http://h?x", ValueError, "query"),
        ("http://user:pw@h", ValueError, "credentials="),
        (5, TypeError, "must be a str"),
        (None, TypeError, "must be a str"),
        (b"http://h", TypeError, "must be a str"),
    ],
)
def test_an_address_that_cannot_be_connected_to_says_what_is_possible(url, error, words):
    with pytest.raises(error, match=words):
        connect(url)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"credentials": 5}, TypeError),
        ({"tls": "ca.pem"}, TypeError),
        ({"timeout": 0}, ValueError),
        ({"config": {}}, TypeError),
        ({"retries": 3}, TypeError),
    ],
)
def test_a_wrong_setting_is_refused_at_once(settings, error):
    with pytest.raises(error):
        connect("http://127.0.0.1:9", **settings)


def test_an_agent_in_this_process_takes_no_credentials():
    for settings in ({"credentials": "token"}, {"tls": TLSConfig()}):
        with pytest.raises(ValueError, match="|".join(settings)):
            connect("runtime://x", **settings)


def test_an_agent_in_this_process_answers():
    agent = Agent(AgentCard("parrot", "says it again", "runtime://parrot"))

    @agent.infer
    def answer(prompt):
        return prompt[::-1]

    @agent.tool
    def add(a: int, b: int) -> int:
        return a + b

    with agent.serve("runtime://tests-parrot"), connect("runtime://tests-parrot") as parrot:
        assert parrot.invoke("abc") == "cba"
        assert parrot.call_tool("add", a=1, b=2) == 3
        assert parrot.card.name == "parrot"
        assert parrot.run_task(Task.create("inert")).state is TaskState.COMPLETED
