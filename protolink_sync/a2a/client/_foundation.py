"""What every part of A2AClient stands on: the agent, the transport, the settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from protolink_sync._deadline import CancelToken, seconds
from protolink_sync.a2a.client._access import Access
from protolink_sync.a2a.client._arguments import (
    bound,
    check_switch,
    checked_extensions,
)
from protolink_sync.a2a.client._budget import Budget
from protolink_sync.a2a.client._calls import Calls, Settings
from protolink_sync.a2a.client._headers import checked_headers
from protolink_sync.a2a.client._peer import Peer
from protolink_sync.a2a.client.schemes import SchemeCredentials
from protolink_sync.a2a.wire import AgentCard, WireDialect, card_url
from protolink_sync.config import TransportConfig
from protolink_sync.errors import A2AClientError
from protolink_sync.security import (
    Credentials,
    TLSConfig,
    check_credentials,
    check_header,
    refuse_secret_headers,
)
from protolink_sync.transport import Transport, get_transport

if TYPE_CHECKING:
    from protolink_sync.aio import AsyncA2AClient

__all__ = ["Foundation"]

_Self = TypeVar("_Self", bound="Foundation")


class Foundation:
    """One agent, and what it is called with; see ``A2AClient`` for the arguments."""

    def __init__(
        self,
        base_url: str,
        *,
        credentials: Credentials | SchemeCredentials | None = None,
        headers: Mapping[str, str] | None = None,
        tls: TLSConfig | None = None,
        proxy: str | None = None,
        trust_env: bool = True,
        config: TransportConfig | None = None,
        timeout: float | None = None,
        connect_timeout: float | None = 30.0,
        dialect: WireDialect | None = None,
        allow_cross_origin: bool = False,
        send_credentials_cross_origin: bool = False,
        strict: bool = True,
        extensions: Sequence[str] = (),
    ) -> None:
        if dialect is not None and not isinstance(dialect, WireDialect):
            raise TypeError(f"dialect is {dialect!r}, must be a WireDialect or None")
        for name, switch in (
            ("allow_cross_origin", allow_cross_origin),
            ("send_credentials_cross_origin", send_credentials_cross_origin),
            ("strict", strict),
        ):
            check_switch(name, switch)
        if not isinstance(base_url, str):
            raise TypeError(f"base_url is a {type(base_url).__name__}, must be a str")
        base, card = card_url(base_url)
        self._strict = strict
        access = Access(
            credentials
            if isinstance(credentials, SchemeCredentials)
            else check_credentials(credentials),
            checked_headers(headers),
            cross_origin=send_credentials_cross_origin,
        )
        settings = Settings(
            math.inf if timeout is None else seconds("timeout", timeout),
            math.inf if connect_timeout is None else seconds("connect_timeout", connect_timeout),
            access,
            allow_cross_origin,
            checked_extensions(extensions),
        )
        # The transport shows nobody anything of its own: each request brings what it may show.
        self._way: dict[str, Any] = {
            "tls": tls,
            "proxy": proxy,
            "trust_env": trust_env,
            "config": config,
        }
        self._transport = get_transport("sse", url=base, **self._way)
        self._dialect = dialect
        self._peer = Peer(base, card, Calls(self._transport), settings, dialect)

    # --- what a user reads and sets ----------------------------------------------------------

    @property
    def base_url(self) -> str:
        """Address of the agent; it never changes."""
        return self._peer.base_url

    @property
    def endpoint_url(self) -> str:
        """Where calls go: the address from the card, or :attr:`base_url` before that is read."""
        return self._peer.discovery.url

    @property
    def wire_dialect(self) -> WireDialect | None:
        """The dialect in use; None before the first call."""
        return self._peer.discovery.dialect

    @property
    def transport(self) -> Transport:
        """The transport, for its health, counters and settings."""
        return self._transport

    @property
    def aio(self: Any) -> AsyncA2AClient:
        """The client for code inside an event loop: ``await client.aio.send_message(...)``."""
        from protolink_sync.aio import AsyncA2AClient

        return AsyncA2AClient(self)

    def set_timeout(self, timeout: float) -> None:
        """Bound the whole exchange of later calls that give no ``timeout``.

        Args:
            timeout: Seconds; 0 or ``math.inf`` for no bound.
        """
        self._peer.set(timeout=bound("timeout", timeout))

    def set_connect_timeout(self, timeout: float) -> None:
        """Bound resolving, connecting and TLS of later requests.

        Args:
            timeout: Seconds; 0 or ``math.inf`` for no bound.
        """
        self._peer.set(connect_timeout=bound("timeout", timeout))

    def set_authorization_header(self, authorization: str) -> None:
        """Set the ``Authorization`` of later calls, in the place of that of the credentials.

        It goes with calls and streams, not with the request for the card.

        Args:
            authorization: The header's value; empty for none.

        Raises:
            TypeError: It is no text.
            ValueError: It holds a character that cannot be sent.
        """
        check_header("Authorization", authorization, what="set_authorization_header")
        access = attrs.evolve(self._peer.settings.access, authorization=authorization)
        self._peer.set(access=access)

    def set_allow_cross_origin_interfaces(self, allow: bool) -> None:
        """Follow a card to another origin, or no more; from the next call on.

        Args:
            allow: As ``allow_cross_origin`` of the constructor.
        """
        check_switch("allow", allow)
        self._peer.set(allow_cross_origin=allow)
        self._peer.discovery.select_again()

    def __repr__(self) -> str:
        dialect = self.wire_dialect
        known = "" if dialect is None else f" dialect={dialect.value}"
        return f"<A2AClient {self.base_url!r}{known}>"

    def __reduce__(self) -> Any:
        settings = self._peer.settings
        if settings.access.authorization:
            raise TypeError(
                "this A2AClient holds the secret of set_authorization_header() and cannot be "
                'pickled: use credentials=BearerToken.from_env("NAME")'
            )
        # The transport knows which headers and proxies are secrets.
        self._transport.__reduce__()
        access = settings.access
        refuse_secret_headers(access.headers, what="headers= of this A2AClient")
        arguments = {
            **self._way,
            "credentials": access.credentials,
            "headers": dict(access.headers),
            "timeout": settings.timeout,
            "connect_timeout": settings.connect_timeout,
            "dialect": self._dialect,
            "allow_cross_origin": settings.allow_cross_origin,
            "send_credentials_cross_origin": access.cross_origin,
            "strict": self._strict,
            "extensions": settings.extensions,
        }
        return _rebuild, (type(self), self.base_url, arguments)

    # --- its end -----------------------------------------------------------------------------

    def close(self) -> None:
        """End what is in flight and close every connection; later calls raise. Twice is silent."""
        self._transport.close()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # --- for the parts -----------------------------------------------------------------------

    def _budget(self, timeout: float | None, cancel: CancelToken | None) -> Budget:
        return Budget.of(timeout, self._peer.settings.timeout, cancel)

    def _check_offered(self, what: str, offers: Callable[[AgentCard], Any], budget: Budget) -> None:
        """Refuse what the card, if there is one, says the agent cannot do (B25)."""
        if not self._strict:
            return
        card = self._peer.held_card(budget)
        if card is not None and not offers(card):
            raise A2AClientError(
                f"the card of {self.base_url} does not offer {what}. "
                "A2AClient(..., strict=False) asks all the same"
            )


def _rebuild(cls: type[Foundation], base_url: str, arguments: dict[str, Any]) -> Foundation:
    return cls(base_url, **arguments)
