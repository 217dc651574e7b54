"""Scripts that do not fit the calls, and streams that are held, cut or refused."""

from __future__ import annotations

import copy
import json

import pytest

from protolink_sync import AgentClient, CancelToken
from protolink_sync.errors import (
    CallCancelledError,
    StreamInterruptedError,
    TransportConnectionError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import Task
from protolink_sync.testing import (
    FakeAgent,
    Recorder,
    ReplayTransport,
    ScriptedTransport,
    events,
    refused,
    reply,
    silence,
)
from protolink_sync.transport import SSEJSONRPCTransport

URL = "http://agent.test"
STEP = {"type": "task_progress", "progress": 1}


def streamed(*script, **words):
    transport = ScriptedTransport(*script)
    return transport, AgentClient(transport).send_task_streaming(URL, Task("t"), **words)


def test_a_value_where_a_stream_was_asked_for_is_no_stream():
    with pytest.raises(TransportProtocolError, match="no stream"):
        streamed(reply({"ok": True}))


def test_a_refusal_where_a_stream_was_asked_for_is_raised():
    with pytest.raises(TransportRemoteError):
        streamed(reply(status=503, body=b"busy"))
    with pytest.raises(TransportConnectionError):
        streamed(refused())


@pytest.mark.parametrize("answer", [5, "text"])
def test_a_step_that_is_no_answer_fails_the_test_that_wrote_it(answer):
    with pytest.raises(AssertionError, match="the script has"):
        streamed(answer)
    with pytest.raises(AssertionError, match="the script has"):
        AgentClient(ScriptedTransport(answer)).send_task(URL, Task("t"))


def test_a_stream_where_a_value_was_asked_for_fails_the_test_that_wrote_it():
    with pytest.raises(AssertionError, match="is no stream"):
        AgentClient(ScriptedTransport(events(STEP))).send_task(URL, Task("t"))


def test_a_call_behind_the_end_of_the_script_fails_the_test_too():
    transport = ScriptedTransport(reply({"id": "t", "state": "completed"}))
    client = AgentClient(transport)
    assert transport.unused == 1
    client.send_task(URL, Task("t"))

    assert transport.unused == 0
    with pytest.raises(AssertionError, match="is call 2, and the script has no step for it"):
        client.send_task(URL, Task("t"))


def test_a_stream_is_held_by_silence_and_ended_by_its_token():
    token = CancelToken()
    _, stream = streamed(events(STEP, silence()), cancel=token)

    assert next(stream)["progress"] == 1
    token.cancel("enough")
    with pytest.raises(CallCancelledError):
        next(stream)


def test_a_stream_that_is_cut_or_breaks_says_so_behind_its_events():
    for script, kind in (
        (events(STEP, cut=True), StreamInterruptedError),
        (events(STEP, refused()), TransportConnectionError),
    ):
        _, stream = streamed(script)
        assert next(stream)["progress"] == 1
        with pytest.raises(kind):
            next(stream)


def test_a_scripted_transport_stays_in_its_test():
    with pytest.raises(TypeError, match="belongs to its test"):
        copy.copy(ScriptedTransport())


def test_an_agent_without_answers_and_one_that_was_given_a_function():
    here = "http://127.0.0.1:0"
    with (
        FakeAgent(lambda task: f"{len(task.messages)} said", url=here) as agent,
        FakeAgent(url=here) as mute,
        AgentClient("http") as client,
    ):
        assert client.send_infer_task("hi", agent.url).text == "1 said"
        assert "1 tasks" in repr(agent)
        with pytest.raises(TransportRemoteError):
            client.send_infer_task("hi", mute.url)


# --- recorded ---------------------------------------------------------------------------------


def test_a_stream_that_could_not_be_opened_is_played_as_that(tmp_path):
    path = tmp_path / "calls.json"
    with SSEJSONRPCTransport() as transport, Recorder(path) as recorder:
        client = AgentClient(recorder.watch(transport))
        with pytest.raises(TransportConnectionError):
            client.send_task_streaming("http://127.0.0.1:1", Task("t"))

    replay = ReplayTransport(path)
    with pytest.raises(TransportConnectionError):
        AgentClient(replay).send_task_streaming("http://127.0.0.1:1", Task("t"))


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (events(STEP, cut=True), StreamInterruptedError),
        (events(STEP, refused()), TransportConnectionError),
    ],
    ids=["cut", "broken"],
)
def test_a_stream_that_broke_breaks_at_the_same_place(tmp_path, script, kind):
    path = tmp_path / "calls.json"

    def read(client):
        stream = client.send_task_streaming(URL, Task("t"))
        seen = [next(stream)]
        with pytest.raises(kind):
            next(stream)
        return seen

    with Recorder(path) as recorder:
        recorded = read(AgentClient(recorder.watch(ScriptedTransport(script))))

    assert read(AgentClient(ReplayTransport(path))) == recorded


def test_a_stream_that_was_left_says_no_more_than_was_recorded(tmp_path):
    path = tmp_path / "calls.json"
    with Recorder(path) as recorder:
        client = AgentClient(recorder.watch(ScriptedTransport(events(STEP, silence()))))
        stream = client.send_task_streaming(URL, Task("t"))
        next(stream)
        stream.close()

    stream = AgentClient(ReplayTransport(path)).send_task_streaming(
        URL, Task("t"), idle_timeout=0.05
    )

    assert next(stream)["progress"] == 1
    with pytest.raises(TransportTimeoutError):
        next(stream)


def test_an_answer_that_is_no_json_is_recorded_as_text(tmp_path):
    path = tmp_path / "calls.json"
    with Recorder(path) as recorder:
        client = AgentClient(recorder.watch(ScriptedTransport(reply(status=503, body=b"busy"))))
        with pytest.raises(TransportRemoteError, match="busy"):
            client.send_task(URL, Task("t"))

    with pytest.raises(TransportRemoteError, match="busy"):
        AgentClient(ReplayTransport(path)).send_task(URL, Task("t"))
    assert json.loads(path.read_text())["exchanges"]
