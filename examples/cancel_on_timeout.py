"""Give an agent half a second; when the time is over, stop the task as well."""

import time

from protolink_sync import AgentCard, AgentClient, Task, TransportTimeoutError
from protolink_sync.server import Agent


class Slow(Agent):
    """Works for ten seconds, and looks between two pieces whether it shall stop."""

    def handle_task(self, task: Task) -> Task:
        run = self.current_run()
        for _ in range(1000):
            if run.cancelled:
                print(f"agent: stopped ({run.reason})")
                return task
            time.sleep(0.01)
        return task.complete("done")


def ask(client: AgentClient, agent_url: str, task: Task, seconds: float) -> Task:
    """Return the task as the agent gives it back, or as canceled when the time is over."""
    try:
        return client.send_task(agent_url, task, timeout=seconds)
    except TransportTimeoutError as error:
        # The end of the call is not the end of the task.
        print(f"caller: gave up in phase {error.phase!r}")
        return client.cancel_task(agent_url, task.id, reason="out of time", timeout=5)


def main() -> None:
    agent = Slow(AgentCard("slow", "takes its time", "http://127.0.0.1"))
    with agent.serve("http://127.0.0.1:0") as server, AgentClient("http") as client:
        task = ask(client, server.url, Task.create("work"), 0.5)
    # Closing the server waited for the handler, so its line stands above this one.
    print(f"caller: the task is {task.state.value}")


if __name__ == "__main__":
    main()
