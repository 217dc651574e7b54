"""What a push receiver answers to requests that are no reports, without any server."""

from __future__ import annotations

import io
import json
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from protolink_sync.a2a import PushReceiver

TASK = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}
REPORT = json.dumps({"task": TASK}).encode()


def answer(receiver: PushReceiver, body: bytes = REPORT, **environ: Any) -> str:
    told = []
    given = {
        "REQUEST_METHOD": "POST",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
        **environ,
    }
    receiver(given, lambda status, headers: told.append(status))
    return str(told[0])


@pytest.mark.parametrize(
    ("environ", "status"),
    [
        ({"REQUEST_METHOD": "GET"}, "405"),
        ({"CONTENT_LENGTH": ""}, "411"),
        ({"CONTENT_LENGTH": None}, "411"),
        ({"CONTENT_LENGTH": "-5"}, "411"),
        ({"CONTENT_LENGTH": "5x"}, "411"),
        ({"CONTENT_LENGTH": "101"}, "413"),
        ({"CONTENT_LENGTH": "9" * 5000}, "413"),
        ({"CONTENT_LENGTH": str(len(REPORT) + 1)}, "400"),
    ],
)
def test_what_is_no_report_is_refused_and_told_to_nobody(environ, status):
    events: list[Any] = []
    receiver = PushReceiver(events.append, max_bytes=100)
    body = REPORT if len(REPORT) < 100 else b"{}"

    assert answer(receiver, body, **environ).startswith(status)
    assert events == []


def test_a_report_that_comes_twice_is_told_once_as_far_back_as_is_remembered():
    events: list[Any] = []
    receiver = PushReceiver(events.append)

    assert answer(receiver).startswith("2")
    assert answer(receiver).startswith("2")
    assert len(events) == 1

    # The memory has an end; a server may run for years.
    began = time.monotonic()
    for number in range(1100):
        answer(receiver, json.dumps({"task": {**TASK, "id": str(number)}}).encode())
    assert answer(receiver).startswith("2")
    assert len(events) == 1102
    assert time.monotonic() - began < 20


class Leaves(BaseException):
    """Ends what runs, as gevent's time-outs and ``sys.exit`` do."""


@pytest.mark.parametrize("end", [Leaves, SystemExit, KeyboardInterrupt])
def test_a_report_whose_handling_is_broken_off_comes_again(end):
    """The agent tries again because it got no answer; nobody must tell it that all is known."""
    events: list[Any] = []

    def handle(event: Any) -> None:
        if not broken:
            broken.append(True)
            raise end
        events.append(event)

    broken: list[bool] = []
    receiver = PushReceiver(handle)
    with pytest.raises(end):
        answer(receiver)

    assert answer(receiver).startswith("200")
    assert len(events) == 1


def test_leading_zeros_are_a_length_like_any_other():
    events: list[Any] = []

    zeros = "0" * 5000 + str(len(REPORT))
    assert answer(PushReceiver(events.append), CONTENT_LENGTH=zeros).startswith("200")
    assert len(events) == 1


def test_an_agent_is_told_what_is_wrong_and_not_where_we_explain_it():
    wrong = b'{"statusUpdate": {"taskId": "t", "contextId": "c"}}'
    told: list[bytes] = []
    environ = {
        "REQUEST_METHOD": "POST",
        "CONTENT_LENGTH": str(len(wrong)),
        "wsgi.input": io.BytesIO(wrong),
        "HTTP_X_A2A_NOTIFICATION_TOKEN": "s3cret",
    }
    receiver = PushReceiver(lambda event: None, token="s3cret")

    told.extend(receiver(environ, lambda status, headers: None))

    assert b"$.statusUpdate" in told[0]
    assert b"errors.html" not in told[0]


async def later(_: Any) -> bool:
    return True


def piecewise(_: Any) -> Iterator[bool]:
    yield True


async def piecewise_later(_: Any) -> AsyncIterator[bool]:
    yield True


@pytest.mark.parametrize("what", ["on_event", "expects"])
@pytest.mark.parametrize("promise", [later, piecewise, piecewise_later])
def test_a_function_that_only_promises_takes_nothing(promise, what, caplog):
    """Nothing would have been done, and every task been expected; the agent tries again."""
    events: list[Any] = []
    if what == "on_event":
        assert answer(PushReceiver(promise)).startswith("500")
        assert "on_event is async or yields" in caplog.text
    else:
        with pytest.raises(TypeError, match="expects is async or yields"):
            answer(PushReceiver(events.append, expects=promise))
    assert events == []


@pytest.mark.parametrize("name", ["token", "authorization"])
def test_an_empty_secret_is_none(name):
    with pytest.raises(ValueError, match=f"{name} is empty"):
        PushReceiver(print, **{name: ""})
