"""The floors: what the machine and the standard library allow, written by hand."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from benchmarks.contenders import handwritten
from benchmarks.payloads import task

__all__ = ["HandWritten", "HttpClient"]

_HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}


class HttpClient:
    """``http.client`` and ``json``: dictionaries in and out, nothing checked, nothing bounded."""

    def __init__(self, url: str) -> None:
        self._netloc = urlsplit(url).netloc

    def unary(self, size: str) -> Callable[[], Any]:
        """One call on a kept connection."""
        return self._caller(http.client.HTTPConnection(self._netloc), size)

    def threads(self, size: str) -> Callable[[], Any]:
        """The same with a connection for each thread, so that nothing is shared."""
        mine = threading.local()

        def call() -> Any:
            caller = getattr(mine, "caller", None)
            if caller is None:
                caller = mine.caller = self.unary(size)
            return caller()

        return call

    def fresh(self, size: str) -> Callable[[], Callable[[], object]]:
        """A new connection and one call."""

        def make() -> Callable[[], object]:
            connection = http.client.HTTPConnection(self._netloc)
            self._caller(connection, size, sent)()
            return connection.close

        sent = task(size)
        return make

    def statement(self) -> str:
        """What a script of the same purpose imports."""
        return "import http.client, json"

    @staticmethod
    def _caller(
        connection: http.client.HTTPConnection, size: str, sent: dict[str, Any] | None = None
    ) -> Callable[[], Any]:
        path, value = f"/{size}/tasks/", sent or task(size)

        def call() -> Any:
            body = json.dumps(value, separators=(",", ":")).encode()
            connection.request("POST", path, body, _HEADERS)
            return json.loads(connection.getresponse().read())

        return call


class HandWritten:
    """Dataclasses with the conversion written out for their fields: nothing checked, nothing kept
    that the classes do not know."""

    def __init__(self, url: str) -> None:
        pass

    def decode(self, size: str) -> Callable[[], Any]:
        """From a dictionary."""
        value = task(size)
        return lambda: handwritten.task_from_dict(value)

    def encode(self, size: str) -> Callable[[], Any]:
        """To a dictionary."""
        model = handwritten.task_from_dict(task(size))
        assert handwritten.task_to_dict(model) == task(size)
        return lambda: handwritten.task_to_dict(model)
