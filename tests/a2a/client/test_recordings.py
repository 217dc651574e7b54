"""Recorder and ReplayTransport for agents that speak A2A: real ones, and those with odd answers."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from protolink_sync import AgentClient, Message, Task
from protolink_sync.a2a import A2AClient, A2ATaskNotFoundError, SchemeCredentials, WireDialect
from protolink_sync.a2a import Message as A2AMessage
from protolink_sync.a2a import Part as A2APart
from protolink_sync.errors import TransportRemoteError
from protolink_sync.testing import Recorder, ReplayTransport
from protolink_sync.transport import HTTPTransport
from tests.a2a.scripted import card, done, error, message, reply, stream

SIDES = ["/only-1.0", "/only-0.3", ""]


def answers(client: A2AClient) -> list:
    """Use an agent in many ways; the same calls are recorded and played."""
    done = client.send_message("hello")
    asked = client.send_message("need")
    went_on = client.send_message("Athens", task_id=asked.id, context_id=asked.context_id)
    with pytest.raises(A2ATaskNotFoundError) as missing:
        client.get_task("nobody")
    with client.stream_message("chunks") as stream:
        events = [event.to_dict() for event in stream]
    return [
        client.fetch_agent_card().name,
        (done.id, done.text),
        client.get_task(done.id).text,
        (asked.status.state, went_on.id, went_on.text),
        missing.value.code,
        [[*event] for event in events],
        stream.result().text,
        client.stream_message("message yo").result().text,
        client.wire_dialect,
    ]


@pytest.mark.peer
@pytest.mark.parametrize("side", SIDES)
def test_what_a_real_agent_said_is_played_to_a_client(sdk_peer, client_of, tmp_path, side):
    path, url = tmp_path / "calls.json", sdk_peer.url + side
    with Recorder(path) as recorder:
        client = client_of(url)
        recorder.watch(client.transport)
        recorded = answers(client)

    # Where nobody listens.
    client = client_of(f"http://127.0.0.1:1{side}")
    with ReplayTransport(path) as replay:
        replay.stand_in_for(client.transport)
        played = answers(client)
        assert replay.unused == 0

    assert played == recorded
    assert recorded[1][1] == "echo: hello"


@pytest.mark.peer
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("elsewhere", [False, True])
def test_and_to_a_client_of_both_protocols(sdk_peer, tmp_path, side, elsewhere):
    """Also where the address, of which the card speaks, is another one by now."""
    path, url = tmp_path / "calls.json", sdk_peer.url + side

    def use(client: AgentClient, url: str) -> list:
        done = client.send_task(url, Task.create("hello"))
        asked = client.send_task(url, Task.create("need"))
        asked.add_message(Message.user("Athens"))
        went_on = client.send_task(url, asked, protocol="a2a")
        card = client.get_a2a_agent_card(url)
        return [done.text, asked.state, went_on.text, went_on.state, card["name"]]

    with HTTPTransport() as transport, Recorder(path) as recorder:
        recorded = use(AgentClient(recorder.watch(transport), a2a=True), url)
    with ReplayTransport(path) as replay:
        now = f"http://127.0.0.1:1{side}" if elsewhere else url
        played = use(AgentClient(replay, a2a=True), now)
        assert replay.unused == 0

    assert played == recorded
    assert recorded[0] == "echo: hello"


@pytest.mark.peer
def test_another_question_or_task_is_not_answered(sdk_peer, client_of, tmp_path):
    """A wrong answer is worse than none."""
    path = tmp_path / "calls.json"
    with Recorder(path) as recorder:
        client = client_of(sdk_peer.url)
        recorder.watch(client.transport)
        first, second = client.send_message("one"), client.send_message("two")
        assert client.get_task(first.id).text == "echo: one"
        assert client.get_task(second.id).text == "echo: two"

    client = client_of(sdk_peer.url)
    with ReplayTransport(path) as replay:
        replay.stand_in_for(client.transport)
        with pytest.raises(AssertionError, match=r"'three', recorded is 'one'"):
            client.send_message("three")
        assert client.get_task(second.id).text == "echo: two"
        assert client.get_task(first.id).text == "echo: one"
        assert [client.send_message(text).text for text in ("two", "one")] == [
            "echo: two",
            "echo: one",
        ]


@pytest.mark.peer
def test_each_agent_is_answered_for_itself(sdk_peer, tmp_path):
    """Whichever is asked first: their cards, and the same question."""
    path, urls = tmp_path / "calls.json", [sdk_peer.url + side for side in SIDES[:2]]

    def use(client: AgentClient, url: str) -> str:
        done = client.send_task(url, Task.create("hello"), protocol="a2a")
        return done.metadata["a2a_remote_agent_url"] + done.metadata["a2a_remote_task_id"]

    with HTTPTransport() as transport, Recorder(path) as recorder:
        client = AgentClient(recorder.watch(transport), a2a=True)
        recorded = [use(client, url) for url in urls]
    with ReplayTransport(path) as replay:
        client = AgentClient(replay, a2a=True)
        played = [use(client, url) for url in reversed(urls)]
    with ReplayTransport(path) as replay:
        client = AgentClient(replay, a2a=True)
        moved = [use(client, f"http://127.0.0.1:1{side}") for side in SIDES[1::-1]]

    assert played == recorded[::-1]
    assert moved == [answer.replace(sdk_peer.url, "http://127.0.0.1:1") for answer in played]


def test_a_card_that_was_redirected_and_asked_for_again(agent_of, client_of, tmp_path):
    path = tmp_path / "calls.json"
    agent = agent_of(
        done("hi"),
        card=[
            reply("", status=307, headers={"Location": "{{base}}/my/card"}),
            reply(card(), headers={"Content-Type": "application/json", "ETag": '"tag"'}),
            reply("", status=304, headers={"ETag": '"tag"'}),
        ],
    )

    def use(client: A2AClient) -> list:
        found = [client.fetch_agent_card(), client.fetch_agent_card(force=True)]
        return [*(card.name for card in found), client.send_message("hello").text]

    with Recorder(path) as recorder:
        client = client_of(agent)
        recorder.watch(client.transport)
        recorded = use(client)
    for url in (agent.base, "http://127.0.0.1:1"):
        client = client_of(url)
        with ReplayTransport(path) as replay:
            replay.stand_in_for(client.transport)
            assert use(client) == recorded
            assert replay.unused == 0


def test_messages_that_are_named_by_the_caller_are_told_apart(agent_of, client_of, tmp_path):
    """What was answered to one is no answer to another with the same words."""
    path = tmp_path / "calls.json"
    agent = agent_of(done("for A"), done("for B"))

    def ask(client: A2AClient, name: str) -> str:
        return client.send_message(A2AMessage([A2APart("?")], message_id=name)).text

    with Recorder(path) as recorder:
        client = client_of(agent)
        recorder.watch(client.transport)
        assert [ask(client, name) for name in "AB"] == ["for A", "for B"]
    client = client_of(agent)
    with ReplayTransport(path) as replay:
        replay.stand_in_for(client.transport)
        assert [ask(client, name) for name in "BA"] == ["for B", "for A"]


def test_what_comes_instead_of_a_stream_is_played(agent_of, client_of, tmp_path):
    """Also the errors by which an agent without a card says that it speaks the other dialect."""
    path = tmp_path / "calls.json"
    agent = agent_of(
        error(-32601),
        error(-32001, "not here", data=["why"]),
        reply("busy", status=503, headers={"Retry-After": "7"}),
        error(-32602, status=400),
        error(-32600, status=400),
        stream(message("found", old=True)),
        card=None,
    )

    def use(client: A2AClient) -> list:
        with pytest.raises(A2ATaskNotFoundError) as missing:
            client.stream_message("hello").result()
        with pytest.raises(TransportRemoteError) as busy:
            client.stream_message("hello").result()
        with pytest.raises(TransportRemoteError, match="-32602"):
            client.stream_message("hello").result()
        told = missing.value.data, missing.value.error_message, busy.value.retry_after
        answer = client.stream_message("hello").result().text
        return [*told, busy.value.status_code, answer, client.wire_dialect]

    with Recorder(path) as recorder:
        client = client_of(agent)
        recorder.watch(client.transport)
        recorded = use(client)
    client = client_of(agent)
    with ReplayTransport(path) as replay:
        replay.stand_in_for(client.transport)
        played = use(client)
        assert replay.unused == 0

    assert played == recorded == [["why"], "not here", 7.0, 503, "found", WireDialect.V0_3]
    assert len(agent.calls) == 6


def test_an_answer_in_the_form_of_an_event_is_played(agent_of, client_of, tmp_path):
    path = tmp_path / "calls.json"
    event = f"event: x\ndata: {done('framed')['body']}\n\n"
    agent = agent_of(reply(event, headers={"Content-Type": "text/event-stream; charset=utf-8"}))

    with Recorder(path) as recorder:
        client = client_of(agent)
        recorder.watch(client.transport)
        assert client.send_message("hello").text == "framed"
    client = client_of(agent)
    with ReplayTransport(path) as replay:
        replay.stand_in_for(client.transport)
        assert client.send_message("hello").text == "framed"


def test_no_secret_of_a_call_is_written(agent_of, client_of, tmp_path):
    """Wherever it was shown (header, query, cookie, Authorization), and wherever it comes back."""
    path = tmp_path / "calls.json"
    secrets = ["q s3cret/1", "h-s3cret-22", "c-s3cret-33", "custom-s3cret-44", "s3t-s3cret-55"]
    echo = " ".join([*secrets, quote(secrets[0], safe="")])
    schemes = {
        name: {"apiKeySecurityScheme": {"name": where, "location": location}}
        for name, where, location in (
            ("q", "k", "query"),
            ("h", "X-Key", "header"),
            ("c", "session", "cookie"),
        )
    }
    wanted = [{"schemes": {name: {"list": []} for name in schemes}}]
    agent = agent_of(
        done(f"you sent {echo}"),
        card=card(securitySchemes=schemes, securityRequirements=wanted),
    )

    def made() -> A2AClient:
        credentials = SchemeCredentials(dict(zip(schemes, secrets, strict=False)))
        headers = {"X-Tenant-Code": secrets[3]}
        client = client_of(agent, credentials=credentials, headers=headers)
        client.set_authorization_header(f"Bearer {secrets[4]}")
        return client

    with Recorder(path) as recorder:
        client = made()
        recorder.watch(client.transport)
        assert echo in client.send_message("hello").text
    text = path.read_text()
    with ReplayTransport(path) as replay:
        client = made()
        replay.stand_in_for(client.transport)
        played = client.send_message("hello").text

    assert agent.calls[0].request.target == f"/rpc?k={quote(secrets[0], safe='')}"
    assert [secret for secret in [*secrets, quote(secrets[0], safe="")] if secret in text] == []
    assert played == "you sent " + " ".join(["***"] * 6)


def test_the_transport_is_as_before_when_the_replay_is_closed(agent_of, client_of, tmp_path):
    path = tmp_path / "calls.json"
    agent = agent_of(done("real"))
    client = client_of(agent)
    with Recorder(path) as recorder:
        recorder.watch(client.transport)

    replay = ReplayTransport(path)
    replay.stand_in_for(client.transport)
    with pytest.raises(AssertionError, match="no such call"):
        client.send_message("hello")
    replay.close()
    replay.close()  # twice is silent

    assert client.send_message("hello").text == "real"
