"""Real agents: a2a-sdk 1.3.0 in both dialects, a2a-sdk 0.3.26, protolink's A2A server."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
import time
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

from protolink_sync import CancelToken
from protolink_sync.a2a import (
    A2AClient,
    A2AClientError,
    A2AInternalError,
    A2ATaskNotCancelableError,
    A2ATaskNotFoundError,
    A2AUnsupportedOperationError,
    Message,
    MessageSendParams,
    PushNotificationConfig,
    PushReceiver,
    SendConfiguration,
    TaskState,
    WireDialect,
)
from protolink_sync.errors import CallCancelledError, StreamInterruptedError, TransportTimeoutError
from tests.a2a.client.scenes import Running, heard, stream_workers
from tests.cases.play import eventually
from tests.transport.scenes import at_once

pytestmark = pytest.mark.peer

NEW, OLD = WireDialect.V1_0, WireDialect.V0_3

# Where each agent is, and in which dialect its card has us call it.
SIDES = {
    "sdk 1.0": ("sdk_peer", "/only-1.0", NEW),
    "sdk 0.3": ("sdk_peer", "/only-0.3", OLD),
    "sdk hybrid": ("sdk_peer", "", NEW),
    "sdk 0.3.26": ("old_sdk_peer", "", OLD),
    "protolink": ("shared_peer", "", NEW),
}
ALL = list(SIDES)
STREAMING = [side for side in SIDES if side != "protolink"]
# What is true of all forms of the one agent is tried in two of them.
SDKS = ["sdk 1.0", "sdk 0.3", "sdk 0.3.26"]


@pytest.fixture
def agent_url(request):
    """Return the address of a side's agent: ``agent_url(side)``."""

    def of(side: str) -> str:
        fixture, path, _ = SIDES[side]
        peer = request.getfixturevalue(fixture)
        return (peer("http", "--a2a") if fixture == "shared_peer" else peer).url + path

    return of


@pytest.fixture
def real(agent_url, client_of):
    """Make a client of a side's agent: ``real(side, **settings)``."""
    return lambda side, **settings: client_of(agent_url(side), **settings)


def echo(side: str, text: str) -> str:
    """Return what has the agent echo a text."""
    return f"echo {text}" if side == "protolink" else text


@pytest.mark.parametrize("side", ALL)
def test_discover_and_send(side, real):
    client = real(side)

    name = client.fetch_agent_card().name
    answer = client.send_message(echo(side, "Hello!"))

    assert name in {"peer", "old peer", "http_agent"}
    assert client.wire_dialect is SIDES[side][2]
    assert answer.status.state is TaskState.COMPLETED
    assert answer.text in {"echo: Hello!", "Hello!"}
    assert answer.id
    assert answer.context_id


@pytest.mark.parametrize("side", ALL)
def test_get_and_what_cannot_be(side, real):
    client = real(side)
    done = client.send_message(echo(side, "x"))

    assert client.get_task(done.id).text == done.text
    assert client.get_task(done.id, history_length=0).history == []
    assert len(client.get_task(done.id, history_length=1).history) <= 1
    with pytest.raises(A2ATaskNotFoundError):
        client.get_task("nobody")
    with pytest.raises(A2ATaskNotFoundError):
        client.cancel_task("nobody")
    with pytest.raises(A2ATaskNotCancelableError):
        client.cancel_task(done.id)


@pytest.mark.parametrize("side", ALL)
def test_several_turns(side, real):
    client = real(side)
    asked = client.send_message("need")
    assert asked.status.state is TaskState.INPUT_REQUIRED
    assert asked.status.message.text == "which city?"

    done = client.send_message(echo(side, "Athens"), task_id=asked.id, context_id=asked.context_id)

    assert (done.id, done.status.state) == (asked.id, TaskState.COMPLETED)
    assert done.text.endswith("Athens")
    with pytest.raises(A2AClientError):
        client.send_message("more", task_id=done.id)


@pytest.mark.parametrize("side", ALL)
def test_b51_an_agent_that_fails(side, real):
    answer = real(side).send_message("fail no luck")

    assert answer.status.state is TaskState.FAILED
    assert "no luck" in answer.text or side == "protolink"  # which says it in a data part


@pytest.mark.parametrize("side", SDKS)
def test_a_bare_message(side, real):
    client = real(side)

    sent, streamed = client.send_message("message yo"), client.stream_message("message yo").result()

    for answer in (sent, streamed):
        assert answer.from_message
        assert answer.text == "said: yo"
        assert answer.status.state is TaskState.COMPLETED


@pytest.mark.parametrize("side", STREAMING)
def test_stream_by_callback_and_by_iterator(side, real):
    client = real(side)
    seen = []

    by_callback = client.send_message_streaming("again", lambda event: seen.append(event) or True)
    with client.stream_message("once more") as stream:
        events = list(stream)

    assert by_callback.text == "echo: again"
    assert stream.task.text == "echo: once more"
    assert [event.kind for event in seen] == [event.kind for event in events]
    assert events[-1].is_final
    assert events[0].state is TaskState.SUBMITTED


