"""What commands print for programs, and what they refuse, in this process."""

from __future__ import annotations

import json

import pytest

from protolink_sync import AgentCard, Message, Task
from protolink_sync.a2a import A2AClient, SendConfiguration
from protolink_sync.cli import main
from protolink_sync.server import Agent
from protolink_sync.testing import FakeAgent


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command in this process: ``run("card", url)`` is (code, output, errors)."""
    monkeypatch.delenv("PROTOLINK_TOKEN", raising=False)

    def run(*words):
        code = main([str(word) for word in words])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


class Waiter(Agent):
    """Waits for the caller, so that its tasks can be canceled; keeps a conversation."""

    def __init__(self) -> None:
        super().__init__(AgentCard("waiter", "waits", "http://127.0.0.1"))
        self.infer(lambda prompt: f"You asked: {prompt}")

    def handle_task(self, task: Task) -> Task:
        if task.messages[-1].text == "wait":
            return task.require_input(Message.agent("Which one?"))
        return super().handle_task(task)


@pytest.fixture
def waiter():
    with Waiter().serve("http://127.0.0.1:0", a2a=True) as server:
        yield server.url


@pytest.mark.parametrize("as_json", [True, False])
def test_the_tasks_of_an_a2a_agent_are_listed_up_to_a_limit(run, waiter, as_json):
    with A2AClient(waiter) as client:
        ids = {client.send_message("wait").id for _ in range(3)}

    flags = ["--json"] if as_json else []
    code, out, told = run("a2a", "list", waiter, "--limit", 2, *flags)
    whole = run("a2a", "list", waiter, *flags)

    assert code == whole[0] == 0
    assert "more than 2" in told
    assert "more than" not in whole[2]
    if as_json:
        assert {json.loads(line)["id"] for line in whole[1].splitlines()} == ids
        assert len(out.splitlines()) == 2
    else:
        assert all(id in whole[1] for id in ids)


@pytest.mark.parametrize("as_json", [True, False])
def test_a_task_of_an_a2a_agent_is_canceled(run, waiter, as_json):
    with A2AClient(waiter) as client:
        task = client.send_message("wait", configuration=SendConfiguration())

    code, out, told = run(
        "a2a", "cancel", waiter, task.id, "--reason", "late", *(["--json"] if as_json else [])
    )

    assert code == 0
    if as_json:
        assert json.loads(out)["status"]["state"] == "TASK_STATE_CANCELED"
    else:
        assert "cancel" in out + told


def test_an_answer_of_an_a2a_agent_in_json(run, waiter):
    code, out, _ = run("a2a", "send", waiter, "wait", "--json")

    assert json.loads(out)["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert code != 1


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("app", "must be MODULE:AGENT"),
        (":agent", "must be MODULE:AGENT"),
        ("no_such_module_here:agent", "there is no module 'no_such_module_here'"),
        ("json:no_such_name", "has no 'no_such_name'"),
        ("json:__name__", "must be an Agent"),
    ],
)
def test_what_cannot_be_served_is_named(run, target, words):
    code, _, told = run("serve", target)

    assert code != 0
    assert words in told


def test_a_module_that_needs_another_one_is_not_said_to_be_missing(tmp_path, run, monkeypatch):
    (tmp_path / "needs_another.py").write_text("import no_such_module_at_all\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    code, _, told = run("serve", "needs_another:agent")

    assert code != 0
    assert "no_such_module_at_all" in told
    assert "needs_another" not in told


def test_an_agent_that_fails_otherwise_is_told_in_one_line(run):
    with FakeAgent(ValueError("no\nsuch dish"), url="http://127.0.0.1:0") as agent:
        code, _, told = run("send", agent.url, "hi")

    assert code != 0
    assert told.startswith("protolink-sync: send_task to http://127.0.0.1:")
    assert told.count("\n") == 1
