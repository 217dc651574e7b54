"""Whatever goes wrong, nothing that a program prints or stores has a secret in it."""

from __future__ import annotations

import base64
import logging
import pickle
import traceback
from typing import Any
from urllib.parse import quote

import pytest

from tests.faults.cells import cells
from tests.faults.play import certificates, play

SECRET = "s3cret/W0rd+of=mine"
SPELLINGS = (
    SECRET,
    quote(SECRET, safe=""),
    base64.b64encode(SECRET.encode()).decode(),
    "s3cret",
)

# One cell of each way to fail, on each wire that shows credentials; those that wait for a budget
# fail like the others.
FAILING = [
    cell
    for cell in cells()
    if cell.wire != "runtime" and not cell.is_endless and cell.phase != "after-end"
]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    with certificates(tmp_path_factory.mktemp("secrets")) as made:
        yield made


def _texts_of(error: BaseException | None) -> list[str]:
    """Return all that an error shows, its causes included."""
    texts: list[str] = []
    while error is not None:
        texts += [str(error), repr(error), repr(vars(error))]
        texts += traceback.format_exception(error)
        error = error.__cause__ or error.__context__
    return texts


def _shown_in(texts: list[str]) -> list[str]:
    return [text for text in texts if any(spelling in text for spelling in SPELLINGS)]


@pytest.mark.parametrize("lane", sorted({cell.lane for cell in FAILING}))
def test_no_log_no_error_no_repr_and_no_pickle_shows_a_secret(lane, shown, caplog):
    """Searched is everything down to DEBUG, of every logger, and what an error's causes say."""
    caplog.set_level(logging.DEBUG)
    searched = 0
    for cell in FAILING:
        if cell.lane != lane:
            continue
        outcome = play(cell, shown, SECRET)
        texts = [*_texts_of(outcome.error), outcome.client, _pickled(outcome.error)]

        assert outcome.error is not None
        assert _shown_in(texts) == [], cell
        searched += len(texts)

    told = [record.getMessage() + repr(record.args) for record in caplog.records]
    assert _shown_in(told) == []
    assert searched > 100


def _pickled(error: Any) -> str:
    return pickle.dumps(error).decode("latin-1")


def test_the_search_finds_what_it_looks_for():
    """A search that finds nothing proves nothing unless it can find something."""
    inner = ValueError(f"Authorization: Bearer {SECRET}")
    outer = RuntimeError("all well")
    outer.__cause__ = inner

    assert _shown_in(_texts_of(outer))
    assert _shown_in([quote(SECRET, safe="")])
