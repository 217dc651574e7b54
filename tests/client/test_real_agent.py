"""AgentClient and AgentPeer against a real protolink 0.8.3 agent."""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from protolink_sync import AgentPeer, CancelToken, connect
from protolink_sync.client import AgentClient
from protolink_sync.errors import (
    AuthenticationError,
    CallCancelledError,
    NoResponseMessageError,
    TaskExecutionError,
    TransportConnectionError,
    TransportError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import Message, Part, Task, TaskState
from protolink_sync.transport import HTTPTransport


@pytest.fixture
def client():
    with AgentClient("http", timeout=30) as client:
        yield client


def task(text: str) -> Task:
    return Task.create(Message.user(text))


def test_a_task_comes_back_completed(client, agent_peer):
    sent = task("echo hello")

    done = client.send_task(agent_peer.url, sent)

    assert (done.id, done.state, done.text) == (sent.id, TaskState.COMPLETED, "hello")
    assert [m.role for m in done.messages] == ["user", "agent"]
    assert done.messages[0] == sent.messages[0]


def test_what_we_send_arrives_unchanged(client, agent_peer):
    sent = Task.create(Message(role="user", parts=[Part.json({"ä": [1, 2.5, None]})]))
    sent.add_message(Message.user("back"))

    done = client.send_task(agent_peer.url, sent)

    arrived = done.messages[-1].parts[0].content
    assert arrived["messages"] == sent.to_dict()["messages"]
    assert arrived["id"] == sent.id


def test_a_part_of_every_type_is_read(client, agent_peer):
    parts = client.send_task(agent_peer.url, task("allparts")).messages[-1].parts

    assert [p.type for p in parts] == [
        "text",
        "json",
        "tool_call",
        "tool_output",
        "infer",
        "infer_output",
        "route",
        "decision",
        "error",
        "status",
    ]


@pytest.mark.parametrize(
    ("text", "state"),
    [("fail no reason", "failed"), ("need", "input-required"), ("artifacts", "completed")],
)
def test_a_task_in_another_state_is_an_answer(client, agent_peer, text, state):
    assert client.send_task(agent_peer.url, task(text)).state.value == state


def test_the_same_task_sent_again_is_executed_once(client, agent_peer):
    sent = task("count")

    first = client.send_task(agent_peer.url, sent)
    second = client.send_task(agent_peer.url, sent)

    assert first.text == second.text == "1 executions, 1 messages"


def test_a_continued_task_is_executed_again(client, agent_peer):
    """protolink's own client gets the old answer here."""
    first = client.send_task(agent_peer.url, task("need"))
    first.add_message(Message.user("echo Athens"))

    done = client.send_task(agent_peer.url, first)

    assert (done.id, done.text) == (first.id, "Athens")


def test_a_question_is_answered_by_the_model(client, agent_peer):
    done = client.send_infer_task("hello?", agent_peer.url)

    assert done.get_last_part_content() == done.get_output() == "the mock model says hi"


def test_a_message_is_answered_by_a_message(client, agent_peer):
    assert client.send_message(agent_peer.url, Message.user("echo hi")).parts[0].content == "hi"


def test_an_agent_that_answers_with_artifacts_has_no_message(client, agent_peer):
    with pytest.raises(NoResponseMessageError, match="artifact") as caught:
        client.send_message(agent_peer.url, Message.user("artifacts"))

    assert len(caught.value.task.artifacts) == 2


def test_ones_own_message_is_no_answer(client, agent_peer):
    with pytest.raises(NoResponseMessageError):
        client.send_message(agent_peer.url, Message.agent("just saying"))


def test_a_handler_that_raises_is_a_remote_error(client, agent_peer):
    with pytest.raises(TransportRemoteError, match="its log says why") as caught:
        client.send_task(agent_peer.url, task("raise boom"))

    assert (caught.value.status_code, caught.value.retryable) == (500, False)


def test_a_running_task_is_cancelled_from_another_thread(client, agent_peer):
    sent = task("wait 30")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(client.send_task, agent_peer.url, sent)

        canceled = cancel_when_running(client, agent_peer.url, sent.id)
        result = running.result(30)

    assert canceled.state is result.state is TaskState.CANCELED
    assert result.metadata["cancel_reason"] == "Stopped by the user"


def cancel_when_running(client: AgentClient, url: str, task_id: str) -> Task:
    """Cancel a task as soon as the agent has it: before that it is unknown there."""
    for _ in range(600):
        try:
            return client.cancel_task(
                url, task_id, reason="Stopped by the user", metadata={"source": "tests"}
            )
        except TransportError:  # unknown yet; or the connection that the agent closed after that
            threading.Event().wait(0.02)
    raise AssertionError("the task never ran")


def test_a_cancel_of_an_unknown_task_is_a_remote_error(client, agent_peer):
    with pytest.raises(TransportRemoteError, match="cancel_task to"):
        client.cancel_task(agent_peer.url, "nobody")


def test_history_and_state(client, agent_peer):
    url = agent_peer.url
    client.transport.send(
        AgentClient.TASK_REQUEST, url, Task.create_infer(prompt="remember", session_id="S-1")
    )

    described = client.describe_state(url, session_id="S-1", include_data=True)
    assert described.operation == "describe"
    assert [store.name for store in described.stores] == ["conversation"]
    assert described.stores[0].exists

    compacted = client.compact_state(url, session_id="S-1", strategy="recent", max_messages=2)
    assert (compacted.operation, compacted.compacted) == ("compact", ("conversation",))

    history = client.compact_history(url, strategy="recent", max_messages=2)
    assert history.strategy == "recent"
    assert history.before_messages >= history.after_messages

    reset = client.reset_state(url, session_id="S-1")
    assert (reset.operation, reset.cleared) == ("reset", ("conversation",))
    assert not client.describe_state(url, session_id="S-1").stores[0].exists


def test_the_card(client, agent_peer):
    card = client.get_agent_card(agent_peer.url)

    assert (card.name, card.url) == ("http_agent", agent_peer.url)
    assert [skill.id for skill in card.skills][:1] == ["add"]
    assert card.capabilities.has_llm


def test_a_peer(agent_peer):
    with connect(agent_peer.url) as agent:
        assert agent.invoke("hello?") == "the mock model says hi"
        assert agent.invoke(Message.user("echo hi")) == "hi"
        assert agent.call_tool("add", a=2, b=3) == 5
        assert agent.card.name == "http_agent"
        assert agent.run_task(task("need")).state is TaskState.INPUT_REQUIRED
        with pytest.raises(TaskExecutionError, match="on purpose"):
            agent.invoke(Message.user("fail on purpose"))
        with pytest.raises(TaskExecutionError):
            agent.call_tool("nope")
        with pytest.raises(TaskExecutionError):
            agent.call_tool("add", a="x")


def test_calls_one_after_the_other_use_one_connection(agent_peer, counting_proxy):
    proxy = counting_proxy(agent_peer.url)
    with AgentClient("http", timeout=30) as client:
        peer = AgentPeer(client, proxy.url)
        for number in range(50):
            assert client.send_task(proxy.url, task(f"echo {number}")).text == str(number)
        peer.invoke("hello?")
        client.get_agent_card(proxy.url)
        client.describe_state(proxy.url)

        assert proxy.total == 1


def test_the_calls_work_inside_a_running_event_loop(agent_peer):
    """protolink's blocking facade raises a RuntimeError there."""

    async def cell():
        with AgentClient("http") as client:
            return client.sync.send_infer_task("hello?", agent_peer.url).get_output()

    assert asyncio.run(cell()) == "the mock model says hi"


def test_a_budget_ends_the_waiting_and_not_the_task(client, agent_peer):
    sent = task("wait 30")

    with pytest.raises(TransportTimeoutError, match="may be running") as caught:
        client.send_task(agent_peer.url, sent, timeout=0.4)

    assert 0.4 <= caught.value.elapsed < 5
    assert caught.value.phase == "wait"
    assert cancel_when_running(client, agent_peer.url, sent.id).state is TaskState.CANCELED


def test_a_token_ends_the_waiting(client, agent_peer):
    token, sent = CancelToken(), task("wait 30")
    timer = threading.Timer(0.3, token.cancel, ["enough"])
    timer.start()

    with pytest.raises(CallCancelledError, match="enough"):
        client.send_task(agent_peer.url, sent, cancel=token)

    timer.join()
    assert client.send_task(agent_peer.url, task("echo next")).text == "next"
    cancel_when_running(client, agent_peer.url, sent.id)


def test_nobody_listening_is_a_connection_error_with_the_systems_number(client):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"

        with pytest.raises(TransportConnectionError, match="Does an agent listen there") as caught:
            client.get_agent_card(url)

    assert isinstance(caught.value, ConnectionError)
    assert caught.value.errno == errno.ECONNREFUSED
    assert caught.value.retryable


def test_a_guarded_agent_says_what_it_wants(shared_peer):
    peer = shared_peer("http", "--api-key", "k-1")

    with HTTPTransport() as transport, pytest.raises(AuthenticationError, match="credentials="):
        AgentClient(transport).get_agent_card(peer.url)


def test_threads_share_a_client_and_get_their_own_answers(client, agent_peer):
    def call(number: int) -> str:
        return client.send_task(agent_peer.url, task(f"echo {number}")).text

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(call, range(200)))

    assert answers == [str(number) for number in range(200)]
