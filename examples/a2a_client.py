"""Call an A2A agent: discover it, ask it, be asked back, and see what it knows."""

from protolink_sync import AgentCard, Message, Task
from protolink_sync.a2a import A2AClient, TaskState
from protolink_sync.server import Agent


class Waiter(Agent):
    """Books a table, and asks for the city if nobody said it."""

    def handle_task(self, task: Task) -> Task:
        said = task.messages[-1].text
        if said == "book a table":
            return task.require_input(Message.agent("In which city?"))
        return task.complete(f"A table is booked in {said}")


def main() -> None:
    agent = Waiter(AgentCard("waiter", "books tables", "http://127.0.0.1"))
    with agent.serve("http://127.0.0.1:0", a2a=True) as server, A2AClient(server.url) as client:
        card = client.fetch_agent_card()
        print(f"{card.name} {card.description}, over A2A {card.interfaces[0].protocol_version}")

        task = client.send_message("book a table")
        if task.status.state is TaskState.INPUT_REQUIRED:
            question = task.status.message
            print("asked back:", question.text if question else "")
            task = client.send_message("Athens", task_id=task.id, context_id=task.context_id)
        print(f"{task.status.state.value}: {task.text}")
        print("tasks of this agent:", len(list(client.list_tasks())))


if __name__ == "__main__":
    main()
