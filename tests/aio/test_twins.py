"""The awaitable twins: what they set, say and close is that of the blocking ones."""

from __future__ import annotations

import asyncio

import pytest

from protolink_sync import AgentClient, connect
from protolink_sync.a2a import A2AClient
from protolink_sync.aio import AsyncAgentClient
from protolink_sync.aio.a2a import AsyncA2AClient
from protolink_sync.aio.peer import AsyncAgentPeer
from protolink_sync.errors import ClientClosedError
from protolink_sync.testing import FakeAgent
from tests.a2a.scripted import ScriptedAgent, done, sent, status_update, stream, task


def test_each_twin_is_of_its_own_kind():
    for twin in (AsyncA2AClient, AsyncAgentPeer):
        with pytest.raises(TypeError, match="must be an A"):
            twin("client")
    with pytest.raises(TypeError, match="must be an AgentClient"):
        AsyncAgentClient.of("client")


def test_a_client_and_its_twin_are_one():
    with AgentClient("http") as client:
        twin = AsyncAgentClient.of(client)

        assert twin.transport is client.transport


def test_what_is_set_on_the_a2a_twin_is_set_on_the_client():
    with ScriptedAgent(done()) as agent, A2AClient(agent.base) as client:
        twin = client.aio
        assert (twin.sync, twin.base_url) == (client, client.base_url)
        assert twin.wire_dialect is client.wire_dialect is None
        twin.set_timeout(20)
        twin.set_connect_timeout(10)
        twin.set_allow_cross_origin_interfaces(False)
        twin.set_authorization_header("Bearer mine")

        asyncio.run(twin.send_message("hi"))

        assert agent.calls[0].request.header("Authorization") == "Bearer mine"
        assert twin.wire_dialect is client.wire_dialect is not None
        assert twin.endpoint_url == client.endpoint_url


def test_leaving_the_a2a_twin_closes_the_client():
    client = A2AClient("http://127.0.0.1:9")

    async def use():
        async with client.aio as twin:
            assert "127.0.0.1:9" in repr(twin)

    asyncio.run(use())

    with pytest.raises(ClientClosedError):
        client.send_message("hi")


def test_a_callback_may_be_awaited_and_end_the_stream():
    events = [sent(task("submitted")), status_update("working"), status_update("completed", "yes")]
    seen = []

    async def on_event(event):
        await asyncio.sleep(0)
        seen.append(event.kind)
        return len(seen) < 2

    async def use(twin):
        with pytest.raises(TypeError, match="must be a function"):
            await twin.send_message_streaming("hi", 5)
        return await twin.send_message_streaming("hi", on_event)

    with ScriptedAgent(stream(*events)) as agent, A2AClient(agent.base) as client:
        answer = asyncio.run(use(client.aio))

    assert seen == ["task", "status-update"]
    assert not answer.is_terminal


def test_a_peer_is_awaited():
    async def use(peer):
        async with AsyncAgentPeer(peer) as twin:
            assert twin.target == peer.target
            assert await twin.url() == agent.url
            assert agent.url in repr(twin)
            return (await twin.card()).name, (await twin.invoke("hi"))

    with FakeAgent("hello") as agent:
        name, answer = asyncio.run(use(connect(agent.url)))

        assert name
        assert "hello" in str(answer)


def test_a_stream_that_was_not_begun_says_so_and_is_closed_for_nothing():
    async def use(client):
        opened = client.aio.send_task_streaming("http://127.0.0.1:9", {"id": "t"})
        shown = repr(opened)
        await opened.close()
        return shown

    with AgentClient("sse") as client:
        assert asyncio.run(use(client)) == "<AsyncEventStream not open>"
