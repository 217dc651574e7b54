"""What a peer sends beyond a limit never fills the memory: measured in fresh processes."""

from __future__ import annotations

import functools
import gzip
import json
import sys
import zlib

import pytest

from tests.transport.scenes import (
    CLOSE,
    RECV,
    in_fresh_process,
    raw_reply,
    send,
    serving,
)

MIB = 1 << 20

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc"),
]

# The limit is 1 MiB, the peer sends 128 MiB and more.
BOUND = 4 * MIB

PROGRAM = """
import json, sys
from protolink_sync.errors import TransportError
from protolink_sync.models import ClientRequestSpec
from protolink_sync.transport import HTTPTransport, TransportConfig, TransportLimits

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

ask = ClientRequestSpec("ask", "/ask", "POST")
limits = TransportLimits(max_response_bytes=1 << 20)
client = HTTPTransport(sys.argv[1], config=TransportConfig(limits=limits))
# One call before, for the code that a call loads.
assert len(client.send(ask, None, {})["text"]) == 900
before = peak()
for _ in range(int(sys.argv[2])):
    try:
        client.send(ask, None, {})
    except TransportError as error:
        print(json.dumps([type(error).__name__, peak() - before]))
client.close()
"""

FIRST = raw_reply(
    gzip.compress(json.dumps({"text": "x" * 900}).encode()).decode("latin-1"),
    {"Content-Encoding": "gzip"},
)
BLOCK = "x" * 65536
HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = f"{HEAD}Transfer-Encoding: chunked\r\n\r\n"


@functools.cache
def bomb(layers: int = 1, wbits: int = 31, size: int = 32 * MIB) -> str:
    """Return so many bytes in a few, compressed once or several times."""
    compressor = zlib.compressobj(6, wbits=wbits)
    block = b" " * MIB
    data = b"".join([compressor.compress(block) for _ in range(size // MIB)]) + compressor.flush()
    for _ in range(layers - 1):
        data = gzip.compress(data)
    return data.decode("latin-1")


def repeated(block: str = BLOCK, times: int = 2048) -> dict:
    return {"op": "repeat", "data": block, "times": times}


FLOODS = {
    "with its length": lambda: [send(f"{HEAD}Content-Length: {128 * MIB}\r\n\r\n"), repeated()],
    "in chunks": lambda: [send(CHUNKED), repeated(f"10000\r\n{BLOCK}\r\n")],
    "in one chunk": lambda: [send(f"{CHUNKED}8000000\r\n"), repeated()],
    "in tiny chunks": lambda: [send(CHUNKED), repeated("4\r\nxxxx\r\n" * 10_000, 300)],
    "in a chunk without end": lambda: [send(f"{CHUNKED}-1\r\n"), repeated()],
    "until it closes": lambda: [send(f"{HEAD}\r\n"), repeated()],
    "as one line of headers": lambda: [send(f"{HEAD}X-Long: "), repeated()],
    "as a status line": lambda: [repeated()],
    "as a chunk's size": lambda: [send(CHUNKED), repeated("0" * 65536)],
    "behind the last chunk": lambda: [send(f"{CHUNKED}0\r\n"), repeated("X-T: " + "y" * 1000)],
    "gzip": lambda: [raw_reply(bomb(size=256 * MIB), {"Content-Encoding": "gzip"})],
    "gzip in chunks": lambda: [
        {"op": "head", "headers": {"Content-Encoding": "gzip", "Transfer-Encoding": "chunked"}},
        {"op": "chunks", "data": bomb(), "size": 5000},
        {"op": "end_chunks"},
    ],
    "gzip of gzip": lambda: [raw_reply(bomb(layers=2), {"Content-Encoding": "gzip, gzip"})],
    "deflate": lambda: [raw_reply(bomb(wbits=15), {"Content-Encoding": "deflate"})],
    "raw deflate": lambda: [raw_reply(bomb(wbits=-15), {"Content-Encoding": "deflate"})],
    "as an error": lambda: [
        raw_reply(bomb(), {"Content-Encoding": "gzip"}, status=500, reason="Oops")
    ],
}


# Not a limit of bodies: the bounds on a line of the head, or what is no HTTP at all.
OTHER_ERRORS = {"in a chunk without end", "as one line of headers", "as a status line"}
OTHER_ERRORS |= {"as a chunk's size", "behind the last chunk"}

THE_USUAL = ["with its length", "in chunks", "until it closes", "gzip"]


def growth(*floods: str) -> dict[str, tuple[str, int]]:
    """Return for each flood its error, and by how much the peak of one process has grown."""
    first, *others = [[RECV, *FLOODS[flood](), CLOSE] for flood in floods]
    with serving([RECV, FIRST, *first], *others) as server:
        told = in_fresh_process(PROGRAM, server.base, str(len(floods)))
    lines = [json.loads(line) for line in told.splitlines()]
    return {flood: (error, peak) for flood, (error, peak) in zip(floods, lines, strict=True)}


@pytest.mark.parametrize("flood", THE_USUAL)
def test_a_flood_beyond_the_limit_does_not_fill_the_memory(flood):
    error, peak = growth(flood)[flood]

    assert error == "TransportLimitError"
    assert peak < BOUND


def test_no_other_flood_fills_the_memory_either():
    told = growth(*[flood for flood in FLOODS if flood not in THE_USUAL])

    for flood, (error, peak) in told.items():
        assert (error == "TransportLimitError") is (flood not in OTHER_ERRORS), flood
        assert peak < BOUND, flood
