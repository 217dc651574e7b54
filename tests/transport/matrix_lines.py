"""Interrupt a call at every line: ``python -m tests.transport.matrix_lines [WORD ...]``.

A line a case is printed; words choose the cases whose name has all of them. With ``--every K`` it
is each K-th line, from a random one on: the tests do that, as all lines take minutes.

A case is run again and again; in the n-th run something happens at the n-th line:

``raise``
    ``KeyboardInterrupt``, as Ctrl-C does, at the lines of this package. Lines of the standard
    library and of urllib3 are their authors' to keep safe, and tracing shows lines there at which
    CPython runs no signal handler: the end of a ``with`` is a line to ``sys.settrace``, and a
    lock that is left because of it is a bug of nobody.
``cancel``
    ``token.cancel()``, as a signal handler may, at every line, those of the standard library and
    of urllib3 too: a handler that returns can harm nobody.

The exit code is 1 if a run left something behind, harmed the next call or did not end.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import functools
import gc
import itertools
import math
import pathlib
import random
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import attrs

import protolink_sync
from protolink_sync import (
    CallCancelledError,
    CancelToken,
    Message,
    Task,
    TransportError,
)
from protolink_sync._deadline import Timer, watch
from protolink_sync.config import RetryPolicy, TransportConfig, TransportLimits
from protolink_sync.security import TLSConfig
from protolink_sync.transport import (
    GRPCTransport,
    HTTPTransport,
    SSEJSONRPCTransport,
    Transport,
    WebSocketTransport,
)
from protolink_sync.transport._call import Call
from tests.transport import matrix_watch
from tests.transport.matrix_peer import ASK, PEER_NAME, Addresses, running_peer

PACKAGE = str(pathlib.Path(protolink_sync.__file__).parent)

_HANG = 60.0  # seconds after which the program prints all stacks and ends
# A case is over when the n-th line was not reached so many times in a row: threads and clocks make
# some runs shorter than others.
_UNREACHED = 3

_LONG = 1.0  # seconds that a call waits which is to be cancelled
_PROMPT = 0.5  # seconds in which it ends then; tracing makes it slow

Run = Callable[[], Any]


class _AtLine:
    """A trace function that acts once, at the n-th line."""

    def __init__(self, number: int, act: Callable[[], None], *, everywhere: bool) -> None:
        self.where: str | None = None
        self.when = math.inf
        self._left = number
        self._act = act
        self._everywhere = everywhere

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        here = frame.f_code.co_filename
        if not (self._everywhere or here.startswith(PACKAGE)) or here == __file__:
            return None
        return self._local

    def _local(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line" and self.where is None:
            self._left -= 1
            if self._left == 0:
                name = pathlib.Path(frame.f_code.co_filename)
                self.where = f"{name.parent.name}/{name.name}:{frame.f_lineno}"
                self.when = time.monotonic()
                self._act()
        return self._local


def _raise() -> None:
    raise KeyboardInterrupt


@attrs.define
class Outcome:
    """What a traced run came to."""

    where: str | None
    value: Any
    before: float  # seconds until it was interrupted
    after: float  # seconds from then to its end


_every = 1


def _numbers() -> Iterator[int]:
    """Give the numbers of the lines to act at."""
    return itertools.count(random.randint(1, _every), _every)


def _traced(run: Run, number: int, act: Callable[[], None], *, everywhere: bool = False) -> Outcome:
    tracer = _AtLine(number, act, everywhere=everywhere)
    began = time.monotonic()
    outer = sys.gettrace()  # that of who measures what the tests reach
    sys.settrace(tracer)
    try:
        # In a generator, which has a stack of handled exceptions of its own: an exception of the
        # tracer at the very end of an ``except`` block, where CPython runs no signal handler,
        # leaves the handled one on that stack, and with it the frames of its traceback.
        value = next(run() for _ in range(1))
    except BaseException as error:
        value = error
    finally:
        sys.settrace(outer)
    if isinstance(value, BaseException):
        # Its frames hold what the interrupted call held.
        value = type(value)(str(value))
    return Outcome(tracer.where, value, tracer.when - began, time.monotonic() - tracer.when)


# ---- cases -------------------------------------------------------------------------------------


class _Case:
    """A call to interrupt.

    Args:
        peer: Whom to call.
        scheme: ``http`` or ``https``.
        mode: How the peer answers; a number is a port to call.
        cold: Interrupt the first call of a fresh transport.
        host: Name or address of the peer.
        proxy: Go through a proxy.
        timeout: Budget of the call.
        question: What to ask.
        settings: Of the transport.
    """

    kind: type[HTTPTransport | WebSocketTransport] = HTTPTransport
    echo = "echo"
    # How many calls of a run may be kept that hold nothing any more.
    may_keep = 0

    def __init__(
        self,
        peer: Addresses,
        scheme: str = "http",
        mode: str | int = "echo",
        *,
        cold: bool = False,
        host: str = "127.0.0.1",
        proxy: bool = False,
        timeout: float = 20.0,
        question: Any = None,
        config: TransportConfig | None = None,
    ) -> None:
        self.peer = peer
        self.cold = cold
        self.token = CancelToken()
        self._url = (
            peer.url(scheme, mode, host=host)
            if isinstance(mode, str)
            else f"{scheme}://127.0.0.1:{mode}"
        )
        self._healthy = peer.url(scheme, self.echo, host=host)
        self._timeout = timeout
        self._question = question or {}
        self._proxy = f"http://127.0.0.1:{peer.http}" if proxy else None
        self._config = config
        self._open()

    def _made(self) -> Transport:
        return self.kind(
            tls=TLSConfig(cafile=self.peer.cafile),
            proxy=self._proxy,
            trust_env=False,
            config=self._config,
        )

    def _open(self) -> None:
        self.transport = self._made()
        if not self.cold:
            self.plain()

    def again(self) -> None:
        """Make ready for the next run."""
        self.token = CancelToken()
        if self.cold:
            self.transport.close()
            self._open()

    def plain(self) -> None:
        question = {"n": time.monotonic()}
        answer = self.transport.send(ASK, self._healthy, question, timeout=10)
        assert answer["question"] == question, answer

    def call(self) -> Any:
        try:
            return self.transport.send(
                ASK, self._url, self._question, timeout=self._timeout, cancel=self.token
            )
        except TransportError as error:  # what some cases come to
            return type(error).__name__

    def beside(self) -> None:
        """Start what goes on beside the call."""

    def settle(self) -> None:
        """End what goes on beside the call."""

    def close(self) -> None:
        self.transport.close()


class _SlotCase(_Case):
    """The only slot is another call's when the call begins, and becomes free a little later."""

    think = 0.01

    def beside(self) -> None:
        url = self.peer.url("http", "slow")
        self._stop = CancelToken()
        self._other = threading.Thread(target=self._occupy, args=(url, self._stop))
        self._other.start()
        matrix_watch.until(
            lambda: matrix_watch.phase(self.transport) == "wait" or not self._other.is_alive(),
            "the other call",
        )

    def _occupy(self, url: str, stop: CancelToken) -> None:
        with contextlib.suppress(CallCancelledError):
            self.transport.send(ASK, url, {"think": self.think}, timeout=10, cancel=stop)

    def settle(self) -> None:
        self._stop.cancel()
        self._other.join()


