"""A Flask view that relays an agent's answer to the browser as it comes. Needs Flask.

In the browser: ``new EventSource("/ask?question=...")``. Serve it with threads, because each open
stream keeps one busy: ``gunicorn --workers 1 --threads 32 ...``.
"""

import json
import threading
from collections.abc import Iterator

from flask import Flask, Response, jsonify, request

from protolink_sync import AgentCard, AgentClient, EventStream, Task, TransportError
from protolink_sync.server import Agent

POEM = "Sing, goddess, the anger of Achilles"


def create_app(agent_url: str, agents: AgentClient) -> Flask:
    """Make the application; its client is shared by all requests."""
    app = Flask(__name__)

    @app.get("/ask")
    def ask() -> Response | tuple[Response, int]:
        task = Task.create_infer(prompt=request.args["question"])
        try:
            stream = agents.send_task_streaming(agent_url, task, idle_timeout=25)
        except TransportError as error:
            # Nothing has been sent yet, so a status can still be given.
            app.logger.warning("%s", error)
            return jsonify(error="the agent cannot be asked"), 502
        response = Response(relayed(stream), mimetype="text/event-stream")
        # At the end, and when the browser leaves: then the agent stops, too.
        response.call_on_close(stream.close)
        return response

    return app


def relayed(stream: EventStream) -> Iterator[str]:
    """Yield what the browser gets: pieces of the answer, then how it ended."""
    try:
        for piece in stream.text():
            # As JSON, because a line break would end the event.
            yield f"data: {json.dumps(piece)}\n\n"
        yield f"event: end\ndata: {json.dumps(stream.result().state.value)}\n\n"
    except TransportError as error:
        # The status is sent already: the browser has to be told in the stream.
        yield f"event: failed\ndata: {json.dumps(type(error).__name__)}\n\n"


def main() -> None:
    agent = Agent(AgentCard("poet", "recites", "http://127.0.0.1"))
    stopped = threading.Event()

    @agent.infer
    def answer(prompt: str) -> Iterator[str]:
        try:
            for word in POEM.split():
                yield word + " "
            while prompt == "more":
                yield "and so on "
        finally:
            stopped.set()

    with agent.serve("http://127.0.0.1:0") as server, AgentClient("sse") as agents:
        browser = create_app(server.url, agents).test_client()
        print(browser.get("/ask?question=first").get_data(as_text=True).strip())

        # A browser that leaves after the first piece of an endless answer.
        stopped.clear()
        reply = browser.get("/ask?question=more", buffered=False)
        next(reply.iter_encoded())
        reply.close()
        print(f"the agent has stopped: {stopped.wait(5)}")


if __name__ == "__main__":
    main()
