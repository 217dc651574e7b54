"""An A2A agent that plays a script on the loopback, and what it says, as steps of the script.

The server is that of :mod:`tests.cases.server`: real sockets, byte by byte, honest about what it
does not understand. Here come the routes of an agent (card and ``POST /rpc``), one script per
JSON-RPC method, and the forms of both dialects.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from tests.cases.records import Request
from tests.cases.script import Step, Steps
from tests.cases.server import ScriptedServer

CARD_PATH = "/.well-known/agent-card.json"
JSON = {"Content-Type": "application/json"}

RECV: Step = {"op": "recv"}
HOLD: Step = {"op": "hold"}
CLOSE: Step = {"op": "close"}
RST: Step = {"op": "rst"}
SSE: Step = {"op": "sse_head"}
END: Step = {"op": "end_chunks"}

Answer = Step | Iterable[Step]


# ---- the card ----------------------------------------------------------------------------------


def interface(
    url: str = "{{base}}/rpc", version: str | None = "1.0", binding: str = "JSONRPC", **more: Any
) -> dict[str, Any]:
    """Return one entry of ``supportedInterfaces``."""
    entry: dict[str, Any] = {"url": url, "protocolBinding": binding, **more}
    return entry if version is None else {**entry, "protocolVersion": version}


def card(*interfaces: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return a 1.0 card; one interface, JSON-RPC at ``/rpc``, unless others are given."""
    return {
        "name": "scripted",
        "description": "plays a script",
        "version": "1",
        "supportedInterfaces": list(interfaces) or [interface()],
        "capabilities": {
            "streaming": True,
            "pushNotifications": True,
            "extendedAgentCard": True,
        },
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [],
        **more,
    }


def old_card(url: str = "{{base}}/rpc", **more: Any) -> dict[str, Any]:
    """Return a 0.3 card."""
    return {
        "name": "scripted",
        "description": "plays a script",
        "version": "1",
        "protocolVersion": "0.3.0",
        "url": url,
        "preferredTransport": "JSONRPC",
        "capabilities": {"streaming": True, "pushNotifications": True},
        "supportsAuthenticatedExtendedCard": True,
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [],
        **more,
    }


# ---- objects -----------------------------------------------------------------------------------

_OLD_STATES = {"canceled": "canceled", "unspecified": "unknown"}


def state_name(state: str, *, old: bool = False) -> str:
    """Return a state as a dialect spells it, from ``input-required`` and the like."""
    return _OLD_STATES.get(state, state) if old else f"TASK_STATE_{state}".upper().replace("-", "_")


def message(text: str, *, old: bool = False, number: int = 1, **more: Any) -> dict[str, Any]:
    """Return a message of the agent."""
    part = {"kind": "text", "text": text} if old else {"text": text}
    value = {
        "messageId": f"m{number}",
        "role": "agent" if old else "ROLE_AGENT",
        "parts": [part],
        **more,
    }
    return {"kind": "message", **value} if old else value


def status(state: str, text: str | None = None, *, old: bool = False) -> dict[str, Any]:
    """Return a task's status."""
    value: dict[str, Any] = {"state": state_name(state, old=old)}
    return value if text is None else {**value, "message": message(text, old=old)}


def task(
    state: str = "completed", text: str | None = None, *, old: bool = False, **more: Any
) -> dict[str, Any]:
    """Return a task ``t1`` in a state, with a status message if a text is given."""
    value = {"id": "t1", "contextId": "c1", "status": status(state, text, old=old), **more}
    return {"kind": "task", **value} if old else value


def artifact(*texts: str, old: bool = False, name: str = "a1") -> dict[str, Any]:
    """Return an artifact with a part for each text."""
    parts = [{"kind": "text", "text": text} if old else {"text": text} for text in texts]
    return {"artifactId": name, "parts": parts}


def sent(value: Mapping[str, Any], *, old: bool = False) -> dict[str, Any]:
    """Return a task as the result of a send: in 1.0 it is wrapped."""
    return dict(value) if old else {"task": value}


def status_update(
    state: str, text: str | None = None, *, old: bool = False, **more: Any
) -> dict[str, Any]:
    """Return an event that tells a new status."""
    value = {"taskId": "t1", "contextId": "c1", "status": status(state, text, old=old), **more}
    if old:
        return {"kind": "status-update", "final": False, **value}
    return {"statusUpdate": value}


def artifact_update(*texts: str, old: bool = False, name: str = "a1", **more: Any) -> Any:
    """Return an event that brings an artifact or a piece of one."""
    value = {"taskId": "t1", "contextId": "c1", "artifact": artifact(*texts, old=old, name=name)}
    return {"kind": "artifact-update", **value, **more} if old else {"artifactUpdate": value | more}


# ---- answers -----------------------------------------------------------------------------------


