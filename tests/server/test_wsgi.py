"""The WSGI application in servers that are not ours."""

from __future__ import annotations

import io
import os
import pathlib
import socket
import subprocess
import sys
import wsgiref.util
import wsgiref.validate

import pytest

from protolink_sync.config import TransportConfig, TransportLimits
from tests.server.hosting import Caller, Kitchen, raw, text_task, wait_until

ROOT = pathlib.Path(__file__).parents[2]
CHUNKED = (
    b"POST /tasks/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
    b"Connection: close\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
)


def call(app, method="POST", path="/tasks/", body=b"", **environ):
    """Call an application as PEP 3333 says, with a validator between."""
    sent = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "SCRIPT_NAME": "",
        "QUERY_STRING": "",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
        **environ,
    }
    if sent["CONTENT_LENGTH"] is None:
        del sent["CONTENT_LENGTH"]
    wsgiref.util.setup_testing_defaults(sent)
    answer = []

    def start_response(status, headers, exc_info=None):
        answer.append(int(status[:3]))
        answer.append(dict(headers))
        return lambda data: None

    result = wsgiref.validate.validator(app)(sent, start_response)
    try:
        answer.append(b"".join(result))
    finally:
        result.close()
    return answer


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/tasks/", b"{}", 200),
        ("POST", "/tasks/", b"{", 400),
        ("POST", "/tasks", b"{}", 307),
        ("GET", "/.well-known/agent.json", b"", 200),
        ("GET", "/status", b"", 200),
        ("HEAD", "/healthz", b"", 200),
        ("GET", "/nowhere", b"", 404),
        ("POST", "/", b"", 404),
    ],
)
def test_the_application_keeps_to_pep_3333(method, path, body, status):
    assert call(Kitchen().wsgi_app(), method, path, body)[0] == status


def test_the_card_keeps_its_own_address():
    _, _, body = call(Kitchen().wsgi_app(), "GET", "/.well-known/agent.json")

    assert b'"url":"http://kitchen.test"' in body


def test_below_a_prefix_the_redirect_keeps_it():
    _, headers, _ = call(Kitchen().wsgi_app(), path="/tasks", SCRIPT_NAME="/agents/a b")

    assert headers["Location"] == "/agents/a%20b/tasks/"


def test_a_body_of_unknown_length_is_read_where_the_server_ends_it():
    app = Kitchen().wsgi_app()
    unknown = {"CONTENT_LENGTH": None, "wsgi.input_terminated": True}

    assert call(app, body=b"{}", **unknown)[0] == 200
    assert call(app, body=b"{", **unknown)[0] == 400


def test_a_body_of_unknown_length_is_bounded():
    class Endless(io.RawIOBase):
        taken = 0

        def read(self, size=-1):
            assert size >= 0
            self.taken += size
            return b"x" * size

        readline = readlines = __iter__ = None

    config = TransportConfig(limits=TransportLimits(max_request_bytes=1000))
    app, stream = Kitchen(config=config).wsgi_app(), Endless()

    status, _, _ = call(
        app, CONTENT_LENGTH=None, **{"wsgi.input_terminated": True, "wsgi.input": stream}
    )

    assert status == 413
    assert stream.taken == 1001


def test_a_chunked_body_that_the_server_does_not_end_is_refused():
    status, _, _ = call(Kitchen().wsgi_app(), CONTENT_LENGTH=None, HTTP_TRANSFER_ENCODING="chunked")

    assert status == 411


@pytest.mark.parametrize("told", ["9" * 5000, "-1", "1,1", "²"])
def test_a_length_that_is_no_number_is_refused(told):
    """The validator would not let it through, servers do."""
    sent = {"REQUEST_METHOD": "POST", "PATH_INFO": "/tasks/", "CONTENT_LENGTH": told}
    answer = []

    body = Kitchen().wsgi_app()(sent, lambda status, headers: answer.append(status))

    assert answer == ["400 Bad Request"]
    assert len(b"".join(body)) < 200


def check(url):
    with Caller(url) as caller:
        assert caller.send(text_task("echo hi")).task().messages[-1].text == "hi"
        assert caller.request("GET", "/healthz").json()["ready"] is True
        assert caller.request("POST", "/tasks/", "{").status == 400
        first, second = (
            caller.request("POST", "/tasks/", {"id": "one"}, Idempotency_Key="k") for _ in range(2)
        )
        assert first.body == second.body


HOSTED = """
from protolink_sync.models import AgentCard
from protolink_sync.server import Agent

class Echo(Agent):
    def handle_task(self, task):
        text = task.messages[0].text if task.messages else ""
        return task.complete(text.removeprefix("echo "))

app = Echo(AgentCard("echo", "echoes", "http://echo.test")).wsgi_app()
"""
GUNICORN = "gunicorn --worker-class gthread --threads 4 --no-control-socket --log-level error"


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        f"{GUNICORN} --bind 127.0.0.1:PORT",
        f"{GUNICORN} --preload --bind 127.0.0.1:PORT",
        "waitress --listen 127.0.0.1:PORT",
    ],
)
def test_other_servers(tmp_path, unused_port, command):
    (tmp_path / "hosted.py").write_text(HOSTED)
    port = unused_port()
    arguments = command.replace("PORT", str(port)).split()
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments, "hosted:app"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: _answers(port), limit=30)
        url = f"http://127.0.0.1:{port}"
        check(url)
        assert raw(url, CHUNKED, closes=False).startswith(b"HTTP/1.1 200 OK")
    finally:
        process.terminate()
        process.wait(15)


def _answers(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
