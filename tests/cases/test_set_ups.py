"""Cases that no byte script can set up: TLS, forks, signals, imports, pickles, logging, agents.

Each test is named after its case. ``the_case`` names the check keys a test holds by hand, so
that a changed case does not go unnoticed.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import inspect
import json
import pathlib
import pickle
import signal
import ssl
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from typing import Any

import pytest
import trustme

from protolink_sync import client as client_module
from protolink_sync import errors as errors_module
from protolink_sync.client import AgentClient
from protolink_sync.config import RetryPolicy, TransportConfig, TransportLimits
from protolink_sync.errors import (
    ProtoLinkError,
    TLSVerificationError,
    TransportConnectionError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import AgentCard, Artifact, Message, Part, Task, TaskState
from protolink_sync.security import APIKey, BearerToken, TLSConfig
from protolink_sync.transport import HTTPTransport
from tests.cases.checks import chain
from tests.cases.play import Case, Play, environment, load_cases, new_task, reply, task_json
from tests.cases.server import ScriptedServer

CASES = load_cases()
ROOT = str(pathlib.Path(client_module.__file__).parents[2])
LIMIT = 60.0
TASK_ROUTE = {"routes": {"POST /tasks/": [[reply(task_json())]]}}


def the_case(case_id: str, **checks: Any) -> Case:
    """Return a case whose checks are the ones its test holds."""
    case = CASES[case_id]
    assert case.checks == checks, f"{case_id} has other checks than its test: {case.checks}"
    return case


@contextlib.contextmanager
def script(text: str, *args: str) -> Iterator[subprocess.Popen[str]]:
    """Run a script in a process of its own, which ends with the block at the latest."""
    with environment(PYTHONPATH=ROOT):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(text), *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    with process:
        try:
            yield process
        finally:
            process.kill()


def output_of(text: str, *args: str) -> str:
    """Run a script to its end and return what it printed."""
    with script(text, *args) as process:
        out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, err
    return out


# -- signals and processes -----------------------------------------------------------------


INTERRUPTED = """
    import signal, sys, time
    from protolink_sync.client import AgentClient
    from protolink_sync.models import Message, Task

    # A process started in the background of a shell ignores the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    client = AgentClient("http")
    try:
        client.send_task(sys.argv[1], Task.create(Message.user("hi")))
    except KeyboardInterrupt:
        print(time.monotonic(), flush=True)
    sys.stdin.read()
"""


def test_C165_ctrl_c_during_a_blocking_call():
    case = the_case("C165", outcome="raises", max_s=3)
    with Play(case) as play, script(INTERRUPTED, play.base) as process:
        play.server.wait_for_requests(1, LIMIT)
        sent_at = time.monotonic()

        process.send_signal(signal.SIGINT)
        interrupted_at = float(process.stdout.readline())

        assert interrupted_at - sent_at < 1
        # The process still lives: it is the library that closed the socket.
        assert play.server.wait_for_end(within=2) == "client"
        process.stdin.close()
        assert process.wait(LIMIT) == 0
        assert time.monotonic() - sent_at < case.checks["max_s"]


FORKING = """
    import os, sys, traceback
    from protolink_sync.client import AgentClient
    from protolink_sync.models import Message, Task

    base, children, calls_each = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    parent_calls = int(sys.argv[4])
    client = AgentClient("http", timeout=30)


    def wrong_answers(count):
        wrong = 0
        for _ in range(count):
            task = Task.create(Message.user(f"pid {os.getpid()}."))
            wrong += client.send_task(base, task).id != task.id
        return wrong


    def child():
        code = 100
        try:
            code = min(wrong_answers(calls_each), 99)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)


    wrong = wrong_answers(1)
    pids = []
    for _ in range(children):
        pid = os.fork()
        if pid == 0:
            child()
        pids.append(pid)
    wrong += wrong_answers(parent_calls)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    wrong += wrong_answers(1) if not parent_calls else 0
    print(os.getpid(), wrong, *codes)
"""


def forked(server: ScriptedServer, children: int, calls_each: int, parent_calls: int) -> None:
    """Use a client, fork, use it in every process; no answer may be another's."""
    args = (str(number) for number in (children, calls_each, parent_calls))
    pid, wrong, *codes = map(int, output_of(FORKING, server.base, *args).split())

    assert wrong == 0
    assert codes == [0] * children
    processes: dict[int, set[bytes]] = {}
    for request in server.requests:
        process = request.body.partition(b"pid ")[2].partition(b".")[0]
        processes.setdefault(request.connection, set()).add(process)
    assert processes[1] == {b"%d" % pid}, "a child used the parent's connection"
    assert all(len(pids) == 1 for pids in processes.values()), "processes share a connection"


