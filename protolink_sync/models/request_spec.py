"""ClientRequestSpec: one operation, described for every transport."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from typing import Any, get_args

import attrs

from protolink_sync.types import ContentType, HttpMethod, RequestSourceType

__all__ = ["ClientRequestSpec", "check_path", "one_of"]

_METHODS = get_args(HttpMethod)
_SOURCES = get_args(RequestSourceType)
# RFC 9110, 5.6.2: a header name is a token, made of these.
_TOKEN = frozenset("!#$%&'*+-.^_`|~" + string.digits + string.ascii_letters)


def _is_line(text: str) -> bool:
    """Tell whether text is printable ASCII, and so one line."""
    return text.isascii() and text.isprintable()


def one_of(known: tuple[str, ...]) -> Callable[[Any, attrs.Attribute[Any], Any], None]:
    def check(_: Any, field: attrs.Attribute[Any], value: Any) -> None:
        if value not in known:
            raise ValueError(f"unknown {field.name} {value!r}; known: {', '.join(known)}")

    return check


def check_path(_: Any, field: attrs.Attribute[str], value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError(f"path is a {type(value).__name__}, must be text")
    if not value.startswith("/") or not _is_line(value) or " " in value:
        raise ValueError(f"path {value!r} must begin with '/' and be ASCII without spaces")


def _checked_headers(headers: Mapping[str, str] | None) -> dict[str, str] | None:
    """Copy headers, refusing what would break a request or mean two things."""
    if headers is None:
        return None
    seen: set[str] = set()
    given: Mapping[Any, Any] = headers
    for name, value in given.items():
        if not isinstance(name, str) or not name or not _TOKEN.issuperset(name):
            raise ValueError(f"header name {name!r} is not a token as in RFC 9110")
        # The value is not shown: it may be a secret.
        if not isinstance(value, str) or not _is_line(value):
            raise ValueError(f"the value of header {name!r} must be printable ASCII on one line")
        if name.lower() in seen:
            raise ValueError(f"header {name!r} is given twice; case makes no difference")
        seen.add(name.lower())
    return dict(headers)


def _case_folded(headers: dict[str, str] | None) -> dict[str, str] | None:
    return headers and {name.lower(): value for name, value in headers.items()}


@attrs.frozen(cache_hash=True)
class ClientRequestSpec:
    """Describe an operation without saying how it travels.

    Args:
        name: Name of the operation in diagnostics and metrics.
        path: Where it is served, beginning with ``/``.
        method: GET, POST, DELETE, PUT or PATCH.
        response_parser: Makes the result out of the decoded JSON of the reply; None leaves it.
        request_source: Where the data travels.
        content_type: Media type of the request, if not the usual one.
        accept: Media type that is asked for.
        channel: Lane on transports that carry several at a time; ``control`` does not wait
            behind a task that runs.
        idempotent: A promise: to repeat the operation under one idempotency key applies its
            effect once. Without it nothing is ever retried.
        headers: Headers of this operation, for transports that have such. Their names compare
            without regard to case.
        allow_retries: False forbids retries although the operation is idempotent: the key is
            sent, and the call is not repeated.

    Raises:
        ValueError: Method or source are unknown, the path does not begin with ``/``, or a header
            is not fit to be sent.

    Source:
        ProtoLink, Client and transport reference, "ClientRequestSpec"; the eleventh field is
        that of 0.8.3, wire/protolink.md 21.
    """

    name: str
    path: str = attrs.field(validator=check_path)
    method: HttpMethod = attrs.field(validator=one_of(_METHODS))
    response_parser: Callable[[Any], Any] | None = None
    request_source: RequestSourceType = attrs.field(default="body", validator=one_of(_SOURCES))
    content_type: ContentType | None = None
    accept: ContentType | None = None
    channel: str = "default"
    idempotent: bool = False
    # Not shown: somebody may have put a key there.
    headers: Mapping[str, str] | None = attrs.field(
        default=None, converter=_checked_headers, eq=_case_folded, hash=False, repr=False
    )
    allow_retries: bool = True
