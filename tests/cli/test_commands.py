"""The commands of ``protolink-sync``, each against a real agent."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading

import pytest

from protolink_sync import AgentCapabilities, AgentCard, AgentClient, Message, Task
from protolink_sync.a2a import A2AClient, SendConfiguration
from protolink_sync.cli import main
from protolink_sync.server import Agent
from tests.aio.silent import SilentPeer
from tests.cases.play import reply, task_json
from tests.cases.server import ScriptedServer

LIMIT = 60

COMMANDS = [
    ("card",),
    ("send", "hello"),
    ("stream", "hello"),
    ("cancel", "t"),
    ("state",),
    ("history",),
    ("doctor",),
    ("registry", "list"),
    ("a2a", "card"),
    ("a2a", "send", "hello"),
]


class Cook(Agent):
    """Answers on both protocols; keeps who called and which tasks it was told to cancel."""

    def __init__(self, *, token=None, evil="") -> None:
        self.token, self.evil = token, evil
        self.seen: list[str] = []
        self.working = threading.Event()
        self.over: list[bool] = []
        card = AgentCard("cook", f"cooks{evil}", "http://127.0.0.1", tags=["food"])
        card.capabilities = AgentCapabilities(streaming=True)
        super().__init__(card, authenticate=self.see)
        self.infer(lambda prompt: f"You asked: {prompt}{evil}")

    def see(self, environ):
        self.seen.append(environ.get("HTTP_AUTHORIZATION", ""))
        return "ann" if self.token is None or self.seen[-1] == f"Bearer {self.token}" else None

    def handle_task(self, task: Task) -> Task:
        part = task.messages[-1].parts[0]
        text = part.content["prompt"] if part.type == "infer" else task.messages[-1].text
        if text == "fail":
            return task.fail("burnt")
        if text == "which":
            return task.require_input(Message.agent("Which dish?"))
        if text == "work":
            self.working.set()
            run = self.current_run()
            end = threading.Event()
            for _ in range(2000):
                if run.cancelled:
                    break
                end.wait(0.01)
            self.over.append(run.cancelled)
            return task.complete("worked")
        if part.type == "infer":
            return super().handle_task(task)
        return task.complete(f"You said: {text}")


@pytest.fixture
def cook():
    agent = Cook()
    with agent.serve("http://127.0.0.1:0", a2a=True) as server:
        agent.url = server.url
        yield agent


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command in this process: ``run("card", url)`` is (code, output, errors)."""
    monkeypatch.delenv("PROTOLINK_TOKEN", raising=False)

    def run(*words):
        code = main([str(word) for word in words])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


@pytest.fixture
def refused_url(unused_port):
    return f"http://127.0.0.1:{unused_port()}"


# --- one agent -----------------------------------------------------------------------------------


def test_a_real_agents_card(run, agent_peer):
    code, out, _ = run("card", agent_peer.url, "--json")
    assert code == 0
    assert json.loads(out) == AgentClient("http").get_agent_card(agent_peer.url).to_dict()

    code, out, _ = run("card", agent_peer.url)
    assert code == 0
    assert f"url: {agent_peer.url}" in out.splitlines()


def test_send_prints_the_answer(run, agent_peer):
    code, out, err = run("send", agent_peer.url, "hello")
    assert (code, err) == (0, "")
    assert "mock model" in out

    code, out, _ = run("send", agent_peer.url, "hello", "--json")
    assert json.loads(out)["state"] == "completed"


def test_stream_prints_the_answer_and_each_event_as_json(run, start_peer):
    peer = start_peer("sse")
    code, out, _ = run("stream", peer.url, "hello")
    assert code == 0
    assert "mock model" in out

    code, out, _ = run("stream", peer.url, "hello", "--json")
    events = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [event.get("final") for event in events][-1] is True


def test_a_text_may_come_from_the_standard_input(run, cook, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("from a pipe"))

    assert run("send", cook.url, "-")[1] == "You asked: from a pipe\n"


def test_cancel_ends_a_task(run, cook):
    task = Task.create("work")
    with AgentClient("http") as client:
        working = threading.Thread(target=client.send_task, args=(cook.url, task))
        working.start()
        assert cook.working.wait(LIMIT)
        code, out, _ = run("cancel", cook.url, task.id, "--reason", "enough")
        working.join()

    assert (code, out) == (0, f"{task.id}: canceled\n")
    assert cook.over == [True]


