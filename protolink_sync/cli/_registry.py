"""Commands for a registry of agents."""

from __future__ import annotations

from typing import Any

import click

from protolink_sync import RegistryClient
from protolink_sync.cli._settings import Settings, shared
from protolink_sync.client import AgentPeer

__all__ = ["COMMANDS"]


@click.group()
def registry() -> None:
    """Look into a registry, and enter agents into it."""


def _at(peer: AgentPeer) -> RegistryClient:
    return RegistryClient(peer.client.transport)


@registry.command("list")
@click.argument("url")
@click.option("--name", help="Agents of this name.")
@click.option("--tag", "tags", multiple=True, help="Agents with this tag; several must all be.")
@shared
def list_(url: str, name: str | None, tags: tuple[str, ...], settings: Settings) -> None:
    """List the agents in the registry at URL."""
    wanted: dict[str, Any] = {"name": name, "tags": list(tags)}
    with settings.peer(url) as peer:
        cards = _at(peer).discover({key: value for key, value in wanted.items() if value})
    if settings.output.as_json:
        for card in cards:
            settings.output.value(card.to_dict())
    else:
        settings.output.rows(
            ("name", "url", "tags", "description"),
            [(card.name, card.url, card.tags, card.description) for card in cards],
        )


@registry.command()
@click.argument("url")
@click.argument("agent_url")
@shared
def register(url: str, agent_url: str, settings: Settings) -> None:
    """Enter the agent at AGENT_URL, whose card is fetched, into the registry at URL."""
    with settings.peer(agent_url) as agent:
        card = agent.card
    with settings.peer(url) as peer:
        _show(_at(peer).register(card), settings)


@registry.command()
@click.argument("url")
@click.argument("agent_url")
@shared
def unregister(url: str, agent_url: str, settings: Settings) -> None:
    """Take the agent with the address AGENT_URL out of the registry at URL."""
    with settings.peer(url) as peer:
        _show(_at(peer).unregister(agent_url), settings)


@registry.command()
@click.argument("url")
@click.argument("agent_url")
@shared
def heartbeat(url: str, agent_url: str, settings: Settings) -> None:
    """Tell the registry at URL that the agent with the address AGENT_URL is alive."""
    with settings.peer(url) as peer:
        _show(_at(peer).heartbeat(agent_url), settings)


def _show(answer: dict[str, Any], settings: Settings) -> None:
    if settings.output.as_json:
        settings.output.value(answer)
    else:
        settings.output.line(str(answer["status"]))


COMMANDS = (registry,)
