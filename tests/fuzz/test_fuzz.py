"""No bytes of a peer raise what nobody expects; the long form is ``python -m tests.fuzz``."""

from __future__ import annotations

import pytest

from tests.fuzz.decoders import DECODERS, Decoder
from tests.fuzz.findings import FINDINGS
from tests.fuzz.run import feed, fuzz

INPUTS = 1500
BY_NAME = {decoder.name: decoder for decoder in DECODERS}


@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.name)
def test_mutated_inputs_are_read_or_refused(decoder):
    report = fuzz(decoder, INPUTS, seed=0)

    assert report.inputs == INPUTS
    assert report.findings == []
    # A decoder that refuses everything at its door is not looked at.
    assert report.accepted > 0


@pytest.mark.parametrize(("name", "data"), FINDINGS)
def test_what_was_found_once_stays_mended(name, data):
    assert feed(BY_NAME[name], data) is None


def test_the_same_seed_makes_the_same_inputs():
    """Or a finding could not be found again."""
    read = []
    decoder = Decoder("x", DECODERS[0].make, lambda data: read.append(data) or 0, ())

    fuzz(decoder, 50, seed=5)
    fuzz(decoder, 50, seed=5)

    assert read[:50] == read[50:]
    assert len(set(read)) > 30


def test_an_error_that_nobody_is_prepared_for_is_a_finding():
    def read(data):
        if len(data) % 2:
            raise IndexError("odd")
        raise ValueError("even")

    report = fuzz(Decoder("x", DECODERS[0].make, read, (ValueError,)), 50, seed=0)

    assert [what for _, what in report.findings] == ["IndexError: odd"]
