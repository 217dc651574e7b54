"""What the tests of the transports share: operations, scripted peers, a look at an error."""

from __future__ import annotations

import array
import contextlib
import gc
import json
import os
import select
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from protolink_sync.errors import ProtoLinkError, TransportError
from protolink_sync.models import ClientRequestSpec
from protolink_sync.transport import HTTPTransport, RetryPolicy, TransportConfig
from tests.cases.server import ScriptedServer

Step = dict[str, Any]

# Nothing comes near it: it ends a test whose call hangs.
LIMIT = 20.0

ASK = ClientRequestSpec("ask", "/ask", "POST", idempotent=True)
ASK_ONCE = ClientRequestSpec("ask_once", "/ask", "POST")
LOOK = ClientRequestSpec("look", "/look", "GET", None, "none", idempotent=True)

RECV: Step = {"op": "recv"}
RECV_HEAD: Step = {"op": "recv_head"}
CLOSE: Step = {"op": "close"}
RST: Step = {"op": "rst"}
HOLD: Step = {"op": "hold"}
JSON = {"Content-Type": "application/json"}


def at_once() -> float:
    """Return the seconds within which what ends at once has ended.

    They are 0.1; more on a machine that has more to do than it has cores, where a thread that
    is ready waits for its turn, and where other processes of this test run share it.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        return 0.5
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return 0.1 if load <= (os.cpu_count() or 1) else 0.5


def send(data: str) -> Step:
    return {"op": "send", "data": data}


def reply(value: Any = None, *, status: int = 200, headers: Any = None, **words: Any) -> Step:
    """Return a step that answers with a value as JSON; ``{"ok": True}`` unless one is given."""
    body = json.dumps({"ok": True} if value is None else value)
    return {"op": "reply", "status": status, "headers": headers or JSON, "body": body, **words}


def raw_reply(body: str, headers: Any = None, **words: Any) -> Step:
    return {"op": "reply", "headers": headers or JSON, "body": body, **words}


def held_back(value: Any) -> list[Step]:
    """Return steps that answer, over TLS, and say more in the record in which the answer ends.

    The reader takes the answer from TLS to the byte, so what is more is neither there nor at the
    socket.
    """
    body = json.dumps(value).ljust(8192)
    head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
    return [send(f"{head}{len(body)}\r\n\r\n"), send(f'{body}{head}11\r\n\r\n{{"n": "no"}}')]


def serving(*connections: Iterable[Step], **words: Any) -> ScriptedServer:
    """Return a server whose nth connection runs the nth list; the last list repeats."""
    script = {"connections": [list(steps) for steps in connections], "repeat_last": True}
    return ScriptedServer(script, **words)


def answering(*replies: Step | list[Step], **words: Any) -> ScriptedServer:
    """Return a server that answers the nth request with the nth reply; the last one repeats."""
    lists = [steps if isinstance(steps, list) else [steps] for steps in replies or (reply(),)]
    return ScriptedServer({"routes": {"*": lists}}, **words)


def transport(server: ScriptedServer | None = None, **settings: Any) -> HTTPTransport:
    settings.setdefault("timeout", LIMIT)
    return HTTPTransport(None if server is None else server.base, **settings)


def retrying(attempts: int = 3, *, config: dict[str, Any] | None = None, **policy: Any) -> Any:
    """Return settings with retries whose pauses are short and without chance."""
    policy = {"initial_backoff": 0.01, "jitter": 0.0, **policy}
    retry = RetryPolicy(max_attempts=attempts, **policy)
    return TransportConfig(retry=retry, **(config or {}))


def failed(
    client: Any,
    spec: ClientRequestSpec = ASK,
    url: str | None = None,
    data: Any = None,
    **words: Any,
) -> Any:
    """Make a call that must fail, and return its error: one of the library's in any case."""
    with pytest.raises(ProtoLinkError) as caught:
        client.send(spec, url, {} if data is None else data, **words)
    return caught.value


def check_whole(error: TransportError, server: ScriptedServer, *words: str) -> None:
    """Check that an error says which call it is about, and in its message what happened."""
    assert error.url == server.base
    assert error.request_id is not None
    assert len(error.request_id) == 32
    assert error.elapsed is not None
    assert 0 <= error.elapsed < LIMIT
    assert error.attempt_count == 1
    assert error.attempts == ()
    assert str(error).startswith(f"ask to {server.base}: ")
    for word in words:
        assert word in str(error)


def about(seconds: float) -> Any:
    """Return what equals a time that is no shorter, and longer by what a busy machine needs."""
    return pytest.approx(seconds + 0.24, abs=0.25)


def wait_until(condition: Callable[[], Any], limit: float = 5.0) -> bool:
    """Wait for what only asking can tell; say whether it came."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


class Calling:
    """A call in a thread of its own; :meth:`result` returns or raises what it did."""

    def __init__(self, function: Callable[..., Any], *args: Any, **words: Any) -> None:
        self._outcome: list[Any] = []

        def run() -> None:
            try:
                self._outcome = [function(*args, **words), None]
            except BaseException as error:
                self._outcome = [None, error]

        self._thread = threading.Thread(target=run, name="calling", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def result(self, limit: float = LIMIT) -> Any:
        self._thread.join(limit)
        assert not self._thread.is_alive(), f"the call did not end in {limit} s"
        value, error = self._outcome
        if error is not None:
            raise error
        return value


def together(count: int, function: Callable[[int], Any]) -> list[Any]:
    """Return what so many calls at the same time return."""
    start = threading.Barrier(count)

    def one(number: int) -> Any:
        start.wait(LIMIT)
        return function(number)

    return [call.result() for call in [Calling(one, number) for number in range(count)]]


def in_fresh_process(program: str, *arguments: str, **environment: str) -> str:
    """Run a program in a Python of its own, warnings as errors; return what it prints."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert not run.stderr, run.stderr[-3000:]
    return run.stdout


def descriptors() -> Iterator[int]:
    """Give each open socket of this process (Linux)."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                yield int(name)


@contextlib.contextmanager
def connections_to(port: int) -> Iterator[list[socket.socket]]:
    """Give this process's ends of the connections to a port, as duplicates."""
    with contextlib.ExitStack() as stack:
        found = []
        for number in [*descriptors()]:
            with contextlib.suppress(OSError, IndexError):
                sock = stack.enter_context(socket.socket(fileno=os.dup(number)))
                if sock.getpeername()[1] == port:
                    found.append(sock)
        yield found


@contextlib.contextmanager
def no_garbage_collected() -> Iterator[None]:
    """Let nothing be freed but what nobody holds any more."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def unread(sock: socket.socket) -> int:
    """Return how many bytes have arrived at a socket and were not read yet."""
    import fcntl  # not on Windows
    import termios

    count = array.array("i", [0])
    fcntl.ioctl(sock, termios.FIONREAD, count)
    return count[0]


def something_to_read(port: int) -> bool:
    """Say whether anything, if only an end, has arrived on a connection to a port."""
    with connections_to(port) as sockets:
        return bool(select.select(sockets, [], [], 0)[0])
