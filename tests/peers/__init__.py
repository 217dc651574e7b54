"""Real peers for tests: protolink agents as processes, a TCP proxy before them, and their ports."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import os
import pathlib
import re
import select
import subprocess
import tempfile
import time
import weakref
from types import TracebackType

from tests.peers.environment import PINNED, PeerEnvironmentError, peer_python
from tests.peers.ports import held_port
from tests.peers.proxy import CountingProxy

__all__ = [
    "PINNED",
    "AgentProcess",
    "CountingProxy",
    "PeerEnvironmentError",
    "bearer_jwt",
    "held_port",
    "peer_descriptors",
    "peer_python",
]

_PROGRAM = pathlib.Path(__file__).with_name("agent.py")
_START_LIMIT = 60.0
_STOP_LIMIT = 10.0
_READY = re.compile(rb"^READY (\S+)\n", re.MULTILINE)
_running: weakref.WeakSet[AgentProcess] = weakref.WeakSet()


class AgentProcess:
    """A running agent of ``agent.py``; :attr:`url` is where it answers.

    Args:
        kind: ``http``, ``sse``, ``websocket``, ``grpc`` or ``registry``.
        options: Options of ``agent.py``, such as ``"--api-key", "k1"``.
    """

    def __init__(self, kind: str, *options: str) -> None:
        python = peer_python()
        self._name = " ".join(["peer", kind, *options])
        stderr, self._errors = tempfile.mkstemp(prefix="peer-", suffix=".err")
        # -P: the directory of agent.py must not become importable for the peer.
        self._process = subprocess.Popen(
            [python, "-P", str(_PROGRAM), kind, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
        os.close(stderr)
        _running.add(self)
        try:
            self.url = self._ready_url()
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        """The process id of the peer."""
        return self._process.pid

    @property
    def descriptor(self) -> int:
        """The one descriptor that we hold of a running peer: the pipe that keeps it alive."""
        assert self._process.stdin is not None
        return -1 if self._process.stdin.closed else self._process.stdin.fileno()

    def errors(self) -> str:
        """Return the end of what the peer wrote to its standard error."""
        with contextlib.suppress(OSError):
            return pathlib.Path(self._errors).read_text(errors="replace")[-2000:]
        return ""

    def stop(self) -> None:
        """End the peer by closing its standard input, as its parent's death would."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_STOP_LIMIT)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self._name} did not stop in {_STOP_LIMIT} s") from None
        self.kill()

    def kill(self) -> None:
        """End the peer at once, and give back what we hold of it; may be called twice."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.kill()
        self._process.wait()
        pathlib.Path(self._errors).unlink(missing_ok=True)

    def __enter__(self) -> AgentProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _ready_url(self) -> str:
        """Wait for the line ``READY <url>``; the peer writes nothing after it."""
        stdout = self._process.stdout
        assert stdout is not None
        end = time.monotonic() + _START_LIMIT
        text = b""
        while (ready := _READY.search(text)) is None:
            left = end - time.monotonic()
            if left <= 0 or not select.select([stdout], [], [], left)[0]:
                raise AssertionError(
                    f"{self._name} was not ready in {_START_LIMIT} s:\n{self.errors()}"
                )
            chunk = os.read(stdout.fileno(), 4096)
            if not chunk:
                self._process.wait(_STOP_LIMIT)
                raise AssertionError(f"{self._name} ended before it was ready:\n{self.errors()}")
            text += chunk
        stdout.close()
        return ready[1].decode()


def peer_descriptors() -> set[int]:
    """Return the descriptors held for running peers: those of a shared peer outlive a test."""
    return {peer.descriptor for peer in list(_running)}


def bearer_jwt(secret: str, **claims: object) -> str:
    """Return a token that a peer started with ``--bearer SECRET`` accepts."""

    def segment(data: bytes) -> bytes:
        return base64.urlsafe_b64encode(data).rstrip(b"=")

    head = segment(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
    body = segment(json.dumps({"sub": "tester", **claims}).encode())
    signature = hmac.new(secret.encode(), head + b"." + body, hashlib.sha256).digest()
    return b".".join([head, body, segment(signature)]).decode()
