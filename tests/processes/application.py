"""An old application: one client, made and used when the module is imported.

The server's workers import it, or are forked after it was imported.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from protolink_sync import Task
from protolink_sync.models import Message
from tests.processes.calls import Peer, ask, wrong_answers

PEER = Peer.from_environment()
client = PEER.client()
if os.environ.get("USED_AT_IMPORT"):
    assert wrong_answers(client, "import", 1) == 0
    if PEER.alias == "sse":
        list(client.send_task_streaming(PEER.url, Task.create(Message.user("echo import"))))
LEFT = [thread.name for thread in threading.enumerate() if thread.name.startswith("protolink")]


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer ``/ask`` and ``/stream`` with what the peer makes of the query, ``/many`` with how
    many of so many calls got another's answer, the others alone.
    """
    path, text = environ["PATH_INFO"], unquote(environ["QUERY_STRING"])
    start_response("200 OK", [("Content-Type", "text/plain")])
    if path == "/ask":
        return [ask(client, text).encode()]
    if path == "/stream":
        return _relayed(text)
    if path == "/many":
        who, _, count = text.partition(" ")
        return [f"{who}: {wrong_answers(client, who, int(count))} of {count} are wrong".encode()]
    if path == "/left":
        return [" ".join(LEFT).encode()]
    return [str(os.getpid()).encode()]


def _relayed(text: str) -> Iterator[bytes]:
    task = Task.create(Message.user(text))
    with client.send_task_streaming(PEER.url, task) as stream:
        for event in stream:
            yield f"{event.get('message', event['type'])}\n".encode()