@pytest.mark.parametrize("side", SDKS)
def test_b45_pieces_of_an_artifact(side, real):
    stream = real(side).stream_message("chunks")

    assert "".join(stream.text()) == "Hello, world!"
    assert stream.task.text == "Hello, world!"
    assert len(stream.task.artifacts) == 1


@pytest.mark.parametrize("side", SDKS)
def test_q02_a_stream_whose_task_asks_for_input_ends(side, real):
    """The compatibility layer says ``final: false`` and closes."""
    seen = heard(lambda: real(side).stream_message("need"))

    assert seen.error is None
    assert seen.task.status.state is TaskState.INPUT_REQUIRED


@pytest.mark.parametrize("side", STREAMING)
@pytest.mark.parametrize("word", ["raise", "raiselate"])
def test_b40_an_agent_that_raises(word, side, real):
    seen = heard(lambda: real(side).stream_message(word, idle_timeout=1))

    # The old one's stream is cut, or stays open for ever: then only time ends it.
    old = (StreamInterruptedError, TransportTimeoutError)
    assert isinstance(seen.error, old if side == "sdk 0.3.26" else A2AInternalError)
    assert len(seen.events) >= (1 if word == "raiselate" else 0)


@pytest.mark.parametrize("side", ["sdk 1.0", "sdk 0.3"])
def test_b51_an_agent_whose_code_raises_is_an_rpc_error(side, real):
    with pytest.raises(A2AInternalError, match="kaput"):
        real(side).send_message("raise")


@pytest.mark.parametrize("side", SDKS)
def test_b101_a_running_task_is_followed_and_cancelled(side, real):
    client = real(side)

    with client.stream_message("slow") as stream:
        next(stream)
        canceled = Running(lambda: client.cancel_task(stream.task.id))
        rest = list(stream)

    assert canceled.end().error is None
    assert stream.task.status.state is TaskState.CANCELED
    assert rest[-1].is_final


@pytest.mark.parametrize("side", SDKS)
def test_a_stream_cancels_its_own_task(side, real):
    with real(side).stream_message("slow") as stream:
        next(stream)
        answered = stream.cancel("enough")
        list(stream)

    assert answered.status.state is TaskState.CANCELED
    assert stream.task.status.state is TaskState.CANCELED


@pytest.mark.parametrize("side", ["sdk 1.0", "sdk 0.3"])
def test_b49_leaving_a_stream_leaves_the_task_running(side, real):
    client = real(side)
    with client.stream_message("slow") as stream:
        next(stream)
        running = stream.task.id

    assert eventually(lambda: not stream_workers())
    assert client.get_task(running).status.state in {TaskState.SUBMITTED, TaskState.WORKING}
    client.cancel_task(running)


@pytest.mark.parametrize("side", SDKS)
def test_a_task_that_was_begun_is_subscribed_to_and_waited_for(side, real):
    client = real(side)
    begin = SendConfiguration(return_immediately=True)
    followed = client.send_message("quiet 0.7", configuration=begin)
    waited = client.send_message("quiet 0.7", configuration=begin)
    assert not followed.is_terminal

    seen = heard(lambda: client.subscribe(followed.id))

    assert seen.error is None
    assert seen.task.status.state is TaskState.COMPLETED
    assert seen.task.text == "echo: quiet 0.7"
    assert client.wait(waited.id, timeout=20, poll_interval=0.05).text == "echo: quiet 0.7"


def test_b42_a_task_that_waits_for_input_is_followed_to_its_end(real):
    """Another connection sends what it waits for."""
    client = real("sdk 1.0")
    asked = client.send_message("need")

    with client.subscribe(asked.id) as stream:
        assert next(stream).state is TaskState.INPUT_REQUIRED
        client.send_message("Athens", task_id=asked.id)
        list(stream)

    assert stream.task.status.state is TaskState.COMPLETED
    assert stream.task.text.endswith("Athens")


def test_b68_a_task_that_waits_for_credentials(real):
    client = real("sdk 1.0")

    waiting = client.send_message("auth")

    assert waiting.status.state is TaskState.AUTH_REQUIRED
    done = client.send_message("me", task_id=waiting.id)
    assert done.status.state is TaskState.COMPLETED


@pytest.mark.parametrize("side", ["sdk 1.0", "protolink"])
def test_b23_tasks_are_listed_over_pages(side, real):
    client = real(side)
    made = {client.send_message(echo(side, f"n{n}"), context_id="listed").id for n in range(5)}

    listed = [task.id for task in client.list_tasks(context_id="listed", page_size=2)]

    assert sorted(listed) == sorted(made)


@pytest.mark.parametrize("side", ["sdk 1.0", "sdk 0.3", "sdk 0.3.26"])
def test_an_extended_card(side, real):
    assert real(side).get_extended_card().name.endswith("peer, extended")


def test_b16_the_tenant_arrives(sdk_peer, client_of):
    told = json.loads(client_of(sdk_peer.url + "/tenant").send_message("context").text)

    assert told["tenant"] == "acme"


