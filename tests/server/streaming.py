"""An agent that streams, and the plainest reader of server-sent events there is."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from urllib.parse import urlsplit

from protolink_sync import AgentClient
from protolink_sync.models import Task
from protolink_sync.server import Agent
from tests.server.hosting import LIMIT, Kitchen, card, text_task, wait_until

PATIENCE = 20.0  # a heartbeat that no test waits for


def status(state, **members):
    return {"type": "task_status_update", "new_state": state, **members}


class Theatre(Kitchen):
    """Does in a stream what the first word of the task's text says."""

    heartbeat = PATIENCE

    def __init__(self, **settings):
        super().__init__(**settings)
        self.made = 0
        self.closed = threading.Event()
        self.reason = None

    def handle_task_streaming(self, task):
        word, _, rest = task.get_last_item().text.partition(" ")
        self.executions[task.id] += 1
        if word == "many":
            return self._many(task, int(rest))
        if word == "large":
            return self._many(task, int(rest), "x" * 64 * 1024)
        if word in ("wait", "stubborn", "impolite"):
            return self._silent(task, word)
        return self._short(task, word, rest)

    def _short(self, task, word, rest):
        yield {"type": "task_progress", "progress": 10, "message": rest}
        if word == "raise":
            raise LookupError(rest)
        if word == "big":
            yield "x" * int(rest)
        if word == "bytes":
            yield b"x"
        if word == "untyped":
            yield {"final": True}
        if word == "exit":
            raise SystemExit("out")
        return task.complete(rest)

    def _many(self, task, most, text=""):
        try:
            for self.made in range(1, most + 1):
                yield {"n": self.made, "text": text}
        finally:
            self.reason = self.current_run().reason
            self.closed.set()
        return task.complete(str(most))

    def _silent(self, task, word):
        """Wait for the gate; ``wait`` also ends when the task is cancelled."""
        run = self.current_run()
        self.started.release()
        try:
            while not self.gate.wait(0.005):
                if run.cancelled and word == "wait":
                    break
            if word == "impolite":
                yield status(
                    "completed", final=True, metadata={"task": task.complete("").to_dict()}
                )
        finally:
            self.reason = run.reason
            self.closed.set()
        yield {"type": "task_progress", "message": "late"}


@contextlib.contextmanager
def streaming(agent, **serving):
    """Serve an agent over HTTP and give a client that streams, bound to it, and its handle."""
    with (
        agent.serve("http://127.0.0.1:0", **serving) as server,
        AgentClient("sse", server.url, timeout=LIMIT) as client,
    ):
        try:
            yield client, server
        finally:
            if isinstance(agent, Kitchen):
                agent.gate.set()


def begin(client, server, text, **settings):
    """Stream a task that consists of text."""
    task = text if isinstance(text, Task) else text_task(text)
    return client.send_task_streaming(server.url, task, **settings)


def request(text="", *, version="1.1", headers="", body=None):
    """Return the bytes of a request for a stream."""
    if body is None:
        body = json.dumps(text_task(text).to_dict()).encode()
    head = f"POST /tasks/stream HTTP/{version}\r\nHost: x\r\n{headers}Content-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


def connected(server):
    parts = urlsplit(server.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=LIMIT)


def dechunked(body):
    """Return the chunks of a body; it must be whole."""
    chunks, at = [], 0
    while True:
        line = body.index(b"\r\n", at)
        begin = line + 2
        end = begin + int(body[at:line], 16)
        assert body[end : end + 2] == b"\r\n"
        at = end + 2
        if begin == end:
            assert at == len(body)
            return chunks
        chunks.append(body[begin:end])


def envelopes(body):
    """Return the envelopes in a body without comments, checking the form of each event."""
    assert body.endswith(b"\n\n")
    found = []
    for block in body[:-2].split(b"\n\n"):
        assert block.startswith(b"data: ")
        assert b"\n" not in block
        found.append(json.loads(block[6:]))
    return found


def standing(count, still=0.2):
    """Return a number once it has not changed for some time."""
    seen = []

    def stands():
        seen.append(count())
        return len(seen) > still / 0.002 and len(set(seen[-int(still / 0.002) :])) == 1

    wait_until(stands)
    return seen[-1]


def stream_threads():
    return [t.name for t in threading.enumerate() if t.name.startswith("protolink-host-stream")]


__all__ = [
    "LIMIT",
    "PATIENCE",
    "Agent",
    "Theatre",
    "begin",
    "card",
    "connected",
    "dechunked",
    "envelopes",
    "request",
    "standing",
    "status",
    "stream_threads",
    "streaming",
    "text_task",
    "wait_until",
]
