"""ProtoLink over HTTP with server-sent events: calls as over HTTP, and streams."""

from __future__ import annotations

import socket
import time
import zlib
from typing import ClassVar

from protolink_sync.errors import (
    ProtoLinkError,
    StreamInterruptedError,
    TransportConnectionError,
    TransportLimitError,
)
from protolink_sync.transport._body import BodyReader
from protolink_sync.transport._call import Call
from protolink_sync.transport._connections import Connection, Pool
from protolink_sync.transport._feed import OpenStream
from protolink_sync.transport.base import TransportCapabilities
from protolink_sync.transport.http import FOREIGN_ERRORS, HTTPTransport
from protolink_sync.wire import EventReader, WireReply, WireRequest

__all__ = ["SSEJSONRPCTransport"]

# How long the end of a body may take to follow the last event, so that the connection can be used
# again.
_END_OF_BODY = 0.02


class SSEJSONRPCTransport(HTTPTransport):
    """Carry calls as :class:`HTTPTransport` does, and streams as server-sent events.

    Each stream has a connection of its own. Leaving a stream closes it, and a ProtoLink agent
    cancels the task then.

    The arguments are those of :class:`HTTPTransport`.
    """

    transport_type: ClassVar[str] = "sse"
    capabilities: ClassVar[TransportCapabilities] = TransportCapabilities(
        networked=True, streaming=True, tls=True, bidirectional=False, persistent_connections=True
    )

    def _open_stream(self, request: WireRequest, deadline: Call) -> OpenStream:
        context = request.context
        route = self._net().route(context.url + request.path)
        try:
            connection, reply = self._head(route, request, deadline)
            kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
            if reply.status == 200 and kind == "text/event-stream":
                return _SSEStream(self, request, connection, route.pool, deadline)
            body = self._read(reply, request)
        except FOREIGN_ERRORS as error:
            raise self._typed(error, request, deadline) from error
        if deadline.ended is not None:
            raise self._ended(deadline, context)
        route.pool.give_back(connection, deadline)
        answer = WireReply(reply.status, reply.reason, reply.headers, body)
        return _Answer(
            deadline.codec.decode_instead(
                answer,
                context,
                retryable_statuses=deadline.retry.retryable_statuses,
                now=time.time,
            )
        )

    def _broken(self, error: Exception, request: WireRequest, call: Call) -> ProtoLinkError:
        """Return the error of a stream that broke."""
        typed = self._typed(error, request, call)
        if type(typed) is TransportConnectionError:
            return StreamInterruptedError(
                f"{request.context.where}: the stream was cut ({error}). "
                "The task may go on at the agent; cancel_task ends it"
            )
        return typed


class _Answer:
    """An answer that is no stream, but whose messages stand for one."""

    def __init__(self, messages: list[bytes]) -> None:
        self._messages: list[bytes] | None = messages

    def receive(self) -> list[bytes] | None:
        """Return all messages the first time."""
        messages, self._messages = self._messages, None
        return messages

    def close(self, finished: bool) -> None:
        """Nothing to do: the connection was given back."""


class _SSEStream:
    """One open stream."""

    def __init__(
        self,
        transport: SSEJSONRPCTransport,
        request: WireRequest,
        connection: Connection,
        pool: Pool,
        call: Call,
    ) -> None:
        assert connection.reply is not None
        self._transport = transport
        self._request = request
        self._connection = connection
        self._pool = pool
        self._call = call
        self._body = BodyReader(connection.reply)
        self._events = EventReader(transport.config.limits.max_event_bytes)

    def receive(self) -> list[bytes] | None:
        """Wait for the next events' data; None at the end of the body."""
        context = self._request.context
        try:
            data = b"" if self._events.failed else self._body.read()
        except (*FOREIGN_ERRORS, zlib.error) as error:
            raise self._transport._broken(error, self._request, self._call) from error
        if self._call.ended is not None:
            # A cut connection looks like the end of a body that ends with its connection.
            raise self._transport._ended(self._call, context)
        if not data and not self._events.failed:
            return self._unfinished()
        try:
            return self._events.feed(data)
        except TransportLimitError as error:
            raise TransportLimitError(f"{context.where}: {error}") from None

    def _unfinished(self) -> list[bytes] | None:
        """Return the event at the end of a body that has no blank line behind it.

        It counts if the protocol says so, and if it is whole.
        """
        is_whole = getattr(self._call.codec, "is_whole", None)
        if is_whole is None:
            return None
        return [data for data in self._events.feed(b"\n\n") if is_whole(data)] or None

    def close(self, finished: bool) -> None:
        """Keep the connection if the body is at its end, which follows the last event at once."""
        if finished and self._connection.sock is not None:
            try:
                if self._comes_to_its_end(self._connection.sock):
                    self._pool.give_back(self._connection, self._call)
            except (*FOREIGN_ERRORS, zlib.error):
                pass  # then it is closed with the call

    def _comes_to_its_end(self, sock: socket.socket) -> bool:
        """Wait for the end of the body; False if it does not come, or something before it does."""
        end = time.monotonic() + _END_OF_BODY
        # As a whole: a peer may send framing for ever.
        while (left := end - time.monotonic()) > 0:
            sock.settimeout(left)
            if not self._body.skips_framing():
                break
            if self._body.at_end:
                sock.settimeout(None)
                return True
        return False
