"""Host names to addresses, in a thread that can be left behind: ``getaddrinfo`` has no end."""

from __future__ import annotations

import math
import os
import socket
import threading
from collections.abc import Callable
from typing import Any

from protolink_sync._threads import NoThreadError, leave_none, start
from protolink_sync.config import RetryPolicy
from protolink_sync.transport._call import Call
from protolink_sync.transport._slots import Slots

__all__ = ["resolve"]

# Look-ups of one process that may run at the same time, those left behind included.
_MAX_LOOKUPS = 8

Address = tuple[socket.AddressFamily, socket.SocketKind, int, Any]


class _Lookup(Call):
    """One look-up in its own thread; it holds its slot until the resolver returns."""

    __slots__ = ("addresses", "done", "error")

    def __init__(self) -> None:
        super().__init__(math.inf, None, None, None, None, RetryPolicy())
        self.addresses: list[Address] = []
        self.error: Exception | None = None
        self.done = False


def _ask(host: str, port: int, flags: int = 0) -> list[Address]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    except UnicodeError as error:  # a label is empty or too long: no resolver is asked
        raise socket.gaierror(socket.EAI_NONAME, "no valid host name") from error
    return [(family, kind, proto, address) for family, kind, proto, _, address in found]


def resolve(host: str, port: int, call: Call) -> list[Address]:
    """Return the addresses of a host, in the order to try them.

    Args:
        host: A name, or an IP address, which asks nobody.
        port: Port that becomes part of the addresses.
        call: Its end ends the waiting; the look-up goes on alone. Where no thread can start, it
            is waited for in any case.

    Raises:
        OSError: There is no such host; or the call was ended, as ``call.ended`` says.
    """
    try:
        return _ask(host, port, socket.AI_NUMERICHOST)
    except socket.gaierror:
        pass  # a name
    slots = _lookup_slots()
    lookup = _Lookup()

    def run() -> None:
        try:
            lookup.addresses = _ask(host, port)
        except Exception as error:
            lookup.error = error
        finally:
            lookup.done = True
            slots.release(lookup)
            call.notify()

    # Twice, as in Transport.send(). The call itself stands in the queue; once it is through, the
    # look-up takes its place, which it keeps only if it begins.
    try:
        try:
            if not slots.acquire(call):
                raise InterruptedError("the call was ended while it waited for the resolver")
            slots.active[lookup] = None
            thread = _running(run)
        except BaseException:
            slots.release(lookup)
            raise
        finally:
            slots.release(call)
    finally:
        slots.release(call)
    if not call.wait(math.inf, until=lambda: lookup.done):
        raise InterruptedError("the call was ended while the host was looked up")
    leave_none(thread)
    failure, lookup.error = lookup.error, None
    if failure is None:
        return lookup.addresses
    try:
        raise failure
    finally:
        del failure  # which holds this frame


def _running(look_up: Callable[[], None]) -> threading.Thread:
    """Return the thread in which a look-up runs: this one, where no other can start."""
    thread = threading.Thread(target=look_up, name="protolink-resolve", daemon=True)
    try:
        start(thread)
    except NoThreadError:  # there are too many, or Python 3.12 is about to exit
        look_up()
        return threading.current_thread()
    return thread


_slots = (os.getpid(), Slots(_MAX_LOOKUPS))


def _lookup_slots() -> Slots:
    """Return this process's slots; a forked child does not wait for its parent's look-ups."""
    global _slots
    if _slots[0] != os.getpid():
        _slots = (os.getpid(), Slots(_MAX_LOOKUPS))
    return _slots[1]
