"""Count the cases that were run, by id: one case may have several tests."""

from __future__ import annotations

import re

import pytest

pytest.register_assert_rewrite(
    "tests.cases.checks",
    "tests.cases.expected",
    "tests.cases.expected_a2a",
    "tests.cases.calls",
)

_CASE_ID = re.compile(r"(?:\[|::test_)(C\d{3})")
_outcomes: dict[str, set[str]] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how the test of a case ended; set-up and tear-down count when they fail."""
    match = _CASE_ID.search(report.nodeid)
    if match and (report.when == "call" or not report.passed):
        _outcomes.setdefault(match[1], set()).add(report.outcome)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many cases were run."""
    if _outcomes:
        passed = sum(outcomes == {"passed"} for outcomes in _outcomes.values())
        skipped = sum("skipped" in outcomes for outcomes in _outcomes.values())
        run = len(_outcomes) - skipped
        terminalreporter.write_line(f"cases: run {run}, passed {passed}, skipped {skipped}")
