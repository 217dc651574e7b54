"""What is between a client and an agent, looked at step by step: each with a hint what to do."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import attrs

from protolink_sync._deadline import CancelToken, seconds
from protolink_sync._display import View, bundle, printable
from protolink_sync.errors import (
    A2AClientError,
    AuthenticationError,
    CallCancelledError,
    ClientClosedError,
    ProtoLinkError,
    TLSVerificationError,
    TransportError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import AgentCard, Task
from protolink_sync.security import origin

if TYPE_CHECKING:
    from protolink_sync.client.agent import AgentClient

__all__ = ["CheckReport", "CheckStep", "check"]

Status = Literal["ok", "warning", "failed", "skipped"]

# The protocol this library speaks; an agent of another 0.x may speak another one.
_SPOKEN = "0.8"

# Only who is told so submits a task.
_GIVE_TEXT = "give a text (text=, --text on the command line): it is sent as a task"

_ENCRYPTED = ("https", "wss", "grpcs")

# How many cards are asked for to learn how long a call takes.
_SAMPLES = 5

# What a peer answers that has no such operation.
_NOT_THERE = (404, 405)

_CREDENTIALS = (
    "give the transport credentials= (a BearerToken, an APIKey, BasicAuth); the command line takes "
    "a bearer token from PROTOLINK_TOKEN"
)

# Up to which step an error lets everything pass, by the phase in which it came.
_REACHED = {"resolve": "dns", "connect": "connect", "tls": "tls"}

_HINTS = {
    "dns": "is the host's name spelled right, and does this machine know it?",
    "connect": "is the agent running at this host and port, and does a firewall let calls through?",
    "tls": "if its authority is your own: TLSConfig(cafile=...); is the address one that the "
    "certificate names?",
}


@attrs.frozen
class CheckStep:
    """One thing that was looked at.

    Args:
        name: ``dns``, ``connect``, ``tls``, ``card``, ``protocol``, ``auth``, ``unary``,
            ``stream`` or ``latency``.
        status: ``ok``, ``warning``, ``failed`` or ``skipped``.
        found: What was found.
        hint: What to do; empty where there is nothing to do.
        seconds: How long it took; None where that says nothing.
        error: What went wrong; None if nothing did.
    """

    name: str
    status: Status
    found: str
    hint: str = ""
    seconds: float | None = None
    error: ProtoLinkError | None = attrs.field(default=None, repr=False, eq=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values; of an error its class."""
        return {
            **attrs.asdict(self, filter=lambda field, _: field.name != "error"),
            "error": None if self.error is None else type(self.error).__name__,
        }


@attrs.frozen
class CheckReport:
    """What ``AgentClient.check`` found.

    Args:
        url: Address of the agent.
        transport: What carried the calls.
        steps: What was looked at, in this order.
        card: The agent's card; None if there is none.
    """

    url: str
    transport: str
    steps: tuple[CheckStep, ...]
    card: AgentCard | None = attrs.field(default=None, repr=False)

    @property
    def ok(self) -> bool:
        """Whether nothing has failed."""
        return all(step.status != "failed" for step in self.steps)

    @property
    def error(self) -> ProtoLinkError | None:
        """Of the first step that failed; None if none has."""
        return next((step.error for step in self.steps if step.status == "failed"), None)

    def step(self, name: str) -> CheckStep:
        """Return one step.

        Args:
            name: Its name.

        Raises:
            KeyError: It was not looked at, because an earlier one failed.
        """
        for step in self.steps:
            if step.name == name:
                return step
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "url": self.url,
            "transport": self.transport,
            "ok": self.ok,
            "card": None if self.card is None else self.card.to_dict(),
            "steps": [step.to_dict() for step in self.steps],
        }

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        view = View(
            f"{self.url} over {self.transport}: {'ok' if self.ok else 'not ok'}",
            columns=("step", "", "found", "what to do"),
            rows=[(step.name, step.status, step.found, step.hint) for step in self.steps],
        )
        return {**bundle(view, include, exclude), "text/plain": str(self)}

    def __str__(self) -> str:
        lines = [f"{self.url} over {self.transport}: {'ok' if self.ok else 'not ok'}"]
        for step in self.steps:
            took = "" if step.seconds is None else f" ({step.seconds * 1000:.1f} ms)"
            lines.append(f"  {step.status:8} {step.name:9} {_on_one_line(step.found)}{took}")
            if step.hint:
                lines.append(f"  {'':8} {'':9} -> {_on_one_line(step.hint)}")
        return "\n".join(lines)


