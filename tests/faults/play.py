"""Play a cell: one call that meets the fault, and one that must not notice it any more."""

from __future__ import annotations

import contextlib
import ssl
import time
from collections.abc import Iterator
from typing import Any

import attrs
import trustme

from protolink_sync import A2AClient, Message, Task
from protolink_sync.config import TransportConfig, TransportLimits
from protolink_sync.errors import ProtoLinkError, TransportError
from protolink_sync.models import ClientRequestSpec
from protolink_sync.security import BearerToken, TLSConfig
from protolink_sync.specs import TASK_REQUEST
from protolink_sync.transport import (
    GRPCTransport,
    HTTPTransport,
    RuntimeTransport,
    SSEJSONRPCTransport,
    WebSocketTransport,
)
from tests.faults.cells import Cell, Told
from tests.faults.inside import FaultyAgent
from tests.faults.peer import NAME, Certificates, FaultyPeer, Resolver
from tests.faults.wires import LIMIT

BUDGET = 0.2
"""Seconds of a call whose fault has no end."""

SLACK = 0.1
"""Seconds by which such a call may be late."""

_LONG = 10.0  # a call whose fault ends by itself, and the call that follows, never need it

# How often a cell is tried whose only fault is its time, or that other programs kept from
# meeting its fault: they may have the processor.
_TRIES = 4

_MEETING = 2.0  # seconds in which a fault must have come

# More than the kernel holds of a connection whose reader takes little, and little enough to be
# encoded in a small part of the budget.
_UNREAD = 4_000_000
_LARGEST = 5_000_000
_TOO_LARGE = 6_000_000

_BEFORE_ALL = ("resolve", "connect", "tls")

ASK = ClientRequestSpec("ask", "/ask", "POST", idempotent=True)

_CONFIG = TransportConfig(
    limits=TransportLimits(
        max_request_bytes=_LARGEST, max_response_bytes=LIMIT, max_event_bytes=LIMIT
    )
)

_KINDS: dict[str, Any] = {
    "http": HTTPTransport,
    "sse": SSEJSONRPCTransport,
    "ws": WebSocketTransport,
    "grpc": GRPCTransport,
}
_SCHEMES = {"http": "http", "sse": "http", "a2a": "http", "ws": "ws", "grpc": "grpc"}


@attrs.define
class Outcome:
    """What a cell came to.

    Args:
        told: What the caller was told.
        seconds: How long the call took.
        misses: What is wrong beside that.
        error: The error itself.
        client: What the client's ``repr`` shows.
    """

    told: Told
    seconds: float
    misses: list[str]
    error: ProtoLinkError | None
    client: str


@contextlib.contextmanager
def certificates(folder: Any) -> Iterator[Certificates]:
    """Make what peers show that speak TLS."""
    authority = trustme.CA()
    contexts = []
    for names in (("127.0.0.1", NAME), ("elsewhere.test",)):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["h2", "http/1.1"])
        authority.issue_cert(*names).configure_cert(context)
        contexts.append(context)
    cafile = folder / "ca.pem"
    authority.cert_pem.write_to_path(cafile)
    yield Certificates(contexts[0], contexts[1], str(cafile))


# ---- who calls ---------------------------------------------------------------------------------


class _Caller:
    """A client and what it asks on one lane.

    Args:
        cell: The lane.
        url: Whom to call.
        cafile: Whom to trust.
        secret: What goes out as a token and as a header.
    """

    def __init__(self, cell: Cell, url: str, cafile: str, secret: str | None) -> None:
        self._cell = cell
        self._url = url
        settings: dict[str, Any] = {
            "tls": TLSConfig(cafile=cafile),
            "trust_env": False,
            "config": _CONFIG,
        }
        if secret is not None:
            settings |= {"credentials": BearerToken(secret), "headers": {"X-Team": secret}}
        if cell.wire == "a2a":
            self.client: Any = A2AClient(url, **settings)
        elif cell.wire == "runtime":
            self.client = RuntimeTransport(url, config=_CONFIG)
        else:
            self.client = _KINDS[cell.wire](url, **settings)

    def ready(self) -> None:
        """Do what is no part of the call: the card of an A2A agent is fetched once."""
        if self._cell.wire == "a2a" and self._cell.phase not in _BEFORE_ALL:
            self.client.fetch_agent_card(timeout=_LONG)

    def ask(self, text: str, seconds: float) -> str:
        """Ask, and return the text that the answer has of the question."""
        if self._cell.wire == "a2a":
            return self._ask_a2a(text, seconds)
        if self._cell.streams:
            task = Task.create(Message.user(text))
            with self.client.subscribe(self._url, task, idle_timeout=seconds) as stream:
                return next(e["message"] for e in list(stream) if e.get("message") == text)
        if self._cell.wire == "runtime":
            task = Task.create(Message.user(text))
            return str(self.client.send(TASK_REQUEST, self._url, task, timeout=seconds).text)
        answer = self.client.send(ASK, self._url, {"text": text}, timeout=seconds)
        return str(answer["question"]["text"])

    def _ask_a2a(self, text: str, seconds: float) -> str:
        if not self._cell.streams:
            return str(self.client.send_message(text, timeout=seconds).text)
        with self.client.stream_message(text, idle_timeout=seconds) as stream:
            return str(stream.result().text)

    def close(self) -> None:
        """Close the client."""
        self.client.close()


