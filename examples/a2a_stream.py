"""Read what an A2A agent writes while it writes it, and stop it when it is enough."""

import time
from collections.abc import Iterator

from protolink_sync import AgentCard
from protolink_sync.a2a import A2AClient
from protolink_sync.server import Agent

agent = Agent(AgentCard("poet", "writes poems", "http://127.0.0.1"))


@agent.infer
def write(prompt: str) -> Iterator[str]:
    """Write line by line, slowly, until somebody stops it."""
    lines = 3 if "short" in prompt else 1000
    for number in range(1, lines + 1):
        if agent.current_run().cancelled:
            return
        time.sleep(0.02)
        yield f"line {number}\n"


def main() -> None:
    with agent.serve("http://127.0.0.1:0", a2a=True) as server, A2AClient(server.url) as client:
        with client.stream_message("a short poem about the sea") as stream:
            for piece in stream.text():
                print(piece, end="", flush=True)
        print("the task is", stream.result().status.state.value)

        with client.stream_message("an epic about the sea") as stream:
            for event in stream:
                if "line 3" in event.text:
                    # The stream goes on: its last event says how the task ended.
                    stream.cancel("that is enough")
        print("the task is", stream.result().status.state.value)


if __name__ == "__main__":
    main()
