"""A client in the workers of ``multiprocessing``: ``python -m tests.processes.pools METHOD CALLS``.

It prints how many answers were wrong, and how many workers gave them.
"""

from __future__ import annotations

import multiprocessing
import os
import sys

from protolink_sync import AgentClient
from tests.processes.calls import Peer, wrong_answers

_WORKERS = 3
_CALLS_IN_A_PIECE = 10

_client: AgentClient


def _begin(client: AgentClient) -> None:
    """Keep the client: a forked worker inherits it, any other gets it pickled."""
    global _client
    _client = client


def _work(number: int) -> tuple[int, int]:
    return os.getpid(), wrong_answers(_client, f"{os.getpid()}-{number}", _CALLS_IN_A_PIECE)


def main(method: str, calls: int) -> None:
    """Use a client, have a pool use it, and use it again."""
    client = Peer.from_environment().client()
    wrong = wrong_answers(client, "before", 1)
    context = multiprocessing.get_context(method)
    with context.Pool(_WORKERS, _begin, [client]) as pool:
        pieces = pool.imap_unordered(_work, range(calls // _CALLS_IN_A_PIECE))
        wrong += wrong_answers(client, "beside", calls // _WORKERS)
        done = list(pieces)
        pool.close()
        pool.join()
    wrong += wrong_answers(client, "after", 1)
    client.transport.close()
    workers = {pid for pid, _ in done}
    print(wrong + sum(amiss for _, amiss in done), len(workers))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
