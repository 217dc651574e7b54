"""The example notebook runs, and its cells show what a reader should see."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from tests.processes.packages import needs, posix

ROOT = pathlib.Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "agents.ipynb"

pytestmark = [pytest.mark.slow, posix, needs("nbclient")]


@pytest.fixture(scope="module")
def cells():
    """The code cells as they are after they were executed, by their source."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.notebook.execute", str(NOTEBOOK)],
        capture_output=True,
        text=True,
        timeout=110,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    notebook = json.loads(done.stdout)
    return {
        "".join(cell["source"]): cell["outputs"]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    }


def shown(cells, source):
    (outputs,) = [outputs for code, outputs in cells.items() if source in code]
    assert len(outputs) == 1, outputs
    return {form: "".join(text) for form, text in outputs[0]["data"].items()}


def test_a_card_a_task_and_reports_show_themselves(cells):
    card = shown(cells, "get_agent_card")
    assert "plans &lt;b&gt;journeys&lt;/b&gt;" in card["text/html"]
    assert "plans <b>journeys</b>" in card["text/plain"]
    assert "distance" in card["text/html"]
    task = shown(cells, "send_infer_task")
    assert "To Santorini: take the night train." in task["text/html"]
    assert "Task: completed" in task["text/plain"]
    assert "<table>" in shown(cells, "describe_state")["text/html"]
    assert "latency" in shown(cells, "client.check")["text/html"]


def test_a_stream_is_updated_in_one_place(cells):
    stream = shown(cells, "stream.show()")

    assert "To Athens: take the night train." in stream["text/html"]
    assert "Stream: completed" in stream["text/plain"]
    assert "progress: 99 %" in stream["text/plain"]
    assert 'max="1" value="0.990">' in stream["text/html"]
    assert shown(cells, "stream.task.text")["text/plain"] == "'To Athens: take the night train.'"


def test_the_results_of_many_tasks_tell_how_many_have_come(cells):
    (source,) = [code for code in cells if code == "results"]

    plain = "".join(cells[source][0]["data"]["text/plain"])
    assert "come: 4" in plain
    assert "of: 4" in plain


def test_many_tasks_have_a_bar_in_their_cell(cells):
    bar = shown(cells, "progress=True")

    assert '<progress style="width: 20em" max="1" value="1.000">' in bar["text/html"]
    assert "done: 4 of 4" in bar["text/plain"]