@pytest.mark.parametrize("side", ["sdk 1.0", "sdk 0.3"])
def test_b65_extensions_and_metadata_arrive(side, real):
    client = real(side, extensions=("urn:one", "urn:two"))

    told = json.loads(
        client.send_message(
            MessageSendParams(Message.user("context"), metadata={"n": 1, "s": ["x"]})
        ).text
    )

    assert told["extensions"] == ["urn:one", "urn:two"]
    assert told["metadata"] == {"n": 1, "s": ["x"]}


def test_b25_protolink_offers_neither_streams_nor_push(real):
    with pytest.raises(A2AClientError):
        real("protolink").stream_message("echo x")

    with pytest.raises(A2AUnsupportedOperationError):
        real("protolink", strict=False).stream_message("echo x").result()


def test_b83_agents_without_a_card_are_probed(sdk_peer, old_sdk_peer, client_of):
    new, old = client_of(sdk_peer.url + "/rpc"), client_of(old_sdk_peer.url + "/bare")

    assert new.send_message("p").text == old.send_message("p").text == "echo: p"
    assert (new.wire_dialect, old.wire_dialect) == (NEW, OLD)
    assert old.stream_message("q").result().text == "echo: q"


def test_b88_a_stream_probes_a_real_old_agent(old_sdk_peer, client_of):
    client = client_of(old_sdk_peer.url + "/bare")

    assert client.stream_message("q").result().text == "echo: q"
    assert client.wire_dialect is OLD


@pytest.mark.parametrize("side", ["sdk 1.0", "sdk 0.3.26"])
def test_b103_a_token_ends_a_blocking_send_at_once(side, real):
    client, token = real(side), CancelToken()
    client.fetch_agent_card()
    running = Running(lambda: client.send_message("slow", cancel=token))
    assert eventually(lambda: client.transport.metrics.requests_started == 2)

    cancelled = time.monotonic()
    token.cancel()

    assert isinstance(running.end(5).error, CallCancelledError)
    assert running.ended_at - cancelled < at_once()
    assert client.send_message("x").text == "echo: x"


def test_b109_six_silent_seconds_are_no_time_out(real):
    """Two real clients give up after five. All agents are silent at the same time here."""
    clients = {side: real(side) for side in ("sdk 1.0", "sdk 0.3", "sdk 0.3.26", "protolink")}

    def ask(side: str, client: A2AClient) -> Any:
        word = "wait 6" if side == "protolink" else "quiet 6"
        return client.send_message(word).status.state

    def follow(client: A2AClient) -> Any:
        return client.stream_message("quiet 6").result().status.state

    asked = [Running(lambda s=side, c=one: ask(s, c)) for side, one in clients.items()]
    asked += [Running(lambda c=clients[side]: follow(c)) for side in SDKS]

    assert [one.end(30).value for one in asked] == [TaskState.COMPLETED] * len(asked)
    assert [one.error for one in asked] == [None] * len(asked)


# ---- push --------------------------------------------------------------------------------------


class _Quiet(WSGIRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def reports():
    """A receiver under a real WSGI server; returns its address, and a queue of the events."""
    events: queue.SimpleQueue[Any] = queue.SimpleQueue()
    receiver = PushReceiver(events.put, token="tok-7")
    server = make_server("127.0.0.1", 0, receiver, handler_class=_Quiet)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook", events
    server.shutdown()
    server.server_close()
    thread.join()


def collected(events, task_id):
    """Return the reports of a task until the one that says it is over."""
    seen = []
    with contextlib.suppress(queue.Empty):
        while True:
            event = events.get(timeout=10)
            if event.task_id == task_id:
                seen.append(event)
                if event.state is not None and event.state.is_terminal:
                    return seen
    raise AssertionError(f"the end was not reported, only {[event.kind for event in seen]}")


@pytest.mark.parametrize("side", SDKS)
def test_b74_events_are_delivered_to_the_receiver(side, real, reports):
    url, events = reports
    configuration = SendConfiguration(
        return_immediately=True,
        push_config=PushNotificationConfig(url=url, token="tok-7", id="p1"),
    )

    begun = real(side).send_message("quiet 0.2", configuration=configuration)

    assert collected(events, begun.id)[-1].state is TaskState.COMPLETED


@pytest.mark.parametrize("side", SDKS)
def test_b73_configs_are_kept_by_the_agent(side, real):
    client = real(side)
    task = client.send_message("need")
    url = "http://127.0.0.1:9/hook"
    config = PushNotificationConfig(
        url=url, id="p1", token="tok", schemes=["Bearer"], credentials="cred"
    )

    made = client.create_push_config(task.id, config)
    unnamed = client.create_push_config(task.id, PushNotificationConfig(url=url + "2"))

    assert (made.task_id, made.id, made.url, made.token) == (task.id, "p1", url, "tok")
    assert unnamed.id
    assert client.get_push_config(task.id, "p1").url == url
    assert {one.url for one in client.list_push_configs(task.id)} == {url, url + "2"}
    assert client.delete_push_config(task.id, "p1") is None
    assert {one.url for one in client.list_push_configs(task.id)} == {url + "2"}
    if side != "sdk 0.3.26":  # which gives any other one then
        with pytest.raises(A2AClientError):
            client.get_push_config(task.id, "p1")
