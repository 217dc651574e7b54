"""Sockets that a call can be parted from at any moment, in every phase and on TLS too.

What ends a blocked call is to shut down a *duplicate* of the descriptor, taken before TLS wraps
the socket: to close what another thread reads hangs, and to shut down a TLS socket hands
ciphertext to its reader. So each connection has a duplicate from its first moment and lends
itself to the call that uses it (:meth:`Deadline.lend`); whoever ends the call cuts the duplicate.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import select
import selectors
import socket
import ssl
import time
from _socket import dup
from _socket import socket as PlainSocket
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any
from urllib.parse import urlsplit

from protolink_sync.errors import (
    TLSVerificationError,
    TransportConnectionError,
    TransportError,
    TransportTimeoutError,
)
from protolink_sync.transport._call import Call
from protolink_sync.transport._resolve import Address, resolve
from protolink_sync.wire import TransportRequestContext

__all__ = [
    "NO_LIMIT",
    "TLS_ENDS",
    "ConnectFailed",
    "Cuttable",
    "connect_error",
    "peer_stopped_reading",
]

# Seconds, of no effect: the deadline thread bounds a call. But a TLS socket with a time-out waits
# in Python code, where a signal handler comes through; without one OpenSSL waits, and goes on
# waiting when a signal found a record half written: Ctrl-C would be lost.
NO_LIMIT = 1e6

# TCP_NODELAY because what belongs together is written at once; SO_KEEPALIVE because a peer may
# vanish without a word. urllib3 has the first only, and behind a proxy none.
_SOCKET_OPTIONS = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
)

# A connection that ends inside TLS is a connection that ends.
TLS_ENDS = (ssl.SSLEOFError, ssl.SSLZeroReturnError)

# How sending fails when the peer has closed its side (EPROTOTYPE on macOS).
_PEER_STOPPED_READING = (errno.EPIPE, errno.ECONNRESET, errno.EPROTOTYPE)

# What connecting brings that has only begun (the second one on Windows).
_UNDER_WAY = (errno.EINPROGRESS, errno.EWOULDBLOCK)

_NO_TLS_THERE = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")
_WITHOUT_TLS = {"https": "http", "wss": "ws"}


class ConnectFailed(OSError):
    """No address of a host could be connected to.

    Args:
        failures: For each address tried, what it was and what happened.
    """

    def __init__(self, failures: list[tuple[str, OSError]]) -> None:
        super().__init__("; ".join(f"{address}: {_words(error)}" for address, error in failures))
        self.failures = failures
        self.errno = failures[-1][1].errno
        self.only_timeouts = all(isinstance(error, TimeoutError) for _, error in failures)


def _words(error: OSError) -> str:
    return (
        "no answer in its share of the time"
        if isinstance(error, TimeoutError)
        else str(error.strerror or error)
    )


def _wait_until_connected(opened: socket.socket, duration: float) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(opened, selectors.EVENT_WRITE)
        return bool(selector.select(None if duration == math.inf else max(duration, 0.001)))


# To look at once whether something waits to be read; None where the system cannot. A plain number,
# because to join two flags of an enumeration takes longer than the call.
_PEEK: int | None = (
    int(socket.MSG_PEEK) | int(socket.MSG_DONTWAIT) if hasattr(socket, "MSG_DONTWAIT") else None
)


# The same without the exception, which takes longer than the call; the system's own, for that of
# gevent, which replaces it, may wait.
_poll: Any = getattr(select, "poll", None)
_CAN_POLL = isinstance(_poll, BuiltinFunctionType)


class Cuttable:
    """A connection with a duplicate of its descriptor, lent to one call at a time."""

    # Plain: gevent's socket, which replaces Python's, takes a refusal to wait for a reason to wait.
    _duplicate: PlainSocket | None = None
    # Looks whether something waits at the duplicate.
    _look: Callable[[int], list[tuple[int, int]]] | None = None

    def cut(self) -> None:
        """End whatever the connection is doing, at once; any thread."""
        duplicate = self._duplicate
        if duplicate is not None:
            # Not connected any more, or never: then nobody waits either.
            with contextlib.suppress(OSError):
                duplicate.shutdown(socket.SHUT_RDWR)

    def take_back(self) -> None:
        """Close everything; the call that used the connection is over. Any number of times."""
        raise NotImplementedError

    def _dial(self, host: str, port: int, call: Call) -> socket.socket:
        """Return a socket connected to a host: its addresses in order, each with its share.

        Args:
            host: Name or IP address.
            port: Port.
            call: The call that needs it; its bounds count.

        Raises:
            ConnectFailed: No address could be connected to.
            OSError: The host is not found, or the call was ended.
        """
        call.phase = "resolve"
        addresses = resolve(host, port, call)
        call.phase = "connect"
        failures: list[tuple[str, OSError]] = []
        for number, address in enumerate(addresses):
            share = (call.due - time.monotonic()) / (len(addresses) - number)
            try:
                return self._open(address, share, call)
            except OSError as error:
                ended = call.ended is not None
                # Not where it was raised: frames of this call, which the error's list would keep.
                failure = TimeoutError() if ended else error.with_traceback(None)
                failures.append((f"{address[3][0]} port {address[3][1]}", failure))
                if ended:
                    break
        try:
            raise ConnectFailed(failures)
        finally:
            del failures  # of errors that hold this frame

    def _open(self, address: Address, share: float, call: Call) -> socket.socket:
        family, kind, proto, target = address
        opened = socket.socket(family, kind, proto)
        try:
            for option in _SOCKET_OPTIONS:
                opened.setsockopt(*option)
            self._duplicate, self._look = (
                PlainSocket(family, kind, proto, dup(opened.fileno())), None)  # fmt: skip
            # In case of a socket.setdefaulttimeout() of somebody else, and never back: blocking or
            # not is common to both, and gevent relies on what it has set.
            self._duplicate.setblocking(False)
            opened.setblocking(False)
            failed = opened.connect_ex(target)
            # Lent, and looked at, only now: a cut ends connecting that has begun, no earlier one.
            if not call.lend(self):
                raise InterruptedError("the call was ended")
            if failed in _UNDER_WAY:
                if not _wait_until_connected(opened, share):
                    raise TimeoutError("timed out")
                failed = opened.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if call.ended is not None:  # a cut one looks connected
                raise InterruptedError("the call was ended")
            if failed:
                raise OSError(failed, os.strerror(failed))
            # From here the deadline thread bounds the call, not a time-out for each read.
            opened.setblocking(True)
        except BaseException:
            # Before it is closed: no abort may cut a descriptor whose number is another's then.
            call.release()
            opened.close()
            self._close_duplicate()
            raise
        return opened

    def _is_silent(self, sock: socket.socket) -> bool:
        """Return whether the connection is open and nothing waits to be read.

        Args:
            sock: What the connection reads from: TLS may hold what the network has no more.
        """
        duplicate, look = self._duplicate, self._look
        # A plain socket holds nothing.
        if duplicate is None or (type(sock) is not socket.socket and _holds_decrypted(sock)):
            return False
        if look is None:
            if not _CAN_POLL:
                return _has_nothing(duplicate)
            waiting = _poll()
            waiting.register(duplicate.fileno(), select.POLLIN)
            self._look = look = waiting.poll
        return not look(0)

    def _close_duplicate(self) -> None:
        duplicate, self._duplicate, self._look = self._duplicate, None, None
        if duplicate is not None:
            duplicate.close()


def _holds_decrypted(sock: Any) -> bool:
    """Return whether TLS has taken something from the network that nobody has read."""
    pending = getattr(sock, "pending", None)
    if pending is not None:
        return bool(pending() > 0)
    inner = getattr(sock, "sslobj", None)
    if inner is None:
        return False
    # urllib3's TLS inside of TLS, to a peer behind a proxy.
    return bool(inner.pending() or sock.incoming.pending) or _holds_decrypted(sock.socket)


def _has_nothing(plain: PlainSocket) -> bool:
    # Windows has no such flag: there a connection is used once.
    if _PEEK is not None:
        try:
            plain.recv(1, _PEEK)
        except BlockingIOError:
            return True
        except OSError:
            pass
    return False


def peer_stopped_reading(error: OSError) -> bool:
    """Return whether sending failed because the peer closed; its answer may still be there."""
    return error.errno in _PEER_STOPPED_READING or isinstance(error, TLS_ENDS)


def connect_error(error: BaseException, context: TransportRequestContext) -> TransportError | None:
    """Return our error for one that kept a connection from standing, None for any other."""
    where = context.where
    if isinstance(error, ConnectFailed) and error.only_timeouts:
        return TransportTimeoutError(
            f"{where}: connecting timed out ({error})", retryable=True, phase="connect"
        )
    if isinstance(error, ConnectFailed):
        return TransportConnectionError(
            f"{where}: cannot connect ({error}). Does an agent listen there?", retryable=True
        )
    if isinstance(error, socket.gaierror):
        host = urlsplit(context.url).hostname
        return TransportConnectionError(
            f"{where}: the host {host!r} is not found ({error.strerror})", retryable=True
        )
    if isinstance(error, ssl.SSLError) and not isinstance(error, TLS_ENDS):
        return _tls_error(error, context)
    if isinstance(error, OSError) and str(error).startswith("Tunnel connection failed"):
        return TransportConnectionError(f"{where}: the proxy refused: {error}")
    return None


def _tls_error(error: ssl.SSLError, context: TransportRequestContext) -> TransportConnectionError:
    where, url = context.where, urlsplit(context.url)
    if isinstance(error, ssl.SSLCertVerificationError):
        return TLSVerificationError(
            f"{where}: the certificate of {url.hostname} is not accepted: "
            f"{error.verify_message}. Give its authority as TLSConfig(cafile=...), or call "
            "the host by a name that is in the certificate"
        )
    if error.reason in _NO_TLS_THERE:
        return TransportConnectionError(
            f"{where}: the port does not speak TLS ({error.reason}). "
            f"Did you mean {_WITHOUT_TLS.get(url.scheme, url.scheme)}://?"
        )
    return TransportConnectionError(
        f"{where}: TLS failed: {error.reason or error}. If the peer asks for a client "
        "certificate, give TLSConfig(certfile=..., keyfile=...)"
    )
