"""A peer that speaks ProtoLink's generic gRPC service and does what the test says."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

SERVICE = "protolink.transport.v1.ProtolinkTransport"

LIMIT = 20.0

Handler = Callable[[dict[str, Any], grpc.ServicerContext], Any]


class GRPCPeer:
    """A running server: ``invoke`` returns a result, ``stream`` yields events.

    Args:
        invoke: Answers unary calls; what it returns is the result in the envelope.
        stream: Answers streams; it yields events. Bytes are sent as they are.
        health: Answers the health check: bytes in, bytes out. None for a peer without one.
        port: Where to listen; 0 takes a free port.
        credentials: For TLS.
        options: Of grpcio's server.

    Attributes:
        requests: The envelopes that came.
        metadata: The metadata that came with each.
        ended: Set when a call has ended, for whatever reason.
    """

    def __init__(
        self,
        invoke: Handler | None = None,
        stream: Handler | None = None,
        *,
        health: Callable[[bytes, grpc.ServicerContext], bytes] | None = None,
        port: int = 0,
        credentials: Any = None,
        **options: Any,
    ) -> None:
        self._invoke, self._stream = invoke or (lambda *_: {"state": "completed"}), stream
        self.requests: list[dict[str, Any]] = []
        self.metadata: list[dict[str, str]] = []
        self.arrived = threading.Semaphore(0)
        self.ended = threading.Event()
        self._pool = ThreadPoolExecutor(16, thread_name_prefix="grpc-peer")
        self._server = grpc.server(self._pool, options=[("grpc.so_reuseport", 0)], **options)
        handlers = {
            "Invoke": grpc.unary_unary_rpc_method_handler(self._answer),
            "Stream": grpc.unary_stream_rpc_method_handler(self._events),
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, handlers),)
        )
        if health is not None:
            check = {"Check": grpc.unary_unary_rpc_method_handler(health)}
            self._server.add_generic_rpc_handlers(
                (grpc.method_handlers_generic_handler("grpc.health.v1.Health", check),)
            )
        address = f"127.0.0.1:{port}"
        self.port = (
            self._server.add_insecure_port(address)
            if credentials is None
            else self._server.add_secure_port(address, credentials)
        )
        self.url = f"grpc{'' if credentials is None else 's'}://127.0.0.1:{self.port}"
        self._server.start()

    def _seen(self, payload: bytes, context: grpc.ServicerContext) -> dict[str, Any]:
        envelope: dict[str, Any] = json.loads(payload)
        self.requests.append(envelope)
        self.metadata.append(dict(context.invocation_metadata()))
        context.add_callback(self.ended.set)
        self.arrived.release()
        return envelope

    def _answer(self, payload: bytes, context: grpc.ServicerContext) -> bytes:
        envelope = self._seen(payload, context)
        result = self._invoke(envelope, context)
        if isinstance(result, bytes):
            return result
        return json.dumps({"id": envelope["id"], "ok": True, "result": result}).encode()

    def _events(self, payload: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        envelope = self._seen(payload, context)
        assert self._stream is not None
        for event in self._stream(envelope, context):
            yield event if isinstance(event, bytes) else wrapped(envelope, event)

    def stop(self) -> None:
        """End what runs and free the port."""
        self._server.stop(None).wait(LIMIT)
        self._pool.shutdown(wait=True)

    def __enter__(self) -> GRPCPeer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()


def wrapped(envelope: dict[str, Any], event: Any, *, final: bool = False) -> bytes:
    """Return an event in its envelope."""
    reply = {"id": envelope["id"], "ok": True, "result": event, "final": final, "stream": True}
    return json.dumps(reply).encode()


def done(envelope: dict[str, Any]) -> bytes:
    """Return the envelope that ends a stream."""
    return wrapped(envelope, None, final=True)


def until_cancelled(context: grpc.ServicerContext) -> None:
    """Stay in a handler until its call is cancelled."""
    gone = threading.Event()
    with contextlib.suppress(RuntimeError):
        if context.add_callback(gone.set):
            assert gone.wait(LIMIT), "the call was not cancelled"
