"""What must not stand in a recording: secrets, under names that are known or as they were sent."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl

__all__ = ["MASK", "Masks", "is_telling"]

MASK = "***"

# Names of members whose value is a secret, wherever they stand.
_SECRET = re.compile(
    r"authori[sz]ation|api[-_ ]?key|private[-_ ]?key|pass(word|wd|phrase)|secret|token$|credential"
    r"|cookie",
    re.IGNORECASE,
)

# Members that describe a secret, in schemas and cards, and hold none.
_DESCRIBING = frozenset(
    (
        *("$ref", "description", "format", "maxLength", "minLength", "required", "title", "type"),
        *("bearerFormat", "in", "location", "name", "scheme"),
        *("oauth2MetadataUrl", "openIdConnectUrl", "refreshUrl", "tokenUrl"),
    )
)

# Members whose value is a word of the protocol, which a header's value may be as well.
_VOCABULARY = frozenset(("content-type", "jsonrpc", "kind", "method", "role", "state", "type"))

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
        self._guessed: set[str] = set()
        for secret in secrets:
            if not isinstance(secret, str) or len(secret) < _SHORTEST:
                raise ValueError(f"a secret to be masked is a text of {_SHORTEST} or more letters")
            self._secrets.add(secret)

    def learn(self, credentials: Mapping[str, str] | None) -> None:
        """Note what a call has shown to its peer, which may send it back."""
        for name, value in (credentials or {}).items():
            self._secrets.update(_of_length(_pieces(name, value), _SHORTEST))

    def learn_headers(self, headers: Mapping[str, str]) -> None:
        """Note headers of a caller, of which nobody knows but by their names what they hold."""
        for name, value in headers.items():
            if name.lower() in _OPEN_HEADERS or name.lower().startswith(_OPEN_PREFIX):
                continue
            if is_telling(name):
                self._secrets.update(_of_length(_pieces(name, value), _SHORTEST))
            else:
                self._guessed.update(_of_length(_pieces(name, value), _SHORTEST_HEADER))

    def learn_query(self, query: str) -> None:
        """Note the credentials that stand behind an address, as they are and as they are quoted."""
        quoted = (match[3] for match in _QUERY.finditer(query))
        plain = (value for _, value in parse_qsl(query.lstrip("?&")))
        self._secrets.update(_of_length((*quoted, *plain), _SHORTEST))

    def text(self, text: str) -> str:
        """Return a text without what is known to be a secret, or may be one."""
        return _without(self._secrets | self._guessed, text)

    def word(self, text: str) -> str:
        """Return a word of the protocol, or a name, without what is known to be a secret."""
        return _without(self._secrets, text)

    def value(self, value: Any, name: str = "") -> Any:
        """Return JSON values without secrets, and without those that a name gives away."""
        if isinstance(value, str):
            return self.word(value) if name in _VOCABULARY else self.text(value)
        if isinstance(value, list):
            return [self.value(item, name) for item in value]
        if isinstance(value, dict):
            return {
                self.word(key): self._hidden(item) if is_telling(key) else self.value(item, key)
                for key, item in value.items()
            }
        return value

    def _hidden(self, value: Any) -> Any:
        """Return what stands under the name of a secret: names are kept, and what describes it."""
        if isinstance(value, list):
            return [self._hidden(item) for item in value]
        if isinstance(value, dict):
            told = {key for key in _DESCRIBING & value.keys() if not isinstance(value[key], dict)}
            return {
                self.word(key): self.value(item, key) if key in told else self._hidden(item)
                for key, item in value.items()
            }
        return value if value in ("", None) or isinstance(value, bool) else MASK

    def path(self, path: str) -> str:
        """Return path and query of a call, without parameters that a name gives away."""
        return self.text(
            _QUERY.sub(
                lambda match: f"{match[1]}{match[2]}={MASK}" if is_telling(match[2]) else match[0],
                path,
            )
        )

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of a reply that may be recorded."""
        return {
            name: self.value(headers[name], name) for name in _KEPT_HEADERS if headers.get(name)
        }


def is_telling(name: str) -> bool:
    """Return whether a name says that what stands under it is a secret."""
    return _SECRET.search(name) is not None


def _without(secrets: Iterable[str], text: str) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def _of_length(secrets: Iterable[str], shortest: int) -> Iterator[str]:
    return (secret for secret in secrets if len(secret) >= shortest)


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
