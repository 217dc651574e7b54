"""The first call, to an agent that this program serves itself."""

from protolink_sync import AgentCard, AgentClient, Task
from protolink_sync.server import Agent

agent = Agent(AgentCard("clerk", "knows the opening hours", "http://127.0.0.1"))


@agent.infer
def answer(prompt: str) -> str:
    return f"You asked {prompt!r}. We are open from 9 to 5."


@agent.tool
def is_open(hour: int) -> bool:
    """Whether the shop is open at some hour."""
    return 9 <= hour < 17


def main() -> None:
    with agent.serve("http://127.0.0.1:0") as server, AgentClient("http", timeout=10) as client:
        card = client.get_agent_card(server.url)
        print(f"{card.name} {card.description}")

        task = client.send_infer_task("When are you open?", server.url)
        print(f"{task.state.value}: {task.text}")

        task = client.send_task(server.url, Task.create_tool_call("is_open", {"hour": 20}))
        print(f"open at 20: {task.get_output()}")


if __name__ == "__main__":
    main()
