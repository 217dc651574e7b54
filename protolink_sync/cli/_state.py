"""Commands for what an agent keeps: state, history."""

from __future__ import annotations

from typing import Any, cast, get_args

import click

from protolink_sync import StateOperationResult
from protolink_sync.cli._settings import Settings, shared
from protolink_sync.types import HistoryCompactionStrategy

__all__ = ["COMMANDS"]

_CONVERSATION = "conversation"


def _show(result: StateOperationResult, settings: Settings) -> int:
    output = settings.output
    if output.as_json:
        output.value(result.to_dict())
    else:
        output.rows(
            ("store", "kept", "items", "messages", "done"),
            [
                (
                    store.name,
                    store.enabled,
                    store.item_count,
                    store.message_count,
                    "cleared" if store.cleared else "compacted" if store.compacted else "",
                )
                for store in result.stores
            ],
        )
        for fault in result.errors:
            output.note(f"{fault.get('store')}: {fault.get('message')}")
    return 1 if result.errors else 0


@click.command()
@click.argument("url")
@click.option("--session", help="One conversation; without it all of them.")
@click.option("--store", "stores", multiple=True, help="A store; may be given several times.")
@click.option("--data", is_flag=True, help="Also print what is stored (with --json).")
@click.option("--reset", is_flag=True, help="Delete it instead of showing it.")
@click.option("--yes", is_flag=True, help="Do not ask before deleting.")
@shared
def state(
    url: str,
    session: str | None,
    stores: tuple[str, ...],
    data: bool,
    reset: bool,
    yes: bool,
    settings: Settings,
) -> int:
    """Show what the agent at URL keeps."""
    if reset and not yes:
        what = f"the conversation {session!r}" if session else "all conversations"
        click.confirm(f"Delete {what} at {url}?", abort=True, err=True)
    with settings.peer(url) as agent:
        client = agent.client
        if reset:
            result = client.reset_state(url, session_id=session, stores=stores or None)
        else:
            result = client.describe_state(
                url, session_id=session, stores=stores or None, include_data=data
            )
    return _show(result, settings)


@click.command()
@click.argument("url")
@click.option("--session", help="The conversation.")
@click.option(
    "--compact",
    type=click.Choice(get_args(HistoryCompactionStrategy)),
    help="Shorten it, instead of showing it.",
)
@click.option("--max-messages", type=int, default=20, show_default=True)
@click.option("--max-tokens", type=int, default=4000, show_default=True)
@shared
def history(
    url: str,
    session: str | None,
    compact: str | None,
    max_messages: int,
    max_tokens: int,
    settings: Settings,
) -> int:
    """Show a conversation that the agent at URL keeps, or shorten it."""
    with settings.peer(url) as agent:
        if compact is not None:
            shortened = agent.client.compact_history(
                url,
                strategy=cast(HistoryCompactionStrategy, compact),
                max_messages=max_messages,
                max_tokens=max_tokens,
                session_id=session,
            )
            _show_shortened(shortened.to_dict(), settings)
            return 0
        kept = agent.client.describe_state(
            url, session_id=session, stores=_CONVERSATION, include_data=True
        )
    return _show_messages(kept, settings)


def _show_shortened(result: dict[str, Any], settings: Settings) -> None:
    if settings.output.as_json:
        settings.output.value(result)
    else:
        settings.output.facts((name.replace("_", " "), value) for name, value in result.items())


def _show_messages(kept: StateOperationResult, settings: Settings) -> int:
    """Print the messages where they are in the form that agents use, else what there is."""
    messages = [
        (message.get("role", ""), message.get("content", ""))
        for store in kept.stores
        for message in _messages(store.data)
        if isinstance(message, dict)
    ]
    if settings.output.as_json or not messages:
        return _show(kept, settings)
    settings.output.rows(("role", "content"), messages)
    return 1 if kept.errors else 0


def _messages(data: Any) -> list[Any]:
    found = data.get("messages") if isinstance(data, dict) else data
    return found if isinstance(found, list) else []


COMMANDS = (state, history)
