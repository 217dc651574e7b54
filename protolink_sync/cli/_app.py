"""All commands together."""

from __future__ import annotations

from collections.abc import Sequence

import click
from click.shell_completion import get_completion_class

from protolink_sync._version import __version__
from protolink_sync.cli import _a2a, _demo, _doctor, _registry, _serve, _state, _tasks
from protolink_sync.cli._exits import CODES, INTERRUPTED

__all__ = ["run"]

_PROGRAM = "protolink-sync"
_COMPLETE = "_PROTOLINK_SYNC_COMPLETE"

_ENVIRONMENT = """\
PROTOLINK_TOKEN in the environment is shown as a bearer token to the address that a command names,
and to no other.
"""


@click.group(
    no_args_is_help=False,
    epilog=f"{CODES}\n\n{_ENVIRONMENT}",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name=_PROGRAM, message="%(prog)s %(version)s")
def app() -> None:
    """Talk to AI agents that speak ProtoLink or A2A."""


@app.command()
@click.option(
    "--tasks",
    type=click.IntRange(1, 100_000),
    default=200,
    show_default=True,
    help="Tasks in a row.",
)
def demo(tasks: int) -> None:
    """Host a small agent on this machine and call it over HTTP, with a stream."""
    _demo.run(tasks)


@app.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what makes SHELL complete commands and options.

    For bash: protolink-sync completion bash > ~/.protolink-sync-completion, and a line
    ". ~/.protolink-sync-completion" in ~/.bashrc.
    """
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(app, {}, _PROGRAM, _COMPLETE).source())


for _module in (_tasks, _state, _doctor, _registry, _a2a, _serve):
    for _command in _module.COMMANDS:
        app.add_command(_command)


def run(arguments: Sequence[str], program: str) -> int:
    """Run one command.

    Args:
        arguments: Of the command line.
        program: Its name, for messages.

    Returns:
        The exit code.

    Raises:
        SystemExit: The arguments are wrong (2), or only help was wanted (0).
        KeyboardInterrupt: Ctrl-C.
    """
    try:
        code = app.main(
            list(arguments), prog_name=program, complete_var=_COMPLETE, standalone_mode=False
        )
    except click.exceptions.Abort as error:
        if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        click.echo("aborted", err=True)
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from error
    return code if isinstance(code, int) else 0
