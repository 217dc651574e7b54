"""Every fault, in every phase, on every wire: the right error, in time, and no harm after it."""

from __future__ import annotations

import pytest

from tests.faults.cells import LANES, PHASES, all_cells, cells, told, why_not
from tests.faults.play import certificates, play


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    with certificates(tmp_path_factory.mktemp("faults")) as made:
        yield made


@pytest.mark.parametrize("cell", cells(), ids=str)
def test_a_fault_ends_in_its_error_within_the_budget_and_the_next_call_works(cell, shown):
    """Threads and descriptors are looked at by the fixture of all tests."""
    outcome = play(cell, shown)

    assert outcome.misses == []
    assert outcome.told == told(cell), outcome.error


def test_most_cells_exist_and_the_others_say_why_they_cannot():
    """What is said not to exist is no way to get rid of a cell."""
    assert len(cells()) == 616
    for lane in LANES:
        in_lane = {cell.phase for cell in cells() if cell.lane == lane}
        if not lane.startswith("runtime"):
            missing = set(PHASES) - in_lane
            before = {"resolve", "connect", "tls"} if lane.endswith("+tls") else {"resolve"}
            assert missing <= {*before, "mid-event"}, lane
    for cell in all_cells():
        assert why_not(cell) is None or len(why_not(cell)) > 10
