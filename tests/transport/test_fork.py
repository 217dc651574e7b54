"""After a fork the child begins anew and the parent is not disturbed.

Each test forks in a fresh process. ``fork`` there is ``os.fork``, or the C function alone: uWSGI
forks without running the hooks of ``os.register_at_fork``, which leaves the process id as the only
sign. ``PyDLL`` and not ``CDLL``, so that the interpreter stays locked while it is copied. As uWSGI
does, the process says that it is about to fork: a thread that asks for the interpreter at that
moment would stop the child for ever.
"""

from __future__ import annotations

import os
import textwrap

import pytest

from tests.transport.scenes import (
    HOLD,
    RECV,
    answering,
    in_fresh_process,
    reply,
    serving,
    wait_until,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

BEGIN = """
import ctypes, os, sys, threading, time, traceback, types, warnings
from protolink_sync.errors import ProtoLinkError, TransportTimeoutError
from protolink_sync.models import ClientRequestSpec
from protolink_sync.security import TLSConfig
from protolink_sync.transport import HTTPTransport, TransportConfig

# Python 3.12 and newer warn of any fork beside threads, also of one that is prepared for.
warnings.simplefilter("ignore", DeprecationWarning)
url, how = sys.argv[1], sys.argv[2]
tls = TLSConfig(cafile=sys.argv[3]) if len(sys.argv) > 3 else None
if how == "hooks":
    fork = os.fork
else:
    fork, master = ctypes.PyDLL(None).fork, os.getpid()
    sys.modules["uwsgi"] = types.SimpleNamespace(
        worker_id=lambda: int(os.getpid() != master), masterpid=lambda: master
    )
ask = ClientRequestSpec("ask", "/ask", "POST", idempotent=True)

def child(function, *arguments):
    pid = fork()
    if pid:
        return pid
    code = 1
    try:
        function(*arguments)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)

def well(pid):
    end = time.monotonic() + 20
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return False

client = HTTPTransport(url, tls=tls, timeout=10)
"""

both_ways = pytest.mark.parametrize("how", ["hooks", "no hooks"])


def forking(program: str, *arguments: str) -> list[str]:
    return in_fresh_process(BEGIN + textwrap.dedent(program), *arguments).split("\n")[:-1]


@both_ways
@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_a_child_has_a_connection_of_its_own_and_the_parent_keeps_its_own(
    how, secure, tls_server, tls_files
):
    program = """
        client.send(ask, None, {})
        def work():
            for _ in range(3):
                client.send(ask, None, {})
        assert well(child(work))
        client.send(ask, None, {})
        client.close()
    """

    with answering(tls=tls_server if secure else None) as server:
        forking(program, server.base, how, *([tls_files.ca] if secure else []))

    assert [request.connection for request in server.requests] == [1, 2, 2, 2, 1]


@both_ways
def test_children_and_parent_at_the_same_time_get_their_own_answers(how):
    program = """
        client.send(ask, None, {})
        def work(name):
            for number in range(30):
                key = f"{name}-{number}"
                assert client.send(ask, None, {}, idempotency_key=key)["for"] == key
        pids = [child(work, f"child{number}") for number in range(4)]
        work("parent")
        assert all([well(pid) for pid in pids])
        client.close()
    """
    echo = reply({"for": "{{hdr:Idempotency-Key}}"})

    with answering(echo) as server:
        forking(program, server.base, how)

    assert len(server.requests) == 1 + 5 * 30
    assert len(server.connections) == 5


@both_ways
def test_a_child_that_closes_and_exits_cuts_no_call_of_the_parent(how):
    program = """
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(client.send(ask, None, {})))
        client.send(ask, None, {})
        waiting.start()
        time.sleep(0.3)
        def work():
            global client
            client.close()
            client = None
        assert well(child(work))
        assert not answers
        print("over", flush=True)
        waiting.join()
        print(answers)
        client.close()
    """
    slow = [{"op": "sleep", "s": 1.0}, reply({"n": 2})]

    with answering(reply(), slow) as server:
        assert forking(program, server.base, how) == ["over", "[{'n': 2}]"]


@both_ways
def test_budgets_hold_in_a_child(how):
    """The thread that ends calls stayed with the parent."""
    program = """
        client.send(ask, None, {}, timeout=5)
        def work():
            begin = time.monotonic()
            try:
                client.send(ask, None, {}, timeout=0.3)
            except TransportTimeoutError:
                assert time.monotonic() - begin < 2
            else:
                raise AssertionError("no time-out")
        assert well(child(work))
        client.close()
    """

    with serving([RECV, reply()], [RECV, HOLD]) as server:
        forking(program, server.base, how)


def test_a_child_is_not_hung_by_what_other_threads_did_at_the_fork():
    """With the hooks only: without them the interpreter's own lock hangs beside busy threads."""
    program = """
        import random
        client.send(ask, None, {})
        over = False
        def busy():
            while not over:
                client.send(ask, None, {})
                client.metrics
        threads = [threading.Thread(target=busy) for _ in range(4)]
        for thread in threads:
            thread.start()
        def work():
            client.send(ask, None, {}, timeout=5)
            client.health()
            client.close()
        codes = []
        for _ in range(15):
            codes.append(well(child(work)))
            time.sleep(random.random() / 100)
        over = True
        for thread in threads:
            thread.join()
        assert all(codes), codes
        client.close()
    """

    with answering() as server:
        forking(program, server.base, "hooks")


@both_ways
def test_a_child_counts_its_own_calls(how):
    program = """
        client.send(ask, None, {})
        def work():
            client.send(ask, None, {})
            counted = client.metrics
            assert (counted.requests_started, counted.requests_succeeded) == (1, 1), counted
        assert well(child(work))
        assert client.metrics.requests_started == 1
        client.close()
    """

    with answering() as server:
        forking(program, server.base, how)


def test_a_child_that_does_nothing_keeps_no_connection_of_the_parent_open():
    program = """
        import socket
        listener = socket.create_server(("127.0.0.1", 0))
        client = HTTPTransport(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=10)
        call = threading.Thread(target=client.send, args=(ask, None, {}))
        call.start()
        peer, _ = listener.accept()
        peer.recv(65536)
        peer.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\n{}")
        call.join()
        read, write = os.pipe()
        ready, tell = os.pipe()
        def work():
            os.close(write)
            os.write(tell, b"!")
            os.read(read, 1)
        pid = child(work)
        os.read(ready, 1)
        client.close()
        # Now the child alone is left that could hold the connection.
        peer.settimeout(5)
        print(peer.recv(1))
        for end in (read, write, ready, tell):
            os.close(end)
        assert well(pid)
        peer.close()
        listener.close()
    """

    with answering() as server:
        assert forking(program, server.base, "hooks") == ["b''"]


@both_ways
def test_a_transport_that_was_closed_stays_closed_in_a_child(how):
    program = """
        client.send(ask, None, {})
        client.close()
        def work():
            try:
                client.send(ask, None, {})
            except ProtoLinkError as error:
                assert type(error).__name__ == "ClientClosedError"
            else:
                raise AssertionError("it is open")
        assert well(child(work))
    """

    with answering() as server:
        forking(program, server.base, how)

    assert len(server.requests) == 1


@both_ways
def test_a_look_up_of_the_parent_that_hangs_does_not_hang_the_child(how):
    program = """
        import socket
        real = socket.getaddrinfo
        def lookup(host, port, *args, **words):
            if host != "agent.test":
                return real(host, port, *args, **words)
            if words.get("flags"):
                raise socket.gaierror(socket.EAI_NONAME, "a name")
            if os.getpid() == parent:
                hang.wait(20)
            return real("127.0.0.1", port, *args, **words)
        parent, hang = os.getpid(), threading.Event()
        socket.getaddrinfo = lookup
        name = url.replace("127.0.0.1", "agent.test")
        threads = [
            threading.Thread(target=client.send, args=(ask, name, {})) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        assert well(child(lambda: client.send(ask, name, {}, timeout=5)))
        hang.set()
        for thread in threads:
            thread.join()
        client.close()
    """

    with answering() as server:
        forking(program, server.base, how)

    assert len(server.requests) == 9


def test_a_child_of_a_child_begins_anew_too():
    program = """
        client.send(ask, None, {})
        def outer():
            client.send(ask, None, {})
            assert well(child(lambda: client.send(ask, None, {})))
            client.send(ask, None, {})
        assert well(child(outer))
        client.close()
    """

    with answering() as server:
        forking(program, server.base, "hooks")

    assert [request.connection for request in server.requests] == [1, 2, 3, 2]


def test_a_worker_of_a_process_pool_gets_a_transport_by_pickle_or_by_fork():
    program = """
        import multiprocessing
        client.send(ask, None, {})
        def work(number):
            return client.send(ask, None, {"n": number})["ok"]
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(work, range(10)) == [True] * 10
        client.send(ask, None, {})
        client.close()
    """

    with answering() as server:
        forking(program, server.base, "hooks")

    assert server.requests[-1].connection == 1
    assert wait_until(lambda: all(one.closed_by for one in server.connections))
