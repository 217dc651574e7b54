"""The runner itself: what it does not understand fails, and every check can fail."""

from __future__ import annotations

import json
import subprocess

import attrs
import pytest

from protolink_sync import a2a
from tests.cases.calls import NoRuleError, play_call
from tests.cases.checks import CHECKS, run_checks
from tests.cases.play import Case, Play, load_cases, new_task, reply, task_json
from tests.cases.runner import run_case

TASK = "client(http).send_task(base, task)"


def make_case(call: str = TASK, checks: dict | None = None, **words) -> Case:
    routes = {"POST /tasks/": [[reply(task_json())]]}
    given = {"call": call, "server": {"routes": routes}, **words}
    return Case("C000", "made up", "", given, [], checks or {}, "", "")


@pytest.mark.parametrize(
    "call",
    [
        "something else",
        "client(carrier pigeon).send_task(base, task)",
        "client(http, blue).send_task(base, task)",
        "client(http).send_task(base, tusk)",
        "client(http).send_task(base, task) and then some",
        "list(client(http).send_task(base, task))",
    ],
)
def test_a_call_text_without_a_rule_fails(call):
    with Play(make_case(call)) as play, pytest.raises(NoRuleError, match="no rule for"):
        play_call(play)


@pytest.mark.parametrize(
    "checks",
    [
        {"colour": "red"},
        {"outcome": "explodes"},
        {"error": ["weather"]},
        {"never": "a bad day"},
    ],
)
def test_a_check_without_a_rule_fails(checks):
    with pytest.raises(AssertionError, match="no rule for"):
        run_case(make_case(checks=checks))


def test_every_check_key_of_the_cases_has_a_rule():
    used = {key for case in load_cases().values() for key in case.checks}
    told = {"max_requests", "peer_never_gets"}

    assert used | told == set(CHECKS)


def test_a_problem_of_the_server_fails_the_case():
    routes = {"POST /tasks/": [[reply('{"id": "{{base:3}}"}')]]}

    with pytest.raises(AssertionError, match="scripted server"):
        run_case(make_case(server={"routes": routes}))


def test_an_exception_of_another_library_fails_the_case():
    def fail():
        raise KeyError("urllib3 or so")

    with Play(make_case()) as play:
        play.call(fail)
        with pytest.raises(AssertionError, match="another library"):
            run_checks(play)


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("outcome", "raises"),
        ("outcome", "yields"),
        ("outcome", "yields-then-raises"),
        ("error", ["connection"]),
        ("status", 500),
        ("code", -1),
        ("error_mentions", ["x"]),
        ("count_calls", 3),
        ("min_s", 60),
        ("max_s", 0),
        ("text", "other"),
        ("state", "failed"),
        ("never_state", "completed"),
        ("attrs", {"id": "other"}),
        ("metadata", {"n": 1.0}),
        ("own_id", True),
        ("data_parts", [1]),
        ("bytes_hex", "00"),
        ("count", 1),
        ("requests", {"POST /tasks/": 1}),
        ("requests", {"POST *": 0}),
        ("max_requests", {"POST /tasks/": 1}),
        ("same_headers", ["X-Protolink-Request-ID"]),
        ("same_headers", ["X-None"]),
        ("different_headers", ["Host"]),
        ("different_headers", ["X-None"]),
        ("same_body", True),
        ("header", {"A2A-Version": "1.0"}),
        ("header_prefix", {"Host": "[::1]"}),
        ("header_once", ["Authorization"]),
        ("body_has", {"state": "failed"}),
        ("peer_requests", 1),
        ("peer_close_within_s", 0.05),
        ("pong", "p"),
        ("pongs", 1),
        ("connections_min", 2),
        ("fd_growth_max", -100),
        ("exit_code", 1),
        ("stderr_empty", True),
    ],
)
def test_a_check_fails_when_it_does_not_hold(key, wrong):
    case = make_case(
        server={"routes": {"POST /tasks/": [[reply(document())]]}}, checks={key: wrong}
    )
    with Play(case) as play:
        client = play.client()
        for text in ("one", "two"):
            task = new_task(text)
            play.call(lambda: client.send_task(play.base, task), sent=new_task())  # noqa: B023
        play.process = subprocess.CompletedProcess([], 0, "", "warning")

        with pytest.raises(AssertionError):
            run_checks(play)


def document() -> str:
    return json.dumps({**json.loads(task_json(task_id="t")), "metadata": {"n": 1}})


def test_checks_of_streams_fail_when_they_do_not_hold():
    events = [{"type": "task_llm_stream", "content": text} for text in ("0", "2")]
    wrong = {
        "outcome": "raises",
        "contents": ["0"],
        "content_lengths": [1],
        "count": 1,
        "in_order": True,
        "first_event_within_s": 0.0,
    }
    for key, value in wrong.items():
        with Play(make_case(checks={key: value})) as play:
            play.stream(lambda: iter(events))
            with pytest.raises(AssertionError):
                run_checks(play)


def test_a_check_of_an_artifact_fails_when_it_does_not_hold():
    task = a2a.Task("t", artifacts=[a2a.Artifact([a2a.Part.from_text("one")])])
    with Play(make_case(checks={"artifact_text": "other"})) as play:
        play.call(lambda: task)
        with pytest.raises(AssertionError):
            run_checks(play)


def test_errors_are_told_apart():
    case = make_case(server={"routes": {"*": [[{"op": "reply", "status": 500}]]}})
    wrong = {"outcome": "returns", "error": ["limit"], "status": 404, "error_mentions": ["nope"]}
    with Play(case) as play:
        play_call(play)
        for key, value in {**wrong, "not_raised": "TransportRemoteError"}.items():
            play.case = attrs.evolve(case, checks={key: value})
            with pytest.raises(AssertionError):
                run_checks(play)
        play.case = attrs.evolve(case, checks={"outcome": "raises", "error": ["remote"]})
        run_checks(play)


def test_a_thread_that_stays_is_noticed():
    import threading

    end = threading.Event()
    with Play(make_case(checks={"threads_back": True})) as play:
        thread = threading.Thread(target=end.wait)
        thread.start()
        try:
            with pytest.raises(AssertionError, match="threads stayed"):
                run_checks(play)
        finally:
            end.set()
            thread.join()
