"""A budget of one second ends a call within 1.1 s, whatever the peer does."""

from __future__ import annotations

import pytest

from protolink_sync import TransportTimeoutError
from protolink_sync.config import RetryPolicy, TransportConfig
from protolink_sync.transport import HTTPTransport
from tests.transport.matrix_budget import SCENES, THREADS, TIMES
from tests.transport.matrix_peer import ASK, running_peer
from tests.transport.matrix_watch import lines_of


@pytest.mark.slow
def test_a_budget_of_a_second_ends_within_a_tenth_more_also_beside_busy_processes():
    """Fifty times each; the bound is checked by the program, a missing line here."""
    lines = lines_of("matrix_budget")

    for title in ("alone", "busy"):
        for scene in SCENES:
            start = f"{title:6} {scene:17} {THREADS * TIMES:3} calls"
            assert [line.endswith("ok") for line in lines if line.startswith(start)] == [True], (
                start,
                lines,
            )


def test_the_pause_after_an_attempt_that_took_too_long_is_waited(tmp_path):
    """What ended the attempt, or would have ended it later, is nothing to the pause."""
    policy = RetryPolicy(
        max_attempts=2, initial_backoff=0.3, max_backoff=0.3, jitter=0.0, attempt_timeout=0.1
    )

    with (
        running_peer(tmp_path) as peer,
        HTTPTransport(trust_env=False, config=TransportConfig(retry=policy)) as transport,
    ):
        with pytest.raises(TransportTimeoutError) as caught:
            transport.send(ASK, peer.url("http", "silent"), {}, timeout=10)

        assert caught.value.attempt_count == 2
        assert caught.value.elapsed >= 0.1 + 0.3 + 0.1
        assert transport.metrics.retries == 1
