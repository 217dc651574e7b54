"""What fuzzing has found: inputs that were read wrongly, or with an error nobody expects."""

from __future__ import annotations

from typing import Any

FINDINGS: tuple[tuple[str, Any], ...] = (
    # A header line of nothing but carriage returns: an IndexError.
    ("stream body", b"HTTP/1.1 204 No\r\n\r\r\n"),
    ("reply", b"HTTP/1.1 200 OK\r\nA: b\r\n\r\r\r\n\r\n"),
    # Brackets in the target of a request that are no IPv6 address: a ValueError in the host.
    ("request head", b"GET http://[[/x HTTP/1.0"),
    ("request head", b"GET http://[::g]/x HTTP/1.0"),
    # A length that int() does not take: a ValueError.
    ("head", b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n"),
    # What JSON takes and Python cannot make a value of.
    ("typed answer", b"[" * 5000),
    ("typed answer", b"1" + b"0" * 400),
    ("typed answer", b"[[1]]"),
    ("typed answer", b"1e999"),
)
