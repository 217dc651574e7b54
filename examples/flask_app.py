"""A Flask view that asks an agent. Needs Flask."""

from flask import Flask, Response, jsonify, request

from protolink_sync import AgentCard, AgentClient, TransportError, TransportTimeoutError
from protolink_sync.server import Agent


def create_app(agent_url: str, agents: AgentClient) -> Flask:
    """Make the application; its client is shared by all requests."""
    app = Flask(__name__)

    @app.post("/ask")
    def ask() -> tuple[Response, int]:
        question = request.get_json()["question"]
        try:
            # Less than the server's own limit, so that the view answers and not the limit.
            task = agents.send_infer_task(question, agent_url, timeout=25)
        except TransportTimeoutError:
            return jsonify(error="the agent needs too long"), 504
        except TransportError as error:
            app.logger.warning("%s", error)
            return jsonify(error="the agent cannot be asked"), 502
        return jsonify(state=task.state.value, answer=task.text), 200

    return app


def main() -> None:
    agent = Agent(AgentCard("librarian", "recommends books", "http://127.0.0.1"))

    @agent.infer
    def answer(prompt: str) -> str:
        return f"{prompt} Read Faust."

    with AgentClient("http") as agents:
        with agent.serve("http://127.0.0.1:0") as server:
            browser = create_app(server.url, agents).test_client()
            reply = browser.post("/ask", json={"question": "What shall I read?"})
            print(reply.status_code, reply.get_json()["answer"])

        # The agent is gone; the view says so.
        reply = browser.post("/ask", json={"question": "And then?"})
        print(reply.status_code, reply.get_json()["error"])


if __name__ == "__main__":
    main()