@pytest.mark.parametrize(("text", "code"), [("fail", 7), ("which", 8)])
@pytest.mark.parametrize("command", ["send", "stream"])
def test_a_task_that_is_not_completed_is_no_success(run, cook, text, code, command):
    found, _, err = run(command, cook.url, text)

    assert found == code
    assert "the task is" in err


@pytest.mark.parametrize(
    ("state", "code"),
    [("working", 0), ("auth-required", 8), ("rejected", 7), ("error", 7), ("", 7)],
)
def test_a_state_that_protolink_does_not_have_is_no_success(run, state, code):
    """The task comes back all the same, with its text."""
    body = json.dumps({**json.loads(task_json("told")), "state": state})
    with ScriptedServer({"routes": {"POST /tasks/": [[reply(body)]]}}) as server:
        found, out, err = run("send", server.base, "hello")

    assert (found, out) == (code, "told\n")
    assert (f"the task is {state}".strip() in err) == (code != 0)


# --- what an agent keeps -------------------------------------------------------------------------


def test_state_and_history_of_a_real_agent(run, agent_peer):
    code, out, _ = run("state", agent_peer.url, "--json")
    assert code == 0
    assert json.loads(out)["operation"] == "describe"

    code, out, _ = run("history", agent_peer.url, "--compact", "recent", "--json")
    assert code == 0
    assert json.loads(out)["strategy"] == "recent"


def test_a_conversation_is_shown_and_deleted_only_when_confirmed(run, cook, monkeypatch):
    run("send", cook.url, "hello", "--session", "s1")
    code, out, _ = run("history", cook.url, "--session", "s1")
    assert code == 0
    assert "hello" in out

    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    code, _, err = run("state", cook.url, "--session", "s1", "--reset")
    assert code == 130
    assert "Delete the conversation 's1'" in err
    assert "hello" in run("history", cook.url, "--session", "s1")[1]

    assert run("state", cook.url, "--session", "s1", "--reset", "--yes")[0] == 0
    assert "hello" not in run("history", cook.url, "--session", "s1")[1]


# --- a registry ----------------------------------------------------------------------------------


def test_a_real_registry(run, start_peer, cook):
    registry = start_peer("registry")
    code, out, _ = run("registry", "register", registry.url, cook.url)
    assert code == 0
    assert out.strip()
    code, out, _ = run("registry", "list", registry.url, "--tag", "food")
    assert (code, out) == (0, f"cook\t{cook.url}\tfood\tcooks\n")
    assert json.loads(run("registry", "list", registry.url, "--json")[1])["name"] == "cook"
    assert run("registry", "list", registry.url, "--name", "nobody")[1] == ""
    assert run("registry", "heartbeat", registry.url, cook.url)[0] == 0
    assert run("registry", "unregister", registry.url, cook.url)[0] == 0
    assert run("registry", "list", registry.url)[1] == ""
    assert run("registry", "heartbeat", registry.url, cook.url)[0] == 1


# --- A2A -----------------------------------------------------------------------------------------


def test_a2a_card_send_get_list(run, cook):
    assert "name: cook" in run("a2a", "card", cook.url)[1].splitlines()
    assert json.loads(run("a2a", "card", cook.url, "--json")[1])["name"] == "cook"

    code, out, err = run("a2a", "send", cook.url, "hello")
    assert (code, out) == (0, "You said: hello\n")
    task_id = err.split()[1].rstrip(":")
    assert run("a2a", "get", cook.url, task_id)[:2] == (0, "You said: hello\n")
    assert json.loads(run("a2a", "get", cook.url, task_id, "--json")[1])["id"] == task_id
    assert run("a2a", "list", cook.url)[1].split("\t")[:2] == [task_id, "completed"]
    assert run("a2a", "send", cook.url, "fail")[0] == 7
    assert run("a2a", "send", cook.url, "which")[0] == 8


def test_a2a_streams(run, cook):
    assert run("a2a", "stream", cook.url, "hello")[:2] == (0, "You said: hello\n")
    lines = run("a2a", "stream", cook.url, "hello", "--json")[1].splitlines()
    assert len([json.loads(line) for line in lines]) >= 1


def test_a2a_subscribe_and_cancel(run, cook):
    configuration = SendConfiguration(return_immediately=True)
    with A2AClient(cook.url) as client:
        begun = client.send_message("work", configuration=configuration)
    assert cook.working.wait(LIMIT)
    with started("a2a", "subscribe", cook.url, begun.id, "--json") as process:
        first = json.loads(process.stdout.readline())
        code, out, _ = run("a2a", "cancel", cook.url, begun.id, "--reason", "enough")
        rest, _ = process.communicate(timeout=LIMIT)

    assert (code, out) == (0, f"{begun.id}: canceled\n")
    assert begun.id in json.dumps(first)
    assert "CANCELED" in rest.splitlines()[-1]
    assert process.returncode == 7


