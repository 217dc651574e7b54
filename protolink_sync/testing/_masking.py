"""What must not stand in a recording: secrets, under names that are known or as they were sent."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl

__all__ = ["MASK", "Masks"]

MASK = "***"

# Names of members whose value is a secret, wherever they stand.
_SECRET = re.compile(
    r"authori[sz]ation|api[-_ ]?key|private[-_ ]?key|pass(word|wd|phrase)|secret|token$|credential"
    r"|cookie",
    re.IGNORECASE,
)

# What a reply's headers may tell; all others stay out.
_KEPT_HEADERS = (
    "cache-control",
    "content-type",
    "etag",
    "location",
    "retry-after",
    "x-protolink-request-id",
)

# Headers of a call that hold no secret; those of ProtoLink's own are named by how they begin.
_OPEN_HEADERS = frozenset(
    (
        *("a2a-extensions", "a2a-version", "accept", "accept-encoding", "accept-language"),
        *("content-type", "idempotency-key", "traceparent", "tracestate", "user-agent"),
        "x-a2a-extensions",
    )
)
_OPEN_PREFIX = "x-protolink-"

# Shorter ones would be found everywhere: of what is known to be a secret, and of what may be one.
_SHORTEST = 4
_SHORTEST_HEADER = 8

_QUERY = re.compile(r"([?&])([^=&]+)=([^&]+)")


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
        for name, value in (credentials or {}).items():
            self._note(_pieces(name, value), _SHORTEST)

    def learn_headers(self, headers: Mapping[str, str]) -> None:
        """Note headers of a caller, of which nobody knows but by their names what they hold."""
        for name, value in headers.items():
            if name.lower() in _OPEN_HEADERS or name.lower().startswith(_OPEN_PREFIX):
                continue
            told = _SECRET.search(name) is not None
            self._note(_pieces(name, value), _SHORTEST if told else _SHORTEST_HEADER)

    def learn_query(self, query: str) -> None:
        """Note the credentials that stand behind an address, as they are and as they are quoted."""
        self._note((match[3] for match in _QUERY.finditer(query)), _SHORTEST)
        self._note((value for _, value in parse_qsl(query.lstrip("?&"))), _SHORTEST)

    def _note(self, secrets: Iterable[str], shortest: int) -> None:
        self._secrets.update(secret for secret in secrets if len(secret) >= shortest)

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
                self.text(name): self._hidden(item) if _SECRET.search(name) else self.value(item)
                for name, item in value.items()
            }
        return value

    def _hidden(self, value: Any) -> Any:
        """Return what stands under the name of a secret: texts hidden, the names of others kept."""
        if isinstance(value, str):
            return MASK if value else value
        if isinstance(value, list):
            return [self._hidden(item) for item in value]
        return self.value(value)

    def path(self, path: str) -> str:
        """Return path and query of a call, without parameters that a name gives away."""
        return self.text(
            _QUERY.sub(
                lambda match: (
                    f"{match[1]}{match[2]}={MASK}" if _SECRET.search(match[2]) else match[0]
                ),
                path,
            )
        )

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of a reply that may be recorded."""
        return {name: self.text(headers[name]) for name in _KEPT_HEADERS if headers.get(name)}


def _pieces(name: str, value: str) -> Iterator[str]:
    """Give the secrets in a header: all of it, its words, the password, the values of cookies."""
    yield value
    words = value.split()
    yield from (word for word in words if word not in ("Bearer", "Basic"))
    if name.lower() == "cookie":
        yield from (pair.partition("=")[2].strip() for pair in value.split(";"))
    if words[:1] == ["Basic"]:
        try:
            known = base64.b64decode(words[-1], validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return
        yield known.partition(":")[2]