def test_C179_fork_after_use():
    case = the_case("C179", outcome="returns", count_calls=251, own_id=True)
    with Play(case) as play:
        forked(play.server, children=4, calls_each=50, parent_calls=50)

        assert len(play.server.requests) == case.checks["count_calls"]


def test_C193_workers_forked_with_a_used_client():
    case = the_case("C193", count_calls=16)
    with Play(case) as play:
        forked(play.server, children=3, calls_each=5, parent_calls=0)

        # The parent's first call, the workers', and one more of the parent.
        assert len(play.server.requests) == case.checks["count_calls"] + 1


IMPORTING = """
    import json, os, sys, threading, time

    def state():
        # The listing's own descriptor is closed by the time it is looked at.
        names = [name for name in os.listdir("/dev/fd") if os.path.exists(f"/dev/fd/{name}")]
        return [sorted(names), sorted(thread.name for thread in threading.enumerate())]

    before = state()
    begin = time.process_time()
    import protolink_sync
    seconds = time.process_time() - begin
    after = state()
    lazy = [name for name in ("grpc", "websocket", "sseclient", "tenacity") if name in sys.modules]
    print(json.dumps([before, after, lazy, seconds]))
"""


def test_C189_import_has_no_side_effects():
    the_case("C189")

    before, after, imported, seconds = json.loads(output_of(IMPORTING))

    assert after == before
    assert imported == []
    assert seconds < 1


# -- pickle and copy -----------------------------------------------------------------------


def copies(value: Any) -> list[Any]:
    return [pickle.loads(pickle.dumps(value)), copy.deepcopy(value)]


def some_task() -> Task:
    document = json.loads(task_json("done", "t-1"))
    return Task.from_dict({**document, "future": {"kept": [1, None]}})


def test_C181_values_survive_pickle_and_deepcopy(tmp_path):
    case = the_case("C181")
    cafile = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(cafile)
    values = {
        "Task": some_task(),
        "Message": Message.user("hi"),
        "Part": Part.json({"a": [1, 2]}),
        "Artifact": Artifact().add_text("x"),
        "AgentCard": AgentCard(name="n", description="d", url="http://127.0.0.1:1"),
        "TransportConfig": TransportConfig(retry=RetryPolicy(max_attempts=3)),
        "TLSConfig": TLSConfig(cafile=str(cafile)),
        "RetryPolicy": RetryPolicy(max_attempts=2),
    }
    assert case.input["objects"] == [*values, "each exception", "AgentClient"]

    for value in values.values():
        for again in copies(value):
            assert again == value
            assert again is not value
    assert copies(values["Task"])[0].to_dict()["future"] == {"kept": [1, None]}


@pytest.mark.parametrize("name", errors_module.__all__)
def test_C181_errors_survive_pickle_and_deepcopy(name):
    error = getattr(errors_module, name)("what happened")
    known = {"url": "http://h", "status_code": 503, "code": -1, "retry_after": 2.5, "path": "$.a"}
    for attribute, value in known.items():
        if hasattr(error, attribute):
            setattr(error, attribute, value)

    for again in copies(error):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert again.__dict__ == error.__dict__


def test_C181_a_client_is_rebuilt_from_its_settings():
    config = TransportConfig(retry=RetryPolicy(max_attempts=2))
    with ScriptedServer(TASK_ROUTE) as server, contextlib.ExitStack() as stack:
        transport = stack.enter_context(HTTPTransport(timeout=9, config=config))
        client = stack.enter_context(AgentClient(transport))
        client.send_task(server.base, new_task())

        for again in copies(client):
            stack.callback(again.transport.close)
            assert again.transport.timeout == 9
            assert again.transport.config == config
            assert again.send_task(server.base, new_task()).state is TaskState.COMPLETED
        assert len(server.connections) == 3


# -- TLS -----------------------------------------------------------------------------------


