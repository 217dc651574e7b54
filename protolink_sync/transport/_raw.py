"""Answers as they came, beside what was made of them."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from protolink_sync._deadline import CancelToken
from protolink_sync.models import ClientRequestSpec
from protolink_sync.transport._calls import Calls
from protolink_sync.transport._codec import Codec
from protolink_sync.transport._options import CallOptions
from protolink_sync.wire import TransportRequestContext, WireReply

__all__ = ["RawCalls", "RawResponse"]


@attrs.frozen
class RawResponse:
    """An answer as it came.

    Args:
        status: The HTTP status.
        headers: Its headers, names in lower case.
        body: The whole body, inflated.
        parsed: What the operation's parser made of it.
    """

    status: int
    headers: Mapping[str, str] = attrs.field(repr=False)
    body: bytes = attrs.field(repr=False)
    parsed: Any


class RawCalls:
    """The calls of a transport, each with its answer as it came.

    Args:
        transport: Carries them.
    """

    def __init__(self, transport: Calls) -> None:
        self._transport = transport

    def send(
        self,
        request_spec: ClientRequestSpec,
        base_url: str | None = None,
        data: Any = None,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        idempotency_key: str | None = None,
        options: CallOptions | None = None,
    ) -> RawResponse:
        """Carry out one operation; see ``Transport.send``, also for the errors.

        An answer whose status is none of 200 to 299 is raised, as always: the error has
        ``status_code``, ``headers`` and ``body``.

        Args:
            request_spec: The operation.
            base_url: Address of the peer; None for the transport's own.
            data: What the operation sends.
            params: Query parameters.
            timeout: Budget in seconds.
            cancel: Token that ends the call.
            idempotency_key: By it the peer recognises the call.
            options: What this call has instead of what the transport has.
        """
        codec = _Keeping(self._transport._codec)
        parsed = self._transport._carry(
            codec, request_spec, base_url, data, params, timeout, cancel, idempotency_key, options
        )
        assert codec.reply is not None
        reply = codec.reply
        headers = types.MappingProxyType(dict(reply.headers))
        return RawResponse(reply.status, headers, reply.body, parsed)


class _Keeping:
    """A codec of one call, which keeps the answer that it has read."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self.encode_body = codec.encode_body
        self.encode = codec.encode
        self.decode_event = codec.decode_event
        self.reply: WireReply | None = None

    def decode(
        self,
        reply: WireReply,
        context: TransportRequestContext,
        *,
        retryable_statuses: frozenset[int] = frozenset(),
        now: Callable[[], float],
    ) -> Any:
        """Return the value of an answer; the last one counts."""
        self.reply = reply
        return self._codec.decode(reply, context, retryable_statuses=retryable_statuses, now=now)