# --- doctor --------------------------------------------------------------------------------------


def test_doctor_of_a_real_agent(run, agent_peer):
    code, out, _ = run("doctor", agent_peer.url)
    assert code == 0
    assert "ok      card      http" in out
    assert json.loads(run("doctor", agent_peer.url, "--json")[1])["ok"] is True


def test_doctor_says_what_is_wrong_and_what_to_do(run, agent_peer, refused_url):
    code, out, _ = run("doctor", refused_url)
    assert code == 3
    assert "FAILED  connect" in out
    assert "-> is the agent running" in out
    assert run("doctor", agent_peer.url + "/nothing")[0] == 1


# --- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize("words", COMMANDS)
def test_nobody_listens(run, refused_url, words):
    head, rest = (
        (words[:2], words[2:]) if words[0] in ("a2a", "registry") else (words[:1], words[1:])
    )
    code, out, err = run(*head, refused_url, *rest)

    assert code == 3
    if words != ("doctor",):
        assert out == ""
        assert err.startswith("protolink-sync: ")
        assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("send", "htpp://nowhere", "hello"), 2, "known: grpc://"),
        (("card", "nowhere"), 2, "no scheme"),
        (("card", "{url}/nothing"), 1, "404"),
        (("cancel", "{url}", "unknown"), 1, "unknown"),
        (("card", "{url}", "--timeout", "-1"), 2, "timeout"),
        (("serve", "nothing"), 2, "MODULE:AGENT"),
        (("serve", "no_such_module:agent"), 2, "no module"),
        (("serve", "json:dumps"), 2, "dumps"),
        (("serve", "json:nothing"), 2, "'nothing'"),
    ],
)
def test_the_exit_code_tells_the_kind_of_error(run, cook, words, code, told):
    found, _, err = run(*[word.format(url=cook.url) for word in words])

    assert found == code
    assert told in err
    assert "Traceback" not in err


def test_a_peer_that_does_not_answer_in_time(run):
    with SilentPeer() as silent:
        code, _, err = run("send", silent.url, "hello", "--timeout", "0.2")

    assert code == 4
    assert "0.2 s" in err


def test_a_peer_that_is_no_agent(run):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            caller, _ = server.accept()
            with caller:
                caller.recv(65536)
                caller.sendall(b"SSH-2.0-dropbear\r\n")

        answering = threading.Thread(target=answer)
        answering.start()
        code, _, _ = run("card", f"http://127.0.0.1:{server.getsockname()[1]}")
        answering.join()

    assert code == 6


# --- secrets and terminals -----------------------------------------------------------------------


def test_the_token_of_the_environment_is_shown_to_the_address_that_was_named(run, monkeypatch):
    cook = Cook(token="hush")
    with cook.serve("http://127.0.0.1:0", a2a=True) as server:
        assert run("card", server.url)[0] == 5
        monkeypatch.setenv("PROTOLINK_TOKEN", "hush")
        assert run("card", server.url, "-v")[0] == 0
        assert run("a2a", "send", server.url, "hello")[0] == 0
        code, out, err = run("send", server.url, "hello", "-v")

    assert code == 0
    assert "hush" not in out + err
    assert "attempt 1" in err


@pytest.mark.parametrize("words", [("send", "{}", "hello"), ("a2a", "card", "{}")])
def test_nobody_else_is_shown_the_token(run, cook, monkeypatch, words):
    monkeypatch.setenv("PROTOLINK_TOKEN", "hush")
    answer = f"HTTP/1.1 307 There\r\nLocation: {cook.url}/\r\nContent-Length: 0\r\n\r\n"
    with socket.create_server(("127.0.0.1", 0)) as server:
        heads = []

        def redirect():
            caller, _ = server.accept()
            with caller:
                heads.append(caller.recv(65536))
                caller.sendall(answer.encode())

        redirecting = threading.Thread(target=redirect)
        redirecting.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        code, _, _ = run(*[word.format(url) for word in words])
        redirecting.join()

    assert code == 1
    assert b"Bearer hush" in heads[0]
    assert cook.seen == []


