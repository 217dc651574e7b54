"""The requests of A2A over a transport: for the client of one agent, and for that of many."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urljoin

import attrs

from protolink_sync.a2a.client._access import Access, Shown
from protolink_sync.a2a.client._budget import Budget
from protolink_sync.a2a.client._codec import CardCodec, CardReply, RpcCodec
from protolink_sync.a2a.client._discovery import Target
from protolink_sync.a2a.client._operations import CARD, Operation, spec_of
from protolink_sync.a2a.client._reader import Reader
from protolink_sync.a2a.wire import Dialect, WireDialect
from protolink_sync.errors import A2AClientError
from protolink_sync.models import ClientRequestSpec
from protolink_sync.security import origin
from protolink_sync.streaming import EventSource
from protolink_sync.transport import Transport
from protolink_sync.wire import one_line

__all__ = ["Calls", "Settings"]

_Stream = TypeVar("_Stream")

# How often the address of a card may send to another one of the same origin.
_MOST_REDIRECTS = 3


@attrs.frozen
class Settings:
    """What each request takes when it starts, so that a change does not touch one in flight.

    Args:
        timeout: Budget in seconds of a call that gives none; ``math.inf`` for none.
        connect_timeout: Seconds for resolving, connecting and TLS; ``math.inf`` for none.
        access: What agents are shown.
        allow_cross_origin: Follow a card to another origin.
        extensions: URIs of the extensions that are used.
    """

    timeout: float
    connect_timeout: float | None
    access: Access
    allow_cross_origin: bool = False
    extensions: Sequence[str] = ()


# Of the process: several clients and views share connections, where by its id an answer is known.
# next() is one operation of the interpreter: no two threads get the same number.
_numbers = itertools.count(1)


class Calls:
    """Requests over one transport, each with an id of its own.

    Args:
        transport: Carries them.
        id_header: Name of a header for the id of each request; None for no such header.
    """

    def __init__(self, transport: Transport, *, id_header: str | None = None) -> None:
        self.transport = transport
        self._id_header = id_header

    def card(
        self,
        url: str,
        settings: Settings,
        budget: Budget,
        of_caller: list[int],
        *,
        etag: str | None,
        version: str = "",
    ) -> CardReply:
        """Ask for a card.

        Args:
            url: Address of the card.
            settings: Of this call.
            budget: Of this call.
            of_caller: Gets the ``id`` of each exception that the caller's credentials raise: it
                says nothing of the agent, whatever its class.
            etag: Of the card that is held.
            version: The version in which the card is wanted.

        Raises:
            TransportError: There is no answer, or an error.
            A2AClientError: The agent sends the request elsewhere.
        """
        shown = settings.access.for_card(of_caller)
        headers = {**({"A2A-Version": version} if version else {}), **shown.headers}
        at = url
        for _ in range(_MOST_REDIRECTS + 1):
            reply: CardReply = self.transport.send_as(
                CardCodec(headers, etag, self._id_header),
                CARD,
                at,
                **_bounds(settings, shown, budget),
            )
            if reply.location is None:
                return reply
            at = _redirected(url, at, reply.location)
        raise A2AClientError(
            f"fetch_agent_card from {url}: it is redirected more than {_MOST_REDIRECTS} times"
        )

    def call(
        self,
        operation: Operation,
        dialect: Dialect,
        target: Target,
        params: Any,
        settings: Settings,
        budget: Budget,
    ) -> Any:
        """Carry out an operation and return what the dialect makes of the answer.

        Raises:
            A2ARpcError: The agent answered with an error.
            TransportError: There is no answer, or none that can be read.
        """
        method = self._method(operation, dialect, target)
        shown = _shown(settings, target)
        codec = self._codec(
            method,
            dialect.headers(settings.extensions),
            target,
            shown,
            spoken=dialect.wire.value,
            result_optional=operation.result_optional and dialect.wire is WireDialect.V0_3,
        )
        return self.transport.send_as(
            codec,
            spec_of(operation, dialect),
            target.url,
            params,
            submits=operation.submits,
            **_bounds(settings, shown, budget),
        )

    def verbatim(
        self,
        method: str,
        params: Any,
        headers: Mapping[str, str],
        target: Target,
        settings: Settings,
        budget: Budget,
    ) -> Any:
        """Call any method and return its result as JSON."""
        shown = _shown(settings, target)
        codec = self._codec(method, headers, target, shown)
        spec = ClientRequestSpec("rpc_call", "/", "POST")
        return self.transport.send_as(
            codec, spec, target.url, params, **_bounds(settings, shown, budget)
        )

    def stream(
        self,
        operation: Operation,
        dialect: Dialect,
        target: Target,
        params: Any,
        settings: Settings,
        budget: Budget,
        reader: Reader,
        make: Callable[[EventSource], _Stream],
        *,
        idle_timeout: float,
        primed: bool = False,
    ) -> _Stream:
        """Open a stream.

        Args:
            operation: The operation.
            dialect: In which dialect.
            target: Where.
            params: What is sent.
            settings: Of this call.
            budget: From now to the end of the stream.
            reader: Makes events of results.
            make: Makes the stream.
            idle_timeout: Seconds from one event to the next; ``math.inf`` for no bound.
            primed: Wait for the first event, so that what comes instead is raised here.
        """
        method = self._method(operation, dialect, target)
        shown = _shown(settings, target)
        codec = self._codec(
            method,
            dialect.headers(settings.extensions),
            target,
            shown,
            spoken=dialect.wire.value,
            reader=reader,
        )
        return self.transport.subscribe_as(
            codec,
            spec_of(operation, dialect),
            target.url,
            params,
            make,
            idle_timeout=idle_timeout,
            primed=primed,
            **_bounds(settings, shown, budget),
        )

    def _method(self, operation: Operation, dialect: Dialect, target: Target) -> str:
        method = dialect.method(operation.key)
        if method is None:
            raise A2AClientError(
                f"{operation.name} to {target.url}: A2A {dialect.wire.value} has no such operation"
            )
        return method

    def _codec(
        self,
        method: str,
        headers: Mapping[str, str],
        target: Target,
        shown: Shown,
        *,
        spoken: str = "",
        reader: Reader | None = None,
        result_optional: bool = False,
    ) -> RpcCodec:
        return RpcCodec(
            next(_numbers),
            method,
            {**headers, **shown.headers},
            query=_behind(target.url, shown.query),
            spoken=spoken,
            reader=reader,
            result_optional=result_optional,
            id_header=self._id_header,
        )


def _shown(settings: Settings, target: Target) -> Shown:
    return settings.access.for_call(target.card, is_cross_origin=target.is_cross_origin)


def _bounds(settings: Settings, shown: Shown, budget: Budget) -> dict[str, Any]:
    return {
        "timeout": budget.timeout,
        "started": budget.started,
        "cancel": budget.cancel,
        "credentials": shown.credentials,
        "connect_timeout": settings.connect_timeout,
    }


def _behind(url: str, query: str) -> str:
    """Return a query as it stands behind an address, which may have one of its own."""
    return f"&{query[1:]}" if query and "?" in url else query


def _redirected(first: str, at: str, location: str) -> str:
    """Return where a card is instead, if that is of the same origin."""
    try:
        there = urljoin(at, location)
        same = origin(there) == origin(first) and "@" not in there
    except ValueError:
        same = False
    if not same or not (there.isascii() and there.isprintable()) or " " in there:
        raise A2AClientError(
            f"fetch_agent_card from {first}: the card is said to be at "
            f"{one_line(location[:200])!r}, which is not followed: it is of another origin. "
            "If that is the agent, make the client with its address"
        )
    return there.partition("#")[0]
