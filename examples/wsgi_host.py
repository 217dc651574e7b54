"""Host an agent as a WSGI application, here in the server of the standard library.

In production: ``gunicorn --workers 1 --threads 32 wsgi_host:application``. One process, because the
tasks in execution and the remembered answers live in it.
"""

import socketserver
import threading
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from protolink_sync import AgentCard, connect
from protolink_sync.server import Agent

agent = Agent(AgentCard("adder", "adds numbers", "http://127.0.0.1:8020"))


@agent.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


application = agent.wsgi_app()


class ThreadingServer(socketserver.ThreadingMixIn, WSGIServer):
    """A thread for each request: a task may be cancelled while it runs."""

    daemon_threads = True


class QuietHandler(WSGIRequestHandler):
    """Writes no log line for each request."""

    def log_message(self, *args: object) -> None:
        pass


def main() -> None:
    server = make_server(
        "127.0.0.1", 0, application, server_class=ThreadingServer, handler_class=QuietHandler
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with connect(f"http://127.0.0.1:{server.server_port}") as peer:
            print(f"{peer.card.name} {peer.card.description}")
            print(f"2 + 3 = {peer.call_tool('add', a=2, b=3)}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    main()