def check(
    client: AgentClient,
    agent_url: str,
    *,
    text: str | None,
    timeout: float,
    cancel: CancelToken | None,
) -> CheckReport:
    """Look at an agent; see ``AgentClient.check``."""
    if text is not None and not isinstance(text, str):
        raise TypeError(f"text is a {type(text).__name__}, must be a str")
    url = client.transport.address(agent_url)
    looking = _Look(client, url, text, time.monotonic() + seconds("timeout", timeout), cancel)
    steps = tuple(looking.steps())
    return CheckReport(url, client.transport.transport_type, steps, looking.card)


class _Look:
    """One check under way."""

    def __init__(
        self,
        client: AgentClient,
        url: str,
        text: str | None,
        end: float,
        cancel: CancelToken | None,
    ) -> None:
        self.card: AgentCard | None = None
        self._client = client
        self._url = url
        self._text = text
        self._end = end
        self._cancel = cancel
        self._is_a2a = False

    def steps(self) -> Iterator[CheckStep]:
        """Look at one thing after the other, until one fails that the others need."""
        error, took = self._fetch()
        yield from self._way(error)
        if isinstance(error, TransportError) and error.phase in _REACHED:
            return
        first = self._card_step(error, took)
        yield first
        if first.status == "failed" and not isinstance(error, AuthenticationError):
            return
        if not isinstance(error, AuthenticationError):
            yield self._protocol_step()
        unary = None if error is not None else self._unary_step()
        yield self._auth_step(error if unary is None else unary.error)
        if unary is None or isinstance(unary.error, AuthenticationError):
            return
        yield unary
        yield self._stream_step()
        yield self._latency_step()

    # --- calling -----------------------------------------------------------------------------

    def _left(self) -> float:
        # Of a budget that is spent: the next call ends at once, and says so.
        return max(self._end - time.monotonic(), 1e-6)

    def _timed(self, call: Callable[[], Any]) -> tuple[ProtoLinkError | None, float]:
        """Make a call; return what went wrong, and how long it took."""
        begin = time.monotonic()
        error: ProtoLinkError | None = None
        try:
            call()
        except (CallCancelledError, ClientClosedError):
            raise
        except ProtoLinkError as caught:
            error = caught
        return error, time.monotonic() - begin

    def _get_card(self) -> AgentCard:
        return self._client.get_agent_card(self._url, timeout=self._left(), cancel=self._cancel)

    def _fetch(self) -> tuple[ProtoLinkError | None, float]:
        def fetch() -> None:
            self.card = self._get_card()

        error, took = self._timed(fetch)
        if self._client.a2a and _is_no_card(error):
            error, took = self._timed(self._fetch_a2a)
            self._is_a2a = error is None
        return error, took

    def _fetch_a2a(self) -> None:
        self._a2a_card = self._client.get_a2a_agent_card(
            self._url, timeout=self._left(), cancel=self._cancel
        )

    # --- the way to the agent ----------------------------------------------------------------

    def _way(self, error: ProtoLinkError | None) -> Iterator[CheckStep]:
        parts = urlsplit(self._url)
        if not self._client.transport.capabilities.networked:
            return
        phase = error.phase if isinstance(error, TransportError) else None
        failed = _REACHED.get(phase or "")
        if isinstance(error, TLSVerificationError):
            failed = "tls"
        found = {
            "dns": f"{parts.hostname} is found",
            "connect": f"{parts.netloc} accepts connections",
            "tls": f"the certificate of {parts.hostname} is accepted",
        }
        for name, words in found.items():
            if name == "tls" and parts.scheme not in _ENCRYPTED:
                yield CheckStep(name, "skipped", f"{parts.scheme}:// is not encrypted")
            elif name == failed:
                yield CheckStep(name, "failed", str(error), _HINTS[name], error=error)
                return
            else:
                yield CheckStep(name, "ok", words)

    # --- the agent ---------------------------------------------------------------------------

    def _card_step(self, error: ProtoLinkError | None, took: float) -> CheckStep:
        if self.card is not None:
            found = f"{self.card.name}: {self.card.description}"
            return CheckStep("card", "ok", found, self._card_hint(self.card), took)
        if self._is_a2a:
            return CheckStep("card", "ok", f"{self._a2a_card.get('name')} (A2A)", "", took)
        if isinstance(error, AuthenticationError):
            return CheckStep("card", "skipped", "the agent shows it to callers that it knows")
        return CheckStep("card", "failed", str(error), self._no_card_hint(error), took, error)

    def _card_hint(self, card: AgentCard) -> str:
        try:
            same = origin(card.url) == origin(self._url)
        except ValueError:
            same = False
        if same or not self._client.transport.capabilities.networked:
            return ""
        return f"others are told to call {card.url}: is that address right for them?"

    def _no_card_hint(self, error: ProtoLinkError | None) -> str:
        if isinstance(error, TransportTimeoutError):
            return "it accepts connections and does not answer in time: is it busy? Give more time"
        if _is_no_card(error) and not self._client.a2a:
            return (
                "is this the agent's base URL? If it speaks A2A: AgentClient('http', a2a=True), "
                "on the command line protolink-sync a2a"
            )
        if isinstance(error, A2AClientError) or _is_no_card(error):
            return "is this the agent's base URL? It has no card of ProtoLink's and none of A2A"
        return "is an agent there, and is it one for this transport?"

    def _protocol_step(self) -> CheckStep:
        if self.card is None:
            return CheckStep("protocol", "ok", "A2A")
        version = self.card.protocol_version
        if version.split(".")[:2] == _SPOKEN.split("."):
            return CheckStep("protocol", "ok", f"ProtoLink {version}")
        hint = f"this library speaks ProtoLink {_SPOKEN}; what differs shows in the calls"
        return CheckStep("protocol", "warning", f"ProtoLink {version}", hint)

    def _auth_step(self, error: ProtoLinkError | None) -> CheckStep:
        if isinstance(error, AuthenticationError):
            held = self._client.transport.credentials is not None
            hint = f"it does not accept those given; {_CREDENTIALS}" if held else _CREDENTIALS
            return CheckStep("auth", "failed", str(error), hint, error=error)
        shown = "with" if self._client.transport.credentials is not None else "without"
        return CheckStep("auth", "ok", f"calls are accepted {shown} credentials")

    def _unary_step(self) -> CheckStep:
        if self._text is not None:
            return self._task_step("unary", self._sent)
        if self._is_a2a:
            found = "A2A has no call that changes nothing"
            return CheckStep("unary", "skipped", found, _GIVE_TEXT)
        error, took = self._timed(
            lambda: self._client.describe_state(
                self._url, timeout=self._left(), cancel=self._cancel
            )
        )
        if error is None:
            return CheckStep("unary", "ok", "describe_state was answered", "", took)
        if isinstance(error, TransportRemoteError) and not isinstance(error, AuthenticationError):
            hint = "it answers, but not to describe_state; a text is sent as a task and shows more"
            return CheckStep("unary", "warning", str(error), hint, took)
        hint = "the card came and this did not: is there a proxy between that changes calls?"
        return CheckStep("unary", "failed", str(error), hint, took, error)

    def _sent(self) -> Task:
        text = str(self._text)
        task = Task.create(text) if self._is_a2a else Task.create_infer(prompt=text)
        return self._client.send_task(self._url, task, timeout=self._left(), cancel=self._cancel)

    def _streamed(self) -> Task:
        task = Task.create_infer(prompt=str(self._text))
        with self._client.send_task_streaming(
            self._url, task, timeout=self._left(), cancel=self._cancel
        ) as stream:
            return stream.result()

    def _task_step(self, name: str, call: Callable[[], Task]) -> CheckStep:
        done: list[Task] = []
        error, took = self._timed(lambda: done.append(call().raise_for_status()))
        if error is None:
            return CheckStep(name, "ok", f"the task came back {done[0].state_text}", "", took)
        hint = "the agent's log says why" if isinstance(error, TransportRemoteError) else ""
        return CheckStep(name, "failed", str(error), hint, took, error)

    def _stream_step(self) -> CheckStep:
        transport = self._client.transport
        if not transport.supports_streaming:
            found = f"the transport {transport.transport_type!r} does not stream"
            return CheckStep("stream", "skipped", found, "for http addresses 'sse' does")
        if self._is_a2a:
            hint = "A2AClient(url).stream_message(...) streams"
            return CheckStep("stream", "skipped", "tasks are not streamed over A2A", hint)
        if self.card is not None and not self.card.capabilities.streaming:
            return CheckStep("stream", "skipped", "the card says that the agent does not stream")
        if self._text is None:
            hint = f"{_GIVE_TEXT}, and its events are read to the end"
            return CheckStep("stream", "skipped", "nothing was sent", hint)
        return self._task_step("stream", self._streamed)

    def _latency_step(self) -> CheckStep:
        took = []
        for _ in range(_SAMPLES):
            error, time_of_one = self._timed(self._fetch_a2a if self._is_a2a else self._get_card)
            if error is not None:
                hint = "it answered before: is it overloaded, or does a proxy end connections?"
                return CheckStep("latency", "failed", str(error), hint, time_of_one, error)
            took.append(time_of_one)
        middle = statistics.median(took)
        found = f"a card takes {middle * 1000:.1f} ms, at most {max(took) * 1000:.1f} ms"
        return CheckStep("latency", "ok", found, "", middle)


def _on_one_line(text: str) -> str:
    """Return what may hold a peer's words so that they can neither forge a step nor be obeyed."""
    return " ".join(printable(text).split())


def _is_no_card(error: ProtoLinkError | None) -> bool:
    return isinstance(error, TransportProtocolError) or (
        isinstance(error, TransportRemoteError) and error.status_code in _NOT_THERE
    )
