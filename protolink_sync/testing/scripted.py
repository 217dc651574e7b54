"""ScriptedTransport: answers from a script, so that a test needs neither agent nor network."""

from __future__ import annotations

import json
import math
import threading
from collections import deque
from typing import Any, ClassVar, NoReturn

from protolink_sync.config import RetryPolicy, TransportConfig
from protolink_sync.errors import TransportProtocolError
from protolink_sync.testing.steps import EventScript, SentCall, Silence, Step
from protolink_sync.transport import Transport, TransportCapabilities
from protolink_sync.wire import WireReply, WireRequest

__all__ = ["ScriptedTransport"]


class ScriptedTransport(Transport):
    """Answer each attempt with one step of a script, and record what was sent.

    It is a transport like any other: limits, keys, retries, credentials and errors are those of
    the library. Only nothing is sent, and no pause before a retry is slept.

    Args:
        *steps: For each attempt an answer (:func:`reply`, :func:`events` for a stream,
            :func:`silence`), an exception to raise, or a function that makes one of these out
            of the :class:`SentCall`.
        retry: The retry policy; no retries without one.
        **settings: What every transport takes: ``url``, ``timeout``, ``credentials``,
            ``headers``, ``config``.

    Attributes:
        calls: What was sent, in order.
        waits: The pauses before retries, in seconds.

    >>> from protolink_sync import AgentClient, Task
    >>> from protolink_sync.testing import reply
    >>> transport = ScriptedTransport(reply(Task.create("?").complete("42")))
    >>> AgentClient(transport).send_infer_task("6 * 7?", "http://agent.test").text
    '42'
    >>> transport.calls[0].operation
    'send_task'
    """

    transport_type: ClassVar[str] = "scripted"
    schemes: ClassVar[tuple[str, ...]] = ("http", "https")
    capabilities: ClassVar[TransportCapabilities] = TransportCapabilities(streaming=True)

    def __init__(self, *steps: Step, retry: RetryPolicy | None = None, **settings: Any) -> None:
        if retry is not None:
            if settings.get("config") is not None:
                raise TypeError("give retry= or config=, which has a retry policy itself")
            settings["config"] = TransportConfig(retry=retry)
        super().__init__(**settings)
        self.calls: list[SentCall] = []
        self.waits: list[float] = []
        self._script = deque(steps)
        self._impatient: dict[type, type] = {}
        self._playing = threading.Lock()

    @property
    def unused(self) -> int:
        """How many steps of the script were not played."""
        return len(self._script)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a ScriptedTransport belongs to its test and cannot be pickled or copied")

    # --- hooks -------------------------------------------------------------------------------

    def _exchange(self, request: WireRequest, deadline: Any) -> WireReply:
        self._note_pauses(deadline)
        answer = self._play(request, deadline)
        if isinstance(answer, WireReply):
            return answer
        raise AssertionError(
            f"{request.context.where} is no stream, and the script has {answer!r} for it"
        )

    def _open_stream(self, request: WireRequest, deadline: Any) -> Any:
        answer = self._play(request, deadline)
        if isinstance(answer, EventScript):
            return _Stream(self, answer, request, deadline)
        if not isinstance(answer, WireReply):
            raise AssertionError(f"{request.context.where}: the script has {answer!r} for it")
        # Raises what the answer says in the place of a stream.
        self._decode(answer, request.context, deadline)
        raise TransportProtocolError(f"{request.context.where}: the answer is no stream")

    def _play(self, request: WireRequest, deadline: Any) -> Any:
        call = SentCall.of(request)
        with self._playing:
            self.calls.append(call)
            if not self._script:
                raise AssertionError(
                    f"{request.context.where} is call {len(self.calls)}, and the script has no "
                    "step for it"
                )
            step = self._script.popleft()
        answer = step(call) if callable(step) else step
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, Silence):
            self._hold(request, deadline)
        return answer

    def _hold(self, request: WireRequest, deadline: Any) -> NoReturn:
        """Wait until the call is ended."""
        deadline.phase = "wait"
        while deadline.wait(math.inf):
            pass
        raise self._ended(deadline, request.context)

    def _note_pauses(self, deadline: Any) -> None:
        """Have the pauses before retries of a call noted instead of slept."""
        kind = type(deadline)
        if kind not in self._impatient.values():
            if kind not in self._impatient:
                self._impatient[kind] = _impatient(kind, self.waits)
            deadline.__class__ = self._impatient[kind]

    def _close(self) -> None:
        """Nothing is held."""


def _impatient(kind: type, waits: list[float]) -> type:
    """Return a kind of call like another one, whose pauses before retries take no time."""

    def wait(self: Any, duration: float, until: Any = None) -> bool:
        if self.phase != "backoff":
            return bool(kind.wait(self, duration, until))  # type: ignore[attr-defined]
        waits.append(duration)
        return bool(self.may_go_on())

    return type(f"Impatient{kind.__name__}", (kind,), {"__slots__": (), "wait": wait})


class _Stream:
    """A stream that is played from a script."""

    def __init__(
        self, transport: ScriptedTransport, script: EventScript, request: WireRequest, deadline: Any
    ) -> None:
        self._transport = transport
        self._events = deque(script.given)
        self._is_cut = script.is_cut
        self._request = request
        self._deadline = deadline

    def receive(self) -> list[bytes] | None:
        """Return the envelope of the next event; None where the connection is cut."""
        context = self._request.context
        if self._deadline.ended:
            raise self._transport._ended(self._deadline, context)
        if not self._events:
            return None if self._is_cut else [self._envelope(None, final=True)]
        event = self._events.popleft()
        if isinstance(event, BaseException):
            raise event
        if isinstance(event, Silence):
            self._transport._hold(self._request, self._deadline)
        is_last = not self._events and not self._is_cut
        return [self._envelope(event, final=is_last)]

    def _envelope(self, event: Any, *, final: bool) -> bytes:
        value = event.to_dict() if hasattr(event, "to_dict") else event
        answer = {
            "id": self._request.context.request_id,
            "ok": True,
            "result": value,
            "final": final,
        }
        return json.dumps(answer).encode()

    def close(self, finished: bool) -> None:
        """Nothing is held."""
