"""Commands for one agent: card, send, stream, cancel."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from protolink_sync import AgentCard, ProtoLinkError, Task
from protolink_sync.cli._exits import state_code, words_of
from protolink_sync.cli._settings import Settings, shared

__all__ = ["COMMANDS"]

# How long the cancelling of a task may take after Ctrl-C.
_CANCEL_TIME = 5.0

# As it is told to the agent.
_REASON = "interrupted by the user"


def given_text(text: str) -> str:
    """Return the text of an argument; that of the standard input for ``-``."""
    return sys.stdin.read() if text == "-" else text


@contextmanager
def cancelling(wanted: bool, cancel: Callable[[], object], settings: Settings) -> Iterator[None]:
    """Have Ctrl-C cancel the task at the agent too, if the user wants that."""
    try:
        yield
    except KeyboardInterrupt:
        if wanted:
            try:
                cancel()
                settings.output.note("the task was canceled")
            except ProtoLinkError as error:
                settings.output.note(f"the task could not be canceled: {words_of(error)}")
        raise


def _asked(text: str, session: str | None) -> Task:
    return Task.create_infer(prompt=given_text(text), session_id=session)


def _show_task(task: Task, settings: Settings) -> int:
    output = settings.output
    if output.as_json:
        output.value(task.to_dict())
    else:
        output.text(task.text)
        if state_code(task.state_text):
            output.note(f"the task is {task.state_text}")
    return state_code(task.state_text)


@click.command()
@click.argument("url")
@shared
def card(url: str, settings: Settings) -> None:
    """Show the card of the agent at URL."""
    with settings.peer(url) as agent:
        found = agent.card
    if settings.output.as_json:
        settings.output.value(found.to_dict())
    else:
        show_card(found, settings)


def show_card(found: AgentCard, settings: Settings) -> None:
    """Print a card for people."""
    settings.output.facts(
        [
            ("name", found.name),
            ("description", found.description),
            ("url", found.url),
            ("version", found.version),
            ("protocol", found.protocol_version),
            ("transport", found.transport),
            ("capabilities", found.capabilities.enabled()),
            ("skills", [skill.id for skill in found.skills]),
            ("tags", found.tags),
        ]
    )


_session = click.option("--session", help="Conversation to which it belongs.")
_on_interrupt = click.option(
    "--cancel-on-interrupt", is_flag=True, help="Ctrl-C also cancels the task at the agent."
)


@click.command()
@click.argument("url")
@click.argument("text")
@_session
@_on_interrupt
@shared
def send(
    url: str, text: str, session: str | None, cancel_on_interrupt: bool, settings: Settings
) -> int:
    """Ask the model of the agent at URL and print its answer. TEXT "-" is the standard input."""
    task = _asked(text, session)
    with settings.peer(url) as agent:

        def cancel() -> Task:
            return agent.client.cancel_task(url, task.id, reason=_REASON, timeout=_CANCEL_TIME)

        with cancelling(cancel_on_interrupt, cancel, settings):
            done = agent.run_task(task)
    return _show_task(done, settings)


@click.command()
@click.argument("url")
@click.argument("text")
@_session
@_on_interrupt
@shared
def stream(
    url: str, text: str, session: str | None, cancel_on_interrupt: bool, settings: Settings
) -> int:
    """Ask the model of the agent at URL and print its answer as it comes.

    With --json each event is printed as it comes. --timeout bounds the time between events.
    """
    task, output = _asked(text, session), settings.output
    with settings.peer(url) as agent, agent.client.send_task_streaming(url, task) as events:
        with cancelling(
            cancel_on_interrupt, lambda: events.cancel(_REASON, _CANCEL_TIME), settings
        ):
            if output.as_json:
                for event in events:
                    output.value(event)
            else:
                for piece in events.text():
                    output.text(piece, end="")
                output.text("")
        done = events.result()
    if state_code(done.state_text):
        output.note(f"the task is {done.state_text}")
    return state_code(done.state_text)


@click.command()
@click.argument("url")
@click.argument("task_id")
@click.option("--reason", help="Why; the agent keeps it with the task.")
@shared
def cancel(url: str, task_id: str, reason: str | None, settings: Settings) -> None:
    """Cancel the task TASK_ID at the agent at URL."""
    with settings.peer(url) as agent:
        task = agent.client.cancel_task(url, task_id, reason=reason)
    if settings.output.as_json:
        settings.output.value(task.to_dict())
    else:
        settings.output.line(f"{task.id}: {task.state_text}")


COMMANDS = (card, send, stream, cancel)
