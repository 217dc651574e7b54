"""Push notifications: configurations at the agent, and the receiver of what it sends."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

from protolink_sync.a2a import (
    A2ATaskNotFoundError,
    PushNotificationConfig,
    PushReceiver,
    SendConfiguration,
    TaskState,
)
from tests.a2a.client.test_selection import FLAT, NESTED
from tests.a2a.scripted import (
    artifact_update,
    card,
    done,
    error,
    message,
    old_card,
    result,
    sent,
    status_update,
    task,
)

HOOK = "http://127.0.0.1:9/hook"
CONFIG = PushNotificationConfig(
    url=HOOK, id="p1", token="tok", schemes=["Bearer"], credentials="cred"
)
OLD = {"card": old_card()}


# ---- configurations ----------------------------------------------------------------------------


def test_b73_a_config_given_with_a_message_has_the_form_of_the_dialect(meet):
    configuration = SendConfiguration(push_config=CONFIG)
    new, client = meet(done())
    client.send_message("hi", configuration=configuration)
    old, client = meet(done(old=True), **OLD)
    client.send_message("hi", configuration=configuration)

    told = new.calls[0].params["configuration"]["taskPushNotificationConfig"]
    assert told["authentication"] == {"scheme": "Bearer", "credentials": "cred"}
    assert (told["url"], told["id"], told["token"]) == (HOOK, "p1", "tok")
    told = old.calls[0].params["configuration"]["pushNotificationConfig"]
    assert told["authentication"] == {"schemes": ["Bearer"], "credentials": "cred"}
    assert (told["url"], told["id"], told["token"]) == (HOOK, "p1", "tok")


def test_b73_a_config_is_made_for_a_task(meet):
    new, client = meet(result(FLAT))
    made = client.create_push_config("t1", CONFIG)
    old, old_client = meet(result(NESTED), **OLD)
    old_made = old_client.create_push_config("t1", CONFIG)

    told = new.calls[0].params
    assert (told["taskId"], told["url"], told["id"]) == ("t1", HOOK, "p1")
    told = old.calls[0].params
    assert told["taskId"] == "t1"
    assert told["pushNotificationConfig"]["url"] == HOOK
    for one in (made, old_made):
        assert (one.task_id, one.id, one.url) == ("t1", "p1", HOOK)


def test_b73_configs_are_got_and_listed_and_deleted(meet):
    pages = (
        result({"configs": [FLAT], "nextPageToken": "more"}),
        result({"configs": [{**FLAT, "id": "p2"}], "nextPageToken": ""}),
    )
    agent, client = meet(
        methods={
            "GetTaskPushNotificationConfig": result(FLAT),
            "ListTaskPushNotificationConfigs": pages,
            "DeleteTaskPushNotificationConfig": result(None),
        }
    )

    assert client.get_push_config("t1", "p1").url == HOOK
    assert [one.id for one in client.list_push_configs("t1")] == ["p1", "p2"]
    assert client.delete_push_config("t1", "p1") is None

    got, *listed, deleted = agent.calls
    assert got.params == deleted.params == {"taskId": "t1", "id": "p1"}
    assert [call.params.get("pageToken") for call in listed] == [None, "more"]


def test_b73_the_0_3_dialect_names_the_task_id(meet):
    agent, client = meet(
        methods={
            "tasks/pushNotificationConfig/get": result(NESTED),
            "tasks/pushNotificationConfig/list": result([NESTED, NESTED]),
            "tasks/pushNotificationConfig/delete": result(None),
        },
        **OLD,
    )

    assert client.get_push_config("t1", "p1").url == HOOK
    assert len(client.list_push_configs("t1")) == 2
    client.delete_push_config("t1", "p1")

    got, listed, deleted = agent.calls
    assert got.params == deleted.params == {"id": "t1", "pushNotificationConfigId": "p1"}
    assert listed.params == {"id": "t1"}


def test_b73_an_unknown_config_is_an_error(meet):
    _, client = meet(error(-32001))

    with pytest.raises(A2ATaskNotFoundError):
        client.get_push_config("t1", "nope")


def test_b73_no_secret_of_a_config_shows():
    shown = repr(PushNotificationConfig(url=HOOK, token="s3cret-1", credentials="s3cret-2"))

    assert "s3cret" not in shown


# ---- the receiver ------------------------------------------------------------------------------


class _Quiet(WSGIRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def hosted():
    """Host a receiver on a real socket: ``hosted(receiver)`` returns its port."""
    with contextlib.ExitStack() as stack:

        def start(receiver: PushReceiver) -> int:
            server = make_server("127.0.0.1", 0, receiver, handler_class=_Quiet)
            thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
            return server.server_port

        yield start


def post(port, value, *, method="POST", **headers):
    """Post a report; return the status of the answer."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as line:
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        line.request(method, "/hook", body, {"Content-Type": "application/json", **named})
        return line.getresponse().status


REPORTS = {
    "a task": sent(task("submitted")),
    "a status": status_update("working", "busy"),
    "an artifact": artifact_update("piece"),
    "a message": {"message": message("hi", taskId="t1")},
    "a task of 0.3": task("submitted", old=True),
    "a status of 0.3": status_update("working", "busy", old=True),
    "an artifact of 0.3": artifact_update("piece", old=True),
    "a message of 0.3": message("hi", old=True, taskId="t1"),
}

KINDS = dict(zip(REPORTS, ["task", "status-update", "artifact-update", "message"] * 2, strict=True))


