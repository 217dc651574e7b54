"""Give an agent half a second; then have it stop, and take what it has done by then."""

import threading
import time
from collections.abc import Iterator
from typing import Any

from protolink_sync import AgentCard, AgentClient, Task
from protolink_sync.server import Agent


class Slow(Agent):
    """Works for ten seconds, and tells of each piece."""

    def handle_task_streaming(self, task: Task) -> Iterator[dict[str, Any]]:
        for number in range(1, 101):
            if self.current_run().cancelled:
                return
            time.sleep(0.1)
            yield {"type": "task_progress", "progress": number, "message": f"piece {number}"}
        task.complete("done")


def ask(client: AgentClient, agent_url: str, task: Task, seconds: float) -> tuple[Task, int]:
    """Return the task as the agent leaves it, and how many pieces it told of."""
    pieces = 0
    stream = client.send_task_streaming(agent_url, task)
    # Not timeout=: that would end the stream here, and how the task ended would not be known.
    timer = threading.Timer(seconds, stream.cancel, ["out of time"])
    timer.start()
    try:
        for event in stream:
            pieces += event.get("type") == "task_progress"
    finally:
        timer.cancel()
    return stream.result(), pieces


def main() -> None:
    agent = Slow(AgentCard("slow", "takes its time", "http://127.0.0.1"))
    with agent.serve("http://127.0.0.1:0") as server, AgentClient("sse") as client:
        task, pieces = ask(client, server.url, Task.create("work"), 0.5)
    print(f"the task is {task.state.value}: {task.metadata['cancel_reason']}")
    print(f"some of 100 pieces are done: {0 < pieces < 100}")


if __name__ == "__main__":
    main()
