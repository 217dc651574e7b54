"""The counts of ``docs/topics/costs.rst`` hold. (Its kilobytes are a matter of the machine.)"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from benchmarks.costs import TRANSPORTS
from tests.peers import AgentProcess

ROOT = pathlib.Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "topics" / "costs.rst").read_text("utf-8")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.peer,
    pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="it reads Linux's /proc"),
]


def rows():
    """Yield the table's rows: transport, what, threads, descriptors."""
    transport = None
    for line in PAGE.splitlines():
        found = re.match(
            r"(?:``(\w+)``|\\) +(client|connection|call at a time|stream) +(\d+) +(\d+)", line
        )
        if found:
            transport = found[1] or transport
            what = "connection" if found[2] == "call at a time" else found[2]
            yield transport, what, int(found[3]), int(found[4])


def measured(name, url):
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.costs", name, url],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=ROOT,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize("name", TRANSPORTS)
def test_threads_and_descriptors_are_those_of_the_page(name):
    if name == "runtime":
        costs = measured(name, "runtime://slow")
    else:
        with AgentProcess(name) as agent:
            costs = measured(name, agent.url)

    told = {what: (threads, files) for kind, what, threads, files in rows() if kind == name}
    # Of gRPC all share one descriptor, so a twentieth of it counts for none.
    found = {
        what: (round(cost["threads"]), round(cost["descriptors"]))
        for what, cost in costs.items()
        if what != "first call"
    }
    assert found == told