class Authority:
    """A throw-away authority whose files lie in a folder."""

    def __init__(self, folder: pathlib.Path, name: str) -> None:
        self.ca = trustme.CA()
        self.folder = folder
        self.name = name
        self.cafile = self._write(self.ca.cert_pem, "ca")

    def _write(self, blob: trustme.Blob, name: str) -> str:
        path = self.folder / f"{self.name}-{name}.pem"
        blob.write_to_path(path)
        return str(path)

    def server(self, *hosts: str, client_ca: Authority | None = None) -> ssl.SSLContext:
        """Return the context of a server with a certificate for some hosts."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ca.issue_cert(*hosts).configure_cert(context)
        if client_ca is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            client_ca.ca.configure_trust(context)
        return context

    def client(self, name: str) -> tuple[str, str]:
        """Return the files of a client's certificate and key."""
        cert = self.ca.issue_cert(f"{name}@agents.test")
        return (
            self._write(cert.cert_chain_pems[0], f"{name}-cert"),
            self._write(cert.private_key_pem, f"{name}-key"),
        )


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path, "ours")


@pytest.fixture
def stranger(tmp_path):
    return Authority(tmp_path, "theirs")


@contextlib.contextmanager
def http_client(**settings: Any) -> Iterator[AgentClient]:
    with HTTPTransport(**settings) as transport, AgentClient(transport) as client:
        yield client


def send(base: str, **settings: Any) -> Task:
    with http_client(**settings) as client:
        return client.send_task(base, new_task())


def tls_failure(base: str, **settings: Any) -> TransportConnectionError:
    """Return the error of a call whose certificate must not be accepted."""
    with pytest.raises(TLSVerificationError) as caught:
        send(base, **settings)
    return caught.value


def assert_nothing_was_sent(server: ScriptedServer) -> None:
    assert not server.requests
    assert not any(connection.received for connection in server.connections)


def test_C194_the_clients_own_ca_wins_over_the_environment(authority, stranger):
    the_case("C194", outcome="returns")
    with ScriptedServer(TASK_ROUTE, tls=authority.server("127.0.0.1")) as server:
        with environment(REQUESTS_CA_BUNDLE=stranger.cafile, CURL_CA_BUNDLE=stranger.cafile):
            task = send(server.base, tls=TLSConfig(cafile=authority.cafile))
        with environment(REQUESTS_CA_BUNDLE=authority.cafile, CURL_CA_BUNDLE=authority.cafile):
            assert send(server.base).state is TaskState.COMPLETED
            tls_failure(server.base, tls=TLSConfig(cafile=stranger.cafile))

    assert task.state is TaskState.COMPLETED
    assert len(server.requests) == 2


def test_C195_certificate_for_another_host_name(authority):
    the_case("C195", outcome="raises", error=["connection", "tls"])
    with ScriptedServer(TASK_ROUTE, tls=authority.server("agent.internal")) as server:
        error = tls_failure(
            server.base,
            tls=TLSConfig(cafile=authority.cafile),
            config=TransportConfig(retry=RetryPolicy(max_attempts=3)),
        )

    assert "127.0.0.1" in str(error)
    assert "match" in str(error) or "not valid for" in str(error)
    assert not error.retryable
    assert len(server.connections) == 1
    assert_nothing_was_sent(server)


def test_C197_an_unknown_authority_is_not_trusted(authority):
    the_case("C197", outcome="raises", error=["connection", "tls"])
    with ScriptedServer(TASK_ROUTE, tls=authority.server("127.0.0.1")) as server:
        error = tls_failure(server.base)

    assert "certificate" in str(error)
    assert "cafile" in str(error)
    assert_nothing_was_sent(server)


def test_C197_a_redirect_does_not_lead_to_an_untrusted_server(authority):
    secure = ScriptedServer(TASK_ROUTE, tls=authority.server("127.0.0.1"))
    redirect = reply("", status=307, headers={"Location": "{{base:0}}/tasks/"})
    with (
        secure,
        ScriptedServer({"routes": {"*": [[redirect]]}}, peers=[secure]) as server,
        pytest.raises(TransportRemoteError, match="307"),
    ):
        send(server.base)

    assert not secure.connections


def test_C199_mutual_tls(authority):
    the_case("C199", outcome="returns")
    context = authority.server("127.0.0.1", client_ca=authority)
    certfile, keyfile = authority.client("caller")
    with ScriptedServer(TASK_ROUTE, tls=context) as server:
        config = TLSConfig(cafile=authority.cafile, certfile=certfile, keyfile=keyfile)

        assert send(server.base, tls=config).state is TaskState.COMPLETED
        with pytest.raises(TransportConnectionError):
            send(server.base, tls=TLSConfig(cafile=authority.cafile))

    assert len(server.requests) == 1


