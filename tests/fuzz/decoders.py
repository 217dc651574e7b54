"""Everything that reads what a peer sends: how to feed it, and what it may raise."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import io
import json
import math
import random
import time
import zlib
from collections.abc import Callable
from typing import Any

import attrs

from protolink_sync import models
from protolink_sync.a2a.client._reader import Reader
from protolink_sync.a2a.wire import AgentCard, WireDialect, dialect_of, jsonrpc, select
from protolink_sync.client._typed import AnswerType
from protolink_sync.errors import ModelError, ProtoLinkError
from protolink_sync.models import events as run_events
from protolink_sync.server import http1
from protolink_sync.server.refusal import RefusedError
from protolink_sync.transport import _ws_library as ws
from protolink_sync.transport import http as http_transport
from protolink_sync.transport._body import BodyReader
from protolink_sync.transport._reply import Reply
from protolink_sync.transport._ws_frames import take_texts
from protolink_sync.wire import EventReader, TransportRequestContext, WireReply, envelope
from protolink_sync.wire import http as http_codec
from protolink_sync.wire import json as wire_json
from tests.fuzz import seeds
from tests.fuzz.mutations import mutated, mutated_json

LIMIT = 1 << 16
"""The size of events, answers and messages that the readers are told to take."""

_CONTEXT = TransportRequestContext("fuzz", "http://peer.test", seeds.CALL)

Input = Any


@attrs.frozen
class Decoder:
    """One reader.

    Args:
        name: What it reads.
        make: Makes an input.
        read: Reads it; what it returns is how many bytes came out, for the bound.
        may_raise: What the library's caller is prepared for at this place.
    """

    name: str
    make: Callable[[random.Random], Input]
    read: Callable[[Input], int]
    may_raise: tuple[type[BaseException], ...]


def _bytes(of: list[bytes]) -> Callable[[random.Random], Input]:
    return lambda chance: mutated(of, chance)


def _values(of: list[Any]) -> Callable[[random.Random], Input]:
    return lambda chance: mutated_json(of, chance)


def _json_bytes(of: list[Any]) -> Callable[[random.Random], Input]:
    plain = [json.dumps(value).encode() for value in of]

    def make(chance: random.Random) -> Input:
        if chance.random() < 0.5:
            return mutated(plain, chance)
        return json.dumps(mutated_json(of, chance)).encode()

    return make


def _cut(data: bytes) -> list[bytes]:
    """Return the same bytes in pieces that depend on them alone."""
    chance = random.Random(len(data))
    pieces, at = [], 0
    while at < len(data):
        size = chance.choice((1, 2, 7, 64, 1000))
        pieces.append(data[at : at + size])
        at += size
    return pieces


_RFC_6455 = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class _Socket:
    """A connection that brings some bytes and ends; what is sent is dropped."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def makefile(self, *_: Any, **__: Any) -> io.RawIOBase:
        return self._data  # type: ignore[return-value]

    def recv(self, size: int) -> bytes:
        return self._data.read(min(size, 100))

    def recv_into(self, buffer: Any) -> int:
        return self._data.readinto(buffer)

    def sendall(self, data: Any) -> None:
        pass

    def send(self, data: Any) -> int:
        return len(data)

    def setblocking(self, flag: bool) -> None:
        pass


class _Upgrading(_Socket):
    """The same; where the bytes say ``{accept}`` stands the right answer to the request's key."""

    def sendall(self, data: Any) -> None:
        key = bytes(data).partition(b"Sec-WebSocket-Key: ")[2].partition(b"\r\n")[0]
        accept = base64.b64encode(hashlib.sha1(key + _RFC_6455, usedforsecurity=False).digest())
        self._data = io.BytesIO(self._data.getvalue().replace(b"{accept}", accept))


# ---- bytes -------------------------------------------------------------------------------------