# Names of this machine, and those that only begin like one.
@pytest.mark.parametrize(
    ("host", "warned"),
    [
        ("agent.example.invalid", True),
        ("127.evil.invalid", True),
        ("127.0.0.1.evil.invalid", True),
        ("[2001:db8::1]", True),
        ("192.0.2.1", True),
        ("localhost", False),
        ("127.0.0.2", False),
        ("[::1]", False),
        ("[0:0:0:0:0:0:0:1]", False),
        ("[::ffff:127.0.0.1]", False),
    ],
)
def test_a_token_that_would_go_out_in_clear_is_warned_of(run, monkeypatch, host, warned):
    def unknown(*_args, **_more):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setenv("PROTOLINK_TOKEN", "hush")
    code, _, err = run("card", f"http://{host}:1")

    assert code == 3
    assert ("without encryption" in err) == warned
    assert "hush" not in err


def test_what_a_peer_says_does_not_reach_the_terminal_as_commands(run):
    evil = Cook(evil="\x1b[2J\x07")
    with evil.serve("http://127.0.0.1:0") as server:
        shown = [
            run(command, server.url, *more)[1]
            for command, *more in (["card"], ["send", "?"], ["stream", "?"], ["doctor"])
        ]

    assert all("\x1b" not in out and "\x07" not in out for out in shown)
    assert all("cook" in out or "You asked" in out for out in shown)


def test_on_a_terminal_there_are_tables(run, cook, monkeypatch, capsys):
    import pty

    parent, child = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "protolink_sync", "card", cook.url],
            stdout=child,
            stderr=subprocess.PIPE,
            timeout=LIMIT,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
        )
        shown = os.read(parent, 65536).decode()
    finally:
        os.close(parent)
        os.close(child)

    assert (done.returncode, done.stderr) == (0, b"")
    assert "\x1b[1mname" in shown
    assert "name: cook" not in shown


# --- processes -----------------------------------------------------------------------------------


def started(*words, **more):
    return subprocess.Popen(
        [sys.executable, "-m", "protolink_sync", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


@pytest.mark.skipif(os.name == "nt", reason="no such signal")
@pytest.mark.parametrize("wanted", [True, False])
def test_ctrl_c_cancels_the_task_if_that_is_wanted(cook, wanted):
    flags = ["--cancel-on-interrupt"] if wanted else []
    with started("send", cook.url, "work", *flags) as process:
        assert cook.working.wait(LIMIT)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LIMIT)

    assert process.returncode == 130
    assert ("the task was canceled" in errors) == wanted
    assert "Traceback" not in errors
    if wanted:
        assert "interrupted" in errors


@pytest.mark.skipif(os.name == "nt", reason="no such signal")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_hosts_an_agent_until_it_is_told_to_stop(tmp_path, number):
    (tmp_path / "mine.py").write_text(
        "from protolink_sync import AgentCard\n"
        "from protolink_sync.server import Agent\n"
        "def make():\n"
        "    agent = Agent(AgentCard('mine', 'for tests', 'http://127.0.0.1'))\n"
        "    agent.infer(lambda prompt: prompt.upper())\n"
        "    return agent\n"
        "agent = make()\n"
    )
    target = "mine:agent" if number == signal.SIGINT else "mine:make"
    # In the folder of the module, which is found there.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with started("serve", target, "--port", "0", "--a2a", cwd=tmp_path, env=environment) as process:
        first = process.stdout.readline()
        url = first.split()[-1]
        with AgentClient("http") as client:
            answer = client.send_infer_task("hello", url).text
        process.send_signal(number)
        _, errors = process.communicate(timeout=LIMIT)

    assert first.startswith("serving mine at http://127.0.0.1:")
    assert answer == "HELLO"
    assert process.returncode == 0
    assert "Traceback" not in errors


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_for_a_shell(run, shell):
    code, out, _ = run("completion", shell)

    assert code == 0
    assert "_PROTOLINK_SYNC_COMPLETE" in out


def test_commands_are_completed():
    done = subprocess.run(
        [sys.executable, "-m", "protolink_sync"],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        env=os.environ
        | {
            "_PROTOLINK_SYNC_COMPLETE": "bash_complete",
            "COMP_WORDS": "protolink-sync st",
            "COMP_CWORD": "1",
        },
    )

    assert done.stdout.split() == ["plain,state", "plain,stream"]


def test_the_help_names_all_commands_and_codes(run):
    code, out, _ = run("--help")

    assert code == 0
    for word in [
        "a2a",
        "cancel",
        "card",
        "demo",
        "doctor",
        "history",
        "registry",
        "send",
        "serve",
        "state",
        "stream",
    ]:
        assert f"\n  {word} " in out
    assert "PROTOLINK_TOKEN" in out
    assert "Exit codes" in out
