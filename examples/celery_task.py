"""A Celery task that asks an agent, and a worker that runs it. Needs Celery."""

from celery import Celery
from celery.contrib.testing.worker import start_worker

from protolink_sync import AgentCard, AgentClient, Task, TransportConnectionError
from protolink_sync.server import Agent

# A queue in this process; a real application names its broker here.
app = Celery("questions", broker="memory://", backend="cache+memory://")
app.conf.broker_transport_options = {"polling_interval": 0.05}

# One client of the module. A worker that forks its pool gives each process connections of its own.
agents = AgentClient("http", timeout=25)


@app.task(bind=True, max_retries=3, default_retry_delay=1)
def ask(self, agent_url: str, task: dict) -> dict:
    """Submit a task to an agent.

    The task was made by the caller: Celery may run this twice, and the agent knows a task by its id
    and content, so it carries it out once.
    """
    try:
        return agents.send_task(agent_url, Task.from_dict(task)).to_dict()
    except TransportConnectionError as error:
        raise self.retry(exc=error) from error


def main() -> None:
    runs = []
    agent = Agent(AgentCard("librarian", "recommends books", "http://127.0.0.1"))

    @agent.infer
    def answer(prompt: str) -> str:
        runs.append(prompt)
        return f"{prompt} Read Faust."

    with agents, agent.serve("http://127.0.0.1:0") as server:
        task = Task.create_infer(prompt="What shall I read?").to_dict()
        with start_worker(app, pool="solo", perform_ping_check=False, loglevel="ERROR"):
            results = [ask.delay(server.url, task) for _ in range(2)]
            for result in results:
                print(Task.from_dict(result.get(timeout=20)).text)
        print("the agent was asked", len(runs), "time")


if __name__ == "__main__":
    main()
