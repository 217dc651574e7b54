"""The snippets of the two ProtoLink documents, run against a real agent.

``snippets/`` holds them as the documents print them. What the promise of design.md 1 names is
done to each: ``protolink`` becomes ``protolink_sync``, ``await`` and ``async`` are deleted, and in
the cancel snippet the asyncio task becomes a thread. Besides, the agent's address is put in.

Those of A2A run in ``test_a2a_snippets.py``; with their ``await`` kept they run in
``tests/aio``. The documents print no snippet of the registry.
"""

from __future__ import annotations

import pathlib
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from protolink_sync import models
from protolink_sync.client import AgentClient
from protolink_sync.errors import TransportRemoteError
from protolink_sync.models import Artifact, HistoryCompactionResult, Message, Task

SNIPPETS = {
    file.stem: file.read_text(encoding="utf-8")
    for file in sorted(pathlib.Path(__file__).with_name("snippets").glob("*.txt"))
}
# Those that another module runs.
ELSEWHERE = {
    "client_03_constructor": "test_a2a_snippets.py",
    "client_07_a2a": "test_a2a_snippets.py",
    "client_15_a2a_card": "test_a2a_snippets.py",
}


def replaced(text: str) -> str:
    """Do what design.md 1 says a user does."""
    text = re.sub(r"\bprotolink\b", "protolink_sync", text)
    return re.sub(r"\b(?:await|async) ", "", text)


def run(name: str, url: str = "", **given: Any) -> dict[str, Any]:
    """Run a snippet with the names that the text before it has defined; return its names."""
    source = replaced(SNIPPETS[name]).replace("http://localhost:8010", url)
    names = {**vars(models), **given}
    exec(compile(source, f"{name}.txt", "exec"), names)
    return names


@pytest.fixture
def client():
    with AgentClient(transport="http", url="http://localhost:8000") as client:
        yield client


def test_every_snippet_is_run():
    here = pathlib.Path(__file__)

    assert len(SNIPPETS) == 41
    missing = [
        name
        for name in SNIPPETS
        if f'"{name}"' not in here.with_name(ELSEWHERE.get(name, here.name)).read_text("utf-8")
        and name not in EXPECTED
    ]
    assert missing == []


# --- the client document ------------------------------------------------------------------------


def test_grpc(capsys):
    """Port 0 is what an agent serves at; a caller only names it."""
    names = run("client_01_grpc")

    assert "requests_started=0" in capsys.readouterr().out
    names["transport"].close()


@pytest.mark.parametrize("name", ["client_02_quick_start", "client_16_sync"])
def test_quick_starts(name, agent_peer, capsys):
    names = run(name, agent_peer.url)

    assert capsys.readouterr().out == "the mock model says hi\n"
    names["client"].close()


def test_constructor_without_a2a(tmp_path, monkeypatch, tls_files):
    """The block holds four clients; the two with ``a2a=True`` run elsewhere."""
    text = SNIPPETS["client_03_constructor"]
    simple = text[: text.index("# Add A2A")]
    advanced = text[text.index("# Advanced:") :]
    (tmp_path / "certs").mkdir()
    (tmp_path / "certs" / "ca.pem").write_bytes(pathlib.Path(tls_files.ca).read_bytes())
    monkeypatch.chdir(tmp_path)

    for part, timeout in ((simple, 120), (advanced, 300)):
        names: dict[str, Any] = {"AgentClient": AgentClient}
        exec(replaced(part), names)
        assert names["client"].transport.timeout == timeout
        names["client"].close()
    assert names["transport"].config.shutdown_timeout == 10
    names["transport"].close()


def test_inspection(client, capsys):
    run("client_04_inspection", client=client)

    assert capsys.readouterr().out == "0 0\nready True\n"


def test_send_task(client, agent_peer, capsys):
    source = SNIPPETS["client_05_send_task"]
    assert '"http://localhost:8010"' in source

    run("client_05_send_task", agent_peer.url, client=client)

    assert capsys.readouterr().out == "the mock model says hi\n"


