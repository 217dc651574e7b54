"""Find, or make once, the environment of a true 0.3 peer: a2a-sdk 0.3.26 cannot live beside 1.x."""

from __future__ import annotations

import functools
import os
import pathlib
import shutil

from tests.peers import PeerEnvironmentError
from tests.peers.environment import _base_python, _only_one_process, _run

OLD_SDK = ("a2a-sdk[http-server]==0.3.26", "uvicorn>=0.30")
OVERRIDE = "PROTOLINK_SYNC_OLD_A2A_PYTHON"

# Beside the folder of the other peers, which is made anew as a whole.
_HOME = pathlib.Path(__file__).resolve().parents[3] / ".peers-a2a-0.3"
_MARKER = _HOME / "complete.txt"


@functools.cache
def _found() -> str | PeerEnvironmentError:
    try:
        return os.environ.get(OVERRIDE) or _made()
    except PeerEnvironmentError as error:
        return error


def old_sdk_python() -> str:
    """Return the Python that runs a2a-sdk 0.3.26; make its environment when there is none yet.

    Raises:
        PeerEnvironmentError: The environment is not there and could not be made.
    """
    found = _found()
    if isinstance(found, PeerEnvironmentError):
        raise found
    return found


def _made() -> str:
    python = _HOME / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    wanted = "\n".join(OLD_SDK)
    with _only_one_process():
        if not (python.exists() and _MARKER.exists() and _MARKER.read_text() == wanted):
            shutil.rmtree(_HOME, ignore_errors=True)
            _run([_base_python(), "-m", "venv", str(_HOME)])
            _run([str(python), "-m", "pip", "install", "--quiet", *OLD_SDK])
            _MARKER.write_text(wanted)
    return str(python)
