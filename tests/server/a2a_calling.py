"""Calls over A2A with the plainest client there is, and agents that answer them."""

from __future__ import annotations

import contextlib
import json

from protolink_sync.a2a.wire import Message
from protolink_sync.server import Agent
from tests.server.hosting import Caller, Kitchen, card

HEADERS = {"Content_Type": "application/json", "A2A_Version": "1.0"}
CARD = "/.well-known/agent-card.json"


def message(text, **members):
    return {"message": {**Message.user(text).to_dict(), **members}}


class A2ACaller(Caller):
    """One keep-alive connection that speaks JSON-RPC."""

    def rpc(self, method, params=None, *, id=7, **headers):
        body = {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}
        return self.request("POST", "/", body, **{**HEADERS, **headers})

    def result(self, method, params=None, **headers):
        reply = self.rpc(method, params, **headers)
        assert reply.status == 200, reply.body
        value = reply.json()
        assert value["jsonrpc"] == "2.0"
        assert value["id"] == 7
        assert "error" not in value, value
        return value["result"]

    def code(self, method, params=None, **headers):
        """Return the code of the error that a call is refused with."""
        reply = self.rpc(method, params, **headers)
        assert reply.status == 200, reply.body
        return reply.error["code"]

    def send(self, text, *, configuration=None, tenant="", **members):
        params = message(text, **members)
        if configuration is not None:
            params["configuration"] = configuration
        if tenant:
            params["tenant"] = tenant
        return self.result("SendMessage", params)["task"]

    def start(self, text, **members):
        return self.send(text, configuration={"returnImmediately": True}, **members)

    def stream(self, method, params):
        """Begin a stream; it has a connection of its own."""
        return Events(self.connection.host, self.connection.port, method, params)


class Events:
    """The events of one stream, as results of JSON-RPC responses."""

    def __init__(self, host, port, method, params):
        self._caller = Caller(f"http://{host}:{port}")
        body = {"jsonrpc": "2.0", "id": "s", "method": method, "params": params}
        named = {name.replace("_", "-"): value for name, value in HEADERS.items()}
        self._caller.connection.request("POST", "/", json.dumps(body), named)
        self.response = self._caller.connection.getresponse()
        self.type = self.response.getheader("Content-Type")

    def __iter__(self):
        return self

    def __next__(self):
        """Return the next event; comments are passed over."""
        while line := self.response.readline():
            if line.startswith(b"data: "):
                value = json.loads(line[6:])
                assert value["id"] == "s"
                return value["result"] if "result" in value else value["error"]
        raise StopIteration

    def line(self):
        """Return the next line as it came."""
        return self.response.readline()

    def close(self):
        self._caller.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@contextlib.contextmanager
def calling(agent, **serving):
    """Serve an agent over HTTP and A2A, and give one connection to it, and its handle."""
    with (
        agent.serve("http://127.0.0.1:0", a2a=True, **serving) as server,
        A2ACaller(server.url) as caller,
    ):
        try:
            yield caller, server
        finally:
            if isinstance(agent, Kitchen):
                agent.gate.set()


def state(task):
    return task["status"]["state"].removeprefix("TASK_STATE_")


def said(task):
    """Return the text of a task's status message."""
    return "".join(part["text"] for part in task["status"]["message"]["parts"])


def model(**settings):
    """Return an agent whose model says the prompt again, word by word."""
    agent = Agent(card(), **settings)

    @agent.infer
    def answer(prompt):
        for number, word in enumerate(prompt.split()):
            yield f" {word}" if number else word

    return agent
