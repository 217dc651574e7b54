"""Show in the terminal how far a task is, while the agent works on it."""

import sys
import time
from collections.abc import Iterator
from typing import Any

from protolink_sync import AgentCard, AgentClient, EventStream, Task
from protolink_sync.server import Agent

CHAPTERS = ("weather", "hotels", "flights", "food")
# In a terminal the bar stays on its line; a file or pipe gets a line for each step.
BEGIN, END = ("\r\x1b[K", "") if sys.stdout.isatty() else ("", "\n")


class Guide(Agent):
    """Writes a travel guide, chapter by chapter."""

    def handle_task_streaming(self, task: Task) -> Iterator[dict[str, Any]]:
        for number, chapter in enumerate(CHAPTERS, start=1):
            time.sleep(0.05)
            yield {
                "type": "task_progress",
                "progress": 100 * number // len(CHAPTERS),
                "message": chapter,
            }
        task.complete(f"a guide with {len(CHAPTERS)} chapters")


def show(stream: EventStream) -> Task:
    """Draw the progress of a stream, and return the finished task."""
    for event in stream:
        # An agent may send more than this program knows.
        if event.get("type") == "task_progress":
            percent = event["progress"]
            bar = "#" * (percent // 10)
            print(f"{BEGIN}[{bar:10}] {percent:3} %  {event['message']}", end=END, flush=True)
    print(BEGIN, end="")
    return stream.result()


def main() -> None:
    agent = Guide(AgentCard("guide", "writes travel guides", "http://127.0.0.1"))
    with agent.serve("http://127.0.0.1:0") as server, AgentClient("sse") as client:
        task = show(client.send_task_streaming(server.url, Task.create("a guide to Athens")))
    print(f"{task.state.value}: {task.text}")


if __name__ == "__main__":
    main()
