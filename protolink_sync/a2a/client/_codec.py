"""A2A calls as bytes: JSON-RPC over HTTP, and the request for a card."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from protolink_sync.a2a.client._reader import Reader
from protolink_sync.a2a.wire import jsonrpc
from protolink_sync.errors import (
    A2ARpcError,
    ModelError,
    TransportProtocolError,
    TransportRemoteError,
)
from protolink_sync.models import ClientRequestSpec
from protolink_sync.wire import EventReader, TransportRequestContext, WireReply, WireRequest, json
from protolink_sync.wire import http as http_codec

__all__ = ["CardCodec", "CardReply", "RpcCodec"]

_EVENTS = "text/event-stream"

# How much of an answer that cannot be read its error shows.
_SHOWN = 100


class RpcCodec:
    """One JSON-RPC call.

    Args:
        number: Its id.
        method: Name of the method.
        headers: Headers beside those of the body.
        query: What is put behind the address: a credential of the query, or nothing.
        spoken: The version of A2A, for messages.
        reader: Makes events of results; None for a call that does not stream.
        result_optional: Whether an answer may have neither result nor error.
        id_header: Name of a header for the id of the request; None for no such header.
    """

    def __init__(
        self,
        number: int,
        method: str,
        headers: Mapping[str, str],
        *,
        query: str = "",
        spoken: str = "",
        reader: Reader | None = None,
        result_optional: bool = False,
        id_header: str | None = None,
    ) -> None:
        self._number = number
        self._method = method
        self._named = f"{method}, A2A {spoken}" if spoken else method
        self._headers = headers
        self._query = query
        self._reader = reader
        self._result_optional = result_optional
        self._id_header = id_header

    def encode_body(self, spec: ClientRequestSpec, data: Any) -> bytes:
        """Return the request object; the data are its params."""
        return json.dumps(jsonrpc.request(self._number, self._method, data))

    def encode(
        self,
        spec: ClientRequestSpec,
        context: TransportRequestContext,
        body: bytes | None,
        data: Any = None,
        params: Mapping[str, Any] | None = None,
    ) -> WireRequest:
        """Return the call as an HTTP request."""
        accept = _EVENTS if self._reader is not None else f"application/json, {_EVENTS}"
        headers = {"Content-Type": "application/json", "Accept": accept, **self._headers}
        if self._id_header is not None:
            headers[self._id_header] = context.request_id
        return WireRequest(
            context=context, method="POST", path=self._query, headers=headers, body=body
        )

    def decode(
        self,
        reply: WireReply,
        context: TransportRequestContext,
        *,
        retryable_statuses: frozenset[int] = frozenset(),
        now: Callable[[], float],
    ) -> Any:
        """Return the result in an answer.

        Raises:
            TransportRemoteError: A status that is not 200 to 299.
            A2ARpcError: The answer is an error.
            TransportProtocolError: The answer is no JSON-RPC, or one to another call.
        """
        if not 200 <= reply.status <= 299:
            failure = http_codec.remote_error(reply, context, retryable_statuses, now)
            try:
                raise failure from _told(failure, reply, context)
            finally:
                del failure  # which holds this frame
        body = reply.body
        if _is_events(reply):
            # Some servers frame the one answer as an event (B59).
            found = EventReader(len(body)).feed(body + b"\n\n")
            if len(found) > 1:
                raise TransportProtocolError(
                    f"{context.where}: the answer is a stream of {len(found)} events, not one "
                    "answer; stream_message reads those"
                )
            body = found[0] if found else b""
        return self._result(body, context, _about(reply))

    def decode_event(self, payload: bytes, context: TransportRequestContext) -> tuple[Any, bool]:
        """Return the event in one message of a stream, and whether it is the last."""
        assert self._reader is not None
        value = self._result(payload, context, "in the stream")
        try:
            return self._reader.read(value)
        except ModelError as error:
            raise _misshapen("an event", error, context) from error

    def is_whole(self, payload: bytes) -> bool:
        """Tell whether an event without its blank line was not cut (B36)."""
        try:
            json.loads(payload)
        except ValueError:
            return False
        return True

    @property
    def may_end(self) -> bool:
        """Whether the connection may end now without being cut."""
        return self._reader is not None and self._reader.may_end

    def decode_instead(
        self,
        reply: WireReply,
        context: TransportRequestContext,
        *,
        retryable_statuses: frozenset[int] = frozenset(),
        now: Callable[[], float],
    ) -> list[bytes]:
        """Return the one message of an answer that is no stream: its result is one event (B38)."""
        self.decode(reply, context, retryable_statuses=retryable_statuses, now=now)
        return [reply.body]

    def _result(self, payload: bytes, context: TransportRequestContext, about: str) -> Any:
        try:
            value = json.loads(payload)
        except ValueError as error:
            raise TransportProtocolError(
                f"{context.where}: the answer is not JSON: {error} ({about}, it begins with "
                f"{payload[:_SHOWN]!r}). Is this the agent's A2A address?"
            ) from error
        try:
            return jsonrpc.result_of(
                value,
                self._number,
                where=f"{context.where} ({self._named})",
                result_optional=self._result_optional,
            )
        except ModelError as error:
            raise _misshapen("the answer", error, context) from error


@attrs.frozen
class CardReply:
    """An answer to the request for a card.

    Args:
        value: The JSON value; None if the card that is held is still good.
        etag: What to ask for it with the next time.
        max_age: Seconds for which it need not be asked for again; None if that is not told.
        location: Where the agent says that the card is instead.
    """

    value: Any
    etag: str | None = None
    max_age: float | None = None
    location: str | None = None


@attrs.frozen
class CardCodec:
    """The request for a card.

    Args:
        headers: Headers of the caller.
        etag: Of the card that is held; the answer may then be that it is still good.
        id_header: Name of a header for the id of the request; None for no such header.
    """

    headers: Mapping[str, str]
    etag: str | None = None
    id_header: str | None = None

    def encode_body(self, spec: ClientRequestSpec, data: Any) -> bytes | None:
        """Return None: nothing is sent."""
        return None

    def encode(
        self,
        spec: ClientRequestSpec,
        context: TransportRequestContext,
        body: bytes | None,
        data: Any = None,
        params: Mapping[str, Any] | None = None,
    ) -> WireRequest:
        """Return the request."""
        headers = {"Accept": "application/json", **self.headers}
        if self.etag is not None:
            headers["If-None-Match"] = self.etag
        if self.id_header is not None:
            headers[self.id_header] = context.request_id
        return WireRequest(context=context, method="GET", path="", headers=headers, body=None)

    def decode(
        self,
        reply: WireReply,
        context: TransportRequestContext,
        *,
        retryable_statuses: frozenset[int] = frozenset(),
        now: Callable[[], float],
    ) -> CardReply:
        """Return what came.

        Raises:
            TransportRemoteError: A status that is not 200 to 299, but for a redirection and for
                "not modified".
            TransportProtocolError: The body is no JSON.
        """
        etag, max_age = _etag(reply), _max_age(reply)
        if reply.status == 304 and self.etag is not None:
            return CardReply(None, etag or self.etag, max_age)
        location = reply.headers.get("location")
        if reply.status in (301, 302, 303, 307, 308) and location:
            return CardReply(None, location=location)
        value = http_codec.decode(reply, context, retryable_statuses=retryable_statuses, now=now)
        return CardReply(value, etag, max_age)

    def decode_event(self, payload: bytes, context: TransportRequestContext) -> tuple[Any, bool]:
        """A card is no stream."""
        raise NotImplementedError


def _is_events(reply: WireReply) -> bool:
    kind = reply.headers.get("content-type", "")
    return kind.partition(";")[0].strip().lower() == _EVENTS


def _told(
    failure: TransportRemoteError, reply: WireReply, context: TransportRequestContext
) -> A2ARpcError | None:
    """Write on the error of a status the JSON-RPC error in its body, and return that (B53)."""
    try:
        value = json.loads(reply.body)
    except ValueError:
        return None
    error = value.get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict) or not isinstance(error.get("code"), int):
        return None
    told = jsonrpc.rpc_error(error, context.where)
    failure.error_type = str(told.code)
    failure.args = (f"{failure.args[0]} (JSON-RPC error {told.code})",)
    return told


def _about(reply: WireReply) -> str:
    kind = reply.headers.get("content-type", "not given")
    return f"status {reply.status}, content type {kind}"


def _misshapen(
    what: str, error: ModelError, context: TransportRequestContext
) -> TransportProtocolError:
    return TransportProtocolError(f"{context.where}: {what} has the wrong shape: {error}")


def _etag(reply: WireReply) -> str | None:
    etag = reply.headers.get("etag")
    # It goes back as it came, so it must be fit for a header.
    return etag if etag and etag.isascii() and etag.isprintable() else None


def _max_age(reply: WireReply) -> float | None:
    """Return the seconds of ``Cache-Control: max-age``; 0 where it must not be kept."""
    for directive in reply.headers.get("cache-control", "").lower().split(","):
        name, _, value = directive.strip().partition("=")
        if name in ("no-store", "no-cache"):
            return 0.0
        seconds = value.strip('"')
        if name == "max-age" and seconds.isascii() and seconds.isdigit():
            return float(seconds)
    return None
