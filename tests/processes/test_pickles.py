"""A client goes to another process as its settings; a secret goes there by name, or not at all."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from protolink_sync import AgentClient, Task, connect
from protolink_sync.models import Message
from protolink_sync.security import APIKey, BasicAuth, BearerToken
from protolink_sync.transport import get_transport
from tests.cases.play import reply, task_json
from tests.cases.server import ScriptedServer
from tests.processes.calls import LIMIT, ROOT, Peer
from tests.transport.scenes import wait_until

ALIASES = ["http", "sse", "websocket", "grpc"]
SECRET = "s3cret-of-mine"

ELSEWHERE = """
import pickle, sys
client, url, task = pickle.load(sys.stdin.buffer)
print(client.send_task(url, task).text)
client.transport.close()
"""


def task(text: str = "hi") -> Task:
    return Task.create(Message.user(text))


def elsewhere(*values: object, **environment: str) -> str:
    """Return what a fresh process gets for a pickled client, address and task."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", ELSEWHERE],
        input=pickle.dumps(values),
        capture_output=True,
        cwd=ROOT,
        env={**Peer("", "").environment(), **environment},
        timeout=LIMIT,
    )
    assert run.returncode == 0, run.stderr.decode()
    return run.stdout.decode().strip()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("credential", "header", "value"),
    [
        (BearerToken.from_env("THE_SECRET"), "Authorization", "Bearer of-the-other"),
        (APIKey.from_env("THE_SECRET"), "X-API-Key", "of-the-other"),
    ],
    ids=["bearer", "key"],
)
def test_a_secret_that_is_named_is_the_one_of_the_other_process(
    credential, header, value, monkeypatch
):
    monkeypatch.setenv("THE_SECRET", SECRET)
    answer = {"routes": {"*": [[reply(task_json("done"))]]}}
    with (
        ScriptedServer(answer) as server,
        get_transport("http", credentials=credential) as transport,
    ):
        client = AgentClient(transport)
        client.send_task(server.base, task())
        assert SECRET.encode() not in pickle.dumps(client)

        assert elsewhere(client, server.base, task(), THE_SECRET="of-the-other") == "done"

        here, there = server.requests
    assert SECRET in here.all(header)[0]
    assert there.all(header) == [value]
    assert here.connection != there.connection


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize(
    "settings",
    [
        {"credentials": SECRET},
        {"credentials": BearerToken(SECRET)},
        {"credentials": APIKey(SECRET)},
        {"credentials": BasicAuth("me", SECRET)},
        {"credentials": {"http://127.0.0.1:1": SECRET}},
        {"headers": {"X-Secret": SECRET}},
    ],
    ids=["text", "bearer", "key", "basic", "mapping", "header"],
)
def test_a_secret_itself_is_refused_and_not_told(alias, settings):
    with get_transport(alias, **settings) as transport:
        for value in (transport, AgentClient(transport)):
            with pytest.raises(TypeError, match="from_env") as refused:
                pickle.dumps(value)
            assert SECRET not in str(refused.value)


@pytest.mark.slow
def test_a_client_in_use_can_be_pickled_and_works_on(shared_peer):
    url = shared_peer("sse").url
    with AgentClient("sse") as client:
        with client.send_task_streaming(url, task("slow 5 0.05")) as stream:
            next(stream)

            assert elsewhere(client, url, task("echo over there")) == "over there"

            assert stream.result().text == "done"
        assert client.send_task(url, task("echo here")).text == "here"
        assert wait_until(lambda: client.transport.metrics.active_streams == 0)


@pytest.mark.slow
def test_the_copy_of_a_closed_client_is_open(shared_peer):
    """Closed are its connections, which are not part of a pickle."""
    url = shared_peer("http").url
    with connect(url) as peer:
        pass

    with pickle.loads(pickle.dumps(peer)) as again:
        assert again.run_task(task("echo x")).text == "x"