def reply(value: Any, *, status: int = 200, headers: Any = None, **words: Any) -> Step:
    """Return a step that answers with a value as JSON."""
    body = value if isinstance(value, str) else json.dumps(value)
    return {"op": "reply", "status": status, "headers": headers or JSON, "body": body, **words}


def envelope(**members: Any) -> str:
    """Return a JSON-RPC reply with the id of the request, unless ``id`` is given."""
    text = json.dumps({"jsonrpc": "2.0", "id": "RPC-ID", **members})
    return text.replace('"RPC-ID"', "{{rpc_id}}")


def result(value: Any, **words: Any) -> Step:
    """Return a step that answers with a result."""
    return reply(envelope(result=value), **words)


def done(text: str = "done", *, old: bool = False) -> Step:
    """Return a step that answers a send with a completed task."""
    return result(sent(task("completed", text, old=old), old=old))


def error(code: Any, message: str = "no", *, status: int = 200, **more: Any) -> Step:
    """Return a step that answers with a JSON-RPC error."""
    return reply(envelope(error={"code": code, "message": message, **more}), status=status)


def frame(value: Any, *, end: str = "\n") -> Step:
    """Return a step that sends one event: a result, or an envelope's text as it is."""
    text = value if isinstance(value, str) else envelope(result=value)
    return {"op": "chunk", "data": f"data: {text}{end}{end}"}


def error_frame(code: int, message: str = "no", *, name: str = "") -> Step:
    """Return a step that sends an error in a stream, with an event name or without."""
    text = envelope(error={"code": code, "message": message})
    return {"op": "chunk", "data": f"{name and f'event: {name}'}\ndata: {text}\n\n".lstrip()}


def stream(*events: Any, end: Steps = (END,)) -> list[Step]:
    """Return the steps of a stream: each event a frame, or a step as it is; then the end."""
    frames = [e if isinstance(e, dict) and "op" in e else frame(e) for e in events]
    return [SSE, *frames, *end]


# ---- the agent ---------------------------------------------------------------------------------


@attrs.frozen
class Rpc:
    """One JSON-RPC request as it came."""

    request: Request
    body: dict[str, Any]

    @property
    def method(self) -> Any:
        """The JSON-RPC method."""
        return self.body.get("method")

    @property
    def id(self) -> Any:
        """The JSON-RPC id."""
        return self.body.get("id")

    @property
    def params(self) -> Any:
        """The params; an empty object when there were none."""
        return self.body.get("params", {})

    @property
    def path(self) -> str:
        """Where it was posted."""
        return self.request.path

    def header(self, name: str) -> str | None:
        """Return a header's first value."""
        return self.request.header(name)


class ScriptedAgent(ScriptedServer):
    """An agent: its card, and what it answers to POSTs.

    Args:
        answers: The nth answer goes to the nth POST, the last one to all later ones; each is a
            step or several.
        card: The card as JSON; an answer, or a list of answers for the nth GET; None for 404.
        methods: Answers per JSON-RPC method, in the same way; they go before ``answers``.
        routes: Further routes of the script.
        words: What :class:`ScriptedServer` takes.
    """

    def __init__(
        self,
        *answers: Answer,
        card: Any = card(),  # noqa: B008 - never changed
        methods: Mapping[str, Answer | Sequence[Answer]] | None = None,
        routes: Mapping[str, Sequence[Steps]] | None = None,
        **words: Any,
    ) -> None:
        script: dict[str, Any] = {"POST *": _lists(answers), **(routes or {})}
        if card is not None:
            script["GET *"] = _lists(card if isinstance(card, (list, tuple)) else [card])
        for method, answer in (methods or {}).items():
            several = isinstance(answer, tuple)
            script[f"RPC {method}"] = _lists(answer if several else [answer])
        super().__init__({"routes": {k: v for k, v in script.items() if v}}, **words)

    def steps_of_route(self, request: Request) -> Steps:
        """Return the answer for a request; what its JSON-RPC method says goes first."""
        if request.method == "POST":
            body = _json(request.body)
            method = body.get("method") if isinstance(body, dict) else None
            if f"RPC {method}" in self._script["routes"]:
                request = attrs.evolve(request, method="RPC", target=method)
        return super().steps_of_route(request)

    @property
    def calls(self) -> list[Rpc]:
        """The JSON-RPC requests, in the order they came."""
        return [Rpc(r, r.json()) for r in list(self.requests) if r.method == "POST"]

    @property
    def methods(self) -> list[Any]:
        """Their methods."""
        return [call.method for call in self.calls]

    @property
    def gets(self) -> list[Request]:
        """The other requests: for the card, as a rule."""
        return [r for r in list(self.requests) if r.method == "GET"]


def _lists(answers: Iterable[Any]) -> list[Steps]:
    """Return answers as lists of steps: a card's JSON becomes a reply."""
    lists: list[Steps] = []
    for answer in answers:
        if isinstance(answer, Mapping):
            lists.append([answer if "op" in answer else reply(answer)])
        else:
            lists.append(list(answer))
    return lists


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None
