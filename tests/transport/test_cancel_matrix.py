"""A call is ended at once in every phase, on every route, on new and on kept connections."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from protolink_sync import CallCancelledError, CancelToken
from protolink_sync.config import RetryPolicy, TransportConfig
from protolink_sync.transport import HTTPTransport
from tests.transport.matrix_cancel import cells, why_not
from tests.transport.matrix_peer import ASK, running_peer
from tests.transport.matrix_watch import lines_of


@pytest.mark.slow
@pytest.mark.parametrize("how", ["token", "signal"])
def test_a_cancel_ends_a_call_in_every_phase_and_leaves_a_sound_pool(how):
    """The program prints a line a cell; a missing line is a failure."""
    lines = lines_of("matrix_cancel", how)

    seen = {tuple(line.split()[:3]): line for line in lines}
    assert set(cells()) <= set(seen), "cells without a line"
    for cell in cells():
        expected = "healthy" if why_not(cell) is None else f"cannot exist: {why_not(cell)}"
        assert seen[cell].endswith(expected), seen[cell]


def test_most_cells_exist():
    """What is said not to exist is no way to get rid of a cell."""
    possible = [cell for cell in cells() if why_not(cell) is None]

    assert len(possible) == 8 + 4 + 4 + 2 + 1 + 8 + 8 + 8 + 8


class _Listener(logging.Handler):
    """Act when something is logged."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self._act = act

    def emit(self, record: logging.LogRecord) -> None:
        self._act()


def test_a_cancel_between_two_attempts_is_not_taken_for_the_end_of_the_first(tmp_path):
    """The first attempt has ended the call for itself, and is about to be forgiven."""
    token = CancelToken()
    listener = _Listener(token.cancel)  # the retry is announced at this very moment
    policy = RetryPolicy(max_attempts=2, initial_backoff=0.0, attempt_timeout=0.1)
    log = logging.getLogger("protolink_sync.transport.retry")
    level = log.level
    log.addHandler(listener)
    log.setLevel(logging.INFO)

    try:
        with (
            running_peer(tmp_path) as peer,
            HTTPTransport(trust_env=False, config=TransportConfig(retry=policy)) as transport,
            pytest.raises(CallCancelledError),
        ):
            transport.send(ASK, peer.url("http", "silent"), {}, cancel=token)
    finally:
        log.removeHandler(listener)
        log.setLevel(level)
