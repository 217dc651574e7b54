"""Notifications as a receiver reads them."""

from __future__ import annotations

import pytest

from protolink_sync.a2a.wire import TaskState, read_notification
from protolink_sync.errors import ModelError
from tests.a2a.wire.values import message, status, task

UPDATE = {"taskId": "t", "contextId": "c", "status": status("COMPLETED")}
STATUS_0_3 = {"state": "completed"}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"task": task("COMPLETED")}, "task"),
        ({"statusUpdate": UPDATE}, "status-update"),
        ({"kind": "task", "id": "t", "contextId": "c", "status": STATUS_0_3}, "task"),
        (
            {
                "kind": "status-update",
                "taskId": "t",
                "contextId": "c",
                "status": STATUS_0_3,
                "final": True,
            },
            "status-update",
        ),
        (task("COMPLETED"), "task"),
        (UPDATE, "status-update"),
    ],
)
def test_b75_the_bodies_of_both_dialects_are_read(body, kind):
    event = read_notification(body)

    assert (event.kind, event.task_id, event.state) == (kind, "t", TaskState.COMPLETED)
    assert event.is_final


def test_b75_messages_and_artifacts_are_read():
    assert read_notification({"message": message("hi")}).message.text == "hi"
    update = {"taskId": "t", "contextId": "c", "artifact": {"artifactId": "a", "parts": []}}
    for body in ({"artifactUpdate": update}, {"kind": "artifact-update", **update}, update):
        assert read_notification(body).kind == "artifact-update"


@pytest.mark.parametrize(
    "body", [None, [], "x", {"task": {"id": "t"}}, {"task": task(), "message": message()}]
)
def test_b75_what_is_no_notification_raises(body):
    with pytest.raises(ModelError):
        read_notification(body)


def test_b75_what_nobody_knows_is_passed_over():
    assert read_notification({"hello": 1}).content is None
