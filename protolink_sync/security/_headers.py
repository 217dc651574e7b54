"""Which headers may be sent, and which hold secrets."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["caller_headers", "check_header", "check_not_own", "refuse_secret_headers"]

# In the names of headers whose values are secrets.
_SECRET_WORDS = ("auth", "cookie", "credential", "key", "pass", "secret", "token")

# What the transports set themselves; a second value would be a contradiction.
_OWN_HEADERS = frozenset(
    ("host", "content-length", "transfer-encoding", "connection", "idempotency-key")
)


def check_header(name: str, value: str, *, what: str) -> None:
    """Refuse a header that could end its line or cannot be sent; the value is not shown.

    Args:
        name: Name of the header.
        value: Its value.
        what: Where the caller gave it, for the message.

    Raises:
        TypeError: Name or value is no text.
        ValueError: Name or value has a character that is not allowed.

    Source:
        RFC 9110, 5.1 and 5.5: a name is a token, a value printable ASCII.
    """
    if not isinstance(name, str) or not isinstance(value, str):
        raise TypeError(f"{what} must have text as name and value of {name!r}")
    if not name or not all(c.isascii() and (c.isalnum() or c in "!#$%&'*+-.^_`|~") for c in name):
        raise ValueError(f"{what} has the header name {name!r}, which is not allowed in HTTP")
    for position, character in enumerate(value):
        if character in "\r\n\0":
            raise ValueError(
                f"{what} holds a line break or NUL at position {position} (header {name}): "
                "strip() it where it is read"
            )
        if not " " <= character <= "~" and character != "\t":
            raise ValueError(
                f"{what} holds a character at position {position} that is not printable ASCII "
                f"(header {name})"
            )


def check_not_own(name: str, *, what: str) -> None:
    """Refuse a header that the transport sets itself."""
    if name.lower() in _OWN_HEADERS or name.lower().startswith("x-protolink-"):
        raise ValueError(f"{what} has {name}, which the transport sets itself: leave it out")


def caller_headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return the headers a caller gives to a transport, checked.

    Raises:
        TypeError: A name or a value is no text.
        ValueError: A header is not allowed in HTTP, or is one the transport sets itself.
    """
    result: dict[str, str] = {}
    for name, value in (headers or {}).items():
        check_header(name, value, what="headers=")
        check_not_own(name, what="headers=")
        result[name] = value
    return result


def refuse_secret_headers(headers: Mapping[str, str], *, what: str) -> None:
    """Refuse to pickle headers whose names say that their values are secrets.

    Args:
        headers: The headers.
        what: Whose they are, for the message.

    Raises:
        TypeError: One is a secret.
    """
    secret = sorted(name for name in headers if any(word in name.lower() for word in _SECRET_WORDS))
    if secret:
        raise TypeError(
            f"{what} holds a secret ({', '.join(secret)}) and cannot be pickled: use "
            'credentials=BearerToken.from_env("NAME")'
        )
