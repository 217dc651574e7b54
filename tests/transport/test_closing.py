"""close() waits for the workers of streams, and no longer."""

from __future__ import annotations

import threading
import time
from typing import ClassVar

import pytest

from protolink_sync.config import TransportConfig
from protolink_sync.errors import ClientClosedError
from protolink_sync.models import Task
from protolink_sync.transport import Transport, TransportCapabilities
from tests.transport.scenes import LIMIT, Calling


class HeldStream:
    """Bring nothing until it is cut; then hold its worker until it is let go."""

    def __init__(self, ended) -> None:
        self.ended = ended
        self.cut_off = threading.Event()
        self.closing = threading.Event()
        self.let_go = threading.Event()

    def receive(self):
        assert self.cut_off.wait(LIMIT)
        raise self.ended()

    def close(self, finished):
        self.closing.set()
        assert self.let_go.wait(LIMIT)

    def cut(self):
        self.cut_off.set()

    def take_back(self):
        pass


class Holding(Transport):
    transport_type: ClassVar[str] = "holding"
    schemes: ClassVar[tuple[str, ...]] = ("holding",)
    capabilities: ClassVar[TransportCapabilities] = TransportCapabilities(streaming=True)

    def __init__(self, shutdown_timeout: float = LIMIT) -> None:
        super().__init__(
            "holding://peer", config=TransportConfig(shutdown_timeout=shutdown_timeout)
        )
        self.is_closed = threading.Event()

    def _open_stream(self, request, deadline):
        self.held = HeldStream(lambda: self._ended(deadline, request.context))
        assert deadline.lend(self.held)
        return self.held

    def _close(self):
        self.is_closed.set()


def test_close_waits_until_the_worker_of_a_stream_has_gone():
    client = Holding()
    stream = client.subscribe("holding://peer", Task("t"))
    closing = Calling(client.close)
    assert client.held.closing.wait(LIMIT)

    assert not client.is_closed.is_set()
    before = time.monotonic()
    client.held.let_go.set()
    closing.result()

    # Told, not looked for: it would look again after half a second.
    assert time.monotonic() - before < 0.4
    assert client.is_closed.is_set()
    assert client.metrics.active_streams == 0
    with pytest.raises(ClientClosedError):
        next(stream)


def test_close_leaves_a_worker_that_does_not_end_behind():
    client = Holding(shutdown_timeout=0.05)
    stream = client.subscribe("holding://peer", Task("t"))

    before = time.monotonic()
    client.close()

    assert time.monotonic() - before < LIMIT / 2
    assert client.is_closed.is_set()
    client.held.let_go.set()
    stream.close()


def test_two_may_close_at_once():
    client = Holding()
    stream = client.subscribe("holding://peer", Task("t"))
    closings = [Calling(client.close) for _ in range(2)]
    assert client.held.closing.wait(LIMIT)

    client.held.let_go.set()
    for closing in closings:
        closing.result()

    stream.close()
