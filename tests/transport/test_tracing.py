"""Spans of OpenTelemetry, as the exporter of its SDK gets them."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the SDK of OpenTelemetry is not installed")

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def found():
    done = subprocess.run(
        [sys.executable, "-m", "tests.transport.traced"],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=ROOT,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def span(found, case, name):
    (one,) = [one for one in found[case]["spans"] if one["name"] == name]
    return one


def test_a_call_is_a_span_below_the_callers_one(found):
    outer, call = span(found, "call", "work"), span(found, "call", "send_task")

    assert call["parent"] == outer["id"]
    assert call["kind"] == "CLIENT"
    assert call["status"] == "UNSET"
    port = int(found["call"]["url"].rpartition(":")[2])
    told = call["attributes"]
    assert (told["server.address"], told["server.port"]) == ("127.0.0.1", port)
    assert (told["protolink.transport"], told["protolink.attempts"]) == ("http", 1)
    assert len(told["protolink.request_id"]) == 32


def test_the_peer_is_told_of_the_trace_and_of_nothing_else(found):
    call = span(found, "call", "send_task")

    assert found["call"]["seen"]["HTTP_TRACEPARENT"].startswith(f"00-{call['trace']}-{call['id']}-")
    assert found["call"]["seen"]["HTTP_BAGGAGE"] is None


def test_no_secret_and_no_body_is_in_a_span(found):
    everything = json.dumps(found)

    assert "hush" not in everything
    assert "secret words" not in everything


def test_a_call_that_fails_says_how(found):
    refused = span(found, "refused", "cancel_task")

    assert refused["status"] == "ERROR"
    assert refused["attributes"]["error.type"] == "TransportRemoteError"
    assert refused["attributes"]["protolink.status_code"] >= 400


def test_a_retried_call_is_one_span_with_its_attempts(found):
    retried = span(found, "retried", "get_agent_card")

    assert retried["attributes"]["protolink.attempts"] == 2
    assert retried["attributes"]["error.type"] == "TransportConnectionError"


def test_the_span_of_a_stream_ends_with_the_stream(found):
    assert [one for one in found["stream"]["before"] if one["kind"] == "CLIENT"] == []
    stream = span(found, "stream", "send_task_stream")
    assert stream["status"] == "UNSET"
    assert stream["id"] in found["stream"]["seen"]["HTTP_TRACEPARENT"]


def test_an_agent_in_the_same_process_works_below_the_call(found):
    call, handling = span(found, "near", "send_task"), span(found, "near", "handling")

    assert handling["parent"] == call["id"]


def test_the_callers_span_is_current_again_after_a_call(found):
    assert found["left"] is True


def test_nothing_is_imported_where_nobody_traces():
    program = (
        "import sys\n"
        "from protolink_sync import AgentClient\n"
        "from protolink_sync.errors import TransportError\n"
        "try: AgentClient('http').get_agent_card('http://127.0.0.1:1')\n"
        "except TransportError: pass\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd=ROOT
    )

    assert done.stdout == "[]\n"
