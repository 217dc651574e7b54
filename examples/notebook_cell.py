"""What happens in a notebook cell: a blocking call inside a running event loop."""

import asyncio

from protolink_sync import AgentCard, connect
from protolink_sync.server import Agent

parrot = Agent(AgentCard("parrot", "says it again", "http://127.0.0.1"))


@parrot.infer
def answer(prompt: str) -> str:
    return prompt.upper()


async def cell() -> None:
    """A notebook runs its cells in a loop, as this function runs in one."""
    print(f"a loop is running: {asyncio.get_running_loop().is_running()}")

    with parrot.serve("http://127.0.0.1:0") as server, connect(server.url, timeout=10) as agent:
        # As in a cell: just call.
        print(agent.invoke("hello"))

        # Where the loop must stay free, the same call goes to a thread.
        answers = await asyncio.gather(
            *(asyncio.to_thread(agent.invoke, word) for word in ("one", "two", "three"))
        )
        print(*answers)


if __name__ == "__main__":
    asyncio.run(cell())
