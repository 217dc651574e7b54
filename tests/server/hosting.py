"""Agents to host, and the plainest clients there are: http.client and a raw socket."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections import Counter
from urllib.parse import urlsplit

import attrs

from protolink_sync.models import AgentCard, Artifact, Message, Part, Task
from protolink_sync.server import Agent

LIMIT = 5.0  # seconds for what happens at once, or never


def card(**changes):
    return AgentCard("kitchen", "does what the text says", "http://kitchen.test", **changes)


class Kitchen(Agent):
    """Does what the first word of the task's text says; ``gate`` holds those that wait."""

    def __init__(self, **settings):
        super().__init__(card(), **settings)
        self.gate = threading.Event()
        self.started = threading.Semaphore(0)
        self.ended = threading.Semaphore(0)
        self.executions = Counter()

    def handle_task(self, task):
        item = task.get_last_item()
        word, _, rest = (item.text if item is not None else "").partition(" ")
        self.executions[task.id] += 1
        if word == "echo":
            return task.complete(rest)
        if word == "count":
            return task.complete(f"{self.executions[task.id]} executions")
        if word in ("wait", "stubborn"):
            return self._wait(task, word)
        if word == "raise":
            raise RuntimeError(rest)
        if word == "big":
            return task.complete("x" * int(rest))
        if word == "need":
            return task.require_input(Message.agent("which city?"))
        if word == "nothing":
            return None
        if word == "bytes":
            return task.add_artifact(Artifact(parts=[Part("json", b"x")]))
        if word == "who":
            return task.complete(str(self.current_run().principal))
        return super().handle_task(task)

    def _wait(self, task, word):
        """Wait for the gate; ``wait`` also ends when the task is cancelled."""
        task.begin()
        self.started.release()
        run = self.current_run()
        while not self.gate.wait(0.005):
            if run.cancelled and word == "wait":
                break
        task.add_artifact(Artifact(name="partial").add_text(f"cancelled: {run.reason}"))
        self.ended.release()
        return task.complete("waited")


@attrs.frozen
class Reply:
    status: int
    headers: dict
    body: bytes

    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json()["error"]

    def task(self):
        assert self.status == 200, self.body
        return Task.from_dict(self.json())


class Caller:
    """One keep-alive connection to a hosted agent."""

    def __init__(self, url, **settings):
        parts = urlsplit(url)
        if parts.scheme == "https":
            cls = http.client.HTTPSConnection
        else:
            cls = http.client.HTTPConnection
        self.connection = cls(parts.hostname, parts.port, timeout=LIMIT, **settings)

    def request(self, method, path, body=None, **headers):
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path, body, named)
        response = self.connection.getresponse()
        told = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, told, response.read())

    def send(self, task, **headers):
        return self.request("POST", "/tasks/", task.to_dict(), **headers)

    def close(self):
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@contextlib.contextmanager
def calling(agent, **serving):
    """Serve an agent over HTTP and give one connection to it, and its handle."""
    with agent.serve("http://127.0.0.1:0", **serving) as server, Caller(server.url) as caller:
        yield caller, server


def text_task(text):
    return Task.create(Message.user(text))


def in_background(function, *args, **kwargs):
    """Call a function in a thread; the returned function waits for its result."""
    box = []

    def work():
        try:
            box.append((function(*args, **kwargs), None))
        except BaseException as error:
            box.append((None, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()

    def result():
        thread.join(LIMIT)
        assert not thread.is_alive(), "no end"
        value, error = box[0]
        if error is not None:
            raise error
        return value

    return result


def raw(url, data, *, closes=True):
    """Send bytes as they are and return all that comes back until the host closes."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=LIMIT) as sock:
        sock.sendall(data)
        if closes:
            sock.shutdown(socket.SHUT_WR)
        pieces = []
        while piece := sock.recv(65536):
            pieces.append(piece)
        return b"".join(pieces)


def wait_until(condition, limit=LIMIT):
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)
