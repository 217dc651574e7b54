"""The agent that the documentation calls: it echoes, adds, works slowly, asks back, fails.

``python examples/kitchen.py 8010`` serves it at http://localhost:8010 until Ctrl-C. Without a port
it is asked two questions and ends.
"""

import sys
import time
from collections.abc import Iterator
from typing import Any

from protolink_sync import AgentCard, Message, Task, TransportConfig, connect
from protolink_sync.server import Agent


class Kitchen(Agent):
    """What a text begins with decides what happens; everything else is echoed."""

    def handle_task(self, task: Task) -> Task:
        message = task.messages[-1]
        if message.parts[0].type != "text":
            return super().handle_task(task)
        if message.text.startswith("work"):
            self.work()
            return task.complete("worked")
        if message.text.startswith("book"):
            return task.require_input(Message.agent("Which city?"))
        if message.text.startswith("fail"):
            return task.fail("the weather service is down")
        if message.text.startswith("crash"):
            raise RuntimeError("a mistake in the agent")
        return task.complete(f"You said: {message.text}")

    def work(self) -> None:
        """Take ten seconds, or until the task is cancelled."""
        run = self.current_run()
        end = time.monotonic() + 10
        while time.monotonic() < end and not run.cancelled:
            time.sleep(0.01)

    def handle_task_streaming(self, task: Task) -> Any:
        message = task.messages[-1]
        if message.parts[0].type == "infer":
            return self.answer(task, message.parts[0].content["prompt"])
        if message.text.startswith("count to "):
            return self.count(task, int(message.text.removeprefix("count to ")))
        return super().handle_task_streaming(task)

    def count(self, task: Task, last: int) -> Iterator[Any]:
        for number in range(1, last + 1):
            percent = 100 * number // last
            yield {"type": "task_progress", "progress": percent, "message": f"step {number}"}
        task.complete(f"counted to {last}")

    def answer(self, task: Task, prompt: str) -> Iterator[Any]:
        for piece in pieces(prompt):
            yield {"type": "task_llm_stream", "llm_event_type": "llm_chunk", "content": piece}
        super().handle_task(task)


def pieces(prompt: str) -> Iterator[str]:
    """Answer as a language model would, piece by piece."""
    yield from ("You ", "asked: ", prompt)


def kitchen() -> Agent:
    """Make the agent."""
    card = AgentCard("kitchen", "an agent for examples", "http://localhost:8010", transport="sse")
    # When it is stopped, nobody waits for what still works.
    agent = Kitchen(card, config=TransportConfig(shutdown_timeout=0.2))
    agent.infer(pieces)

    @agent.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return agent


def main() -> None:
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    with kitchen().serve(f"http://127.0.0.1:{port}", a2a=True) as server:
        if port:
            print(f"serving kitchen at {server.url} until Ctrl-C", flush=True)
            try:
                server.wait()
            except KeyboardInterrupt:
                return
        with connect(server.url) as agent:
            print(agent.invoke("What's for dinner?"))
            print("1 + 2 =", agent.call_tool("add", a=1, b=2))


if __name__ == "__main__":
    main()