class _LongSlotCase(_SlotCase):
    """The same, but it does not."""

    think = _LONG


class _ResolverCase(_Case):
    """The name is looked up for the call, and for nobody else, for a long time."""

    def beside(self) -> None:
        _resolver.stalls.clear()

    def settle(self) -> None:
        _resolver.stalls.set()


class _WebSocketCase(_Case):
    """A call over WebSocket."""

    kind = WebSocketTransport
    echo = "ws-echo"


class _StreamCase(_Case):
    """A stream over server-sent events that is opened, read a little, and left."""

    kind = SSEJSONRPCTransport

    def call(self) -> Any:
        task = Task.create(Message.user("hi"))
        with self.transport.subscribe(self._url, task, cancel=self.token) as stream:
            return next(stream)


class _WebSocketStreamCase(_StreamCase):
    """The same over WebSocket."""

    kind = WebSocketTransport
    echo = "ws-echo"


class _GRPCCase(_Case):
    """A call over gRPC; with a token grpcio is asked in another way."""

    may_keep = 1  # the interrupted one, among the users of its channel

    def __init__(self, *args: Any, with_token: bool, **settings: Any) -> None:
        self._with_token = with_token
        super().__init__(*args, **settings)

    def _made(self) -> Transport:
        return GRPCTransport(trust_env=False, config=self._config)

    def call(self) -> Any:
        token = self.token if self._with_token else None
        return self.transport.send(
            ASK, self._url, self._question, timeout=self._timeout, cancel=token
        )


