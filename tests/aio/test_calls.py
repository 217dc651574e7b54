"""Awaited calls: they overlap, end with their asyncio task, and leave nothing behind."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import pickle
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from protolink_sync import AgentClient, AgentPeer, AsyncAgentClient, CancelToken, connect
from protolink_sync.a2a import A2AClient
from protolink_sync.aio import AsyncA2AClient, AsyncAgentPeer
from protolink_sync.config import TransportConfig, TransportLimits
from protolink_sync.errors import (
    CallCancelledError,
    TransportError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import Message, Task
from protolink_sync.transport import HTTPTransport
from tests.aio.silent import SilentPeer
from tests.transport.scenes import at_once, wait_until

# The bound of what has to be at once; a busy machine may take a little longer than we do.


def task(text: str) -> Task:
    return Task.create(Message.user(text))


def shim_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("protolink-aio")]


@pytest.fixture
def silent():
    with SilentPeer() as peer:
        yield peer


# --- results and errors --------------------------------------------------------------------------


def test_a_call_brings_what_the_blocking_one_brings(agent_peer):
    async def main():
        async with AsyncAgentClient("http") as client:
            done = await client.send_task(agent_peer.url, task("echo hello"))
            card = await client.get_agent_card(agent_peer.url)
            return done.text, card.name

    assert asyncio.run(main()) == ("hello", "http_agent")


def test_an_error_is_the_one_of_the_blocking_call(agent_peer):
    async def main():
        async with AsyncAgentClient("http") as client:
            await client.send_task(agent_peer.url, task("raise boom"))

    with pytest.raises(TransportRemoteError, match="500"):
        asyncio.run(main())


@pytest.mark.parametrize("kind", [StopIteration, StopAsyncIteration])
def test_a_call_that_raises_the_end_of_an_iterator_returns(agent_peer, kind):
    """No future takes the one; the other would be the end of the loop that awaits the call."""

    def credentials(origin, refresh):
        raise kind

    async def main():
        with HTTPTransport(credentials=credentials) as transport:
            call = AsyncAgentClient(transport).send_task(agent_peer.url, task("echo"))
            await asyncio.wait_for(call, 5)

    with pytest.raises(RuntimeError, match=kind.__name__) as caught:
        asyncio.run(main())

    assert isinstance(caught.value.__cause__, kind)


def test_a_call_that_no_thread_can_make_is_a_transport_error(monkeypatch, silent):
    def refused(thread):
        raise RuntimeError("can't start new thread")

    async def main():
        async with AsyncAgentClient("http") as client:
            monkeypatch.setattr(threading.Thread, "start", refused)
            try:
                await client.send_task(silent.url, task("echo"))
            finally:
                monkeypatch.undo()

    assert wait_until(lambda: not shim_threads(), 5)
    with pytest.raises(TransportError, match="can't start new thread"):
        asyncio.run(main())
    assert silent.asked.empty()


def test_a_mistake_of_the_caller_is_told(agent_peer):
    async def main(**options):
        async with AsyncAgentClient("http") as client:
            await client.send_task(agent_peer.url, task("echo"), **options)

    with pytest.raises(ValueError, match="timeout"):
        asyncio.run(main(timeout=0))
    with pytest.raises(TypeError, match="CancelToken"):
        asyncio.run(main(cancel="now"))
    with pytest.raises(TypeError, match="tiemout"):
        asyncio.run(main(tiemout=5))


def test_a_view_has_its_options(silent):
    async def main():
        async with AsyncAgentClient("http") as client:
            hurried = client.with_options(timeout=0.2, headers={"X-Trace": "7"})
            with pytest.raises(TransportTimeoutError):
                await hurried.send_task(silent.url, task("hi"))
            assert hurried.transport is client.transport

    asyncio.run(main())
    assert "X-Trace: 7" in silent.asked.get(timeout=5)


def test_a_budget_ends_an_awaited_call(silent):
    async def main():
        async with AsyncAgentClient("http") as client:
            await client.send_task(silent.url, task("hi"), timeout=0.2)

    with pytest.raises(TransportTimeoutError):
        asyncio.run(main())


# --- at the same time ----------------------------------------------------------------------------


def test_twenty_awaits_overlap_and_the_loop_goes_on(agent_peer):
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    async def main():
        ticking = asyncio.create_task(tick())
        async with AsyncAgentClient("http") as client:
            calls = [client.send_task(agent_peer.url, task("count 0.4")) for _ in range(20)]
            done = await asyncio.gather(*calls)
        ticking.cancel()
        return {t.state.value for t in done}

    began = time.monotonic()
    assert asyncio.run(main()) == {"completed"}
    assert time.monotonic() - began < 4  # one after the other they take 8
    assert ticks >= 15


def test_one_client_serves_several_loops_at_once(agent_peer):
    client = AgentClient("http")
    together = threading.Barrier(4)

    def loop(number: int) -> list[str]:
        async def main():
            together.wait(10)
            calls = [
                client.aio.send_task(agent_peer.url, task(f"echo {number}.{n}")) for n in range(5)
            ]
            return [done.text for done in await asyncio.gather(*calls)]

        return asyncio.run(main())

    with client, ThreadPoolExecutor(4) as pool:
        results = list(pool.map(loop, range(4)))

    assert results == [[f"{number}.{n}" for n in range(5)] for number in range(4)]


def test_calls_one_after_the_other_use_one_connection(agent_peer, counting_proxy):
    proxy = counting_proxy(agent_peer.url)

    async def main():
        async with AsyncAgentClient("http") as client:
            for _ in range(10):
                await client.send_task(proxy.url, task("echo"))

    asyncio.run(main())

    assert proxy.total == 1


def test_context_variables_travel(silent):
    who = contextvars.ContextVar("who", default="nobody")
    transport = HTTPTransport(credentials=lambda origin, refresh: {"Authorization": who.get()})

    async def call(name: str):
        who.set(name)
        async with AsyncAgentClient(transport) as client:
            await client.send_task(silent.url, task("hi"), timeout=0.3)

    async def main():
        await asyncio.gather(call("Ada"), call("Grace"), return_exceptions=True)

    with transport:
        asyncio.run(main())

    heads = silent.asked.get(timeout=5) + silent.asked.get(timeout=5)
    assert "Authorization: Ada" in heads
    assert "Authorization: Grace" in heads


# --- ending --------------------------------------------------------------------------------------


def test_cancelling_the_asyncio_task_closes_the_connection_at_once(silent):
    async def main():
        async with AsyncAgentClient("http") as client:
            running = asyncio.create_task(client.send_task(silent.url, task("hi")))
            await asyncio.to_thread(silent.asked.get, timeout=5)
            began = time.monotonic()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            return began, time.monotonic()

    cancelled, ended = asyncio.run(main())

    assert ended - cancelled < at_once()
    assert silent.left.get(timeout=5) - cancelled < at_once()


def test_a_call_that_waits_for_its_turn_can_be_cancelled(silent):
    """Nothing of the second one is sent, and the first goes on."""
    config = TransportConfig(limits=TransportLimits(max_concurrent_requests=1))

    async def main():
        with HTTPTransport(config=config) as transport:
            client = AsyncAgentClient(transport)
            first = asyncio.create_task(client.send_task(silent.url, task("first")))
            await asyncio.to_thread(silent.asked.get, timeout=5)
            second = asyncio.create_task(client.send_task(silent.url, task("second")))
            await asyncio.sleep(0.05)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            assert not first.done()
            first.cancel()

    asyncio.run(main())

    assert silent.asked.empty()


def test_the_callers_token_ends_an_awaited_call(silent):
    token = CancelToken()

    async def main():
        async with AsyncAgentClient("http") as client:
            call = asyncio.create_task(client.send_task(silent.url, task("hi"), cancel=token))
            await asyncio.to_thread(silent.asked.get, timeout=5)
            token.cancel("enough")
            await asyncio.wait_for(call, 5)

    with pytest.raises(CallCancelledError) as caught:
        asyncio.run(main())
    assert caught.value.reason == "enough"


def test_a_token_for_many_calls_keeps_nothing_of_them(agent_peer):
    token = CancelToken()

    async def main():
        async with AsyncAgentClient("http") as client:
            for _ in range(5):
                await client.send_task(agent_peer.url, task("echo"), cancel=token)

    asyncio.run(main())

    assert token._callbacks == {}
    assert token._calls == {}


def test_no_thread_outlives_the_loop(silent, agent_peer):
    async def main():
        client = AsyncAgentClient("http")
        await client.send_task(agent_peer.url, task("echo"))
        # Left alone: asyncio.run cancels it.
        left = asyncio.create_task(client.send_task(silent.url, task("hi")))
        await asyncio.to_thread(silent.asked.get, timeout=5)
        return client, left

    client, left = asyncio.run(main())
    ended = time.monotonic()

    assert wait_until(lambda: not shim_threads(), 5)
    assert time.monotonic() - ended < at_once()
    assert left.cancelled()
    client.sync.close()


def test_a_loop_that_is_closed_over_a_call_ends_it(silent):
    """Nobody cancels the asyncio task here; it is not even collected."""
    client = AsyncAgentClient("http")
    loop = asyncio.new_event_loop()

    async def begin():
        left = asyncio.ensure_future(client.send_task(silent.url, task("hi")))
        await asyncio.sleep(0)
        return left

    left = loop.run_until_complete(begin())
    silent.asked.get(timeout=5)
    loop.close()
    closed = time.monotonic()

    assert silent.left.get(timeout=5) - closed < at_once() + 0.05
    assert wait_until(lambda: not shim_threads(), 1)
    assert not left.done()
    left._log_destroy_pending = False
    left.get_coro().close()
    client.sync.close()


def test_closing_the_client_ends_an_awaited_call(silent):
    async def main():
        client = AsyncAgentClient("http")
        running = asyncio.create_task(client.send_task(silent.url, task("hi")))
        await asyncio.to_thread(silent.asked.get, timeout=5)
        await client.close()
        with pytest.raises(RuntimeError, match="closed"):
            await running

    asyncio.run(main())


def test_a_twin_closes_what_the_client_would_close():
    with HTTPTransport() as transport:

        async def main():
            async with AgentClient(transport).aio:
                pass

        asyncio.run(main())
        assert transport.health()["ready"]


# --- many ----------------------------------------------------------------------------------------


def test_many_tasks_are_read_with_async_for(agent_peer):
    async def main():
        async with AsyncAgentClient("http") as client:
            tasks = [task(f"echo {n}") for n in range(12)]
            return [done.text async for done in client.map(tasks, agent_peer.url)]

    assert asyncio.run(main()) == [str(n) for n in range(12)]


def test_leaving_many_tasks_ends_the_calls(silent):
    async def main():
        async with AsyncAgentClient("http") as client:
            results = client.map([task("hi") for _ in range(3)], silent.url)
            waiting = asyncio.create_task(anext(results))
            for _ in range(3):
                await asyncio.to_thread(silent.asked.get, timeout=5)
            waiting.cancel()
            began = time.monotonic()
            for _ in range(3):
                left = await asyncio.to_thread(silent.left.get, timeout=5)
                assert left - began < at_once()

    asyncio.run(main())


# --- peers ---------------------------------------------------------------------------------------


def test_a_peer_is_awaited(shared_peer):
    async def main():
        with connect(shared_peer("sse").url) as blocking:
            peer = AsyncAgentPeer(blocking)
            pieces = [piece async for piece in peer.stream("hello").text()]
            return (
                await peer.invoke("hello"),
                await peer.call_tool("add", a=1, b=2),
                (await peer.card()).name,
                "".join(pieces),
            )

    answer = "the mock model says hi"
    assert asyncio.run(main()) == (answer, 3, "sse_agent", answer)


def test_a_tool_call_is_ended_with_its_asyncio_task(silent):
    async def main():
        async with AsyncAgentClient("http") as client:
            call = asyncio.create_task(client.peer(silent.url).call_tool("add", a=1))
            await asyncio.to_thread(silent.asked.get, timeout=5)
            began = time.monotonic()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            left = await asyncio.to_thread(silent.left.get, timeout=5)
            assert left - began < at_once()

    asyncio.run(main())


# --- what it is ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("blocking", "twin", "elsewhere"),
    [
        (AgentClient, AsyncAgentClient, {"aio", "a2a_memory"}),
        (AgentPeer, AsyncAgentPeer, {"client"}),
        (A2AClient, AsyncA2AClient, {"aio", "transport"}),
    ],
)
def test_the_twin_has_every_public_name_with_the_same_parameters(blocking, twin, elsewhere):
    names = {name for name in dir(blocking) if name[0] != "_" and not name.isupper()} - elsewhere

    assert {name for name in names if not hasattr(twin, name)} == set()
    for name in names:
        ours = getattr(blocking, name)
        if inspect.isfunction(ours):
            parameters = inspect.signature(ours).parameters
            assert inspect.signature(getattr(twin, name)).parameters.keys() == parameters.keys()


def test_the_twin_can_be_pickled():
    with AgentClient("http", timeout=7) as client:
        copy = pickle.loads(pickle.dumps(client.aio))

        assert copy.transport.timeout == 7
        copy.sync.close()


def test_a_forked_child_has_threads_of_its_own(agent_peer):
    program = """
        import asyncio, os, sys, threading
        from protolink_sync import AsyncAgentClient, Task
        from tests.transport.matrix_watch import until_asleep

        async def main():
            async with AsyncAgentClient("http") as client:
                done = await client.send_task(sys.argv[1], Task.create("echo hi"), timeout=5)
                return done.text

        assert asyncio.run(main()) == "hi"
        for thread in threading.enumerate():
            if thread.name.startswith("protolink-aio"):
                until_asleep(thread)  # waits for more work
        child = os.fork()
        if not child:
            os._exit(asyncio.run(main()) != "hi")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program), agent_peer.url]

    run = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert run.returncode == 0, run.stderr
