"""Find, or make once, the environment in which the real peers run.

The peers are other people's programs with other people's dependencies: they run in an environment
of their own, so that nothing they need can be mistaken for something we install.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator

PINNED = ("protolink[http,grpc]==0.8.3", "a2a-sdk[all]==1.3.0")
OVERRIDE = "PROTOLINK_SYNC_PEER_PYTHON"

_CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
_HOME = _CHECKOUT / ".peers"
_LOCK = _CHECKOUT / ".peers.lock"
_MARKER = _HOME / "complete.txt"
_OLDEST_PYTHON = (3, 11)  # protolink 0.8.3 does not import on 3.10
_INSTALL_LIMIT = 900  # seconds; a slow network is no reason to hang for ever
_VERSIONS = "from importlib.metadata import version as v; print(v('protolink'), v('a2a-sdk'))"


class PeerEnvironmentError(RuntimeError):
    """The peers' environment could not be made, so no test that needs a peer can tell anything."""


@functools.cache
def _found() -> str | PeerEnvironmentError:
    try:
        chosen = os.environ.get(OVERRIDE)
        return _checked(chosen) if chosen else _made()
    except PeerEnvironmentError as error:
        return error


def peer_python() -> str:
    """Return the Python that runs the peers; make its environment when there is none yet.

    The outcome is remembered, a failure too: the second test that needs a peer fails at once with
    the same words instead of trying for minutes again.

    Raises:
        PeerEnvironmentError: The environment is not there and could not be made.
    """
    found = _found()
    if isinstance(found, PeerEnvironmentError):
        raise found
    return found


def _checked(python: str) -> str:
    """Return the Python that the user named, if it has the pinned versions."""
    try:
        run = subprocess.run([python, "-c", _VERSIONS], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerEnvironmentError(f"{OVERRIDE}={python} cannot be run: {error}") from error
    wanted = " ".join(pin.partition("==")[2] for pin in PINNED)
    if run.stdout.strip() != wanted:
        seen = run.stdout.strip() or run.stderr.strip().splitlines()[-1:] or "nothing"
        raise PeerEnvironmentError(f"{OVERRIDE}={python} must have {PINNED}, it has: {seen}")
    return python


def _made() -> str:
    """Return the Python of ``.peers``, made anew unless its marker tells that it is complete."""
    python = _HOME / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    with _only_one_process():
        if _is_complete(python):
            return str(python)
        shutil.rmtree(_HOME, ignore_errors=True)
        _run([_base_python(), "-m", "venv", str(_HOME)])
        _run([str(python), "-m", "pip", "install", "--quiet", *PINNED])
        _MARKER.write_text("\n".join(PINNED))
        return str(python)


def _is_complete(python: pathlib.Path) -> bool:
    # exists() follows the link: an environment whose base interpreter is gone is no environment.
    return python.exists() and _MARKER.exists() and _MARKER.read_text() == "\n".join(PINNED)


@contextlib.contextmanager
def _only_one_process() -> Iterator[None]:
    """Hold a file lock: two test runs in one checkout must not install over each other."""
    import fcntl  # not on Windows, where no peer is started

    with _LOCK.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _base_python() -> str:
    if sys.version_info >= _OLDEST_PYTHON:
        return sys.executable
    for minor in range(_OLDEST_PYTHON[1], _OLDEST_PYTHON[1] + 4):
        python = shutil.which(f"python3.{minor}")
        if python and subprocess.run([python, "--version"], capture_output=True).returncode == 0:
            return python
    raise PeerEnvironmentError(
        f"the peers need Python {_OLDEST_PYTHON[0]}.{_OLDEST_PYTHON[1]} or newer and none is on "
        f"PATH; name one that has {PINNED} in {OVERRIDE}"
    )


def _run(command: list[str]) -> None:
    try:
        run = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_INSTALL_LIMIT,
        )
    except subprocess.TimeoutExpired as error:
        raise PeerEnvironmentError(f"{' '.join(command)}: no end in {_INSTALL_LIMIT} s") from error
    if run.returncode:
        raise PeerEnvironmentError(
            f"the peers' environment {_HOME} could not be made; {' '.join(command)} ended with "
            f"{run.returncode}:\n{run.stdout[-2000:]}"
        )
