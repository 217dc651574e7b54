"""A peer that fails once, in the way of one cell, and is in order from then on."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable

import attrs

from tests.faults.cells import Cell
from tests.faults.wires import MANY_FIELDS, SESSIONS, GRPCSession, PeerLeft, Session

_DRIP_SECONDS = 0.02
_JOIN_LIMIT = 10.0

NAME = "faulty.test"
"""A name that only :class:`Resolver` knows."""

_OVERLONG_RECORD = b"\x16\x03\x03\xff\xff" + b"\0" * 200
_FATAL_ALERT = b"\x15\x03\x03\x00\x02\x02\x28"  # handshake failure


class _Over(Exception):
    """The connection is done with."""


@attrs.frozen
class Certificates:
    """What the peer shows.

    Args:
        good: Serves the name and the address that is called.
        other: Serves another name.
        cafile: The authority of both.
    """

    good: ssl.SSLContext
    other: ssl.SSLContext
    cafile: str


class FaultyPeer:
    """Listen on the loopback and play one cell's fault on the first question that meets it.

    Args:
        cell: What to play.
        certificates: For TLS.

    Attributes:
        played: Set when the fault has begun.
    """

    def __init__(self, cell: Cell, certificates: Certificates) -> None:
        self.cell = cell
        self.played = threading.Event()
        self._certificates = certificates
        self._lock = threading.Lock()
        # A request that is too large never comes.
        own_doing = (cell.phase, cell.fault) == ("write", "oversize")
        self._is_armed = cell.phase not in ("resolve", "connect") and not own_doing
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._socks: list[socket.socket] = []
        self._fillers: list[socket.socket] = []
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if cell.phase == "write":
            # What is not read fills little: the client stands in the middle of its request.
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
        self._listener.bind(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        if cell.phase == "connect":
            self.played.set()
            if cell.fault == "blackhole":
                self._fill_backlog()
        else:
            self._serve()

    def heal(self) -> None:
        """Be in order from now on."""
        with self._lock:
            self._is_armed = False
        if self.cell.phase == "connect":
            for sock in self._fillers:
                sock.close()
            self._serve()

    def stop(self) -> None:
        """End every connection and thread."""
        self._stop.set()
        for sock in [self._listener, *self._socks]:
            with contextlib.suppress(OSError):
                # Not TLS's own: after it, a reader is handed what is still encrypted.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)
        self._listener.close()
        for thread in list(self._threads):
            thread.join(_JOIN_LIMIT)
        for sock in [*self._fillers, *self._socks]:
            sock.close()
        assert not any(thread.is_alive() for thread in self._threads), "the peer hangs"

    def __enter__(self) -> FaultyPeer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    # ---- connections -------------------------------------------------------------------------

    def _fill_backlog(self) -> None:
        self._listener.listen(0)
        while True:
            sock = socket.socket()
            self._fillers.append(sock)
            sock.settimeout(0.05)
            try:
                sock.connect(("127.0.0.1", self.port))
            except TimeoutError:
                return

    def _serve(self) -> None:
        self._listener.listen(64)
        self._start(self._accept)

    def _start(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, name="faulty-peer", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while not self._stop.is_set():
                sock, _ = self._listener.accept()
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._socks.append(sock)
                self._start(lambda sock=sock: self._converse(sock))

    def _converse(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError, PeerLeft, _Over), contextlib.ExitStack() as ending:
            ending.callback(sock.close)
            if self.cell.is_encrypted:
                sock = self._encrypted(sock)
                ending.callback(sock.close)
            session = SESSIONS[self.cell.wire](sock, self.cell)
            self._begin(session)
            while True:
                self._answer(session)

    def _takes(self, phase: str) -> bool:
        """Return whether the fault is to be played now: once, a handshake's until it is healed.

        An A2A client that gets no card tries without one.
        """
        if self.cell.phase != phase:
            return False
        with self._lock:
            armed = self._is_armed
            self._is_armed = armed and phase == "tls"
        return armed

    # ---- TLS -----------------------------------------------------------------------------------

    def _encrypted(self, sock: socket.socket) -> socket.socket:
        context = self._certificates.good
        if self._takes("tls"):
            if self.cell.fault == "wrong-id":
                self.played.set()
                context = self._certificates.other
            else:
                self._fail_handshake(sock)
        wrapped = context.wrap_socket(sock, server_side=True)
        self._socks.append(wrapped)
        return wrapped

    def _fail_handshake(self, sock: socket.socket) -> None:
        hello = sock.recv(65536)
        self.played.set()
        fault = self.cell.fault
        if fault == "refused":
            sock.sendall(_FATAL_ALERT)
        elif fault == "oversize":
            sock.sendall(_OVERLONG_RECORD)
        elif fault == "garbage":
            sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        else:
            flight = _server_flight(self._certificates.good, hello)
            half = len(flight) // 2 if fault == "truncation" else 0
            self._fail(Session(sock, self.cell), flight, half)
        _until_left(sock)
        raise _Over

    # ---- questions and answers -----------------------------------------------------------------

    def _begin(self, session: Session) -> None:
        upgrade = session.begin()
        if upgrade is None:
            return
        if not self._takes("headers"):
            session.say(upgrade.data)
        elif self.cell.fault == "oversize":
            self.played.set()
            session.say(upgrade.data[:-2] + MANY_FIELDS + b"\r\n")
        else:
            self._fail(session, upgrade.data, upgrade.at["headers"])

    def _answer(self, session: Session) -> None:
        if self._takes("write"):
            session.question(unread=True)
            self._fail_unread(session)
        question = session.question()
        assert question is not None
        phase, fault = self.cell.phase, self.cell.fault
        answer = session.answer(question, None)
        if phase not in answer.at or not self._takes(phase):
            session.say(answer.data)
        elif fault in ("wrong-id", "oversize"):
            self.played.set()
            unasked = answer.data if phase == "after-end" else b""
            session.say(unasked + session.answer(question, (phase, fault)).data)
        else:
            self._fail(session, answer.data, answer.at[phase])

    def _fail_unread(self, session: Session) -> None:
        """Fail while the client still sends."""
        if self.cell.fault in ("reset", "half-close"):
            self._cut(session.sock, unread=True)
        self.played.set()
        if isinstance(session, GRPCSession):
            return  # it reads on, but this stream gets no further leave to send
        while not self._stop.wait(_DRIP_SECONDS):
            if self.cell.fault == "drip":
                session.take(1)
        raise _Over

    def _cut(self, sock: socket.socket, *, unread: bool = False) -> None:
        """End the connection as the fault says."""
        if self.cell.fault == "reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if self.cell.fault == "half-close":
            socket.socket.shutdown(sock, socket.SHUT_WR)
        else:
            sock.close()
        self.played.set()
        if self.cell.fault == "half-close":
            if unread:
                self._stop.wait()
            _until_left(sock)
        raise _Over

    def _fail(self, session: Session, data: bytes, at: int) -> None:
        """Say what comes before the fault, then fail; return if the connection goes on."""
        session.say(data[:at])
        rest = data[at:]
        fault = self.cell.fault
        if fault in ("reset", "truncation", "half-close"):
            self._cut(session.sock)
        if fault == "garbage":
            try:
                session.say(session.garbage * (len(rest) // len(session.garbage) + 20))
            finally:
                # Not before it is there, or the next call could be quicker.
                self.played.set()
            _until_left(session.sock)
            raise _Over
        self.played.set()
        sent = 0
        while not session.is_given_up(_DRIP_SECONDS if fault == "drip" else None):
            session.sock.sendall(rest[sent : sent + 1])
            sent += 1
        # Who uses the connection on must be able to: the rest is sent after all.
        session.sock.sendall(rest[sent:])
        if isinstance(session, GRPCSession):
            session.resume()


def _until_left(sock: socket.socket) -> None:
    while sock.recv(65536):
        pass


def _server_flight(context: ssl.SSLContext, hello: bytes) -> bytes:
    """Return what a server answers to a ClientHello."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = context.wrap_bio(incoming, outgoing, server_side=True)
    incoming.write(hello)
    with contextlib.suppress(ssl.SSLWantReadError):
        server.do_handshake()
    return outgoing.read()


