"""The documents' snippets of A2A, run against a protolink agent that offers it."""

from __future__ import annotations

from typing import Any

import pytest

from protolink_sync.client import AgentClient
from protolink_sync.models import Task, TaskState
from tests.client.test_snippets import SNIPPETS, replaced, run


@pytest.fixture
def url(shared_peer):
    return shared_peer("http", "--a2a").url


def test_the_constructor_with_a2a():
    """The block's second and third client; the other two need no A2A."""
    text = SNIPPETS["client_03_constructor"]
    names: dict[str, Any] = {"AgentClient": AgentClient}

    exec(replaced(text[text.index("# Add A2A") : text.index("# Advanced:")]), names)

    for name in ("a2a_client", "split_origin_client"):
        assert names[name].a2a
        names[name].close()


def test_three_ways_to_send(url):
    task = Task.create("echo hi")

    names: dict[str, Any] = {"AgentClient": AgentClient, "peer_url": url, "task": task}

    # The protocol of that name keeps it.
    exec(replaced(SNIPPETS["client_07_a2a"]).replace('"protolink_sync"', '"protolink"'), names)

    for way in ("automatic", "a2a_only", "native_only"):
        assert (names[way].id, names[way].state, names[way].text) == (
            task.id,
            TaskState.COMPLETED,
            "hi",
        )
    assert "a2a_remote_task_id" in names["a2a_only"].metadata
    names["client"].close()


def test_the_card(url, capsys):
    with AgentClient(transport="http", a2a=True) as client:
        run("client_15_a2a_card", url, client=client)

    assert "'protocolBinding': 'JSONRPC'" in capsys.readouterr().out
