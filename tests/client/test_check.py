"""client.check: what is between a client and an agent, each step with a hint."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest

from protolink_sync import (
    AgentCapabilities,
    AgentCard,
    BearerToken,
    CancelToken,
    TLSConfig,
    connect,
)
from protolink_sync.client import AgentClient
from protolink_sync.errors import (
    AuthenticationError,
    CallCancelledError,
    TLSVerificationError,
    TransportConnectionError,
    TransportTimeoutError,
)
from protolink_sync.server import Agent
from protolink_sync.transport import HTTPTransport, SSEJSONRPCTransport
from tests.aio.silent import SilentPeer

ALL = ["dns", "connect", "tls", "card", "protocol", "auth", "unary", "stream", "latency"]


class Counted(Agent):
    """Knows which paths were asked for."""

    def __init__(self, **changes):
        self.paths = []
        self.token = changes.pop("token", None)
        card = AgentCard("counted", "for tests", "http://127.0.0.1", **changes)
        super().__init__(card, authenticate=self.see)
        self.infer(lambda prompt: f"You asked: {prompt}")

    def see(self, environ):
        self.paths.append(environ["PATH_INFO"])
        wanted = f"Bearer {self.token}"
        return "ann" if self.token is None or environ.get("HTTP_AUTHORIZATION") == wanted else None


@pytest.fixture
def client():
    with AgentClient("sse") as client:
        yield client


def statuses(report):
    return {step.name: step.status for step in report.steps}


def test_a_real_agent_is_fine(agent_peer, client):
    report = client.check(agent_peer.url)

    assert report.ok
    assert [step.name for step in report.steps] == ALL
    assert report.step("card").found.startswith(report.card.name)
    assert report.step("protocol").found == "ProtoLink 0.8.3"
    assert report.step("latency").seconds < 1
    assert statuses(report)["tls"] == "skipped"
    assert report.error is None


def test_a_real_agents_model_and_stream_are_tried_with_a_text(start_peer, client):
    report = client.check(start_peer("sse").url, text="hello")

    assert report.ok
    assert statuses(report)["unary"] == statuses(report)["stream"] == "ok"
    assert "completed" in report.step("stream").found


def test_nothing_is_submitted_without_a_text(client):
    agent = Counted(capabilities=AgentCapabilities(streaming=True))
    with agent.serve("http://127.0.0.1:0") as server:
        report = client.check(server.url)
        without = set(agent.paths)
        client.check(server.url, text="hello")
        with_text = set(agent.paths) - without

    assert without == {"/.well-known/agent.json", "/state/describe"}
    assert with_text == {"/tasks/", "/tasks/stream"}
    assert statuses(report)["stream"] == "skipped"


def test_nobody_listens(client):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        report = client.check(f"http://127.0.0.1:{holder.getsockname()[1]}")

    assert not report.ok
    assert statuses(report) == {"dns": "ok", "connect": "failed"}
    assert "running" in report.step("connect").hint
    assert isinstance(report.error, TransportConnectionError)


def test_a_name_that_nobody_knows(client, monkeypatch):
    def unknown(*_args, **_more):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    report = client.check("http://nowhere.invalid")

    assert statuses(report) == {"dns": "failed"}
    assert "spelled" in report.step("dns").hint


def test_an_authority_that_is_not_trusted(tls_files):
    tls = TLSConfig(certfile=tls_files.server_cert, keyfile=tls_files.server_key)
    with Counted().serve("https://127.0.0.1:0", tls=tls) as server:
        with AgentClient("http") as client:
            report = client.check(server.url)
        with HTTPTransport(tls=TLSConfig(cafile=tls_files.ca)) as transport:
            trusting = AgentClient(transport).check(server.url)

    assert statuses(report) == {"dns": "ok", "connect": "ok", "tls": "failed"}
    assert "cafile" in report.step("tls").hint
    assert isinstance(report.error, TLSVerificationError)
    assert statuses(trusting)["tls"] == "ok"
    assert trusting.ok


@pytest.mark.parametrize("given", [None, "wrong"])
def test_credentials_that_are_not_accepted(given):
    agent = Counted(token="hush-hush")
    credentials = None if given is None else BearerToken(given)
    with (
        agent.serve("http://127.0.0.1:0") as server,
        HTTPTransport(credentials=credentials) as transport,
    ):
        report = AgentClient(transport).check(server.url)

    assert statuses(report)["auth"] == "failed"
    assert "credentials=" in report.step("auth").hint
    assert isinstance(report.error, AuthenticationError)
    assert "wrong" not in str(report).replace("wrong credentials", "")


def test_credentials_that_are_accepted():
    agent = Counted(token="hush")
    with (
        agent.serve("http://127.0.0.1:0") as server,
        SSEJSONRPCTransport(credentials=BearerToken("hush")) as transport,
    ):
        report = AgentClient(transport).check(server.url)

    assert report.ok
    assert report.step("auth").found == "calls are accepted with credentials"
    assert "hush" not in json.dumps(report.to_dict()) + str(report) + repr(report)


def test_an_address_that_is_no_agents(agent_peer, client):
    report = client.check(agent_peer.url + "/nothing")

    assert statuses(report)["card"] == "failed"
    assert "base URL" in report.step("card").hint
    assert [step.name for step in report.steps] == ALL[:4]


def test_an_agent_that_does_not_answer(client):
    with SilentPeer() as silent:
        begin = time.monotonic()
        report = client.check(silent.url, timeout=0.3)
        took = time.monotonic() - begin

    assert took < 1
    assert statuses(report)["connect"] == "ok"
    assert isinstance(report.error, TransportTimeoutError)
    assert "busy" in report.step("card").hint


class A2AOnly:
    """A WSGI application that serves an agent's A2A side only."""

    def __init__(self, app):
        self.app = app

    def __call__(self, environ, start_response):
        if environ["PATH_INFO"] == "/.well-known/agent.json":
            start_response("404 Not Found", [("Content-Length", "0")])
            return [b""]
        return self.app(environ, start_response)


