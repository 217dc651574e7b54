"""An A2A agent that answers from prebuilt bytes, so that it is never what is measured.

It serves the card, and for the calls of ``POST /rpc`` a task, or a stream of 10,000 events. Each
connection has a thread. It prints ``{"port": N}`` and serves until its standard input closes.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
import socket
import sys
import threading

from benchmarks.payloads import A2A_EVENTS, a2a_card, a2a_events, a2a_task

_JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
_EVENTS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_BLOCK = 64  # events in one write


def _reply(number: bytes, result: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (number, result)


@functools.cache
def _results() -> tuple[bytes, tuple[bytes, ...]]:
    """Return the result of a call, and those of a stream."""
    task = json.dumps({"task": a2a_task()}).encode()
    return task, tuple(json.dumps(event).encode() for event in a2a_events(A2A_EVENTS))


def _serve(sock: socket.socket, port: int) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    received = b""
    with sock, contextlib.suppress(OSError):
        while True:
            while b"\r\n\r\n" not in received:
                data = sock.recv(1 << 16)
                if not data:
                    return
                received += data
            head, _, body = received.partition(b"\r\n\r\n")
            length = _LENGTH.search(head)
            needed = int(length[1]) if length else 0
            while len(body) < needed:
                body += sock.recv(1 << 16)
            received = body[needed:]
            _answer(sock, port, head, body[:needed])


def _answer(sock: socket.socket, port: int, head: bytes, body: bytes) -> None:
    if head.startswith(b"GET "):
        card = json.dumps(a2a_card(f"http://127.0.0.1:{port}/rpc")).encode()
        sock.sendall(_JSON % (len(card), card))
        return
    call = json.loads(body)
    number = json.dumps(call["id"]).encode()
    task, events = _results()
    if call["method"] != "SendStreamingMessage":
        reply = _reply(number, task)
        sock.sendall(_JSON % (len(reply), reply))
        return
    sock.sendall(_EVENTS)
    for first in range(0, len(events), _BLOCK):
        blocks = [b"data: %b\n\n" % _reply(number, one) for one in events[first : first + _BLOCK]]
        sock.sendall(b"".join(b"%x\r\n%b\r\n" % (len(block), block) for block in blocks))
    sock.sendall(b"0\r\n\r\n")


def main() -> None:
    """Serve until standard input closes."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    def accept() -> None:
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=_serve, args=(sock, port), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    _results()
    print(json.dumps({"port": port}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
