"""Recorder and ReplayTransport: real exchanges, played again; secrets stay out."""

from __future__ import annotations

import json
import socket
import threading

import pytest

from protolink_sync import AgentCard, AgentClient, BasicAuth, connect
from protolink_sync.errors import (
    CallCancelledError,
    TransportConnectionError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import Message, Task, TaskState
from protolink_sync.server import Agent
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


@pytest.mark.parametrize("kind", ["http", "sse"])
def test_secrets_of_headers_are_not_written_when_they_come_back(tmp_path, kind):
    """Nobody has told that they are secrets; a password also as it was before it was encoded."""
    path = tmp_path / "calls.json"
    shown: list[str] = []

    def authenticate(environ):
        names = ("HTTP_AUTHORIZATION", "HTTP_X_API_KEY", "HTTP_X_TENANT", "HTTP_COOKIE")
        shown[:] = [environ[name] for name in names]
        return "ada"

    card = AgentCard("echo", "says what it was shown", "http://127.0.0.1")
    agent = Agent(card, authenticate=authenticate)
    agent.infer(lambda prompt: {"shown": [*shown, "pa55word", "ca11er"], "true": "json"})
    headers = {"X-Api-Key": "k3y5", "X-Tenant": "t3nant-of-mine", "Cookie": "session=c00kie-1; a=b"}
    with (
        agent.serve("http://127.0.0.1:0") as server,
        get_transport(
            kind,
            credentials=BasicAuth("ada", "pa55word"),
            headers={**headers, "X-Short": "true", "Accept-Language": "json"},
        ) as transport,
        Recorder(path) as recorder,
    ):
        client = AgentClient(recorder.watch(transport)).with_options(
            headers={"X-Later": "ca11er-2"}
        )
        real = client.send_infer_task("hi ca11er-2", server.url).get_output()
    text = path.read_text()

    assert real["shown"][1] == "k3y5"
    secrets = [*real["shown"][:5], real["shown"][0].split()[1], "c00kie-1", "ca11er-2"]
    assert [secret for secret in secrets if secret in text] == []
    assert '"true": "json"' in text


def test_half_an_emoji_does_not_lose_the_recording(tmp_path):
    path = tmp_path / "calls.json"

    def use(transport, url):
        client = AgentClient(transport)
        return [client.send_task(url, task(text)).text for text in ("\udc00", "?")]

    with (
        FakeAgent("half \ud83d", "whole \U0001f600", url="http://127.0.0.1:0") as agent,
        HTTPTransport() as transport,
        Recorder(path) as recorder,
    ):
        recorded = use(recorder.watch(transport), agent.url)
    played = use(ReplayTransport(path), "http://127.0.0.1:1")

    assert played == recorded == ["half \ud83d", "whole \U0001f600"]
    assert "\U0001f600" in path.read_text(encoding="utf-8")


def test_a_text_in_which_something_was_masked_is_no_other_text(tmp_path):
    path = tmp_path / "calls.json"
    with (
        FakeAgent("bought", url="http://127.0.0.1:0") as agent,
        HTTPTransport() as transport,
        Recorder(path, mask=["Ada Lovelace"]) as recorder,
    ):
        client = AgentClient(recorder.watch(transport))
        client.send_task(agent.url, task("for Ada Lovelace: buy Faust"))

    client = AgentClient(ReplayTransport(path))
    with pytest.raises(AssertionError, match="recorded is 'for \\*\\*\\*: buy Faust'"):
        client.send_task("http://127.0.0.1:1", task("for Ada Lovelace: sell Faust"))
    assert client.send_task("http://127.0.0.1:1", task("for Bob: buy Faust")).text == "bought"


def test_each_agent_is_answered_for_itself(tmp_path):
    """The same question to two agents, in another order; one of them is at another place now."""
    path = tmp_path / "calls.json"
    with (
        FakeAgent("one", url="http://127.0.0.1:0") as first,
        FakeAgent("two", url="http://127.0.0.1:0") as second,
        HTTPTransport() as transport,
        Recorder(path) as recorder,
    ):
        client = AgentClient(recorder.watch(transport))
        for agent in (first, second, first):
            client.send_task(agent.url, task("who?"))

    client = AgentClient(ReplayTransport(path))
    assert client.send_task(second.url, task("who?")).text == "two"
    assert client.send_task("http://127.0.0.1:1", task("who?")).text == "one"
    with pytest.raises(AssertionError, match="another agent by now"):
        client.send_task("http://127.0.0.1:2", task("who?"))
    assert client.send_task("http://127.0.0.1:1", task("who?")).text == "one"


def test_a_transport_is_watched_or_stood_in_for_once(tmp_path):
    """By whomever: what stands in its place is taken away once."""
    path, other = tmp_path / "calls.json", tmp_path / "other.json"
    with (
        FakeAgent("yes", url="http://127.0.0.1:0") as agent,
        HTTPTransport() as transport,
    ):
        with Recorder(path) as recorder, Recorder(other) as second:
            recorder.watch(transport)
            for one in (recorder, second):
                with pytest.raises(ValueError, match="watched already"):
                    one.watch(transport)
            AgentClient(transport).send_task(agent.url, task("?"))
        with ReplayTransport(path) as replay, ReplayTransport(path) as second:
            replay.stand_in_for(transport)
            for one in (replay, second):
                with pytest.raises(ValueError, match="stood in for already"):
                    one.stand_in_for(transport)
            with Recorder(other) as recorder, pytest.raises(ValueError, match="or stood in for"):
                recorder.watch(transport)
            assert AgentClient(transport).send_task(agent.url, task("?")).text == "yes"
        assert AgentClient(transport).send_task(agent.url, task("another")).text == "yes"

    assert len(agent.tasks) == 2
    assert not other.exists()


def test_two_forms_do_not_go_into_one_recording(tmp_path):
    path = tmp_path / "calls.json"
    with get_transport("http") as one, get_transport("websocket") as other:
        with Recorder(path) as recorder:
            recorder.watch(one)
            with pytest.raises(ValueError, match="two forms"):
                recorder.watch(other)
        with ReplayTransport(path) as replay, pytest.raises(ValueError, match="no calls of"):
            replay.stand_in_for(other)


def test_what_is_nested_without_an_end_is_recorded_as_it_came(tmp_path):
    """And the error is the library's, with a recorder or without."""
    path = tmp_path / "calls.json"
    deep = b"[" * 5000
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\nConnection: close\r\n\r\n" + deep
    told = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"

        def serve() -> None:
            wire, _ = server.accept()
            with wire:
                wire.recv(65536)
                wire.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with HTTPTransport() as transport, Recorder(path) as recorder:
            client = AgentClient(recorder.watch(transport))
            with pytest.raises(TransportProtocolError) as caught:
                client.get_agent_card(url)
            told.append(caught.value.message)
        thread.join()
    with pytest.raises(TransportProtocolError) as caught:
        AgentClient(ReplayTransport(path)).get_agent_card(url)

    assert [caught.value.message] == told


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
