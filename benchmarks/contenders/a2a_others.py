"""Other people's A2A clients; they run in the peers' interpreter."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.payloads import A2A_TEXT

__all__ = ["Neograph", "Sdk"]


class Sdk:
    """a2a-sdk's client, on one event loop that is kept: what a blocking program would do."""

    def __init__(self, url: str) -> None:
        from a2a.client import ClientConfig, create_client
        from a2a.types import Message, Part, Role, SendMessageRequest

        self._loop = asyncio.new_event_loop()
        self._clients = {
            streams: self._loop.run_until_complete(
                create_client(url, client_config=ClientConfig(streaming=streams))
            )
            for streams in (False, True)
        }

        def request() -> Any:
            message = Message(message_id="m", role=Role.ROLE_USER, parts=[Part(text=A2A_TEXT)])
            return SendMessageRequest(message=message)

        self._request = request

    def message(self) -> Callable[[], Any]:
        """One message."""
        return lambda: self._loop.run_until_complete(self._all(streams=False))

    def events(self) -> Callable[[], Iterator[Any]]:
        """The events of one stream."""
        return lambda: iter(self._loop.run_until_complete(self._all(streams=True)))

    async def _all(self, *, streams: bool) -> list[Any]:
        return [event async for event in self._clients[streams].send_message(self._request())]


class Neograph:
    """neograph-engine's client, which is C++."""

    def __init__(self, url: str) -> None:
        import neograph_engine

        self._client = neograph_engine.a2a.A2AClient(url)
        self._client.set_timeout(60)

    def message(self) -> Callable[[], Any]:
        """One message."""
        return lambda: self._client.send_message(A2A_TEXT)

    def events(self) -> Callable[[], Iterator[Any]]:
        """The events of one stream."""

        def read() -> Iterator[Any]:
            events: list[Any] = []
            self._client.send_message_stream(A2A_TEXT, lambda event: events.append(event) or True)
            return iter(events)

        return read