@pytest.fixture
def a2a_url():
    from wsgiref.simple_server import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_args):
            pass

    agent = Agent(AgentCard("a2a only", "for tests", "http://127.0.0.1"))
    with make_server("127.0.0.1", 0, None, handler_class=Quiet) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        agent.card.url = url
        server.set_app(A2AOnly(agent.wsgi_app(a2a=True)))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield url
        server.shutdown()
        thread.join()


def test_an_agent_that_speaks_a2a_only(a2a_url, client):
    plain = client.check(a2a_url)
    with AgentClient("http", a2a=True) as both:
        report = both.check(a2a_url)

    assert not plain.ok
    assert "a2a=True" in plain.step("card").hint
    assert report.ok
    assert report.step("protocol").found == "A2A"
    assert statuses(report)["unary"] == "skipped"


def test_an_agent_that_speaks_a2a_only_is_asked_for_no_stream(a2a_url):
    with connect(a2a_url, a2a=True) as agent:
        report = agent.client.check(a2a_url, text="hello")

    assert report.ok
    assert statuses(report)["unary"] == "ok"
    assert statuses(report)["stream"] == "skipped"


def test_a_card_that_names_another_address_is_told(client):
    class Elsewhere(Agent):
        pass

    agent = Elsewhere(AgentCard("elsewhere", "for tests", "http://127.0.0.1"))
    with agent.serve("http://127.0.0.1:0") as server:
        other = f"http://localhost:{server.url.rpartition(':')[2]}"
        report = client.check(other)

    assert report.ok
    assert server.url in report.step("card").hint


def test_an_agent_in_this_process_has_no_way_to_look_at():
    agent = Agent(AgentCard("near", "for tests", "runtime://near"))
    agent.infer(lambda prompt: prompt)
    with agent.serve("runtime://near"), AgentClient("runtime") as client:
        report = client.check("runtime://near", text="hello")

    assert report.ok
    assert [step.name for step in report.steps][:2] == ["card", "protocol"]


def test_a_task_that_fails_is_a_failure(client):
    class Failing(Agent):
        def handle_task(self, task):
            return task.fail("no model today")

    with Failing(AgentCard("f", "for tests", "http://127.0.0.1")).serve(
        "http://127.0.0.1:0"
    ) as server:
        report = client.check(server.url, text="hello")

    assert statuses(report)["unary"] == "failed"
    assert "no model today" in report.step("unary").found
    assert not report.ok


def test_a_token_ends_it(client):
    token = CancelToken()
    with SilentPeer() as silent:
        threading.Timer(0.1, token.cancel).start()
        with pytest.raises(CallCancelledError):
            client.check(silent.url, cancel=token)


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [(("htpp://x",), ValueError), ((7,), TypeError), (("http://127.0.0.1:1", "text"), TypeError)],
)
def test_mistakes_of_the_caller_are_raised(client, arguments, kind):
    with pytest.raises(kind):
        client.check(*arguments)


def test_what_an_agent_says_forges_no_line_and_is_obeyed_by_no_terminal(client):
    forged = "d\n  ok       auth      forged\u2028line\x1b]0;title\x07\u202e"
    agent = Agent(AgentCard("name\x1b[2J", forged, "http://127.0.0.1"))

    with agent.serve("http://127.0.0.1:0") as server:
        report = client.check(server.url)

    for shown in (str(report), report._repr_mimebundle_()["text/plain"]):
        lines = shown.splitlines()
        assert len(lines) == 1 + sum(1 + bool(step.hint) for step in report.steps)
        assert all(line.isprintable() for line in lines)
        assert "name [2J: d ok auth forged line ]0;title" in shown


def test_a_report_is_read_as_lines_and_as_json(agent_peer, client):
    report = client.check(agent_peer.url)

    lines = str(report).splitlines()
    assert lines[0] == f"{report.url} over sse: ok"
    assert any(line.split()[:2] == ["ok", "connect"] for line in lines)
    data = json.loads(json.dumps(report.to_dict()))
    assert [step["name"] for step in data["steps"]] == ALL
    assert data["card"]["name"] == report.card.name
    with pytest.raises(KeyError):
        report.step("nothing")
