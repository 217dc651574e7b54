"""Play a case: start its servers, make its calls, try its checks and what it expects."""

from __future__ import annotations

from tests.cases import expected_a2a  # noqa: F401 - registers its sentences
from tests.cases.calls import play_call
from tests.cases.checks import run_checks
from tests.cases.expected import run_expected
from tests.cases.play import Case, Play


def run_case(case: Case) -> None:
    """Play one case.

    Raises:
        AssertionError: The library did otherwise, or the runner has no rule for a call text or
            a check.
    """
    with Play(case) as play:
        play_call(play)
        run_checks(play)
        run_expected(play)
