"""What every part of AgentClient stands on: the transport, the options, the A2A side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from protolink_sync.client._options import Options, ViewedTransport
from protolink_sync.config import RetryPolicy
from protolink_sync.errors import A2AClientError
from protolink_sync.transport import Transport, get_transport

if TYPE_CHECKING:
    from protolink_sync.a2a.client import A2AMemory
    from protolink_sync.client._selection import Selection

__all__ = ["Carried", "Foundation", "Protocol", "check_switch"]

Protocol = Literal["auto", "protolink", "a2a"]

_PROTOCOLS = get_args(Protocol)

_Self = TypeVar("_Self", bound="Carried")


class Carried:
    """A client and the transport that carries its calls, which it closes if it made it."""

    def __init__(self, transport: Transport | str, url: str | None, timeout: float | None) -> None:
        self._owns = not isinstance(transport, Transport)
        self._transport = (
            transport
            if isinstance(transport, Transport)
            else get_transport(transport, url=url, timeout=timeout)
        )

    @property
    def transport(self) -> Transport:
        """The transport, for its health, counters and settings."""
        return self._transport

    def close(self) -> None:
        """Close the transport, if the client made it; a given one stays open. Twice is silent."""
        if self._owns:
            self._transport.close()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class Foundation(Carried):
    """What the calls of an ``AgentClient`` have in common; see there for the arguments."""

    def __init__(
        self,
        transport: Transport | str,
        url: str | None = None,
        timeout: float | None = 300,
        *,
        a2a: bool = False,
        a2a_allow_cross_origin: bool = False,
    ) -> None:
        super().__init__(transport, url, timeout)
        self._options = Options()
        self._calls: Transport | ViewedTransport = self._transport
        self._selection: Selection | None = None
        if _is_a2a_wanted(self._transport, a2a, a2a_allow_cross_origin):
            self._speak_a2a(allow_cross_origin=a2a_allow_cross_origin)

    @property
    def a2a(self) -> bool:
        """Whether the client also calls agents that speak A2A only."""
        return self._selection is not None

    @property
    def a2a_memory(self) -> A2AMemory:
        """What the client remembers of A2A agents. Set another one, to share it or to keep it.

        Raises:
            A2AClientError: The client was made without ``a2a=True``.
        """
        return self._needed_a2a("a2a_memory").bridge.memory

    @a2a_memory.setter
    def a2a_memory(self, memory: A2AMemory) -> None:
        self._needed_a2a("a2a_memory").bridge.remember_in(memory)

    def __repr__(self) -> str:
        more = str(self._options)
        return f"<AgentClient {self._transport!r}{f' with {more}' if more else ''}>"

    def __getstate__(self) -> Mapping[str, Any]:
        allow = self.a2a and self._needed_a2a("pickle").allow_cross_origin
        return {
            "_owns": self._owns,
            "_transport": self._transport,
            "a2a": (self.a2a, allow),
            "options": self._options,
        }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self._owns, self._transport = state["_owns"], state["_transport"]
        self._options, self._calls = state["options"], self._transport
        self._selection = None
        a2a, allow = state["a2a"]
        if a2a:
            self._speak_a2a(allow_cross_origin=allow)
        if self._options != Options():
            self._see_with(self._options, self._selection)

    # --- for the parts -----------------------------------------------------------------------

    @property
    def _timeout(self) -> float:
        """Budget of calls that give none."""
        return self._calls.timeout

    @property
    def _retry(self) -> RetryPolicy:
        """When calls are sent again."""
        given = self._options.call.retry
        return self._transport.config.retry if given is None else given

    def _speak_a2a(self, *, allow_cross_origin: bool = False) -> None:
        """Also call agents that speak A2A only; the transport carries HTTP."""
        # Not before it is needed: a client without A2A is not to pay for its import.
        from protolink_sync.client._selection import Selection

        self._selection = Selection(self._transport, allow_cross_origin=allow_cross_origin)

    def _see_with(self, options: Options, of: Selection | None) -> None:
        """Become a view of a client."""
        self._options = options
        self._calls = ViewedTransport(self._transport, options)
        self._selection = None if of is None else of.viewed(self._calls)

    def _check_protocol(self, protocol: str) -> None:
        if protocol not in _PROTOCOLS:
            raise ValueError(f"unknown protocol {protocol!r}; known: {', '.join(_PROTOCOLS)}")
        if protocol == "a2a":
            self._needed_a2a("protocol='a2a'")

    def _needed_a2a(self, what: str) -> Selection:
        if self._selection is None:
            raise A2AClientError(f"{what} needs AgentClient(..., a2a=True)")
        return self._selection


def check_switch(name: str, value: bool) -> None:
    """Refuse what is neither True nor False.

    Raises:
        TypeError: It is.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}, must be True or False")


def _is_a2a_wanted(transport: Transport, a2a: bool, allow_cross_origin: bool) -> bool:
    """Return whether a client is to have an A2A side.

    Raises:
        TypeError: A switch is neither True nor False.
        ValueError: The transport does not carry A2A, or there is nothing to allow.
    """
    check_switch("a2a", a2a)
    check_switch("a2a_allow_cross_origin", allow_cross_origin)
    if allow_cross_origin and not a2a:
        raise ValueError("a2a_allow_cross_origin=True says something of A2A: give a2a=True too")
    if a2a and transport.transport_type != "http":
        raise ValueError(
            f"a2a=True needs the transport 'http', not {transport.transport_type!r}: "
            "AgentClient('http', a2a=True)"
        )
    return a2a
