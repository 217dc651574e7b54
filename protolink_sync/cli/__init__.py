"""The command ``protolink-sync``. All of it needs the extra ``cli``; ``demo`` works without."""

from __future__ import annotations

import argparse
import importlib.util
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from protolink_sync._version import __version__
from protolink_sync.cli._exits import INTERRUPTED, exit_code, words_of

__all__ = ["main"]

_PROGRAM = "protolink-sync"

# How an output may be told to treat what its encoding does not have, so that it raises.
_EASILY_BROKEN = ("strict", "surrogateescape")

# What the extra brings. rich alone makes no command line, nor does click without it.
_EXTRA = ("click", "rich")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The arguments; None for those of the process.

    Returns:
        The exit code: 0 for success, 130 after Ctrl-C; the others by what went wrong, see
        ``protolink-sync --help``. Wrong arguments end with ``SystemExit(2)``.
    """
    _prepare_outputs()
    arguments = list(sys.argv[1:] if argv is None else argv)
    if all(importlib.util.find_spec(name) for name in _EXTRA):
        from protolink_sync.cli._app import run

        return _guarded(lambda: run(arguments, _PROGRAM))
    options = _small_parser().parse_args(arguments)
    return _guarded(lambda: _run_demo(options.tasks))


def _prepare_outputs() -> None:
    """Have the outputs take any text, also where one is closed or its encoding knows few."""
    for name in ("stdout", "stderr"):
        output = getattr(sys, name)
        if output is None:
            # Now, so that it takes the descriptor of what was closed; else a socket would get it.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(output, io.TextIOWrapper) and output.errors in _EASILY_BROKEN:
            output.reconfigure(errors="backslashreplace")


def _guarded(work: Callable[[], int]) -> int:
    """Run a command; say in one line what went wrong, and in the exit code."""
    try:
        code = work()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Nobody reads any more. The interpreter would try to flush once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        found = exit_code(error)
        if found is None:
            raise
        print(f"{_PROGRAM}: {words_of(error)}", file=sys.stderr)
        return found
    return code


def _run_demo(tasks: int) -> int:
    from protolink_sync.cli import _demo

    _demo.run(tasks)
    return 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        if "invalid choice" in message:
            message += "; the other commands need the extra: pip install 'protolink-sync[cli]'"
        super().error(message)


def _small_parser() -> argparse.ArgumentParser:
    """Return the parser for where the extra is not installed."""
    parser = _Parser(
        prog=_PROGRAM,
        description="Talk to AI agents that speak ProtoLink.",
        epilog="All other commands need the extra: pip install 'protolink-sync[cli]'",
    )
    parser.add_argument("--version", action="version", version=f"{_PROGRAM} {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    demo = commands.add_parser(
        "demo",
        help="host a small agent on this machine and call it over HTTP, with a stream",
        description="Host a small agent on this machine, call it over HTTP, and show the answers, "
        "how long they took and how many connections it needed.",
    )
    demo.add_argument(
        "--tasks", type=_count, default=200, metavar="N", help="tasks in a row (default: 200)"
    )
    return parser


def _count(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 100_000:
        raise argparse.ArgumentTypeError("must be from 1 to 100000")
    return number
