"""The asynchronous snippets of the Client document, as printed but for the import.

``from protolink.client import AgentClient`` becomes ``from protolink_sync.aio import
AsyncAgentClient as AgentClient``; the agent's address is put in.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from typing import Any

import pytest

from protolink_sync import models
from protolink_sync.aio import AsyncAgentClient
from protolink_sync.client import AgentClient
from protolink_sync.errors import TransportRemoteError
from protolink_sync.models import HistoryCompactionResult, Message, Task
from tests.client.test_snippets import SNIPPETS


def shimmed(text: str) -> str:
    """Have a snippet import the shim."""
    shim = "from protolink.aio import AsyncAgentClient as AgentClient"
    return text.replace("from protolink.client import AgentClient", shim)


async def run(name: str, url: str = "", **given: Any) -> dict[str, Any]:
    """Run a snippet with the names that the text before it has defined; return its names."""
    source = re.sub(r"\bfrom protolink\b", "from protolink_sync", shimmed(SNIPPETS[name]))
    source = source.replace("http://localhost:8010", url)
    names = {**vars(models), **given}
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(source, f"{name}.txt", "exec", flags, dont_inherit=True)
    waiting = eval(code, names)
    if inspect.isawaitable(waiting):
        await waiting
    return names


def awaited(name: str, *args: Any, **given: Any) -> dict[str, Any]:
    """Run a snippet in a loop of its own, and close the client that it made."""

    async def main() -> dict[str, Any]:
        names = await run(name, *args, **given)
        if isinstance(names.get("client"), AsyncAgentClient):
            await names["client"].close()
        return names

    return asyncio.run(main())


@pytest.fixture
def client():
    with AgentClient(transport="http", url="http://localhost:8000") as client:
        yield client.aio


def test_every_snippet_with_an_await_is_run():
    source = inspect.getsource(inspect.getmodule(test_every_snippet_with_an_await_is_run))
    asynchronous = [name for name, text in SNIPPETS.items() if re.search(r"\b(await|async) ", text)]

    assert [name for name in asynchronous if f'"{name}"' not in source] == []
    assert len(asynchronous) >= 11


@pytest.mark.parametrize("name", ["client_02_quick_start", "client_16_sync"])
def test_quick_starts(name, agent_peer, capsys):
    awaited(name, agent_peer.url)

    assert capsys.readouterr().out == "the mock model says hi\n"


def test_send_task(client, agent_peer, capsys):
    awaited("client_05_send_task", agent_peer.url, client=client)

    assert capsys.readouterr().out == "the mock model says hi\n"


@pytest.mark.parametrize("name", ["client_06_send_infer_task", "client_08_send_infer_task_schema"])
def test_send_infer_task(name, client, agent_peer):
    names = awaited(name, agent_peer.url, client=client)

    assert names["result"].get_output() == "the mock model says hi"


def test_a2a(shared_peer):
    peer_url = shared_peer("http", "--a2a").url
    task = Task.create_infer(prompt="hello")

    names = awaited("client_07_a2a", peer_url=peer_url, task=task, AgentClient=AsyncAgentClient)

    outcomes = [names[name].state.value for name in ("automatic", "a2a_only", "native_only")]
    assert outcomes == ["completed"] * 3


def test_streaming(shared_peer, capsys):
    awaited("client_09_streaming", shared_peer("sse").url)

    out = capsys.readouterr().out
    assert out.endswith("\nstream complete\n")
    assert "the mock model says hi" in out


class Accepted:
    """The snippet's "application-specific acceptance": the agent knows the task by now.

    Asked by executing the task once more under no key, which the agent refuses while it runs.
    """

    def __init__(self, names: dict[str, Any], client: AgentClient, url: str) -> None:
        self._names, self._client, self._url = names, client, url

    async def wait(self) -> None:
        probe = models.ClientRequestSpec("probe", "/tasks/", "POST")
        for _ in range(500):
            task = Task(self._names["task"].id, messages=[Message.user("echo probe")])
            await asyncio.sleep(0.02)
            try:
                self._client.transport.send(probe, self._url, task)
            except TransportRemoteError:
                return
        raise AssertionError("the task was never accepted")


def test_cancel(client, agent_peer, monkeypatch):
    """The model of our agent answers at once, so the long work is a text that waits."""
    long_work = 'Task.create_infer(prompt="Perform long-running work")'
    source = SNIPPETS["client_10_cancel"]
    assert source.count(long_work) == 1
    monkeypatch.setitem(
        SNIPPETS, "client_10_cancel", source.replace(long_work, 'Task.create("wait 30")')
    )
    names: dict[str, Any] = {"client": client, "agent_url": agent_peer.url}

    async def main() -> dict[str, Any]:
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        names.update(vars(models))
        text = SNIPPETS["client_10_cancel"]
        await eval(compile(text, "client_10_cancel", "exec", flags, dont_inherit=True), names)
        return names

    with AgentClient("http") as other:
        names["task_started"] = Accepted(names, other, agent_peer.url)
        asyncio.run(main())

    assert names["result"].metadata["cancel_reason"] == "Stopped by the user"


def test_compact_history(client, agent_peer):
    remember(client, agent_peer.url)

    names = awaited("client_11_compact_history", client=client, agent_url=agent_peer.url)

    assert isinstance(names["report"], HistoryCompactionResult)


def test_state(client, agent_peer):
    remember(client, agent_peer.url)

    names = awaited("client_12_state", client=client, agent_url=agent_peer.url)

    operations = [names[name].operation for name in ("state", "reset", "compacted")]
    assert operations == ["describe", "reset", "compact"]


def remember(client: AsyncAgentClient, url: str) -> None:
    client.sync.send_task(url, Task.create_infer(prompt="remember me", session_id="customer-42"))


def test_send_message(client, agent_peer, capsys, monkeypatch):
    source = SNIPPETS["client_13_send_message"]
    asked = source.replace("Hello, agent!", "echo Hello, agent!")
    monkeypatch.setitem(SNIPPETS, "client_13_send_message", asked)

    awaited("client_13_send_message", agent_peer.url, client=client)

    assert capsys.readouterr().out == "Hello, agent!\n"


def test_card(client, agent_peer, capsys):
    awaited("client_14_card", agent_peer.url, client=client)

    assert capsys.readouterr().out.startswith("Agent: http_agent\n")


def test_a2a_card(shared_peer):
    url = shared_peer("http", "--a2a").url

    client = AsyncAgentClient("http", a2a=True)

    names = awaited("client_15_a2a_card", url, client=client)

    assert names["card"]["name"] == "http_agent"