@pytest.mark.parametrize("report", REPORTS)
def test_b74_every_form_of_a_report_becomes_an_event(report, hosted):
    events = []
    port = hosted(PushReceiver(events.append))

    assert 200 <= post(port, REPORTS[report]) < 300

    (event,) = events
    assert event.task_id == "t1"
    assert event.kind == KINDS[report]


def test_b74_the_media_type_of_the_specification_is_taken_too(hosted):
    events = []
    port = hosted(PushReceiver(events.append))

    assert post(port, REPORTS["a task"], Content_Type="application/a2a+json") == 200

    assert events[0].task.status.state is TaskState.SUBMITTED


@pytest.mark.parametrize("shown", [None, "", "to", "tok ", "other", "tok-and-more"])
def test_b75_a_wrong_token_is_refused(shown, hosted):
    events = []
    port = hosted(PushReceiver(events.append, token="tok"))
    headers = {} if shown is None else {"X-A2A-Notification-Token": shown}

    refused = post(port, REPORTS["a task"], **headers)
    if shown == "tok ":  # blanks around a value are no part of it
        assert refused == 200
        return

    assert refused in {401, 403}
    assert events == []
    assert post(port, REPORTS["a task"], **{"X-A2A-Notification-Token": "tok"}) == 200


@pytest.mark.parametrize("shown", [None, "Bearer other", "Basic cred", "cred"])
def test_b75_a_wrong_authorization_is_refused(shown, hosted):
    events = []
    port = hosted(PushReceiver(events.append, token="tok", authorization="Bearer cred"))
    headers = {"X-A2A-Notification-Token": "tok"}
    given = headers if shown is None else {**headers, "Authorization": shown}

    assert post(port, REPORTS["a task"], **given) in {401, 403}
    assert events == []

    assert post(port, REPORTS["a task"], **headers, Authorization="Bearer cred") == 200
    assert len(events) == 1


@pytest.mark.parametrize("expects", [{"t9"}, ["t9"], lambda task_id: task_id == "t9"])
def test_b75_a_report_of_a_task_that_nobody_expects_is_refused(expects, hosted):
    events = []
    port = hosted(PushReceiver(events.append, expects=expects))

    assert post(port, REPORTS["a task"]) in {403, 404}
    assert events == []

    assert post(port, sent({**task(), "id": "t9"})) == 200
    assert events[0].task_id == "t9"


def test_b75_a_report_that_comes_again_is_answered_and_not_given_out_again(hosted):
    events = []
    port = hosted(PushReceiver(events.append))

    statuses = [post(port, REPORTS["a status"]) for _ in range(3)]
    statuses.append(post(port, status_update("completed")))

    assert statuses == [200] * 4
    assert [event.state for event in events] == [TaskState.WORKING, TaskState.COMPLETED]


NO_REPORTS = {
    "no JSON": b"{oops",
    "no object": b"[]",
    "nothing": b"",
    "a task that is none": b'{"task": 5}',
    "NaN": b'{"task": NaN}',
    "nested without end": b'{"task": ' + b"[" * 100_000,
}


@pytest.mark.parametrize("what", NO_REPORTS)
def test_b75_what_is_no_report_is_refused(what, hosted):
    events = []
    port = hosted(PushReceiver(events.append))

    assert post(port, NO_REPORTS[what]) == 400

    assert events == []


def test_b75_a_report_of_an_unknown_kind_is_taken(hosted):
    """A refusal would make the agent send it again and again."""
    events = []
    port = hosted(PushReceiver(events.append))

    assert post(port, {"weather": {"taskId": "t1"}}) == 200

    assert all(event.task is None and event.status_update is None for event in events)


def test_b75_a_report_of_an_unknown_kind_is_of_no_expected_task(hosted):
    events = []
    port = hosted(PushReceiver(events.append, expects={"t1"}))

    assert post(port, {}) == 404

    assert events == []


def test_b75_a_piece_of_an_artifact_may_come_twice(hosted):
    """ "ha" and "ha" make "haha"."""
    events = []
    port = hosted(PushReceiver(events.append))
    piece = artifact_update("ha", append=True)

    assert [post(port, piece), post(port, piece)] == [200, 200]

    assert len(events) == 2


def test_b75_only_posts_are_taken(hosted):
    events = []
    port = hosted(PushReceiver(events.append))

    assert post(port, REPORTS["a task"], method="GET") == 405
    assert post(port, REPORTS["a task"], method="PUT") == 405

    assert events == []


def test_b75_a_report_beyond_its_limit_is_refused_unread(hosted):
    events = []
    port = hosted(PushReceiver(events.append, max_bytes=1000))

    assert post(port, {"task": "x" * 10_000}) == 413

    assert events == []


def test_b75_a_receiver_that_fails_gets_the_report_again(hosted):
    """Agents retry what was not taken: nothing is lost by an error of ours."""
    events = []

    def take(event):
        events.append(event)
        if len(events) == 1:
            raise RuntimeError("no disk")

    port = hosted(PushReceiver(take))

    assert post(port, REPORTS["a status"]) == 500
    assert post(port, REPORTS["a status"]) == 200
    assert len(events) == 2


def test_b25_a_card_without_push_makes_no_config(meet):
    agent, client = meet(result(FLAT), card=card(capabilities={"streaming": True}))

    with pytest.raises(Exception, match="push"):
        client.create_push_config("t1", CONFIG)

    assert agent.calls == []
