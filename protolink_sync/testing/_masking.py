"""What must not stand in a recording: secrets, under names that are known or as they were sent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["MASK", "Masks"]

MASK = "***"

# Names of members whose value is a secret, wherever they stand.
_SECRET = re.compile(
    r"authori[sz]ation|api[-_ ]?key|private[-_ ]?key|pass(word|wd|phrase)|secret|token$|credential"
    r"|cookie",
    re.IGNORECASE,
)

# What a reply's headers may tell; all others stay out.
_KEPT_HEADERS = ("content-type", "retry-after", "x-protolink-request-id")

# Shorter ones would be found everywhere.
_SHORTEST = 4


class Masks:
    """Takes secrets out of what is recorded.

    Args:
        secrets: Texts that must not be recorded, wherever they stand.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets: set[str] = set()
        for secret in secrets:
            if not isinstance(secret, str) or len(secret) < _SHORTEST:
                raise ValueError(f"a secret to be masked is a text of {_SHORTEST} or more letters")
            self._secrets.add(secret)

    def learn(self, credentials: Mapping[str, str] | None) -> None:
        """Note what a call has shown to its peer, which may send it back."""
        for value in (credentials or {}).values():
            for piece in (value, *value.split()):
                if len(piece) >= _SHORTEST and piece not in ("Bearer", "Basic"):
                    self._secrets.add(piece)

    def text(self, text: str) -> str:
        """Return a text without the secrets that are known."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, MASK)
        return text

    def value(self, value: Any) -> Any:
        """Return JSON values without secrets, and without those that a name gives away."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {
                self.text(name): MASK if _is_secret(name, item) else self.value(item)
                for name, item in value.items()
            }
        return value

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of a reply that may be recorded."""
        return {name: self.text(headers[name]) for name in _KEPT_HEADERS if headers.get(name)}


def _is_secret(name: str, item: object) -> bool:
    return isinstance(item, str) and item != "" and _SECRET.search(name) is not None
