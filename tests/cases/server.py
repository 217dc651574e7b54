"""A server that plays a case's script on the loopback, byte by byte, and remembers what came.

It is honest: a script it does not understand, a placeholder without a value, an event
nobody fired or a request it cannot read is a problem, and :meth:`ScriptedServer.check`
turns problems into a failed test.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.cases.conversation import Conversation
from tests.cases.records import Connection, Request
from tests.cases.script import ScriptError, Steps, check_script, step_lists
from tests.cases.waiting import poll_once

_JOIN_LIMIT = 10.0
_NOT_FOUND: Steps = [{"op": "reply", "status": 404, "body": "no such route"}]
_CLOSE: Steps = [{"op": "close"}]


class _Gate:
    """A flag that waiting connections see as a readable socket."""

    def __init__(self, needed: int = 1) -> None:
        self.needed = needed
        self.count = 0
        self.signal, self._raiser = socket.socketpair()

    def add(self) -> None:
        """Count one; the needed one opens the gate for good. The server's lock is held."""
        self.count += 1
        if self.count == self.needed:
            self._raiser.send(b"!")

    def close(self) -> None:
        self.signal.close()
        self._raiser.close()


class ScriptedServer:
    """Play ``input.server`` of a case.

    Args:
        script: What to play, in the language of :mod:`tests.cases.script`.
        host: Address to listen on; the port is free.
        peers: Started servers that ``{{base:N}}`` names.
        tls: Serve TLS with this context.

    Raises:
        ScriptError: The script has an unknown word, step or placeholder.
    """

    def __init__(
        self,
        script: Mapping[str, Any],
        *,
        host: str = "127.0.0.1",
        peers: Sequence[ScriptedServer] = (),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        check_script(script)
        self.peers = list(peers)
        self.tls = tls
        self.requests: list[Request] = []
        self.connections: list[Connection] = []
        self.problems: list[str] = []
        self._script = script
        self._served: dict[str, int] = {}
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._stop = _Gate()
        self._events: dict[str, _Gate] = {}
        self._barriers: dict[str, _Gate] = {}
        self._fillers: list[socket.socket] = []
        self._make_gates()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.socket(family)
        self._listener.bind((host, 0))
        self.host = host
        self.port: int = self._listener.getsockname()[1]
        self._listen()

    def __enter__(self) -> ScriptedServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.stop()
        if kind is None:
            self.check()

    @property
    def address(self) -> str:
        """Host and port as they stand in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def base(self) -> str:
        """The URL a client is given."""
        return f"http{'s' if self.tls else ''}://{self.address}"

    @property
    def ws_base(self) -> str:
        """The same with the scheme of WebSockets."""
        return f"ws{'s' if self.tls else ''}://{self.address}"

    def fire(self, event: str) -> None:
        """Let the steps go on that wait for an event, now and later."""
        with self._changed:
            if event not in self._events:
                raise ScriptError(f"the script waits for {sorted(self._events)}, not {event!r}")
            self._events[event].add()

    def wait_until(self, condition: Callable[[ScriptedServer], bool], within: float) -> bool:
        """Wait until what was recorded meets a condition; say whether it did in time."""
        with self._changed:
            return self._changed.wait_for(lambda: condition(self), within)

    def wait_for_requests(self, count: int, within: float = 10.0) -> None:
        """Wait until that many requests were read, and fail if they do not come."""
        if not self.wait_until(lambda s: len(s.requests) >= count, within):
            raise AssertionError(
                f"{len(self.requests)} requests came within {within} s, expected {count}"
            )

    def wait_for_end(self, number: int = 1, within: float = 10.0) -> str | None:
        """Wait until the nth connection ended; return who ended it, None if nobody did."""

        def ended(_: ScriptedServer) -> bool:
            known = self.connections[:number]
            return len(known) == number and known[-1].closed_by is not None

        return self.connections[number - 1].closed_by if self.wait_until(ended, within) else None

    def stop(self) -> None:
        """End every connection and thread at once; may be called twice."""
        with self._changed:
            self._stop.add()
            if self._stop.count > 1:
                return
        for thread in list(self._threads):
            thread.join(_JOIN_LIMIT)
        # The accepting thread is the first of the list: no new ones come once it ended.
        for thread in self._threads:
            thread.join(_JOIN_LIMIT)
        alive = [thread.name for thread in self._threads if thread.is_alive()]
        for sock in (self._listener, *self._fillers):
            sock.close()
        for gate in (self._stop, *self._events.values(), *self._barriers.values()):
            gate.close()
        if alive:
            raise RuntimeError(f"threads of a scripted server did not end: {alive}")

    def check(self) -> None:
        """Fail if anything went otherwise than the script means it."""
        if self.problems:
            raise AssertionError("scripted server: " + "; ".join(self.problems))

    # -- for the connections ---------------------------------------------------------------

    @property
    def stop_signal(self) -> socket.socket:
        """Readable once the server stops."""
        return self._stop.signal

    def problem(self, text: str) -> None:
        """Remember what went wrong."""
        with self._changed:
            self.problems.append(text)
            self._changed.notify_all()

    def requested(self, request: Request) -> None:
        """Remember a request."""
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()

    def closed(self, record: Connection, by: str) -> None:
        """Remember a connection's end."""
        with self._changed:
            record.closed_at = time.monotonic()
            record.closed_by = by
            self._changed.notify_all()

    def steps_of_connection(self, number: int) -> Steps | None:
        """Return the steps of the nth connection, None when requests are routed.

        Beyond the last list a connection is closed at once, unless ``repeat_last`` says
        otherwise.
        """
        if "connections" not in self._script:
            return None
        lists = self._script["connections"]
        if number > len(lists) and not self._script.get("repeat_last"):
            return _CLOSE
        return lists[min(number, len(lists)) - 1]

    def steps_of_route(self, request: Request) -> Steps:
        """Return the steps for a request: its route's next list, or the last one again."""
        routes = self._script["routes"]
        for key in (request.name, f"{request.method} *", "*"):
            if routes.get(key):
                with self._changed:
                    number = self._served.get(key, 0)
                    self._served[key] = number + 1
                return routes[key][min(number, len(routes[key]) - 1)]
        return _NOT_FOUND

    def event_gate(self, event: str) -> socket.socket:
        """Return what becomes readable when the event is fired."""
        return self._events[event].signal

    def arrive(self, barrier: str) -> socket.socket:
        """Count a connection at a barrier; return what becomes readable when all came."""
        with self._changed:
            self._barriers[barrier].add()
            return self._barriers[barrier].signal

    def arrived(self, barrier: str) -> int:
        """Say how many came to a barrier."""
        return self._barriers[barrier].count

    # -- starting --------------------------------------------------------------------------

    def _make_gates(self) -> None:
        for steps in step_lists(self._script):
            for step in steps:
                # Several steps may wait for one event.
                if step["op"] == "wait" and step["event"] not in self._events:
                    self._events[step["event"]] = _Gate()
                elif step["op"] == "barrier" and step["name"] not in self._barriers:
                    self._barriers[step["name"]] = _Gate(step["n"])

    def _listen(self) -> None:
        how = self._script.get("listen")
        if how is False:
            return  # bound, so that nobody else gets the port, but refusing
        if how == "blackhole":
            self._fill_backlog()
            return
        self._listener.listen(512)
        self._listener.setblocking(False)
        self._start(self._accept, "scripted-server")

    def _fill_backlog(self) -> None:
        """Make connects hang: the queue is full and nobody takes from it."""
        self._listener.listen(0)
        for _ in range(16):
            filler = socket.socket(self._listener.family)
            self._fillers.append(filler)
            filler.settimeout(0.2)
            try:
                filler.connect((self.host, self.port))
            except TimeoutError:
                return
        raise RuntimeError("this system takes every connection, so no address stays silent")

    def _start(self, target: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            _, signals = poll_once(self._listener, [self.stop_signal], read=True)
            if signals:
                return
            with contextlib.suppress(BlockingIOError, ConnectionError):
                sock, _ = self._listener.accept()
                self._serve(sock)

    def _serve(self, sock: socket.socket) -> None:
        with self._changed:
            record = Connection(len(self.connections) + 1, time.monotonic())
            self.connections.append(record)
            self._changed.notify_all()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        conversation = Conversation(self, sock, record)
        self._start(conversation.run, f"scripted-server-{record.number}")