def test_C201_a_ca_file_that_does_not_exist():
    the_case("C201")

    with pytest.raises(ValueError, match=r"cafile.*/nope\.pem"):
        send("https://127.0.0.1:9", tls=TLSConfig(cafile="/nope.pem"))


def test_C201_a_key_that_does_not_match(authority):
    certfile, _ = authority.client("one")
    _, keyfile = authority.client("two")
    with (
        ScriptedServer(TASK_ROUTE, tls=authority.server("127.0.0.1")) as server,
        pytest.raises((ValueError, ProtoLinkError)) as caught,
    ):
        send(server.base, tls=TLSConfig(certfile=certfile, keyfile=keyfile))

    text = str(caught.value)
    assert "certfile" in text or "keyfile" in text
    assert certfile in text or keyfile in text
    assert_nothing_was_sent(server)


# -- credentials ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "entry", ["machine 127.0.0.1 login u password p", "machine 127.0.0.1 password p"]
)
def test_C205_netrc_is_never_read(tmp_path, entry):
    case = the_case("C205", outcome="returns", count_calls=2, never="Authorization: Basic")
    (tmp_path / "netrc").write_text(entry + "\n")
    (tmp_path / ".netrc").write_text(entry + "\n")
    with Play(case) as play, environment(NETRC=str(tmp_path / "netrc"), HOME=str(tmp_path)):
        send(play.base, credentials=BearerToken("tok-123"))
        send(play.base)

        with_token, without = play.server.requests
    assert with_token.all("Authorization") == ["Bearer tok-123"]
    assert without.all("Authorization") == []


def test_C205_proxy_variables_are_still_read(tmp_path):
    (tmp_path / "netrc").write_text("default login u password p\n")
    netrc = str(tmp_path / "netrc")
    with (
        ScriptedServer({"routes": {"POST *": [[reply(task_json())]]}}) as proxy,
        environment(NETRC=netrc, HTTP_PROXY=proxy.base),
    ):
        send("http://agent.invalid:81")

    (request,) = proxy.requests
    assert request.target == "http://agent.invalid:81/tasks/"
    assert request.all("Authorization") == []
    assert request.all("Proxy-Authorization") == []


LOGGING = """
    import http.client, json, logging, sys
    import websocket
    from protolink_sync.client import AgentClient
    from protolink_sync.config import TransportConfig
    from protolink_sync.models import Message, Task
    from protolink_sync.security import BearerToken
    from protolink_sync.transport import HTTPTransport

    base, refused, result = sys.argv[1:]
    records = []


    class Keep(logging.Handler):
        def emit(self, record):
            if record.name.startswith("protolink_sync"):
                records.append(logging.Formatter("%(name)s %(message)s").format(record))
                records.append(repr(record.__dict__))


    logging.basicConfig(level=logging.DEBUG, handlers=[Keep()])
    logging.getLogger("urllib3").setLevel(logging.DEBUG)
    http.client.HTTPConnection.debuglevel = 1
    websocket.enableTrace(True)
    config = TransportConfig()
    transport = HTTPTransport(
        credentials=BearerToken("tok-123"), headers={"X-API-Key": "key-123"}, config=config
    )
    client = AgentClient(transport)
    texts = [repr(client), str(client), repr(transport), repr(config), repr(transport.config)]
    raised = []
    for url in (base, base, refused):
        try:
            client.send_task(url, Task.create(Message.user("hi")))
        except Exception as exc:
            raised.append(type(exc).__name__)
            while exc is not None:
                texts += [str(exc), repr(exc), repr(vars(exc))]
                exc = exc.__cause__
    client.close()
    transport.close()
    with open(result, "w") as file:
        json.dump({"records": records, "texts": texts, "raised": raised}, file)
"""


def test_C208_no_secret_in_logs_reprs_or_errors(tmp_path):
    case = the_case("C208", never="tok-123 or key-123")
    result = tmp_path / "result.json"
    with Play(case) as play, ScriptedServer({"listen": False}) as refused:
        output_of(LOGGING, play.base, refused.base, str(result))

        first = play.server.requests[0]
    assert first.all("Authorization") == ["Bearer tok-123"]
    assert first.all("X-API-Key") == ["key-123"]
    found = json.loads(result.read_text())
    assert found["raised"] == ["TransportRemoteError", "TransportConnectionError"]
    assert found["records"], "nothing was logged at DEBUG"
    for text in found["records"] + found["texts"]:
        assert "tok-123" not in text
        assert "key-123" not in text


