"""Calls to an A2A agent: the floor by hand, and ours as its users call it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from benchmarks.payloads import A2A_TEXT

__all__ = ["Ours", "ByHand"]

_HEADERS = {"Content-Type": "application/json", "A2A-Version": "1.0"}


class ByHand:
    """``http.client`` and ``json``: one call as a dictionary, one answer as a dictionary."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc)

    def message(self) -> Callable[[], Any]:
        """One message on a kept connection."""
        return lambda: json.loads(self._send("SendMessage").read())

    def events(self) -> Callable[[], Iterator[Any]]:
        """The events of one stream."""

        def read() -> Iterator[Any]:
            for line in self._send("SendStreamingMessage"):
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])

        return read

    def _send(self, method: str) -> http.client.HTTPResponse:
        message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": A2A_TEXT}]}
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message}}
        body = json.dumps(call, separators=(",", ":")).encode()
        self._connection.request("POST", "/rpc", body, _HEADERS)
        return self._connection.getresponse()


class Ours:
    """``A2AClient`` with default settings."""

    def __init__(self, url: str) -> None:
        from protolink_sync.a2a import A2AClient

        self._client = A2AClient(url)

    def message(self) -> Callable[[], Any]:
        """One message."""
        send = self._client.send_message
        assert send(A2A_TEXT).text == A2A_TEXT
        return lambda: send(A2A_TEXT)

    def events(self) -> Callable[[], Iterator[Any]]:
        """The events of one stream."""
        stream = self._client.stream_message
        return lambda: stream(A2A_TEXT)
