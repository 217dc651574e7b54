"""Awaited streams: the same events, ended by the same things, and by the asyncio task."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

import pytest

from protolink_sync import AgentCard, AgentClient, AsyncAgentClient, CancelToken
from protolink_sync.errors import (
    CallCancelledError,
    StreamingNotSupportedError,
    TransportRemoteError,
)
from protolink_sync.models import Message, RunEvent, Task, TaskState
from protolink_sync.server import Agent
from protolink_sync.transport import SSEJSONRPCTransport
from tests.aio.silent import SilentPeer
from tests.aio.test_calls import shim_threads, task
from tests.transport.scenes import at_once, wait_until

# What a busy agent of ours may take to notice that its caller has left.
NOTICED = 0.5


class Slow(Agent):
    """Yields events with pauses, and tells when its caller has left."""

    left_at = 0.0

    def handle_task_streaming(self, task: Task) -> Any:
        try:
            while True:
                yield {"type": "task_progress", "progress": 1}
                end = time.monotonic() + 0.02
                while time.monotonic() < end and not self.current_run().cancelled:
                    time.sleep(0.002)
                if self.current_run().cancelled:
                    return
        finally:
            self.left_at = time.monotonic()


@pytest.fixture
def slow():
    agent = Slow(AgentCard("slow", "takes its time", "http://127.0.0.1:1"))
    with agent.serve("http://127.0.0.1:0") as server:
        agent.url = server.url
        yield agent


def test_the_events_are_those_of_the_blocking_stream(shared_peer):
    url = shared_peer("sse").url

    async def main(client):
        return [event async for event in client.aio.send_task_streaming(url, task("many 40"))]

    with AgentClient("sse") as client:
        awaited = asyncio.run(main(client))
        blocking = list(client.send_task_streaming(url, task("many 40")))

    assert [event.get("message") for event in awaited] == [e.get("message") for e in blocking]
    assert awaited[-1]["final"]
    assert len(awaited) > 40


@pytest.mark.parametrize("kind", ["sse", "websocket", "grpc"])
def test_every_way_of_reading(shared_peer, kind):
    url = shared_peer(kind).url

    async def main():
        async with AsyncAgentClient(kind) as client:
            ask = Task.create_infer(prompt="hello")
            text = [piece async for piece in client.send_task_streaming(url, ask).text()]
            ask = Task.create_infer(prompt="hello")
            done = await client.send_task_streaming(url, ask).result()
            runs = client.send_task_streaming(url, task("many 2")).run_events()
            stream = client.send_task_streaming(url, task("many 2"))
            async with stream:
                seen = [event async for event in stream]
            return "".join(text), done, [run async for run in runs], stream.task, len(seen)

    text, done, runs, finished, seen = asyncio.run(main())

    assert text == done.text == "the mock model says hi"
    assert done.state is finished.state is TaskState.COMPLETED
    assert all(isinstance(run, RunEvent) for run in runs)
    assert seen == len(runs)


def test_awaiting_a_stream_opens_it_and_tells_what_is_wrong(agent_peer):
    async def main():
        async with AsyncAgentClient("http") as client:
            await client.send_task_streaming(agent_peer.url, task("many 2"))

    with pytest.raises(StreamingNotSupportedError):
        asyncio.run(main())


@pytest.mark.parametrize("kind", [StopIteration, StopAsyncIteration])
def test_a_stray_end_of_an_iterator_is_no_end_of_the_stream(kind):
    def credentials(origin, refresh):
        raise kind

    async def main():
        with SSEJSONRPCTransport(credentials=credentials) as transport:
            client = AsyncAgentClient(transport)
            return [e async for e in client.send_task_streaming("http://127.0.0.1:9", task("go"))]

    with pytest.raises(RuntimeError, match=kind.__name__):
        asyncio.run(main())


def test_an_error_of_the_stream_comes_after_the_events_before_it(shared_peer):
    seen = []

    async def main():
        async with AsyncAgentClient("sse") as client:
            async for event in client.send_task_streaming(shared_peer("sse").url, task("raise x")):
                seen.append(event)

    with pytest.raises(TransportRemoteError, match="x"):
        asyncio.run(main())
    assert seen[0]["new_state"] == "working"


def test_cancelling_the_reader_ends_the_stream_at_once(slow):
    async def main():
        async with AsyncAgentClient("sse") as client:
            stream = client.send_task_streaming(slow.url, task("go"))
            for _ in range(3):
                await anext(stream)
            reading = asyncio.ensure_future(_read(stream))
            await asyncio.sleep(0.05)
            began = time.monotonic()
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            assert time.monotonic() - began < at_once()
            with pytest.raises(CallCancelledError):
                await _read(stream)
            return began

    began = asyncio.run(main())

    assert wait_until(lambda: slow.left_at, 5)
    assert slow.left_at - began < NOTICED
    assert wait_until(lambda: not shim_threads(), NOTICED)


async def _read(stream: Any) -> None:
    async for _ in stream:
        pass


@pytest.mark.parametrize("how", ["break", "close", "aclose", "with"])
def test_leaving_a_stream_ends_it(slow, how):
    async def main():
        async with AsyncAgentClient("sse") as client:
            stream = client.send_task_streaming(slow.url, task("go"))
            if how == "with":
                async with stream:
                    await anext(stream)
            else:
                async for _ in stream:
                    break
            if how in ("close", "aclose"):
                await getattr(stream, how)()
                await stream.close()  # twice is silent
            if how == "break":
                del stream
            left = time.monotonic()
            while not slow.left_at and time.monotonic() < left + 5:
                await asyncio.sleep(0.005)
            return left

    left = asyncio.run(main())

    assert 0 < slow.left_at - left < NOTICED


def test_cancelling_while_the_stream_is_opened_ends_the_opening():
    async def main(url):
        async with AsyncAgentClient("sse") as client:
            opening = asyncio.ensure_future(_read(client.send_task_streaming(url, task("hi"))))
            await asyncio.to_thread(silent.asked.get, timeout=5)
            began = time.monotonic()
            opening.cancel()
            left = await asyncio.to_thread(silent.left.get, timeout=5)
            assert left - began < at_once()
            with pytest.raises(asyncio.CancelledError):
                await opening

    with SilentPeer() as silent:
        asyncio.run(main(silent.url))


def test_the_callers_token_ends_a_stream(slow):
    token = CancelToken()

    async def main():
        async with AsyncAgentClient("sse") as client:
            stream = client.send_task_streaming(slow.url, task("go"), cancel=token)
            await anext(stream)
            asyncio.get_running_loop().call_later(0.05, token.cancel, "enough")
            await _read(stream)

    with pytest.raises(CallCancelledError):
        asyncio.run(main())


def test_pieces_can_be_closed_while_one_is_on_its_way(slow):
    async def main():
        async with AsyncAgentClient("sse") as client:
            pieces = client.send_task_streaming(slow.url, task("go")).text()
            waiting = asyncio.ensure_future(anext(pieces))
            await asyncio.sleep(0.1)
            waiting.cancel()
            await pieces.aclose()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    asyncio.run(main())

    assert wait_until(lambda: slow.left_at, 5)


def test_another_asyncio_task_may_cancel_the_streamed_task(shared_peer):
    async def main():
        async with AsyncAgentClient("sse") as client:
            stream = client.send_task_streaming(shared_peer("sse").url, task("slow 200 0.05"))
            await anext(stream)
            reading = asyncio.ensure_future(stream.result())
            canceled = await stream.cancel("enough")
            return canceled, await reading

    canceled, read = asyncio.run(main())

    assert canceled.state is read.state is TaskState.CANCELED


class Uncancellable(SilentPeer):
    """Streams one event, and says nothing when it is asked to cancel the task."""

    def _hold(self, caller: socket.socket) -> None:
        head = caller.recv(65536, socket.MSG_PEEK)
        if b"cancel" not in head.partition(b"\r\n")[0]:
            event = b'data: {"ok": true, "result": {"type": "task_progress"}, "final": false}\n\n'
            caller.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(event), event)
            )
        super()._hold(caller)


def test_asking_for_the_end_of_the_task_can_be_cancelled():
    async def main(peer):
        async with AsyncAgentClient("sse") as client:
            stream = client.send_task_streaming(peer.url, task("go"))
            await anext(stream)
            asking = asyncio.create_task(stream.cancel("enough"))
            for _ in range(2):
                await asyncio.to_thread(peer.asked.get, timeout=5)
            began = time.monotonic()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            took = await asyncio.to_thread(peer.left.get, timeout=5) - began
            assert client.transport.metrics.active_streams == 1  # it goes on
            await stream.close()
            return took

    with Uncancellable() as peer:
        assert asyncio.run(main(peer)) < at_once()
    assert wait_until(lambda: not shim_threads(), 5)


class Refusing(Uncancellable):
    """Refuses to cancel the task, which goes on."""

    def _hold(self, caller: socket.socket) -> None:
        head = caller.recv(65536, socket.MSG_PEEK)
        if b"cancel" in head.partition(b"\r\n")[0]:
            caller.sendall(
                b"HTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\n"
                b"Content-Length: 2\r\n\r\n{}"
            )
        super()._hold(caller)


def test_a_refused_end_of_the_task_is_waited_for_by_nobody_who_was_cancelled():
    """The stream may bring the end that was meant; a thread waits for that no longer than asked."""

    async def main(peer):
        client = AsyncAgentClient("sse")
        stream = client.send_task_streaming(peer.url, task("go"))
        await anext(stream)
        asking = asyncio.create_task(stream.cancel("enough"))
        is_answered = lambda: client.transport.metrics.requests_failed  # noqa: E731
        assert await asyncio.to_thread(wait_until, is_answered, 5)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        return client, stream

    with Refusing() as peer:
        client, stream = asyncio.run(main(peer))
        assert wait_until(lambda: not shim_threads(), 1.5)  # the end is waited for 2 s
        asyncio.run(stream.close())
        asyncio.run(client.close())


def test_a_stream_that_is_not_open_has_no_task_yet():
    async def main():
        async with AsyncAgentClient("sse") as client:
            stream = client.send_task_streaming("http://127.0.0.1:1", task("go"))
            assert (stream.task, stream.events) == (None, 0)
            with pytest.raises(RuntimeError, match="not open"):
                await stream.cancel()
            await stream.close()
            with pytest.raises(CallCancelledError):
                await anext(stream)

    asyncio.run(main())


def test_a_message_sent_with_a_session_is_streamed(shared_peer):
    async def main():
        async with AsyncAgentClient("sse") as client:
            peer = client.peer(shared_peer("sse").url)
            return await peer.stream(Message.user("echo hi")).result()

    assert asyncio.run(main()).text == "hi"
