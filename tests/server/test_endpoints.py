"""What is answered over HTTP, good and bad."""

from __future__ import annotations

import json
import logging

import pytest

from protolink_sync.client import AgentClient
from protolink_sync.config import TransportConfig, TransportLimits
from protolink_sync.models import Task
from protolink_sync.server import Agent
from tests.server.hosting import Kitchen, calling, card, text_task


@pytest.fixture
def caller():
    with calling(Kitchen()) as (caller, _):
        yield caller


def test_a_task_is_answered_with_the_task(caller):
    task = text_task("echo hi")

    reply = caller.send(task, X_Protolink_Request_ID="abc123")

    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["x-protolink-request-id"] == "abc123"
    assert (reply.task().id, reply.task().messages[-1].text) == (task.id, "hi")


def test_an_agent_may_answer_with_a_task_of_its_own():
    """As with ProtoLink; the caller gets it under the id that the agent gave it."""

    class Independent(Agent):
        def handle_task(self, task):
            return Task("mine").complete("done")

    with (
        Independent(card()).serve("http://127.0.0.1:0") as server,
        AgentClient("http") as client,
    ):
        answer = client.send_task(server.url, Task.create("yours"))

    assert (answer.id, answer.text) == ("mine", "done")


def test_a_caller_is_not_sent_to_our_documentation(caller):
    """It need not have it."""
    reply = caller.request("POST", "/tasks/", '{"messages": 1}')

    assert reply.status == 400
    assert b"$.messages" in reply.body
    assert b"errors.html" not in reply.body


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health(caller, path):
    health = caller.request("GET", path).json()

    assert (health["status"], health["ready"], health["transport"]) == ("ready", True, "http")
    assert health["metrics"]["active_requests"] == 1


def test_the_status_page_escapes(caller):
    page = caller.request("GET", "/status")

    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert b"<h1>kitchen</h1>" in page.body


def test_head_is_get_without_the_body(caller):
    got, headed = caller.request("GET", "/status"), caller.request("HEAD", "/status")

    assert headed.status == 200
    assert headed.body == b""
    assert headed.headers["content-length"] == got.headers["content-length"]


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "/nowhere", 404, b"Not Found"),
        ("GET", "/tasks/stream", 405, b"Method Not Allowed"),
        ("GET", "/tasks/", 405, b"Method Not Allowed"),
        ("PUT", "/tasks/", 405, b"Method Not Allowed"),
        ("POST", "/healthz", 405, b"Method Not Allowed"),
    ],
)
def test_what_is_not_there_is_refused_in_the_words_of_the_peer(caller, method, path, status, words):
    reply = caller.request(method, path)

    assert (reply.status, reply.body) == (status, words)
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    if status == 405:
        assert reply.headers["allow"] in ("POST", "GET")


def test_a_missing_slash_is_redirected_as_by_the_peer(caller):
    reply = caller.request("POST", "/tasks?a=1", {"messages": []})

    assert (reply.status, reply.headers["location"]) == (307, "/tasks/?a=1")
    assert caller.request("GET", "/healthz").status == 200


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "expected an object"),
        ("null", "expected an object"),
        ("[]", "expected an object"),
        ("{", "the body is not JSON"),
        (b"\xff", "not UTF-8"),
        ('{"messages": [{"parts": [{}]}]}', "$.messages[0].parts[0]"),
        ('{"metadata": {"x": NaN}}', "NaN"),
    ],
)
def test_a_body_that_is_no_task_is_a_400_with_the_place(caller, body, words):
    reply = caller.request("POST", "/tasks/", body)

    assert reply.status == 400
    assert words in reply.error


def test_the_content_type_makes_no_difference(caller):
    """Source: capture http_wrong_content_type_accepted."""
    reply = caller.send(text_task("echo hi"), Content_Type="text/plain")

    assert reply.task().messages[-1].text == "hi"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise secret words", "secret words"),
        ("nothing", "handle_task returned NoneType"),
        ("bytes", "bytes are not JSON"),
    ],
)
def test_what_goes_wrong_inside_is_logged_and_not_told(caller, caplog, text, words):
    with caplog.at_level(logging.ERROR, "protolink_sync.server"):
        reply = caller.send(text_task(text))

    assert (reply.status, reply.body) == (500, b"Internal Server Error")
    assert words in caplog.text


@pytest.mark.parametrize("task_id", ["ü ☃", 17, None, 10**30])
def test_ids_come_back_as_they_are(caller, task_id):
    """Source: captures http_numeric_task_id, http_null_task_id."""
    task = {**text_task("echo hi").to_dict(), "id": task_id}

    assert caller.request("POST", "/tasks/", task).json()["id"] == task_id


def test_unknown_members_are_kept(caller):
    task = {**text_task("echo hi").to_dict(), "x_new": {"a": [1, 2.0, 10**20]}}

    assert caller.request("POST", "/tasks/", task).json()["x_new"] == task["x_new"]


def test_a_request_that_is_too_large_is_refused_unread():
    config = TransportConfig(limits=TransportLimits(max_request_bytes=1000))
    with calling(Kitchen(config=config)) as (caller, server):
        reply = caller.send(text_task("echo " + "x" * 1000))
        huge = caller.request("POST", "/tasks/", b"x" * 3_000_000)
        small = caller.send(text_task("echo hi"))

        assert server.connections == 2
    assert reply.status == huge.status == 413
    assert "limit is 1000 bytes" in reply.error
    assert small.task().messages[-1].text == "hi"


def test_an_answer_that_is_too_large_is_an_error_and_not_remembered():
    """The peer lets every repetition hang: capture http_duplicate_after_oversize_response_hangs."""
    config = TransportConfig(limits=TransportLimits(max_response_bytes=5000))
    agent = Kitchen(config=config)
    task = text_task("big 10000")
    with calling(agent) as (caller, _):
        first = caller.send(task, Idempotency_Key="k")
        second = caller.send(task, Idempotency_Key="k")

    assert first.status == second.status == 500
    assert "limit is 5000" in first.error
    assert agent.executions[task.id] == 2


def test_a_task_that_needs_input_is_continued(caller):
    task = caller.send(text_task("need")).task()
    task.messages += text_task("echo Athens").messages

    answer = caller.send(task).task()

    assert answer.messages[-1].text == "Athens"


def test_an_empty_object_is_a_task(caller):
    """Source: capture http_empty_object_task."""
    task = Task.from_dict(json.loads(caller.request("POST", "/tasks/", "{}").body))

    assert task.state.value == "completed"