class Resolver:
    """Stands for ``socket.getaddrinfo``: it knows one name more, and fails until it is healed.

    Args:
        cell: What to play when the name is asked for.
    """

    def __init__(self, cell: Cell) -> None:
        self.fault = cell.fault if cell.phase == "resolve" else None
        self._real = socket.getaddrinfo
        self._gate = threading.Event()
        self.played = threading.Event()

    def __call__(self, host: object, *args: object, **options: object) -> object:
        if host != NAME:
            return self._real(host, *args, **options)  # type: ignore[arg-type]
        if int(options.get("flags", 0)) & socket.AI_NUMERICHOST:  # type: ignore[call-overload]
            raise socket.gaierror(socket.EAI_NONAME, "no address")
        if self.fault is not None:
            self.played.set()
        if self.fault == "refused":
            raise socket.gaierror(socket.EAI_NONAME, "not known")
        if self.fault == "stall":
            self._gate.wait()
        return self._real("127.0.0.1", *args, **options)  # type: ignore[arg-type]

    def heal(self) -> None:
        """Be in order from now on."""
        self.fault = None
        self._gate.set()

    def __enter__(self) -> Resolver:
        socket.getaddrinfo = self  # type: ignore[assignment]
        return self

    def __exit__(self, *exc_info: object) -> None:
        socket.getaddrinfo = self._real
        self.heal()
