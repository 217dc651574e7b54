"""Start scripted agents and clients that end with their test; the environment says nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from protolink_sync.a2a import A2AClient
from tests.a2a.peers import A2AProcess, old_sdk_agent, sdk_agent
from tests.a2a.peers.environment import old_sdk_python
from tests.a2a.scripted import ScriptedAgent
from tests.peers import PeerEnvironmentError

_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxy_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this machine's environment says of proxies is no part of a test."""
    for name in _PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def ending() -> Iterator[contextlib.ExitStack]:
    """What ends with the test."""
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def agent_of(ending: contextlib.ExitStack) -> Callable[..., ScriptedAgent]:
    """Start a scripted agent: ``agent_of(answer, ..., card=...)``."""
    return lambda *answers, **words: ending.enter_context(ScriptedAgent(*answers, **words))


@pytest.fixture
def client_of(ending: contextlib.ExitStack) -> Callable[..., A2AClient]:
    """Make a client: ``client_of(agent or url, **settings)``."""

    def make(target: ScriptedAgent | str, **settings: Any) -> A2AClient:
        base = target if isinstance(target, str) else target.base
        return ending.enter_context(A2AClient(base, **settings))

    return make


@pytest.fixture
def meet(agent_of: Any, client_of: Any) -> Callable[..., tuple[ScriptedAgent, A2AClient]]:
    """Start an agent and a client that calls it: ``meet(answer, card=..., client={...})``."""

    def start(
        *answers: Any, client: dict[str, Any] | None = None, **words: Any
    ) -> tuple[ScriptedAgent, A2AClient]:
        agent = agent_of(*answers, **words)
        return agent, client_of(agent, **(client or {}))

    return start


# ---- real agents -------------------------------------------------------------------------------


def pytest_collection_finish(session: pytest.Session) -> None:
    """Make the old agent's environment before the first test: its minutes are no test's own."""
    needed = any("old_sdk_peer" in getattr(item, "fixturenames", ()) for item in session.items)
    if needed and not session.config.option.collectonly:
        with contextlib.suppress(PeerEnvironmentError):  # each test that needs it raises it
            old_sdk_python()


@pytest.fixture(scope="session")
def sdk_peer() -> Iterator[A2AProcess]:
    """a2a-sdk 1.3.0: 1.0, and 0.3 by its compatibility layer."""
    with sdk_agent() as agent:
        yield agent


@pytest.fixture(scope="session")
def old_sdk_peer() -> Iterator[A2AProcess]:
    """a2a-sdk 0.3.26."""
    with old_sdk_agent() as agent:
        yield agent