# ---- one cell ----------------------------------------------------------------------------------


def play(cell: Cell, shown: Certificates, secret: str | None = None) -> Outcome:
    """Play a cell until the machine lets its fault come, and its time be what it is."""
    for _ in range(_TRIES):
        outcome, met = _play_once(cell, shown, secret)
        late = outcome.seconds > BUDGET + SLACK
        if met and not (cell.is_endless and late):
            return outcome
    if not met:
        outcome.misses.append("the fault was not met")
    else:
        outcome.misses.append(f"took {outcome.seconds:.3f} s of {BUDGET:g} s")
    return outcome


def _play_once(cell: Cell, shown: Certificates, secret: str | None) -> tuple[Outcome, bool]:
    if cell.wire == "runtime":
        with FaultyAgent(cell) as agent:
            return _called(_Caller(cell, agent.url, shown.cafile, secret), cell, agent)
    with Resolver(cell) as resolver, FaultyPeer(cell, shown) as peer:
        host = NAME if cell.phase == "resolve" else "127.0.0.1"
        scheme = _SCHEMES[cell.wire] + ("s" if cell.is_encrypted else "")
        fails = resolver if cell.phase == "resolve" else peer
        url = f"{scheme}://{host}:{peer.port}"
        return _called(_Caller(cell, url, shown.cafile, secret), cell, fails)


def _called(caller: _Caller, cell: Cell, fails: Any) -> tuple[Outcome, bool]:
    """Make the call that meets the fault, then the one that must not."""
    try:
        caller.ready()
        outcome = _asked(cell, caller)
        own_doing = (cell.phase, cell.fault) == ("write", "oversize")
        # The caller may be told before the peer has noted it, after an answer in any case.
        met = own_doing or fails.played.wait(_MEETING)
        fails.heal()
        outcome.misses += _not_healthy(cell, caller)
        return outcome, met
    finally:
        caller.close()


def _not_healthy(cell: Cell, caller: _Caller) -> list[str]:
    """Return what is wrong with the next call."""
    # Only threads of grpcio's learn what becomes of an idle connection, so the next call may be
    # quicker and meet it; then it says so.
    may_fail = (cell.wire, cell.phase) == ("grpc", "after-end")
    while True:
        try:
            answer = caller.ask("after it", _LONG)
        except Exception as error:
            if not (may_fail and isinstance(error, TransportError)):
                return [f"the next call: {error!r}"]
            may_fail = False
        else:
            return [] if answer == "after it" else [f"the next call brings {answer[:50]!r}"]


def _asked(cell: Cell, caller: _Caller) -> Outcome:
    text = "the question"
    if cell.phase == "write":
        text = "x" * (_TOO_LARGE if cell.fault == "oversize" else _UNREAD)
    told, misses, caught = Told(None), [], None
    began = time.perf_counter()
    try:
        answer = caller.ask(text, BUDGET if cell.is_endless else _LONG)
        if answer != text:
            misses.append(f"has the answer {answer[:50]!r}")
    except ProtoLinkError as error:
        caught = error
        told = Told(type(error), getattr(error, "retryable", False))
        phase = getattr(error, "phase", None)
        # grpcio does not say what is sent.
        if cell.phase == "write" and cell.is_endless and (cell.wire, phase) != ("grpc", "wait"):
            misses += [] if phase == "send" else [f"ended in the phase {phase}"]
    except Exception as error:
        misses.append(f"a foreign error: {error!r}")
    took = time.perf_counter() - began
    return Outcome(told, took, misses, caught, repr(caller.client))
