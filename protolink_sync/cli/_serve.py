"""``protolink-sync serve``: host an agent of the user's own."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
from typing import Any

import click

from protolink_sync.server import Agent

__all__ = ["COMMANDS"]


@click.command()
@click.argument("target", metavar="MODULE:AGENT")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option("--port", type=int, default=8000, show_default=True, help="0 takes a free one.")
@click.option("--a2a", is_flag=True, help="Serve A2A beside ProtoLink.")
def serve(target: str, host: str, port: int, a2a: bool) -> int:
    """Host an agent until Ctrl-C.

    AGENT is the name of an Agent in MODULE, or of a function there that returns one. MODULE is
    looked for in the current folder first.
    """
    agent = _found(target)
    name = f"[{host}]" if ":" in host else host
    with agent.serve(f"http://{name}:{port}", a2a=a2a) as server:
        print(f"serving {agent.card.name} at {server.url}", flush=True)
        _close_when_told(server)
        try:
            server.wait()
        except KeyboardInterrupt:
            print("stopping", file=sys.stderr, flush=True)
    return 0


def _close_when_told(server: Any) -> None:
    """Have SIGTERM, by which supervisors end programs, end the server in good order."""

    def close(*_: object) -> None:
        # Not here: closing waits, and what it waits for may be what was interrupted.
        threading.Thread(target=server.close, name="protolink-serve-close").start()

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, close)


def _found(target: str) -> Agent:
    module_name, colon, name = target.partition(":")
    if not (module_name and colon and name):
        raise ValueError(f"{target!r} must be MODULE:AGENT, for example app:agent")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise ValueError(f"there is no module {module_name!r} here") from error
    value = getattr(module, name, None)
    if value is None:
        raise ValueError(f"the module {module_name!r} has no {name!r}")
    agent = value() if callable(value) and not isinstance(value, Agent) else value
    if not isinstance(agent, Agent):
        raise TypeError(f"{target} is a {type(agent).__name__}, must be an Agent")
    return agent


COMMANDS = (serve,)
