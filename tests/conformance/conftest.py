"""Run each test of this folder on every side."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from protolink_sync.client import AgentClient
from tests.conformance.sides import SIDES, Side, Stage


@pytest.fixture(params=SIDES, ids=str)
def side(request: pytest.FixtureRequest) -> Side:
    """The side the test runs on."""
    chosen: Side = request.param
    return chosen


@pytest.fixture
def stage(side: Side, shared_peer: Any) -> Iterator[Stage]:
    """What the test starts on its side."""
    with contextlib.ExitStack() as ending:
        yield Stage(side, shared_peer, ending)


@pytest.fixture
def client(stage: Stage) -> AgentClient:
    """A client with default settings."""
    return stage.client()
