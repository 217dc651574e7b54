"""HTTP/1.1 as the embedded host speaks it: heads to values and back. Pure functions.

Source:
    RFC 9112; PEP 3333, "environ Variables".
"""

from __future__ import annotations

import email.utils
import re
import sys
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

import attrs

from protolink_sync.server.refusal import RefusedError

__all__ = [
    "MAX_HEAD_BYTES",
    "RequestHead",
    "body_length",
    "environ_of",
    "parse_head",
    "response_head",
]

MAX_HEAD_BYTES = 64 * 1024
_MOST_HEADERS = 200
# int() refuses thousands of digits with an error of its own; no body is that long.
_MOST_DIGITS = 18

_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e]+) HTTP/1\.([01])")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BAD_BYTE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


@attrs.frozen
class RequestHead:
    """The head of a request.

    Args:
        method: Its method.
        target: Path and query.
        minor: 1 for HTTP/1.1, 0 for HTTP/1.0.
        headers: By lower-case name; several of one name joined by commas.
    """

    method: str
    target: str
    minor: int
    headers: dict[str, str]

    @property
    def keeps_alive(self) -> bool:
        """Whether the client wants to use the connection again."""
        words = {word.strip().lower() for word in self.headers.get("connection", "").split(",")}
        return "close" not in words if self.minor else "keep-alive" in words

    @property
    def expects_continue(self) -> bool:
        """Whether the client waits for a sign before it sends the body."""
        return self.minor == 1 and self.headers.get("expect", "").lower() == "100-continue"

    @property
    def length(self) -> int:
        """How many bytes of body follow.

        Raises:
            RefusedError: The head does not say it in one way.
        """
        told = self.headers.get("content-length")
        if "transfer-encoding" in self.headers:
            if told is not None:  # two ways to tell the end are two requests for somebody
                raise _bad("both Content-Length and Transfer-Encoding are given")
            raise RefusedError(411, "send the body with a Content-Length", "ValueError")
        return 0 if told is None else body_length(told)


def body_length(told: str) -> int:
    """Return the number in a Content-Length.

    Raises:
        RefusedError: It is none, or has more digits than that of any body.
    """
    if not (told.isascii() and told.isdigit()) or len(told) > _MOST_DIGITS:
        raise _bad(f"Content-Length is {told[:40]!r}, no number")
    return int(told)


def parse_head(data: bytes) -> RequestHead:
    """Read the head of a request, without the empty line that ends it.

    Raises:
        RefusedError: It is not HTTP/1.1 or 1.0, or not well-formed.
    """
    first, *lines = data.split(b"\r\n")
    request = _REQUEST_LINE.fullmatch(first)
    if request is None:
        raise _bad("the request line is not METHOD TARGET HTTP/1.1")
    if len(lines) > _MOST_HEADERS:
        raise RefusedError(431, f"more than {_MOST_HEADERS} header lines", "ValueError")
    headers: dict[str, str] = {}
    for line in lines:
        name, value = _header(line)
        if name in headers and name in ("host", "content-length"):
            raise _bad(f"{name} is given twice")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    method, target, minor = request[1].decode("ascii"), request[2].decode("ascii"), request[3]
    if minor == b"1" and "host" not in headers:
        raise _bad("there is no Host")
    if not target.startswith("/"):
        try:
            parts = urlsplit(target)
        except ValueError:  # brackets that are no IPv6 address
            raise _bad("the target is neither a path nor a URL") from None
        if parts.scheme not in ("http", "https"):
            raise _bad("the target is neither a path nor a URL")
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return RequestHead(method, target, int(minor), headers)


def _header(line: bytes) -> tuple[str, str]:
    """Return the name, in lower case, and the value of a header line."""
    name, colon, rest = line.partition(b":")
    # The blanks around the value are cut first: one expression for all of the line would try
    # every way to divide a run of them, which anybody can send.
    value = rest.strip(b" \t")
    if not colon or _NAME.fullmatch(name) is None or _BAD_BYTE.search(value):
        raise _bad("a header line is not NAME: VALUE")
    return name.decode("ascii").lower(), value.decode("latin-1")


def environ_of(
    head: RequestHead, body: Any, server: tuple[str, int], client: str, scheme: str
) -> dict[str, Any]:
    """Return the WSGI environment of a request.

    Args:
        head: Its head.
        body: Its body, as a binary stream that ends with it.
        server: Host and port that it came to.
        client: Address of the client.
        scheme: ``http`` or ``https``.
    """
    path, _, query = head.target.partition("?")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": head.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query,
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "SERVER_PROTOCOL": f"HTTP/1.{head.minor}",
        "REMOTE_ADDR": client,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scheme,
        "wsgi.input": body,
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in head.headers.items():
        key = name.upper().replace("-", "_")
        # "A_B" would be read as "A-B": a proxy may have vouched for the one and not the other.
        if "_" not in name:
            plain = name in ("content-type", "content-length")
            environ[key if plain else f"HTTP_{key}"] = value
    return environ


def response_head(
    status: str, headers: list[tuple[str, str]], *, minor: int, keeps_alive: bool
) -> bytes:
    """Return the head of a response, with the empty line that ends it."""
    lines = [f"HTTP/1.1 {status}", f"Date: {email.utils.formatdate(usegmt=True)}"]
    lines += [f"{name}: {value}" for name, value in headers]
    if not keeps_alive:
        lines.append("Connection: close")
    elif minor == 0:
        lines.append("Connection: keep-alive")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _bad(what: str) -> RefusedError:
    return RefusedError(400, f"bad request: {what}", "ValueError")
