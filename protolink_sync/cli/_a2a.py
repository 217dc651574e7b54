"""Commands for agents that speak A2A."""

from __future__ import annotations

import click

from protolink_sync.a2a import A2AClient, A2AEventStream, Task
from protolink_sync.cli._exits import state_code
from protolink_sync.cli._settings import Settings, shared
from protolink_sync.cli._tasks import cancelling, given_text

__all__ = ["COMMANDS"]


@click.group()
def a2a() -> None:
    """Call agents that speak A2A, 1.0 or 0.3."""


def _client(url: str, settings: Settings) -> A2AClient:
    return A2AClient(
        url, credentials=settings.credentials(url), tls=settings.tls, timeout=settings.timeout
    )


def _word(task: Task) -> str:
    return str(task.status.state.value).removeprefix("TASK_STATE_").lower().replace("_", "-")


def _show_task(task: Task, settings: Settings) -> int:
    output, word = settings.output, _word(task)
    if output.as_json:
        output.value(task.to_dict())
    else:
        output.text(task.text)
        if not task.from_message:
            output.note(f"task {task.id}: {word}")
    return state_code(word)


@a2a.command()
@click.argument("url")
@shared
def card(url: str, settings: Settings) -> None:
    """Show the A2A card of the agent at URL."""
    with _client(url, settings) as client:
        found = client.fetch_agent_card()
        if settings.output.as_json:
            settings.output.value(found.raw)
            return
    settings.output.facts(
        [
            ("name", found.name),
            ("description", found.description),
            ("version", found.version),
            ("skills", [skill.id for skill in found.skills]),
            ("interfaces", [interface.url for interface in found.interfaces]),
        ]
    )


_task = click.option("--task", "task_id", default="", help="Id of a task to go on with.")
_context = click.option("--context", "context_id", default="", help="Id of a conversation.")


@a2a.command()
@click.argument("url")
@click.argument("text")
@_task
@_context
@shared
def send(url: str, text: str, task_id: str, context_id: str, settings: Settings) -> int:
    """Send TEXT to the agent at URL and print its answer. TEXT "-" is the standard input."""
    with _client(url, settings) as client:
        done = client.send_message(given_text(text), task_id=task_id, context_id=context_id)
    return _show_task(done, settings)


@a2a.command()
@click.argument("url")
@click.argument("text")
@_task
@_context
@click.option("--cancel-on-interrupt", is_flag=True, help="Ctrl-C also cancels the task.")
@shared
def stream(
    url: str,
    text: str,
    task_id: str,
    context_id: str,
    cancel_on_interrupt: bool,
    settings: Settings,
) -> int:
    """Send TEXT to the agent at URL and print its answer as it comes."""
    with (
        _client(url, settings) as client,
        client.stream_message(given_text(text), task_id=task_id, context_id=context_id) as events,
        cancelling(cancel_on_interrupt, lambda: events.cancel(timeout=5.0), settings),
    ):
        return _follow(events, settings)


@a2a.command()
@click.argument("url")
@click.argument("task_id")
@shared
def subscribe(url: str, task_id: str, settings: Settings) -> int:
    """Print what the task TASK_ID at the agent at URL does from now on."""
    with _client(url, settings) as client, client.subscribe(task_id) as events:
        return _follow(events, settings)


def _follow(events: A2AEventStream, settings: Settings) -> int:
    output = settings.output
    if output.as_json:
        for event in events:
            output.value(event.to_dict())
    else:
        for piece in events.text():
            output.text(piece, end="")
        output.text("")
    done = events.result()
    if not output.as_json and not done.from_message:
        output.note(f"task {done.id}: {_word(done)}")
    return state_code(_word(done))


@a2a.command()
@click.argument("url")
@click.argument("task_id")
@click.option("--history", type=int, help="How many messages of its history.")
@shared
def get(url: str, task_id: str, history: int | None, settings: Settings) -> int:
    """Show the task TASK_ID at the agent at URL."""
    with _client(url, settings) as client:
        return _show_task(client.get_task(task_id, history), settings)


@a2a.command("list")
@click.argument("url")
@_context
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True)
@shared
def list_(url: str, context_id: str, limit: int, settings: Settings) -> None:
    """List the tasks at the agent at URL."""
    rows = []
    with _client(url, settings) as client:
        for number, task in enumerate(client.list_tasks(context_id=context_id)):
            if number == limit:
                settings.output.note(f"there are more than {limit}: raise --limit")
                break
            if settings.output.as_json:
                settings.output.value(task.to_dict())
            rows.append((task.id, _word(task), task.context_id, task.text))
    if not settings.output.as_json:
        settings.output.rows(("task", "state", "conversation", "answer"), rows)


@a2a.command()
@click.argument("url")
@click.argument("task_id")
@click.option("--reason", help="Why.")
@shared
def cancel(url: str, task_id: str, reason: str | None, settings: Settings) -> None:
    """Cancel the task TASK_ID at the agent at URL."""
    metadata = None if reason is None else {"reason": reason}
    with _client(url, settings) as client:
        task = client.cancel_task(task_id, metadata)
    if settings.output.as_json:
        settings.output.value(task.to_dict())
    else:
        settings.output.line(f"{task.id}: {_word(task)}")


COMMANDS = (a2a,)
