"""A peer of the matrices, in a process of its own: every way of not answering, on demand.

The first part of the path says what to do with a request (``http://127.0.0.1:8000/silent/ask``).
One process, so that descriptors, threads and time of the program under test are its own:
``python -m tests.transport.matrix_peer FOLDER`` prints the addresses and ends with its input.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import grpc
import trustme

from protolink_sync.models import ClientRequestSpec
from tests.transport import matrix_modes
from tests.transport.grpc_peer import GRPCPeer, until_cancelled
from tests.transport.matrix_watch import ROOT

ASK = ClientRequestSpec("ask", "/ask", "POST", idempotent=True)
"""Send a question; an answer has it with the number of the connection it came over."""

PUSH = ClientRequestSpec("push", "/ask", "POST", request_source="request")
"""Send bytes as they are."""

# What the proxy does not lead to: it never answers, or opens a tunnel to silence.
SILENT_TARGET = "silent.test:443"
MUTE_TARGET = "mute.test:443"

# A name that stands in the certificate; the program under test resolves it.
PEER_NAME = "peer.test"

_DRIP_SECONDS = 0.02
_ANSWER_LIMIT = 60.0  # seconds for anything the peer itself waits for


@attrs.frozen
class Addresses:
    """Where the peer listens.

    Args:
        http: Serves HTTP, forwards plain HTTP as a proxy, and answers CONNECT as proxy and
            origin in one.
        https: The same behind TLS.
        mute: Takes connections and stays silent: for ClientHello and CONNECT.
        full: Takes no connection: its backlog is full.
        grpc: Answers calls over gRPC, and each stream with one event.
        cafile: The authority of the certificates.
    """

    http: int
    https: int
    mute: int
    full: int
    grpc: int
    cafile: str

    def url(self, scheme: str, mode: str, *, host: str = "127.0.0.1") -> str:
        """Return the base URL for one way of answering; gRPC has one only."""
        if scheme == "grpc":
            return f"{scheme}://{host}:{self.grpc}"
        return f"{scheme}://{host}:{self.http if scheme in ('http', 'ws') else self.https}/{mode}"


@contextlib.contextmanager
def running_peer(folder: str | os.PathLike[str]) -> Iterator[Addresses]:
    """Start a peer that ends with the block; its files go to the folder."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.transport.matrix_peer", str(folder)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield Addresses(**json.loads(process.stdout.readline()))
        finally:
            process.kill()


# ---- the process itself ------------------------------------------------------------------------


