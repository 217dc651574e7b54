"""A Celery application whose tasks call a peer; ``python -m tests.processes.tasks N`` sends some.

The broker and the results are folders: nothing else has to run.
"""

from __future__ import annotations

import os
import pathlib
import sys
from typing import Any

from celery import Celery, signals

from tests.processes.calls import LIMIT, Peer, wrong_answers

_FOLDER = pathlib.Path(os.environ["CELERY_FOLDER"])
_CALLS = 10

client = Peer.from_environment().client()
app = Celery("tests.processes.tasks", broker="filesystem://", backend=f"file://{_FOLDER}/results")
app.conf.update(
    broker_transport_options={
        "data_folder_in": f"{_FOLDER}/queue",
        "data_folder_out": f"{_FOLDER}/queue",
        "control_folder": f"{_FOLDER}/control",
        "polling_interval": 0.02,
    },
    worker_prefetch_multiplier=1,
)


@signals.worker_init.connect
def _used_before_the_fork(**_: Any) -> None:
    assert wrong_answers(client, "before", 1) == 0


@app.task(name="ask")
def ask(number: int) -> tuple[int, int]:
    """Ask some questions; return who did, and how many answers were wrong."""
    return os.getpid(), wrong_answers(client, f"{os.getpid()}-{number}", _CALLS)


def main(count: int) -> None:
    """Send tasks, and print how many answers were wrong and how many processes gave them."""
    sent = [ask.delay(number) for number in range(count)]
    done = [result.get(timeout=LIMIT, interval=0.02) for result in sent]
    print(sum(wrong for _, wrong in done), len({pid for pid, _ in done}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
