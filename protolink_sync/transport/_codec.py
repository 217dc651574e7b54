"""What a kind of transport can do, and what makes its bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import attrs

from protolink_sync.models import ClientRequestSpec
from protolink_sync.wire import TransportRequestContext, WireReply, WireRequest

__all__ = ["Codec", "TransportCapabilities"]


@attrs.frozen
class TransportCapabilities:
    """What a kind of transport can do.

    Args:
        networked: Its peers are other processes.
        streaming: It has :meth:`Transport.subscribe`.
        tls: It can encrypt.
        bidirectional: Both sides can send at any time.
        persistent_connections: Connections are kept between calls.

    Source:
        ProtoLink 0.8.3, ``TransportCapabilities``.
    """

    networked: bool = True
    streaming: bool = False
    tls: bool = False
    bidirectional: bool = False
    persistent_connections: bool = False

    def to_dict(self) -> dict[str, bool]:
        """Return the fields by name."""
        return attrs.asdict(self)


class Codec(Protocol):
    """What turns a call into bytes and an answer into a value: a module of the room wire.

    For streams over HTTP it also has ``decode_instead``, which takes an answer that is no stream
    as ``decode`` does, and returns the messages in it or raises what it says.
    """

    def encode_body(self, spec: ClientRequestSpec, data: Any) -> bytes | None:
        """Return the encoded data of a call."""

    def encode(
        self,
        spec: ClientRequestSpec,
        context: TransportRequestContext,
        body: bytes | None,
        data: Any = None,
        params: Mapping[str, Any] | None = None,
    ) -> WireRequest:
        """Return the whole call."""

    def decode(
        self,
        reply: WireReply,
        context: TransportRequestContext,
        *,
        retryable_statuses: frozenset[int] = frozenset(),
        now: Callable[[], float],
    ) -> Any:
        """Return the value of an answer, or raise what it says."""

    def decode_event(self, payload: bytes, context: TransportRequestContext) -> tuple[Any, bool]:
        """Return the event in one message of a stream, and whether it is the last."""
