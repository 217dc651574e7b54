"""The ways on which the suite runs: which transport carries the calls, and who answers them.

To have another transport join, add its :class:`Side` to ``SIDES``. What a side cannot do, it says
in its fields; the tests ask these, and never the name of a transport.
"""

from __future__ import annotations

import base64
import contextlib
import hmac
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from protolink_sync.client import AgentClient
from protolink_sync.config import TransportConfig, TransportLimits
from protolink_sync.errors import TransportError, TransportRemoteError
from protolink_sync.models import (
    AgentCapabilities,
    AgentCard,
    AgentSkill,
    Artifact,
    Message,
    Part,
    Task,
)
from protolink_sync.server import Agent
from protolink_sync.transport import get_transport
from tests.peers import bearer_jwt, held_port

__all__ = ["KEY", "PASSWORD", "SIDES", "TOKEN", "USER", "HostedAgent", "Side", "Stage"]

KEY = "key-1"
USER, PASSWORD = "user", "pass word"
_SIGNING = "signing-secret"
TOKEN = bearer_jwt(_SIGNING)

_numbers = itertools.count(1)


@attrs.frozen
class Side:
    """One transport with one kind of agent at its other end.

    Args:
        transport: Name of the transport.
        agent: ``protolink`` (a real 0.8.3 agent, another process) or ``hosted`` (ours).
        guards: Whether an agent can ask for credentials there.
        statuses: Whether a failure has an HTTP status.
        reasons: Whether a failure has the agent's words.
        refusal: Status of refused credentials.
        nobody: Status where nobody answers.
        open_health: Whether health is told without credentials.
        runs_on: Whether a task goes on when its caller leaves (wire/protolink.md 6: not on gRPC).
        cuts_oversize: Whether the agent ends the connection at a request over its limit.
        takes_unknown_states: Whether a task in a state that nobody knows is executed.
        streams: Whether the transport streams.
        tells_each_end: Whether a stream ends with a status also if the handler gives none.
        card_says: The transport its card names, where that is another one.
    """

    transport: str
    agent: str
    guards: bool = True
    statuses: bool = True
    reasons: bool = True
    refusal: int | str = 401
    nobody: str | None = None
    open_health: bool = True
    runs_on: bool = True
    cuts_oversize: bool = False
    takes_unknown_states: bool = False
    streams: bool = True
    tells_each_end: bool = False
    card_says: str | None = None

    def __str__(self) -> str:
        return f"{self.transport}-{self.agent}"


SIDES = [
    Side("http", "protolink", reasons=False, streams=False),
    Side("sse", "protolink", reasons=False),
    Side("websocket", "protolink", statuses=False, open_health=False, cuts_oversize=True),
    Side(
        "grpc",
        "protolink",
        statuses=False,
        refusal="UNAUTHENTICATED",
        nobody="UNAVAILABLE",
        open_health=False,
        runs_on=False,
    ),
    Side("http", "hosted", takes_unknown_states=True, streams=False),
    Side("sse", "hosted", takes_unknown_states=True, tells_each_end=True, card_says="http"),
    Side(
        "runtime",
        "hosted",
        guards=False,
        statuses=False,
        takes_unknown_states=True,
        tells_each_end=True,
    ),
]

NESTED = {
    "type": "task_llm_stream",
    "llm_event_type": "llm_final",
    "step": 1,
    "content": "hi",
    "final": True,
}


class HostedAgent(Agent):
    """Does what the first word of a task's last text says, as ``tests/peers/agent.py`` does."""

    def __init__(self, **settings: Any) -> None:
        card = AgentCard(
            name="hosted_agent",
            description="does what the text of a task says",
            url="http://127.0.0.1",
            capabilities=AgentCapabilities(has_llm=True),
            skills=[AgentSkill(id="add", description="adds two numbers")],
        )
        super().__init__(card, **settings)
        self.executions: Counter[str] = Counter()
        self.tool(add)
        self.infer(lambda prompt: "the mock model says hi")

    def handle_task(self, task: Task) -> Task:
        item = task.get_last_item()
        content = item.parts[-1].content if item is not None and item.parts else ""
        word, _, rest = content.partition(" ") if isinstance(content, str) else ("", "", "")
        act: Callable[[Task, str], Task] | None = getattr(self, f"_act_{word}", None)
        self.executions[str(task.id)] += 1
        return super().handle_task(task) if act is None else act(task, rest)

    def handle_task_streaming(self, task: Task) -> Any:
        word, _, rest = task.get_last_item().text.partition(" ")
        if word in ("many", "slow", "nested", "untyped", "nofinal"):
            return self._steps(task, word, rest)
        return super().handle_task_streaming(task)

    def _steps(self, task: Task, word: str, rest: str) -> Iterator[dict[str, Any]]:
        if word in ("nested", "untyped"):
            yield NESTED if word == "nested" else {"final": True}
            yield {"type": "task_progress", "message": "after it"}
        else:
            count, _, gap = (rest or "3").partition(" ")
            for number in range(int(count)):
                yield {"type": "task_progress", "message": f"step {number}"}
                time.sleep(float(gap or 0.1) if word == "slow" else 0)
        task.complete("done")

    def _act_echo(self, task: Task, rest: str) -> Task:
        return task.complete(rest)

    def _act_count(self, task: Task, rest: str) -> Task:
        time.sleep(float(rest or 0))
        number = self.executions[str(task.id)]
        return task.complete(f"{number} executions, {len(task.messages)} messages")

    def _act_wait(self, task: Task, rest: str) -> Task:
        task.begin()
        end = time.monotonic() + float(rest or 30)
        while time.monotonic() < end and not self.current_run().cancelled:
            time.sleep(0.005)
        return task.complete("waited")

    def _act_need(self, task: Task, rest: str) -> Task:
        return task.require_input(Message.agent("which city?"))

    def _act_fail(self, task: Task, rest: str) -> Task:
        return task.fail(rest or "no reason")

    def _act_raise(self, task: Task, rest: str) -> Task:
        raise RuntimeError(rest or "boom")

    def _act_big(self, task: Task, rest: str) -> Task:
        return task.complete("x" * int(rest))

    def _act_artifacts(self, task: Task, rest: str) -> Task:
        task.begin()
        for name, text in (("a", "first"), ("b", "second")):
            task.add_artifact(Artifact(name=name, media_type="text/plain").add_text(text))
        return task.update_state("completed")

    def _act_back(self, task: Task, rest: str) -> Task:
        arrived = task.to_dict()
        task.begin()
        task.add_message(Message(role="agent", parts=[Part.json(arrived)]))
        return task.update_state("completed")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())