def _read_sse(data: bytes) -> int:
    """Read whole and in pieces: both must find the same."""
    whole = _events_of([data])
    in_pieces = _events_of(_cut(data))
    assert whole == in_pieces, f"whole {whole[:3]!r}, in pieces {in_pieces[:3]!r}"
    return sum(map(len, whole))


def _events_of(pieces: list[bytes]) -> list[bytes]:
    reader = EventReader(LIMIT)
    found = []
    for piece in pieces:
        found += reader.feed(piece)
    return found


def _read_body(data: bytes) -> int:
    """Read as a stream does."""
    reply = Reply(_Socket(data), method="POST")  # type: ignore[arg-type]
    with contextlib.closing(reply):
        reply.begin()
        body = BodyReader(reply)
        size = 0
        while piece := body.read():
            assert len(piece) <= LIMIT, f"a piece has {len(piece)} bytes"
            size += len(piece)
            if size > LIMIT:  # where a stream's reader would end it
                break
        return size


def _read_reply(data: bytes) -> int:
    """Read as a call does."""
    reply = Reply(_Socket(data), method="POST")  # type: ignore[arg-type]
    with contextlib.closing(reply):
        reply.begin()
        raw: Any = reply
        if reply.length is not None and reply.length > LIMIT:
            return 0
        if reply.headers.get("content-encoding", "identity").lower() != "identity":
            raw = http_transport._inflated(reply)
        size = 0
        while piece := raw.read(LIMIT):
            size += len(piece)
            if size > LIMIT:
                break
        return size


def _read_head(data: bytes) -> int:
    reply = Reply(_Socket(data), method="GET")  # type: ignore[arg-type]
    with contextlib.closing(reply):
        reply.begin()
        return len(repr(reply.headers))


def _read_messages(data: bytes) -> int:
    """Read as a WebSocket does, first what is whole, then by the library."""
    wire = ws.Wire(_Socket(data))  # type: ignore[arg-type]
    library = ws.Library(wire)
    # As after an upgrade.
    library.sock, library.connected = wire, True
    wire.upgraded()
    size = 0
    while True:
        texts, wire.at, _ = take_texts(wire.buffer, wire.at, LIMIT)
        size += sum(map(len, texts))
        if not texts:
            try:
                message = library.read(LIMIT)
            except ws.WebSocketClosed:
                return size
            if message is not None:
                assert len(message) <= LIMIT, f"a message has {len(message)} bytes"
                size += len(message)


def _read_upgrade(data: bytes) -> int:
    library = ws.Library(ws.Wire(_Upgrading(data)))  # type: ignore[arg-type]
    library.upgrade("ws://peer.test/", "peer.test", [])
    return 0


def _read_json(data: bytes) -> int:
    value = wire_json.loads(data)
    assert wire_json.loads(wire_json.dumps(value)) == value
    return 0


def _read_reply_envelope(data: bytes) -> int:
    envelope.decode_reply(data, _CONTEXT, needs_id=True)
    return 0


def _read_event_envelope(data: bytes) -> int:
    envelope.decode_event(data, _CONTEXT)
    return 0


def _read_http_answer(data: bytes) -> int:
    status = 200 if len(data) % 3 else 100 + len(data) % 500
    headers = {"retry-after": data[:30].decode("latin-1"), "content-type": "application/json"}
    http_codec.decode(WireReply(status, "", headers, data), _CONTEXT, now=time.time)
    return 0


def _read_retry_after(data: bytes) -> int:
    waits = http_codec.retry_after(data.decode("latin-1"), now=lambda: 0.0)
    assert waits is None or waits >= 0
    return 0


def _read_request(data: bytes) -> int:
    head = http1.parse_head(data)
    http1.environ_of(head, io.BytesIO(), ("h", 1), "c", "http")
    assert isinstance(head.keeps_alive, bool)
    return min(head.length, 0)


# ---- values ------------------------------------------------------------------------------------

_NATIVE = (
    models.Task,
    models.Message,
    models.Part,
    models.Artifact,
    models.AgentCard,
    models.TaskCancellationRequest,
    models.StateStoreReport,
    models.StateOperationResult,
    models.HistoryCompactionResult,
    models.LLMMessage,
)