class _GRPCStreamCase(_StreamCase):
    """A stream over gRPC."""

    may_keep = 1

    def _made(self) -> Transport:
        return GRPCTransport(trust_env=False, config=self._config)


def _in_a_thread(run: Run) -> str | None:
    """Run in another thread; return what went wrong."""
    failures: list[str] = []

    def work() -> None:
        try:
            run()
        except BaseException as error:
            failures.append(repr(error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(10)
    if thread.is_alive():
        return "hangs"
    return failures[0] if failures else None


def _calls_alive() -> int:
    return sum(isinstance(thing, Call) for thing in gc.get_objects())


def _deadline_thread_works() -> bool:
    fired: list[bool] = []
    timer = Timer(0.0, lambda: fired.append(True))
    watch(timer)
    end = time.monotonic() + 5
    while not fired and time.monotonic() < end:
        time.sleep(0.0002)
    names = [thread.name for thread in threading.enumerate()]
    return bool(fired) and names.count("protolink-deadline") == 1


def _misses(case: _Case, before: int, calls: int) -> Iterator[str]:
    """Look at what an interrupted call left, and let two calls follow."""
    end = time.monotonic() + _LONG
    while matrix_watch.threads() and time.monotonic() < end:
        time.sleep(0.0005)
    if matrix_watch.threads():
        yield f"left threads {matrix_watch.threads()}"
    gc.collect()
    counted = case.transport.metrics
    if counted.active_requests or counted.active_streams:
        yield f"{counted.active_requests} and {counted.active_streams} slots in use"
    if _calls_alive() - calls > case.may_keep:
        yield f"{_calls_alive() - calls} calls are kept"
    if matrix_watch.descriptors() > before:
        yield f"{matrix_watch.descriptors()} descriptors, {before} before"
    for where, failure in (
        # First, for a lock that this thread may have kept lets it in again.
        ("another thread", _in_a_thread(case.plain)),
        ("this thread", _failure(case.plain)),
    ):
        if failure:
            yield f"the next call of {where}: {failure}"
    if _calls_alive() - calls > case.may_keep:
        yield f"{_calls_alive() - calls} calls are kept after two more"
    if not _deadline_thread_works():
        yield "the deadline thread does not work"


def _failure(run: Run) -> str | None:
    try:
        run()
    except BaseException as error:
        return repr(error)
    return None


def interrupt_calls(case: _Case) -> tuple[int, list[str]]:
    """Interrupt a call at each of its lines; return how many there are and what went wrong."""
    misses: list[str] = []
    unreached = 0
    for number in _numbers():
        faulthandler.dump_traceback_later(_HANG, exit=True)
        case.again()
        before = matrix_watch.descriptors()
        calls = _calls_alive()
        if case.cold:
            before += 2  # a connection that came into the pool before the interrupt
        case.beside()
        outcome = _traced(case.call, number, _raise)
        case.settle()
        if outcome.where is not None and not isinstance(outcome.value, KeyboardInterrupt):
            misses.append(f"{outcome.where}: brought {outcome.value!r}")
        misses += [f"{outcome.where}: {miss}" for miss in _misses(case, before, calls)]
        unreached = unreached + 1 if outcome.where is None else 0
        if unreached == _UNREACHED:
            case.close()
            return number - unreached * _every, misses
    raise AssertionError("unreachable")


def interrupt_closes(peer: Addresses, *, in_flight: bool) -> tuple[int, list[str]]:
    """Interrupt close() at each of its lines; close again."""
    misses: list[str] = []
    for number in _numbers():
        faulthandler.dump_traceback_later(_HANG, exit=True)
        before = matrix_watch.descriptors()
        where, bad = _interrupted_close(_Case(peer), number, in_flight=in_flight)
        misses += [f"{where}: {miss}" for miss in bad]
        if matrix_watch.descriptors() != before:
            misses.append(f"{where}: {matrix_watch.descriptors()} descriptors, {before} before")
        if where is None:
            return number - _every, misses
    raise AssertionError("unreachable")


def _interrupted_close(
    case: _Case, number: int, *, in_flight: bool
) -> tuple[str | None, list[str]]:
    """Interrupt one close(); return where, and what went wrong."""
    ends: list[str | None] = []

    def call() -> None:
        url = case.peer.url("http", "silent")
        ends.append(_failure(lambda: case.transport.send(ASK, url, {})))

    thread = threading.Thread(target=call)
    if in_flight:
        thread.start()
        matrix_watch.until(lambda: matrix_watch.phase(case.transport) == "wait", "the call")
    outcome = _traced(case.transport.close, number, _raise)
    case.transport.close()
    misses = []
    if in_flight:
        thread.join(5)
        if thread.is_alive() or "ClientClosedError" not in str(ends):
            misses.append(f"the call in flight: {ends}")
    if outcome.where is not None and not isinstance(outcome.value, KeyboardInterrupt):
        misses.append(f"brought {outcome.value!r}")
    if not _deadline_thread_works():
        misses.append("the deadline thread does not work")
    return outcome.where, misses


def cancel_calls(case: _Case) -> tuple[int, list[str]]:
    """Cancel a call at each line on its way to where it waits, which would be for a second."""
    misses: list[str] = []
    for number in _numbers():
        faulthandler.dump_traceback_later(_HANG, exit=True)
        case.again()
        before = matrix_watch.descriptors()
        case.beside()
        outcome = _traced(case.call, number, case.token.cancel, everywhere=True)
        case.settle()
        if outcome.before > _LONG:
            case.close()
            return number - _every, misses
        if not isinstance(outcome.value, CallCancelledError) or outcome.after > _PROMPT:
            misses.append(f"{outcome.where}: {outcome.value!r} after {outcome.after:.2f} s")
        misses += [f"{outcome.where}: {miss}" for miss in _misses(case, before, 0)]
    raise AssertionError("unreachable")


def cancel_answered_calls(case: _Case) -> tuple[int, list[str]]:
    """Cancel a call at each of its lines: it brings its answer, or says that it is cancelled."""
    misses: list[str] = []
    unreached = 0
    for number in _numbers():
        faulthandler.dump_traceback_later(_HANG, exit=True)
        case.again()
        before = matrix_watch.descriptors()
        outcome = _traced(case.call, number, case.token.cancel, everywhere=True)
        if not isinstance(outcome.value, (dict, CallCancelledError)):
            misses.append(f"{outcome.where}: brought {outcome.value!r}")
        misses += [f"{outcome.where}: {miss}" for miss in _misses(case, before, 0)]
        unreached = unreached + 1 if outcome.where is None else 0
        if unreached == _UNREACHED:
            case.close()
            return number - unreached * _every, misses
    raise AssertionError("unreachable")


def cancel_waits() -> tuple[int, list[str]]:
    """Cancel a token at each line of its own ``wait()``."""
    misses: list[str] = []
    for number in _numbers():
        token = CancelToken()
        outcome = _traced(
            functools.partial(token.wait, _LONG), number, token.cancel, everywhere=True
        )
        if outcome.before >= _LONG:
            return number - _every, misses
        if outcome.value is not True or outcome.after > _PROMPT:
            misses.append(f"{outcome.where}: {outcome.value!r} after {outcome.after:.2f} s")
    raise AssertionError("unreachable")


class _Resolver:
    """Knows the peer's name; asked for it while it stalls, it answers late."""

    def __init__(self) -> None:
        self._real = socket.getaddrinfo
        self.stalls = threading.Event()
        self.stalls.set()

    def __call__(self, host: Any, *args: Any, **options: Any) -> Any:
        if host != PEER_NAME:
            return self._real(host, *args, **options)
        if options.get("flags", 0) & socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "not an address")
        self.stalls.wait(_LONG)
        return self._real("127.0.0.1", *args, **options)


_resolver = _Resolver()


def _again(attempts: int, pause: float = 0.0, **settings: Any) -> TransportConfig:
    policy = RetryPolicy(
        max_attempts=attempts, initial_backoff=pause, max_backoff=pause, jitter=0.0
    )
    return TransportConfig(retry=policy, **settings)


def _one_slot() -> TransportConfig:
    return TransportConfig(limits=TransportLimits(max_concurrent_requests=1))


def cases(peer: Addresses) -> dict[str, Callable[[], tuple[int, list[str]]]]:
    """Return every case by its name."""

    def call(*args: Any, **settings: Any) -> Callable[[], tuple[int, list[str]]]:
        return lambda: interrupt_calls(_Case(peer, *args, **settings))

    def wire(kind: type[_Case], *args: Any, **settings: Any) -> Callable[[], Any]:
        return lambda: interrupt_calls(kind(peer, *args, **settings))

    return {
        "wire: a stream over sse": wire(_StreamCase, "http", "sse-one"),
        "wire: the first stream over sse": wire(_StreamCase, "https", "sse-one", cold=True),
        "wire: a whole stream over sse": wire(_StreamCase, "http", "sse-whole"),
        "wire: a call over websocket": wire(_WebSocketCase, "ws", "ws-echo"),
        "wire: the first call over websocket": wire(_WebSocketCase, "ws", "ws-echo", cold=True),
        "wire: the first call over websocket through a tunnel": wire(
            _WebSocketCase, "wss", "ws-echo", cold=True, proxy=True
        ),
        "wire: a stream over websocket": wire(_WebSocketStreamCase, "ws", "ws-one"),
        "grpc: a call": wire(_GRPCCase, "grpc", with_token=False),
        "grpc: a call with a token": wire(_GRPCCase, "grpc", with_token=True),
        "grpc: the first call": wire(_GRPCCase, "grpc", with_token=False, cold=True),
        "grpc: a stream": wire(_GRPCStreamCase, "grpc"),
        "raise: warm http": call(),
        "raise: warm https": call("https"),
        "raise: first http": call(cold=True),
        "raise: first https": call("https", cold=True),
        "raise: first by name": call(cold=True, host=PEER_NAME),
        "raise: first through a tunnel": call("https", cold=True, proxy=True),
        "raise: body to the end of the connection": call(mode="closing"),
        "raise: an error": call(mode="failing"),
        "raise: a retry": call(mode="flaky", config=_again(2, 0.001)),
        "raise: a time-out": call(mode="silent", timeout=0.02),
        "raise: waiting for a slot": lambda: interrupt_calls(_SlotCase(peer, config=_one_slot())),
        "cancel: token.wait()": cancel_waits,
        "cancel: a call": lambda: cancel_answered_calls(_Case(peer)),
        "cancel: a retry": lambda: cancel_answered_calls(
            _Case(peer, mode="flaky", config=_again(2, 0.001))
        ),
        "cancel: on the way to slot": lambda: cancel_calls(_LongSlotCase(peer, config=_one_slot())),
        "cancel: on the way to resolve": lambda: cancel_calls(
            _ResolverCase(peer, host=PEER_NAME, cold=True)
        ),
        "cancel: on the way to connect": lambda: cancel_calls(
            _Case(peer, mode=peer.full, config=TransportConfig(connect_timeout=_LONG))
        ),
        "cancel: on the way to tls": lambda: cancel_calls(
            _Case(peer, "https", peer.mute, config=TransportConfig(connect_timeout=_LONG))
        ),
        "cancel: on the way to wait": lambda: cancel_calls(
            _Case(peer, mode="slow", question={"think": _LONG})
        ),
        "cancel: on the way to backoff": lambda: cancel_calls(
            _Case(peer, mode="busy", config=_again(2, _LONG))
        ),
        "raise: close": lambda: interrupt_closes(peer, in_flight=False),
        "raise: close with a call in flight": lambda: interrupt_closes(peer, in_flight=True),
    }


def main(arguments: list[str]) -> int:
    """Run the chosen cases; return the exit code."""
    global _every
    parser = argparse.ArgumentParser(prog="python -m tests.transport.matrix_lines")
    parser.add_argument("--every", type=int, default=1, metavar="K")
    parser.add_argument("words", nargs="*")
    asked = parser.parse_args(arguments)
    _every = asked.every
    socket.getaddrinfo = _resolver
    # A socket that an interrupt finds between its making and the next line is closed when it is
    # collected, which warns; CPython runs handlers there, and no code could be quicker.
    warnings.simplefilter("ignore", ResourceWarning)
    missed = 0
    with tempfile.TemporaryDirectory() as folder, running_peer(folder) as peer:
        with HTTPTransport(tls=TLSConfig(cafile=peer.cafile), trust_env=False) as first:
            first.send(ASK, peer.url("https", "echo"), {}, timeout=20)
        # Kept open: grpcio has descriptors of its own as long as there is a channel.
        first_grpc = GRPCTransport(trust_env=False)
        first_grpc.send(ASK, peer.url("grpc", "echo"), {}, timeout=20)
        gc.freeze()
        for name, run in cases(peer).items():
            if not all(word in name for word in asked.words):
                continue
            began = time.monotonic()
            lines, misses = run()
            missed += len(misses)
            took = time.monotonic() - began
            print(f"{name:45} {lines:5} lines {took:5.1f} s  {len(misses)} misses", flush=True)
            for miss in misses:
                print(f"    {miss}", flush=True)
        first_grpc.close()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