def _guard(kind: str) -> Callable[[dict[str, Any]], str | None]:
    basic = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    header, wanted = {
        "key": ("HTTP_X_API_KEY", KEY),
        "bearer": ("HTTP_AUTHORIZATION", f"Bearer {TOKEN}"),
        "basic": ("HTTP_AUTHORIZATION", f"Basic {basic}"),
    }[kind]
    return lambda environ: "caller" if _same(environ.get(header, ""), wanted) else None


_OPTIONS = {
    "key": ("--api-key", KEY),
    "bearer": ("--bearer", _SIGNING),
    "basic": ("--basic", f"{USER}:{PASSWORD}"),
}


class Stage:
    """Agents and clients of one test on one side; all of them end with the test.

    Args:
        side: The side.
        shared_peer: Returns a running protolink agent.
        ending: Ends what is started here.
    """

    def __init__(
        self, side: Side, shared_peer: Callable[..., Any], ending: contextlib.ExitStack
    ) -> None:
        self.side = side
        self._shared_peer = shared_peer
        self._ending = ending
        self._url: str | None = None

    @property
    def url(self) -> str:
        """The address of an agent that anybody may call. Ask before threads do: it starts one."""
        if self._url is None:
            self._url = self.agent()
        return self._url

    def agent(self, *, guard: str | None = None, **limits: int) -> str:
        """Return the address of an agent with these limits and this guard."""
        if self.side.agent == "protolink":
            options = [f"--limit={name}={value}" for name, value in limits.items()]
            guarding = () if guard is None else _OPTIONS[guard]
            url: str = self._shared_peer(self.side.transport, *options, *guarding).url
            return url
        settings: dict[str, Any] = {
            "config": TransportConfig(limits=TransportLimits(**limits)),
            "authenticate": None if guard is None else _guard(guard),
        }
        name = {"runtime": f"runtime://conformance-{next(_numbers)}"}
        where = name.get(self.side.transport, "http://127.0.0.1:0")
        return self._ending.enter_context(HostedAgent(**settings).serve(where)).url

    def client(self, *, config: TransportConfig | None = None, **settings: Any) -> AgentClient:
        """Return a client on this side's transport."""
        transport = get_transport(self.side.transport, timeout=30, config=config, **settings)
        return AgentClient(self._ending.enter_context(transport))

    def nobody(self) -> str:
        """Return an address of this side at which nobody answers."""
        if self.side.transport == "runtime":
            return "runtime://nobody"
        scheme = self.url.partition(":")[0]
        probe = self._ending.enter_context(held_port())
        return f"{scheme}://127.0.0.1:{probe}"

    def end(self, task_id: str) -> None:
        """End a task whose caller has left, where it goes on then; it is not waited for."""
        if self.side.runs_on:
            # On a busy machine the caller may have left before the agent had the task at all.
            with contextlib.suppress(TransportRemoteError):
                self.cancel_when_running(self.client(), task_id, patience=3)

    def cancel_when_running(
        self, client: AgentClient, task_id: str, *, patience: float = 20, **more: Any
    ) -> Task:
        """Cancel a task as soon as the agent has it: before that it is unknown there."""
        end = time.monotonic() + patience
        while True:
            try:
                return client.cancel_task(self.url, task_id, **more)
            except TransportError:  # not only the agent's: see test_failures, after an error
                if time.monotonic() > end:
                    raise
                threading.Event().wait(0.01)
