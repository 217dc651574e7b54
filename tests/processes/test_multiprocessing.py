"""A client in the workers of ``multiprocessing``, inherited or pickled."""

from __future__ import annotations

import multiprocessing

import pytest

from tests.processes.calls import output_of

pytestmark = pytest.mark.slow

CALLS = 300


@pytest.mark.parametrize(
    ("method", "wire"),
    [
        ("fork", "https"),
        ("fork", "wss"),
        ("fork", "grpc"),
        ("spawn", "https"),
        ("spawn", "ws"),
        ("spawn", "grpcs"),
        ("forkserver", "http"),
    ],
)
def test_workers_of_a_pool_share_what_was_one_client(method, wire, counted_peer):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no start method {method!r}")
    peer, proxy = counted_peer(wire)

    wrong, workers = map(int, output_of("pools", peer, method, str(CALLS))[0].split())

    assert wrong == 0
    assert workers >= 2
    # One of each process.
    assert proxy.total == 1 + workers
