"""A transport that answers from a script and records what it is asked to send."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import attrs

from protolink_sync.transport import Transport, TransportCapabilities
from protolink_sync.transport.base import Call, Codec
from protolink_sync.wire import WireReply, WireRequest
from protolink_sync.wire import http as http_codec

URL = "http://agent.test"

Step = WireReply | BaseException | Callable[[WireRequest, Call], WireReply]


def reply(
    value: Any = None,
    *,
    status: int = 200,
    reason: str = "",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> WireReply:
    """Return an answer: a value as JSON, or a body as it is."""
    content = json.dumps(value).encode() if body is None else body
    return WireReply(
        status, reason, {"content-type": "application/json", **(headers or {})}, content
    )


class ScriptedTransport(Transport):
    """Answer with one step of the script for each attempt; :attr:`calls` are the requests.

    Args:
        steps: An answer, an error to raise, or a function of request and call.
        settings: Arguments of every transport.
    """

    transport_type: ClassVar[str] = "scripted"
    schemes: ClassVar[tuple[str, ...]] = ("http", "https")
    capabilities: ClassVar[TransportCapabilities] = TransportCapabilities()
    _codec: ClassVar[Codec] = http_codec

    def __init__(self, *steps: Step, **settings: Any) -> None:
        super().__init__(**settings)
        self.steps = list(steps)
        self.calls: list[WireRequest] = []
        self.closings = 0

    def _exchange(self, request: WireRequest, deadline: Call) -> WireReply:
        self.calls.append(
            attrs.evolve(
                request,
                context=attrs.evolve(request.context),
                headers=dict(request.headers),
                credentials=request.credentials,
            )
        )
        step = self.steps.pop(0)
        if isinstance(step, WireReply):
            return step
        if isinstance(step, BaseException):
            raise step
        return step(request, deadline)

    def _close(self) -> None:
        self.closings += 1