def _read_native(value: Any) -> int:
    """Read as every class; what was read is written back with all its members."""
    for kind in _NATIVE:
        with contextlib.suppress(ProtoLinkError):
            read = kind.from_dict(value)
            written = read.to_dict()
            assert kind.from_dict(written).to_dict() == written
            if isinstance(read, models.Task):
                read.get_output(read.text)
    return 0


_TYPES = tuple(AnswerType(kind) for kind in (int, float, str | None, list[float], set[Any]))


def _read_typed(data: bytes) -> int:
    """Read as an answer of each type."""
    text = data.decode("latin-1")
    for kind in _TYPES:
        with contextlib.suppress(ModelError):
            value = kind.read(text)
            assert not isinstance(value, float) or math.isfinite(value)
    return 0


def _read_run_event(value: Any) -> int:
    run_events.RunEvent.from_dict(value)
    return 0


def _read_rpc(data: bytes) -> int:
    value = wire_json.loads(data)
    result = jsonrpc.result_of(value, seeds.CALL, where="fuzz")
    dialect_of(WireDialect.V1_0).parse_send(result)
    return 0


def _read_a2a(value: Any) -> int:
    for wire in WireDialect:
        dialect = dialect_of(wire)
        for parse in (
            dialect.parse_send,
            dialect.parse_task,
            dialect.parse_event,
            dialect.parse_page,
            dialect.parse_push,
            dialect.parse_pushes,
            Reader(dialect).read,
        ):
            with contextlib.suppress(ProtoLinkError):
                parse(value)
    return 0


def _read_card(value: Any) -> int:
    card = AgentCard.from_dict(value)
    chosen = select(card, "https://peer.test/a")
    assert chosen.url.startswith("https://peer.test/")
    return 0


_HTTP_ERRORS = (*http_transport.FOREIGN_ERRORS, zlib.error)

DECODERS = (
    Decoder("sse", _bytes(seeds.SSE), _read_sse, (ProtoLinkError,)),
    Decoder("stream body", _bytes(seeds.HTTP), _read_body, _HTTP_ERRORS),
    Decoder("reply", _bytes(seeds.HTTP), _read_reply, _HTTP_ERRORS),
    Decoder("head", _bytes(seeds.HTTP), _read_head, (http.client.HTTPException, OSError)),
    Decoder("websocket", _bytes(seeds.FRAMES), _read_messages, ws.FOREIGN_ERRORS),
    Decoder("upgrade", _bytes(seeds.UPGRADES), _read_upgrade, ws.FOREIGN_ERRORS),
    Decoder("json", _json_bytes(seeds.NATIVE), _read_json, (ValueError,)),
    Decoder("envelope", _json_bytes(seeds.EVENTS), _read_reply_envelope, (ProtoLinkError,)),
    Decoder("event", _json_bytes(seeds.EVENTS), _read_event_envelope, (ProtoLinkError,)),
    Decoder("http answer", _json_bytes(seeds.NATIVE), _read_http_answer, (ProtoLinkError,)),
    Decoder("retry-after", _bytes(seeds.RETRY_AFTER), _read_retry_after, ()),
    Decoder("models", _values(seeds.NATIVE), _read_native, (ProtoLinkError,)),
    Decoder("typed answer", _bytes(seeds.ANSWERS), _read_typed, ()),
    Decoder("run event", _values(seeds.NATIVE), _read_run_event, (ProtoLinkError,)),
    Decoder("json-rpc", _json_bytes(seeds.RPC), _read_rpc, (ProtoLinkError, ValueError)),
    Decoder("a2a", _values(seeds.A2A), _read_a2a, (ProtoLinkError,)),
    Decoder("a2a card", _values(seeds.CARDS), _read_card, (ProtoLinkError,)),
    Decoder("request head", _bytes(seeds.REQUESTS), _read_request, (RefusedError,)),
)
