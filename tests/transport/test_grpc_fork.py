"""grpcio and fork: the child calls over channels of its own, or is told at once that it cannot.

Each test forks in a fresh process; ``how`` is as in test_fork.py.
"""

from __future__ import annotations

import os

import pytest

from tests.transport.scenes import in_fresh_process

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork"),
    pytest.mark.parametrize("how", ["hooks", "bare"]),
]

PROGRAM = """
import ctypes, gc, os, sys, threading, time, traceback, warnings
from protolink_sync import AgentClient, CancelToken
from protolink_sync.errors import TransportConnectionError
from protolink_sync.models import Message, Task

warnings.simplefilter("ignore", DeprecationWarning)
url, how = sys.argv[1:]

def others_are_at_work():
    # Main sleeps meanwhile, so whoever asks for the interpreter gets it.
    time.sleep(0.001)
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/stat") as file:
            if int(task) != os.getpid() and file.read().rpartition(")")[2].split()[0] != "S":
                return True
    return False

def bare_fork():
    # A thread that asks for the interpreter at this moment would stop the child for ever.
    quiet = 0
    while quiet < 20:
        quiet = 0 if others_are_at_work() else quiet + 1
    return ctypes.PyDLL(None).fork()

fork = os.fork if how == "hooks" else bare_fork
client = AgentClient("grpc", url)

def ask(text="echo hi"):
    return client.send_task(url, Task.create(Message.user(text))).text

def in_a_child(function):
    pid = fork()
    if pid == 0:
        code = 1
        try:
            function()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    raise AssertionError("the child hangs")

def refused(words):
    begin = time.monotonic()
    try:
        ask()
    except TransportConnectionError as error:
        assert words in str(error), error
        assert not error.retryable
        assert time.monotonic() - begin < 1
    else:
        raise AssertionError("the call went through")
"""


def test_the_child_makes_its_own_connection(shared_peer, how):
    program = """
    def child():
        assert ask() == "hi"
        stream = client.send_task_streaming(url, Task.create(Message.user("many 3")))
        assert len(list(stream)) == 5
        client.close()

    assert ask() == "hi"
    assert all(in_a_child(child) for _ in range(3))
    assert ask() == "hi"
    client.close()
    """
    in_fresh_process(program_of(program), shared_peer("grpc").url, how)


def test_a_fork_before_the_first_call(shared_peer, how):
    program = """
    assert in_a_child(lambda: ask())
    assert ask() == "hi"
    """
    in_fresh_process(
        program_of(program), shared_peer("grpc").url, how, GRPC_ENABLE_FORK_SUPPORT="0"
    )


def test_a_stream_was_under_way(shared_peer, how):
    """grpcio leaves out its preparations then, and calls in the child may hang."""
    if how == "bare":
        pytest.skip("a bare fork beside a busy thread breaks the interpreter's lock in the child")
    program = """
    stream = client.send_task_streaming(url, Task.create(Message.user("slow 10 0.05")))
    next(stream)

    def child():
        global stream
        refused("under way")
        try:
            next(stream)
        except RuntimeError as error:
            assert "parent process" in str(error)
        # To drop what is the parent's must neither hang nor end the parent's stream.
        del stream
        gc.collect()

    assert in_a_child(child)
    assert len(list(stream)) == 11
    assert ask() == "hi"
    client.close()
    """
    in_fresh_process(program_of(program), shared_peer("grpc").url, how, GRPC_VERBOSITY="NONE")


def test_a_call_that_was_interrupted_where_it_leaves_is_not_under_way(shared_peer, how):
    program = """
    def interrupt(frame, event, arg):
        if frame.f_code.co_name == "leave" and "_grpc_channel" in frame.f_code.co_filename:
            sys.settrace(None)
            raise KeyboardInterrupt

    assert ask() == "hi"
    sys.settrace(interrupt)
    try:
        ask()
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("nothing was interrupted")

    def child():
        assert ask() == "hi"

    assert in_a_child(child)
    client.close()
    """
    in_fresh_process(program_of(program), shared_peer("grpc").url, how)


def test_support_for_forks_was_switched_off(shared_peer, how):
    program = """
    assert ask() == "hi"
    assert in_a_child(lambda: refused("GRPC_ENABLE_FORK_SUPPORT"))
    assert ask() == "hi"
    """
    in_fresh_process(
        program_of(program), shared_peer("grpc").url, how, GRPC_ENABLE_FORK_SUPPORT="0"
    )


def program_of(body: str) -> str:
    return PROGRAM + "\n".join(line[4:] for line in body.splitlines())