class _Request:
    """One request whose head was read; the body may still be under way."""

    def __init__(self, connection: _Connection, head: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = first.split(" ")
        fields = (line.split(": ", 1) for line in lines)
        self.headers = {name.lower(): value for name, value in fields}
        path = self.target.split("://", 1)[-1].split("/", 1)[-1] if self.is_absolute else ""
        self.mode = (path or self.target.lstrip("/")).split("/")[0]
        self.connection = connection

    @property
    def is_absolute(self) -> bool:
        return "://" in self.target

    def body(self) -> bytes:
        return self.connection.read(int(self.headers.get("content-length", "0")))


class _Connection:
    """One connection and the thread that serves it."""

    def __init__(self, sock: socket.socket, number: int) -> None:
        self.sock = sock
        self.number = number
        self.buffer = b""

    def head(self) -> bytes | None:
        while b"\r\n\r\n" not in self.buffer:
            data = self.sock.recv(65536)
            if not data:
                return None
            self.buffer += data
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        return head

    def read(self, size: int) -> bytes:
        pieces = [self.buffer[:size]]
        self.buffer = self.buffer[size:]
        missing = size - len(pieces[0])
        while missing:
            data = self.sock.recv(min(missing, 1 << 20))
            if not data:
                raise ConnectionResetError("the client left")
            pieces.append(data)
            missing -= len(data)
        return b"".join(pieces)

    def drip(self, data: bytes) -> None:
        for byte in data:
            self.sock.sendall(bytes([byte]))
            time.sleep(_DRIP_SECONDS)

    def until_left(self) -> None:
        while self.sock.recv(65536):
            pass

    def serve(self, context: ssl.SSLContext | None, tunnel: ssl.SSLContext) -> None:
        with contextlib.suppress(OSError, ValueError):
            if context is not None:
                self.sock = context.wrap_socket(self.sock, server_side=True)
            while True:
                head = self.head()
                if head is None:
                    break
                request = _Request(self, head)
                if request.method == "CONNECT":
                    if request.target == SILENT_TARGET:
                        self.until_left()
                    self.sock.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    if request.target == MUTE_TARGET:
                        self.until_left()
                    self.sock = tunnel.wrap_socket(self.sock, server_side=True)
                    continue
                _MODES[request.mode](request)
        self.sock.close()


def _reply(body: bytes, status: str = "200 OK") -> bytes:
    length = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"HTTP/1.1 {status}\r\n{length}\r\n".encode() + body


def _answer(request: _Request, question: bytes) -> bytes:
    number = request.connection.number
    return _reply(b'{"connection": %d, "question": %s}' % (number, question))


def _echo(request: _Request) -> None:
    request.connection.sock.sendall(_answer(request, request.body()))


def _slow(request: _Request) -> None:
    """Answer after as long as the question says."""
    question = request.body()
    time.sleep(json.loads(question)["think"])
    request.connection.sock.sendall(_answer(request, question))


def _silent(request: _Request) -> None:
    request.body()
    request.connection.until_left()


def _unread(request: _Request) -> None:
    """Never read the body: what the client sends fills the buffers and stays there."""
    threading.Event().wait(_ANSWER_LIMIT)


def _half(request: _Request) -> None:
    request.body()
    request.connection.sock.sendall(_reply(b'"' + b"x" * 998 + b'"')[:-500])
    request.connection.until_left()


def _drip_head(request: _Request) -> None:
    request.body()
    fields = "".join(f"X-Field-{number}: {'x' * 50}\r\n" for number in range(50))
    request.connection.drip(f"HTTP/1.1 200 OK\r\n{fields}\r\n".encode())


def _drip_body(request: _Request) -> None:
    request.body()
    head, blank, body = _reply(b'"' + b"x" * 100_000 + b'"').partition(b"\r\n\r\n")
    request.connection.sock.sendall(head + blank)
    request.connection.drip(body)


def _busy(request: _Request) -> None:
    request.body()
    request.connection.sock.sendall(_reply(b"{}", "429 Busy"))


_known: set[str] = set()


def _flaky(request: _Request) -> None:
    """Be busy when a call comes for the first time."""
    call = request.headers["x-protolink-request-id"]
    if call in _known:
        _echo(request)
    else:
        _known.add(call)
        _busy(request)


def _failing(request: _Request) -> None:
    request.body()
    request.connection.sock.sendall(_reply(b'{"error": "no"}', "500 Internal Server Error"))


def _closing(request: _Request) -> None:
    """Answer with a body that ends with its connection."""
    answer = _answer(request, request.body()).split(b"\r\n\r\n", 1)[1]
    request.connection.sock.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + answer)
    raise ConnectionResetError("the answer is complete")


_MODES: dict[str, Callable[[_Request], None]] = {
    "echo": _echo,
    "slow": _slow,
    "silent": _silent,
    "unread": _unread,
    "half": _half,
    "drip-head": _drip_head,
    "drip-body": _drip_body,
    "busy": _busy,
    "flaky": _flaky,
    "failing": _failing,
    "closing": _closing,
    **matrix_modes.MODES,
}


def _listen(serve: Callable[[socket.socket, int], None]) -> int:
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)

    def accept() -> None:
        for number in itertools.count(1):
            sock, _ = listener.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=serve, args=(sock, number), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return int(listener.getsockname()[1])


_kept: list[Any] = []


def _mute(sock: socket.socket, _number: int) -> None:
    with contextlib.suppress(OSError):
        while sock.recv(65536):
            pass
    sock.close()


def _full() -> int:
    """Return a port whose backlog is full: the kernel answers no SYN to it any more."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    _kept.append(listener)
    address = listener.getsockname()
    while True:
        sock = socket.socket()
        _kept.append(sock)
        sock.settimeout(0.3)
        try:
            sock.connect(address)
        except TimeoutError:
            return int(address[1])


def _grpc_one(_envelope: dict[str, Any], context: grpc.ServicerContext) -> Iterator[Any]:
    yield {"type": "task_progress"}
    until_cancelled(context)


def _server_context(folder: pathlib.Path) -> ssl.SSLContext:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1", "localhost", PEER_NAME).configure_cert(context)
    return context


def _main(folder: pathlib.Path) -> None:
    context = _server_context(folder)
    over_grpc = GRPCPeer(lambda envelope, _: {"question": envelope["data"]}, _grpc_one)
    addresses = Addresses(
        http=_listen(lambda sock, number: _Connection(sock, number).serve(None, context)),
        https=_listen(lambda sock, number: _Connection(sock, number).serve(context, context)),
        mute=_listen(_mute),
        full=_full(),
        grpc=over_grpc.port,
        cafile=str(folder / "ca.pem"),
    )
    print(json.dumps(attrs.asdict(addresses)), flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    _main(pathlib.Path(sys.argv[1]))
