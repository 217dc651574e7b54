"""The test equipment itself: real peers, the proxy, the guards of ``conftest.py``."""

from __future__ import annotations

import contextlib
import json
import pathlib
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
import requests

from tests.peers import CountingProxy, bearer_jwt, peer_python

ROOT = pathlib.Path(__file__).parents[2]


def address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    assert parts.hostname
    assert parts.port
    return parts.hostname, parts.port


def task(text: str, task_id: str = "t-1") -> dict[str, object]:
    part = {"type": "text", "content": text}
    message = {"id": "m-1", "role": "user", "parts": [part], "timestamp": "2026-01-01T00:00:00Z"}
    return {"id": task_id, "state": "submitted", "messages": [message], "artifacts": []}


def send(url: str, text: str, **options: object) -> requests.Response:
    return requests.post(f"{url}/tasks/", json=task(text), timeout=10, **options)


def listener() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


@contextlib.contextmanager
def through(
    proxy: CountingProxy, server: socket.socket
) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Connect through the proxy; yield both ends."""
    with (
        socket.create_connection(address(proxy.url), timeout=5) as client,
        server.accept()[0] as peer,
    ):
        peer.settimeout(5)
        yield client, peer


def wait_until(condition: Callable[[], bool], limit: float = 5.0) -> bool:
    end = time.monotonic() + limit
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_an_http_agent_does_what_the_text_says(agent_peer):
    assert send(agent_peer.url, "fail on purpose").json()["state"] == "failed"
    assert send(agent_peer.url, "need").json()["state"] == "input-required"
    assert send(agent_peer.url, "raise x").status_code == 500
    assert len(send(agent_peer.url, "artifacts").json()["artifacts"]) == 2
    back = send(agent_peer.url, "back").json()["messages"][-1]["parts"][0]["content"]
    assert back["messages"][0]["parts"][0]["content"] == "back"


def test_an_agent_answers_with_a_part_of_every_type(agent_peer):
    parts = send(agent_peer.url, "allparts").json()["messages"][-1]["parts"]

    assert {part["type"] for part in parts} >= {"text", "json", "tool_call", "infer", "decision"}


@pytest.mark.parametrize("kind", ["sse", "websocket", "grpc", "registry"])
def test_every_kind_of_peer_accepts_connections(kind, start_peer):
    with socket.create_connection(address(start_peer(kind).url), timeout=5):
        pass


def test_a_stream_ends_with_the_whole_task(shared_peer):
    reply = requests.post(f"{shared_peer('sse').url}/tasks/stream", json=task("many 3"), timeout=10)

    frames = [json.loads(line[6:]) for line in reply.text.splitlines() if line]
    assert [frame["final"] for frame in frames] == [False] * 4 + [True]
    assert frames[-1]["result"]["metadata"]["task"]["state"] == "completed"


@pytest.mark.parametrize(
    ("option", "secret", "header"),
    [
        ("--api-key", "key-1", {"X-API-Key": "key-1"}),
        ("--bearer", "signing", {"Authorization": f"Bearer {bearer_jwt('signing')}"}),
        ("--basic", "user:word", {"Authorization": "Basic dXNlcjp3b3Jk"}),
    ],
)
def test_a_guarded_agent_lets_nobody_else_in(option, secret, header, start_peer):
    url = start_peer("http", option, secret).url

    assert send(url, "echo x").status_code == 401
    assert send(url, "echo x", headers=header).json()["state"] == "completed"


def test_a_tls_agent_is_known_by_its_authority_alone(start_peer, tls_files):
    url = start_peer("http", "--cert", tls_files.server_cert, "--key", tls_files.server_key).url

    assert url.startswith("https://")
    assert send(url, "echo x", verify=tls_files.ca).json()["state"] == "completed"
    with pytest.raises(requests.exceptions.SSLError):
        send(url, "echo x")


def test_limits_are_the_agents(start_peer):
    url = start_peer("http", "--limit", "max_request_bytes=500").url

    assert send(url, "echo " + "x" * 1000).status_code == 500


def test_a_peer_that_cannot_start_tells_why(start_peer):
    with pytest.raises(AssertionError, match="max_request_bytes must be greater"):
        start_peer("http", "--limit", "max_request_bytes=0")


def test_the_proxy_counts_connections_and_passes_every_byte(counting_proxy):
    data = bytes(range(256)) * 8192  # more than any socket buffer holds
    with listener() as server:
        proxy = counting_proxy(f"tcp://127.0.0.1:{server.getsockname()[1]}")
        with through(proxy, server) as (client, peer):
            client.setblocking(False)
            arrived, sent = bytearray(), 0
            while len(arrived) < len(data):
                with contextlib.suppress(BlockingIOError):
                    sent += client.send(data[sent : sent + 65536])
                arrived += peer.recv(65536)
            assert (proxy.total, proxy.open) == (1, 1)
        assert arrived == data
        assert wait_until(lambda: proxy.open == 0)


@pytest.mark.parametrize("reset", [False, True])
def test_the_proxy_cuts_what_is_open_and_goes_on(reset, counting_proxy):
    with listener() as server:
        proxy = counting_proxy(f"tcp://127.0.0.1:{server.getsockname()[1]}")
        with through(proxy, server) as (client, _):
            assert wait_until(lambda: proxy.open == 1)

            proxy.cut(reset=reset)

            if reset:
                with pytest.raises(ConnectionResetError):
                    client.recv(1)
            else:
                assert client.recv(1) == b""
        with through(proxy, server):
            assert proxy.total == 2


def test_the_proxy_ends_a_connection_whose_peer_is_gone(counting_proxy):
    with listener() as server:
        proxy = counting_proxy(f"tcp://127.0.0.1:{server.getsockname()[1]}")

    with socket.create_connection(address(proxy.url), timeout=5) as client:
        assert client.recv(1) == b""
    assert proxy.open == 0


def test_a_held_port_is_for_the_server_that_is_told_it(unused_port):
    address = ("127.0.0.1", unused_port())

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=5)
    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind(address)
    with socket.create_server(address), socket.create_connection(address, timeout=5):
        pass


PLANTED = {
    "a thread": (
        """
        import threading
        kept = threading.Event()
        def test_planted():
            threading.Thread(target=kept.wait, args=(10,), name="forgotten", daemon=True).start()
        """,
        "the test left threads: ['forgotten']",
    ),
    "a socket": (
        """
        import socket
        kept = []
        def test_planted():
            kept.append(socket.create_server(("127.0.0.1", 0)))
        """,
        "the test left descriptors",
    ),
    "another machine, even if the error is swallowed": (
        """
        import socket
        def test_planted():
            try:
                socket.create_connection(("192.0.2.1", 9), timeout=0.1)
            except Exception:
                pass
        """,
        "the test called other machines: [\"socket.connect '192.0.2.1'\"]",
    ),
    "a look-up": (
        """
        import socket
        def test_planted():
            socket.getaddrinfo("peer.invalid", 80)
        """,
        "patch socket.getaddrinfo",
    ),
    "a warning in a thread": (
        """
        import threading
        def test_planted():
            thread = threading.Thread(target=lambda: 1 / 0)
            thread.start()
            thread.join()
        """,
        "PytestUnhandledThreadExceptionWarning",
    ),
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are listed on Linux only")
@pytest.mark.parametrize("plant", PLANTED)
def test_a_test_that_leaves_something_fails(plant, tmp_path):
    source, expected = PLANTED[plant]
    file = tmp_path / "test_planted.py"
    file.write_text(textwrap.dedent(source))

    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", "setup.cfg", str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
    )

    assert run.returncode == 1, run.stdout + run.stderr
    assert expected in run.stdout


@pytest.mark.peer
def test_the_peers_run_in_an_environment_of_their_own():
    assert pathlib.Path(peer_python()).parent != pathlib.Path(sys.executable).parent
