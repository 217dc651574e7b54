"""Execute a notebook in a kernel: ``python -m tests.notebook.execute PATH`` prints it, executed."""

from __future__ import annotations

import sys
import tempfile

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config


def main(path: str) -> None:
    """Run all cells and print the notebook with what they put out."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(
            notebook,
            kernel_name="python3",
            # Not over TCP, of which a kernel warns.
            config=Config(KernelManager={"transport": "ipc", "ip": f"{folder}/kernel"}),
            timeout=60,
        ).execute()
    print(nbformat.writes(notebook))


if __name__ == "__main__":
    main(sys.argv[1])
