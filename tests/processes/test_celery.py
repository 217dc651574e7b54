"""A client of a Celery worker, used in its main process before it forks its pool."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.processes.calls import LIMIT, ROOT, wait_until
from tests.processes.packages import needs, posix

pytestmark = [pytest.mark.slow, posix, needs("celery")]

TASKS = 40
TASKS_OF_A_CHILD = 12


def celery(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "celery", "-A", "tests.processes.tasks", *arguments]


def test_every_answer_goes_to_the_task_that_asked(counted_peer, tmp_path):
    """Children that were forked later, in place of others, too."""
    peer, proxy = counted_peer("http")
    for name in ("queue", "results", "control"):
        (tmp_path / name).mkdir()
    environment = {**peer.environment(), "CELERY_FOLDER": str(tmp_path)}
    options = ["--loglevel=WARNING", "--without-gossip", "--without-mingle"]
    pool = ["-P", "prefork", "-c", "2", f"--max-tasks-per-child={TASKS_OF_A_CHILD}"]
    log = tmp_path / "worker.log"
    with log.open("w") as file:
        worker = subprocess.Popen(
            celery("worker", *pool, *options),
            cwd=ROOT,
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        sent = subprocess.run(
            [sys.executable, "-m", "tests.processes.tasks", str(TASKS)],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        assert sent.returncode == 0, sent.stderr + log.read_text()
        wrong, processes = map(int, sent.stdout.split())

        assert wrong == 0
        assert processes > 2
        # One of each child, and that of the main process.
        assert proxy.total == 1 + processes
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(15) == 0, log.read_text()
        assert wait_until(lambda: proxy.open == 0)
    finally:
        worker.kill()
        worker.wait(10)
