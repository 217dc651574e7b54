"""Many threads on one transport, and handlers that cancel at any moment."""

from __future__ import annotations

import gc
import random
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from protolink_sync import CallCancelledError, CancelToken, TransportTimeoutError
from protolink_sync.config import TransportConfig, TransportLimits
from protolink_sync.security import TLSConfig
from protolink_sync.transport import HTTPTransport
from tests.transport.matrix_peer import ASK, Addresses, running_peer
from tests.transport.matrix_signals import SIGNALS
from tests.transport.matrix_watch import lines_of
from tests.transport.scenes import in_fresh_process

_JOIN_LIMIT = 60.0


@pytest.fixture
def peer(tmp_path) -> Iterator[Addresses]:
    """A peer of the test's own: its connections are numbered from 1."""
    with running_peer(tmp_path) as addresses:
        yield addresses


def transport_to(peer: Addresses, config: TransportConfig | None = None) -> HTTPTransport:
    return HTTPTransport(tls=TLSConfig(cafile=peer.cafile), trust_env=False, config=config)


def in_threads(count: int, work: Callable[[int], None]) -> list[BaseException]:
    """Run the same in many threads that begin together; return what they raised."""
    failures: list[BaseException] = []
    together = threading.Barrier(count)

    def run(number: int) -> None:
        try:
            together.wait()
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_JOIN_LIMIT)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    return failures


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_threads_that_think_between_calls_need_a_connection_each_and_never_another(peer, scheme):
    numbers: set[int] = set()

    with transport_to(peer) as transport:

        def work(thread: int) -> None:
            for n in range(120):
                question = {"thread": thread, "n": n}
                answer = transport.send(ASK, peer.url(scheme, "echo"), question)
                assert answer["question"] == question
                numbers.add(answer["connection"])
                time.sleep(0.02)  # what the thread thinks

        assert in_threads(32, work) == []
        assert transport.metrics.requests_succeeded == 32 * 120

    # The peer numbers its connections: no number above 32 means that there were no more.
    assert max(numbers) <= 32


# CPython reads once from a socket that is not connected any more before it begins TLS; where that
# fails too, because the peer has reset what was cut, it leaves the socket to the collector.
@pytest.mark.filterwarnings(
    "ignore:Exception ignored in.*SSLSocket:pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("slots", [100, 5])
def test_calls_that_are_cancelled_or_late_harm_no_other_call(peer, scheme, slots):
    """Every answer belongs to its question; whatever else comes says how the call was ended."""
    config = TransportConfig(limits=TransportLimits(max_concurrent_requests=slots))
    ends = {"answered": 0, "cancelled": 0, "late": 0}
    due: list[tuple[float, CancelToken]] = []
    over = threading.Event()

    def cancel_what_is_due() -> None:
        while not over.is_set():
            now = time.monotonic()
            for entry in [entry for entry in list(due) if entry[0] <= now]:
                due.remove(entry)
                entry[1].cancel()
            time.sleep(0.0005)

    with transport_to(peer, config) as transport:

        def work(thread: int) -> None:
            luck = random.Random(thread)
            for n in range(150):
                question = {"thread": thread, "n": n, "think": luck.uniform(0, 0.008)}
                token, timeout = CancelToken(), 10.0
                if n % 3 == 1:
                    due.append((time.monotonic() + luck.uniform(0, 0.01), token))
                elif n % 3 == 2:
                    timeout = luck.uniform(0.0005, 0.01)
                try:
                    answer = transport.send(
                        ASK, peer.url(scheme, "slow"), question, timeout=timeout, cancel=token
                    )
                except CallCancelledError:
                    assert token.cancelled
                    ends["cancelled"] += 1
                except TransportTimeoutError:
                    assert timeout < 1
                    ends["late"] += 1
                else:
                    assert answer["question"] == question
                    ends["answered"] += 1

        canceller = threading.Thread(target=cancel_what_is_due, daemon=True)
        canceller.start()
        failures = in_threads(12, work)
        over.set()
        canceller.join()

        assert failures == []
        assert all(ends.values()), ends
        metrics = transport.metrics
        assert metrics.active_requests == 0
        assert metrics.requests_started == 12 * 150
        # The pool is sound: it has at most a connection of each thread, and no call opens one.
        first, second = (
            {transport.send(ASK, peer.url(scheme, "echo"), n)["connection"] for n in range(24)}
            for _ in range(2)
        )
        assert second == first


def test_a_token_forgets_the_calls_that_are_over(peer):
    with transport_to(peer) as transport:
        token = CancelToken()

        def calls(count: int) -> int:
            for n in range(count):
                transport.send(ASK, peer.url("http", "echo"), n, cancel=token)
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            calls(200)
            before = calls(100)
            after = calls(1000)
        finally:
            tracemalloc.stop()

        # 50 bytes a call: the smallest thing that could be left of one is larger.
        assert after - before < 50_000


def test_a_token_is_flat_over_a_hundred_thousand_registrations():
    token = CancelToken()

    def register(count: int) -> int:
        for _ in range(count):
            token.on_cancel(token.__repr__)()
        gc.collect()
        return sys.getallocatedblocks()

    register(1000)
    before = register(1000)
    after = register(100_000)

    assert after - before < 100


@pytest.mark.slow
@pytest.mark.parametrize("how", ["wait", "call"])
def test_a_signal_handler_may_cancel_at_any_moment(how):
    """Thousands of times: nothing it reaches may hold a lock that the interrupted code has."""
    assert lines_of("matrix_signals", how)[-1] == f"{how}: {SIGNALS} signals, 0 misses"


# ---- no thread --------------------------------------------------------------------------------

NO_THREADS = """
    import json, socket, threading
    from protolink_sync import CancelToken, TransportError
    from protolink_sync.specs import TASK_CANCEL_REQUEST
    from protolink_sync.transport import HTTPTransport

    start = threading.Thread.start

    def refused(thread):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.2)
    transport = HTTPTransport(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=5)
    threading.Thread.start = refused
    for timeout in (5, float("inf")):
        try:
            transport.send(TASK_CANCEL_REQUEST, None, {"task_id": "t"}, timeout=timeout)
        except TransportError as error:
            print(type(error).__name__, error.retryable, error.url is not None, error)
    try:
        listener.accept()
    except TimeoutError:
        print("nothing was sent")

    def answer():
        peer, _ = listener.accept()
        with peer:
            peer.recv(65536)
            peer.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\n{}")
            peer.recv(65536)

    threading.Thread.start = start
    peer = threading.Thread(target=answer)
    peer.start()
    print(transport.send(TASK_CANCEL_REQUEST.__class__("ask", "/", "POST"), None, {}))
    transport.close()
    peer.join(5)
    listener.close()
"""


def test_a_call_that_nothing_could_end_is_not_made():
    """Python 3.12 starts no thread at its exit; and a process may have too many."""
    first, endless, nothing, later = in_fresh_process(NO_THREADS).splitlines()

    for line in (first, endless):
        assert line.startswith("TransportError False True nothing could end the call in time")
        assert "can't create new thread at interpreter shutdown" in line
    assert (nothing, later) == ("nothing was sent", "{}")
