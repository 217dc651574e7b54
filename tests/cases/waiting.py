"""Wait on a socket, on signals and on a client's close, all at once."""

from __future__ import annotations

import math
import select
import socket
from collections.abc import Sequence

# Linux alone tells of a FIN behind data that nobody has read.
_RDHUP = getattr(select, "POLLRDHUP", 0)


def poll_once(
    sock: socket.socket,
    signals: Sequence[socket.socket | None],
    *,
    read: bool = False,
    write: bool = False,
    left: float | None = None,
) -> tuple[bool, list[socket.socket]]:
    """Wait once; say whether the socket had something, and which signals were given.

    With neither ``read`` nor ``write`` the socket is watched for the other side's close.
    """
    watched = [signal for signal in signals if signal is not None]
    if not _RDHUP:
        return _select(sock, watched, read, write, left)
    poller = select.poll()
    poller.register(
        sock, (select.POLLIN if read else 0) | (select.POLLOUT if write else 0) or _RDHUP
    )
    for signal in watched:
        poller.register(signal, select.POLLIN)
    events = dict(poller.poll(None if left is None else math.ceil(left * 1000)))
    return sock.fileno() in events, [s for s in watched if s.fileno() in events]


def _select(
    sock: socket.socket,
    watched: Sequence[socket.socket],
    read: bool,
    write: bool,
    left: float | None,
) -> tuple[bool, list[socket.socket]]:
    """Do as :func:`poll_once` without POLLRDHUP: a close behind unread bytes stays unseen."""
    watch_close = not read and not write and not _has_bytes(sock)
    readable, writable, _ = select.select(
        [*watched, *([sock] if read or watch_close else [])], [sock] if write else [], [], left
    )
    woken = sock in readable or sock in writable
    if watch_close and woken and _has_bytes(sock):
        woken = False
    return woken, [signal for signal in watched if signal in readable]


def _has_bytes(sock: socket.socket) -> bool:
    try:
        # Past SSLSocket.recv, which refuses flags: the bytes on the wire are asked for.
        return bool(socket.socket.recv(sock, 1, socket.MSG_PEEK))
    except OSError:
        return False
