"""The canned server of gRPC: prebuilt envelopes by grpcio's own server.

That one is Python and costs more than any client, so only ``cpu_us`` says something about a
client's streams. It prints ``{"port": N}``, or ``{"missing": ...}`` without grpcio, and serves
until its standard input closes.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.payloads import REQUEST_ID, events, paced_events, task

_SERVICE = "protolink.transport.v1.ProtolinkTransport"
_PLACEHOLDER = REQUEST_ID.encode()
_ID = re.compile(rb'"id": ?"(\w{32})"')
_KIND = re.compile(rb'"stream": ?"(\w+)"')
_REPLY = json.dumps({"id": REQUEST_ID, "ok": True, "result": task("small")}).encode()


def _found(pattern: re.Pattern[bytes], request: bytes) -> bytes:
    found = pattern.search(request)
    assert found is not None
    return found[1]


def _invoke(request: bytes, _: Any) -> bytes:
    return _REPLY.replace(_PLACEHOLDER, _found(_ID, request), 1)


@functools.cache
def _prebuilt(kind: str) -> tuple[bytes, ...]:
    return tuple(events(kind))


def _stream(request: bytes, _: Any) -> Iterator[bytes]:
    kind, request_id = _found(_KIND, request).decode(), _found(_ID, request)
    for event in paced_events() if kind == "paced" else _prebuilt(kind):
        yield event.replace(_PLACEHOLDER, request_id, 1)


def main() -> None:
    """Serve until standard input closes."""
    try:
        import grpc
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), flush=True)
        return
    server = grpc.server(ThreadPoolExecutor(16))
    methods: dict[str, Any] = {
        "Invoke": grpc.unary_unary_rpc_method_handler(_invoke),
        "Stream": grpc.unary_stream_rpc_method_handler(_stream),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(json.dumps({"port": port}), flush=True)
    sys.stdin.read()
    server.stop(None)


if __name__ == "__main__":
    main()
