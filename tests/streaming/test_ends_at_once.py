"""What ends a stream does so while its events are unread, too, and is told truthfully."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from protolink_sync import AgentCard, AgentClient, CallCancelledError, CancelToken, Message, Task
from protolink_sync.server import Agent
from protolink_sync.streaming import EventStream
from tests.streaming.scripted import LIMIT, ScriptedSource
from tests.transport.matrix_watch import until_asleep


class Flood(Agent):
    """Tell more than anybody reads."""

    def handle_task_streaming(self, task):
        for number in range(100_000):
            yield {"type": "task_progress", "message": f"step {number}", "task_id": task.id}


def workers():
    return [t for t in threading.enumerate() if t.name.startswith("protolink-stream-")]


def gone_within(seconds):
    end = time.monotonic() + seconds
    while workers() and time.monotonic() < end:
        threading.Event().wait(0.002)
    return not workers()


@pytest.fixture
def flooded():
    """A stream whose worker waits for room, its client, and the token of the stream."""
    token = CancelToken()
    card = AgentCard("flood", "tells much", "http://127.0.0.1")
    with Flood(card).serve("http://127.0.0.1:0") as server, AgentClient("sse") as client:
        stream = client.send_task_streaming(
            server.url, Task.create(Message.user("go")), cancel=token
        )
        next(stream)
        end = time.monotonic() + 10
        while not stream._channel.is_full() and time.monotonic() < end:
            threading.Event().wait(0.002)
        yield stream, client, token
        stream.close()


def test_a_token_ends_a_worker_that_waits_for_room(flooded):
    stream, client, token = flooded

    token.cancel("enough")

    assert gone_within(2)
    assert client.transport.metrics.active_streams == 0
    with pytest.raises(CallCancelledError):
        list(stream)


def test_closing_the_client_ends_a_worker_that_waits_for_room(flooded):
    _, client, _ = flooded

    client.close()

    assert gone_within(2)
    assert client.transport.metrics.active_streams == 0


def test_a_closed_stream_gives_nothing_more(flooded):
    stream, _, _ = flooded
    next(stream)

    stream.close()

    assert list(stream) == []
    with pytest.raises(CallCancelledError):
        stream.result()


def test_cancel_after_close_still_reaches_the_agent(flooded):
    """Leaving a stream is not the end of its task on every wire."""
    stream, client, _ = flooded
    before = client.transport.metrics.requests_started

    stream.close()
    try:
        stream.cancel("stop")
    except Exception:  # the agent may have noticed by itself that its reader left
        pass

    assert client.transport.metrics.requests_started == before + 1


def test_two_threads_cannot_read_at_the_same_moment(flooded):
    stream, _, _ = flooded
    errors = []
    inside, go_on = threading.Event(), threading.Event()
    stream._see, see = (lambda event: (inside.set(), go_on.wait(5), see(event))), stream._see
    reader = threading.Thread(target=next, args=(stream,))
    reader.start()
    assert inside.wait(5)

    try:
        next(stream)
    except RuntimeError as error:
        errors.append(error)
    go_on.set()
    reader.join()

    assert "one reader" in str(errors[0])


@pytest.mark.skipif(os.name == "nt", reason="Windows delivers no signal to a thread that waits")
def test_ctrl_c_ends_a_stream_that_somebody_keeps():
    """In a notebook the stream outlives the cell that was interrupted."""
    source = ScriptedSource([{"n": 1}])
    stream = EventStream(source, task_id="t")
    assert next(stream) == {"n": 1}
    main = threading.main_thread()

    def interrupt():
        until_asleep(main)
        signal.pthread_kill(main.ident, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        next(stream)
    thread.join()

    assert source.closed.wait(LIMIT)
    for _ in range(2):
        with pytest.raises(CallCancelledError, match="task 't' was interrupted"):
            next(stream)
    stream.close()