def test_send_infer_task(client, agent_peer):
    names = run("client_06_send_infer_task", agent_peer.url, client=client)

    assert names["result"].get_output() == "the mock model says hi"


def test_send_infer_task_with_a_schema(client, agent_peer):
    names = run("client_08_send_infer_task_schema", agent_peer.url, client=client)

    assert isinstance(names["result"], Task)


def test_streaming(shared_peer, capsys):
    names = run("client_09_streaming", shared_peer("sse").url)

    out = capsys.readouterr().out
    assert out.endswith("\nstream complete\n")
    assert "the mock model says hi" in out
    names["client"].close()


def test_streaming_through_the_facade(shared_peer, capsys):
    from protolink_sync.models import Task as documented

    run(
        "client_17_sync_streaming", shared_peer("sse").url, AgentClient=AgentClient, Task=documented
    )

    assert "'final': True" in capsys.readouterr().out


def test_cancel(client, agent_peer):
    """``asyncio.create_task`` becomes a thread that is submitted, ``await running`` its result."""
    source = replaced(SNIPPETS["client_10_cancel"])
    for old, new in (
        ("import asyncio", ""),
        ("asyncio.create_task(client.send_task(agent_url, task))", THREAD),
        ("result = running", "result = running.result(30)"),
        ('Task.create_infer(prompt="Perform long-running work")', LONG_WORK),
    ):
        assert source.count(old) == 1, old
        source = source.replace(old, new)

    with ThreadPoolExecutor(1) as pool:
        names: dict[str, Any] = {
            **vars(models),
            "client": client,
            "agent_url": agent_peer.url,
            "pool": pool,
        }
        with AgentClient("http") as other:
            names["task_started"] = Accepted(lambda: names["task"], other, agent_peer.url)
            exec(source, names)

    assert names["result"].metadata["cancel_reason"] == "Stopped by the user"


THREAD = "pool.submit(client.send_task, agent_url, task)"
LONG_WORK = 'Task.create(Message.user("wait 30"))'


class Accepted:
    """The snippet's "application-specific acceptance": the agent knows the task by now.

    Asked by executing the task once more under no key, which the agent refuses while it runs.
    """

    def __init__(self, task: Callable[[], Task], client: AgentClient, url: str) -> None:
        self._task, self._client, self._url = task, client, url

    def wait(self) -> None:
        probe = models.ClientRequestSpec("probe", "/tasks/", "POST")
        task = Task(self._task().id, messages=[Message.user("echo probe")])
        for _ in range(500):
            try:
                self._client.transport.send(probe, self._url, task)
            except TransportRemoteError:
                return
            threading.Event().wait(0.02)
        raise AssertionError("the task was never accepted")


def test_compact_history(client, agent_peer):
    remember(client, agent_peer.url)

    names = run("client_11_compact_history", client=client, agent_url=agent_peer.url)

    assert isinstance(names["report"], HistoryCompactionResult)
    assert names["report"].strategy == "tokens"


def test_state(client, agent_peer):
    remember(client, agent_peer.url)

    names = run("client_12_state", client=client, agent_url=agent_peer.url)

    assert [names[n].operation for n in ("state", "reset", "compacted")] == [
        "describe",
        "reset",
        "compact",
    ]
    assert names["state"].session_id == "customer-42"


def remember(client: AgentClient, url: str) -> None:
    client.send_task(url, Task.create_infer(prompt="remember me", session_id="customer-42"))


def test_send_message(client, agent_peer, capsys):
    """The peer's plain text tasks are inert, so the greeting asks our test agent for an echo."""
    source = SNIPPETS["client_13_send_message"]
    assert "Hello, agent!" in source

    names = {"client": client}
    text = replaced(source).replace("http://localhost:8010", agent_peer.url)
    exec(text.replace("Hello, agent!", "echo Hello, agent!"), names)

    assert capsys.readouterr().out == "Hello, agent!\n"


