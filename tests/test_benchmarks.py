"""The benchmarks run: with tiny settings, so their figures say nothing here."""

from __future__ import annotations

import json
import os
import pathlib
import random
import subprocess
import sys
import time

import attrs
import pytest

from benchmarks import command, timing
from benchmarks.bounds import Bound, ratio
from benchmarks.cases import CASES
from benchmarks.command import main
from tests.peers.environment import OVERRIDE

ROOT = pathlib.Path(__file__).parents[1]
TINY = ("--rounds", "1", "--seconds", "0.01", "--calls", "20")

posix = pytest.mark.skipif(os.name == "nt", reason="they run on Linux and macOS")


def benchmarks(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *TINY, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )


def failed(results):
    return {name: rounds for name, rounds in results.items() if "failed" in rounds[0]}


@posix
@pytest.mark.slow
def test_cases_measure_us_and_the_floor_without_any_peer(tmp_path):
    """A third of them, others each time."""
    file = tmp_path / "figures.json"
    chosen = {"small", *random.sample(sorted(CASES), len(CASES) // 3)}

    run = benchmarks(*chosen, "--peer-python", "none", "--json", str(file))

    assert run.returncode == 0, run.stdout + run.stderr
    cases = json.loads(file.read_text())["cases"]
    assert set(cases) == chosen
    assert {name: failed(case["rounds"]) for name, case in cases.items()} == {
        name: {} for name in cases
    }
    ours = {"protolink_sync", "A2AClient"}
    assert all(ours & set(cases[name]["rounds"]) for name in chosen)
    assert "left out: protolink client.sync: left out as asked for" in run.stdout


@posix
@pytest.mark.slow
@pytest.mark.peer
def test_calls_to_a_real_agent_use_one_connection_and_leave_nothing(tmp_path):
    file = tmp_path / "figures.json"

    run = benchmarks("growth", "--json", str(file))

    assert run.returncode == 0, run.stdout + run.stderr
    growth = json.loads(file.read_text())["cases"]["growth"]
    (ours,) = growth["rounds"]["protolink_sync"]
    assert (ours["failures"], ours["connections"], ours["descriptors"]) == (0, 1, 0)


def test_an_unknown_case_is_refused_with_the_list_of_those_there_are():
    run = benchmarks("smal")

    assert run.returncode == 2
    assert "no such case: smal; there are small, big," in run.stderr


def test_a_ratio_compares_round_by_round():
    """A slow minute of the machine slows both contenders and must not count."""
    mine = [{"wall_us": 20.0}, {"wall_us": 200.0}, {"wall_us": 20.0}]
    floor = [{"wall_us": 10.0}, {"wall_us": 100.0}, {"wall_us": 10.0}]

    assert ratio(mine, floor, "wall_us").middle == 2.0


@pytest.mark.parametrize(
    ("wall", "state"),
    [([{"wall_us": 4.0}], "ok"), ([{"wall_us": 5.0}], "MISS"), ([], "not measured")],
)
def test_a_bound_holds_up_to_its_limit(wall, state):
    bound = Bound("we", "wall_us", "<=", 2.0, base="floor")

    verdict = bound.judge({"we": wall, "floor": [{"wall_us": 2.0}]})

    assert verdict.state == state


def test_a_contender_that_failed_misses_its_bounds():
    bound = Bound("we", "wall_us", "<=", 2.0, base="floor")

    verdict = bound.judge({"we": [{"failed": "ValueError: x"}], "floor": [{"wall_us": 2.0}]})

    assert verdict.state == "MISS"


def test_a_stream_that_lacks_events_is_not_measured():
    with pytest.raises(ValueError, match="2 events, not 3"):
        timing.stream(lambda: iter([{}, {}]), 0.01, 3)


def test_the_time_of_a_stream_is_that_of_one_event():
    figures = timing.stream(lambda: (time.sleep(0.01) for _ in range(4)), 0.01, 4)

    assert figures["calls"] == 4
    assert 10_000 <= figures["wall_us"] < 1_000_000


def test_paced_events_are_timed_from_their_making():
    def events():
        time.sleep(0.05)
        yield {"sent_ns": time.monotonic_ns() - 2_000_000_000}
        yield {"final": True}

    figures = timing.paced(events, 0.01, 1)

    assert figures["p50_us"] >= 2_000_000
    assert 50_000 <= figures["first_us"] < 2_000_000


def test_the_factor_of_a_larger_event_is_that_of_the_times():
    def taking(seconds):
        return lambda: iter([time.sleep(seconds)])

    assert timing.larger((taking(0.1), taking(0.4)), 0.01)["factor"] == pytest.approx(4, rel=0.5)


@posix
def test_without_grpc_its_cases_say_so(monkeypatch, capsys):
    class WithoutGrpc:
        def __init__(self, module):
            self.hello = {"missing": "No module named 'grpc'"}

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(command, "Child", WithoutGrpc)

    ended = main(["grpc-small", *TINY, "--check"])

    assert ended == 0
    shown = capsys.readouterr().out
    assert "left out: protolink_sync: No module named 'grpc'" in shown
    assert "bounds: 0 ok, 0 MISS, 2 not measured" in shown


@posix
@pytest.mark.parametrize(("check", "code"), [((), 0), (("--check",), 1)])
def test_a_missed_bound_fails_the_command_only_when_asked(monkeypatch, capsys, check, code):
    never = Bound("dataclasses by hand", "wall_us", "<=", 0.0)
    monkeypatch.setitem(CASES, "decode", attrs.evolve(CASES["decode"], bounds=(never,)))
    monkeypatch.setenv(OVERRIDE, "none")

    ended = main(["decode", *TINY, *check])

    assert ended == code
    assert "bounds: 0 ok, 1 MISS, 0 not measured" in capsys.readouterr().out
