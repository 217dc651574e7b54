"""Addresses of agents: checked once, kept in one spelling."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

__all__ = ["Addresses"]

# How many addresses a transport keeps in checked form.
_KNOWN = 1024


class Addresses(dict[str, str]):
    """The addresses a transport was called with, each with its one spelling.

    To ask for one with ``[...]`` checks it, if it is asked for the first time.

    Args:
        transport: Name of the transport, for messages.
        schemes: The schemes it takes.
        host_and_port: Whether an address is a host and its port, and nothing else.
    """

    def __init__(
        self, transport: str, schemes: tuple[str, ...], *, host_and_port: bool = False
    ) -> None:
        super().__init__()
        self._host_and_port = host_and_port
        self._transport = transport
        self._schemes = schemes

    def checked(self, url: str) -> str:
        """Return an address without its trailing slash, or say what is wrong with it.

        Raises:
            TypeError: It is no text.
            ValueError: It is no base URL of this transport.
        """
        return self[url] if isinstance(url, str) else self._check(url)

    def __missing__(self, url: str) -> str:
        address = self._check(url)
        if len(self) >= _KNOWN:
            self.clear()
        self[url] = address
        return address

    def own(self, url: str) -> str:
        """Return the address that a transport is given for itself; see :meth:`checked`.

        It may have port 0, as an agent's has that serves at any free port; calls refuse that.
        """
        return self._check(url, lowest_port=0)

    def _check(self, url: str, lowest_port: int = 1) -> str:
        if not isinstance(url, str):
            raise TypeError(f"the agent's URL is a {type(url).__name__}, must be a str")
        # First, so that no later message shows a password.
        if "@" in url:
            raise ValueError(
                f"{url.partition('://')[0] if '://' in url else 'the'} URL for "
                f"{url.rpartition('@')[2]!r} was given with a user or has an '@' in it: "
                "pass credentials= instead"
            )
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise ValueError(f"{url!r} is no URL: {error}") from None
        self._check_parts(url, parts, port)
        if port is not None and port < lowest_port:
            raise ValueError(f"{url!r} cannot be called: port 0 stands for any free port")
        # One spelling of the scheme: who compares it must not take GRPCS:// for no TLS.
        return parts.scheme + url[len(parts.scheme) :].rstrip("/")

    def _check_parts(self, url: str, parts: SplitResult, port: int | None) -> None:
        if parts.scheme not in self._schemes:
            forms = " or ".join(f"{scheme}://" for scheme in self._schemes)
            raise ValueError(
                f"{url!r} is no address for the transport {self._transport!r}: it takes {forms}"
            )
        if not parts.hostname or parts.query or parts.fragment:
            raise ValueError(
                f"{url!r} is no base URL: it needs a host, may have a port and a path, "
                "and has no query or fragment"
            )
        if self._host_and_port and (port is None or parts.path.strip("/")):
            wrong = "has no port" if port is None else "has a path"
            raise ValueError(f"{url!r} {wrong}: give {parts.scheme}://host:port")
        if any(c <= " " or c > "~" for c in url):
            raise ValueError(f"{url!r} has a blank or a character that is not ASCII in it")
