"""Nothing that anybody sends to a hosted agent breaks it, or keeps it from the others."""

from __future__ import annotations

import time

import pytest

from tests.fuzz.decoders import Decoder
from tests.fuzz.hosted import CALLED, HEAD, calls_with_runs, heads_with_runs
from tests.fuzz.run import feed, fuzz

INPUTS = 1500
# Of the processor, for one input: a few milliseconds are enough, also for the longer runs.
MOST_SECONDS = 0.25


@pytest.mark.parametrize("decoder", [HEAD, CALLED], ids=lambda decoder: decoder.name)
def test_mutated_requests_are_answered_or_refused(decoder):
    report = fuzz(decoder, INPUTS, seed=0)

    assert report.findings == []
    assert report.accepted > 0


def slow(decoder: Decoder, inputs):
    """Return the first input that takes too long, twice, cut, and for how long."""
    for data in inputs:
        took = time_of(decoder, data)
        if took > MOST_SECONDS and (took := time_of(decoder, data)) > MOST_SECONDS:
            return repr(data)[:200], took
    return None


def time_of(decoder: Decoder, data):
    before = time.process_time()
    wrong = feed(decoder, data)
    took = time.process_time() - before
    assert wrong is None, (wrong, repr(data)[:200])
    return took


# The short runs find what grows with the third power, which would not end with the long ones.
@pytest.mark.parametrize("size", [1_000, 20_000])
@pytest.mark.parametrize(
    ("decoder", "inputs"),
    [(HEAD, heads_with_runs), (CALLED, calls_with_runs)],
    ids=["head", "call"],
)
def test_a_long_run_of_one_byte_takes_no_time(decoder, inputs, size):
    """One thread that works holds all others, and a head is read before anybody is let in."""
    assert slow(decoder, inputs(size)) is None
