"""``AgentClient(a2a=True)`` against real agents: a2a-sdk in both dialects, protolink with A2A."""

from __future__ import annotations

import pytest

from protolink_sync import AgentClient, connect
from protolink_sync.a2a import A2ARpcError, A2ATaskNotCancelableError
from protolink_sync.errors import NoResponseMessageError
from protolink_sync.models import Message, Task, TaskState
from tests.a2a.client.scenes import in_threads

pytestmark = pytest.mark.peer


@pytest.fixture
def sdk(sdk_peer):
    """Address of a2a-sdk 1.3.0."""
    return sdk_peer.url


@pytest.fixture
def old_sdk(old_sdk_peer):
    """Address of a2a-sdk 0.3.26."""
    return old_sdk_peer.url


@pytest.fixture
def client():
    with AgentClient("http", timeout=30, a2a=True) as client:
        yield client


@pytest.fixture(params=["/only-1.0", "/only-0.3", ""])
def url(request, sdk):
    """An agent of a2a-sdk: 1.0, 0.3, and both in one card."""
    return sdk + request.param


def test_a_task_is_answered(url, client):
    ours = Task.create_infer(prompt="What's the weather in Athens?")

    came = client.send_task(url, ours)

    assert (came.id, came.state) == (ours.id, TaskState.COMPLETED)
    assert came.get_output() == "echo: What's the weather in Athens?"
    assert came.metadata["a2a_remote_agent_url"] == url


def test_a_task_goes_on(url, client):
    asked = client.send_task(url, Task.create("need"))
    assert asked.state is TaskState.INPUT_REQUIRED

    done = client.send_task(url, asked.add_message(Message.user("Athens")))

    assert (done.id, done.state) == (asked.id, TaskState.COMPLETED)
    assert done.metadata["a2a_remote_task_id"] == asked.metadata["a2a_remote_task_id"]
    assert "Athens" in str(done.get_output())


def test_a_waiting_task_is_cancelled(url, client):
    asked = client.send_task(url, Task.create("need"))

    gone = client.cancel_task(url, asked.id, reason="never mind")

    assert (gone.id, gone.state) == (asked.id, TaskState.CANCELED)
    with pytest.raises(A2ATaskNotCancelableError):
        client.cancel_task(url, asked.id)


@pytest.mark.parametrize(("word", "theirs"), [("fail", "FAILED"), ("reject", "REJECTED")])
def test_a_failed_task_comes_back_as_failed(word, theirs, sdk, client):
    came = client.send_task(sdk + "/only-1.0", Task.create(word))

    assert came.state is TaskState.FAILED
    assert came.metadata["a2a_remote_state"] == f"TASK_STATE_{theirs}"


def test_a_bare_message_completes_the_task(url, client):
    came = client.send_task(url, Task.create("message"))

    assert came.state is TaskState.COMPLETED
    assert client.send_message(url, Message.user("message")).text == came.text != ""


def test_an_agent_that_breaks_is_an_error_or_a_failed_task(url, client):
    try:
        came = client.send_task(url, Task.create("raise"))
    except A2ARpcError:
        return
    assert came.state is TaskState.FAILED


def test_every_thread_gets_its_own_answer(sdk, client):
    def work(number):
        return client.send_task(sdk + "/only-1.0", Task.create(f"n{number}")).get_output()

    assert in_threads(16, work) == [f"echo: n{number}" for number in range(16)]


def test_an_agent_of_a2a_0_3_26_answers_at_both_addresses(old_sdk, client):
    """It gives its card where ProtoLink's would be, too."""
    came = client.send_task(old_sdk, Task.create("hello"))

    assert (came.state, came.get_output()) == (TaskState.COMPLETED, "echo: hello")
    card = client.get_a2a_agent_card(old_sdk)
    assert card["protocolVersion"].startswith("0.3")


def test_a_protolink_agent_is_called_natively_unless_a2a_is_asked_for(shared_peer, client):
    url = shared_peer("http", "--a2a").url

    native = client.send_task(url, Task.create("echo hi"))
    by_a2a = client.send_task(url, Task.create("echo hi"), protocol="a2a")

    assert (native.text, by_a2a.text) == ("hi", "hi")
    assert "a2a_remote_task_id" not in native.metadata
    assert by_a2a.metadata["a2a_remote_state"] == "TASK_STATE_COMPLETED"
    assert client.send_message(url, Message.user("echo hi"), protocol="a2a").text == "hi"
    assert client.get_a2a_agent_card(url)["supportedInterfaces"]


def test_a_protolink_agents_artifacts_come_over_a2a(shared_peer, client):
    url = shared_peer("http", "--a2a").url
    sent = Task.create("artifacts")

    native = client.send_task(url, sent)
    by_a2a = client.send_task(url, sent, protocol="a2a")

    assert [a.id for a in by_a2a.artifacts] != []
    assert len(by_a2a.artifacts) == len(native.artifacts)


def test_connect_calls_an_a2a_agent(sdk):
    with connect(sdk + "/only-1.0", a2a=True, timeout=30) as agent:
        assert agent.invoke("hello") == "echo: hello"


def test_an_answer_in_artifacts_is_no_message_of_the_agent(old_sdk, client):
    with pytest.raises(NoResponseMessageError) as caught:
        client.send_message(old_sdk, Message.user("chunks"))

    assert caught.value.task.artifacts
