"""A notebook whose cells are interrupted: ``python -m tests.processes.notebook`` prints JSON.

The cells run in a kernel of their own. The interrupt is the one of the notebook's button; it
comes when a cell runs longer than its limit.
"""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any

from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from traitlets.config import Config

_SET_UP = """
import threading, time
from protolink_sync import Task
from protolink_sync.models import Message
from tests.processes.calls import Peer, ask, own_threads, wait_until
peer = Peer.from_environment()
client = peer.client()
print(ask(client, "echo first"))
"""

_BLOCKED = {
    "send": 'ask(client, "wait 30")',
    "next": 'list(client.send_task_streaming(peer.url, Task.create(Message.user("slow 2 30"))))',
}

_AFTER = """
wait_until(lambda: not own_threads())
print(own_threads(), client.transport.metrics.active_requests, ask(client, "echo again"))
"""

_LIMIT = 1  # seconds until a cell is interrupted


def _text(cell: dict[str, Any]) -> str:
    """Return what a cell has put out; a kernel may tell of one interrupt twice."""
    said = [one.get("text") or one.get("ename") or json.dumps(one) for one in cell["outputs"]]
    return "".join(dict.fromkeys(said)).strip()


def main() -> None:
    """Run the notebook and print what its cells said, and what ended those that blocked."""
    cells = [new_code_cell(_SET_UP)]
    for code in _BLOCKED.values():
        cells += [new_code_cell(code), new_code_cell(_AFTER)]
    notebook = new_notebook(cells=cells)
    blocked = set(_BLOCKED.values())
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(
            notebook,
            kernel_name="python3",
            # Not over TCP, of which a kernel warns.
            config=Config(KernelManager={"transport": "ipc", "ip": f"{folder}/kernel"}),
            allow_errors=True,
            interrupt_on_timeout=True,
            timeout_func=lambda cell: _LIMIT if cell["source"] in blocked else 30,
        ).execute()
    json.dump([_text(cell) for cell in notebook.cells], sys.stdout)
    print()


if __name__ == "__main__":
    main()
