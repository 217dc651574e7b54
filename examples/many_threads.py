"""Sixteen threads share one client; each uses one connection at most."""

import time
from concurrent.futures import ThreadPoolExecutor

from protolink_sync import AgentCard, AgentClient
from protolink_sync.server import Agent

THREADS = 16
QUESTIONS = [f"Question {number}" for number in range(160)]

agent = Agent(AgentCard("echo", "needs 20 ms for an answer", "http://127.0.0.1"))


@agent.infer
def answer(prompt: str) -> str:
    time.sleep(0.02)
    return f"{prompt}: answered"


def main() -> None:
    with agent.serve("http://127.0.0.1:0") as server, AgentClient("http", timeout=10) as client:

        def ask(question: str) -> str:
            return client.send_infer_task(question, server.url).text

        with ThreadPoolExecutor(max_workers=THREADS) as threads:
            answers = list(threads.map(ask, QUESTIONS))

        right = sum(a == f"{q}: answered" for q, a in zip(QUESTIONS, answers, strict=True))
        print(f"{right} of {len(QUESTIONS)} answers are right")
        print(f"at most {THREADS} connections: {server.connections <= THREADS}")


if __name__ == "__main__":
    main()
