"""After a fork the child begins anew; Ctrl-C ends a call. Each in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from tests.a2a.scripted import HOLD, ScriptedAgent, done, sent, stream, task
from tests.transport.scenes import in_fresh_process

BEGIN = """
import ctypes, os, sys, threading, time, traceback, types, warnings
from protolink_sync.a2a import A2AClient

# Python 3.12 and newer warn of any fork beside threads, also of one that is prepared for.
warnings.simplefilter("ignore", DeprecationWarning)
url, how = sys.argv[1], sys.argv[2]
if how == "hooks":
    fork = os.fork
else:  # as uWSGI does; see tests/transport/test_fork.py
    fork, master = ctypes.PyDLL(None).fork, os.getpid()
    sys.modules["uwsgi"] = types.SimpleNamespace(
        worker_id=lambda: int(os.getpid() != master), masterpid=lambda: master
    )
client = A2AClient(url)

def child(work):
    pid = fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)

def well(pid):
    end = time.monotonic() + 5
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return False

def send():
    assert client.send_message("hi").text == "done"
"""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
both_ways = pytest.mark.parametrize("how", ["hooks", "no hooks"])


def forking(program: str, *arguments: str) -> None:
    in_fresh_process(BEGIN + textwrap.dedent(program), *arguments)


@needs_fork
@both_ways
def test_b112_a_child_has_its_own_connection_and_what_is_known_of_the_agent(how):
    with ScriptedAgent(done()) as agent:
        forking(
            """
            send()
            assert well(child(send))
            send()
            client.close()
            """,
            agent.base,
            how,
        )

        first, childs, last = (call.request.connection for call in agent.calls)
        assert first == last != childs
        assert len(agent.gets) == 1


@needs_fork
def test_b112_a_child_made_while_the_card_was_asked_for_asks_itself():
    """The thread that asked did not come along.

    Not without the hooks: then the interpreter's own locks, which that thread may hold for an
    import, hang the child.
    """
    slow = [{"op": "sleep", "s": 0.5}, {"op": "reply", "status": 404}]
    with ScriptedAgent(done(), card=[slow]) as agent:
        program = """
            threading.Thread(target=client.send_message, args=("hi",), daemon=True).start()
            while not client.transport.metrics.requests_started:
                time.sleep(0.01)
            assert well(child(send))
            os._exit(0)
            """
        forking(program, agent.base, "hooks")

        assert len(agent.gets) == 2


@needs_fork
@both_ways
@pytest.mark.parametrize("lock", ["client._peer.discovery._lock", "client._peer._lock"])
def test_b112_a_lock_that_was_held_at_the_fork_does_not_hang_the_child(lock, how):
    """It has no owner there who could let it go; a running setter is enough to hold it."""
    with ScriptedAgent(done()) as agent:
        program = f"""
            held = threading.Event()
            def hold():
                with {lock}:
                    held.set()
                    threading.Event().wait()
            threading.Thread(target=hold, daemon=True).start()
            held.wait()
            def work():
                client.set_timeout(4)
                client.set_allow_cross_origin_interfaces(False)
                send()
            assert well(child(work)), "the child hangs"
            os._exit(0)
            """
        forking(program, agent.base, how)

        assert len(agent.calls) == 1


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for one process there")
@pytest.mark.parametrize("operation", ["send_message", "stream_message"])
def test_b103_ctrl_c_ends_a_call_and_its_connection(operation):
    program = f"""
        import sys
        from protolink_sync.a2a import A2AClient
        client = A2AClient(sys.argv[1])
        try:
            answer = client.{operation}("hi")
            list(answer)
        except KeyboardInterrupt:
            assert client.get_task("t1").id == "t1"  # what is left works
            sys.exit(42)
        """
    answers = {
        "SendMessage": [HOLD],
        "SendStreamingMessage": stream(sent(task("working")), end=(HOLD,)),
        "GetTask": {
            "op": "reply",
            "body": '{"jsonrpc": "2.0", "id": {{rpc_id}}, "result": '
            '{"id": "t1", "status": {"state": "TASK_STATE_WORKING"}}}',
        },
    }
    with ScriptedAgent(methods=answers) as agent:
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program), agent.base])
        try:
            agent.wait_for_requests(2)
            interrupted = agent.calls[0].request.connection
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 42
        finally:
            process.kill()
            process.wait()

        assert agent.wait_for_end(interrupted, 2) == "client"
        assert agent.methods[1] == "GetTask"


@needs_fork
def test_b112_a_stream_belongs_to_the_process_that_opened_it():
    with ScriptedAgent(
        stream(
            sent(task("working")),
            {"op": "wait", "event": "go", "s": 20},
            {"op": "chunk", "data": "data: x\n\n"},
            end=(),
        )
    ) as agent:
        program = """
            stream = client.stream_message("hi")
            next(stream)
            def work():
                try:
                    next(stream)
                except RuntimeError:
                    return
                raise SystemExit(1)
            assert well(child(work))
            assert client.endpoint_url.endswith("/rpc")
            stream.close()
            client.close()
            """
        forking(program, agent.base, "hooks")


def test_b114_a_process_that_ends_with_an_open_stream_ends():
    """No worker keeps the interpreter alive."""
    program = """
        import sys
        from protolink_sync.a2a import A2AClient
        stream = A2AClient(sys.argv[1]).stream_message("hi")
        next(stream)
        """
    with ScriptedAgent(stream(sent(task("working")), end=(HOLD,))) as agent:
        in_fresh_process(textwrap.dedent(program), agent.base)

        assert agent.wait_for_end(agent.calls[0].request.connection, 2) == "client"
