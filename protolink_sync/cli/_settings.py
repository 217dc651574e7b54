"""The options that all commands share, and the clients made from them."""

from __future__ import annotations

import functools
import ipaddress
import logging
import os
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import attrs
import click

from protolink_sync import AgentPeer, BearerToken, TLSConfig, connect
from protolink_sync.cli._output import Output
from protolink_sync.security import origin

__all__ = ["Settings", "shared"]

_TOKEN = "PROTOLINK_TOKEN"
_IN_CLEAR = ("http", "ws", "grpc")


@attrs.frozen
class Settings:
    """What the shared options say.

    Args:
        timeout: Budget in seconds of each call.
        cafile: File with the authorities that are trusted.
        output: Where results go.
    """

    timeout: float
    cafile: str | None
    output: Output

    @property
    def tls(self) -> TLSConfig | None:
        """What is trusted; None for the system's authorities."""
        return None if self.cafile is None else TLSConfig(cafile=self.cafile)

    def credentials(self, url: str) -> dict[str, Any] | None:
        """Return the token of the environment, for the origin that the user named and no other."""
        token = os.environ.get(_TOKEN)
        if not token or "://" not in url or url.startswith("runtime:"):
            return None
        parts = urlsplit(url)
        if parts.scheme in _IN_CLEAR and not _is_near(parts.hostname):
            self.output.note(f"warning: {_TOKEN} goes to {parts.hostname} without encryption")
        return {origin(url): BearerToken.from_env(_TOKEN)}

    def peer(self, url: str, *, a2a: bool = False) -> AgentPeer:
        """Return the agent at an address."""
        return connect(
            url, credentials=self.credentials(url), tls=self.tls, timeout=self.timeout, a2a=a2a
        )


def _is_near(host: str | None) -> bool:
    """Tell whether a host is this machine, as far as its name says so."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return host == "localhost"
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def shared(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the shared options; it gets them as ``settings``."""

    @click.option("--json", "as_json", is_flag=True, help="Print JSON, one value on each line.")
    @click.option(
        "--timeout", type=float, default=300.0, show_default=True, help="Seconds for each call."
    )
    @click.option("--cafile", help="PEM file with the authorities to trust.")
    @click.option("-v", "--verbose", is_flag=True, help="Log each attempt to the standard error.")
    @functools.wraps(command)
    def with_settings(
        *args: Any, as_json: bool, timeout: float, cafile: str | None, verbose: bool, **more: Any
    ) -> Any:
        settings = Settings(timeout, cafile, Output(as_json))
        if not verbose:
            return command(*args, settings=settings, **more)
        with _logged():
            return command(*args, settings=settings, **more)

    return with_settings


class _logged:
    """The library's log lines on the standard error, while a command runs."""

    def __enter__(self) -> None:
        self._handler = logging.StreamHandler(sys.stderr)
        self._handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        self._logger = logging.getLogger("protolink_sync")
        self._before = self._logger.level
        self._logger.addHandler(self._handler)
        self._logger.setLevel(logging.DEBUG)

    def __exit__(self, *exc_info: object) -> None:
        self._logger.removeHandler(self._handler)
        self._logger.setLevel(self._before)
