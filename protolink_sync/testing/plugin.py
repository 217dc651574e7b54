"""Fixtures for pytest, which finds them by itself once the library is installed."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

__all__ = ["fake_agent", "recorded"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that makes recordings anew."""
    parser.getgroup("protolink_sync").addoption(
        "--protolink-record",
        action="store_true",
        help="call real agents and write what the fixture `recorded` plays otherwise",
    )


@pytest.fixture
def fake_agent() -> Iterator[Callable[..., Any]]:
    """Make agents that say what the test needs: ``fake_agent("Faust")``; see ``FakeAgent``."""
    from protolink_sync.testing import FakeAgent

    with contextlib.ExitStack() as agents:
        yield lambda *answers, **settings: agents.enter_context(FakeAgent(*answers, **settings))


@pytest.fixture
def recorded(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Play a test's exchanges with real agents: ``recorded(HTTPTransport)`` is a transport.

    The argument makes the real transport; it is called with ``--protolink-record`` only, which
    writes ``recordings/<test>.json`` beside the test file. ``mask=`` names secrets. A transport
    that is there already is played to, and returned: ``recorded(a2a_client.transport)``.
    """
    from protolink_sync.testing import Recorder, ReplayTransport

    name = request.node.name.translate(str.maketrans("[]/ ", "____"))
    path = pathlib.Path(request.path).parent / "recordings" / f"{name}.json"

    with contextlib.ExitStack() as opened:

        def transport(made: Any, *, mask: tuple[str, ...] = ()) -> Any:
            if not request.config.getoption("--protolink-record"):
                replay = opened.enter_context(ReplayTransport(path))
                return replay if callable(made) else replay.stand_in_for(made)
            real = opened.enter_context(made()) if callable(made) else made
            return opened.enter_context(Recorder(path, mask=mask)).watch(real)

        yield transport