def test_card(client, agent_peer, capsys):
    run("client_14_card", agent_peer.url, client=client)

    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "Agent: http_agent"
    assert second == "Description: does what the text of a task says"
    assert third.startswith("Skills: ['add'")


# --- the models document ------------------------------------------------------------------------


def started() -> Task:
    return Task.create(Message.user("What's the weather?")).begin()


# snippet -> the names the text before it has defined, and what it prints (its comments say so).
EXPECTED: dict[str, tuple[Callable[[], dict[str, Any]], list[str]]] = {
    "models_01_card": (dict, ["weather_agent"]),
    "models_02_card_from_dict": (dict, []),
    "models_03_card_example": (dict, []),
    "models_04_skill": (dict, []),
    "models_05_add_message": (dict, []),
    "models_06_add_artifact": (lambda: {"task": Task()}, []),
    "models_07_update_state": (lambda: {"task": Task()}, []),
    "models_09_complete": (lambda: {"task": started()}, ["TaskState.COMPLETED", "completed"]),
    "models_10_fail": (
        lambda: {"task": started()},
        ["TaskState.FAILED", "Weather API unavailable"],
    ),
    "models_11_to_dict": (lambda: {"task": Task("t-1")}, ["t-1", "submitted"]),
    "models_12_from_dict": (dict, ["TaskState.WORKING"]),
    "models_13_create": (dict, ["1", "TaskState.SUBMITTED"]),
    "models_14_create_infer": (dict, []),
    "models_15_task_example": (dict, []),
    "models_16_add_text": (dict, ["1", "Hello, world!"]),
    "models_17_add_part": (dict, []),
    "models_18_message_to_dict": (dict, ["user", "Hello"]),
    "models_19_message_from_dict": (dict, []),
    "models_20_user": (dict, ["user", "What's the weather?"]),
    "models_21_agent": (dict, ["agent", "It's sunny and 75°F."]),
    "models_22_message_example": (lambda: {"image_data": {"url": "https://x.test/i.png"}}, []),
    "models_23_part": (dict, []),
    "models_24_artifact": (lambda: {"chart_image_data": {"url": "https://x.test/c.png"}}, []),
}


def test_the_snippets_of_the_models(client, agent_peer, capsys):
    """Each prints what its comments say, and an agent gives back what each has made."""
    for name, (given, printed) in EXPECTED.items():
        names = run(name, **given())

        assert capsys.readouterr().out.splitlines() == printed, name
        for made in names.values():
            if isinstance(made, Task) and "task" in name:
                assert comes_back(client, agent_peer.url, made) == made.to_dict()
            elif isinstance(made, Message):
                task = Task("t-1", messages=[made])
                assert comes_back(client, agent_peer.url, task)["messages"] == [made.to_dict()]
            elif isinstance(made, Artifact):
                task = Task("t-1", artifacts=[made])
                assert comes_back(client, agent_peer.url, task)["artifacts"] == [made.to_dict()]


def comes_back(client: AgentClient, url: str, task: Task) -> dict[str, Any]:
    """Return a task as the agent read it; a task that is at its end already comes back so."""
    if task.is_terminal:
        back = client.send_task(url, task).to_dict()
        back["metadata"] = {k: back["metadata"][k] for k in task.metadata}
        return back
    asked = Task.from_dict(task.to_dict()).add_message(Message.user("back"))
    arrived = client.send_task(url, asked).messages[-1].parts[0].content
    arrived["messages"].pop()
    arrived["metadata"] = {k: arrived["metadata"][k] for k in task.metadata}
    return dict(arrived)


def test_an_invalid_jump():
    message = SNIPPETS["models_08_invalid_jump"].splitlines()[-1].removeprefix("# ValueError: ")

    with pytest.raises(ValueError) as caught:
        run("models_08_invalid_jump")

    assert str(caught.value) == message
