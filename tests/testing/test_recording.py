"""Recorder and ReplayTransport: real exchanges, played again; secrets stay out."""

from __future__ import annotations

import json

import pytest

from protolink_sync import AgentClient, connect
from protolink_sync.errors import (
    CallCancelledError,
    TransportConnectionError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import Message, Task, TaskState
from protolink_sync.testing import FakeAgent, Recorder, ReplayTransport
from protolink_sync.transport import HTTPTransport, get_transport

KINDS = ["http", "sse", "websocket", "grpc"]


def task(text: str) -> Task:
    return Task.create(Message.user(text))


def use(client: AgentClient, url: str) -> list:
    """Use an agent in several ways; the same calls are recorded and played."""
    sent = task("echo hello")
    done = client.send_task(url, sent)
    assert done.id == sent.id
    assert done.messages[0].id == sent.messages[0].id
    failed = client.send_task(url, task("fail for a reason"))
    with pytest.raises(TransportRemoteError):
        client.send_task(url, task("raise boom"))
    return [done.text, failed.state, client.get_agent_card(url).name]


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_recorded_is_played(shared_peer, tmp_path, kind):
    path, url = tmp_path / "deep" / "calls.json", shared_peer(kind).url
    with get_transport(kind) as transport, Recorder(path) as recorder:
        recorded = use(AgentClient(recorder.watch(transport)), url)

    with ReplayTransport(path) as replay:
        played = use(AgentClient(replay), url)

    assert played == recorded == ["hello", TaskState.FAILED, f"{kind}_agent"]
    assert replay.unused == 0


@pytest.mark.parametrize("kind", ["sse", "websocket", "grpc"])
def test_streams_too(shared_peer, tmp_path, kind):
    path, url = tmp_path / "calls.json", shared_peer(kind).url

    def read(client):
        events = list(client.send_task_streaming(url, task("many 3")))
        result = client.send_task_streaming(url, task("echo hi")).result()
        with pytest.raises(TransportRemoteError, match="boom"):
            list(client.send_task_streaming(url, task("raise boom")))
        return [event.get("message") for event in events], result.text

    with get_transport(kind) as transport, Recorder(path) as recorder:
        recorded = read(AgentClient(recorder.watch(transport)))

    with ReplayTransport(path) as replay:
        assert read(AgentClient(replay)) == recorded
    assert recorded[1] == "hi"


def test_errors_of_the_connection_are_played(tmp_path):
    path = tmp_path / "calls.json"
    with HTTPTransport() as transport, Recorder(path) as recorder:
        client = AgentClient(recorder.watch(transport))
        with pytest.raises(TransportConnectionError):
            client.send_task("http://127.0.0.1:1", task("hi"))

    with pytest.raises(TransportConnectionError):
        AgentClient(ReplayTransport(path)).send_task("http://127.0.0.1:1", task("hi"))


@pytest.mark.parametrize("path_of", ["http", "sse"])
def test_the_transport_is_as_before_when_the_recorder_is_closed(tmp_path, agent_peer, path_of):
    path = tmp_path / "calls.json"
    with get_transport(path_of) as transport:
        with Recorder(path) as recorder:
            client = AgentClient(recorder.watch(transport))
        client.send_task(agent_peer.url, task("echo hi"))
        recorder.close()  # twice is silent
        assert {"_exchange", "_open_stream"}.isdisjoint(vars(transport))

    assert json.loads(path.read_text())["exchanges"] == []


def test_another_question_is_not_answered(tmp_path, agent_peer):
    """A wrong answer is worse than none."""
    path = tmp_path / "calls.json"
    with HTTPTransport() as transport, Recorder(path) as recorder:
        AgentClient(recorder.watch(transport)).send_task(agent_peer.url, task("echo one"))

    with ReplayTransport(path) as replay:
        client = AgentClient(replay)
        with pytest.raises(AssertionError, match=r"content is 'echo two', recorded is 'echo one'"):
            client.send_task(agent_peer.url, task("echo two"))
        with pytest.raises(AssertionError, match="no such call is left"):
            client.get_agent_card(agent_peer.url)
        assert client.send_task(agent_peer.url, task("echo one")).text == "one"
        with pytest.raises(AssertionError, match="no such call is left"):
            client.send_task(agent_peer.url, task("echo one"))


def test_order_does_not_matter_where_the_content_tells(tmp_path, agent_peer):
    path = tmp_path / "calls.json"
    with HTTPTransport() as transport, Recorder(path) as recorder:
        client = AgentClient(recorder.watch(transport))
        for word in ("one", "two"):
            client.send_task(agent_peer.url, task(f"echo {word}"))

    client = AgentClient(ReplayTransport(path))
    played = [client.send_task(agent_peer.url, task(f"echo {w}")).text for w in ("two", "one")]

    assert played == ["two", "one"]


def test_ids_are_renewed_and_nothing_that_looks_like_one(tmp_path):
    path = tmp_path / "calls.json"
    first, second = Task("one", messages=[Message.user("?")]), Task("two")
    second.messages = [Message.user("?")]
    with (
        FakeAgent({"said": "one", "of_id": "one"}, url="http://127.0.0.1:0") as agent,
        HTTPTransport() as transport,
        Recorder(path) as recorder,
    ):
        AgentClient(recorder.watch(transport)).send_task(agent.url, first)

    played = AgentClient(ReplayTransport(path)).send_task("http://127.0.0.1:1", second)

    assert (played.id, played.messages[0].id) == ("two", second.messages[0].id)
    assert played.get_output() == {"said": "one", "of_id": "two"}


def test_secrets_are_not_written(tmp_path):
    """Shown as credentials, under a telling name, or named by the user; sent or answered."""

    def tell(task):
        return {
            "echo": "you are k-123456",
            "access_token": "t-98765",
            "nested": [{"Password": "p-55555"}],
            "customer": "Ada Lovelace",
        }

    path = tmp_path / "calls.json"
    with FakeAgent(tell, url="http://127.0.0.1:0") as agent:
        headers = {"Cookie": "c-44444"}
        with (
            HTTPTransport(credentials="k-123456", headers=headers) as transport,
            Recorder(path, mask=["Ada Lovelace"]) as recorder,
        ):
            peer = AgentClient(recorder.watch(transport)).peer(agent.url)
            real = peer.invoke("for Ada Lovelace", context={"metadata": {"api_key": "a-77777"}})
    text = path.read_text()

    assert real["access_token"] == "t-98765"
    for secret in ("k-123456", "t-98765", "p-55555", "c-44444", "Ada Lovelace", "a-77777"):
        assert secret not in text
    peer = AgentClient(ReplayTransport(path)).peer("http://127.0.0.1:1")
    played = peer.invoke("for Ada Lovelace", context={"metadata": {"api_key": "another"}})
    assert played["access_token"] == played["nested"][0]["Password"] == "***"
    assert played["echo"] == "you are ***"


def test_a_stream_that_was_left_goes_no_further(shared_peer, tmp_path):
    path, url = tmp_path / "calls.json", shared_peer("sse").url
    with connect(url) as real, Recorder(path) as recorder:
        recorder.watch(real.client.transport)
        stream = real.client.send_task_streaming(url, task("slow 50 0.05"))
        next(stream)
        stream.close()

    client = AgentClient(ReplayTransport(path))
    with pytest.raises((TransportTimeoutError, CallCancelledError, TransportConnectionError)):
        list(client.send_task_streaming(url, task("slow 50 0.05"), idle_timeout=0.2))


def test_what_is_no_recording_is_refused(tmp_path):
    path = tmp_path / "calls.json"
    path.write_text("[]")

    with pytest.raises(ValueError, match="is no recording"):
        ReplayTransport(path)
    with pytest.raises(ValueError, match="4 or more"):
        Recorder(path, mask=["abc"])
    with get_transport("runtime") as transport, pytest.raises(ValueError, match="this process"):
        Recorder(path).watch(transport)