def test_C212_credentials_go_with_every_request():
    case = the_case("C212", outcome="returns")
    with Play(case) as play:
        credentials, headers = BearerToken("tok-123"), {"X-API-Key": "key-123"}
        with http_client(credentials=credentials, headers=headers) as client:
            assert client.send_task(play.base, new_task()).state is TaskState.COMPLETED
            for call in (client.get_agent_card, client.describe_state):
                with pytest.raises(TransportRemoteError, match="404"):
                    call(play.base)

        assert len(play.server.requests) == 3
        for request in play.server.requests:
            assert request.all("Authorization") == ["Bearer tok-123"], request.name
            assert request.all("X-API-Key") == ["key-123"], request.name


def test_C212_an_api_key_alone():
    with ScriptedServer(TASK_ROUTE) as server:
        send(server.base, credentials=APIKey("key-123"))

    assert server.requests[0].all("X-API-Key") == ["key-123"]


# -- runtime agents ------------------------------------------------------------------------


def agent_card(name: str) -> AgentCard:
    return AgentCard(name=name, description="d", url=f"runtime://{name}")


def agent(name: str, handler: Any) -> Any:
    """Return an agent whose ``handle_task`` is a function of the task alone."""
    from protolink_sync.server import Agent

    if inspect.iscoroutinefunction(handler):

        class Handled(Agent):
            async def handle_task(self, task: Task) -> Task:
                return await handler(task)

    else:

        class Handled(Agent):
            def handle_task(self, task: Task) -> Task:
                return handler(task)

    return Handled(agent_card(name))


def done(task: Task) -> Task:
    return task.complete("done")


async def done_later(task: Task) -> Task:
    await asyncio.sleep(0)
    return task.complete("done")


def test_C256_a_handler_that_raises():
    the_case("C256")

    def fail(task: Task) -> Task:
        raise KeyError("x")

    with (
        agent("a", fail).serve("runtime://a"),
        AgentClient("runtime") as client,
        pytest.raises(TransportRemoteError) as caught,
    ):
        client.send_task("runtime://a", new_task())

    assert "x" in str(caught.value)
    assert any(isinstance(error, KeyError) for error in chain(caught.value))


@pytest.mark.parametrize("handler", [done, done_later])
def test_C258_a_call_from_inside_a_running_loop(handler):
    the_case("C258")

    async def main(client: AgentClient) -> Task:
        return client.send_task("runtime://a", new_task())

    with agent("a", handler).serve("runtime://a"), AgentClient("runtime", timeout=10) as client:
        task = asyncio.run(main(client))

    assert task.state is TaskState.COMPLETED


def test_C260_a_handler_calls_itself_three_deep():
    the_case("C260")
    depths = []
    with AgentClient("runtime", timeout=10) as client:

        def again(task: Task) -> Task:
            depths.append(len(depths))
            if len(depths) < 3:
                client.send_task("runtime://a", new_task())
            return task.complete("done")

        with agent("a", again).serve("runtime://a"):
            task = client.send_task("runtime://a", new_task())

    assert task.state is TaskState.COMPLETED
    assert depths == [0, 1, 2]


def test_C260_a_handler_calls_another_agent_when_the_only_slot_is_taken():
    """It may end with an error that names the slot, never hang beyond its budget."""
    from protolink_sync.transport import RuntimeTransport

    config = TransportConfig(limits=TransportLimits(max_concurrent_requests=1))
    with RuntimeTransport(timeout=1, config=config) as transport, AgentClient(transport) as client:

        def ask(task: Task) -> Task:
            client.send_task("runtime://b", new_task())
            return task.complete("done")

        with agent("a", ask).serve("runtime://a"), agent("b", done).serve("runtime://b"):
            begin = time.monotonic()
            error = None
            try:
                client.send_task("runtime://a", new_task())
            except (TransportTimeoutError, TransportRemoteError) as exc:
                error = exc

    assert time.monotonic() - begin < 5
    assert error is None or "slot" in str(error) or "max_concurrent_requests" in str(error)
