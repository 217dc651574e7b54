"""A2AClient.aio: the A2A client, awaited."""

from __future__ import annotations

import asyncio

import pytest

from protolink_sync.a2a import A2AClient, A2ATaskNotFoundError
from tests.a2a.scripted import (
    HOLD,
    RECV,
    ScriptedAgent,
    artifact_update,
    done,
    error,
    result,
    sent,
    status_update,
    stream,
    task,
)
from tests.aio.test_calls import shim_threads
from tests.transport.scenes import wait_until

BEGIN = sent(task("submitted"))
EVENTS = [BEGIN, artifact_update("one"), artifact_update("two", append=True)]
LAST = status_update("completed", "done")


def awaited(agent: ScriptedAgent, use):
    async def main():
        with A2AClient(agent.base) as client:
            return await use(client.aio)

    with agent:
        return asyncio.run(main())


def test_a_message_is_answered():
    async def use(client):
        card = await client.fetch_agent_card()
        answer = await client.send_message("hi")
        return card.name, answer.text, client.endpoint_url

    agent = ScriptedAgent(methods={"SendMessage": done("hello")})

    assert awaited(agent, use) == ("scripted", "hello", f"{agent.base}/rpc")


def test_an_error_has_its_class():
    agent = ScriptedAgent(methods={"GetTask": error(-32001)})

    with pytest.raises(A2ATaskNotFoundError):
        awaited(agent, lambda client: client.get_task("t9"))


def test_events_are_read_with_async_for():
    async def use(client):
        heard = client.stream_message("hi")
        return [event.kind async for event in heard], heard.task.status.state.value

    kinds, state = awaited(
        ScriptedAgent(methods={"SendStreamingMessage": stream(*EVENTS, LAST)}), use
    )

    assert len(kinds) == 4
    assert state == "completed"


@pytest.mark.parametrize("is_async", [True, False])
def test_a_function_is_called_in_the_loop_with_each_event_until_it_says_no(is_async):
    loops = []

    async def later(event):
        return now(event)

    def now(event):
        loops.append(asyncio.get_running_loop())
        return len(loops) < 3

    async def use(client):
        return await client.send_message_streaming("hi", later if is_async else now)

    answer = awaited(ScriptedAgent(methods={"SendStreamingMessage": stream(*EVENTS, LAST)}), use)

    assert len(loops) == 3
    assert answer.id == "t1"


@pytest.mark.parametrize("asks", ["CancelTask", "GetTask"])
def test_asking_for_the_end_of_the_task_can_be_cancelled(asks):
    """An agent that cannot cancel it is asked for the task as it stands."""

    async def use(client):
        heard = client.stream_message("hi")
        await anext(heard)
        asking = asyncio.create_task(heard.cancel("enough"))
        await asyncio.to_thread(wait_until, lambda: asks in agent.methods, 5)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        # No thread is left in the request.
        assert await asyncio.to_thread(wait_until, lambda: not shim_threads(), 5)
        await heard.aclose()

    held = {"SendStreamingMessage": stream(BEGIN, end=[HOLD]), "CancelTask": error(-32002)}
    agent = ScriptedAgent(methods={**held, asks: [RECV, HOLD]})

    awaited(agent, use)


def test_pages_are_read_with_async_for():
    pages = [
        result({"tasks": [task()], "nextPageToken": "p2", "pageSize": 1, "totalSize": 2}),
        result({"tasks": [task("working")], "nextPageToken": "", "pageSize": 1, "totalSize": 2}),
    ]

    async def use(client):
        return [one.status.state.value async for one in client.list_tasks(page_size=1)]

    assert awaited(ScriptedAgent(methods={"ListTasks": tuple(pages)}), use) == [
        "completed",
        "working",
    ]
